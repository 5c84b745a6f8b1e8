/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

/* Four rows of two columns in three sequences, the second one empty. */
static void check(const char *type, const double want[6])
{
    fl_op_case c = {
        .type = "sequence_pool",
        .attr = {{"pooltype", FL_ATTR_STRING, .s = type},
                 {"pad_value", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"X", {4, 2}, {1, 8, 3, 6, 5, 4, 7, 2}, .lod = "0,3,3,4"}},
        .out = {{"Out", {3, 2}, .lod = ""}},
        .grad = {"X"},
    };
    for (int i = 0; i < 6; i++)
        c.out[0].value[i] = want[i];
    fl_check_op(&c);
}

static void pools_in_six_ways(void)
{
    double r = sqrt(3);
    check("SUM", (double[]){9, 18, 0.5, 0.5, 7, 2});
    check("AVERAGE", (double[]){3, 6, 0.5, 0.5, 7, 2});
    check("SQRT", (double[]){9 / r, 18 / r, 0.5, 0.5, 7, 2});
    check("MAX", (double[]){5, 8, 0.5, 0.5, 7, 2});
    check("LAST", (double[]){5, 4, 0.5, 0.5, 7, 2});
    check("FIRST", (double[]){1, 8, 0.5, 0.5, 7, 2});
}

static void tells_where_the_largest_were(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_pool",
        .attr = {{"pooltype", FL_ATTR_STRING, .s = "MAX"}},
        .in = {{"X", {3, 2}, {1, 8, 3, 6, 5, 4}, .lod = "0,0,3"}},
        .out = {{"Out", {2, 2}, {0, 0, 5, 8}},
                {"MaxIndex", {2, 2}, {-1, -1, 2, 0}, .dtype = "i32"}},
        .grad = {"X"},
    });
}

static void keeps_the_levels_above(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sequence_pool",
        .attr = {{"pooltype", FL_ATTR_STRING, .s = "SUM"}},
        .in = {{"X", {4, 1, 1}, {1, 2, 3, 4}, .lod = "0,1,3;0,2,3,4"}},
        .out = {{"Out", {3, 1, 1}, {3, 3, 4}, .lod = "0,1,3"}},
        .grad = {"X"},
    });
}

static void knows_shapes_before_it_runs(void)
{
    CHECK_STR(fl_infer_text("sequence_pool X=f32[-1,8]/2"),
              "Out=f32[-1,8]/1 MaxIndex=i32[0]");
    CHECK_STR(fl_infer_text("sequence_pool{pooltype=\"MAX\"} X=f32[-1,8]/1"),
              "Out=f32[-1,8] MaxIndex=i32[-1,8]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("sequence_pool{pooltype=\"MEAN\"} X=f32[-1,8]/1"),
              FL_EINVAL,
              "sequence_pool: pooltype is \"MEAN\", expected AVERAGE");
    CHECK_ERR(fl_infer_try("sequence_pool X=i64[-1,8]/1"), FL_ESHAPE,
              "sequence_pool: X is i64, expected f32 or f64");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_pool",
                  .in = {{"X", {2, 2}}},
              }),
              FL_ESHAPE, "sequence_pool: X has no sequences (LoD)");
}

static void gradient_refuses_another_shape(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_pool_grad",
                  .in = {{"X", {2, 2}, .lod = "0,2"}, {"Out@GRAD", {2, 2}}},
              }),
              FL_ESHAPE,
              "sequence_pool_grad: Out@GRAD is f32[2,2], expected f32[1,2]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_pool_grad",
                  .attr = {{"pooltype", FL_ATTR_STRING, .s = "MAX"}},
                  .in = {{"X", {2, 2}, .lod = "0,2"}, {"Out@GRAD", {1, 2}}},
              }),
              FL_ESHAPE, "sequence_pool_grad: MaxIndex is not that of Out");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sequence_pool",
                  .in = {{"X", {2, 2}, .lod = "0,3"}},
              }),
              FL_EINVAL, "lod: level 0 ends at 3, but there are 2 rows");
}

const fl_test fl_tests[] = {
    {"sequence_pool pools in six ways", pools_in_six_ways},
    {"sequence_pool tells where the largest were",
     tells_where_the_largest_were},
    {"sequence_pool keeps the levels above", keeps_the_levels_above},
    {"sequence_pool knows shapes before it runs", knows_shapes_before_it_runs},
    {"sequence_pool says what is wrong", says_what_is_wrong},
    {"sequence_pool's gradient refuses another shape",
     gradient_refuses_another_shape},
    {0},
};
