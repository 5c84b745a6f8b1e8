/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void repeats_sequences(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_expand",
        .attr = {{"ref_level", FL_ATTR_INT, .i = 0}},
        .in = {{"X", {4, 1}, {1, 2, 3, 4}, .lod = "0,2,4"},
               {"Y", {8, 1}, .lod = "0,2,4;0,3,6,7,8"}},
        .out = {{"Out", {8, 1}, {1, 2, 1, 2, 3, 4, 3, 4}, .lod = "0,2,4,6,8"}},
        .grad = {"X"},
    });
}

static void repeats_rows_and_drops_some(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_expand",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Y", {5, 1}, .lod = "0,2,2,5"}},
        .out = {{"Out", {5, 2}, {1, 2, 1, 2, 5, 6, 5, 6, 5, 6}, .lod = ""}},
        .grad = {"X"},
    });
}

static void moves_ids_too(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_expand",
        .in = {{"X", {2, 1}, {7, 8}, .dtype = "i64"},
               {"Y", {3, 1}, .lod = "0,1,3"}},
        .out = {{"Out", {3, 1}, {7, 8, 8}, .dtype = "i64"}},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("sequence_expand X=f32[-1,8]/1 Y=f32[-1,3]/1"),
              "Out=f32[-1,8]/1");
    CHECK_ERR(fl_infer_try("sequence_expand X=f32[-1,8]/2 Y=f32[-1,3]/1"),
              FL_ESHAPE,
              "sequence_expand: X has 2 levels of LoD, expected 0 or 1");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_expand",
                  .in = {{"X", {2, 1}}, {"Y", {3, 1}, .lod = "0,1,2,3"}},
              }),
              FL_ESHAPE, "sequence_expand: X has 2 rows, Y 3 sequences");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_expand",
                  .attr = {{"ref_level", FL_ATTR_INT, .i = 1}},
                  .in = {{"X", {2, 1}}, {"Y", {3, 1}, .lod = "0,1,3"}},
              }),
              FL_ESHAPE,
              "sequence_expand: ref_level is 1, Y has 1 levels of LoD");
}

static void makes_a_sequence_of_each_row(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_expand_as",
        .in = {{"X", {3, 1}, {1, 2, 3}},
               {"Y", {4, 1}, {0, 0, 0, 0}, .lod = "0,3,3,4"}},
        .out = {{"Out", {4, 1}, {1, 1, 1, 3}, .lod = "0,3,3,4"}},
        .grad = {"X"},
    });
    CHECK_STR(fl_infer_text("sequence_expand_as X=f32[-1,8] Y=f32[-1,2]/1"),
              "Out=f32[-1,8]/1");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_expand_as",
                  .in = {{"X", {3, 1}, {1, 2, 3}},
                         {"Y", {2, 1}, {0, 0}, .lod = "0,1,2"}},
                  .want = {"Out"},
              }),
              FL_ESHAPE, "sequence_expand_as: X has 3 rows, Y 2 sequences");
}

const fl_test fl_tests[] = {
    {"sequence_expand_as makes a sequence of each row",
     makes_a_sequence_of_each_row},
    {"sequence_expand repeats sequences", repeats_sequences},
    {"sequence_expand repeats rows and drops some",
     repeats_rows_and_drops_some},
    {"sequence_expand moves ids too", moves_ids_too},
    {"sequence_expand says what is wrong", says_what_is_wrong},
    {0},
};
