/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/test.h"

static void real_clock_never_goes_back(void)
{
    const fl_clock *c = fl_clock_real();
    int64_t last = fl_clock_now(c), start = last;
    for (int i = 0; i < 1000; i++) {
        int64_t now = fl_clock_now(c);
        CHECK(now >= last);
        last = now;
    }
    CHECK(last > start);
}

static void fake_clock_moves_when_told(void)
{
    fl_fake_clock c;
    fl_fake_clock_init(&c, 5);
    CHECK_INT(fl_clock_now(&c.clock), 5);
    fl_fake_clock_move(&c, 1000);
    CHECK_INT(fl_clock_now(&c.clock), 1005);
}

const fl_test fl_tests[] = {
    {"real clock never goes back", real_clock_never_goes_back},
    {"fake clock moves when told", fake_clock_moves_when_told},
    {0},
};
