/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/watch.h"

#include "base/test.h"

#include <string.h>

static const int64_t ms = 1000 * 1000;

static int answer(void *user)
{
    int *left = user; /* how many polls let the run go on */
    return (*left)-- <= 0;
}

/* Call fl_watch_ask up to n times, `step` ns apart. Returns how many calls let
 * the run go on. */
static int asks(fl_watch *w, fl_fake_clock *c, int n, int64_t step)
{
    for (int i = 0; i < n; i++) {
        fl_fake_clock_move(c, step);
        if (fl_watch_ask(w))
            return i;
    }
    return n;
}

static void polls_every_50_ms(void)
{
    fl_fake_clock c;
    int left = 1;
    fl_fake_clock_init(&c, 1000 * ms);
    fl_watch w = {.clock = &c.clock, .poll = answer, .user = &left};
    CHECK_INT(asks(&w, &c, 400, ms / 10), 400); /* 40 ms: one poll */
    CHECK_INT(left, 0);
    CHECK(asks(&w, &c, 400, ms / 10) < 150);
    fl_watch_fini(&w);
}

static void slow_ops_are_interrupted_soon(void)
{
    fl_fake_clock c;
    int left = 0;
    fl_fake_clock_init(&c, 1000 * ms);
    fl_watch w = {.clock = &c.clock, .poll = answer, .user = &left};
    CHECK(asks(&w, &c, 100, 200 * ms) < 5); /* interrupted within a second */
    fl_watch_fini(&w);
}

static void counts(fl_watch *w, fl_fake_clock *c, const char *type, int64_t ns)
{
    const int64_t start = fl_clock_now(w->clock);
    fl_fake_clock_move(c, ns);
    fl_watch_count(w, type, start);
}

static void rows_add_up(void)
{
    fl_fake_clock c;
    fl_profile_row rows[3];
    fl_fake_clock_init(&c, 5);
    fl_watch w = {.clock = &c.clock};
    fl_watch_profile(&w, true);
    counts(&w, &c, "relu", 10);
    counts(&w, &c, "mul", 100);
    counts(&w, &c, "relu", 30);
    CHECK_INT(fl_watch_rows(&w, 3, rows), 2);
    CHECK_STR(rows[0].type, "mul");
    CHECK_STR(rows[1].type, "relu");
    CHECK_INT(rows[1].calls, 2);
    CHECK_INT(rows[1].total, 40);
    CHECK_INT(rows[1].max, 30);
    CHECK_INT(rows[1].min, 10);
    fl_watch_profile(&w, false);
    CHECK_INT(fl_watch_rows(&w, 1, rows), 2); /* the rows stay */
    fl_watch_profile(&w, true);
    CHECK_INT(fl_watch_rows(&w, 3, rows), 0);
    fl_watch_fini(&w);
}

static void trace_is_chromes(void)
{
    fl_fake_clock c;
    fl_fake_clock_init(&c, 7000);
    fl_watch w = {.clock = &c.clock};
    fl_watch_profile(&w, true);
    counts(&w, &c, "mul", 1500);
    counts(&w, &c, "relu", 250);
    char *text = fl_watch_trace(&w);
    CHECK_STR(text, "{\"traceEvents\": [\n"
                    "{\"name\": \"mul\", \"cat\": \"op\", \"ph\": \"X\", "
                    "\"ts\": 0.000, \"dur\": 1.500, \"pid\": 0, \"tid\": 0},\n"
                    "{\"name\": \"relu\", \"cat\": \"op\", \"ph\": \"X\", "
                    "\"ts\": 1.500, \"dur\": 0.250, \"pid\": 0, \"tid\": 0}\n"
                    "]}\n");
    fl_mem_free(text);
    fl_watch_fini(&w);
}

const fl_test fl_tests[] = {
    {"a watch asks every 50 ms whether to go on", polls_every_50_ms},
    {"a watch interrupts slow ops soon", slow_ops_are_interrupted_soon},
    {"a profile's rows add up by type", rows_add_up},
    {"a trace is what Chrome reads", trace_is_chromes},
    {0},
};
