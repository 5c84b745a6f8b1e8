/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/job.h"

#include "base/test.h"
#include "graph/program.h"

#include <stdlib.h>

static void the_environment_sets_limits(void)
{
    fl_job j = {.start = 3 * FL_SEC};
    setenv("FLUID_LEASE", "2.5", 1);
    setenv("FLUID_REJOIN", "0", 1);
    setenv("FLUID_START", "60", 1);
    setenv("FLUID_STALL", "1e30", 1);
    setenv("FLUID_STAGED", "1e6", 1);
    CHECK_OK(fl_job_limits(&j));
    CHECK_INT((int64_t)j.max_staged, 1000000);
    CHECK_INT(j.lease, 2500 * FL_MS);
    CHECK_INT(j.rejoin, -1);
    CHECK_INT(j.start, 3 * FL_SEC);
    CHECK(j.stall > INT64_C(1000000000) * FL_SEC);
    CHECK_INT(j.reach, 0);
    CHECK_INT(fl_job_defaults(j).rejoin, 0);
}

static void rounds_wait_for_trainers_that_come_back(void)
{
    fl_job j = {0}, own = {.rejoin = 3 * FL_SEC};
    setenv("FLUID_REJOIN", "45", 1);
    CHECK_OK(fl_job_limits(&j));
    CHECK_INT(j.hold, 45 * FL_SEC);
    CHECK_OK(fl_job_limits(&own));
    CHECK_INT(own.hold, 0);
    unsetenv("FLUID_REJOIN");
    j = (fl_job){0};
    CHECK_OK(fl_job_limits(&j));
    CHECK_INT(fl_job_defaults(j).hold, 0);
}

static void a_failure_may_be_final(void)
{
    fl_job j = {0};
    setenv("FLUID_REJOIN", "60", 1);
    CHECK_OK(fl_job_limits(&j));
    CHECK_INT(fl_job_defaults(j).rejoin_failed, 60 * FL_SEC);
    setenv("FLUID_REJOIN_FAILED", "0", 1);
    j = (fl_job){0};
    CHECK_OK(fl_job_limits(&j));
    CHECK_INT(fl_job_defaults(j).rejoin, 60 * FL_SEC);
    CHECK_INT(fl_job_defaults(j).rejoin_failed, 0);
    unsetenv("FLUID_REJOIN_FAILED");
    unsetenv("FLUID_REJOIN");
}

static void a_state_that_is_kept_is_waited_for(void)
{
    const fl_job memory = fl_job_defaults((fl_job){0});
    CHECK_INT(memory.reach, 60 * FL_SEC);
    CHECK_INT(memory.gone, 5 * FL_SEC);
    const fl_job kept = fl_job_defaults(
        (fl_job){.durability = FL_PROCESS, .restart = 90 * FL_SEC});
    CHECK_INT(kept.reach, 90 * FL_SEC);
    CHECK_INT(kept.gone, 90 * FL_SEC);
    const fl_job hurried = fl_job_defaults(
        (fl_job){.durability = FL_PROCESS, .reach = 8 * FL_SEC});
    CHECK_INT(hurried.reach, 8 * FL_SEC);
    CHECK_INT(hurried.gone, 8 * FL_SEC);
}

static void a_limit_of_nothing_is_refused(void)
{
    fl_job j = {0};
    setenv("FLUID_LEASE", "0", 1);
    CHECK_ERR(fl_job_limits(&j), FL_EINVAL, "FLUID_LEASE is 0, expected more");
    setenv("FLUID_LEASE", "long", 1);
    CHECK_ERR(fl_job_limits(&j), FL_EINVAL, "FLUID_LEASE is \"long\"");
    unsetenv("FLUID_LEASE");
}

static void levels_have_names(void)
{
    static const struct {
        const char *name;
        fl_durability level;
        bool or_memory;
    } rows[] = {{"", FL_PROCESS, true},
                {"memory", FL_MEMORY, false},
                {"process", FL_PROCESS, false},
                {"auto", FL_PROCESS, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_job j = {0};
        setenv("FLUID_DURABILITY", rows[i].name, 1);
        CHECK_OK(fl_job_limits(&j));
        CHECK_INT(j.durability, rows[i].level);
        CHECK_INT(j.or_memory, rows[i].or_memory);
    }
    unsetenv("FLUID_DURABILITY");
}

static void a_level_that_is_not_there_is_refused(void)
{
    fl_job j = {0};
    setenv("FLUID_DURABILITY", "disk", 1);
    CHECK_ERR(fl_job_limits(&j), FL_EINVAL, "FLUID_DURABILITY is \"disk\"");
    unsetenv("FLUID_DURABILITY");
}

static void jobs_that_differ_are_told_how(void)
{
    static const struct {
        const char *other, *want;
    } table[] = {
        {"servers a:1,b:2\ntrainers 3\nmode asynchronous\nw [13,1]\nb [1]\n",
         "what servers do differs (the optimiser or its settings), or the "
         "version of Fluid"},
        {"servers b:2,a:1\ntrainers 3\nmode asynchronous\nw [13,1]\nb [1]\n",
         "servers: a:1,b:2 here, b:2,a:1 there"},
        {"servers a:1\ntrainers 2\nmode synchronous\nw [13,1]\nb [1]\n",
         "servers: a:1,b:2 here, a:1 there; trainers: 3 here, 2 there; mode: "
         "asynchronous here, synchronous there"},
        {"servers a:1,b:2\ntrainers 3\nmode asynchronous\nw [14,1]\nb [2]\n",
         "w: [13,1] here, [14,1] there"},
        {"servers a:1,b:2\ntrainers 3\nmode asynchronous\nw [13,1]\nc [1]\n",
         "variables: b [1] here, c [1] there"},
        {"servers a:1,b:2\ntrainers 3\nmode asynchronous\nw [13,1]\n",
         "variable b [1] is only here"},
        {"servers a:1,b:2\ntrainers 3\nmode asynchronous\nw [13,1]\nb [1]\nc "
         "[2]",
         "variable c [2] is only there"},
        {"", "variable servers a:1,b:2 is only here; variable trainers 3 is "
             "only here; variable mode asynchronous is only here; variable w "
             "[13,1] is only here"},
    };
    const char *servers[] = {"a:1", "b:2"};
    const fl_job j = fl_job_defaults((fl_job){.servers = 2,
                                              .endpoints = servers,
                                              .about = "w [13,1]\nb [1]\n",
                                              .trainers = 3,
                                              .async = true});
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fl_str text = {0};
        fl_job_differs(&j, table[i].other, &text);
        CHECK_STR(text.at, table[i].want);
        fl_str_fini(&text);
    }
}

static void a_job_has_so_many_trainers(void)
{
    fl_job j = fl_job_defaults((fl_job){.trainers = FL_TRAINERS_MOST});
    CHECK_OK(fl_job_check(&j));
    j.trainers++;
    CHECK_ERR(fl_job_check(&j), FL_EINVAL,
              "job: 8193 trainers, expected 1 to 8192");
}

const fl_test fl_tests[] = {
    {"jobs that differ are told how", jobs_that_differ_are_told_how},
    {"a level of durability has a name", levels_have_names},
    {"a level of durability that is not there is refused",
     a_level_that_is_not_there_is_refused},
    {"the environment sets the limits of a job", the_environment_sets_limits},
    {"a limit of nothing is refused", a_limit_of_nothing_is_refused},
    {"a job has so many trainers", a_job_has_so_many_trainers},
    {"rounds wait for trainers that come back",
     rounds_wait_for_trainers_that_come_back},
    {"a trainer that has failed may be waited for less long",
     a_failure_may_be_final},
    {"a server whose state is kept is waited for",
     a_state_that_is_kept_is_waited_for},
    {0},
};
