/* SPDX-License-Identifier: Apache-2.0 */
/* infer.c - how shape rules read and write metas, and rules that many operators
 * share.
 *
 * A rule runs when an op is added to a program, where a dimension may be
 * unknown (-1), and before the op runs, where all are known. */
#include "op/op.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const fl_meta *fl_meta_in(const fl_infer *x, const char *slot, int i)
{
    int s = fl_op_slot_in(x->def, slot);
    assert(s >= 0 && "a slot of the table");
    return i < x->n_in[s] ? x->in[s][i] : NULL;
}

fl_meta *fl_meta_out(const fl_infer *x, const char *slot, int i)
{
    int s = fl_op_slot_out(x->def, slot);
    assert(s >= 0 && "a slot of the table");
    return i < x->n_out[s] ? x->out[s][i] : NULL;
}

int fl_meta_count_in(const fl_infer *x, const char *slot)
{
    int s = fl_op_slot_in(x->def, slot);
    return s < 0 ? 0 : x->n_in[s];
}

int fl_meta_count_out(const fl_infer *x, const char *slot)
{
    int s = fl_op_slot_out(x->def, slot);
    return s < 0 ? 0 : x->n_out[s];
}

bool fl_meta_running(const fl_infer *x)
{
    return x->running;
}

const char *fl_meta_type(const fl_infer *x)
{
    return x->def->type;
}

const fl_attr *fl_meta_attr(const fl_infer *x, const char *name)
{
    int i = fl_op_attr(x->def, name);
    assert(i >= 0 && "an attribute of the table");
    return &x->attr[i];
}

void fl_meta_set(const fl_infer *x, const char *slot, int i, fl_dtype dtype,
                 const fl_shape *shape)
{
    fl_meta *out = fl_meta_out(x, slot, i);
    if (!out)
        return;
    *out = (fl_meta){FL_LOD_TENSOR, dtype, *shape, 0, NULL};
}

void fl_meta_share_lod(const fl_infer *x, const char *in, const char *out)
{
    const fl_meta *from = fl_meta_in(x, in, 0);
    fl_meta *to = fl_meta_out(x, out, 0);
    if (!from || !to)
        return;
    to->lod_level = from->lod_level;
    to->lod = from->lod;
}

/* "f32, f64 or i64" */
static const char *types_text(unsigned types, char text[96])
{
    static const fl_dtype order[] = {FL_F32, FL_F64, FL_I64, FL_I32, FL_I16,
                                     FL_U8,  FL_I8,  FL_F16, FL_BOOL};
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        unsigned bit = FL_SET(order[i]);
        if (!(types & bit))
            continue;
        types &= ~bit;
        const char *before = !n ? "" : types & ~FL_OR_ROWS ? ", " : " or ";
        n += (size_t)snprintf(text + n, 96 - n, "%s%s", before,
                              fl_dtype_name(order[i]));
    }
    return text;
}

fl_err fl_meta_check(const fl_infer *x, const char *slot, unsigned types)
{
    char text[96];
    for (int i = 0; i < fl_meta_count_in(x, slot); i++) {
        const fl_meta *m = fl_meta_in(x, slot, i);
        if (!m)
            continue;
        bool rows = m->kind == FL_SELECTED_ROWS && types & FL_OR_ROWS;
        if (m->kind != FL_LOD_TENSOR && !rows)
            return fl_fail(FL_ESHAPE, "%s: %s is %s, expected a tensor",
                           fl_meta_type(x), slot, fl_kind_name(m->kind));
        if (!(types & FL_SET(m->dtype)))
            return fl_fail(FL_ESHAPE, "%s: %s is %s, expected %s",
                           fl_meta_type(x), slot, fl_dtype_name(m->dtype),
                           types_text(types, text));
    }
    return FL_OK;
}

fl_err fl_infer_none(fl_infer *x)
{
    return FL_OK;
}

fl_err fl_infer_same(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out)
        *out = *in;
    return FL_OK;
}

fl_err fl_infer_real(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    return fl_infer_same(x);
}

static fl_err check_tensor(const fl_infer *x, const char *slot)
{
    const fl_meta *m = fl_meta_in(x, slot, 0);
    if (m->kind == FL_LOD_TENSOR)
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s is %s, expected a tensor",
                   fl_meta_type(x), slot, fl_kind_name(m->kind));
}

fl_err fl_meta_expect(const fl_infer *x, const char *slot, fl_dtype dtype,
                      const fl_shape *shape)
{
    const fl_meta *m = fl_meta_in(x, slot, 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (!m)
        return FL_OK;
    FL_TRY(check_tensor(x, slot));
    if (m->dtype == dtype && fl_shape_alike(&m->shape, shape))
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s is %s%s, expected %s%s", fl_meta_type(x),
                   slot, fl_dtype_name(m->dtype), fl_shape_text(&m->shape, s),
                   fl_dtype_name(dtype), fl_shape_text(shape, t));
}

fl_err fl_meta_not_empty(const fl_infer *x, const char *slot)
{
    const fl_shape *s = &fl_meta_in(x, slot, 0)->shape;
    char text[FL_SHAPE_TEXT];
    if (!x->running || fl_shape_numel(s))
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s %s has no elements (an empty batch?)",
                   fl_meta_type(x), slot, fl_shape_text(s, text));
}

fl_err fl_meta_alike(const fl_infer *x, const char *a, const char *b)
{
    const fl_meta *m = fl_meta_in(x, a, 0), *n = fl_meta_in(x, b, 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(check_tensor(x, a));
    FL_TRY(check_tensor(x, b));
    if (m->dtype == n->dtype && fl_shape_alike(&m->shape, &n->shape))
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s is %s%s, %s is %s%s", fl_meta_type(x), a,
                   fl_dtype_name(m->dtype), fl_shape_text(&m->shape, s), b,
                   fl_dtype_name(n->dtype), fl_shape_text(&n->shape, t));
}

fl_err fl_infer_grad_alike(fl_infer *x)
{
    const fl_slot *in = x->def->in;
    FL_TRY(fl_meta_check(x, in[0].name, FL_REALS));
    for (int i = 1; i < FL_SLOTS && in[i].name; i++)
        FL_TRY(fl_meta_alike(x, in[0].name, in[i].name));
    fl_meta *out = fl_meta_out(x, "X@GRAD", 0);
    if (out)
        *out = *x->in[0][0];
    return FL_OK;
}

fl_err fl_infer_scalar(fl_infer *x)
{
    fl_shape one = {1, {1}};
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "X", 0)->dtype, &one);
    return FL_OK;
}

/* The first dim of a that b matches, and the number of dims of b without
 * trailing ones. */
static int64_t match_dims(const fl_shape *a, const fl_shape *b, int64_t axis,
                          int *rank)
{
    *rank = b->rank;
    while (*rank > 0 && b->dim[*rank - 1] == 1)
        --*rank;
    return axis == -1 ? a->rank - b->rank : axis;
}

static bool fits(const fl_shape *a, const fl_shape *b, int64_t axis)
{
    int rank;
    axis = match_dims(a, b, axis, &rank);
    if (axis < 0 || axis + rank > a->rank)
        return false;
    for (int i = 0; i < rank; i++) {
        int64_t m = a->dim[axis + i], n = b->dim[i];
        if (m != n && m != -1 && n != -1)
            return false;
    }
    return true;
}

fl_fit fl_fit_of(const fl_shape *a, const fl_shape *b, int64_t axis)
{
    int rank, from = (int)match_dims(a, b, axis, &rank);
    return (fl_fit){fl_shape_span(a, 0, from),
                    fl_shape_span(a, from, from + rank),
                    fl_shape_span(a, from + rank, a->rank)};
}

fl_err fl_meta_fit(const fl_infer *x, const char *a, const char *b,
                   int64_t axis)
{
    const fl_meta *m = fl_meta_in(x, a, 0), *n = fl_meta_in(x, b, 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(check_tensor(x, a));
    FL_TRY(check_tensor(x, b));
    if (m->dtype != n->dtype)
        return fl_fail(FL_ESHAPE, "%s: %s is %s, %s is %s, expected one type",
                       fl_meta_type(x), a, fl_dtype_name(m->dtype), b,
                       fl_dtype_name(n->dtype));
    if (!fits(&m->shape, &n->shape, axis))
        return fl_fail(FL_ESHAPE,
                       "%s: %s %s does not fit into %s %s at axis %lld",
                       fl_meta_type(x), b, fl_shape_text(&n->shape, t), a,
                       fl_shape_text(&m->shape, s), (long long)axis);
    return FL_OK;
}

fl_err fl_infer_broadcast(fl_infer *x)
{
    FL_TRY(fl_meta_fit(x, "X", "Y", fl_meta_attr(x, "axis")->i));
    return fl_infer_same(x);
}

/* Check that every required input is there. */
static fl_err check_inputs(const fl_infer *x)
{
    for (int s = 0; s < FL_SLOTS && x->def->in[s].name; s++) {
        bool list = x->def->in[s].flags & FL_MANY;
        bool there = x->n_in[s] && (list || x->in[s][0]);
        if (!there && !(x->def->in[s].flags & FL_OPTIONAL))
            return fl_fail(FL_EINVAL, "%s: input %s is missing", x->def->type,
                           x->def->in[s].name);
    }
    return FL_OK;
}

/* Check that gradients are real numbers, even if their operator takes any type.
 */
static fl_err check_gradients(const fl_infer *x)
{
    for (int s = 0; s < FL_SLOTS && x->def->in[s].name; s++)
        if (strstr(x->def->in[s].name, FL_GRAD_SUFFIX))
            FL_TRY(fl_meta_check(x, x->def->in[s].name, FL_REALS | FL_OR_ROWS));
    return FL_OK;
}

fl_err fl_infer_run(fl_infer *x)
{
    FL_TRY(check_inputs(x));
    if (x->def->forward)
        FL_TRY(check_gradients(x));
    return x->def->infer(x);
}
