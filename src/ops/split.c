/* SPDX-License-Identifier: Apache-2.0 */
/* split     Out* = X, split along `axis`: into `num` equal parts, or into
 *           `sections` of the sizes given, one of which may be -1
 * gradient  X@GRAD = concat of the Out@GRAD */
#include "kernel/move.h"

static int64_t known_sum(const fl_attr *sections)
{
    int64_t sum = 0;
    for (int i = 0; i < sections->n; i++)
        sum += sections->longs[i] < 0 ? 0 : sections->longs[i];
    return sum;
}

/* The size of part i of n, of an axis with dim elements; -1 if it is unknown.
 */
static int64_t part_of(const fl_attr *sections, int n, int i, int64_t dim)
{
    if (sections->n && sections->longs[i] >= 0)
        return sections->longs[i];
    if (dim < 0)
        return -1;
    return sections->n ? dim - known_sum(sections) : dim / n;
}

static fl_err check_sections(const fl_attr *list, int n, int axis, int64_t dim)
{
    int open = 0;
    int64_t sum = known_sum(list);
    if (list->n != n)
        return fl_fail(FL_EINVAL, "split: %d sections for %d outputs", list->n,
                       n);
    for (int i = 0; i < n; i++)
        open += list->longs[i] < 0;
    if (open > 1)
        return fl_fail(FL_EINVAL,
                       "split: %d sections are -1, at most one may be", open);
    if (dim >= 0 && (open ? sum > dim : sum != dim))
        return fl_fail(FL_ESHAPE,
                       "split: sections add up to %lld, axis %d of X has %lld",
                       (long long)sum, axis, (long long)dim);
    return FL_OK;
}

static fl_err check_num(int64_t num, int n, int axis, int64_t dim)
{
    if (num != n || !n)
        return fl_fail(FL_EINVAL,
                       "split: num is %lld, but there are %d outputs",
                       (long long)num, n);
    if (dim > 0 && dim % n)
        return fl_fail(FL_ESHAPE,
                       "split: axis %d of X has %lld, which cannot be cut into "
                       "%d equal parts",
                       axis, (long long)dim, n);
    return FL_OK;
}

static fl_err infer_split(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *sections = fl_meta_attr(x, "sections");
    int axis, n = fl_meta_count_out(x, "Out");
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_move_axis(x, "X", fl_meta_attr(x, "axis")->i, in->shape.rank,
                        &axis));
    int64_t dim = in->shape.dim[axis];
    FL_TRY(sections->n ? check_sections(sections, n, axis, dim)
                       : check_num(fl_meta_attr(x, "num")->i, n, axis, dim));
    for (int i = 0; i < n; i++) {
        fl_shape s = in->shape;
        fl_meta *out = fl_meta_out(x, "Out", i);
        s.dim[axis] = part_of(sections, n, i, dim);
        fl_meta_set(x, "Out", i, in->dtype, &s);
        if (out && axis) { /* the rows are not split, so the LoD stays */
            out->lod_level = in->lod_level;
            out->lod = in->lod;
        }
    }
    return FL_OK;
}

static fl_err split(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const fl_attr *sections = fl_attr_get(c, "sections");
    const fl_shape *s = &x->shape;
    int64_t at = fl_attr_i64(c, "axis");
    int axis = (int)(at < 0 ? at + s->rank : at), n = fl_out_count(c, "Out");
    int64_t outer = fl_shape_span(s, 0, axis), dim = s->dim[axis];
    size_t inner =
        (size_t)fl_shape_span(s, axis + 1, s->rank) * fl_dtype_size(x->dtype);
    const char *from = x->data;
    for (int i = 0; i < n; i++) {
        fl_tensor *out = fl_out_at(c, "Out", i);
        size_t part = (size_t)part_of(sections, n, i, dim) * inner;
        if (out)
            fl_move_runs(outer, part, out->data, part, from,
                         (size_t)dim * inner);
        from += part;
    }
    return FL_OK;
}

static fl_err split_grad(fl_grads *g)
{
    const fl_args *out = fl_desc_out(g->fwd, "Out");
    const fl_attr *axis = fl_desc_attr(g->fwd, "axis");
    fl_desc *d = fl_grad_emit(g, "concat");
    const char **names =
        fl_arena_alloc(g->arena, (size_t)out->n * sizeof *names);
    for (int i = 0; i < out->n; i++)
        names[i] = fl_grad_name(g->arena, out->name[i]);
    fl_desc_set_in(d, "X", out->n, names);
    fl_desc_set_out1(d, "Out",
                     fl_grad_name(g->arena, fl_desc_in1(g->fwd, "X")));
    if (axis)
        fl_desc_set_attr(d, axis);
    return FL_OK;
}

const fl_op_def fl_op_split = {
    .type = "split",
    .in = {{"X"}},
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"sections", FL_ATTR_INTS},
            {"num", FL_ATTR_INT, .i = 0},
            {"axis", FL_ATTR_INT, .i = 0},
        },
    .infer = infer_split,
    .run = split,
    .make_grad = split_grad,
};
