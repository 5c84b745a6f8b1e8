/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>
#include <string.h>

enum {
    N = 6
};

typedef struct row {
    const char *type;
    fl_attr attr[3];
    double x[N], y[N]; /* away from corners, so that differences hold */
} row;

/* clang-format off */
#define F(name, value) {name, FL_ATTR_FLOAT, .f = value}
static const row rows[] = {
    {"abs", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {2.5, 1.3, 0.4, 0.3, 1.2, 3.7}},
    {"acos", {{0}},
     {-0.9, -0.5, -0.2, 0.1, 0.4, 0.8},
     {2.690566, 2.094395, 1.772154, 1.470629, 1.159279, 0.6435011}},
    {"asin", {{0}},
     {-0.9, -0.5, -0.2, 0.1, 0.4, 0.8},
     {-1.11977, -0.5235988, -0.2013579, 0.1001674, 0.4115168, 0.9272952}},
    {"atan", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-1.19029, -0.9151007, -0.3805064, 0.2914568, 0.8760581, 1.306833}},
    {"brelu", {{0}},
     {-3, -0.5, 0.5, 7, 23, 30},
     {0, 0, 0.5, 7, 23, 24}},
    {"brelu", {F("t_min", -1.0f), F("t_max", 2.0f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-1, -1, -0.4, 0.3, 1.2, 2}},
    {"ceil", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-2, -1, 0, 1, 2, 4}},
    {"cos", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.8011436, 0.2674988, 0.921061, 0.9553365, 0.3623578, -0.8481}},
    {"elu", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.917915, -0.7274682, -0.32968, 0.3, 1.2, 3.7}},
    {"elu", {F("alpha", 0.5f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.4589575, -0.3637341, -0.16484, 0.3, 1.2, 3.7}},
    {"exp", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0.082085, 0.2725318, 0.67032, 1.349859, 3.320117, 40.4473}},
    {"floor", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-3, -2, -1, 0, 1, 3}},
    {"hard_shrink", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-2.5, -1.3, 0, 0, 1.2, 3.7}},
    {"hard_shrink", {F("threshold", 2.0f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-2.5, 0, 0, 0, 0, 3.7}},
    {"hard_sigmoid", {{0}},
     {-3, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, 0.24, 0.42, 0.56, 0.74, 1}},
    {"hard_sigmoid", {F("slope", 0.5f), F("offset", 0.25f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, 0, 0.05, 0.4, 0.85, 1}},
    {"hard_swish", {{0}},
     {-4, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, -0.3683333, -0.1733333, 0.165, 0.84, 3.7}},
    {"hard_swish", {F("threshold", 2.0f), F("scale", 4.0f), F("offset", 0.5f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, 0, -0.01, 0.06, 0.51, 1.85}},
    {"leaky_relu", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.05, -0.026, -0.008, 0.3, 1.2, 3.7}},
    {"leaky_relu", {F("alpha", 0.5f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-1.25, -0.65, -0.2, 0.3, 1.2, 3.7}},
    {"log", {{0}},
     {0.1, 0.35, 0.9, 1.7, 3.2, 8.5},
     {-2.302585, -1.049822, -0.1053605, 0.5306283, 1.163151, 2.140066}},
    {"logsigmoid", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-2.57889, -1.541008, -0.9130153, -0.5543552, -0.2632825, -0.02442285}},
    {"pow", {{0}},
     {0.1, 0.35, 0.9, 1.7, 3.2, 8.5},
     {0.1, 0.35, 0.9, 1.7, 3.2, 8.5}},
    {"pow", {F("factor", 2.5f)},
     {0.1, 0.35, 0.9, 1.7, 3.2, 8.5},
     {0.003162278, 0.07247198, 0.7684335, 3.768099, 18.31787, 210.643137}},
    {"reciprocal", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.4, -0.7692308, -2.5, 3.333333, 0.8333333, 0.2702703}},
    {"relu", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, 0, 0, 0.3, 1.2, 3.7}},
    {"relu6", {{0}},
     {-2, -0.5, 0.5, 3, 5.5, 7},
     {0, 0, 0.5, 3, 5.5, 6}},
    {"relu6", {F("threshold", 2.0f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, 0, 0, 0.3, 1.2, 2}},
    {"round", {{0}},
     {-2.6, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-3, -1, 0, 0, 1, 4}},
    {"rsqrt", {{0}},
     {0.1, 0.35, 0.9, 1.7, 3.2, 8.5},
     {3.162278, 1.690309, 1.054093, 0.766965, 0.559017, 0.3429972}},
    {"selu", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-1.613786, -1.278961, -0.5796101, 0.3152103, 1.260841, 3.887594}},
    {"sigmoid", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0.07585818, 0.214165, 0.4013123, 0.5744425, 0.7685248, 0.975873}},
    {"sin", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.5984721, -0.9635582, -0.3894183, 0.2955202, 0.9320391, -0.5298361}},
    {"soft_relu", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0.07888973, 0.2410085, 0.5130153, 0.8543552, 1.463282, 3.724423}},
    {"soft_relu", {F("threshold", 2.0f)},
     {-1.5, -1.3, -0.4, 0.3, 1.2, 1.8},
     {0.2014133, 0.2410085, 0.5130153, 0.8543552, 1.463282, 1.952978}},
    {"softplus", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0.07888973, 0.2410085, 0.5130153, 0.8543552, 1.463282, 3.724423}},
    {"softshrink", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-2, -0.8, 0, 0, 0.7, 3.2}},
    {"softshrink", {F("lambda", 2.0f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.5, 0, 0, 0, 0, 1.7}},
    {"softsign", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.7142857, -0.5652174, -0.2857143, 0.2307692, 0.5454545, 0.787234}},
    {"sqrt", {{0}},
     {0.1, 0.35, 0.9, 1.7, 3.2, 8.5},
     {0.3162278, 0.591608, 0.9486833, 1.30384, 1.788854, 2.915476}},
    {"square", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {6.25, 1.69, 0.16, 0.09, 1.44, 13.69}},
    {"stanh", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-1.599579, -1.204359, -0.4491589, 0.340325, 1.143248, 1.691953}},
    {"stanh", {F("scale_a", 0.5f), F("scale_b", 2.0f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-1.696567, -1.14334, -0.3947506, 0.2977701, 1.074099, 1.903492}},
    {"swish", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.1896454, -0.2784145, -0.1605249, 0.1723328, 0.9222297, 3.61073}},
    {"swish", {F("beta", 2.0f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.01673213, -0.08987995, -0.1240102, 0.1936969, 1.100193, 3.69774}},
    {"tanh", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-0.9866143, -0.8617232, -0.379949, 0.2913126, 0.8336546, 0.9987782}},
    {"tanh_shrink", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {-1.513386, -0.4382768, -0.02005104, 0.008687388, 0.3663454, 2.701222}},
    {"thresholded_relu", {{0}},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, 0, 0, 0, 1.2, 3.7}},
    {"thresholded_relu", {F("threshold", -1.0f)},
     {-2.5, -1.3, -0.4, 0.3, 1.2, 3.7},
     {0, 0, -0.4, 0.3, 1.2, 3.7}},
};
/* clang-format on */

static fl_op_case case_of(const row *r)
{
    fl_op_case c = {.type = r->type,
                    .in = {{"X", {2, 3}}},
                    .out = {{"Out", {2, 3}}},
                    .grad = {"X"}};
    memcpy(c.attr, r->attr, sizeof r->attr);
    memcpy(c.in[0].value, r->x, sizeof r->x);
    memcpy(c.out[0].value, r->y, sizeof r->y);
    return c;
}

static void give_known_values_and_slopes(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_op_case c = case_of(&rows[i]);
        fl_check_op(&c);
    }
}

static void work_in_place(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_op_case c = case_of(&rows[i]);
        c.out[0].same = "X";
        c.grad[0] = NULL;
        fl_check_op(&c);
    }
}

static void keep_shape_type_and_lod(void)
{
    CHECK_STR(fl_infer_text("relu X=f32[-1,8]"), "Out=f32[-1,8]");
    CHECK_STR(fl_infer_text("tanh X=f64[-1,8]/1"), "Out=f64[-1,8]/1");
    fl_check_op(&(fl_op_case){
        .type = "relu",
        .in = {{"X", {3, 1}, {-1, 2, 3}, .lod = "0,1,3"}},
        .out = {{"Out", {3, 1}, {0, 2, 3}, .lod = "0,1,3"}},
    });
}

static void bear_no_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sigmoid",
        .in = {{"X", {0, 4}, .empty = true}},
        .out = {{"Out", {0, 4}, .empty = true}},
        .grad = {"X"},
    });
}

static void refuse_what_they_cannot_compute(void)
{
    CHECK_ERR(fl_infer_try("relu X=i64[2]"), FL_ESHAPE,
              "relu: X is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("exp X=rows:f32[9,2]"), FL_ESHAPE,
              "exp: X is selected_rows, expected a tensor");
    CHECK_ERR(fl_infer_try("relu_grad Out=f32[2] Out@GRAD=f32[3]"), FL_ESHAPE,
              "relu_grad: Out is f32[2], Out@GRAD is f32[3]");
    CHECK_ERR(fl_infer_try("relu_grad Out=f32[2] Out@GRAD=f64[2]"), FL_ESHAPE,
              "relu_grad: Out is f32[2], Out@GRAD is f64[2]");
    CHECK_ERR(fl_infer_try("relu_grad Out@GRAD=f32[2]"), FL_EINVAL,
              "relu_grad: input Out is missing");
}

static void say_nan_outside_their_domain(void)
{
    fl_check_op(&(fl_op_case){
        .type = "log",
        .in = {{"X", {3}, {-1, 0, INFINITY}}},
        .out = {{"Out", {3}, {NAN, -INFINITY, INFINITY}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "sqrt",
        .in = {{"X", {2}, {-1, 0}}},
        .out = {{"Out", {2}, {NAN, 0}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "relu",
        .in = {{"X", {2}, {NAN, -INFINITY}}},
        .out = {{"Out", {2}, {NAN, 0}}},
    });
}

static void do_not_overflow(void)
{
    fl_check_op(&(fl_op_case){
        .type = "softplus",
        .in = {{"X", {2}, {-1000, 1000}}},
        .out = {{"Out", {2}, {0, 1000}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "logsigmoid",
        .in = {{"X", {2}, {-1000, 1000}}},
        .out = {{"Out", {2}, {-1000, 0}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "soft_relu",
        .in = {{"X", {2}, {-1000, 1000}}},
        .out = {{"Out", {2}, {0, 40}}},
    });
}

const fl_test fl_tests[] = {
    {"activations give known values and slopes", give_known_values_and_slopes},
    {"activations work in place", work_in_place},
    {"activations keep shape, type and LoD", keep_shape_type_and_lod},
    {"activations bear no elements", bear_no_elements},
    {"activations refuse what they cannot compute",
     refuse_what_they_cannot_compute},
    {"activations say NaN outside their domain", say_nan_outside_their_domain},
    {"activations do not overflow", do_not_overflow},
    {0},
};
