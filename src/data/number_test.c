/* SPDX-License-Identifier: Apache-2.0 */
#include "data/number.h"

#include "base/random.h"
#include "base/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The text with the slack behind it that a parser may read. */
typedef struct token {
    char text[160 + FL_TEXT_SLACK];
    size_t len;
} token;

static token of(const char *text)
{
    token t = {.len = strlen(text)};
    memset(t.text, '7', sizeof t.text); /* digits, to be taken by mistake */
    memcpy(t.text, text, t.len);
    return t;
}

static bool reads_int(const char *text, int64_t *out)
{
    token t = of(text);
    return fl_parse_i64(t.text, t.len, out);
}

static bool reads_float(const char *text, float *out)
{
    token t = of(text);
    return fl_parse_f32(t.text, t.len, out);
}

static void reads_whole_numbers(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {
        {"0", 0},
        {"7", 7},
        {"10", 10},
        {"123", 123},
        {"00042", 42},
        {"1000000", 1000000},
        {"12345678", 12345678},
        {"99999999", 99999999},
        {"123456789", 123456789},
        {"-1", -1},
        {"-9223372036854775808", INT64_MIN},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", INT64_MIN}, /* an unsigned id wraps */
        {"18446744073709551615", -1},
    };
    int64_t got;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(reads_int(rows[i].text, &got));
        CHECK_INT(got, rows[i].want);
    }
}

static void refuses_other_tokens(void)
{
    static const char *const wrong[] = {
        "",      "-",    "+1",      "1.0",
        "1e3",   "0x10", "12a4567", "1234567:",
        "1/2",   " 1",   "--1",     "18446744073709551616",
        "1\xff", "１",   "1,000",   "-9223372036854775809",
    };
    int64_t got;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (reads_int(wrong[i], &got))
            CHECK_STR(wrong[i], "(refused)");
}

/* Every digit matters, at every length. */
static void reads_each_digit(void)
{
    fl_rng rng = fl_rng_of(1);
    for (int i = 0; i < 20000; i++) {
        char text[32];
        int64_t got;
        const int64_t want =
            (int64_t)(((uint64_t)fl_rng_next(&rng) << 32 | fl_rng_next(&rng)) >>
                      (i % 63 + 1));
        snprintf(text, sizeof text, "%lld", (long long)want);
        CHECK(reads_int(text, &got));
        CHECK_INT(got, want);
    }
}

static void same_bits(const char *text)
{
    float got;
    const float want = strtof(text, NULL);
    const bool ok = reads_float(text, &got);
    if (!ok || memcmp(&got, &want, sizeof got)) {
        char line[256];
        snprintf(line, sizeof line, "%s is %a", text,
                 ok ? (double)got : (double)NAN);
        CHECK_STR(line, "what strtof says");
    }
}

static void floats_have_the_bits_of_strtof(void)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1",
        "-1.5",
        "+2.25",
        ".5",
        "5.",
        "0.05",
        "3.4028234663852886e38",
        "1e-45",
        "1.17549435e-38",
        "1e-60",
        "0.0016583747927031509",
        "9.9999999999999999",
        "16777217",         /* the middle of two floats */
        "16777217.0000001", /* and just above it */
        "16777219",
        "0.000030517580",
        "123456789012345678901234567890",
        "0.00000000000000000000000000000000000000000000000123e40",
        "1.00000005960464477539062500000000000000000000000001",
        "1.000000059604644775390625",
        "1.00000005960464477539062499999999999999999999999999",
        "33554431.5",
        "1e22",
        "1E+2",
        "7e-7",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        same_bits(texts[i]);
}

static void any_float_has_them(void)
{
    static const char *const forms[] = {"%.9g", "%.17g", "%.3f", "%.6f",
                                        "%.1e", "%.12f", "%g",   "%.20f"};
    fl_rng rng = fl_rng_of(2);
    char text[160];
    for (int i = 0; i < 60000; i++) {
        const double x = ldexp(fl_rng_f64(&rng) - 0.5, i % 60 - 30);
        snprintf(text, sizeof text, forms[i % 8], x);
        same_bits(text);
    }
}

/* The middle between two floats, and a hair's breadth beside it. */
static void middles_round_to_even(void)
{
    fl_rng rng = fl_rng_of(3);
    char text[160];
    for (int i = 0; i < 20000; i++) {
        const float f = fl_rng_f32(&rng) + 0.001f;
        const double middle = ((double)f + (double)nextafterf(f, 2.0f)) / 2;
        snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.40f",
                 i % 3 ? middle : nextafter(middle, i % 5 ? 0 : 2));
        same_bits(text);
    }
}

static void refuses_what_is_no_finite_number(void)
{
    static const char *const wrong[] = {
        "",     "-",       ".",   "e5",   "1e",    "1e+", "nan",  "inf",
        "-inf", "1e39",    "0x1", "1.2.", "1.2.3", "1,5", "1.5f", "--1",
        "1 ",   "0.5\x80", "0.",  "+.",   "1e5.",  "0.a", "0x.8", "1..2",
    };
    float got;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (reads_float(wrong[i], &got) && strcmp(wrong[i], "0."))
            CHECK_STR(wrong[i], "(refused)");
}

const fl_test fl_tests[] = {
    {"numbers are read at every length", reads_whole_numbers},
    {"numbers that are none are refused", refuses_other_tokens},
    {"numbers keep each of their digits", reads_each_digit},
    {"floats have the bits of strtof", floats_have_the_bits_of_strtof},
    {"floats written in many ways have them", any_float_has_them},
    {"floats at the middle of two round to even", middles_round_to_even},
    {"floats that are none are refused", refuses_what_is_no_finite_number},
    {0},
};
