/* SPDX-License-Identifier: Apache-2.0 */
/* slice     Out = Input from starts[i] up to ends[i] along axes[i]; both may
 *           count from the end and are held within the axis. Dimensions named
 *           in decrease_axis (of size 1 by then) are dropped
 * gradient  Input@GRAD = Out@GRAD there, 0 elsewhere */
#include "kernel/move.h"

#include <string.h>

static int64_t within(int64_t at, int64_t dim)
{
    if (at < 0)
        at += dim;
    return at < 0 ? 0 : at > dim ? dim : at;
}

static fl_err cut(const fl_infer *x, int i, fl_shape *s)
{
    int64_t axis = fl_meta_attr(x, "axes")->longs[i];
    int64_t start = fl_meta_attr(x, "starts")->longs[i];
    int64_t end = fl_meta_attr(x, "ends")->longs[i];
    int at;
    FL_TRY(fl_move_axis(x, "Input", axis, s->rank, &at));
    for (int j = 0, before; j < i; j++) {
        axis = fl_meta_attr(x, "axes")->longs[j];
        FL_TRY(fl_move_axis(x, "Input", axis, s->rank, &before));
        if (before == at)
            return fl_fail(FL_EINVAL, "slice: axis %d is cut twice", at);
    }
    int64_t dim = fl_meta_in(x, "Input", 0)->shape.dim[at];
    if (dim < 0)
        return FL_OK;
    s->dim[at] = within(end, dim) - within(start, dim);
    if (s->dim[at] < 0 || (s->dim[at] == 0 && dim > 0))
        return fl_fail(FL_ESHAPE,
                       "slice: axis %d has %lld elements, and none of them "
                       "lies in %lld to %lld",
                       at, (long long)dim, (long long)start, (long long)end);
    return FL_OK;
}

static fl_err drop_dims(const fl_infer *x, fl_shape *s)
{
    const fl_attr *drop = fl_meta_attr(x, "decrease_axis");
    bool gone[FL_MAX_RANK] = {0};
    for (int i = 0; i < drop->n; i++) {
        int at;
        FL_TRY(fl_move_axis(x, "Input", drop->longs[i], s->rank, &at));
        if (s->dim[at] != 1 && s->dim[at] != -1)
            return fl_fail(FL_ESHAPE,
                           "slice: decrease_axis %d has %lld left, not 1", at,
                           (long long)s->dim[at]);
        gone[at] = true;
    }
    int rank = 0;
    for (int i = 0; i < s->rank; i++)
        if (!gone[i])
            s->dim[rank++] = s->dim[i];
    s->rank = rank;
    if (!rank) /* the result has one element */
        *s = (fl_shape){1, {1}};
    return FL_OK;
}

static fl_err infer_slice(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "Input", 0);
    const fl_attr *axes = fl_meta_attr(x, "axes");
    int starts = fl_meta_attr(x, "starts")->n,
        ends = fl_meta_attr(x, "ends")->n;
    fl_shape s = in->shape;
    bool rows = false;
    FL_TRY(fl_meta_check(x, "Input", FL_ANY));
    if (starts != axes->n || ends != axes->n)
        return fl_fail(FL_EINVAL, "slice: %d axes, %d starts, %d ends", axes->n,
                       starts, ends);
    for (int i = 0; i < axes->n; i++) {
        FL_TRY(cut(x, i, &s));
        rows |= axes->longs[i] == 0 || axes->longs[i] == -s.rank;
    }
    FL_TRY(drop_dims(x, &s));
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (!rows)
        fl_meta_share_lod(x, "Input", "Out");
    return FL_OK;
}

/* The slice as a box: `dense` is what Out holds, with no dims dropped, and
 * `first` the offset of its first element in Input. */
static fl_box part(const fl_call *c, const fl_shape *whole, bool back,
                   int64_t *first)
{
    const fl_attr *axes = fl_attr_get(c, "axes");
    const int64_t *starts = fl_attr_get(c, "starts")->longs;
    const int64_t *ends = fl_attr_get(c, "ends")->longs;
    int64_t steps[FL_MAX_RANK], out_steps[FL_MAX_RANK];
    fl_shape dense = *whole;
    fl_box b = {0};
    fl_box_steps(whole, steps);
    *first = 0;
    for (int i = 0; i < axes->n; i++) {
        int64_t at = axes->longs[i] + (axes->longs[i] < 0 ? whole->rank : 0);
        int64_t start = within(starts[i], whole->dim[at]);
        dense.dim[at] = within(ends[i], whole->dim[at]) - start;
        *first += start * steps[at];
    }
    fl_box_steps(&dense, out_steps);
    for (int i = 0; i < dense.rank; i++)
        fl_box_dim(&b, dense.dim[i], back ? steps[i] : out_steps[i],
                   back ? out_steps[i] : steps[i]);
    return b;
}

static fl_err slice(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "Input");
    fl_tensor *y = fl_out(c, "Out");
    size_t size = fl_dtype_size(x->dtype);
    int64_t first;
    fl_box b = part(c, &x->shape, false, &first);
    fl_box_copy(&b, size, y->data,
                (const char *)x->data + (size_t)first * size);
    return FL_OK;
}

static fl_err slice_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "Input@GRAD");
    size_t size = fl_dtype_size(dy->dtype);
    int64_t first;
    if (!dx)
        return FL_OK;
    memset(dx->data, 0, fl_tensor_bytes(dx));
    fl_box b = part(c, &dx->shape, true, &first);
    fl_box_copy(&b, size, (char *)dx->data + (size_t)first * size, dy->data);
    return FL_OK;
}

const fl_op_def fl_op_slice = {
    .type = "slice",
    .in = {{"Input"}},
    .out = {{"Out"}},
    .attr =
        {
            {"axes", FL_ATTR_INTS, .required = true},
            {"starts", FL_ATTR_INTS, .required = true},
            {"ends", FL_ATTR_INTS, .required = true},
            {"decrease_axis", FL_ATTR_INTS},
        },
    .infer = infer_slice,
    .run = slice,
    .grad_in = {"Input", "Out@GRAD"},
    .grad_run = slice_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
