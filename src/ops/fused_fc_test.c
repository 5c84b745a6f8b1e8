/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"
#include "op/frame.h"

#include <math.h>

/* X W is 6.5 8 / -0.75 2.5, plus the bias 0.1 -0.2. */
#define LAYER                                                                  \
    {"X", {2, 3}, {1, 2, 3, -1, 0, 0.5}, .lod = "0,2"},                        \
        {"W", {3, 2}, {1, -1, 2, 0, 0.5, 3}},                                  \
    {                                                                          \
        "Bias", {2},                                                           \
        {                                                                      \
            0.1, -0.2                                                          \
        }                                                                      \
    }
static const double pre[] = {6.6, 7.8, -0.65, 2.3};

static double apply(const char *act, double x)
{
    switch (act[0]) {
    case 'r':
        return x > 0 ? x : 0;
    case 's':
        return 1 / (1 + exp(-x));
    case 't':
        return tanh(x);
    default:
        return x;
    }
}

static double slope(const char *act, double y)
{
    switch (act[0]) {
    case 'r':
        return y > 0;
    case 's':
        return y * (1 - y);
    case 't':
        return 1 - y * y;
    default:
        return 1;
    }
}

static const char *const acts[] = {"", "relu", "sigmoid", "tanh"};

static void is_product_bias_and_activation(void)
{
    for (int a = 0; a < 4; a++) {
        fl_op_case c = {
            .type = "fused_fc",
            .attr = {{"act", FL_ATTR_STRING, .s = acts[a]}},
            .in = {LAYER},
            .out = {{"Out", {2, 2}, .lod = "0,2"}},
        };
        for (int i = 0; i < 4; i++)
            c.out[0].value[i] = apply(acts[a], pre[i]);
        fl_check_op(&c);
    }
}

static void flattens_rows_and_needs_no_bias(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_fc",
        .attr = {{"x_num_col_dims", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 2, 3, 1}, {1, 2, 3, -1, 0, 0.5}},
               {"W", {3, 2}, {1, -1, 2, 0, 0.5, 3}}},
        .out = {{"Out", {1, 2, 2}, {6.5, 8, -0.75, 2.5}}},
    });
}

/* --- more rows than one block holds --- */

enum {
    ROWS = 300,
    WIDTH = 600
};

typedef struct layer {
    fl_value x, w, b, y;
} layer;

static fl_value *value_of(void *self, const char *name)
{
    layer *l = self;
    return name[0] == 'x'   ? &l->x
           : name[0] == 'w' ? &l->w
           : name[0] == 'b' ? &l->b
                            : &l->y;
}

static void fill(fl_value *v, int64_t rows, int64_t columns, int step)
{
    fl_shape s = {2, {rows, columns}};
    if (rows == 1)
        s = (fl_shape){1, {columns}};
    v->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&v->tensor, FL_F32, &s));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)v->tensor.data)[i] = (float)(i * step % 17 - 8);
}

static void check_rows(const layer *l)
{
    const float *x = l->x.tensor.data, *w = l->w.tensor.data;
    const float *b = l->b.tensor.data, *y = l->y.tensor.data;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDTH; j++) {
            float sum = b[j];
            for (int p = 0; p < 3; p++)
                sum += x[i * 3 + p] * w[p * WIDTH + j];
            CHECK_NEAR(y[i * WIDTH + j], sum > 0 ? sum : 0, 0);
        }
}

static void walks_blocks_of_rows(void)
{
    layer l = {0};
    fl_frame f;
    fl_arena *a = fl_arena_new();
    fl_desc *d = fl_desc_new(a, "fused_fc");
    fill(&l.x, ROWS, 3, 5);
    fill(&l.w, 3, WIDTH, 7);
    fill(&l.b, 1, WIDTH, 3);
    fl_desc_set_in1(d, "X", "x");
    fl_desc_set_in1(d, "W", "w");
    fl_desc_set_in1(d, "Bias", "b");
    fl_desc_set_out1(d, "Out", "y");
    fl_desc_set_attr(d, &(fl_attr){"act", FL_ATTR_STRING, .s = "relu"});
    CHECK_OK(fl_frame_init(&f, a,
                           fl_registry_find(fl_check_registry(), "fused_fc"), d,
                           NULL, NULL, value_of, &l));
    CHECK_OK(fl_frame_prepare(&f));
    CHECK_OK(fl_frame_run(&f));
    check_rows(&l);
    fl_frame_fini(&f);
    fl_value *all[] = {&l.x, &l.w, &l.b, &l.y};
    for (int i = 0; i < 4; i++)
        fl_value_fini(all[i]);
    fl_arena_free(a);
}

/* --- backward --- */

static void goes_back_through_activation_and_bias(void)
{
    const double y[] = {0.5, 0.25, 0, 0.75, 0.125, 0.9};
    const double d[] = {1, 2, 3, 4, 5, 6};
    for (int a = 0; a < 4; a++) {
        fl_op_case c = {
            .type = "fused_act_bias_grad",
            .attr = {{"act", FL_ATTR_STRING, .s = acts[a]}},
            .in = {{"Out", {3, 2}}, {"Out@GRAD", {3, 2}, .lod = "0,3"}},
            .out = {{"Pre@GRAD", {3, 2}, .same = "Out@GRAD", .lod = "0,3"},
                    {"Bias@GRAD", {2}}},
        };
        for (int i = 0; i < 6; i++) {
            double v = d[i] * slope(acts[a], y[i]);
            c.in[0].value[i] = y[i];
            c.in[1].value[i] = d[i];
            c.out[0].value[i] = v;
            c.out[1].value[i % 2] += v;
        }
        fl_check_op(&c);
    }
}

static void sums_columns_alone(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_act_bias_grad",
        .in = {{"Out@GRAD", {2, 1, 2}, {1, 2, 3, 4}}},
        .out = {{"Bias@GRAD", {2}, {4, 6}}},
    });
    fl_check_op(&(fl_op_case){
        .type = "fused_act_bias_grad",
        .attr = {{"act", FL_ATTR_STRING, .s = "relu"}},
        .in = {{"Out", {2, 2}, {1, 0, 0, 2}},
               {"Out@GRAD", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Pre@GRAD", {2, 2}, {1, 0, 0, 4}}},
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("fused_fc X=f32[-1,13]/1 W=f32[13,4] Bias=f32[4]"),
              "Out=f32[-1,4]/1");
    CHECK_ERR(fl_infer_try("fused_fc X=f32[2,3] W=f32[4,5]"), FL_ESHAPE,
              "fused_fc: W is f32[4,5], expected f32[3,-1]");
    CHECK_ERR(fl_infer_try("fused_fc X=f32[2,3] W=f32[3,5] Bias=f32[4]"),
              FL_ESHAPE, "fused_fc: Bias is f32[4], expected f32[5]");
    CHECK_ERR(fl_infer_try("fused_fc{act=\"x\"} X=f32[2,3] W=f32[3,5]"),
              FL_EINVAL, "fused_fc: act is \"x\", expected relu");
    CHECK_ERR(fl_infer_try("fused_act_bias_grad{act=\"relu\"} "
                           "Out@GRAD=f32[2,3]"),
              FL_EINVAL, "fused_act_bias_grad: input Out is missing");
}

const fl_test fl_tests[] = {
    {"fused_fc is product, bias and activation",
     is_product_bias_and_activation},
    {"fused_fc flattens rows and needs no bias",
     flattens_rows_and_needs_no_bias},
    {"fused_fc walks blocks of rows", walks_blocks_of_rows},
    {"fused_act_bias_grad goes back through both",
     goes_back_through_activation_and_bias},
    {"fused_act_bias_grad sums columns alone", sums_columns_alone},
    {"fused_fc knows its shapes", knows_shapes},
    {0},
};
