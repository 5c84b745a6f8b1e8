/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds for make test; FL_SIM_SEEDS has more for make test-sim. */
#include "collective/sim.h"

#include "base/test.h"

#include <stdlib.h>

enum {
    FEW = 200
};

static void run_seed(uint64_t seed, sim_result *result)
{
    fl_str report = {0};
    if (!sim_run(seed, result, &report))
        fl_test_print(report.at);
    fl_str_fini(&report);
    CHECK(result->ok);
}

static void holds_for_every_seed(void)
{
    const char *one = getenv("FL_SIM_SEED"), *many = getenv("FL_SIM_SEEDS");
    const uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    const uint64_t n = one ? 1 : many ? strtoull(many, NULL, 10) / 4 : FEW;
    int64_t events = 0;
    int failed[SIM_FAULTS] = {0};
    for (uint64_t seed = first; seed < first + n; seed++) {
        sim_result r;
        run_seed(seed, &r);
        events += r.events;
        failed[r.fault] += !r.ended_well;
    }
    print_message("events %lld; jobs that a fault ended:", (long long)events);
    for (int i = SIM_KILLED; i < SIM_FAULTS; i++)
        print_message(" %d", failed[i]);
    print_message("\n");
    for (int i = SIM_KILLED; i < SIM_FAULTS && !one; i++)
        CHECK(failed[i] > 0);
}

static void replays(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sim_result a, b;
        run_seed(seed, &a);
        run_seed(seed, &b);
        CHECK_INT((int64_t)a.trace, (int64_t)b.trace);
        CHECK_INT(a.events, b.events);
    }
}

const fl_test fl_tests[] = {
    {"what must hold of ranks holds for every seed", holds_for_every_seed},
    {"a seed replays exactly", replays},
    {0},
};
