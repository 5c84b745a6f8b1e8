/* SPDX-License-Identifier: Apache-2.0 */
/* cancel.h - one thread tells others to stop, even if they wait for bytes. */
#ifndef FL_DATA_CANCEL_H
#define FL_DATA_CANCEL_H

#include "base/atomic.h"
#include "base/err.h"

/* Thread: any, once made. */
typedef struct fl_cancel {
    fl_count on;
    int fd; /* becomes readable; for poll */
} fl_cancel;

fl_err fl_cancel_init(fl_cancel *c) FL_MUST_CHECK;
void fl_cancel_fini(fl_cancel *c);
void fl_cancel_now(fl_cancel *c);

static inline bool fl_cancelled(const fl_cancel *c)
{
    return fl_count_get(&c->on);
}

#endif
