/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the monotonic clock, and one for tests. */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

static int64_t real_now(const fl_clock *c)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const fl_clock *fl_clock_real(void)
{
    static const fl_clock real = {real_now};
    return &real;
}

static int64_t fake_now(const fl_clock *c)
{
    return ((const fl_fake_clock *)c)->ns;
}

void fl_fake_clock_init(fl_fake_clock *c, int64_t ns)
{
    *c = (fl_fake_clock){{fake_now}, ns};
}

void fl_fake_clock_move(fl_fake_clock *c, int64_t ns)
{
    assert(ns >= 0);
    c->ns += ns;
}
