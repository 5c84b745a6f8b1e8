/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator finds deliberate bugs: the state machines of this test are
 * compiled with them (plant.h). */
#include "protocol/plant.h"
#include "protocol/sim.h"

#include "base/test.h"

#include <stdio.h>

enum {
    FEW = 3000
};

fl_plant fl_planted;

/* Some seed must find the planted bug as a breach of that invariant. */
static void finds(fl_plant plant, const char *letter)
{
    fl_sim_opts opts = {.sync = true};
    fl_sim_result r;
    fl_str report = {0};
    fl_planted = plant;
    for (opts.seed = 1; opts.seed <= FEW; opts.seed++) {
        if (fl_sim_run(&opts, &r, &report))
            continue;
        char want[64];
        snprintf(want, sizeof want, "seed %llu breaks %s ",
                 (unsigned long long)opts.seed, letter);
        const bool found = fl_starts_with(report.at, want);
        fl_str_fini(&report);
        if (found)
            return;
    }
    CHECK(!"the planted bug was found");
}

static void finds_a_duplicate(void)
{
    finds(FL_PLANT_DUPLICATE, "A");
}

static void finds_a_dead_member(void)
{
    finds(FL_PLANT_DEAD_MEMBER, "E");
}

static void finds_reduction_by_arrival(void)
{
    finds(FL_PLANT_ARRIVAL, "C");
}

static void finds_a_loss_that_goes_unnoticed(void)
{
    finds(FL_PLANT_QUIET, "Q");
}

const fl_test fl_tests[] = {
    {"the simulator finds a push applied twice", finds_a_duplicate},
    {"the simulator finds a dead member that counts", finds_a_dead_member},
    {"the simulator finds reduction by arrival", finds_reduction_by_arrival},
    {"the simulator finds a loss that goes unnoticed",
     finds_a_loss_that_goes_unnoticed},
    {0},
};
