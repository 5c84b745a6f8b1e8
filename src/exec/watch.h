/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - who looks at a run: somebody who may end it, somebody with a
 * stopwatch, somebody who wants to know how long it stood still.
 *
 * One for an executor, shared by its plans. A plan that nobody watches pays
 * one branch an op. */
#ifndef FL_EXEC_WATCH_H
#define FL_EXEC_WATCH_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

typedef struct fl_event {
    const char *type; /* of the op; borrowed from its row */
    int64_t start, ns;
    int thread; /* 0: the caller's; else that of a place, from 1 on */
} fl_event;

/* Thread: as its executor. */
typedef struct fl_watch {
    const fl_clock *clock;
    int (*poll)(void *user); /* other than 0: end the run; NULL: never */
    void *user;
    int64_t *waited; /* the thread that runs adds the ns for which an op
                        waited for other processes; NULL: not counted */
    unsigned ops;    /* number of ops since the clock was last read */
    int64_t asked;   /* when `poll` was last called, ns */
    bool profiling;
    fl_arena *arena; /* the rows; NULL before the first profile */
    fl_map rows;     /* op type -> fl_profile_row */
    FL_VEC(fl_event) events;
} fl_watch;

void fl_watch_fini(fl_watch *w);

static inline void fl_watch_waited(const fl_watch *w, int64_t ns)
{
    if (w && w->waited)
        *w->waited += ns;
}

/* Before an op: FL_EINTR if the run shall end. */
fl_err fl_watch_ask(fl_watch *w) FL_MUST_CHECK;

/* After an op, when profiling: add its time. */
void fl_watch_count(fl_watch *w, const char *type, int64_t start);

void fl_watch_profile(fl_watch *w, bool on);
/* The watch of a place profiles if `by`, the watch of the caller, does (NULL:
 * it does not); after the run the caller takes the events of the place. */
void fl_watch_follow(fl_watch *w, const fl_watch *by);
void fl_watch_take(fl_watch *w, fl_watch *from, int thread);

int fl_watch_rows(const fl_watch *w, int max, fl_profile_row *out);
char *fl_watch_trace(const fl_watch *w); /* fl_mem_free */

#endif
