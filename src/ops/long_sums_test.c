/* SPDX-License-Identifier: Apache-2.0 */
/* long_sums_test.c - operators whose outputs are sums over a million rows. A
 * plain chain of so many floats is wrong in its third digit. */
#include "check/check.h"

enum {
    ROWS = 1000003
};

typedef struct input {
    const char *slot; /* NULL ends the list */
    fl_shape shape;
    float value; /* of every element */
} input;

/* `out` is the sum over the rows, each of which gives it `each`. */
typedef struct long_sum {
    const char *type;
    input in[7];
    const char *out;
    double each;
} long_sum;

static const long_sum sums[] = {
    {"elementwise_add_grad",
     {{"X", {2, {ROWS, 3}}, 1},
      {"Y", {1, {3}}, 1},
      {"Out@GRAD", {2, {ROWS, 3}}, 0.99444f}},
     "Y@GRAD",
     0.99444},
    {"elementwise_mul_grad",
     {{"X", {2, {ROWS, 3}}, 0.5f},
      {"Y", {1, {3}}, 1},
      {"Out@GRAD", {2, {ROWS, 3}}, 0.99444f}},
     "Y@GRAD",
     0.49722},
    {"fused_act_bias_grad",
     {{"Out@GRAD", {2, {ROWS, 3}}, 0.99444f}},
     "Bias@GRAD",
     0.99444},
    {"affine_channel_grad",
     {{"X", {4, {ROWS, 2, 1, 1}}, 1},
      {"Scale", {1, {2}}, 1},
      {"Bias", {1, {2}}, 1},
      {"Out@GRAD", {4, {ROWS, 2, 1, 1}}, 0.99444f}},
     "Bias@GRAD",
     0.99444},
    {"conv2d_grad",
     {{"Input", {4, {ROWS, 1, 1, 1}}, 1},
      {"Filter", {4, {2, 1, 1, 1}}, 1},
      {"Bias", {1, {2}}, 1},
      {"Output@GRAD", {4, {ROWS, 2, 1, 1}}, 0.99444f}},
     "Bias@GRAD",
     0.99444},
    {"layer_norm_grad",
     {{"X", {2, {ROWS, 2}}, 1},
      {"Scale", {1, {2}}, 1},
      {"Bias", {1, {2}}, 1},
      {"Mean", {1, {ROWS}}, 0},
      {"Variance", {1, {ROWS}}, 1},
      {"Y@GRAD", {2, {ROWS, 2}}, 0.99444f}},
     "Scale@GRAD",
     0.994435},
    {"group_norm_grad",
     {{"X", {4, {ROWS, 2, 1, 1}}, 1},
      {"Scale", {1, {2}}, 1},
      {"Bias", {1, {2}}, 1},
      {"Mean", {2, {ROWS, 1}}, 0},
      {"Variance", {2, {ROWS, 1}}, 1},
      {"Y@GRAD", {4, {ROWS, 2, 1, 1}}, 0.99444f}},
     "Bias@GRAD",
     0.99444},
    {"prelu_grad",
     {{"X", {2, {ROWS, 1}}, -1},
      {"Alpha", {1, {1}}, 0.25f},
      {"Out@GRAD", {2, {ROWS, 1}}, 0.99444f}},
     "Alpha@GRAD",
     -0.99444},
    {"data_norm_grad",
     {{"X", {2, {ROWS, 2}}, 0.99444f},
      {"BatchSize", {1, {2}}, 1},
      {"BatchSum", {1, {2}}, 0},
      {"BatchSquareSum", {1, {2}}, 1},
      {"Means", {1, {2}}, 0},
      {"Scales", {1, {2}}, 1},
      {"Y@GRAD", {2, {ROWS, 2}}, 1}},
     "BatchSum@GRAD",
     0.99444},
};

static void set_input(fl_vars *v, fl_desc *d, const input *in)
{
    fl_value *x = fl_vars_get(v, in->slot);
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, FL_F32, &in->shape));
    for (int64_t i = 0; i < fl_shape_numel(&in->shape); i++)
        ((float *)x->tensor.data)[i] = in->value;
    fl_desc_set_in1(d, in->slot, in->slot);
}

static void check_sum(const long_sum *s)
{
    fl_vars v;
    fl_vars_init(&v);
    fl_desc *d = fl_desc_new(v.arena, s->type);
    for (const input *in = s->in; in < s->in + 7 && in->slot; in++)
        set_input(&v, d, in);
    fl_desc_set_out1(d, s->out, s->out);
    CHECK_OK(fl_vars_run(&v, d));
    const fl_tensor *y = &fl_vars_get(&v, s->out)->tensor;
    CHECK(fl_tensor_numel(y) > 0);
    for (int64_t i = 0; i < fl_tensor_numel(y); i++)
        CHECK_NEAR(((float *)y->data)[i] / ROWS, s->each, 1e-5);
    fl_vars_fini(&v);
}

static void sums_over_many_rows_keep_fractions(void)
{
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        check_sum(&sums[i]);
}

const fl_test fl_tests[] = {
    {"sums over many rows keep fractions", sums_over_many_rows_keep_fractions},
    {0},
};
