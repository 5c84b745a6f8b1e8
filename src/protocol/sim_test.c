/* SPDX-License-Identifier: Apache-2.0 */
/* Run the simulator on some seeds. `make test-sim` sets FL_SIM_SEEDS to run
 * more. */
#include "protocol/sim.h"

#include "base/test.h"

#include <stdlib.h>

enum {
    FEW = 3000
};

static uint64_t seeds(void)
{
    const char *n = getenv("FL_SIM_SEEDS");
    return n ? strtoull(n, NULL, 10) : FEW;
}

static void run(fl_sim_opts opts, fl_sim_result *result)
{
    fl_str report = {0};
    if (!fl_sim_run(&opts, result, &report))
        fl_test_print(report.at);
    fl_str_fini(&report);
    CHECK(result->ok);
}

static void holds(void)
{
    fl_sim_result sum = {0};
    const uint64_t only =
        getenv("FL_SIM_SEED") ? strtoull(getenv("FL_SIM_SEED"), NULL, 10) : 0;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : seeds());
         seed++) {
        fl_sim_result r;
        run((fl_sim_opts){.seed = seed}, &r);
        sum.events += r.events;
        sum.rounds += r.rounds;
        sum.lost += r.lost;
        sum.fenced += r.fenced;
        sum.rejoined += r.rejoined;
        sum.parked_joins += r.parked_joins;
        sum.kills += r.kills;
        sum.late_loss += r.late_loss;
        sum.replaced += r.replaced;
        sum.crashed += r.crashed;
        sum.rewound += r.rewound;
        sum.damaged += r.damaged;
        sum.warned += r.warned;
        sum.rivals += r.rivals;
        sum.code += r.code != 0;
    }
    print_message(
        "events %lld rounds %lld lost %lld fenced %lld rejoined %lld "
        "parked joins %lld kills %lld lost in P %lld replaced %lld "
        "crashed %lld went back %lld damaged %lld told so %lld rivals %lld "
        "failed %d\n",
        (long long)sum.events, (long long)sum.rounds, (long long)sum.lost,
        (long long)sum.fenced, (long long)sum.rejoined,
        (long long)sum.parked_joins, (long long)sum.kills,
        (long long)sum.late_loss, (long long)sum.replaced,
        (long long)sum.crashed, (long long)sum.rewound, (long long)sum.damaged,
        (long long)sum.warned, (long long)sum.rivals, sum.code);
    if (only)
        return;
    CHECK(sum.fenced > 10 && sum.rejoined > 10 && sum.kills > 10);
    CHECK(sum.parked_joins > 10 && sum.late_loss > 0 && sum.code > 0);
    CHECK(sum.rewound > 100 && sum.damaged > 100);
    CHECK(sum.crashed > 1000 && sum.replaced > 10 && sum.warned > 10 &&
          sum.rivals > 10);
}

static void replays(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        fl_sim_result a, b;
        run((fl_sim_opts){.seed = seed}, &a);
        run((fl_sim_opts){.seed = seed}, &b);
        CHECK_INT((int64_t)a.trace, (int64_t)b.trace);
        CHECK_INT(a.events, b.events);
    }
}

static void completes_in_calm_weather(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fl_sim_result r;
        run((fl_sim_opts){.seed = seed, .weather = FL_SIM_CALM}, &r);
        CHECK_INT(r.code, 0);
        CHECK_INT(r.fenced, 0);
    }
}

const fl_test fl_tests[] = {
    {"the invariants hold for every seed", holds},
    {"a seed replays exactly", replays},
    {"every trainer completes in calm weather", completes_in_calm_weather},
    {0},
};
