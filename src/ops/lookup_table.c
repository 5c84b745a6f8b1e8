/* SPDX-License-Identifier: Apache-2.0 */
/* lookup_table  Out[i] = W[Ids[i]]; a row of zeros where Ids[i] is padding_idx
 * gradient      W@GRAD[Ids[i]] += Out@GRAD[i]; with is_sparse as selected
 *               rows, one for each id, in their order
 *
 * W may be selected rows, of which each is found by its id. The padding row has
 * no gradient in the dense form only, as in Fluid. The attributes from
 * is_distributed on are for the transpiler. */
#define FL_SELF "ops/lookup_table.c"
#include "kernel/embed.h"
#include "kernel/rows.h"
#include "op/real.h"

#include <string.h>
#ifdef REAL

static fl_err FN(lookup_table)(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "W");
    int64_t width = w->shape.dim[1];
    fl_embed e = fl_embed_of(fl_in(c, "Ids"), false, width, width,
                             fl_attr_i64(c, "padding_idx"));
    FL_TRY(fl_embed_check("lookup_table", &e, w->shape.dim[0]));
    FN(fl_embed_get)(&e, w->data, fl_out(c, "Out")->data);
    return FL_OK;
}

static void FN(dense_grad)(const fl_embed *e, const fl_tensor *dy,
                           fl_tensor *dw)
{
    memset(dw->data, 0, fl_tensor_bytes(dw));
    FN(fl_embed_add)(e, 1, dy->data, dw->data);
}

#else

FL_REAL_KERNEL(lookup_table)

static fl_err lookup_rows(fl_call *c, const fl_rows *w)
{
    const fl_tensor *ids = fl_in(c, "Ids");
    const int64_t padding = fl_attr_i64(c, "padding_idx");
    const size_t bytes =
        (size_t)fl_rows_width(w) * fl_dtype_size(w->value.dtype);
    char *to = fl_out(c, "Out")->data;
    fl_rows_map map;
    FL_TRY(fl_rows_map_init(&map, c, w));
    for (int64_t i = 0, n = fl_tensor_numel(ids); i < n; i++, to += bytes) {
        const int64_t id = ((const int64_t *)ids->data)[i];
        const int64_t at = fl_rows_map_find(&map, id);
        const bool pads = padding != -1 && id == padding;
        if (at < 0 && !pads)
            return fl_fail(FL_EINVAL, "lookup_table: W has no row %lld",
                           (long long)id);
        if (bytes && pads)
            memset(to, 0, bytes);
        else if (bytes)
            memcpy(to, (char *)w->value.data + (size_t)at * bytes, bytes);
    }
    return FL_OK;
}

static fl_err lookup(fl_call *c)
{
    const fl_value *w = fl_in_value(c, "W", 0);
    return w->kind == FL_SELECTED_ROWS ? lookup_rows(c, &w->rows)
                                       : lookup_table(c);
}

static fl_err infer_lookup(fl_infer *x)
{
    const fl_meta *w = fl_meta_in(x, "W", 0), *ids = fl_meta_in(x, "Ids", 0);
    fl_shape s = ids->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "W", FL_REALS | FL_OR_ROWS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    if (w->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "lookup_table: W is %s, expected [v,d]",
                       fl_shape_text(&w->shape, text));
    if (s.rank < 2 || s.dim[s.rank - 1] != 1)
        return fl_fail(FL_ESHAPE, "lookup_table: Ids is %s, expected [.., 1]",
                       fl_shape_text(&s, text));
    s.dim[s.rank - 1] = w->shape.dim[1];
    fl_meta_set(x, "Out", 0, w->dtype, &s);
    fl_meta_share_lod(x, "Ids", "Out");
    return FL_OK;
}

static fl_err infer_lookup_grad(fl_infer *x)
{
    fl_meta *dw = fl_meta_out(x, "W@GRAD", 0);
    FL_TRY(fl_meta_check(x, "W", FL_REALS));
    FL_TRY(fl_infer_grad_of_rule(x));
    if (dw && fl_meta_attr(x, "is_sparse")->b)
        dw->kind = FL_SELECTED_ROWS;
    return FL_OK;
}

/* The rows are copied, so that the buffer of Out@GRAD can be reused in the next
 * step. */
static fl_err sparse_grad(const fl_embed *e, const fl_shape *w,
                          const fl_tensor *dy, fl_rows *dw)
{
    FL_TRY(fl_rows_resize(dw, dy->dtype, w, e->n));
    memcpy(fl_rows_index(dw), e->ids, (size_t)e->n * sizeof *e->ids);
    memcpy(dw->value.data, dy->data, fl_tensor_bytes(dy));
    return FL_OK;
}

static fl_err lookup_table_grad(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "W"), *dy = fl_in(c, "Out@GRAD");
    fl_value *dw = fl_out_value(c, "W@GRAD", 0);
    int64_t width = w->shape.dim[1];
    if (!dw)
        return FL_OK;
    fl_embed e = fl_embed_of(fl_in(c, "Ids"), false, width, width,
                             fl_attr_i64(c, "padding_idx"));
    FL_TRY(fl_embed_check("lookup_table_grad", &e, w->shape.dim[0]));
    if (dw->kind == FL_SELECTED_ROWS)
        return sparse_grad(&e, &w->shape, dy, &dw->rows);
    if (dy->dtype == FL_F64)
        dense_grad_f64(&e, dy, &dw->tensor);
    else
        dense_grad_f32(&e, dy, &dw->tensor);
    return FL_OK;
}

const fl_op_def fl_op_lookup_table = {
    .type = "lookup_table",
    .in = {{"W", FL_GRAD_UNREAD}, {"Ids", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr =
        {
            {"is_sparse", FL_ATTR_BOOL, .b = false},
            {"is_distributed", FL_ATTR_BOOL, .b = false},
            {"padding_idx", FL_ATTR_LONG, .i = -1},
            {"remote_prefetch", FL_ATTR_BOOL, .b = false},
            {"grad_inplace", FL_ATTR_BOOL, .b = false},
            {"trainer_id", FL_ATTR_INT, .i = 0},
            {"height_sections", FL_ATTR_LONGS},
            {"epmap", FL_ATTR_STRINGS},
            {"table_names", FL_ATTR_STRINGS},
        },
    .infer = infer_lookup,
    .run = lookup,
    .grad_in = {"W", "Ids", "Out@GRAD"},
    .grad_run = lookup_table_grad,
    .grad_infer = infer_lookup_grad,
};

#endif
