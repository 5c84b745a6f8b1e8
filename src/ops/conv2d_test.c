/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "check/check.h"
#include "op/frame.h"

#include <string.h>

static void correlates_windows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d",
        .in = {{"Input", {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
               {"Filter", {1, 1, 2, 2}, {1, 2, 3, 4}}},
        .out = {{"Output", {1, 1, 2, 2}, {37, 47, 67, 77}}},
        .grad = {"Input", "Filter"},
    });
}

static void pads_with_zeros_and_strides(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(1, 2)},
                 {"strides", FL_ATTR_INTS, FL_CASE_INTS(2, 3)}},
        .in = {{"Input", {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
               {"Filter", {1, 1, 2, 2}, {1, 2, 3, 4}}},
        .out = {{"Output", {1, 1, 2, 2}, {0, 18, 0, 77}}},
        .grad = {"Input", "Filter"},
    });
}

static void leaves_gaps(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d",
        .attr = {{"dilations", FL_ATTR_INTS, FL_CASE_INTS(2, 2)}},
        .in = {{"Input", {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
               {"Filter", {1, 1, 2, 2}, {1, 2, 3, 4}}},
        .out = {{"Output", {1, 1, 1, 1}, {1 + 6 + 21 + 36}}},
        .grad = {"Input", "Filter"},
    });
}

/* Two images, two channels, three filters; a bias and something to add. */
static void sums_over_channels_and_adds(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d",
        .in = {{"Input", {2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}},
               {"Filter", {3, 2, 1, 1}, {1, 2, 3, 4, -1, 1}},
               {"Bias", {3}, {10, 20, 30}},
               {"ResidualData",
                {2, 3, 1, 2},
                {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}}},
        .out = {{"Output",
                 {2, 3, 1, 2},
                 {18, 21, 36, 43, 33, 33, 31, 34, 65, 72, 34, 34}}},
        .grad = {"Input", "Filter", "Bias", "ResidualData"},
    });
}

static void keeps_groups_apart(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d",
        .attr = {{"groups", FL_ATTR_INT, .i = 2}},
        .in = {{"Input", {2, 4, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8}},
               {"Filter", {2, 2, 1, 1}, {1, 2, 3, 4}}},
        .out = {{"Output", {2, 2, 1, 1}, {5, 25, 17, 53}}},
        .grad = {"Input", "Filter"},
    });
}

static void depthwise_has_a_filter_for_each_channel(void)
{
    fl_check_op(&(fl_op_case){
        .type = "depthwise_conv2d",
        .attr = {{"groups", FL_ATTR_INT, .i = 2},
                 {"use_cudnn", FL_ATTR_BOOL, .b = false}},
        .in = {{"Input", {1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}},
               {"Filter", {2, 1, 2, 1}, {1, 2, 3, 4}}},
        .out = {{"Output", {1, 2, 1, 2}, {7, 10, 43, 50}}},
        .grad = {"Input", "Filter"},
    });
}

/* Channels that fill no vector, and more than one. */
static void sums_over_many_channels(void)
{
    fl_op_case c = {
        .type = "conv2d",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(1, 1)}},
        .in = {{"Input", {1, 19, 2, 2}}, {"Filter", {3, 19, 2, 2}}},
        .out = {{"Output", {1, 3, 3, 3}}},
        .grad = {"Input", "Filter"},
    };
    for (int i = 0; i < 19 * 4; i++)
        c.in[0].value[i] = (i * 7 % 11 - 5) / 4.0;
    for (int i = 0; i < 3 * 19 * 4; i++)
        c.in[1].value[i] = (i * 5 % 13 - 6) / 8.0;
    for (int m = 0; m < 3; m++)
        for (int o = 0; o < 9; o++)
            for (int k = 0; k < 19 * 4; k++) {
                int row = o / 3 + k % 4 / 2 - 1, col = o % 3 + k % 2 - 1;
                if (row >= 0 && row < 2 && col >= 0 && col < 2)
                    c.out[0].value[m * 9 + o] +=
                        c.in[0].value[k / 4 * 4 + row * 2 + col] *
                        c.in[1].value[m * 76 + k];
            }
    fl_check_op(&c);
}

/* --- A frame that runs again and again --- */

enum {
    SLOTS = 6
};

typedef struct layer {
    fl_arena *arena;
    fl_hooks hooks;
    fl_workspace workspace;
    fl_value value[SLOTS];
    const char *name[SLOTS];
} layer;

static fl_value *value_of(void *self, const char *name)
{
    layer *l = self;
    int i = 0;
    while (l->name[i] && strcmp(l->name[i], name))
        i++;
    l->name[i] = name;
    return &l->value[i];
}

static float *fill(layer *l, const char *name, fl_shape shape)
{
    fl_value *v = value_of(l, name);
    v->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&v->tensor, FL_F32, &shape));
    float *x = v->tensor.data;
    for (int64_t i = 0, n = fl_shape_numel(&shape); i < n; i++)
        x[i] = (float)(i * 7 % 11) - 5;
    return x;
}

static fl_frame begin(layer *l, const char *type, const char *const *in,
                      const char *const *out)
{
    fl_desc *d = fl_desc_new(l->arena, type);
    fl_frame f;
    for (; *in; in++)
        fl_desc_set_in1(d, *in, *in);
    for (; *out; out++)
        fl_desc_set_out1(d, *out, *out);
    CHECK_OK(fl_frame_init(&f, l->arena,
                           fl_registry_find(fl_check_registry(), type), d,
                           &l->hooks, NULL, value_of, l));
    return f;
}

/* `n` images of one channel through one 1 by 2 filter, there and back. */
static void check_batch(layer *l, fl_frame frame[2], int64_t n)
{
    const float *x = fill(l, "Input", (fl_shape){4, {n, 1, 1, 3}});
    const float *w = fill(l, "Filter", (fl_shape){4, {1, 1, 1, 2}});
    const float *dy = fill(l, "Output@GRAD", (fl_shape){4, {n, 1, 1, 2}});
    for (int i = 0; i < 2; i++) {
        CHECK_OK(fl_frame_prepare(&frame[i]));
        CHECK_OK(fl_frame_run(&frame[i]));
    }
    const float *y = value_of(l, "Output")->tensor.data;
    const float *dx = value_of(l, "Input@GRAD")->tensor.data;
    const float *dw = value_of(l, "Filter@GRAD")->tensor.data;
    float sum = 0;
    for (int64_t i = 0; i < n; i++, x += 3, y += 2, dx += 3, dy += 2) {
        CHECK_NEAR(y[0], x[0] * w[0] + x[1] * w[1], 0);
        CHECK_NEAR(y[1], x[1] * w[0] + x[2] * w[1], 0);
        CHECK_NEAR(dx[1], dy[0] * w[1] + dy[1] * w[0], 0);
        sum += dy[0] * x[0] + dy[1] * x[1];
    }
    CHECK_NEAR(dw[0], sum, 0);
}

static void follows_the_batch_and_keeps_its_memory(void)
{
    layer l = {.arena = fl_arena_new()};
    l.hooks.workspace = &l.workspace;
    fl_frame f[] = {
        begin(&l, "conv2d", (const char *[]){"Input", "Filter", NULL},
              (const char *[]){"Output", NULL}),
        begin(&l, "conv2d_grad",
              (const char *[]){"Input", "Filter", "Output@GRAD", NULL},
              (const char *[]){"Input@GRAD", "Filter@GRAD", NULL}),
    };
    check_batch(&l, f, 3);
    check_batch(&l, f, 2);
    check_batch(&l, f, 3);
    uint64_t before = fl_mem_count();
    check_batch(&l, f, 3);
    CHECK_INT(fl_mem_count(), before);
    for (int i = 0; i < 2; i++)
        fl_frame_fini(&f[i]);
    for (int i = 0; i < SLOTS; i++)
        fl_value_fini(&l.value[i]);
    fl_mem_free(l.workspace.data);
    fl_arena_free(l.arena);
}

static void bears_no_images(void)
{
    fl_check_op(&(fl_op_case){
        .type = "conv2d",
        .in = {{"Input", {0, 1, 3, 3}, .empty = true},
               {"Filter", {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
        .out = {{"Output", {0, 2, 2, 2}, .empty = true}},
    });
}

static void knows_shapes_before_it_runs(void)
{
    CHECK_STR(fl_infer_text("conv2d{paddings=[1,1],strides=[2,2]} "
                            "Input=f32[-1,3,32,-1] Filter=f32[4,3,3,3]"),
              "Output=f32[-1,4,16,-1]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(
        fl_infer_try("conv2d Input=f32[-1,3,8,8] Filter=f32[4,2,3,3]"),
        FL_ESHAPE,
        "conv2d: Input has 3 channels, Filter [4,2,3,3] with 1 groups expects");
    CHECK_ERR(fl_infer_try(
                  "conv2d{groups=3} Input=f32[-1,3,8,8] Filter=f32[4,1,3,3]"),
              FL_ESHAPE,
              "conv2d: Filter has 4 filters, groups is 3, expected a divisor");
    CHECK_ERR(fl_infer_try("conv2d Input=f32[-1,3,2,2] Filter=f32[4,3,3,3]"),
              FL_ESHAPE,
              "conv2d: Filter [4,3,3,3] does not fit into Input [-1,3,2,2]");
    CHECK_ERR(fl_infer_try("conv2d{data_format=\"NHWC\"} "
                           "Input=f32[-1,3,8,8] Filter=f32[4,3,3,3]"),
              FL_EINVAL, "conv2d: data_format is \"NHWC\", expected NCHW");
    CHECK_ERR(fl_infer_try("conv2d{strides=[1]} "
                           "Input=f32[-1,3,8,8] Filter=f32[4,3,3,3]"),
              FL_EINVAL, "conv2d: strides has 1 numbers, expected 2");
    CHECK_ERR(fl_infer_try("conv2d{strides=[0,1]} "
                           "Input=f32[-1,3,8,8] Filter=f32[4,3,3,3]"),
              FL_EINVAL, "conv2d: strides has 0, expected 1 or more");
    CHECK_ERR(fl_infer_try("conv2d Input=i64[-1,3,8,8] Filter=f32[4,3,3,3]"),
              FL_ESHAPE, "conv2d: Input is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("conv2d Input=f32[-1,3,8] Filter=f32[4,3,3,3]"),
              FL_ESHAPE, "conv2d: Input is [-1,3,8], expected 4 dims");
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "conv2d_grad",
            .in = {{"Input", {1, 1, 3, 3}},
                   {"Filter", {1, 1, 2, 2}},
                   {"Output@GRAD", {1, 1, 3, 3}}},
        }),
        FL_ESHAPE,
        "conv2d_grad: Output@GRAD is f32[1,1,3,3], expected f32[1,1,2,2]");
}

const fl_test fl_tests[] = {
    {"conv2d correlates windows", correlates_windows},
    {"conv2d pads with zeros and strides", pads_with_zeros_and_strides},
    {"conv2d leaves gaps", leaves_gaps},
    {"conv2d sums over channels and adds", sums_over_channels_and_adds},
    {"conv2d keeps groups apart", keeps_groups_apart},
    {"depthwise_conv2d has a filter for each channel",
     depthwise_has_a_filter_for_each_channel},
    {"conv2d sums over many channels", sums_over_many_channels},
    {"conv2d follows the batch and keeps its memory",
     follows_the_batch_and_keeps_its_memory},
    {"conv2d bears no images", bears_no_images},
    {"conv2d knows shapes before it runs", knows_shapes_before_it_runs},
    {"conv2d says what is wrong", says_what_is_wrong},
    {0},
};
