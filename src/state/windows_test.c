/* SPDX-License-Identifier: Apache-2.0 */
#include "state/test_state.h"
#include "state/windows.h"

#include <stdio.h>

static const uint64_t first[2] = {1, 2}, second[2] = {1, 3};

static fl_windows *open_windows(fl_statedir **d)
{
    fl_windows *w = NULL;
    *d = test_state();
    CHECK_OK(fl_windows_new(*d, 0, &w));
    fl_statedir_ready(*d);
    return w;
}

static void close_windows(fl_statedir *d, fl_windows *w, bool removes)
{
    fl_windows_free(w);
    if (removes)
        fl_statedir_remove(d);
    fl_statedir_close(d);
}

static fl_err mark(fl_windows *w, const uint64_t session[2], int64_t rank,
                   int64_t seq)
{
    return fl_windows_mark(
        w, &(fl_seat){.session = {session[0], session[1]}, .rank = rank}, seq);
}

/* Pushes come out of order: 2, 1, 4, 3 .. */
static void mark_ten(void *arg)
{
    fl_statedir *d;
    fl_windows *w = open_windows(&d);
    for (int64_t i = 0; i < 10; i++)
        CHECK_OK(mark(w, first, 5, (i ^ 1) + 1));
    close_windows(d, w, false);
}

static void a_push_is_marked_or_not(void)
{
    for (int n = 1; n <= 21; n++) {
        char at[32];
        fl_statedir *d;
        snprintf(at, sizeof at, "*:%d", n);
        CHECK(test_kill_at(at, mark_ten, NULL) == (n < 21));
        fl_windows *w = open_windows(&d);
        const int64_t marked = n / 2; /* each has two failpoints */
        for (int64_t i = 0; i < 10; i++)
            CHECK(fl_windows_seen(w, first, (i ^ 1) + 1) == (i < marked));
        close_windows(d, w, true);
    }
}

static void sessions_come_and_go(void)
{
    fl_statedir *d;
    fl_windows *w = open_windows(&d);
    fl_seat seat;
    int64_t cursor = 0;
    CHECK_OK(mark(w, first, 0, 1));
    CHECK_OK(mark(w, second, 1, 2));
    CHECK(!fl_windows_seen(w, second, 1) && fl_windows_seen(w, second, 2));
    for (uint64_t i = 0; i < 300; i++) /* more than a page of seats */
        CHECK_OK(mark(w, (uint64_t[]){9, i}, 2, 1));
    fl_windows_forget(w, first);
    CHECK(!fl_windows_seen(w, first, 1));
    CHECK(fl_windows_next(w, &cursor, &seat));
    CHECK_INT(seat.rank, 1);
    CHECK_INT(seat.base, 0);
    CHECK_INT((int64_t)seat.ahead, 2);
    CHECK_OK(mark(w, first, 0, 1)); /* in a free seat, as new */
    cursor = 0;
    CHECK(fl_windows_next(w, &cursor, &seat));
    CHECK_INT(seat.base, 1);
    close_windows(d, w, true);
}

static void a_session_has_its_newest_step(void)
{
    fl_statedir *d;
    fl_windows *w = open_windows(&d);
    fl_seat seat = {.session = {1, 2}, .step = 7, .first = 1};
    int64_t cursor = 0;
    CHECK_OK(fl_windows_mark(w, &seat, 1));
    seat.step = 8;
    seat.first = 3;
    CHECK_OK(fl_windows_mark(w, &seat, 4));
    seat.step = 7; /* a late one */
    seat.first = 1;
    CHECK_OK(fl_windows_mark(w, &seat, 2));
    CHECK(fl_windows_next(w, &cursor, &seat));
    CHECK_INT(seat.step, 8);
    CHECK_INT(seat.first, 3);
    close_windows(d, w, true);
}

const fl_test fl_tests[] = {
    {"a session has the newest step of its pushes",
     a_session_has_its_newest_step},
    {"a push is marked wholly or not at all", a_push_is_marked_or_not},
    {"sessions come and go, and their seats are used again",
     sessions_come_and_go},
    {0},
};
