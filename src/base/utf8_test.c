/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include "base/test.h"

static void utf8_is_told_from_other_bytes(void)
{
    static const char *const good[] = {"", "fc_0.w_0", "\xc3\xa4",
                                       "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static const char *const bad[] = {
        "\x80",         /* goes on, but nothing began */
        "a\xc3",        /* cut off */
        "\xc0\xaf",     /* longer than need be */
        "\xed\xa0\x80", /* half a pair */
        "\xf4\x90\x80\x80" /* beyond the last */,
        "\xff",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(fl_utf8_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!fl_utf8_valid(bad[i]));
}

static void text_that_can_be_shown_stays(void)
{
    fl_str s = {0};
    const char *text = "vm:4711 C:\\new \xe6\xa8\xa1 \xf0\x9f\x98\x80";
    CHECK(fl_utf8_plain(text));
    fl_utf8_escape(&s, text);
    CHECK_STR(s.at, text);
    fl_utf8_escape(&s, "");
    CHECK_STR(s.at, text);
    fl_str_fini(&s);
}

static void other_signs_are_escaped(void)
{
    static const char *const bad[][2] = {
        {"a\nE1116 fire\r\n", "a\\nE1116 fire\\r\\n"},
        {"\x1b[31m\x7f\t", "\\x1b[31m\\x7f\\t"},
        {"\xc2\x85\xc2\x9b", "\\x85\\x9b"}, /* next line, CSI */
        {"\xe2\x80\xa8\xe2\x80\xae", "\\u2028\\u202e"},
        {"cut \xe6\xa8", "cut \\xe6\\xa8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fl_str s = {0};
        CHECK(!fl_utf8_plain(bad[i][0]));
        fl_utf8_escape(&s, bad[i][0]);
        CHECK_STR(s.at, bad[i][1]);
        CHECK(fl_utf8_plain(s.at));
        fl_str_fini(&s);
    }
}

static void lines_may_stay(void)
{
    fl_str s = {0};
    fl_utf8_escape_lines(&s, "a\n\rb\n");
    CHECK_STR(s.at, "a\n\\rb\n");
    fl_str_fini(&s);
}

const fl_test fl_tests[] = {
    {"utf-8 is told from other bytes", utf8_is_told_from_other_bytes},
    {"text that can be shown stays as it is", text_that_can_be_shown_stays},
    {"signs that cannot be shown are escaped", other_signs_are_escaped},
    {"text of several lines keeps its line feeds", lines_may_stay},
    {0},
};
