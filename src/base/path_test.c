/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include "base/mem.h"
#include "base/test.h"

static void names_that_stay_in_the_folder_pass(void)
{
    const char *const good[] = {"w",     "fc_0.w_0", "block/w", "..w",
                                "w..",   "a b",      ".hidden", "...",
                                "a/..b", "w@GRAD",   "модель"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_OK(fl_path_check(good[i]));
}

static void names_that_leave_it_are_refused(void)
{
    const char *const bad[] = {"",       "/",     "/w",         "..", "../w",
                               "a/../w", "a/..",  "a//w",       "a/", ".",
                               "./w",    "a/./w", "/etc/passwd"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_ERR(fl_path_check(bad[i]), FL_EINVAL, bad[i]);
}

static void names_of_saving_itself_are_refused(void)
{
    CHECK_ERR(fl_path_check("__manifest__"), FL_EINVAL, "__manifest__");
    CHECK_ERR(fl_path_check(".save-1/w"), FL_EINVAL, ".save-1/w");
    CHECK_OK(fl_path_check("sub/__manifest__"));
}

static void check_text(char *got, const char *want)
{
    CHECK_STR(got, want);
    fl_mem_free(got);
}

static void paths_are_put_together_and_taken_apart(void)
{
    check_text(fl_path_join("model", "w"), "model/w");
    check_text(fl_path_join("model/", "w"), "model/w");
    check_text(fl_path_join("", "w"), "./w");
    check_text(fl_path_join("/", "w"), "/w");
    check_text(fl_path_parent("model/a/w"), "model/a");
    check_text(fl_path_parent("w"), ".");
    check_text(fl_path_parent("/w"), "/");
    CHECK_STR(fl_path_base("model/w"), "w");
    CHECK_STR(fl_path_base("w"), "w");
}

const fl_test fl_tests[] = {
    {"names that stay in the folder pass", names_that_stay_in_the_folder_pass},
    {"names that leave the folder are refused",
     names_that_leave_it_are_refused},
    {"names of saving itself are refused", names_of_saving_itself_are_refused},
    {"paths are put together and taken apart",
     paths_are_put_together_and_taken_apart},
    {0},
};
