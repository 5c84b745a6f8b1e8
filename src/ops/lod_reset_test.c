/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void takes_offsets_from_the_attribute(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lod_reset",
        .attr = {{"target_lod", FL_ATTR_INTS, FL_CASE_INTS(0, 1, 4)}},
        .in = {{"X", {4, 1}, {1, 2, 3, 4}, .lod = "0,2,4"}},
        .out = {{"Out", {4, 1}, {1, 2, 3, 4}, .lod = "0,1,4"}},
        .grad = {"X"},
    });
}

static void takes_the_sequences_of_y(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lod_reset",
        .in = {{"X", {4, 1}, {1, 2, 3, 4}}, {"Y", {4, 2}, .lod = "0,2;0,1,4"}},
        .out = {{"Out", {4, 1}, {1, 2, 3, 4}, .lod = "0,2;0,1,4"}},
        .grad = {"X"},
    });
}

static void takes_the_elements_of_y(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lod_reset",
        .in = {{"X", {4, 1}, {1, 2, 3, 4}},
               {"Y", {3}, {0, 3, 4}, .dtype = "i32"}},
        .out = {{"Out", {4, 1}, {1, 2, 3, 4}, .lod = "0,3,4"}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("lod_reset X=f32[-1,8] Y=f32[-1,1]/2"),
              "Out=f32[-1,8]/2");
    CHECK_ERR(fl_infer_try("lod_reset X=f32[-1,8]"), FL_EINVAL,
              "lod_reset: neither Y nor target_lod is given");
    CHECK_ERR(fl_infer_try("lod_reset X=f32[-1,8] Y=f32[3]"), FL_ESHAPE,
              "lod_reset: Y is f32, expected i64 or i32");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "lod_reset",
                  .attr = {{"target_lod", FL_ATTR_INTS, FL_CASE_INTS(0, 5)}},
                  .in = {{"X", {4, 1}}},
              }),
              FL_EINVAL, "lod: level 0 ends at 5, but there are 4 rows");
}

const fl_test fl_tests[] = {
    {"lod_reset takes offsets from the attribute",
     takes_offsets_from_the_attribute},
    {"lod_reset takes the sequences of Y", takes_the_sequences_of_y},
    {"lod_reset takes the elements of Y", takes_the_elements_of_y},
    {"lod_reset says what is wrong", says_what_is_wrong},
    {0},
};
