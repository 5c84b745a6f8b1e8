/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - a watch can interrupt a run, measures the time of its ops, and
 * counts how long it waited for other processes.
 *
 * An executor has one watch for all its plans. A plan without a watch pays one
 * branch per op. */
#ifndef FL_EXEC_WATCH_H
#define FL_EXEC_WATCH_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

typedef struct fl_event {
    const char *type; /* type of the op; borrowed from its row */
    int64_t start, ns;
    int thread; /* 0: the caller's; place i has i + 1 */
} fl_event;

/* Thread: as its executor. */
typedef struct fl_watch {
    const fl_clock *clock;
    int (*poll)(void *user); /* returns other than 0 to end the run; or NULL */
    void *user;
    int64_t *waited; /* the thread that runs adds the ns for which an op
                        waited for other processes; NULL: not counted */
    unsigned ops;    /* number of ops since the clock was last read */
    int64_t asked;   /* when `poll` was last called, ns */
    bool profiling;
    fl_arena *arena; /* memory of the rows; NULL before the first profile */
    fl_map rows;     /* op type -> fl_profile_row */
    FL_VEC(fl_event) events;
} fl_watch;

void fl_watch_fini(fl_watch *w);

static inline void fl_watch_waited(const fl_watch *w, int64_t ns)
{
    if (w && w->waited)
        *w->waited += ns;
}

/* To be called before each op. Err: EINTR if `poll` ends the run. */
fl_err fl_watch_ask(fl_watch *w) FL_MUST_CHECK;

/* To be called after each op while profiling: add its time. */
void fl_watch_count(fl_watch *w, const char *type, int64_t start);

void fl_watch_profile(fl_watch *w, bool on);
/* Let the watch of a place profile if `by`, the watch of the caller, does
 * (NULL: it does not). */
void fl_watch_follow(fl_watch *w, const fl_watch *by);
/* After the run: move the events of a place to the watch of the caller. */
void fl_watch_take(fl_watch *w, fl_watch *from, int thread);

int fl_watch_rows(const fl_watch *w, int max, fl_profile_row *out);
char *fl_watch_trace(const fl_watch *w); /* fl_mem_free */

#endif
