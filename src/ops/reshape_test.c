/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void fills_in_zero_and_minus_one(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reshape",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(0, -1, 2)}},
        .in = {{"X", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, .lod = "0,2"}},
        .out = {{"Out", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, .lod = "0,2"}},
        .grad = {"X"},
    });
}

static void remembers_the_shape_of_x(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reshape2",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(6)}},
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}, .lod = "0,2"}},
        .out = {{"Out", {6}, {1, 2, 3, 4, 5, 6}, .lod = ""},
                {"XShape", {0, 2, 3}, .empty = true}},
        .grad = {"X"},
    });
}

static void takes_the_shape_from_a_tensor(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reshape2",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(1, 6)}},
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}},
               {"Shape", {2}, {-1, 2}, .dtype = "i32"}},
        .out = {{"Out", {3, 2}, {1, 2, 3, 4, 5, 6}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "reshape",
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 6}},
               {"ShapeTensor", {1}, {3}, .dtype = "i64"},
               {"ShapeTensor", {1}, {2}, .dtype = "i32"}},
        .out = {{"Out", {3, 2}, {1, 2, 3, 4, 5, 6}}},
    });
}

static void works_in_place(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reshape2",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(3, 1)}},
        .in = {{"X", {1, 3}, {1, 2, 3}, .dtype = "i64"}},
        .out = {{"Out", {3, 1}, {1, 2, 3}, .dtype = "i64", .same = "X"}},
    });
}

static void squeeze_drops_ones(void)
{
    fl_check_op(&(fl_op_case){
        .type = "squeeze",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(-2)}},
        .in = {{"X", {1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {1, 2, 3}, {1, 2, 3, 4, 5, 6}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "squeeze2",
        .in = {{"X", {1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {2, 3}, {1, 2, 3, 4, 5, 6}},
                {"XShape", {0, 1, 2, 1, 3}, .empty = true}},
        .grad = {"X"},
    });
}

static void unsqueeze_adds_ones_in_turn(void)
{
    fl_check_op(&(fl_op_case){
        .type = "unsqueeze",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(0, 2)}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {1, 2, 1, 2}, {1, 2, 3, 4}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "unsqueeze2",
        .attr = {{"axes", FL_ATTR_INTS, FL_CASE_INTS(-1)}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .lod = "0,1,2"}},
        .out = {{"Out", {2, 2, 1}, {1, 2, 3, 4}, .lod = "0,1,2"},
                {"XShape", {0, 2, 2}, .empty = true}},
        .grad = {"X"},
    });
}

static void flatten_makes_a_matrix(void)
{
    fl_check_op(&(fl_op_case){
        .type = "flatten",
        .in = {{"X", {2, 1, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {2, 2}, {1, 2, 3, 4}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "flatten2",
        .attr = {{"axis", FL_ATTR_INT, .i = 0}},
        .in = {{"X", {2, 1, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {1, 4}, {1, 2, 3, 4}},
                {"XShape", {0, 2, 1, 2}, .empty = true}},
        .grad = {"X"},
    });
}

static void keep_the_unknown_batch(void)
{
    CHECK_STR(fl_infer_text("reshape{shape=[-1,2,4]} X=f32[-1,8]"),
              "Out=f32[-1,2,4]");
    CHECK_STR(fl_infer_text("reshape2{shape=[0,4,2]} X=f32[-1,8]/1"),
              "Out=f32[-1,4,2]/1 XShape=f32[0,-1,8]/1");
    CHECK_STR(fl_infer_text("squeeze X=f32[-1,1]"), "Out=f32[-1]");
    CHECK_STR(fl_infer_text("flatten X=f32[-1,3,4]"), "Out=f32[-1,12]");
    CHECK_STR(fl_infer_text("flatten{axis=2} X=f32[-1,3,4]"), "Out=f32[-1,4]");
    CHECK_STR(fl_infer_text("unsqueeze{axes=[1]} X=i64[-1]"), "Out=i64[-1,1]");
}

static void say_what_does_not_fit(void)
{
    CHECK_ERR(fl_infer_try("reshape{shape=[4,2]} X=f32[2,3]"), FL_ESHAPE,
              "reshape: X [2,3] does not fit into shape [4,2]");
    CHECK_ERR(fl_infer_try("reshape2{shape=[-1,-1]} X=f32[2,3]"), FL_ESHAPE,
              "reshape2: X [2,3] does not fit into shape [-1,-1]");
    CHECK_ERR(fl_infer_try("reshape{shape=[-1,4]} X=f32[2,3]"), FL_ESHAPE,
              "reshape: X [2,3] does not fit into shape [-1,4]");
    CHECK_ERR(fl_infer_try("squeeze{axes=[1]} X=f32[2,3]"), FL_ESHAPE,
              "squeeze: axis 1 of X [2,3] has 3, not 1");
    CHECK_ERR(fl_infer_try("unsqueeze{axes=[4]} X=f32[2,3]"), FL_ESHAPE,
              "unsqueeze: axis 4 is not an axis of X [2,3]");
    CHECK_ERR(fl_infer_try("flatten{axis=3} X=f32[2,3]"), FL_ESHAPE,
              "flatten: axis 3 is not an axis of X [2,3]");
    CHECK_ERR(fl_infer_try("flatten2 X=f32[1,1,1,1,1,1,1,1,1]"), FL_ESHAPE,
              "flatten2: X [1,1,1,1,1,1,1,1,1] has 9 dimensions, at most 8");
}

static void gradients_refuse_another_count(void)
{
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "reshape2_grad",
            .in = {{"XShape", {0, 2, 3}, .empty = true}, {"Out@GRAD", {7}}},
        }),
        FL_ESHAPE, "reshape2_grad: Out@GRAD is f32[7], but X is f32[2,3]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "flatten_grad",
                  .in = {{"X", {2, 3}}, {"Out@GRAD", {7}}},
              }),
              FL_ESHAPE, "flatten_grad: Out@GRAD is f32[7], but X is f32[2,3]");
}

static void a_shape_tensor_has_one_element(void)
{
    CHECK_ERR(fl_infer_try("reshape2{shape=[]} X=f32[4] ShapeTensor=i32[0]"),
              FL_ESHAPE,
              "reshape2: ShapeTensor 0 is [0], expected one element");
    CHECK_ERR(fl_infer_try("reshape{shape=[]} X=f32[4] ShapeTensor=i32[2]"),
              FL_ESHAPE, "ShapeTensor 0 is [2], expected one element");
}

const fl_test fl_tests[] = {
    {"reshape fills in 0 and -1", fills_in_zero_and_minus_one},
    {"reshape2 remembers the shape of X", remembers_the_shape_of_x},
    {"reshape takes the shape from a tensor", takes_the_shape_from_a_tensor},
    {"reshape2 works in place", works_in_place},
    {"squeeze drops ones", squeeze_drops_ones},
    {"unsqueeze adds ones in turn", unsqueeze_adds_ones_in_turn},
    {"flatten makes a matrix", flatten_makes_a_matrix},
    {"reshapes keep the unknown batch", keep_the_unknown_batch},
    {"reshapes say what does not fit", say_what_does_not_fit},
    {"reshapes' gradients refuse another count",
     gradients_refuse_another_count},
    {"a ShapeTensor has one element", a_shape_tensor_has_one_element},
    {0},
};
