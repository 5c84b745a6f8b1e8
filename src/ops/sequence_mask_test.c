/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void marks_what_is_within(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_mask",
        .in = {{"X", {3}, {2, 0, 3}, .dtype = "i64"}},
        .out = {{"Y", {3, 3}, {1, 1, 0, 0, 0, 0, 1, 1, 1}, .dtype = "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "sequence_mask",
        .attr = {{"maxlen", FL_ATTR_INT, .i = 2},
                 {"out_dtype", FL_ATTR_INT, .i = FL_F32}},
        .in = {{"X", {2, 1}, {1, 5}, .dtype = "i32"}},
        .out = {{"Y", {2, 1, 2}, {1, 0, 1, 1}, .dtype = "f32"}},
    });
}

static void knows_its_shape(void)
{
    CHECK_STR(fl_infer_text("sequence_mask X=i64[-1]"), "Y=i64[-1,-1]");
    CHECK_STR(fl_infer_text("sequence_mask{maxlen=4,out_dtype=5} X=i64[-1,1]"),
              "Y=f32[-1,1,4]");
    CHECK_ERR(fl_infer_try("sequence_mask X=f32[2]"), FL_ESHAPE,
              "sequence_mask: X is f32, expected i64 or i32");
    CHECK_ERR(fl_infer_try("sequence_mask{out_dtype=99} X=i64[2]"), FL_EINVAL,
              "sequence_mask: out_dtype is 99, which is not an element type");
}

static void takes_its_length_from_a_tensor(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_mask",
        .in = {{"X", {2}, {1, 3}, .dtype = "i64"},
               {"MaxLenTensor", {1}, {3}, .dtype = "i32"}},
        .out = {{"Y", {2, 3}, {1, 0, 0, 1, 1, 1}, .dtype = "i64"}},
    });
    CHECK_STR(fl_infer_text("sequence_mask{maxlen=4} X=i64[-1] "
                            "MaxLenTensor=i32[1]"),
              "Y=i64[-1,-1]");
    CHECK_ERR(fl_infer_try("sequence_mask X=i64[2] MaxLenTensor=i32[2]"),
              FL_ESHAPE, "MaxLenTensor 0 is [2], expected one element");
}

const fl_test fl_tests[] = {
    {"sequence_mask marks what is within", marks_what_is_within},
    {"sequence_mask knows its shape", knows_its_shape},
    {"sequence_mask takes its length from a tensor",
     takes_its_length_from_a_tensor},
    {0},
};
