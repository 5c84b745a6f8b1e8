/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of a rank alone: time and notes are the test's. */
#include "net/ranks.h"

#include "base/clock.h"
#include "base/test.h"

#include <errno.h>
#include <string.h>

enum {
    WORLD = 4
};

static const char *const endpoints[WORLD] = {"a:1", "b:1", "c:1", "d:1"};

static fl_ranks *new_rank(int rank)
{
    return fl_ranks_new(&(fl_ranks_opts){endpoints, WORLD, rank, 5 * FL_SEC});
}

static void connect_others(fl_ranks *r, int rank)
{
    for (int i = 0; i < WORLD; i++)
        for (int c = 0; c < FL_MESH_CHANNELS && i != rank; c++)
            fl_ranks_connected(r, i, (fl_mesh_channel)c);
}

static fl_err begin_call(fl_ranks *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static fl_err begin_call(fl_ranks *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const fl_err err = fl_ranks_begin_call(r, fmt, args);
    va_end(args);
    return err;
}

/* What rank `from` has to say comes to r. */
static fl_err pass_notes(fl_ranks *from, int rank, fl_ranks *r)
{
    size_t size;
    const void *notes = fl_ranks_take_notes(from, &size);
    CHECK(notes != NULL);
    return fl_ranks_hear(r, rank, notes, size);
}

static fl_hello hello_of(int rank, int to)
{
    fl_hello h = {
        .version = FL_GREETING_VERSION, .world = WORLD, .rank = rank, .to = to};
    h.process[0] = (unsigned char)(rank + 1);
    return h;
}

static void connects_below_and_accepts_above(void)
{
    fl_ranks *r = new_rank(2);
    int rank;
    fl_mesh_channel c;
    for (int i = 0; i < 4; i++) {
        CHECK(fl_ranks_next_server(r, &rank, &c));
        CHECK_INT(rank, i / 2);
        CHECK_INT(c, i % 2);
        fl_ranks_connected(r, rank, c);
    }
    CHECK(!fl_ranks_next_server(r, &rank, &c));
    CHECK(fl_ranks_next_client(r));
    fl_ranks_connected(r, 3, FL_MESH_CONTROL);
    CHECK(fl_ranks_next_client(r));
    fl_ranks_connected(r, 3, FL_MESH_DATA);
    CHECK(!fl_ranks_next_client(r));
    fl_ranks_free(r);
}

static void refuses_a_second_process_of_a_rank(void)
{
    fl_ranks *r = new_rank(0);
    fl_hello h = hello_of(1, 0);
    CHECK_OK(fl_ranks_admit(r, &h, "10.0.0.1:9"));
    CHECK_OK(fl_ranks_admit(r, &h, "10.0.0.1:10")); /* it tries again */
    h.process[0]++;
    CHECK_ERR(fl_ranks_admit(r, &h, "10.0.0.2:9"), FL_EINVAL,
              "two processes are rank 1: 10.0.0.1:9 and 10.0.0.2:9");
    CHECK_ERR(fl_ranks_check(r), FL_EINVAL, "two processes are rank 1");
    fl_ranks_free(r);
}

static void a_late_rank_is_named_at_growing_intervals(void)
{
    static const int seconds[] = {5, 10, 20, 40, 80, 140, 200};
    fl_ranks *r = new_rank(0);
    connect_others(r, 0);
    CHECK_OK(begin_call(r, "barrier"));
    fl_ranks_wait(r, 1, NULL, 300 * FL_SEC, 0);
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        const int64_t due = seconds[i] * FL_SEC;
        CHECK_INT(fl_ranks_due(r), due);
        CHECK_OK(fl_ranks_tick(r, due - 1));
        CHECK(!fl_ranks_take_late(r));
        CHECK_OK(fl_ranks_tick(r, due));
        const char *late = fl_ranks_take_late(r);
        CHECK(late && strstr(late, "s for rank 1 (b:1) in barrier (call 1)"));
        CHECK(!fl_ranks_take_late(r));
    }
    CHECK_ERR(fl_ranks_tick(r, 300 * FL_SEC), FL_ETIMEOUT,
              "rank 0 has waited 300.0 s for rank 1 (b:1) in barrier (call 1) "
              "(the limit is 300.0 s)");
    fl_ranks_free(r);
}

static void a_rank_that_is_waited_for_by_others_is_named(void)
{
    fl_ranks *r = new_rank(0), *next = new_rank(1);
    connect_others(r, 0);
    connect_others(next, 1);
    CHECK_OK(begin_call(r, "barrier"));
    CHECK_OK(begin_call(next, "barrier"));
    fl_ranks_wait(next, 2, NULL, 60 * FL_SEC, 0);
    CHECK_OK(fl_ranks_tick(next, 5 * FL_SEC));
    CHECK_OK(pass_notes(next, 1, r));
    fl_ranks_wait(r, 1, NULL, 60 * FL_SEC, 0);
    CHECK_OK(fl_ranks_tick(r, 6 * FL_SEC));
    CHECK(strstr(fl_ranks_take_late(r),
                 "for rank 1 (b:1), which waits for rank 2 (c:1), in barrier"));
    fl_ranks_end_wait(next);
    CHECK_OK(pass_notes(next, 1, r));
    CHECK_OK(fl_ranks_tick(r, 12 * FL_SEC));
    CHECK(!strstr(fl_ranks_take_late(r), "rank 2"));
    fl_ranks_free(r);
    fl_ranks_free(next);
}

/* They exchange no data, so no head of a call could tell. */
static void waits_in_calls_that_differ_end(void)
{
    fl_ranks *r = new_rank(0), *stray = new_rank(3);
    connect_others(r, 0);
    connect_others(stray, 3);
    CHECK_OK(begin_call(r, "all-reduce sum of %d f32", 9));
    CHECK_OK(begin_call(stray, "barrier"));
    fl_ranks_wait(stray, 2, NULL, 60 * FL_SEC, 0);
    CHECK_OK(fl_ranks_tick(stray, 5 * FL_SEC));
    CHECK_ERR(pass_notes(stray, 3, r), FL_EPROTO,
              "rank 3 (d:1) is in barrier (call 1) while rank 0 is in "
              "all-reduce sum of 9 f32 (call 1)");
    fl_ranks_free(r);
    fl_ranks_free(stray);
}

static void a_failure_is_told_and_passed_on(void)
{
    fl_ranks *r[3] = {new_rank(0), new_rank(1), new_rank(2)};
    size_t size;
    for (int i = 0; i < 3; i++)
        connect_others(r[i], i);
    fl_ranks_give_up(r[0], "ValueError: x");
    CHECK_ERR(fl_ranks_check(r[0]), FL_EIO,
              "rank 0 (a:1) has failed: ValueError: x");
    CHECK_ERR(pass_notes(r[0], 0, r[1]), FL_EENDED,
              "rank 0 (a:1) has failed: ValueError: x (told by rank 0)");
    CHECK_ERR(pass_notes(r[1], 1, r[2]), FL_EENDED,
              "rank 0 (a:1) has failed: ValueError: x (told by rank 0)");
    CHECK(fl_ranks_take_notes(r[2], &size) != NULL);
    CHECK(!fl_ranks_take_notes(r[2], &size));
    /* What follows of it does not replace it. */
    CHECK_ERR(fl_ranks_end_control(r[2], 1, 0), FL_EENDED, "ValueError: x");
    for (int i = 0; i < 3; i++)
        fl_ranks_free(r[i]);
}

static void the_end_of_data_waits_for_its_reason(void)
{
    fl_ranks *r = new_rank(0), *other = new_rank(1);
    connect_others(r, 0);
    connect_others(other, 1);
    CHECK_OK(begin_call(r, "barrier"));
    CHECK_OK(fl_ranks_end_data(r, 1, 0));
    CHECK_OK(fl_ranks_tick(r, 1 * FL_SEC));
    fl_ranks_leave(other);
    CHECK_ERR(pass_notes(other, 1, r), FL_EIO,
              "rank 1 (b:1) has ended its part of the job");
    fl_ranks_free(r);
    r = new_rank(0);
    connect_others(r, 0);
    CHECK_OK(fl_ranks_end_data(r, 1, 0));
    CHECK_ERR(fl_ranks_tick(r, 2 * FL_SEC), FL_EIO,
              "rank 1 (b:1): its data connection was lost");
    fl_ranks_free(r);
    fl_ranks_free(other);
}

static void a_farewell_makes_an_end_fine(void)
{
    fl_ranks *r = new_rank(0), *other = new_rank(1);
    connect_others(r, 0);
    connect_others(other, 1);
    fl_ranks_leave(other);
    CHECK_OK(pass_notes(other, 1, r));
    CHECK_OK(fl_ranks_end_control(r, 1, 0));
    CHECK_ERR(fl_ranks_end_control(r, 2, ETIMEDOUT), FL_EENDED,
              "rank 2 (c:1) cannot be reached any more");
    fl_ranks_free(r);
    fl_ranks_free(other);
}

static void notes_may_come_in_pieces_and_wrong(void)
{
    fl_ranks *r = new_rank(0), *other = new_rank(1);
    const uint32_t wrong[] = {9, 0, 0, 0};
    size_t size;
    connect_others(r, 0);
    connect_others(other, 1);
    fl_ranks_give_up(other, "no");
    const char *notes = fl_ranks_take_notes(other, &size);
    for (size_t i = 0; i + 1 < size; i++)
        CHECK_OK(fl_ranks_hear(r, 1, notes + i, 1));
    CHECK_ERR(fl_ranks_hear(r, 1, notes + size - 1, 1), FL_EENDED,
              "has failed: no");
    fl_ranks_free(r);
    r = new_rank(0);
    CHECK_ERR(fl_ranks_hear(r, 1, wrong, sizeof wrong), FL_EPROTO,
              "rank 1 (b:1) sent a note of kind 9");
    fl_ranks_free(r);
    fl_ranks_free(other);
}

const fl_test fl_tests[] = {
    {"a rank connects to those below and accepts those above",
     connects_below_and_accepts_above},
    {"a second process of a rank is refused",
     refuses_a_second_process_of_a_rank},
    {"a late rank is named at growing intervals",
     a_late_rank_is_named_at_growing_intervals},
    {"the rank that all wait for is named",
     a_rank_that_is_waited_for_by_others_is_named},
    {"waits in calls that differ end", waits_in_calls_that_differ_end},
    {"a failure is told and passed on", a_failure_is_told_and_passed_on},
    {"the end of a data connection waits for its reason",
     the_end_of_data_waits_for_its_reason},
    {"a farewell makes an end fine", a_farewell_makes_an_end_fine},
    {"notes may come in pieces, and wrong ones are refused",
     notes_may_come_in_pieces_and_wrong},
    {0},
};
