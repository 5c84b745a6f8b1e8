/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

/* Two sequences of one column; three rows of context around each. */
static void looks_around_within_a_sequence(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_conv",
        .attr = {{"contextLength", FL_ATTR_INT, .i = 3},
                 {"contextStart", FL_ATTR_INT, .i = -1}},
        .in = {{"X", {5, 1}, {1, 2, 3, 4, 5}, .lod = "0,3,5"},
               {"Filter", {3, 2}, {100, 1, 10, 2, 1, 3}}},
        .out = {{"Out",
                 {5, 2},
                 {12, 8, 123, 14, 230, 8, 45, 23, 450, 14},
                 .lod = "0,3,5"}},
        .grad = {"X", "Filter"},
    });
}

static void looks_ahead_in_wide_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_conv",
        .attr = {{"contextLength", FL_ATTR_INT, .i = 1},
                 {"contextStart", FL_ATTR_INT, .i = 1}},
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}, .lod = "0,1,1,3"},
               {"Filter", {2, 1}, {1, 10}}},
        .out = {{"Out", {3, 1}, {0, 65, 0}, .lod = "0,1,1,3"}},
        .grad = {"X", "Filter"},
    });
}

static void knows_shapes_before_it_runs(void)
{
    CHECK_STR(fl_infer_text("sequence_conv{contextLength=3} X=f32[-1,8]/1 "
                            "Filter=f32[24,5]"),
              "Out=f32[-1,5]/1");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("sequence_conv{contextLength=3} X=f32[-1,8]/1 "
                           "Filter=f32[8,5]"),
              FL_ESHAPE,
              "sequence_conv: Filter is f32[8,5], expected f32[24,5]");
    CHECK_ERR(fl_infer_try("sequence_conv{contextLength=0} X=f32[-1,8]/1 "
                           "Filter=f32[8,5]"),
              FL_EINVAL,
              "sequence_conv: contextLength is 0, expected 1 or more");
    CHECK_ERR(fl_infer_try("sequence_conv{contextLength=1,contextStride=2} "
                           "X=f32[-1,8]/1 Filter=f32[8,5]"),
              FL_EINVAL, "sequence_conv: contextStride is 2, expected 1");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_conv",
                  .attr = {{"contextLength", FL_ATTR_INT, .i = 1}},
                  .in = {{"X", {2, 2}}, {"Filter", {2, 2}}},
              }),
              FL_ESHAPE, "sequence_conv: X has no sequences (LoD)");
}

/* Rows -1 and 2 of the first sequence, -1 and 1 of the second. */
static void padding_is_trained(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_conv",
        .attr = {{"contextLength", FL_ATTR_INT, .i = 3},
                 {"contextStart", FL_ATTR_INT, .i = -1},
                 {"paddingTrainable", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {3, 1}, {1, 2, 3}, .lod = "0,2,3"},
               {"PaddingData", {2, 1}, {10, 20}},
               {"Filter", {3, 1}, {1, 100, 10000}}},
        .out = {{"Out", {3, 1}, {20110, 200201, 200310}, .lod = "0,2,3"}},
        .grad = {"X", "PaddingData", "Filter"},
        .grad_tolerance = 1e-3,
    });
    /* Both rows before a sequence, the last next to it; two after it. */
    fl_check_op(&(fl_op_case){
        .type = "sequence_conv",
        .attr = {{"contextLength", FL_ATTR_INT, .i = 5},
                 {"contextStart", FL_ATTR_INT, .i = -2},
                 {"paddingTrainable", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {1, 1}, {3}, .lod = "0,1"},
               {"PaddingData", {4, 1}, {1, 2, 4, 5}},
               {"Filter", {5, 1}, {1, 10, 100, 1000, 10000}}},
        .out = {{"Out", {1, 1}, {54321}, .lod = "0,1"}},
        .grad = {"X", "PaddingData", "Filter"},
        .grad_tolerance = 1e-3,
    });
    CHECK_ERR(fl_infer_try("sequence_conv{contextLength=3,contextStart=-1,"
                           "paddingTrainable=true} X=f32[-1,2]/1 "
                           "PaddingData=f32[3,2] Filter=f32[6,4]"),
              FL_ESHAPE, "PaddingData is f32[3,2], expected f32[2,2]");
    CHECK_ERR(fl_infer_try("sequence_conv{contextLength=3,contextStart=-1,"
                           "paddingTrainable=true} X=f32[-1,2]/1 "
                           "Filter=f32[6,4]"),
              FL_EINVAL, "paddingTrainable is set, but PaddingData is missing");
}

const fl_test fl_tests[] = {
    {"sequence_conv looks around within a sequence",
     looks_around_within_a_sequence},
    {"sequence_conv looks ahead in wide rows", looks_ahead_in_wide_rows},
    {"sequence_conv knows shapes before it runs", knows_shapes_before_it_runs},
    {"sequence_conv says what is wrong", says_what_is_wrong},
    {"padding of sequence_conv is trained", padding_is_trained},
    {0},
};
