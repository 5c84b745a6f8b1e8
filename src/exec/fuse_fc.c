/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_fc.c - fully connected layers: forward, gradient, update.
 *
 *   mul, elementwise_add, act            fused_fc
 *   act_grad, elementwise_add_grad       fused_act_bias_grad
 *   mul_grad's Y@GRAD, sgd               fused_mul_sgd
 *   mul_grad's Y@GRAD, send              fused_mul_send
 *   cross_entropy_grad2, softmax_grad    fused_softmax_ce_grad */
#include "exec/fuse.h"

#include "base/str.h"

#include <string.h>

static const char *const acts[] = {"relu", "sigmoid", "tanh"};

/* The activation that a type (or TYPE_grad) is; NULL: none that can be fused.
 */
static const char *act_of(const char *type, bool grad)
{
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        size_t n = strlen(acts[i]);
        if (!strncmp(type, acts[i], n) &&
            !strcmp(type + n, grad ? "_grad" : ""))
            return acts[i];
    }
    return NULL;
}

static bool is_f32(const fl_lines *l, const char *name)
{
    const fl_var *v = name ? fl_lines_var(l, name) : NULL;
    return v && v->kind == FL_LOD_TENSOR && v->dtype == FL_F32;
}

/* Whether elementwise_add adds the same vector to every row of x. */
static bool is_row_bias(const fl_lines *l, const fl_desc *add)
{
    const char *x = fl_desc_in1(add, "X"), *y = fl_desc_in1(add, "Y");
    if (!is_f32(l, x) || !is_f32(l, y))
        return false;
    const fl_shape *xs = &fl_lines_var(l, x)->shape;
    const fl_shape *ys = &fl_lines_var(l, y)->shape;
    int64_t axis = fl_desc_int(add, "axis", -1);
    return ys->rank == 1 && xs->rank >= 2 && ys->dim[0] > 0 &&
           ys->dim[0] == xs->dim[xs->rank - 1] &&
           (axis == -1 || axis == xs->rank - 1);
}

static void set_str(fl_desc *d, const char *name, const char *value)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_STRING, .s = value});
}

static void set_int(fl_desc *d, const char *name, int64_t value)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_INT, .i = value});
}

/* --- gradient of bias and activation --- */

/* Without an activation X@GRAD is Out@GRAD: let the reader of dx read dy. */
static bool pass_through(fl_lines *l, int at, const char *dx, const char *dy)
{
    if (!dx || !strcmp(dx, FL_EMPTY))
        return true;
    int reader = fl_lines_reader(l, dx, at);
    if (reader < 0 || !fl_lines_private(l, dx, reader) ||
        fl_lines_written(l, dy, at + 1, reader))
        return false;
    fl_desc *d = fl_lines_own(l, reader);
    fl_desc_rename_in(d, dx, dy);
    fl_lines_put(l, reader, d);
    return true;
}

static void fuse_one_bias_grad(fl_lines *l, int at)
{
    const fl_desc *g = l->descs.at[at];
    const char *dy = fl_desc_in1(g, "Out@GRAD");
    const char *dx = fl_desc_out1(g, "X@GRAD");
    const char *db = fl_desc_out1(g, "Y@GRAD");
    if (!is_row_bias(l, g) || !dy || !db || !strcmp(db, FL_EMPTY))
        return;
    fl_desc *f = fl_lines_fused(l, "fused_act_bias_grad", g);
    int before = fl_lines_writer(l, dy, at);
    const fl_desc *a = before >= 0 ? l->descs.at[before] : NULL;
    const char *act = a ? act_of(a->type, true) : NULL;
    if (act && fl_lines_private(l, dy, at)) {
        fl_desc_set_in1(f, "Out", fl_desc_in1(a, "Out"));
        fl_desc_set_in1(f, "Out@GRAD", fl_desc_in1(a, "Out@GRAD"));
        if (dx)
            fl_desc_set_out1(f, "Pre@GRAD", dx);
        set_str(f, "act", act);
        l->descs.at[before] = NULL;
    } else {
        if (!pass_through(l, at, dx, dy))
            return;
        fl_desc_set_in1(f, "Out@GRAD", dy);
    }
    fl_desc_set_out1(f, "Bias@GRAD", db);
    fl_lines_put(l, at, f);
}

void fl_fuse_bias_grad(fl_lines *l)
{
    for (int i = 0; i < l->descs.n; i++)
        if (fl_lines_is(l, i, "elementwise_add_grad"))
            fuse_one_bias_grad(l, i);
}

/* --- forward --- */

static bool is_plain_mul(const fl_lines *l, const fl_desc *mul)
{
    const char *w = fl_desc_in1(mul, "Y");
    return fl_desc_int(mul, "y_num_col_dims", 1) == 1 &&
           is_f32(l, fl_desc_in1(mul, "X")) && is_f32(l, w) &&
           fl_lines_var(l, w)->shape.rank == 2;
}

static void fuse_one_fc(fl_lines *l, int at)
{
    const fl_desc *mul = l->descs.at[at];
    int add = fl_lines_next(l, fl_desc_out1(mul, "Out"), "elementwise_add");
    if (add < 0 || !is_plain_mul(l, mul) || !is_row_bias(l, l->descs.at[add]) ||
        strcmp(fl_desc_in1(l->descs.at[add], "X"), fl_desc_out1(mul, "Out")))
        return;
    const char *out = fl_desc_out1(l->descs.at[add], "Out");
    int last = add, act = fl_lines_reader(l, out, add);
    const char *name = act >= 0 ? act_of(l->descs.at[act]->type, false) : NULL;
    if (name && fl_lines_private(l, out, act))
        last = act;
    const char *inputs[] = {fl_desc_in1(mul, "X"), fl_desc_in1(mul, "Y"),
                            fl_desc_in1(l->descs.at[add], "Y")};
    for (int i = 0; i < 3; i++)
        if (fl_lines_written(l, inputs[i], at, last))
            return;
    fl_desc *f = fl_lines_fused(l, "fused_fc", mul);
    fl_desc_set_in1(f, "X", inputs[0]);
    fl_desc_set_in1(f, "W", inputs[1]);
    fl_desc_set_in1(f, "Bias", inputs[2]);
    fl_desc_set_out1(f, "Out", fl_desc_out1(l->descs.at[last], "Out"));
    set_int(f, "x_num_col_dims", fl_desc_int(mul, "x_num_col_dims", 1));
    set_str(f, "act", last == act ? name : "");
    l->descs.at[at] = l->descs.at[add] = NULL;
    fl_lines_put(l, last, f);
}

void fl_fuse_fc(fl_lines *l)
{
    for (int i = 0; i < l->descs.n; i++)
        if (fl_lines_is(l, i, "mul"))
            fuse_one_fc(l, i);
}

/* --- weight gradient and update --- */

/* The sgd op that updates `param`, if it alone reads `grad`; -1: none. */
static int sgd_of(const fl_lines *l, const char *param, const char *grad)
{
    int i = fl_lines_next(l, grad, "sgd");
    if (i < 0 || strcmp(fl_desc_in1(l->descs.at[i], "Param"), param) ||
        strcmp(fl_desc_in1(l->descs.at[i], "Grad"), grad))
        return -1;
    return i;
}

static void fuse_one_mul_sgd(fl_lines *l, int at)
{
    const fl_desc *g = l->descs.at[at];
    const char *w = fl_desc_in1(g, "Y"), *dw = fl_desc_out1(g, "Y@GRAD");
    const char *x = fl_desc_in1(g, "X"), *dy = fl_desc_in1(g, "Out@GRAD");
    if (!dw || !is_plain_mul(l, g))
        return;
    int sgd = sgd_of(l, w, dw);
    if (sgd < 0)
        return;
    const char *lr = fl_desc_in1(l->descs.at[sgd], "LearningRate");
    fl_desc *f = fl_lines_fused(l, "fused_mul_sgd", g);
    fl_desc_set_in1(f, "X", x);
    fl_desc_set_in1(f, "Out@GRAD", dy);
    fl_desc_set_in1(f, "Param", w);
    fl_desc_set_in1(f, "LearningRate", lr);
    fl_desc_set_out1(f, "ParamOut", w);
    set_int(f, "x_num_col_dims", fl_desc_int(g, "x_num_col_dims", 1));
    /* The update runs directly after the gradient, which is then still in the
     * cache, if no op in between reads the old weights; otherwise it runs
     * where it stood. */
    bool early = !fl_lines_read(l, w, at + 1, sgd) &&
                 !fl_lines_written(l, lr, at + 1, sgd);
    if (!early &&
        (fl_lines_written(l, x, at, sgd) || fl_lines_written(l, dy, at, sgd)))
        return;
    fl_desc_set_out1(fl_lines_own(l, at), "Y@GRAD", FL_EMPTY);
    l->descs.at[sgd] = NULL;
    fl_lines_put(l, early ? at + 1 : sgd, f);
    const char *dx = fl_desc_out1(g, "X@GRAD");
    if (!dx || !strcmp(dx, FL_EMPTY))
        l->descs.at[at] = NULL;
}

void fl_fuse_mul_sgd(fl_lines *l)
{
    for (int i = 0; i < l->descs.n; i++)
        if (fl_lines_is(l, i, "mul_grad"))
            fuse_one_mul_sgd(l, i);
}

/* --- weight gradient and send --- */

static void fuse_one_mul_send(fl_lines *l, int at)
{
    static const char *const to[] = {"epmap", "sections", "send_varnames"};
    const fl_desc *g = l->descs.at[at];
    const char *dw = fl_desc_out1(g, "Y@GRAD");
    if (!dw || !is_plain_mul(l, g) || l->descs.at[at + 1])
        return;
    const int at_send = fl_lines_next(l, dw, "send");
    if (at_send < 0 || fl_desc_in(l->descs.at[at_send], "X")->n != 1)
        return;
    const fl_desc *send = l->descs.at[at_send];
    const fl_args *tokens = fl_desc_out(send, "Out");
    fl_desc *f = fl_lines_fused(l, "fused_mul_send", g);
    fl_desc_set_in1(f, "X", fl_desc_in1(g, "X"));
    fl_desc_set_in1(f, "Out@GRAD", fl_desc_in1(g, "Out@GRAD"));
    fl_desc_set_in1(f, "Y", fl_desc_in1(g, "Y"));
    fl_desc_set_out1(f, "Y@GRAD", dw);
    if (tokens)
        fl_desc_set_out(f, "Out", tokens->n, tokens->name);
    set_int(f, "x_num_col_dims", fl_desc_int(g, "x_num_col_dims", 1));
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        const fl_attr *a = fl_desc_attr(send, to[i]);
        if (a)
            fl_desc_set_attr(f, a);
    }
    fl_desc_set_out1(fl_lines_own(l, at), "Y@GRAD", FL_EMPTY);
    l->descs.at[at_send] = NULL;
    fl_lines_put(l, at + 1, f);
    const char *dx = fl_desc_out1(g, "X@GRAD");
    if (!dx || !strcmp(dx, FL_EMPTY))
        l->descs.at[at] = NULL;
}

void fl_fuse_mul_send(fl_lines *l)
{
    for (int i = 0; i < l->descs.n; i++)
        if (fl_lines_is(l, i, "mul_grad"))
            fuse_one_mul_send(l, i);
}

/* --- softmax and cross entropy --- */

static void fuse_one_softmax_ce(fl_lines *l, int at)
{
    const fl_desc *ce = l->descs.at[at];
    const char *dp = fl_desc_out1(ce, "X@GRAD");
    int softmax = fl_lines_next(l, dp, "softmax_grad");
    int forward = fl_lines_writer(l, fl_desc_in1(ce, "MatchX"), at);
    if (softmax < 0 || !fl_lines_is(l, forward, "cross_entropy2"))
        return;
    const fl_desc *s = l->descs.at[softmax];
    const char *p = fl_desc_in1(s, "Out");
    int64_t axis = fl_desc_int(s, "axis", -1);
    const fl_var *v = fl_lines_var(l, p);
    if (strcmp(p, fl_desc_in1(l->descs.at[forward], "X")) || !is_f32(l, p) ||
        (axis != -1 && axis != v->shape.rank - 1))
        return;
    fl_desc *f = fl_lines_fused(l, "fused_softmax_ce_grad", ce);
    fl_desc_set_in1(f, "Softmax", p);
    fl_desc_set_in1(f, "Label", fl_desc_in1(ce, "Label"));
    fl_desc_set_in1(f, "Y@GRAD", fl_desc_in1(ce, "Y@GRAD"));
    fl_desc_set_out1(f, "X@GRAD", fl_desc_out1(s, "X@GRAD"));
    set_int(f, "ignore_index", fl_desc_int(ce, "ignore_index", -100));
    l->descs.at[at] = NULL;
    fl_lines_put(l, softmax, f);
}

void fl_fuse_softmax_ce(fl_lines *l)
{
    for (int i = 0; i < l->descs.n; i++)
        if (fl_lines_is(l, i, "cross_entropy_grad2"))
            fuse_one_softmax_ce(l, i);
}
