/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flag.h"

#include "base/test.h"

#include <stdlib.h>
#include <string.h>

#define NAME "FLUID_TEST_FLAG"

static void a_number_is_read(void)
{
    double x = 7;
    unsetenv(NAME);
    CHECK_OK(fl_flag_number(NAME, &x));
    CHECK_NEAR(x, 7, 0);
    setenv(NAME, "", 1);
    CHECK_OK(fl_flag_number(NAME, &x));
    CHECK_NEAR(x, 7, 0);
    setenv(NAME, "0.25", 1);
    CHECK_OK(fl_flag_number(NAME, &x));
    CHECK_NEAR(x, 0.25, 0);
}

static void what_is_no_number_is_refused(void)
{
    static const char *const bad[] = {"ten", "10s", "-1", "nan", "inf"};
    double x = 7;
    for (int i = 0; i < 5; i++) {
        setenv(NAME, bad[i], 1);
        CHECK_ERR(fl_flag_number(NAME, &x), FL_EINVAL, "FLUID_TEST_FLAG is \"");
        CHECK_NEAR(x, 7, 0);
    }
}

static void a_switch_has_many_words(void)
{
    bool on = false;
    setenv(NAME, "True", 1);
    CHECK_OK(fl_flag_bool(NAME, &on));
    CHECK(on);
    setenv(NAME, "0", 1);
    CHECK_OK(fl_flag_bool(NAME, &on));
    CHECK(!on);
    setenv(NAME, "maybe", 1);
    CHECK_ERR(fl_flag_bool(NAME, &on), FL_EINVAL,
              "FLUID_TEST_FLAG is \"maybe\", expected 0 or 1");
}

static void a_text_is_what_it_says_or_nothing(void)
{
    setenv(NAME, "json", 1);
    CHECK_STR(fl_flag_text(NAME), "json");
    setenv(NAME, "", 1);
    CHECK(!fl_flag_text(NAME));
    unsetenv(NAME);
    CHECK(!fl_flag_text(NAME));
}

static void each_setting_is_checked_by_its_kind(void)
{
    static const struct {
        const char *name, *good, *wrong;
    } all[] = {
        {"FLUID_ALLOW_NAN", "on", "2"},  {"FLUID_DURABILITY", "host", "disk"},
        {"FLUID_LEASE", "0.5", "0"},     {"FLUID_REJOIN", "0", "-1"},
        {"FLUID_STATUS", "bar", "lots"}, {"FLUID_SNAPSHOT_EVERY", "0.1", "0"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const fl_flag *f = fl_flags;
        while (strcmp(f->name, all[i].name))
            f++;
        CHECK_OK(fl_flag_check(f, all[i].good));
        CHECK_ERR(fl_flag_check(f, all[i].wrong), FL_EINVAL, all[i].name);
    }
}

const fl_test fl_tests[] = {
    {"a number is read from the environment", a_number_is_read},
    {"what is no number is refused", what_is_no_number_is_refused},
    {"a switch has many words", a_switch_has_many_words},
    {"a text is what it says or nothing", a_text_is_what_it_says_or_nothing},
    {"each setting is checked by its kind",
     each_setting_is_checked_by_its_kind},
    {0},
};
