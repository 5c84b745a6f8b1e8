/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void puts_a_new_axis_first(void)
{
    fl_check_op(&(fl_op_case){
        .type = "stack",
        .in = {{"X", {2}, {1, 2}}, {"X", {2}, {3, 4}}, {"X", {2}, {5, 6}}},
        .out = {{"Y", {3, 2}, {1, 2, 3, 4, 5, 6}}},
        .grad = {"X"},
    });
}

static void puts_a_new_axis_last(void)
{
    fl_check_op(&(fl_op_case){
        .type = "stack",
        .attr = {{"axis", FL_ATTR_INT, .i = -1}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}, {"X", {2, 2}, {5, 6, 7, 8}}},
        .out = {{"Y", {2, 2, 2}, {1, 5, 2, 6, 3, 7, 4, 8}}},
        .grad = {"X"},
    });
}

static void keeps_the_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("stack{axis=1} X=i64[-1,3] X=i64[-1,3]"),
              "Y=i64[-1,2,3]");
}

static void says_what_differs(void)
{
    CHECK_ERR(fl_infer_try("stack X=f32[2] X=f32[3]"), FL_ESHAPE,
              "stack: X 0 is f32[2], but X 1 is f32[3]");
    CHECK_ERR(fl_infer_try("stack{axis=2} X=f32[2]"), FL_ESHAPE,
              "stack: axis 2 is not an axis of X [2]");
}

static void takes_apart_what_was_put_together(void)
{
    fl_check_op(&(fl_op_case){
        .type = "unstack",
        .attr = {{"axis", FL_ATTR_INT, .i = -1}, {"num", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Y", {3}, {1, 3, 5}}, {"Y", {3}, {2, 4, 6}}},
        .grad = {"X"},
    });
    CHECK_STR(fl_infer_text("unstack{axis=1} X=f32[-1,2,3]"),
              "Y=f32[-1,3] Y=f32[-1,3]");
    CHECK_ERR(fl_infer_try("unstack X=f32[3,3]"), FL_ESHAPE,
              "unstack: axis 0 of X has 3 elements, but there are 2 Y");
    CHECK_ERR(fl_infer_try("unstack{num=3} X=f32[2,3]"), FL_EINVAL,
              "unstack: num is 3, but there are 2 Y");
    CHECK_ERR(fl_infer_try("unstack{axis=2} X=f32[2,3]"), FL_ESHAPE,
              "unstack: axis 2 is not an axis of X [2,3]");
}

const fl_test fl_tests[] = {
    {"unstack takes apart what was put together",
     takes_apart_what_was_put_together},
    {"stack puts a new axis first", puts_a_new_axis_first},
    {"stack puts a new axis last", puts_a_new_axis_last},
    {"stack keeps the unknown batch", keeps_the_unknown_batch},
    {"stack says what differs", says_what_differs},
    {0},
};
