/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

/* Every broadcast for a real operator: same shape, a row, a run in the middle,
 * a column, one number. f is the operator in double. */
static void check_broadcasts(const char *type, double (*f)(double, double),
                             bool grad)
{
    static const struct {
        int64_t x[3], y[3];
        int64_t axis, pre, n, post;
    } fits[] = {
        {{2, 3, 2}, {2, 3, 2}, -1, 1, 12, 1},
        {{2, 3, 2}, {2}, -1, 6, 2, 1},
        {{2, 3, 2}, {3}, 1, 2, 3, 2},
        {{2, 3, 2}, {2}, 0, 1, 2, 6},
        {{2, 3, 2}, {2, 3}, 0, 1, 6, 2},
        {{2, 3, 2}, {3, 1}, 1, 2, 3, 2},
        {{2, 3, 2}, {1}, -1, 12, 1, 1},
        {{2, 3, 2}, {3, 2}, -1, 2, 6, 1},
        {{4}, {1}, 0, 1, 1, 4},
    };
    for (size_t k = 0; k < sizeof fits / sizeof *fits; k++) {
        fl_op_case c = {.type = type,
                        .attr = {{"axis", FL_ATTR_INT, .i = fits[k].axis}},
                        .in = {{"X"}, {"Y"}},
                        .out = {{"Out"}}};
        for (int i = 0; i < 3; i++) {
            c.in[0].dim[i] = c.out[0].dim[i] = fits[k].x[i];
            c.in[1].dim[i] = fits[k].y[i];
        }
        int64_t n = fits[k].n, post = fits[k].post;
        for (int64_t i = 0; i < n; i++)
            c.in[1].value[i] = 1.25 + 0.5 * (double)(i * 5 % 7);
        for (int64_t i = 0; i < fits[k].pre * n * post; i++) {
            c.in[0].value[i] = 0.9 + 0.37 * (double)(i * 7 % 11);
            c.out[0].value[i] =
                f(c.in[0].value[i], c.in[1].value[i / post % n]);
        }
        if (grad)
            c.grad[0] = "X", c.grad[1] = "Y";
        fl_check_op(&c);
    }
}

static double add(double a, double b)
{
    return a + b;
}

static double sub(double a, double b)
{
    return a - b;
}

static double mul(double a, double b)
{
    return a * b;
}

static double quotient(double a, double b)
{
    return a / b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double floored(double a, double b)
{
    return floor(a / b);
}

static void broadcast_and_have_gradients(void)
{
    check_broadcasts("elementwise_add", add, true);
    check_broadcasts("elementwise_sub", sub, true);
    check_broadcasts("elementwise_mul", mul, true);
    check_broadcasts("elementwise_div", quotient, true);
    check_broadcasts("elementwise_max", larger, true);
    check_broadcasts("elementwise_min", smaller, true);
    check_broadcasts("elementwise_pow", pow, true);
    check_broadcasts("elementwise_mod", fmod, false);
    check_broadcasts("elementwise_floordiv", floored, false);
}

static void count_in_whole_numbers(void)
{
    static const struct {
        const char *type;
        double out[6];
    } rows[] = {
        {"elementwise_add", {10, -4, 6, 6, 2, -2}},
        {"elementwise_sub", {4, -10, 8, -20, -16, 4}},
        {"elementwise_mul", {21, -21, -7, -91, -63, -3}},
        {"elementwise_div", {2, -2, -7, 0, 0, 0}},
        {"elementwise_max", {7, 3, 7, 13, 9, 1}},
        {"elementwise_min", {3, -7, -1, -7, -7, -3}},
        {"elementwise_mod", {1, 2, 0, 6, 2, -2}},
        {"elementwise_floordiv", {2, -3, -7, -1, -1, -1}},
    };
    const char *types[] = {"i64", "i32"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int t = 0; t < 2; t++) {
            fl_op_case c = {
                .type = rows[i].type,
                .in = {{"X", {6}, {7, -7, 7, -7, -7, 1}, .dtype = types[t]},
                       {"Y", {6}, {3, 3, -1, 13, 9, -3}, .dtype = types[t]}},
                .out = {{"Out", {6}, .dtype = types[t]}}};
            for (int j = 0; j < 6; j++)
                c.out[0].value[j] = rows[i].out[j];
            fl_check_op(&c);
        }
}

static void bear_the_lowest_number(void)
{
    const char *types[] = {"elementwise_div", "elementwise_floordiv"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = types[i],
            .in = {{"X", {1}, {INT32_MIN}, .dtype = "i32"},
                   {"Y", {1}, {-1}, .dtype = "i32"}},
            .out = {{"Out", {1}, {INT32_MIN}, .dtype = "i32"}},
        });
}

static void sum_nothing_where_there_is_nothing(void)
{
    fl_check_op(&(fl_op_case){
        .type = "elementwise_add_grad",
        .in = {{"X", {2, 0, 2}, .empty = true},
               {"Y", {1}, {3}},
               {"Out@GRAD", {2, 0, 2}, .empty = true}},
        .out = {{"Y@GRAD", {1}, {0}}},
    });
}

static void refuse_to_divide_by_zero(void)
{
    const char *types[] = {"elementwise_div", "elementwise_mod",
                           "elementwise_floordiv"};
    for (int i = 0; i < 3; i++)
        CHECK_ERR(fl_check_try(&(fl_op_case){
                      .type = types[i],
                      .in = {{"X", {2}, {1, 1}, .dtype = "i64"},
                             {"Y", {2}, {1, 0}, .dtype = "i64"}},
                  }),
                  FL_EINVAL, ": Y[1] is 0");
}

static void give_the_sign_of_y_to_a_remainder(void)
{
    fl_check_op(&(fl_op_case){
        .type = "elementwise_mod",
        .in = {{"X", {4}, {5.5, -5.5, 5.5, -5.5}}, {"Y", {4}, {2, 2, -2, -2}}},
        .out = {{"Out", {4}, {1.5, 0.5, -0.5, -1.5}}},
    });
}

/* Long enough for whole vectors, chunks and what is left over. */
static void sum_long_gradients_of_y(void)
{
    fl_op_case c = {.type = "elementwise_mul",
                    .attr = {{"axis", FL_ATTR_INT, .i = 0}},
                    .in = {{"X", {1, 256}}, {"Y", {1}, {2}}},
                    .out = {{"Out", {1, 256}}},
                    .grad = {"Y"}};
    for (int i = 0; i < 256; i++) {
        c.in[0].value[i] = i % 9;
        c.out[0].value[i] = i % 9 * 2;
    }
    fl_check_op(&c);
}

static void work_in_place(void)
{
    fl_check_op(&(fl_op_case){
        .type = "elementwise_sub",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}, {"Y", {2}, {1, 1}}},
        .out = {{"Out", {2, 2}, {0, 1, 2, 3}, .same = "X"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "elementwise_sub",
        .in = {{"X", {2}, {1, 5}}, {"Y", {2}, {3, 1}}},
        .out = {{"Out", {2}, {-2, 4}, .same = "Y"}},
    });
}

static void bear_no_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "elementwise_add",
        .in = {{"X", {0, 2}, .empty = true}, {"Y", {2}, {1, 2}}},
        .out = {{"Out", {0, 2}, .empty = true}},
        .grad = {"X", "Y"},
    });
}

static void keep_the_shape_of_x(void)
{
    CHECK_STR(fl_infer_text("elementwise_add X=f32[-1,8]/1 Y=f32[8]"),
              "Out=f32[-1,8]/1");
    CHECK_STR(fl_infer_text("elementwise_add X=f32[-1,8] Y=f32[-1,8]"),
              "Out=f32[-1,8]");
    CHECK_STR(fl_infer_text("elementwise_mul{axis=0} X=f32[-1,8] Y=f32[-1]"),
              "Out=f32[-1,8]");
    CHECK_STR(fl_infer_text("elementwise_div_grad Y=f32[8] Out=f32[-1,8] "
                            "Out@GRAD=f32[-1,8]"),
              "X@GRAD=f32[-1,8] Y@GRAD=f32[8]");
}

static void say_what_does_not_fit(void)
{
    CHECK_ERR(fl_infer_try("elementwise_add X=f32[2,3] Y=f32[2]"), FL_ESHAPE,
              "elementwise_add: Y [2] does not fit into X [2,3] at axis -1");
    CHECK_ERR(fl_infer_try("elementwise_add{axis=2} X=f32[2,3] Y=f32[3]"),
              FL_ESHAPE,
              "elementwise_add: Y [3] does not fit into X [2,3] at axis 2");
    CHECK_ERR(fl_infer_try("elementwise_add{axis=-2} X=f32[2,3] Y=f32[3]"),
              FL_ESHAPE, "at axis -2");
    CHECK_ERR(fl_infer_try("elementwise_add X=f32[3] Y=f32[2,3]"), FL_ESHAPE,
              "elementwise_add: Y [2,3] does not fit into X [3] at axis -1");
    CHECK_ERR(fl_infer_try("elementwise_add X=f32[3] Y=i64[3]"), FL_ESHAPE,
              "elementwise_add: X is f32, Y is i64, expected one type");
    CHECK_ERR(fl_infer_try("elementwise_add X=bool[3] Y=bool[3]"), FL_ESHAPE,
              "elementwise_add: X is bool, expected f32, f64, i64 or i32");
    CHECK_ERR(fl_infer_try("elementwise_pow X=u8[3] Y=u8[3]"), FL_ESHAPE,
              "elementwise_pow: X is u8, expected f32, f64, i64 or i32");
    CHECK_ERR(fl_infer_try("elementwise_add X=f32[3]"), FL_EINVAL,
              "elementwise_add: input Y is missing");
    CHECK_ERR(
        fl_infer_try("elementwise_mul_grad X=f32[2] Y=f32[2] Out@GRAD=f32[3]"),
        FL_ESHAPE, "elementwise_mul_grad: X is f32[2], Out@GRAD is f32[3]");
}

static void rows_are_multiplied_by_a_number(void)
{
    fl_check_op(&(fl_op_case){
        .type = "elementwise_mul",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}, .rows = "4,0,4", .height = 5},
               {"Y", {1}, {0.5}}},
        .out = {{"Out",
                 {3, 2},
                 {0.5, 1, 1.5, 2, 2.5, 3},
                 .rows = "4,0,4",
                 .height = 5}},
    });
    CHECK_ERR(fl_infer_try("elementwise_mul X=rows:f32[5,2] Y=f32[2]"),
              FL_ESHAPE,
              "elementwise_mul: X is selected rows of f32, Y is f32[2], ");
}

static void whole_numbers_are_raised(void)
{
    fl_check_op(&(fl_op_case){
        .type = "elementwise_pow",
        .in = {{"X", {2, 2}, {-2, 3, 0, 10}, "i64"}, {"Y", {2}, {3, 2}, "i64"}},
        .out = {{"Out", {2, 2}, {-8, 9, 0, 100}, "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "elementwise_pow",
        .in = {{"X", {2}, {2, 7}, "i32"}, {"Y", {2}, {33, 0}, "i32"}},
        .out = {{"Out", {2}, {0, 1}, "i32"}},
    });
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "elementwise_pow",
                  .in = {{"X", {2}, {2, 7}, "i32"}, {"Y", {2}, {1, -1}, "i32"}},
                  .want = {"Out"},
              }),
              FL_EINVAL,
              "elementwise_pow: Y[1] is -1: a whole number has no negative "
              "power");
}

/* 2^31 - 1 is the largest of i32. */
static void whole_numbers_wrap_around(void)
{
    const double most = INT32_MAX, least = INT32_MIN;
    fl_check_op(&(fl_op_case){
        .type = "elementwise_add",
        .in = {{"X", {2}, {most, least}, "i32"}, {"Y", {2}, {1, -1}, "i32"}},
        .out = {{"Out", {2}, {least, most}, "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "elementwise_mul",
        .in = {{"X", {2}, {most, least}, "i32"}, {"Y", {2}, {2, 2}, "i32"}},
        .out = {{"Out", {2}, {-2, 0}, "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "scale",
        .attr = {{"scale", FL_ATTR_FLOAT, .f = 3},
                 {"bias", FL_ATTR_FLOAT, .f = 1}},
        .in = {{"X", {2}, {most, least}, "i32"}},
        .out = {{"Out", {2}, {most - 1, least + 1}, "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "cumsum",
        .in = {{"X", {3}, {most, 1, 1}, "i32"}},
        .out = {{"Out", {3}, {most, least, least + 1}, "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "reduce_sum",
        .in = {{"X", {3}, {most, 1, 1}, "i32"}},
        .out = {{"Out", {1}, {least + 1}, "i32"}},
    });
}

static void rows_are_multiplied_by_a_tensor(void)
{
    CHECK_ERR(fl_infer_try("elementwise_mul X=rows:f32[9,2] Y=rows:f32[1]"),
              FL_ESHAPE,
              "elementwise_mul: Y is selected_rows, expected a tensor");
}

const fl_test fl_tests[] = {
    {"elementwise_mul multiplies rows by a number",
     rows_are_multiplied_by_a_number},
    {"elementwise ops broadcast and have gradients",
     broadcast_and_have_gradients},
    {"elementwise ops count in whole numbers", count_in_whole_numbers},
    {"elementwise ops bear the lowest number", bear_the_lowest_number},
    {"elementwise gradients sum nothing where there is nothing",
     sum_nothing_where_there_is_nothing},
    {"elementwise ops refuse to divide whole numbers by zero",
     refuse_to_divide_by_zero},
    {"elementwise_mod gives the sign of Y to a remainder",
     give_the_sign_of_y_to_a_remainder},
    {"elementwise ops sum long gradients of Y", sum_long_gradients_of_y},
    {"elementwise ops work in place", work_in_place},
    {"elementwise ops bear no elements", bear_no_elements},
    {"elementwise ops keep the shape of X", keep_the_shape_of_x},
    {"elementwise ops say what does not fit", say_what_does_not_fit},
    {"whole numbers are raised", whole_numbers_are_raised},
    {"whole numbers wrap around", whole_numbers_wrap_around},
    {"rows are multiplied by a tensor", rows_are_multiplied_by_a_tensor},
    {0},
};
