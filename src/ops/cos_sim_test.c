/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void compares_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cos_sim",
        .in = {{"X", {2, 2}, {3, 4, 5, 12}}, {"Y", {2, 2}, {4, 3, -12, 5}}},
        .out = {{"Out", {2, 1}, {24 / 25., 0}},
                {"XNorm", {2, 1}, {5, 13}},
                {"YNorm", {2, 1}, {5, 13}}},
        .grad = {"X", "Y"},
    });
}

static void compares_with_one_row(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cos_sim",
        .in = {{"X", {2, 2}, {3, 4, 5, 12}, .lod = "0,2"},
               {"Y", {1, 2}, {4, 3}}},
        .out = {{"Out", {2, 1}, {24 / 25., 56 / 65.}, .lod = "0,2"},
                {"YNorm", {1, 1}, {5}}},
        .grad = {"X", "Y"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("cos_sim X=f32[-1,8] Y=f32[1,8]"),
              "Out=f32[-1,1] XNorm=f32[-1,1] YNorm=f32[1,1]");
    CHECK_ERR(fl_infer_try("cos_sim X=f32[4,8] Y=f32[3,8]"), FL_ESHAPE,
              "cos_sim: Y is f32[3,8], expected f32[4,8]");
    CHECK_ERR(fl_infer_try("cos_sim X=f32[4] Y=f32[4]"), FL_ESHAPE,
              "cos_sim: X has 1 dims, expected 2 or more");
}

const fl_test fl_tests[] = {
    {"cos_sim compares rows", compares_rows},
    {"cos_sim compares with one row", compares_with_one_row},
    {"cos_sim says what is wrong", says_what_is_wrong},
    {0},
};
