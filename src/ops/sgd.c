/* SPDX-License-Identifier: Apache-2.0 */
/* sgd  ParamOut = Param - LearningRate * Grad
 *
 * Param may be selected rows: those that Grad lists, which must be there. */
#define FL_SELF "ops/sgd.c"
#include "kernel/rows.h"
#include "kernel/rule.h"

#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(sgd)(int64_t n, REAL *p, const REAL *g,
                              REAL *const *state, const fl_hyper *h)
{
    const REAL lr = (REAL)h->lr;
    for (int64_t i = 0; i < n; i++)
        p[i] -= lr * g[i];
}

#else

static const fl_rule rule = {
    .subtracts = true,
    .f32 = sgd_f32,
    .f64 = sgd_f64,
};

/* Update row by row; each row is found by its id. */
static fl_err update_rows(fl_call *c, fl_rows *p, const fl_rows *g)
{
    const fl_tensor *rate = fl_in(c, "LearningRate");
    const fl_hyper h = {.lr = rate->dtype == FL_F64
                                  ? *(const double *)rate->data
                                  : (double)*(const float *)rate->data};
    const int64_t width = fl_rows_width(p);
    const size_t bytes = (size_t)width * fl_dtype_size(p->value.dtype);
    void *const none[FL_RULE_STATES] = {0};
    fl_rows_map map;
    FL_TRY(fl_rows_map_init(&map, c, p));
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t row = fl_rows_index(g)[i];
        const int64_t at = fl_rows_map_find(&map, row);
        if (at < 0)
            return fl_fail(FL_EINVAL,
                           "sgd: Grad lists row %lld, which Param "
                           "does not have",
                           (long long)row);
        fl_rule_apply(&rule, p->value.dtype, width,
                      (char *)p->value.data + (size_t)at * bytes,
                      (char *)g->value.data + (size_t)i * bytes, none, &h);
    }
    return FL_OK;
}

static fl_err sgd(fl_call *c)
{
    const fl_value *p = fl_in_value(c, "Param", 0);
    fl_value *out = fl_out_value(c, "ParamOut", 0);
    if (p->kind != FL_SELECTED_ROWS)
        return fl_rule_run(c);
    if (out != p)
        FL_TRY(fl_value_copy(out, p));
    return update_rows(c, &out->rows, &fl_in_value(c, "Grad", 0)->rows);
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *p = fl_meta_in(x, "Param", 0), *g = fl_meta_in(x, "Grad", 0);
    fl_meta *out = fl_meta_out(x, "ParamOut", 0);
    const fl_shape one = {1, {1}};
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (p->kind != FL_SELECTED_ROWS)
        return fl_rule_infer(x);
    FL_TRY(fl_meta_check(x, "Param", FL_REALS | FL_OR_ROWS));
    FL_TRY(fl_meta_check(x, "LearningRate", FL_REALS));
    FL_TRY(fl_meta_expect(x, "LearningRate",
                          fl_meta_in(x, "LearningRate", 0)->dtype, &one));
    fl_shape like = g->shape;
    if (like.rank && p->shape.rank)
        like.dim[0] = p->shape.dim[0]; /* the heights may differ */
    if (g->kind != FL_SELECTED_ROWS || g->dtype != p->dtype ||
        !fl_shape_alike(&like, &p->shape))
        return fl_fail(FL_ESHAPE,
                       "sgd: Param is selected rows %s%s, Grad is %s %s%s, "
                       "expected selected rows of the same width",
                       fl_dtype_name(p->dtype), fl_shape_text(&p->shape, s),
                       fl_kind_name(g->kind), fl_dtype_name(g->dtype),
                       fl_shape_text(&g->shape, t));
    if (out)
        *out = *p;
    return FL_OK;
}

const fl_op_def fl_op_sgd = {
    .type = "sgd",
    .in = {{"Param"}, {"LearningRate"}, {"Grad"}},
    .out = {{"ParamOut"}},
    .infer = infer,
    .run = sgd,
    .rule = &rule,
};

#endif
