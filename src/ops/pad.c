/* pad       Out = X with paddings[2i] elements of pad_value before, and
 *           paddings[2i+1] after, along dim i
 * gradient  X@GRAD = the part of Out@GRAD that came from X */
#include "ops/move.h"

#include <string.h>

/* X as a box within Out, and where in Out it begins. */
static int64_t place(const fl_call *c, const fl_shape *x, const fl_shape *out,
                     bool back, fl_box *b)
{
    const int64_t *paddings = fl_attr_get(c, "paddings")->longs;
    int64_t inner[FL_MAX_RANK], outer[FL_MAX_RANK], first = 0;
    fl_box_steps(x, inner);
    fl_box_steps(out, outer);
    *b = (fl_box){0};
    for (int i = 0; i < x->rank; i++) {
        fl_box_dim(b, x->dim[i], back ? inner[i] : outer[i],
                   back ? outer[i] : inner[i]);
        first += paddings[2 * i] * outer[i];
    }
    return first;
}

static fl_err pad(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    const float value = fl_attr_f32(c, "pad_value");
    size_t size = fl_dtype_size(y->dtype);
    char element[sizeof(double)];
    fl_box b;
    int64_t first = place(c, &x->shape, &y->shape, false, &b);
    FL_TRY(fl_convert(1, FL_F32, &value, y->dtype, element));
    for (int64_t i = 0, n = fl_tensor_numel(y); i < n; i++)
        memcpy((char *)y->data + (size_t)i * size, element, size);
    fl_box_copy(&b, size, (char *)y->data + (size_t)first * size, x->data);
    return FL_OK;
}

static fl_err pad_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    size_t size = fl_dtype_size(dy->dtype);
    fl_box b;
    int64_t first = place(c, &dx->shape, &dy->shape, true, &b);
    fl_box_copy(&b, size, dx->data, (char *)dy->data + (size_t)first * size);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *paddings = fl_meta_attr(x, "paddings");
    fl_shape s = in->shape;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (paddings->n != 2 * s.rank)
        return fl_fail(FL_EINVAL, "%s: %d paddings for X with %d dims",
                       fl_meta_type(x), paddings->n, s.rank);
    for (int i = 0; i < paddings->n; i++) {
        if (paddings->longs[i] < 0)
            return fl_fail(FL_EINVAL, "%s: paddings has %lld", fl_meta_type(x),
                           (long long)paddings->longs[i]);
        if (s.dim[i / 2] >= 0)
            s.dim[i / 2] += paddings->longs[i];
    }
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (paddings->n && !paddings->longs[0] && !paddings->longs[1])
        fl_meta_share_lod(x, "X", "Out"); /* the rows are the same */
    return FL_OK;
}

const fl_op_def fl_op_pad = {
    .type = "pad",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"paddings", FL_ATTR_INTS, .required = true},
             {"pad_value", FL_ATTR_FLOAT}},
    .infer = infer,
    .run = pad,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = pad_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
