/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - a monotonic clock, which a test can replace by its own. */
#ifndef FL_BASE_CLOCK_H
#define FL_BASE_CLOCK_H

#include <stdint.h>

#define FL_MS  INT64_C(1000000) /* in nanoseconds */
#define FL_SEC (1000 * FL_MS)

typedef struct fl_clock fl_clock;

struct fl_clock {
    int64_t (*now)(const fl_clock *c); /* nanoseconds since some start */
};

const fl_clock *fl_clock_real(void); /* Thread: any */

static inline int64_t fl_clock_now(const fl_clock *c)
{
    return c->now(c);
}

/* A clock for tests that moves only when told to. Thread: one at a time. */
typedef struct fl_fake_clock {
    fl_clock clock; /* first: a pointer to it is a pointer to this */
    int64_t ns;
} fl_fake_clock;

void fl_fake_clock_init(fl_fake_clock *c, int64_t ns);
void fl_fake_clock_move(fl_fake_clock *c, int64_t ns); /* forward */

#endif
