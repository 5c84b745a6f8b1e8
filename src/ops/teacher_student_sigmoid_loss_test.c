/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void reads_click_and_teacher_from_one_label(void)
{
    fl_check_op(&(fl_op_case){
        .type = "teacher_student_sigmoid_loss",
        .in = {{"X", {5, 1}, {2, 2, -1, 0.5, 30}},
               {"Label", {5, 1}, {-2, -1, 0.25, 1.75, -1}}},
        .out = {{"Y", {5, 1}, {2.1269280, 0.1269280, 0.8765234, 1.0731540, 0}}},
        .grad = {"X"},
    });
}

static void has_no_gradient_beyond_its_bounds(void)
{
    fl_check_op(&(fl_op_case){
        .type = "teacher_student_sigmoid_loss_grad",
        .attr = {{"soft_max_up_bound", FL_ATTR_FLOAT, .f = 2},
                 {"soft_max_lower_bound", FL_ATTR_FLOAT, .f = -3}},
        .in = {{"X", {5, 1}, {2, 7, 0, -3, -2.5}},
               {"Label", {5, 1}, {-2, -2, 1.5, -1, -2}},
               {"Y@GRAD", {5, 1}, {1, 1, 2, 1, 1}}},
        .out = {{"X@GRAD", {5, 1}, {0, 0, -1, 0, 0.0758582}}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("teacher_student_sigmoid_loss X=f32[-1,1] "
                            "Label=f32[-1,1]"),
              "Y=f32[-1,1]");
    CHECK_ERR(fl_infer_try("teacher_student_sigmoid_loss X=f32[3,2] "
                           "Label=f32[3,2]"),
              FL_ESHAPE,
              "teacher_student_sigmoid_loss: X is [3,2], expected [N,1]");
    CHECK_ERR(fl_infer_try("teacher_student_sigmoid_loss X=f32[3,1] "
                           "Label=f32[2,1]"),
              FL_ESHAPE,
              "teacher_student_sigmoid_loss: X is f32[3,1], Label is f32[2,1]");
    CHECK_ERR(fl_infer_try("teacher_student_sigmoid_loss_grad X=f32[3,1] "
                           "Label=f32[3,1] Y@GRAD=f32[2,1]"),
              FL_ESHAPE,
              "teacher_student_sigmoid_loss_grad: Y@GRAD is f32[2,1], expected "
              "f32[3,1]");
}

const fl_test fl_tests[] = {
    {"teacher_student_sigmoid_loss reads click and teacher from one label",
     reads_click_and_teacher_from_one_label},
    {"teacher_student_sigmoid_loss has no gradient beyond its bounds",
     has_no_gradient_beyond_its_bounds},
    {"teacher_student_sigmoid_loss says what does not fit",
     says_what_does_not_fit},
    {0},
};
