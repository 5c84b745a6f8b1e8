/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - a reference-counted object of a type that its holders do not know.
 * The real struct begins with an fl_handle, which says how to free it. */
#ifndef FL_BASE_HANDLE_H
#define FL_BASE_HANDLE_H

#include "base/atomic.h"

#include <stddef.h>

/* Thread: any, as far as the counting goes. */
typedef struct fl_handle {
    fl_count refs;
    void (*free)(struct fl_handle *h);
} fl_handle;

static inline fl_handle *fl_handle_ref(fl_handle *h) /* NULL is fine */
{
    if (h)
        fl_count_up(&h->refs);
    return h;
}

static inline void fl_handle_unref(fl_handle *h) /* NULL is fine */
{
    if (h && !fl_count_down(&h->refs))
        h->free(h);
}

#endif
