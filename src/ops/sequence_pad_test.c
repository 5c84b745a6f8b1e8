/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void puts_sequences_side_by_side(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_pad",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}, .lod = "0,1,3"},
               {"PadValue", {1}, {9}}},
        .out = {{"Out", {2, 2, 2}, {1, 2, 9, 9, 3, 4, 5, 6}},
                {"Length", {2, 1}, {1, 2}, .dtype = "i64"}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "sequence_pad",
        .attr = {{"padded_length", FL_ATTR_INT, .i = 3}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .lod = "0,0,2"},
               {"PadValue", {2}, {7, 8}}},
        .out = {{"Out", {2, 3, 2}, {7, 8, 7, 8, 7, 8, 1, 2, 3, 4, 7, 8}},
                {"Length", {2, 1}, {0, 2}, .dtype = "i64"}},
        .grad = {"X"},
    });
}

static void takes_the_padding_off(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_unpad",
        .in = {{"X", {2, 2, 2}, {1, 2, 9, 9, 3, 4, 5, 6}},
               {"Length", {2, 1}, {1, 2}, .dtype = "i64"}},
        .out = {{"Out", {3, 2}, {1, 2, 3, 4, 5, 6}, .lod = "0,1,3"}},
        .grad = {"X"},
    });
}

static void pad_says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("sequence_pad{padded_length=5} X=f32[-1,8]/1 "
                            "PadValue=f32[1]"),
              "Out=f32[-1,5,8] Length=i64[-1,1]");
    CHECK_ERR(fl_infer_try("sequence_pad X=f32[-1,8]/1 PadValue=f32[3]"),
              FL_ESHAPE, "sequence_pad: PadValue is f32 of 3 elements");
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "sequence_pad",
            .attr = {{"padded_length", FL_ATTR_INT, .i = 1}},
            .in = {{"X", {2, 1}, {1, 2}, .lod = "0,2"}, {"PadValue", {1}, {0}}},
            .want = {"Out", "Length"},
        }),
        FL_ESHAPE, "sequence_pad: padded_length is 1, but a sequence has 2");
}

static void unpad_says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("sequence_unpad X=f32[-1,5,8] Length=i64[-1,1]"),
              "Out=f32[-1,8]/1");
    CHECK_ERR(fl_infer_try("sequence_unpad X=f32[2] Length=i64[2]"), FL_ESHAPE,
              "sequence_unpad: X has 1 dims, expected [n, len, ..]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_unpad",
                  .in = {{"X", {1, 2, 1}, {1, 2}},
                         {"Length", {1}, {3}, .dtype = "i64"}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "sequence_unpad: Length 0 is 3, X has 2");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_unpad_grad",
                  .in = {{"X", {1, 2, 1}, {1, 2}},
                         {"Length", {1}, {1}, .dtype = "i64"},
                         {"Out@GRAD", {2, 1}, {1, 1}}},
                  .want = {"X@GRAD"},
              }),
              FL_ESHAPE, "Out@GRAD has 2 rows, Length adds up to 1");
}

static void numbers_become_rows_of_one(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_unpad",
        .in = {{"X", {2, 3}, {1, 2, 9, 3, 4, 5}},
               {"Length", {2}, {2, 3}, .dtype = "i64"}},
        .out = {{"Out", {5, 1}, {1, 2, 3, 4, 5}, .lod = "0,2,5"}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "sequence_unpad",
        .in = {{"X", {2, 2, 1, 2}, {1, 2, 9, 9, 3, 4, 5, 6}},
               {"Length", {2}, {1, 2}, .dtype = "i64"}},
        .out = {{"Out", {3, 1, 2}, {1, 2, 3, 4, 5, 6}, .lod = "0,1,3"}},
        .grad = {"X"},
    });
}

const fl_test fl_tests[] = {
    {"sequence_pad puts sequences side by side", puts_sequences_side_by_side},
    {"sequence_unpad takes the padding off", takes_the_padding_off},
    {"sequence_pad says what does not fit", pad_says_what_does_not_fit},
    {"sequence_unpad says what does not fit", unpad_says_what_does_not_fit},
    {"sequence_unpad makes rows of one of numbers", numbers_become_rows_of_one},
    {0},
};
