/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - threads that sleep until there are tasks. */
#ifndef FL_BASE_POOL_H
#define FL_BASE_POOL_H

#include "base/err.h"

/* Thread: any. */
typedef struct fl_pool fl_pool;

/* Work that is waited for together. Zero is an empty group; it must stay where
 * it is until fl_pool_wait has returned. Thread: the pool's lock. */
typedef struct fl_group {
    int64_t left; /* tasks not yet done */
} fl_group;

/* Start n threads with the names NAME-0, NAME-1 and so on. They block all
 * signals, so that threads of the user get them. Own: *out. Err: EINVAL, EIO.
 */
fl_err fl_pool_new(const char *name, int n, fl_pool **out) FL_MUST_CHECK;

/* Run all submitted tasks, then end the threads. NULL is fine. A forked process
 * has none of the threads; in it this does nothing. */
void fl_pool_free(fl_pool *p);

int fl_cores(void); /* number of processors that this process may use */

int fl_pool_size(const fl_pool *p); /* threads; 0 in a forked process */

/* Run run(arg) on one of the threads. Tasks start in the order of submission. A
 * task may submit more. Memory is allocated only if more tasks wait than ever
 * before. */
void fl_pool_submit(fl_pool *p, fl_group *g, void (*run)(void *arg), void *arg);

/* Wait until every task of the group is done. Not allowed inside a task. Err:
 * ETIMEOUT after `timeout` nanoseconds (-1: no limit); the tasks go on, and the
 * caller may wait again. */
fl_err fl_pool_wait(fl_pool *p, fl_group *g, int64_t timeout) FL_MUST_CHECK;

#endif
