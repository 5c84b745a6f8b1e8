/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - which sequence numbers of pushes have been seen.
 *
 *     1 .. base      all seen
 *     base + 1 + i   seen if bit i of `ahead` is set, i < 64
 *
 * A sender has at most FL_WINDOW numbers in flight, so none is
 * beyond base + 64. */
#ifndef FL_PROTOCOL_WINDOW_H
#define FL_PROTOCOL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FL_WINDOW = 64
};

/* A window of zeros has seen no number. */
typedef struct fl_window {
    int64_t base;
    uint64_t ahead;
} fl_window;

/* Whether seq is a number that the window can record. */
static inline bool fl_window_fits(const fl_window *w, int64_t seq)
{
    return seq >= 1 && seq - FL_WINDOW <= w->base;
}

/* Requires fl_window_fits(w, seq). */
static inline bool fl_window_seen(const fl_window *w, int64_t seq)
{
    return seq <= w->base || (w->ahead >> (seq - w->base - 1) & 1);
}

/* Requires that seq fits and was not seen. */
static inline void fl_window_mark(fl_window *w, int64_t seq)
{
    w->ahead |= UINT64_C(1) << (seq - w->base - 1);
    while (w->ahead & 1) {
        w->ahead >>= 1;
        w->base++;
    }
}

#endif
