/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void compares_class_by_class(void)
{
    fl_check_op(&(fl_op_case){
        .type = "mean_iou",
        .attr = {{"num_classes", FL_ATTR_INT, .i = 4}},
        .in = {{"Predictions", {5}, {0, 1, 1, 2, 0}, .dtype = "i32"},
               {"Labels", {5}, {0, 1, 2, 2, 0}, .dtype = "i32"}},
        .out = {{"OutMeanIou", {1}, {(1 + 0.5 + 0.5) / 3}, .dtype = "f32"},
                {"OutWrong", {4}, {0, 1, 1, 0}, .dtype = "i32"},
                {"OutCorrect", {4}, {2, 1, 1, 0}, .dtype = "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "mean_iou",
        .attr = {{"num_classes", FL_ATTR_INT, .i = 2}},
        .in = {{"Predictions", {1}, {0}, .dtype = "i64"},
               {"Labels", {1}, {0}, .dtype = "i64"},
               {"InWrongs", {2}, {1, 0}, .dtype = "i32"},
               {"InCorrects", {2}, {2, 0}, .dtype = "i32"},
               {"InMeanIou", {1}, {0.25}, .dtype = "f32"}},
        .out = {{"OutMeanIou", {1}, {0.75 + 0.25}, .dtype = "f32"},
                {"OutWrong", {2}, {1, 0}, .dtype = "i32"},
                {"OutCorrect", {2}, {3, 0}, .dtype = "i32"}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("mean_iou{num_classes=3} Predictions=i32[-1] "
                            "Labels=i32[-1]"),
              "OutMeanIou=f32[1] OutWrong=i32[3] OutCorrect=i32[3]");
    CHECK_ERR(fl_infer_try("mean_iou{num_classes=0} Predictions=i32[2] "
                           "Labels=i32[2]"),
              FL_EINVAL, "mean_iou: num_classes is 0");
    CHECK_ERR(fl_infer_try("mean_iou{num_classes=3} Predictions=i32[2] "
                           "Labels=i32[2] InWrongs=i32[2]"),
              FL_ESHAPE, "mean_iou: InWrongs 0 is not i32 of 3");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "mean_iou",
                  .attr = {{"num_classes", FL_ATTR_INT, .i = 2}},
                  .in = {{"Predictions", {1}, {0}, .dtype = "i32"},
                         {"Labels", {1}, {2}, .dtype = "i32"}},
                  .want = {"OutMeanIou", "OutWrong", "OutCorrect"},
              }),
              FL_EINVAL,
              "mean_iou: element 0 is 0, its label 2, but there are "
              "2 classes");
}

const fl_test fl_tests[] = {
    {"mean_iou compares class by class", compares_class_by_class},
    {"mean_iou says what does not fit", says_what_does_not_fit},
    {0},
};
