/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void cuts_into_sections(void)
{
    fl_check_op(&(fl_op_case){
        .type = "split",
        .attr = {{"axis", FL_ATTR_INT, .i = -1},
                 {"sections", FL_ATTR_INTS, FL_CASE_INTS(1, -1, 1)}},
        .in = {{"X", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, .lod = "0,1,2"}},
        .out = {{"Out", {2, 1}, {1, 5}, .lod = "0,1,2"},
                {"Out", {2, 2}, {2, 3, 6, 7}},
                {"Out", {2, 1}, {4, 8}}},
        .grad = {"X"},
    });
}

static void cuts_into_equal_parts(void)
{
    fl_check_op(&(fl_op_case){
        .type = "split",
        .attr = {{"num", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {4, 1}, {1, 2, 3, 4}, .dtype = "i32", .lod = "0,1,4"}},
        .out = {{"Out", {2, 1}, {1, 2}, .dtype = "i32", .lod = ""},
                {"Out", {2, 1}, {3, 4}, .dtype = "i32"}},
    });
}

static void cuts_an_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("split{num=2,axis=1} X=f32[-1,4]"),
              "Out=f32[-1,2] Out=f32[-1,2]");
    CHECK_STR(fl_infer_text("split{sections=[2,-1]} X=f32[-1,4]"),
              "Out=f32[2,4] Out=f32[-1,4]");
}

static void says_what_cannot_be_cut(void)
{
    CHECK_ERR(fl_infer_try("split{axis=1,sections=[2,1]} X=f32[2,4]"),
              FL_ESHAPE, "split: sections add up to 3, axis 1 of X has 4");
    CHECK_ERR(fl_infer_try("split{sections=[1,1,2]} X=f32[4,4]"), FL_EINVAL,
              "split: 3 sections for 2 outputs");
    CHECK_ERR(fl_infer_try("split{sections=[-1,-1]} X=f32[4,4]"), FL_EINVAL,
              "split: 2 sections are -1, at most one may be");
    CHECK_ERR(fl_infer_try("split{num=3} X=f32[4,4]"), FL_EINVAL,
              "split: num is 3, but there are 2 outputs");
    CHECK_ERR(fl_infer_try("split{num=2} X=f32[3,4]"), FL_ESHAPE,
              "split: axis 0 of X has 3, which cannot be cut into 2");
}

const fl_test fl_tests[] = {
    {"split cuts into sections", cuts_into_sections},
    {"split cuts into equal parts", cuts_into_equal_parts},
    {"split cuts an unknown batch", cuts_an_unknown_batch},
    {"split says what cannot be cut", says_what_cannot_be_cut},
    {0},
};
