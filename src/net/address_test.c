/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address.h"

#include "base/test.h"

#include <string.h>

static void check_text(const char *endpoint, const char *want)
{
    fl_address at[FL_ADDRESSES];
    char text[FL_ADDRESS_TEXT];
    int n;
    CHECK_OK(fl_address_find(endpoint, at, &n));
    CHECK(n >= 1);
    fl_address_text(&at[0], text);
    CHECK_STR(text, want);
}

static void reads_numbers_and_names(void)
{
    check_text("127.0.0.11:6174", "127.0.0.11:6174");
    check_text("[::1]:80", "[::1]:80");
    check_text("10.1.2.3:0", "10.1.2.3:0");
    check_text("[2001:db8::7]:65535", "[2001:db8::7]:65535");
}

static void refuses_what_is_no_endpoint(void)
{
    static const char *const wrong[] = {
        "",           "ps0",       "ps0:",  "ps0:a",
        "1.2.3.4:7x", "ps0:65536", ":6174", "[]:6174"};
    fl_address at[FL_ADDRESSES];
    int n;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_ERR(fl_address_find(wrong[i], at, &n), FL_EINVAL, "endpoint");
}

/* Names in .invalid never exist (RFC 6761). */
static void says_that_a_name_is_not_known(void)
{
    fl_address at[FL_ADDRESSES];
    int n;
    CHECK_ERR(fl_address_find("ps0.invalid:6174", at, &n), FL_ENOENT,
              "ps0.invalid:6174: the name of the host is not known");
}

const fl_test fl_tests[] = {
    {"an address is read from numbers", reads_numbers_and_names},
    {"an address is refused if it is no endpoint", refuses_what_is_no_endpoint},
    {"an address says that a name is not known", says_that_a_name_is_not_known},
    {0},
};
