/* SPDX-License-Identifier: Apache-2.0 */
/* gather    Out[i] = X[Index[i]], row by row
 * gradient  X@GRAD[Index[i]] += Out@GRAD[i], in the order of i */
#define FL_SELF "ops/gather.c"
#include "kernel/move.h"
#include "op/real.h"

#include <string.h>
#ifdef REAL

static fl_err FN(gather_grad)(fl_call *c)
{
    const fl_tensor *index = fl_in(c, "Index");
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    int64_t width = fl_shape_span(&dx->shape, 1, dx->shape.rank);
    memset(dx->data, 0, fl_tensor_bytes(dx));
    for (int64_t i = 0, n = fl_tensor_numel(index); i < n; i++)
        FN(fl_add)
    (width, dy + i * width,
     (REAL *)dx->data + fl_move_index_at(index, i) * width);
    return FL_OK;
}

#else

static fl_err infer_gather(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_shape *index = &fl_meta_in(x, "Index", 0)->shape;
    char text[FL_SHAPE_TEXT];
    fl_shape s = in->shape;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "Index", FL_INDEXES));
    if (index->rank != 1 && !(index->rank == 2 && index->dim[1] == 1))
        return fl_fail(FL_ESHAPE, "gather: Index is %s, expected [n] or [n,1]",
                       fl_shape_text(index, text));
    if (s.rank < 1)
        return fl_fail(FL_ESHAPE, "gather: X [] has no rows");
    s.dim[0] = index->dim[0];
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    return FL_OK;
}

static fl_err check_index(const fl_tensor *index, int64_t rows)
{
    for (int64_t i = 0, n = fl_tensor_numel(index); i < n; i++) {
        int64_t at = fl_move_index_at(index, i);
        if (at < 0 || at >= rows)
            return fl_fail(FL_EINVAL,
                           "gather: Index %lld is %lld, X has %lld rows",
                           (long long)i, (long long)at, (long long)rows);
    }
    return FL_OK;
}

static fl_err gather(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *index = fl_in(c, "Index");
    char *to = fl_out(c, "Out")->data;
    const char *from = x->data;
    size_t bytes = (size_t)fl_shape_span(&x->shape, 1, x->shape.rank) *
                   fl_dtype_size(x->dtype);
    FL_TRY(check_index(index, x->shape.dim[0]));
    for (int64_t i = 0, n = fl_tensor_numel(index); i < n; i++)
        memcpy(to + (size_t)i * bytes,
               from + (size_t)fl_move_index_at(index, i) * bytes, bytes);
    return FL_OK;
}

static fl_err gather_grad(fl_call *c)
{
    FL_TRY(check_index(fl_in(c, "Index"), fl_in(c, "X")->shape.dim[0]));
    return fl_in(c, "Out@GRAD")->dtype == FL_F64 ? gather_grad_f64(c)
                                                 : gather_grad_f32(c);
}

const fl_op_def fl_op_gather = {
    .type = "gather",
    .in = {{"X"}, {"Index", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"overwrite", FL_ATTR_BOOL, .b = true}}, /* gradients add up */
    .infer = infer_gather,
    .run = gather,
    .grad_in = {"X", "Index", "Out@GRAD"},
    .grad_run = gather_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

#endif
