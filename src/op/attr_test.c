/* SPDX-License-Identifier: Apache-2.0 */
#include "op/attr.h"

#include "base/test.h"

#include <math.h>

static fl_arena *arena;

static void begin(void)
{
    arena = fl_arena_new();
}

static void end(void)
{
    fl_arena_free(arena);
}

static void copies_own_all_they_hold(void)
{
    begin();
    char text[] = "abc", name[] = "n";
    const char *list[] = {text, "d"};
    int64_t longs[] = {1, 2};
    fl_attr s = {name, FL_ATTR_STRING, .s = text};
    fl_attr l = {name, FL_ATTR_STRINGS, .n = 2, .strings = list};
    fl_attr i = {name, FL_ATTR_INTS, .n = 2, .longs = longs};
    fl_attr empty = {name, FL_ATTR_STRING};
    s = fl_attr_dup(arena, &s);
    l = fl_attr_dup(arena, &l);
    i = fl_attr_dup(arena, &i);
    empty = fl_attr_dup(arena, &empty);
    text[0] = name[0] = '?';
    longs[0] = 9;
    CHECK_STR(s.name, "n");
    CHECK_STR(s.s, "abc");
    CHECK_STR(l.strings[0], "abc");
    CHECK_INT(i.longs[0], 1);
    CHECK_STR(empty.s, "");
    end();
}

static void equal_means_name_type_and_value(void)
{
    const char *a[] = {"x", "y"}, *b[] = {"x", "z"};
    float f[] = {1, 2};
    const fl_attr all[] = {
        {"n", FL_ATTR_INT, .i = 1},
        {"n", FL_ATTR_INT, .i = 2},
        {"n", FL_ATTR_LONG, .i = 1},
        {"m", FL_ATTR_INT, .i = 1},
        {"n", FL_ATTR_FLOAT, .f = 1},
        {"n", FL_ATTR_FLOAT, .f = NAN},
        {"n", FL_ATTR_BOOL, .b = true},
        {"n", FL_ATTR_STRING, .s = "x"},
        {"n", FL_ATTR_STRING},
        {"n", FL_ATTR_STRINGS, .n = 2, .strings = a},
        {"n", FL_ATTR_STRINGS, .n = 2, .strings = b},
        {"n", FL_ATTR_STRINGS, .n = 1, .strings = a},
        {"n", FL_ATTR_FLOATS, .n = 2, .floats = f},
        {"n", FL_ATTR_FLOATS},
    };
    int n = sizeof all / sizeof *all;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            CHECK(fl_attr_equal(&all[i], &all[j]) == (i == j));
    fl_attr empty = {"n", FL_ATTR_STRING, .s = ""};
    CHECK(fl_attr_equal(&empty, &all[8]));
}

static fl_attr converted(fl_attr_type to, fl_attr value)
{
    fl_attr spec = {"n", to}, out = {0};
    CHECK_OK(fl_attr_convert(arena, "op", &spec, &value, &out));
    CHECK_INT(out.type, to);
    CHECK_STR(out.name, "n");
    return out;
}

static void whole_numbers_widen_and_narrow(void)
{
    begin();
    int64_t two[] = {3, 4};
    fl_attr i = {"v", FL_ATTR_INT, .i = 7}, l = {"v", FL_ATTR_LONG, .i = 7};
    fl_attr list = {"v", FL_ATTR_LONGS, .n = 2, .longs = two};
    fl_attr yes = {"v", FL_ATTR_BOOL, .b = true};
    fl_attr one = {"v", FL_ATTR_INT, .i = 1};
    CHECK_INT(converted(FL_ATTR_LONG, i).i, 7);
    CHECK_INT(converted(FL_ATTR_INT, l).i, 7);
    CHECK(converted(FL_ATTR_FLOAT, i).f == 7.0f);
    CHECK_INT(converted(FL_ATTR_INTS, list).longs[1], 4);
    CHECK(converted(FL_ATTR_FLOATS, list).floats[1] == 4.0f);
    CHECK_INT(converted(FL_ATTR_INT, yes).i, 1);
    CHECK(converted(FL_ATTR_BOOL, one).b);
    end();
}

static void an_empty_list_is_any_list(void)
{
    begin();
    fl_attr none = {"v", FL_ATTR_INTS};
    CHECK_INT(converted(FL_ATTR_STRINGS, none).n, 0);
    CHECK_INT(converted(FL_ATTR_FLOATS, none).n, 0);
    end();
}

static fl_err convert(fl_attr_type to, fl_attr value)
{
    fl_attr spec = {"n", to}, out;
    return fl_attr_convert(arena, "op", &spec, &value, &out);
}

static void what_does_not_fit_is_refused(void)
{
    begin();
    int64_t big[] = {1, INT64_C(1) << 40};
    fl_attr f = {"v", FL_ATTR_FLOAT, .f = 1.5f};
    fl_attr s = {"v", FL_ATTR_STRING, .s = "x"};
    fl_attr l = {"v", FL_ATTR_LONG, .i = INT64_C(1) << 40};
    fl_attr list = {"v", FL_ATTR_LONGS, .n = 2, .longs = big};
    fl_attr two = {"v", FL_ATTR_INT, .i = 2};
    CHECK_ERR(convert(FL_ATTR_INT, f), FL_EINVAL,
              "op: attribute n is float, expected int");
    CHECK_ERR(convert(FL_ATTR_FLOAT, s), FL_EINVAL,
              "op: attribute n is string, expected float");
    CHECK_ERR(convert(FL_ATTR_INT, l), FL_EINVAL,
              "op: attribute n is 1099511627776, expected 32 bits");
    CHECK_ERR(convert(FL_ATTR_INTS, list), FL_EINVAL, "expected 32 bits");
    CHECK_ERR(convert(FL_ATTR_STRINGS, list), FL_EINVAL,
              "op: attribute n is longs, expected strings");
    CHECK_ERR(convert(FL_ATTR_BOOL, two), FL_EINVAL,
              "op: attribute n is int, expected bool");
    end();
}

static void types_have_names(void)
{
    CHECK_STR(fl_attr_type_name(FL_ATTR_INT), "int");
    CHECK_STR(fl_attr_type_name(FL_ATTR_LONGS), "longs");
    CHECK_STR(fl_attr_type_name((fl_attr_type)99), "?");
}

const fl_test fl_tests[] = {
    {"copies own all that they hold", copies_own_all_they_hold},
    {"equal means name, type and value", equal_means_name_type_and_value},
    {"whole numbers widen and narrow", whole_numbers_widen_and_narrow},
    {"an empty list is any list", an_empty_list_is_any_list},
    {"what does not fit is refused", what_does_not_fit_is_refused},
    {"types have names", types_have_names},
    {0},
};
