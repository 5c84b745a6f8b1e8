/* SPDX-License-Identifier: Apache-2.0 */
/* multiplex  row i of Out = row i of X[Ids[i]]
 * gradient   each X@GRAD has its rows of Out@GRAD, and 0 in the others */
#include "kernel/move.h"

#include <string.h>

static size_t row_bytes(const fl_tensor *t)
{
    return (size_t)fl_shape_span(&t->shape, 1, t->shape.rank) *
           fl_dtype_size(t->dtype);
}

static fl_err multiplex(fl_call *c)
{
    const fl_tensor *ids = fl_in(c, "Ids");
    fl_tensor *y = fl_out(c, "Out");
    const size_t row = row_bytes(y);
    for (int64_t i = 0; i < y->shape.dim[0]; i++) {
        const int64_t k = fl_move_index_at(ids, i);
        if (k < 0 || k >= fl_in_count(c, "X"))
            return fl_fail(FL_EINVAL,
                           "multiplex: Ids %lld is %lld, but X has %d inputs",
                           (long long)i, (long long)k, fl_in_count(c, "X"));
        if (row)
            memcpy((char *)y->data + (size_t)i * row,
                   (char *)fl_in_at(c, "X", (int)k)->data + (size_t)i * row,
                   row);
    }
    return FL_OK;
}

static fl_err multiplex_grad(fl_call *c)
{
    const fl_tensor *ids = fl_in(c, "Ids"), *dy = fl_in(c, "Out@GRAD");
    const size_t row = row_bytes(dy);
    for (int k = 0; k < fl_out_count(c, "X@GRAD"); k++) {
        fl_tensor *dx = fl_out_at(c, "X@GRAD", k);
        if (!dx || !row)
            continue;
        for (int64_t i = 0; i < dy->shape.dim[0]; i++) {
            char *to = (char *)dx->data + (size_t)i * row;
            if (fl_move_index_at(ids, i) == k)
                memcpy(to, (char *)dy->data + (size_t)i * row, row);
            else
                memset(to, 0, row);
        }
    }
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_move_list(x, "X"));
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "Ids", FL_INDEXES));
    const fl_meta *first = fl_meta_in(x, "X", 0);
    const fl_shape *ids = &fl_meta_in(x, "Ids", 0)->shape;
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (!first)
        return fl_fail(FL_EINVAL, "%s: there is no X", fl_meta_type(x));
    for (int i = 1; i < fl_meta_count_in(x, "X"); i++) {
        const fl_meta *m = fl_meta_in(x, "X", i);
        if (m->dtype != first->dtype ||
            !fl_shape_alike(&m->shape, &first->shape))
            return fl_fail(
                FL_ESHAPE, "%s: X 0 is %s%s, but X %d is %s%s", fl_meta_type(x),
                fl_dtype_name(first->dtype), fl_shape_text(&first->shape, s), i,
                fl_dtype_name(m->dtype), fl_shape_text(&m->shape, t));
    }
    const fl_shape want = {2, {first->shape.dim[0], 1}};
    if (first->shape.rank < 2 || !fl_shape_alike(ids, &want))
        return fl_fail(FL_ESHAPE, "%s: X is %s, Ids %s, expected [N,..], [N,1]",
                       fl_meta_type(x), fl_shape_text(&first->shape, s),
                       fl_shape_text(ids, t));
    fl_meta_set(x, "Out", 0, first->dtype, &first->shape);
    return FL_OK;
}

const fl_op_def fl_op_multiplex = {
    .type = "multiplex",
    .in = {{"Ids", FL_NOGRAD}, {"X", FL_MANY}},
    .out = {{"Out"}},
    .infer = infer,
    .run = multiplex,
    .grad_in = {"Ids", "X", "Out@GRAD"},
    .grad_run = multiplex_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
