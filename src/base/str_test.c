/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/mem.h"
#include "base/test.h"

#include <string.h>

static void text_grows(void)
{
    fl_str s = {0};
    for (int i = 0; i < 100; i++) {
        fl_str_add(&s, "ab");
        fl_str_printf(&s, "%03d", i);
        fl_str_bytes(&s, "\0x", 2);
    }
    CHECK_INT((int64_t)s.n, 700);
    CHECK(!memcmp(s.at + 693, "ab099\0x", 8)); /* and a NUL behind */
    fl_str_fini(&s);
    CHECK(!s.at && !s.n && !s.cap);
}

static void nothing_added_is_an_empty_text(void)
{
    fl_str s = {0};
    fl_str_bytes(&s, NULL, 0);
    CHECK_STR(s.at, "");
    fl_str_fini(&s);
}

static void taken_text_is_the_callers(void)
{
    fl_str s = {0};
    fl_str_add(&s, "mine");
    char *text = fl_str_take(&s), *empty = fl_str_take(&s);
    CHECK_STR(text, "mine");
    CHECK_STR(empty, "");
    CHECK(!s.at);
    fl_mem_free(text);
    fl_mem_free(empty);
}

static void starts_and_ends_are_seen(void)
{
    CHECK(fl_starts_with("fc_0.w_0", "fc_") && !fl_starts_with("f", "fc_"));
    CHECK(fl_ends_with("w@GRAD", "@GRAD") && !fl_ends_with("GRAD", "@GRAD"));
    CHECK(fl_starts_with("x", "") && fl_ends_with("", ""));
}

static void distance_counts_edits(void)
{
    CHECK_INT(fl_str_distance("relu", "relu"), 0);
    CHECK_INT(fl_str_distance("reluu", "relu"), 1);
    CHECK_INT(fl_str_distance("wyh", "why"), 1);
    CHECK_INT(fl_str_distance("", "abc"), 3);
    CHECK_INT(fl_str_distance("kitten", "sitting"), 3);
    char a[200], b[200];
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    a[199] = b[199] = 0;
    CHECK_INT(fl_str_distance(a, b), 63); /* only the start is compared */
}

static const char *nearest(const char *name)
{
    fl_near near = {.name = name};
    fl_near_offer(&near, "launch");
    fl_near_offer(&near, "env");
    fl_near_offer(&near, "version");
    return near.best ? near.best : "none";
}

static void a_near_name_is_found(void)
{
    CHECK_STR(nearest("lanch"), "launch");
    CHECK_STR(nearest("enf"), "env");
    CHECK_STR(nearest("versoin"), "version");
    CHECK_STR(nearest("foo"), "none"); /* three edits from env */
    CHECK_STR(nearest("pserver"), "none");
}

static void two_hexadecimal_digits_are_a_byte(void)
{
    unsigned char byte = 1;
    CHECK(fl_str_hex("00", &byte) && byte == 0);
    CHECK(fl_str_hex("fFx", &byte) && byte == 255);
    CHECK(fl_str_hex("3a", &byte) && byte == 0x3a);
    static const char *const bad[] = {"", "1", "g0", "0g", " 1", "-1", "0x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!fl_str_hex(bad[i], &byte));
    CHECK_INT(byte, 0x3a);
}

const fl_test fl_tests[] = {
    {"text grows", text_grows},
    {"nothing added is an empty text", nothing_added_is_an_empty_text},
    {"taken text is the caller's", taken_text_is_the_callers},
    {"starts and ends are seen", starts_and_ends_are_seen},
    {"two hexadecimal digits are a byte", two_hexadecimal_digits_are_a_byte},
    {"distance counts edits", distance_counts_edits},
    {"a near name is found, a far one is not", a_near_name_is_found},
    {0},
};
