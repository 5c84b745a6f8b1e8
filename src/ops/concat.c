/* SPDX-License-Identifier: Apache-2.0 */
/* concat    Out = all X, concatenated along `axis`
 * gradient  each X@GRAD is its part of Out@GRAD
 *
 * Along axis 0 the sequences of all X are concatenated, too; along any other
 * axis Out has those of the first X. */
#include "kernel/move.h"

static fl_err fits(const fl_infer *x, int i, int axis)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "X", i);
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (a->dtype != b->dtype)
        return fl_fail(FL_ESHAPE, "concat: X 0 is %s, but X %d is %s",
                       fl_dtype_name(a->dtype), i, fl_dtype_name(b->dtype));
    bool same = a->shape.rank == b->shape.rank;
    for (int d = 0; same && d < a->shape.rank; d++)
        same = d == axis || a->shape.dim[d] == b->shape.dim[d] ||
               a->shape.dim[d] < 0 || b->shape.dim[d] < 0;
    if (same)
        return FL_OK;
    return fl_fail(FL_ESHAPE,
                   "concat: X 0 is %s, but X %d is %s, which differ outside "
                   "axis %d",
                   fl_shape_text(&a->shape, s), i, fl_shape_text(&b->shape, t),
                   axis);
}

static fl_err infer_concat(fl_infer *x)
{
    FL_TRY(fl_move_list(x, "X"));
    const fl_meta *first = fl_meta_in(x, "X", 0);
    fl_shape out = first->shape;
    int axis, n = fl_meta_count_in(x, "X");
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_move_axis(x, "X", fl_meta_attr(x, "axis")->i, out.rank, &axis));
    for (int i = 1; i < n; i++) {
        const fl_shape *s = &fl_meta_in(x, "X", i)->shape;
        FL_TRY(fits(x, i, axis));
        for (int d = 0; d < out.rank; d++)
            if (d != axis && out.dim[d] < 0)
                out.dim[d] = s->dim[d];
        out.dim[axis] = fl_dim_add(out.dim[axis], s->dim[axis]);
    }
    fl_meta_set(x, "Out", 0, first->dtype, &out);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

/* How the elements of Out are divided: `outer` runs, of which X i has `part`
 * elements. */
typedef struct cut {
    int n, axis;
    int64_t outer, inner;
    size_t size, step; /* bytes of an element, and of a run of Out */
} cut;

static cut cut_of(const fl_call *c, const fl_tensor *out)
{
    cut k = {.n = fl_in_count(c, "X")};
    int64_t axis = fl_attr_i64(c, "axis");
    const fl_shape *s = &out->shape;
    k.axis = (int)(axis < 0 ? axis + s->rank : axis);
    k.outer = fl_shape_span(s, 0, k.axis);
    k.inner = fl_shape_span(s, k.axis + 1, s->rank);
    k.size = fl_dtype_size(out->dtype);
    k.step = (size_t)(k.inner * s->dim[k.axis]) * k.size;
    return k;
}

static size_t part_of(const cut *k, const fl_tensor *x)
{
    return (size_t)(x->shape.dim[k->axis] * k->inner) * k->size;
}

/* Concatenate the offsets of all X at one level. */
static int64_t join_level(const fl_call *c, int n, int level, int64_t *off)
{
    int64_t at = 0, base = 0;
    off[at++] = 0;
    for (int i = 0; i < n; i++) {
        const fl_lod *l = &fl_in_at(c, "X", i)->lod;
        for (int64_t j = 1; j < l->n[level]; j++)
            off[at++] = base + l->off[level][j];
        base = off[at - 1];
    }
    return at;
}

static fl_err join_lods(fl_call *c, fl_tensor *out, int n)
{
    fl_lod all = {.levels = fl_in_at(c, "X", 0)->lod.levels};
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        const fl_lod *l = &fl_in_at(c, "X", i)->lod;
        if (l->levels !=
            all.levels) { /* if not all X have sequences, Out has none */
            fl_lod_fini(&out->lod);
            return FL_OK;
        }
        for (int k = 0; k < l->levels; k++)
            total += l->n[k];
    }
    int64_t *off = fl_scratch(c, total, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    for (int k = 0; k < all.levels; k++, off += all.n[k - 1]) {
        all.n[k] = join_level(c, n, k, off);
        all.off[k] = off;
    }
    return fl_lod_copy(&out->lod, &all);
}

static fl_err concat(fl_call *c)
{
    fl_tensor *out = fl_out(c, "Out");
    cut k = cut_of(c, out);
    char *to = out->data;
    for (int i = 0; i < k.n; i++) {
        const fl_tensor *x = fl_in_at(c, "X", i);
        size_t part = part_of(&k, x);
        fl_move_runs(k.outer, part, to, k.step, x->data, part);
        to += part;
    }
    if (!k.axis && k.n > 1 && fl_in(c, "X")->lod.levels)
        return join_lods(c, out, k.n);
    return FL_OK;
}

static fl_err concat_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    cut k = cut_of(c, dy);
    const char *from = dy->data;
    for (int i = 0; i < k.n; i++) {
        fl_tensor *dx = fl_out_at(c, "X@GRAD", i);
        size_t part = part_of(&k, fl_in_at(c, "X", i));
        if (dx)
            fl_move_runs(k.outer, part, dx->data, part, from, k.step);
        from += part;
    }
    return FL_OK;
}

const fl_op_def fl_op_concat = {
    .type = "concat",
    .in = {{"X", FL_MANY | FL_GRAD_UNREAD}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INT, .i = 0}},
    .infer = infer_concat,
    .run = concat,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = concat_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
