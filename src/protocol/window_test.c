/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/window.h"

#include "base/test.h"

static void remembers_out_of_order(void)
{
    fl_window w = {0};
    fl_window_mark(&w, 3);
    CHECK(fl_window_seen(&w, 3));
    CHECK(!fl_window_seen(&w, 1));
    fl_window_mark(&w, 1);
    CHECK_INT(w.base, 1);
    fl_window_mark(&w, 2);
    CHECK_INT(w.base, 3);
    CHECK(fl_window_seen(&w, 1) && fl_window_seen(&w, 2));
    CHECK(!fl_window_seen(&w, 4));
}

static void refuses_what_is_too_far(void)
{
    fl_window w = {0};
    CHECK(fl_window_fits(&w, FL_WINDOW));
    CHECK(!fl_window_fits(&w, FL_WINDOW + 1));
    CHECK(!fl_window_fits(&w, 0));
    CHECK(!fl_window_fits(&w, INT64_MIN));
    CHECK(!fl_window_fits(&w, INT64_MAX));
}

static void moves_by_a_whole_window(void)
{
    fl_window w = {0};
    for (int64_t seq = FL_WINDOW; seq >= 1; seq--)
        fl_window_mark(&w, seq);
    CHECK_INT(w.base, FL_WINDOW);
    CHECK_INT((int64_t)w.ahead, 0);
    CHECK(!fl_window_seen(&w, FL_WINDOW + 1));
}

const fl_test fl_tests[] = {
    {"a window remembers numbers out of order", remembers_out_of_order},
    {"a window refuses what is too far", refuses_what_is_too_far},
    {"a window moves by a whole window", moves_by_a_whole_window},
    {0},
};
