/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on selected rows.
 *
 *     merge_selected_rows            Out = X with equal rows added up, in
 *                                    ascending order
 *     get_tensor_from_selected_rows  Out = the listed rows as a tensor
 *     split_selected_rows            Out i = the rows that lie in section i of
 *                                    height_sections, counted from its start */
#include "op/op.h"

#include <string.h>

static fl_err check_rows(const fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    if (in->kind != FL_SELECTED_ROWS)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected selected_rows",
                       fl_meta_type(x), fl_kind_name(in->kind));
    return FL_OK;
}

static fl_err infer_merge(fl_infer *x)
{
    fl_meta *out = fl_meta_out(x, "Out", 0);
    FL_TRY(check_rows(x));
    if (out)
        *out = *fl_meta_in(x, "X", 0);
    return FL_OK;
}

static fl_err merge_selected_rows(fl_call *c)
{
    return fl_rows_merge(&fl_out_value(c, "Out", 0)->rows,
                         &fl_in_value(c, "X", 0)->rows);
}

/* The number of listed rows is known only at run time, to the kernel. */
static fl_err infer_get(fl_infer *x)
{
    FL_TRY(check_rows(x));
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape s = in->shape;
    s.dim[0] = -1;
    if (!fl_meta_running(x))
        fl_meta_set(x, "Out", 0, in->dtype, &s);
    return FL_OK;
}

static fl_err get_tensor_from_selected_rows(fl_call *c)
{
    fl_value *out = fl_out_value(c, "Out", 0);
    out->kind = FL_LOD_TENSOR;
    return fl_tensor_copy(&out->tensor, &fl_in_value(c, "X", 0)->rows.value);
}

static fl_err infer_split(fl_infer *x)
{
    FL_TRY(check_rows(x));
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *sections = fl_meta_attr(x, "height_sections");
    int n = fl_meta_count_out(x, "Out");
    int64_t sum = 0;
    if (sections->n != n)
        return fl_fail(FL_EINVAL,
                       "split_selected_rows: %d height_sections, %d outputs",
                       sections->n, n);
    for (int i = 0; i < n; i++) {
        fl_meta *out = fl_meta_out(x, "Out", i);
        int64_t height = sections->longs[i];
        if (height < 0 || __builtin_add_overflow(sum, height, &sum))
            return fl_fail(FL_EINVAL,
                           "split_selected_rows: section %d has %lld rows", i,
                           (long long)height);
        if (!out)
            continue;
        *out = *in;
        out->shape.dim[0] = height;
    }
    return FL_OK;
}

static fl_err split_selected_rows(fl_call *c)
{
    const fl_rows *x = &fl_in_value(c, "X", 0)->rows;
    const fl_attr *sections = fl_attr_get(c, "height_sections");
    int64_t start = 0, all = 0;
    for (int i = 0; i < sections->n; i++)
        all += sections->longs[i];
    for (int64_t i = 0; i < x->n; i++)
        if (fl_rows_index(x)[i] < 0 || fl_rows_index(x)[i] >= all)
            return fl_fail(FL_EINVAL,
                           "split_selected_rows: row %lld, but the sections "
                           "have %lld",
                           (long long)fl_rows_index(x)[i], (long long)all);
    for (int i = 0; i < sections->n; i++) {
        fl_value *out = fl_out_value(c, "Out", i);
        if (out)
            FL_TRY(fl_rows_slice(&out->rows, x, start, sections->longs[i]));
        start += sections->longs[i];
    }
    return FL_OK;
}

const fl_op_def fl_op_merge_selected_rows = {
    .type = "merge_selected_rows",
    .in = {{"X"}},
    .out = {{"Out"}},
    .infer = infer_merge,
    .run = merge_selected_rows,
};

const fl_op_def fl_op_get_tensor_from_selected_rows = {
    .type = "get_tensor_from_selected_rows",
    .in = {{"X"}},
    .out = {{"Out"}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer_get,
    .run = get_tensor_from_selected_rows,
};

const fl_op_def fl_op_split_selected_rows = {
    .type = "split_selected_rows",
    .in = {{"X"}},
    .out = {{"Out", FL_MANY}},
    .attr = {{"height_sections", FL_ATTR_LONGS}},
    .infer = infer_split,
    .run = split_selected_rows,
};
