/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>
#include <string.h>

#define X24                                                                    \
    {                                                                          \
        "X", {2, 3, 4},                                                        \
        {                                                                      \
            0.5, 2, -1, 3, 1.5, -2, 0.75, 4, 2.5, 1, -3, 0.25, 6, -0.5, 2.25,  \
                1.25, -4, 3.5, 5, -1.5, 0.6, 7, 1.75, -2.5                     \
        }                                                                      \
    }

typedef struct row {
    const char *type;
    int n;
    int64_t dim[3];
    bool keep;
    int64_t shape[3];
    double out[12];
} row;

/* Every place in which dimensions can vanish. */
static const row rows[] = {
    {"reduce_sum",
     1,
     {0},
     false,
     {3, 4},
     {6.5, 1.5, 1.25, 4.25, -2.5, 1.5, 5.75, 2.5, 3.1, 8, -1.25, -2.25}},
    {"reduce_sum",
     1,
     {1},
     false,
     {2, 4},
     {4.5, 1, -3.25, 7.25, 2.6, 10, 9, -2.75}},
    {"reduce_sum", 1, {2}, true, {2, 3, 1}, {4.5, 4.25, 0.75, 9, 3, 6.85}},
    {"reduce_sum", 2, {0, 2}, false, {3}, {13.5, 7.25, 7.6}},
    {"reduce_sum", 2, {1, -1}, false, {2}, {9.5, 18.85}},
    {"reduce_sum", 3, {0, 1, 2}, true, {1, 1, 1}, {28.35}},
    {"reduce_sum", 2, {-3, -2}, false, {4}, {7.1, 11, 5.75, 4.5}},
    {"reduce_mean",
     1,
     {0},
     false,
     {3, 4},
     {3.25, 0.75, 0.625, 2.125, -1.25, 0.75, 2.875, 1.25, 1.55, 4, -0.625,
      -1.125}},
    {"reduce_mean",
     1,
     {1},
     false,
     {2, 4},
     {1.5, 0.333333333, -1.08333333, 2.41666667, 0.866666667, 3.33333333, 3,
      -0.916666667}},
    {"reduce_mean", 2, {1, -1}, false, {2}, {0.791666667, 1.57083333}},
    {"reduce_mean", 3, {0, 1, 2}, true, {1, 1, 1}, {1.18125}},
    {"reduce_mean",
     2,
     {-3, -2},
     false,
     {4},
     {1.18333333, 1.83333333, 0.958333333, 0.75}},
    {"reduce_max",
     1,
     {0},
     false,
     {3, 4},
     {6, 2, 2.25, 3, 1.5, 3.5, 5, 4, 2.5, 7, 1.75, 0.25}},
    {"reduce_max", 1, {1}, false, {2, 4}, {2.5, 2, 0.75, 4, 6, 7, 5, 1.25}},
    {"reduce_max", 1, {2}, true, {2, 3, 1}, {3, 4, 2.5, 6, 5, 7}},
    {"reduce_max", 2, {0, 2}, false, {3}, {6, 5, 7}},
    {"reduce_max", 2, {1, -1}, false, {2}, {4, 7}},
    {"reduce_max", 3, {0, 1, 2}, true, {1, 1, 1}, {7}},
    {"reduce_max", 2, {-3, -2}, false, {4}, {6, 7, 5, 4}},
    {"reduce_min",
     1,
     {0},
     false,
     {3, 4},
     {0.5, -0.5, -1, 1.25, -4, -2, 0.75, -1.5, 0.6, 1, -3, -2.5}},
    {"reduce_min",
     1,
     {1},
     false,
     {2, 4},
     {0.5, -2, -3, 0.25, -4, -0.5, 1.75, -2.5}},
    {"reduce_min", 2, {1, -1}, false, {2}, {-3, -4}},
    {"reduce_min", 3, {0, 1, 2}, true, {1, 1, 1}, {-4}},
    {"reduce_min", 2, {-3, -2}, false, {4}, {-4, -2, -3, -2.5}},
    {"reduce_prod",
     1,
     {0},
     false,
     {3, 4},
     {3, -1, -2.25, 3.75, -6, -7, 3.75, -6, 1.5, 7, -5.25, -0.625}},
    {"reduce_prod",
     1,
     {1},
     false,
     {2, 4},
     {1.875, -4, 2.25, 3, -14.4, -12.25, 19.6875, 4.6875}},
    {"reduce_prod", 2, {1, -1}, false, {2}, {-50.625, 16279.1016}},
    {"reduce_prod", 3, {0, 1, 2}, true, {1, 1, 1}, {-824129.517}},
    {"reduce_prod", 2, {-3, -2}, false, {4}, {-27, 49, 44.296875, 14.0625}},
};

static fl_op_case case_of(const row *r)
{
    fl_op_case c = {.type = r->type,
                    .attr = {{"dim", FL_ATTR_INTS, .n = r->n, .longs = r->dim},
                             {"keep_dim", FL_ATTR_BOOL, .b = r->keep}},
                    .in = {X24},
                    .out = {{"Out"}},
                    .grad = {"X"},
                    .grad_tolerance = 1e-4};
    memcpy(c.out[0].dim, r->shape, sizeof r->shape);
    memcpy(c.out[0].value, r->out, sizeof r->out);
    return c;
}

static void fold_any_dimensions(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_op_case c = case_of(&rows[i]);
        fl_check_op(&c);
    }
}

static void fold_all_if_told(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reduce_sum",
        .attr = {{"reduce_all", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {1}, {10}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "reduce_max",
        .attr = {{"reduce_all", FL_ATTR_BOOL, .b = true},
                 {"keep_dim", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {2, 2}, {1, 7, 3, 4}}},
        .out = {{"Out", {1, 1}, {7}}},
        .grad = {"X"},
    });
}

static void fold_whole_numbers(void)
{
    static const struct {
        const char *type;
        double out;
    } of[] = {{"reduce_sum", -6},
              {"reduce_mean", -2},
              {"reduce_max", 1},
              {"reduce_min", -4},
              {"reduce_prod", 12}};
    const char *types[] = {"i64", "i32"};
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 2; t++)
            fl_check_op(&(fl_op_case){
                .type = of[i].type,
                .in = {{"X", {3}, {1, -4, -3}, .dtype = types[t]}},
                .out = {{"Out", {1}, {of[i].out}, .dtype = types[t]}},
            });
}

static void fold_long_runs(void)
{
    fl_op_case c = {.type = "reduce_sum",
                    .in = {{"X", {101}}},
                    .out = {{"Out", {1}, {5050}}},
                    .grad = {"X"}};
    for (int i = 0; i < 101; i++)
        c.in[0].value[i] = i;
    fl_check_op(&c);
    c.type = "reduce_max";
    c.grad[0] = NULL;
    c.in[0].value[77] = 1000;
    c.out[0].value[0] = 1000;
    fl_check_op(&c);
    c.in[0].value[50] = NAN;
    c.out[0].value[0] = NAN;
    fl_check_op(&c);
}

static void bear_no_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reduce_sum",
        .in = {{"X", {0, 2}, .empty = true}},
        .out = {{"Out", {2}, {0, 0}}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "reduce_mean",
        .in = {{"X", {0, 2}, .empty = true}},
        .attr = {{"dim", FL_ATTR_INTS, .n = 1, .longs = (int64_t[]){1}}},
        .out = {{"Out", {0}, .empty = true}},
    });
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "reduce_mean",
                  .in = {{"X", {0, 2}, .empty = true}},
                  .want = {"Out"},
              }),
              FL_ESHAPE,
              "reduce_mean: X [0,2] has no elements (an empty batch?)");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "reduce_max",
                  .in = {{"X", {0, 2}, .dtype = "i64", .empty = true}},
                  .want = {"Out"},
              }),
              FL_ESHAPE, "reduce_max: X [0,2] has no elements");
}

/* Central differences fail at a tie; the rule is Fluid's. */
static void give_every_equal_element_the_gradient(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reduce_max_grad",
        .in = {{"X", {2, 2}, {3, 3, 1, 2}},
               {"Out", {2}, {3, 3}},
               {"Out@GRAD", {2}, {0.5, 0.25}}},
        .out = {{"X@GRAD", {2, 2}, {0.5, 0.25, 0, 0}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "reduce_min_grad",
        .attr = {{"dim", FL_ATTR_INTS, .n = 1, .longs = (int64_t[]){1}}},
        .in = {{"X", {2, 2}, {3, 3, 1, 2}},
               {"Out", {2}, {3, 1}},
               {"Out@GRAD", {2}, {0.5, 0.25}}},
        .out = {{"X@GRAD", {2, 2}, {0.5, 0.5, 0.25, 0}}},
    });
}

static void know_their_shape(void)
{
    CHECK_STR(fl_infer_text("reduce_sum{dim=[1]} X=f32[-1,8]/1"),
              "Out=f32[-1]/1");
    CHECK_STR(fl_infer_text("reduce_sum{dim=[0]} X=f32[-1,8]/1"), "Out=f32[8]");
    CHECK_STR(fl_infer_text("reduce_sum{dim=[-1],keep_dim=true} X=f32[-1,8]"),
              "Out=f32[-1,1]");
    CHECK_STR(fl_infer_text("reduce_sum{dim=[]} X=f32[-1,8]"), "Out=f32[1]");
    CHECK_STR(fl_infer_text("reduce_sum X=f32[8]"), "Out=f32[1]");
    CHECK_ERR(fl_infer_try("reduce_sum{dim=[2]} X=f32[2,3]"), FL_ESHAPE,
              "reduce_sum: axis 2 is not an axis of X [2,3]");
    CHECK_ERR(fl_infer_try("reduce_sum{dim=[-3]} X=f32[2,3]"), FL_ESHAPE,
              "reduce_sum: axis -3 is not an axis of X [2,3]");
    CHECK_ERR(fl_infer_try("reduce_max X=bool[2]"), FL_ESHAPE,
              "reduce_max: X is bool, expected f32, f64, i64 or i32");
    CHECK_ERR(fl_infer_try("reduce_sum_grad X=f32[2,3] Out@GRAD=f32[2]"),
              FL_ESHAPE, "Out@GRAD is f32[2], expected f32[3]");
}

static void asks_all_and_any_of_bools(void)
{
    fl_check_op(&(fl_op_case){
        .type = "reduce_all",
        .attr = {{"dim", FL_ATTR_INTS, FL_CASE_INTS(-1)}},
        .in = {{"X", {3, 2}, {1, 1, 0, 1, 0, 0}, .dtype = "bool"}},
        .out = {{"Out", {3}, {1, 0, 0}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "reduce_any",
        .attr = {{"dim", FL_ATTR_INTS, FL_CASE_INTS(0)},
                 {"keep_dim", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {3, 2}, {0, 1, 0, 1, 0, 0}, .dtype = "bool"}},
        .out = {{"Out", {1, 2}, {0, 1}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "reduce_any",
        .attr = {{"reduce_all", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {0, 2}, .dtype = "bool", .empty = true}},
        .out = {{"Out", {1}, {0}, .dtype = "bool"}},
    });
    CHECK_STR(fl_infer_text("reduce_all{dim=[1]} X=bool[-1,8]"),
              "Out=bool[-1]");
    CHECK_ERR(fl_infer_try("reduce_any X=f32[2,3]"), FL_ESHAPE,
              "reduce_any: X is f32, expected bool");
}

/* The mean over dim of many numbers that are all equal. */
static void check_long_mean(fl_shape shape, int64_t dim)
{
    fl_vars v;
    fl_vars_init(&v);
    fl_value *x = fl_vars_get(&v, "x");
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, FL_F32, &shape));
    for (int64_t i = 0; i < fl_shape_numel(&shape); i++)
        ((float *)x->tensor.data)[i] = 0.99444f;
    fl_desc *d = fl_desc_new(v.arena, "reduce_mean");
    fl_desc_set_in1(d, "X", "x");
    fl_desc_set_out1(d, "Out", "y");
    fl_desc_set_attr(d, &(fl_attr){"dim", FL_ATTR_INTS, .n = 1, .longs = &dim});
    CHECK_OK(fl_vars_run(&v, d));
    const fl_tensor *y = &fl_vars_get(&v, "y")->tensor;
    for (int64_t i = 0; i < fl_tensor_numel(y); i++)
        CHECK_NEAR(((float *)y->data)[i], 0.99444, 1e-5);
    fl_vars_fini(&v);
}

/* A plain sum of so many floats is wrong in its third digit. */
static void long_sums_keep_fractions(void)
{
    check_long_mean((fl_shape){1, {3000017}}, 0);
    check_long_mean((fl_shape){2, {2, 1000003}}, 1);
    check_long_mean((fl_shape){2, {1000003, 3}}, 0);
    check_long_mean((fl_shape){3, {2, 500009, 3}}, 1);
}

const fl_test fl_tests[] = {
    {"reduce_all and reduce_any look at bools", asks_all_and_any_of_bools},
    {"reduce ops fold any dimensions", fold_any_dimensions},
    {"reduce ops fold all if told so", fold_all_if_told},
    {"reduce ops fold whole numbers", fold_whole_numbers},
    {"reduce ops fold long runs", fold_long_runs},
    {"reduce ops bear no elements", bear_no_elements},
    {"reduce_max and reduce_min give every equal element the gradient",
     give_every_equal_element_the_gradient},
    {"reduce ops know their shape", know_their_shape},
    {"long sums keep fractions", long_sums_keep_fractions},
    {0},
};
