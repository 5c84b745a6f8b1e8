/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/launch.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>

static const char *expand(const char *list, char out[256])
{
    fl_str s = {0};
    snprintf(out, 256, "%s", fl_slurm_expand(list, &s) ? fl_errmsg() : s.at);
    fl_str_fini(&s);
    return out;
}

static void expands_short_names(void)
{
    char out[256];
    CHECK_STR(expand("n1", out), "n1");
    CHECK_STR(expand("n[1-3,7]", out), "n1,n2,n3,n7");
    CHECK_STR(expand("a,gpu[08-11],b", out), "a,gpu08,gpu09,gpu10,gpu11,b");
    CHECK_STR(expand("r[1-2]-n[0,2].x", out),
              "r1-n0.x,r1-n2.x,r2-n0.x,r2-n2.x");
    CHECK_STR(expand("n[9-10]", out), "n9,n10");
}

static void refuses_other_lists(void)
{
    static const char *const bad[] = {"",       "n[1-",      "n[3-1]",   "n]1[",
                                      "n[1-x]", "n[0-5000]", "n[1,2],,a"};
    char out[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(strstr(expand(bad[i], out), "is not a list of hosts") != NULL);
}

static void names_are_counted(void)
{
    char out[256];
    CHECK(strstr(expand("n[1-999],m[1-2]", out), "at most 1000 hosts") != NULL);
}

const fl_test fl_tests[] = {
    {"slurm: short names of hosts are expanded", expands_short_names},
    {"slurm: other lists are refused", refuses_other_lists},
    {"slurm: a list of too many hosts is refused", names_are_counted},
    {0},
};
