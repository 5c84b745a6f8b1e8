/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - one operator for every rule, on dense and on sparse gradients.
 *
 * Outputs are normally the same variables as the inputs; where a program names
 * others, the inputs are copied there first and then updated in place.
 *
 * Sparse gradients are visited in ascending order of rows. Rows listed twice
 * are added up in order of appearance, into one row of scratch, so that no
 * merged copy of the gradient is ever made. */
#include "kernel/embed.h"
#include "kernel/rule.h"
#include "op/lanes.h"

#include <string.h>

/* --- shapes --- */

static fl_err check_like_param(const fl_infer *x, const char *slot)
{
    const fl_meta *p = fl_meta_in(x, "Param", 0), *m = fl_meta_in(x, slot, 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (m->dtype != p->dtype)
        return fl_fail(FL_ESHAPE, "%s: Param is %s, %s is %s", fl_meta_type(x),
                       fl_dtype_name(p->dtype), slot, fl_dtype_name(m->dtype));
    if (!fl_shape_alike(&p->shape, &m->shape))
        return fl_fail(FL_ESHAPE, "%s: Param is %s, %s is %s", fl_meta_type(x),
                       fl_shape_text(&p->shape, s), slot,
                       fl_shape_text(&m->shape, t));
    return FL_OK;
}

static fl_err check_number(const fl_infer *x, const char *slot)
{
    const fl_meta *m = fl_meta_in(x, slot, 0);
    char s[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, slot, FL_REALS));
    int64_t n = fl_shape_numel(&m->shape);
    if (n != 1 && n != -1)
        return fl_fail(FL_ESHAPE, "%s: %s is %s, expected one element",
                       fl_meta_type(x), slot, fl_shape_text(&m->shape, s));
    return FL_OK;
}

static fl_err check_grad(const fl_infer *x)
{
    FL_TRY(check_like_param(x, "Grad"));
    if (x->def->rule->whole &&
        fl_meta_in(x, "Grad", 0)->kind == FL_SELECTED_ROWS)
        return fl_fail(FL_ESHAPE,
                       "%s: Grad is selected rows, expected a dense gradient: "
                       "the step depends on the norm of all of Param",
                       fl_meta_type(x));
    return FL_OK;
}

static void set_like(const fl_infer *x, const char *in, const char *out)
{
    fl_meta *m = fl_meta_out(x, out, 0);
    if (m)
        *m = *fl_meta_in(x, in, 0);
}

fl_err fl_rule_infer(fl_infer *x)
{
    const fl_rule *r = x->def->rule;
    FL_TRY(fl_meta_check(x, "Param", FL_REALS));
    FL_TRY(fl_meta_check(x, "Grad", FL_REALS | FL_OR_ROWS));
    FL_TRY(check_grad(x));
    if (fl_op_slot_in(x->def, "LearningRate") >= 0)
        FL_TRY(check_number(x, "LearningRate"));
    for (int i = 0; i < FL_RULE_POWERS && r->power[i].slot; i++)
        FL_TRY(check_number(x, r->power[i].slot));
    set_like(x, "Param", "ParamOut");
    for (int i = 0; i < FL_RULE_STATES && r->state[i].in; i++) {
        if (!fl_meta_in(x, r->state[i].in, 0))
            continue;
        FL_TRY(fl_meta_check(x, r->state[i].in, FL_REALS));
        FL_TRY(check_like_param(x, r->state[i].in));
        set_like(x, r->state[i].in, r->state[i].out);
    }
    return FL_OK;
}

/* --- one step --- */

typedef struct job {
    const fl_rule *rule;
    fl_hyper hyper;
    fl_dtype dtype;
    size_t size; /* of an element */
    int64_t n;   /* elements of the parameter */
    char *p, *state[FL_RULE_STATES];
} job;

static double number(const fl_tensor *t)
{
    return t->dtype == FL_F64 ? *(const double *)t->data
                              : *(const float *)t->data;
}

static fl_hyper read_step(const fl_call *c, const fl_rule *r)
{
    fl_rule_step s = {.def = c->def, .attr = c->attr};
    if (fl_op_slot_in(c->def, "LearningRate") >= 0)
        s.lr = number(fl_in(c, "LearningRate"));
    for (int i = 0; i < FL_RULE_POWERS && r->power[i].slot; i++)
        s.power[i] = number(fl_in(c, r->power[i].slot));
    return fl_rule_prepare(r, &s);
}

/* The elements that are updated in place: those of the output, initially a copy
 * of the input. NULL if the input is absent. If the output has no variable, the
 * input itself is updated. */
static void *in_place(const fl_call *c, const char *in, const char *out)
{
    const fl_tensor *from = fl_in(c, in), *to = fl_out(c, out);
    if (!from || !to || to == from)
        return from ? from->data : NULL;
    if (to->data != from->data && fl_tensor_bytes(from))
        memcpy(to->data, from->data, fl_tensor_bytes(from));
    return to->data;
}

static void begin_job(fl_call *c, job *j)
{
    const fl_rule *r = c->def->rule;
    const fl_tensor *p = fl_in(c, "Param");
    *j = (job){.rule = r, .dtype = p->dtype, .n = fl_tensor_numel(p)};
    j->size = fl_dtype_size(p->dtype);
    j->hyper = read_step(c, r);
    j->p = in_place(c, "Param", "ParamOut");
    for (int i = 0; i < FL_RULE_STATES && r->state[i].in; i++)
        j->state[i] = in_place(c, r->state[i].in, r->state[i].out);
}

/* Update the elements [from, from + n) of the parameter with the gradient g. */
static void apply_rule(const job *j, int64_t from, int64_t n, const void *g)
{
    const size_t at = (size_t)from * j->size;
    void *state[FL_RULE_STATES];
    for (int i = 0; i < FL_RULE_STATES; i++)
        state[i] = j->state[i] ? j->state[i] + at : NULL;
    fl_rule_apply(j->rule, j->dtype, n, j->p + at, g, state, &j->hyper);
}

/* --- selected rows --- */

enum {
    ZEROS = 1024, /* elements of unlisted rows that are updated at once */
};

/* Scratch memory of one call. */
typedef struct space {
    fl_row_at *order;
    char *zeros; /* a gradient of 0 for n_zeros elements, at least one row */
    int64_t n_zeros;
    char *sum; /* one row */
} space;

static fl_err reserve(fl_call *c, const job *j, int64_t width, int64_t rows,
                      space *out)
{
    space s = {.n_zeros = width > ZEROS ? width : ZEROS};
    const size_t order = 2 * (size_t)rows * sizeof *s.order;
    const size_t zeros = (size_t)s.n_zeros * j->size;
    char *at =
        fl_scratch(c, (int64_t)(order + zeros + (size_t)width * j->size), 1);
    if (!at)
        return FL_ENOMEM;
    s.order = (fl_row_at *)at;
    s.zeros = memset(at + order, 0, zeros);
    s.sum = at + order + zeros;
    *out = s;
    return FL_OK;
}

static fl_err check_listed(const fl_call *c, const fl_rows *g)
{
    const int64_t *row = fl_rows_index(g);
    for (int64_t i = 0; i < g->n; i++)
        if (row[i] < 0 || row[i] >= g->height)
            return fl_fail(
                FL_EINVAL, "%s: Grad lists row %lld, Param has %lld rows",
                c->def->type, (long long)row[i], (long long)g->height);
    return FL_OK;
}

/* Rows of a large table are prefetched (kernel/embed.h). */
static void warm_row(const job *j, int64_t row, int64_t width)
{
    const size_t bytes = (size_t)width * j->size, at = (size_t)row * bytes;
    __builtin_prefetch(j->p + at, 1);
    __builtin_prefetch(j->p + at + bytes - 1, 1);
    for (int i = 0; i < FL_RULE_STATES && j->state[i]; i++) {
        __builtin_prefetch(j->state[i] + at, 1);
        __builtin_prefetch(j->state[i] + at + bytes - 1, 1);
    }
}

/* Param - lr * Grad, in the order in which rows are listed. */
static void subtract_rows(const job *j, const fl_rows *g, int64_t width)
{
    const fl_embed e = {.ids = fl_rows_index(g),
                        .n = g->n,
                        .rows = g->n,
                        .width = width,
                        .step = width,
                        .padding = -1};
    if (j->dtype == FL_F64)
        fl_embed_add_f64(&e, -j->hyper.lr, g->value.data, (double *)j->p);
    else
        fl_embed_add_f32(&e, -(float)j->hyper.lr, g->value.data, (float *)j->p);
}

static void apply_zeros(const job *j, const space *s, int64_t from, int64_t to)
{
    for (int64_t n; from < to; from += n) {
        n = to - from < s->n_zeros ? to - from : s->n_zeros;
        apply_rule(j, from, n, s->zeros);
    }
}

static void add_row(const job *j, int64_t n, const void *x, void *y)
{
    if (j->dtype == FL_F64)
        fl_add_f64(n, x, y);
    else
        fl_add_f32(n, x, y);
}

/* The gradient of the row at position *i of the order; *i is moved past it. */
static const char *next_row(const job *j, const space *s, const fl_row_at *at,
                            const fl_rows *g, int64_t width, int64_t *i)
{
    const char *value = g->value.data;
    const size_t bytes = (size_t)width * j->size;
    const uint64_t row = at[*i].row;
    const char *first = value + (size_t)at[(*i)++].at * bytes;
    if (*i == g->n || at[*i].row != row)
        return first;
    memcpy(s->sum, first, bytes);
    for (; *i < g->n && at[*i].row == row; (*i)++)
        add_row(j, width, value + (size_t)at[*i].at * bytes, s->sum);
    return s->sum;
}

static void apply_merged(const job *j, const space *s, const fl_rows *g,
                         int64_t width, bool everywhere)
{
    const fl_row_at *at = fl_rows_order(g, s->order);
    int64_t done = 0; /* elements before this one were visited */
    for (int64_t i = 0; i < g->n;) {
        const int64_t from = fl_rows_index(g)[at[i].at] * width;
        if (!everywhere && i + FL_EMBED_AHEAD < g->n)
            warm_row(j, fl_rows_index(g)[at[i + FL_EMBED_AHEAD].at], width);
        const char *grad = next_row(j, s, at, g, width, &i);
        if (everywhere)
            apply_zeros(j, s, done, from);
        apply_rule(j, from, width, grad);
        done = from + width;
    }
    if (everywhere)
        apply_zeros(j, s, done, j->n);
}

static bool lazy(const fl_call *c)
{
    return fl_op_attr(c->def, "lazy_mode") >= 0 && fl_attr_bool(c, "lazy_mode");
}

/* As in Fluid, a gradient without rows has no effect: nothing decays. */
static fl_err update_rows(fl_call *c, const job *j, const fl_rows *g)
{
    FL_TRY(check_listed(c, g));
    const int64_t width = g->n ? fl_rows_width(g) : 0;
    if (!width)
        return FL_OK;
    if (j->rule->subtracts) {
        subtract_rows(j, g, width);
        return FL_OK;
    }
    space s;
    FL_TRY(reserve(c, j, width, g->n, &s));
    apply_merged(j, &s, g, width, j->rule->decays && !lazy(c));
    return FL_OK;
}

fl_err fl_rule_run(fl_call *c)
{
    job j;
    begin_job(c, &j);
    const fl_value *g = fl_in_value(c, "Grad", 0);
    if (g->kind == FL_SELECTED_ROWS)
        return update_rows(c, &j, &g->rows);
    apply_rule(&j, 0, j.n, g->tensor.data);
    return FL_OK;
}
