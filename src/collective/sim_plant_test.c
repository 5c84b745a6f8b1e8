/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator of ranks finds bugs: what this test runs is compiled with them.
 */
#include "collective/sim.h"
#include "net/plant.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>

enum {
    FEW = 300
};

fl_net_plant fl_net_planted;

/* Some seed finds a planted bug, by one of the letters. */
static void find_plant(fl_net_plant plant, const char *letters)
{
    fl_net_planted = plant;
    for (uint64_t seed = 1; seed <= FEW; seed++) {
        sim_result r;
        fl_str report = {0};
        char want[40];
        if (sim_run(seed, &r, &report))
            continue;
        const int n = snprintf(want, sizeof want, "seed %llu breaks ",
                               (unsigned long long)seed);
        const bool found =
            fl_starts_with(report.at, want) && strchr(letters, report.at[n]);
        fl_str_fini(&report);
        if (found)
            return;
    }
    CHECK(!"the planted bug was found");
}

static void finds_a_failure_that_is_not_told(void)
{
    find_plant(FL_NET_PLANT_MUTE, "C");
}

static void finds_a_rank_that_is_blamed_in_haste(void)
{
    find_plant(FL_NET_PLANT_HASTY, "C");
}

static void finds_a_wait_that_is_not_told(void)
{
    find_plant(FL_NET_PLANT_STALE, "C");
}

static void finds_a_missing_farewell(void)
{
    find_plant(FL_NET_PLANT_NO_FAREWELL, "B");
}

static void finds_calls_that_nobody_compares(void)
{
    find_plant(FL_NET_PLANT_ANY_CALL, "AC");
}

static void finds_buckets_that_differ(void)
{
    find_plant(FL_NET_PLANT_BUCKETS, "B");
}

const fl_test fl_tests[] = {
    {"the simulator finds a failure that is not told",
     finds_a_failure_that_is_not_told},
    {"the simulator finds a rank that is blamed in haste",
     finds_a_rank_that_is_blamed_in_haste},
    {"the simulator finds a wait that is not told",
     finds_a_wait_that_is_not_told},
    {"the simulator finds a missing farewell", finds_a_missing_farewell},
    {"the simulator finds calls that nobody compares",
     finds_calls_that_nobody_compares},
    {"the simulator finds buckets that differ", finds_buckets_that_differ},
    {0},
};
