/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void of_one_row_has_no_sequences(void)
{
    fl_check_op(&(fl_op_case){
        .type = "top_k",
        .in = {{"X", {3}, {1, 4, 2}, .lod = "0,1,3"},
               {"K", {1}, {2}, .dtype = "i32"}},
        .out = {{"Out", {2}, {4, 2}, .lod = ""},
                {"Indices", {2}, {1, 2}, "i64", .lod = ""}},
    });
}

static void picks_the_largest_first(void)
{
    fl_check_op(&(fl_op_case){
        .type = "top_k",
        .attr = {{"k", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {2, 4}, {1, 4, 2, 3, -1, -5, -2, -3}, .lod = "0,2"}},
        .out = {{"Out", {2, 2}, {4, 3, -1, -2}, .lod = "0,2"},
                {"Indices", {2, 2}, {1, 3, 0, 2}, "i64", .lod = "0,2"}},
    });
}

static void of_equal_ones_takes_the_earlier(void)
{
    fl_check_op(&(fl_op_case){
        .type = "top_k",
        .attr = {{"k", FL_ATTR_INT, .i = 3}},
        .in = {{"X", {1, 5}, {1, 2, 2, 1, 2}}},
        .out = {{"Out", {1, 3}, {2, 2, 2}},
                {"Indices", {1, 3}, {1, 2, 4}, "i64"}},
    });
}

static void puts_nan_last(void)
{
    fl_check_op(&(fl_op_case){
        .type = "top_k",
        .attr = {{"k", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 4}, {NAN, 1, NAN, 2}}},
        .out = {{"Out", {1, 2}, {2, 1}}, {"Indices", {1, 2}, {3, 1}, "i64"}},
    });
}

static void reads_k_from_a_tensor(void)
{
    fl_check_op(&(fl_op_case){
        .type = "top_k",
        .in = {{"X", {1, 3}, {1, 3, 2}}, {"K", {1}, {2}, "i32"}},
        .out = {{"Out", {1, 2}, {3, 2}}, {"Indices", {1, 2}, {1, 2}, "i64"}},
    });
    fl_op_case c = {
        .type = "top_k",
        .in = {{"X", {1, 3}, {1, 3, 2}}, {"K", {1}, {4}, "i32"}},
        .want = {"Out", "Indices"},
    };
    CHECK_ERR(fl_check_try(&c), FL_ESHAPE, "top_k: k is 4, X has 3 in a row");
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("top_k{k=3} X=f32[-1,8]"),
              "Out=f32[-1,3] Indices=i64[-1,3]");
    CHECK_STR(fl_infer_text("top_k X=f32[-1,8] K=i32[1]"),
              "Out=f32[-1,-1] Indices=i64[-1,-1]");
    CHECK_ERR(fl_infer_try("top_k{k=9} X=f32[-1,8]"), FL_ESHAPE,
              "top_k: k is 9, X has 8 in a row");
    CHECK_ERR(fl_infer_try("top_k{k=0} X=f32[-1,8]"), FL_ESHAPE,
              "top_k: k is 0, X has 8 in a row");
}

const fl_test fl_tests[] = {
    {"top_k of one row has no sequences", of_one_row_has_no_sequences},
    {"top_k picks the largest first", picks_the_largest_first},
    {"top_k of equal ones takes the earlier", of_equal_ones_takes_the_earlier},
    {"top_k puts NaN last", puts_nan_last},
    {"top_k reads k from a tensor", reads_k_from_a_tensor},
    {"top_k knows its shapes", knows_shapes},
    {0},
};
