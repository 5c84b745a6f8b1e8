#include "base/wire.h"

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

const fl_test fl_tests[] = {
    {"utf-8 is told from other bytes", utf8_is_told_from_other_bytes},
    {0},
};
