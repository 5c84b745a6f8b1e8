/* infer.c - shape rules: how they read and write, and those that many share.
 *
 * A rule runs twice in the life of an operator: when it is appended, where a
 * dimension may be unknown (-1), and before it runs, where none is. */
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

/* Same dtype, and dims that may be the same. */
static bool alike(const fl_meta *a, fl_dtype dtype, const fl_shape *shape)
{
    if (a->dtype != dtype || a->shape.rank != shape->rank)
        return false;
    for (int i = 0; i < shape->rank; i++) {
        int64_t m = a->shape.dim[i], n = shape->dim[i];
        if (m != n && m != -1 && n != -1)
            return false;
    }
    return true;
}

fl_err fl_meta_expect(const fl_infer *x, const char *slot, fl_dtype dtype,
                      const fl_shape *shape)
{
    const fl_meta *m = fl_meta_in(x, slot, 0);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (!m)
        return FL_OK;
    if (m->kind != FL_LOD_TENSOR)
        return fl_fail(FL_ESHAPE, "%s: %s is %s, expected a tensor",
                       fl_meta_type(x), slot, fl_kind_name(m->kind));
    if (alike(m, dtype, shape))
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s is %s%s, expected %s%s", fl_meta_type(x),
                   slot, fl_dtype_name(m->dtype), fl_shape_text(&m->shape, s),
                   fl_dtype_name(dtype), fl_shape_text(shape, t));
}

fl_err fl_infer_grad_alike(fl_infer *x)
{
    const fl_meta *first = x->in[0][0];
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, x->def->in[0].name, FL_REALS));
    for (int i = 1; i < FL_SLOTS && x->def->in[i].name; i++) {
        const fl_meta *m = x->in[i][0];
        if (!alike(first, m->dtype, &m->shape))
            return fl_fail(
                FL_ESHAPE, "%s: %s is %s%s, %s is %s%s", fl_meta_type(x),
                x->def->in[0].name, fl_dtype_name(first->dtype),
                fl_shape_text(&first->shape, s), x->def->in[i].name,
                fl_dtype_name(m->dtype), fl_shape_text(&m->shape, t));
    }
    fl_meta *out = fl_meta_out(x, "X@GRAD", 0);
    if (out)
        *out = *first;
    return FL_OK;
}

fl_err fl_infer_scalar(fl_infer *x)
{
    fl_shape one = {1, {1}};
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "X", 0)->dtype, &one);
    return FL_OK;
}

/* Y's dims, without trailing ones, are a run of X's dims that starts at axis
 * (-1: at the end). */
static bool fits(const fl_shape *x, const fl_shape *y, int64_t axis)
{
    int rank = y->rank;
    if (axis == -1)
        axis = x->rank - y->rank;
    while (rank > 0 && y->dim[rank - 1] == 1)
        rank--;
    if (axis < 0 || axis + rank > x->rank)
        return false;
    for (int i = 0; i < rank; i++) {
        int64_t a = x->dim[axis + i], b = y->dim[i];
        if (a != b && a != -1 && b != -1)
            return false;
    }
    return true;
}

fl_err fl_infer_broadcast(fl_infer *x)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    int64_t axis = fl_meta_attr(x, "axis")->i;
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (a->dtype != b->dtype)
        return fl_fail(FL_ESHAPE, "%s: X is %s, Y is %s, expected one type",
                       fl_meta_type(x), fl_dtype_name(a->dtype),
                       fl_dtype_name(b->dtype));
    if (!fits(&a->shape, &b->shape, axis))
        return fl_fail(FL_ESHAPE,
                       "%s: Y %s does not fit into X %s at axis %lld",
                       fl_meta_type(x), fl_shape_text(&b->shape, t),
                       fl_shape_text(&a->shape, s), (long long)axis);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out)
        *out = *a;
    return FL_OK;
}

/* Every input that is not optional is there. */
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

fl_err fl_infer_run(fl_infer *x)
{
    FL_TRY(check_inputs(x));
    return x->def->infer(x);
}
