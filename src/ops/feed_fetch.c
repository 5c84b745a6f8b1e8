/* SPDX-License-Identifier: Apache-2.0 */
/* Operators through which a saved program gets its inputs and returns results.
 *
 *     feed   Out = element `col` of X, a FEED_MINIBATCH
 *     fetch  element `col` of Out, a FETCH_LIST, = X
 *
 * Plans usually feed and fetch variables without them. */
#include "op/op.h"

enum {
    MAX_COL = 4096 /* a larger column number in a program is an error */
};

static fl_err feed(fl_call *c)
{
    const fl_value *x = fl_in_value(c, "X", 0);
    fl_value *out = fl_out_value(c, "Out", 0);
    int64_t col = fl_attr_i64(c, "col");
    if (!out)
        return FL_OK;
    if (col < 0 || col >= x->array.n || !x->array.at[col].data)
        return fl_fail(FL_EINVAL,
                       "feed: col is %lld, which is not one of the columns "
                       "that are fed (%lld, counted from 0)",
                       (long long)col, (long long)x->array.n);
    out->kind = FL_LOD_TENSOR;
    return fl_tensor_ref(&out->tensor, &x->array.at[col]);
}

static fl_err fetch(fl_call *c)
{
    const fl_value *x = fl_in_value(c, "X", 0);
    fl_value *out = fl_out_value(c, "Out", 0);
    int64_t col = fl_attr_i64(c, "col");
    if (!out)
        return FL_OK;
    if (x->kind != FL_LOD_TENSOR || !x->tensor.data)
        return fl_fail(FL_ENOENT, "fetch: X holds no tensor");
    if (col < 0 || col >= MAX_COL)
        return fl_fail(FL_EINVAL, "fetch: col is %lld, expected 0 to %d",
                       (long long)col, MAX_COL - 1);
    out->kind = FL_FETCH_LIST;
    while (out->array.n <= col)
        fl_push(&out->array, (fl_tensor){0});
    return fl_tensor_copy(&out->array.at[col], &x->tensor);
}

const fl_op_def fl_op_feed = {
    .type = "feed",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"col", FL_ATTR_INT, .required = true}},
    .flags = FL_OP_NO_INFER | FL_OP_DYNAMIC,
    .infer = fl_infer_none,
    .run = feed,
};

const fl_op_def fl_op_fetch = {
    .type = "fetch",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"col", FL_ATTR_INT, .required = true}},
    .flags = FL_OP_NO_INFER | FL_OP_DYNAMIC,
    .infer = fl_infer_none,
    .run = fetch,
};
