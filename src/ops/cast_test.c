/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void converts_as_c_does(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cast",
        .attr = {{"in_dtype", FL_ATTR_INT, .i = FL_F32},
                 {"out_dtype", FL_ATTR_INT, .i = FL_I64}},
        .in = {{"X", {2, 2}, {-1.7, 0, 2.9, 3}, .lod = "0,2"}},
        .out = {{"Out", {2, 2}, {-1, 0, 2, 3}, .dtype = "i64", .lod = "0,2"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "cast",
        .attr = {{"in_dtype", FL_ATTR_INT, .i = FL_I64},
                 {"out_dtype", FL_ATTR_INT, .i = FL_BOOL}},
        .in = {{"X", {3}, {-1, 0, 2}, .dtype = "i64"}},
        .out = {{"Out", {3}, {1, 0, 1}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "cast",
        .attr = {{"in_dtype", FL_ATTR_INT, .i = FL_BOOL},
                 {"out_dtype", FL_ATTR_INT, .i = FL_F32}},
        .in = {{"X", {2}, {1, 0}, .dtype = "bool"}},
        .out = {{"Out", {2}, {1, 0}, .dtype = "f32"}},
    });
}

static void casts_gradients_back(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cast",
        .attr = {{"in_dtype", FL_ATTR_INT, .i = FL_F32},
                 {"out_dtype", FL_ATTR_INT, .i = FL_F64}},
        .in = {{"X", {3}, {1, 2, 3}}},
        .out = {{"Out", {3}, {1, 2, 3}, .dtype = "f64"}},
        .grad = {"X"},
    });
}

static void knows_its_types(void)
{
    CHECK_STR(fl_infer_text("cast{in_dtype=5,out_dtype=2} X=f32[-1,8]/1"),
              "Out=i32[-1,8]/1");
    CHECK_ERR(fl_infer_try("cast{in_dtype=5,out_dtype=7} X=f32[2]"), FL_EINVAL,
              "cast: out_dtype 7 is not an element type");
    CHECK_ERR(fl_infer_try("cast{in_dtype=5} X=f32[2]"), FL_EINVAL,
              "cast: attribute out_dtype is missing");
    CHECK_ERR(fl_infer_try("cast{in_dtype=5,out_dtype=6} X=rows:f32[2,3]"),
              FL_ESHAPE, "cast: X is selected_rows, expected a tensor");
}

const fl_test fl_tests[] = {
    {"cast converts as C does", converts_as_c_does},
    {"cast casts gradients back", casts_gradients_back},
    {"cast knows its types", knows_its_types},
    {0},
};
