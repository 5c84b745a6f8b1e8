/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void gives_the_numbers_of_its_type(void)
{
    fl_check_op(&(fl_op_case){
        .type = "assign_value",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(2, 1)},
                 {"dtype", FL_ATTR_INT, .i = FL_F32},
                 {"fp32_values", FL_ATTR_FLOATS, .n = 2,
                  .floats = (float[]){0.5f, -2}}},
        .out = {{"Out", {2, 1}, {0.5, -2}, .dtype = "f32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "assign_value",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(2)},
                 {"dtype", FL_ATTR_INT, .i = FL_I32},
                 {"int32_values", FL_ATTR_INTS, FL_CASE_INTS(3, -4)}},
        .out = {{"Out", {2}, {3, -4}, .dtype = "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "assign_value",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(1)},
                 {"dtype", FL_ATTR_INT, .i = FL_I64},
                 {"int64_values", FL_ATTR_LONGS, FL_CASE_INTS(1LL << 40)}},
        .out = {{"Out", {1}, {(double)(1LL << 40)}, .dtype = "i64"}},
    });
}

static void says_when_numbers_are_missing(void)
{
    CHECK_ERR(fl_infer_try("assign_value{shape=[2,2],dtype=2,"
                           "int32_values=[1,2,3]}"),
              FL_ESHAPE,
              "assign_value: int32_values has 3 numbers, shape [2,2] needs 4");
    CHECK_ERR(fl_infer_try("assign_value{shape=[2],dtype=6}"), FL_ESHAPE,
              "assign_value: dtype is f64, expected f32, i32 or i64");
}

const fl_test fl_tests[] = {
    {"assign_value gives the numbers of its type",
     gives_the_numbers_of_its_type},
    {"assign_value says when numbers are missing",
     says_when_numbers_are_missing},
    {0},
};
