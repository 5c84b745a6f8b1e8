/* SPDX-License-Identifier: Apache-2.0 */
#include "data/position.h"

#include "base/test.h"

static void check_text(const fl_position *p, const char *want)
{
    fl_str text = {0};
    fl_position again;
    fl_position_text(p, &text);
    CHECK_STR(text.at, want);
    CHECK_OK(fl_position_read(&again, text.at));
    fl_str_fini(&text);
    fl_position_text(&again, &text);
    CHECK_STR(text.at, want);
    fl_str_fini(&text);
    fl_position_fini(&again);
}

static void parts_are_used_in_any_order(void)
{
    fl_position p = {0};
    check_text(&p, "0");
    fl_position_add(&p, (fl_used){2, 100, 9});
    fl_position_add(&p, (fl_used){0, 50, 4});
    check_text(&p, "0 0:50:4 2:100:9");
    fl_position_add(&p, (fl_used){1, FL_USED_ALL, 0});
    fl_position_add(&p, (fl_used){2, 90, 8}); /* less than before */
    check_text(&p, "0 0:50:4 1:all 2:100:9");
    CHECK_INT(fl_position_find(&p, 2).bytes, 100);
    CHECK_INT(fl_position_find(&p, 3).bytes, 0);
    fl_position_add(&p, (fl_used){0, FL_USED_ALL, 0});
    check_text(&p, "2 2:100:9");
    CHECK_INT(fl_position_find(&p, 1).bytes, FL_USED_ALL);
    fl_position_fini(&p);
}

static void says_what_is_no_position(void)
{
    static const char *const bad[] = {
        "", "x", "-1", "1 2", "1 2:", "1 2:3", "1 2:3:x", "1 2:alls", "1 :all"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fl_position p;
        CHECK(fl_position_read(&p, bad[i]) == FL_EPROTO);
    }
}

const fl_test fl_tests[] = {
    {"parts are used in any order", parts_are_used_in_any_order},
    {"a text that is no position is refused", says_what_is_no_position},
    {0},
};
