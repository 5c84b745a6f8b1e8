/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - threads that wait for work, asleep. */
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

/* n threads called NAME-0, NAME-1, ... They take no signals: those are for the
 * threads of the user. Own: *out. Err: EINVAL, EIO. */
fl_err fl_pool_new(const char *name, int n, fl_pool **out) FL_MUST_CHECK;

/* Do what was submitted, then end the threads. NULL is fine. A process that
 * was forked has none of the threads: there it does nothing. */
void fl_pool_free(fl_pool *p);

int fl_cores(void); /* that this process may use */

int fl_pool_size(const fl_pool *p); /* threads; 0 in a forked process */

/* run(arg) on one of the threads, in order of submission. A task may submit
 * more. Allocates only when more tasks wait than ever before. */
void fl_pool_submit(fl_pool *p, fl_group *g, void (*run)(void *arg), void *arg);

/* Until every task of the group is done; not from inside a task. ETIMEOUT
 * after `timeout` nanoseconds (-1: never): the group goes on, wait again. */
fl_err fl_pool_wait(fl_pool *p, fl_group *g, int64_t timeout) FL_MUST_CHECK;

#endif
