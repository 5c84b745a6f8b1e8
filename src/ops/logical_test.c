/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <string.h>

static void follow_the_truth_table(void)
{
    static const struct {
        const char *type;
        double out[4];
    } rows[] = {
        {"logical_and", {0, 0, 0, 1}},
        {"logical_or", {0, 1, 1, 1}},
        {"logical_xor", {0, 1, 1, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_op_case c = {
            .type = rows[i].type,
            .in = {{"X", {2, 2}, {0, 0, 1, 1}, .dtype = "bool"},
                   {"Y", {2, 2}, {0, 1, 0, 1}, .dtype = "bool"}},
            .out = {{"Out", {2, 2}, .dtype = "bool"}},
        };
        memcpy(c.out[0].value, rows[i].out, sizeof rows[i].out);
        fl_check_op(&c);
    }
}

static void turns_each_around(void)
{
    fl_check_op(&(fl_op_case){
        .type = "logical_not",
        .in = {{"X", {2}, {0, 1}, .dtype = "bool"}},
        .out = {{"Out", {2}, {1, 0}, .dtype = "bool", .same = "X"}},
    });
}

static void refuse_what_is_no_bool(void)
{
    CHECK_STR(fl_infer_text("logical_not X=bool[-1]"), "Out=bool[-1]");
    CHECK_ERR(fl_infer_try("logical_not X=f32[2]"), FL_ESHAPE,
              "logical_not: X is f32, expected bool");
    CHECK_ERR(fl_infer_try("logical_and X=bool[2] Y=f32[2]"), FL_ESHAPE,
              "logical_and: X is bool[2], Y is f32[2]");
    CHECK_ERR(fl_infer_try("logical_or X=bool[2] Y=bool[3]"), FL_ESHAPE,
              "logical_or: X is bool[2], Y is bool[3]");
}

const fl_test fl_tests[] = {
    {"logical ops follow the truth table", follow_the_truth_table},
    {"logical_not turns each around, in place too", turns_each_around},
    {"logical ops refuse what is no bool", refuse_what_is_no_bool},
    {0},
};
