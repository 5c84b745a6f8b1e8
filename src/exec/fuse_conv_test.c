/* SPDX-License-Identifier: Apache-2.0 */
/* The fused ops of a pooled convolution give what the single ops give. */
#include "exec/test_exec.h"

#include "base/str.h"

#include <stdio.h>

enum {
    N = 3,
    C = 20, /* channels, at most */
    SIDE = 11,
    MOST = N * C * SIDE * SIDE,
};

/* One way to convolve and pool. */
typedef struct kind {
    int channels, filters, groups, pad, wh, ww;
} kind;

static const char *const fetched[] = {"p", "dx", "dw", "db"};

/* The program of a kind. dp, the gradient of p, is fed. */
static void write_program(fl_str *s, kind k, const char *more)
{
    const int side = SIDE + 2 * k.pad - 2;
    fl_str_printf(s,
                  "block 0\n  data x: f32[-1,%d,%d,%d]\n"
                  "  data dp: f32[-1,%d,%d,%d]\n"
                  "  param w: f32[%d,%d,3,3]\n  param b: f32[%d]\n",
                  k.channels, SIDE, SIDE, k.filters, side / k.wh, side / k.ww,
                  k.filters, k.channels / k.groups, k.filters);
    for (const char *v = "cardst"; *v; v++)
        fl_str_printf(s, "  var %c: f32[-1,%d,%d,%d]\n", *v, k.filters, side,
                      side);
    fl_str_printf(s,
                  "  var p: f32[-1,%d,%d,%d]\n  var dx: f32[-1,%d,%d,%d]\n"
                  "  var dw: f32[%d,%d,3,3]\n  var db: f32[%d]\n",
                  k.filters, side / k.wh, side / k.ww, k.channels, SIDE, SIDE,
                  k.filters, k.channels / k.groups, k.filters);
    fl_str_printf(
        s,
        "  conv2d(Input=x, Filter=w) -> Output=c {paddings=[%d,%d], "
        "groups=%d}\n"
        "  elementwise_add(X=c, Y=b) -> Out=a {axis=1}\n"
        "  relu(X=a) -> Out=r\n"
        "  pool2d(X=r) -> Out=p {pooling_type=\"max\", ksize=[%d,%d], "
        "strides=[%d,%d]}\n",
        k.pad, k.pad, k.groups, k.wh, k.ww, k.wh, k.ww);
    fl_str_printf(s,
                  "  pool2d_grad(X=r, Out=p, Out@GRAD=dp) -> X@GRAD=d "
                  "{pooling_type=\"max\", ksize=[%d,%d], strides=[%d,%d]}\n"
                  "  relu_grad(Out=r, Out@GRAD=d) -> X@GRAD=s\n"
                  "  elementwise_add_grad(X=c, Y=b, Out@GRAD=s) -> X@GRAD=t, "
                  "Y@GRAD=db {axis=1}\n"
                  "  conv2d_grad(Input=x, Filter=w, Output@GRAD=t) -> "
                  "Input@GRAD=dx, Filter@GRAD=dw {paddings=[%d,%d], "
                  "groups=%d}\n%s",
                  k.wh, k.ww, k.wh, k.ww, k.pad, k.pad, k.groups, more);
}

static void fill(float *x, int n, int seed)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)((i * 37 + seed) % 23) / 8 - 1.3f;
}

/* Run the program. Returns the plan's text. */
static char *run_kind(kind k, const char *more, bool no_fuse, int n_fetch,
                      fl_fetch *got)
{
    static float x[MOST], dp[N * 64 * SIDE * SIDE], w[64 * C * 9], b[64];
    const int side = SIDE + 2 * k.pad - 2;
    rig r;
    fl_str s = {0};
    fl_plan *plan;
    write_program(&s, k, more);
    rig_init(&r, s.at, no_fuse);
    fill(x, MOST, 1);
    fill(dp, N * k.filters * side * side, 5);
    fill(w, 64 * C * 9, 11);
    fill(b, 64, 3);
    rig_set(&r, "w", (fl_shape){4, {k.filters, k.channels / k.groups, 3, 3}},
            w);
    rig_set(&r, "b", (fl_shape){1, {k.filters}}, b);
    const fl_shape xs = {4, {N, k.channels, SIDE, SIDE}};
    const fl_shape ps = {4, {N, k.filters, side / k.wh, side / k.ww}};
    const fl_feed feeds[] = {{"x", fl_tensor_view(FL_F32, &xs, x)},
                             {"dp", fl_tensor_view(FL_F32, &ps, dp)}};
    CHECK_OK(fl_exe_plan(
        r.exe, &(fl_request){r.program, r.scope, 2, n_fetch, feeds, got},
        &plan));
    for (int i = 0; i < 2; i++)
        CHECK_OK(fl_plan_run(plan, feeds, got));
    char *text = fl_plan_text(plan);
    rig_fini(&r);
    fl_str_fini(&s);
    return text;
}

static void check_kind(kind k)
{
    fl_fetch got[2][4] = {0};
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        for (int i = 0; i < 4; i++)
            got[no_fuse][i].name = fetched[i];
        char *text = run_kind(k, "", no_fuse, 4, got[no_fuse]);
        if (!no_fuse)
            CHECK_STR(text, "0 fused_conv_pool\n0 fused_conv_pool_grad\n");
        fl_mem_free(text);
    }
    for (int i = 0; i < 4; i++) {
        const fl_tensor *a = &got[0][i].tensor, *b = &got[1][i].tensor;
        CHECK(fl_shape_equal(&a->shape, &b->shape));
        for (int64_t j = 0; j < fl_tensor_numel(a); j++)
            CHECK_NEAR(((float *)a->data)[j], ((float *)b->data)[j], 1e-4);
        fl_fetch_fini(&got[0][i]);
        fl_fetch_fini(&got[1][i]);
    }
}

static void fused_and_single_ops_agree(void)
{
    const kind kinds[] = {
        {4, 8, 1, 0, 2, 2},   /* the last row and column are in no window */
        {4, 20, 1, 1, 2, 2},  /* more channels than one pass computes */
        {4, 16, 1, 0, 3, 2},  /* another window */
        {4, 8, 4, 0, 2, 2},   /* groups */
        {4, 50, 1, 0, 9, 9},  /* one window */
        {20, 50, 1, 0, 2, 2}, /* gradients by products, conv_last.c */
        {9, 10, 1, 2, 3, 2},  /* the same, at edges */
    };
    for (int i = 0; i < 7; i++)
        check_kind(kinds[i]);
    fl_checked("fused_conv_pool", false);
    fl_checked("fused_conv_pool_grad", false);
}

static void what_somebody_else_reads_is_not_fused(void)
{
    const kind k = {4, 8, 1, 0, 2, 2};
    const char *names[] = {"c", "a", "r", "d", "s", "t"};
    for (int i = 0; i < 6; i++) {
        fl_fetch got = {names[i], {0}};
        char *text = run_kind(k, "", false, 1, &got);
        CHECK(!strstr(text, "fused_conv_pool"));
        fl_mem_free(text);
        fl_fetch_fini(&got);
    }
    fl_fetch got = {"p", {0}};
    char *text = run_kind(k, "  relu(X=r) -> Out=a\n", false, 1, &got);
    CHECK(!strstr(text, "fused_conv_pool"));
    fl_mem_free(text);
    fl_fetch_fini(&got);
}

const fl_test fl_tests[] = {
    {"fused and single ops agree", fused_and_single_ops_agree},
    {"what somebody else reads is not fused",
     what_somebody_else_reads_is_not_fused},
    {0},
};
