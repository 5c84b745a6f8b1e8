/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and ids that are split by server, and joined after the answers.
 *
 *     split_byref  Out i = the next `sections` i rows of X
 *     split_ids    Out i = the ids whose remainder modulo the number of outputs
 *                  is i, each once, in ascending order; for selected rows, the
 *                  rows with these ids
 *     merge_ids    Out i = for each id of Ids i its row of X s, where s is the
 *                  id modulo the number of X; Rows s lists the ids of the rows
 *                  of X s, as split_ids made it */
#include "cluster/placement.h"
#include "graph/program.h"

#include <stdlib.h>
#include <string.h>

/* --- split_byref --- */

static fl_err infer_split_byref(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_attr *sections = fl_meta_attr(x, "sections");
    const int n = fl_meta_count_out(x, "Out");
    int64_t sum = 0;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (sections->n != n)
        return fl_fail(FL_EINVAL, "split_byref: %d sections for %d outputs",
                       sections->n, n);
    for (int i = 0; i < n; i++) {
        const int64_t rows = sections->longs[i];
        if (rows < 0 || __builtin_add_overflow(sum, rows, &sum))
            return fl_fail(FL_EINVAL, "split_byref: section %d has %lld rows",
                           i, (long long)rows);
        fl_shape s = in->shape;
        s.dim[0] = rows;
        fl_meta_set(x, "Out", i, in->dtype, &s);
    }
    if (!in->shape.rank || (in->shape.dim[0] >= 0 && in->shape.dim[0] != sum))
        return fl_fail(
            FL_ESHAPE, "split_byref: the sections have %lld rows, X has %lld",
            (long long)sum, (long long)(in->shape.rank ? in->shape.dim[0] : 0));
    return FL_OK;
}

static fl_err split_byref(fl_call *c)
{
    const char *from = fl_in(c, "X")->data;
    const fl_tensor *x = fl_in(c, "X");
    const fl_attr *sections = fl_attr_get(c, "sections");
    const size_t row = (size_t)fl_shape_span(&x->shape, 1, x->shape.rank) *
                       fl_dtype_size(x->dtype);
    for (int i = 0; i < sections->n; i++) {
        const size_t bytes = (size_t)sections->longs[i] * row;
        fl_tensor *out = fl_out_at(c, "Out", i);
        if (out && bytes)
            memcpy(out->data, from, bytes);
        from += bytes;
    }
    return FL_OK;
}

/* --- ids --- */

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static fl_err infer_split_ids(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "Ids", 0);
    const int n = fl_meta_count_out(x, "Out");
    const fl_shape ids = {2, {-1, 1}};
    const bool rows = in->kind == FL_SELECTED_ROWS;
    if (!rows)
        FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    else if (fl_meta_count_in(x, "Ids") > 1)
        return fl_fail(FL_EINVAL,
                       "split_ids: Ids has %d selected rows, expected one",
                       fl_meta_count_in(x, "Ids"));
    for (int i = 0; i < n; i++) {
        fl_meta *out = fl_meta_out(x, "Out", i);
        if (out && rows)
            *out = *in;
        else if (out && !fl_meta_running(x))
            fl_meta_set(x, "Out", i, FL_I64, &ids);
    }
    return FL_OK;
}

/* All ids in ascending order, each once, in the call's scratch memory. */
static fl_err unique_ids(fl_call *c, int64_t *n, const int64_t **out)
{
    int64_t all = 0, unique = 0;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++)
        all += fl_tensor_numel(fl_in_at(c, "Ids", i));
    int64_t *ids = fl_scratch(c, all + 1, sizeof *ids), *to = ids;
    if (!ids)
        return FL_ENOMEM;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const fl_tensor *t = fl_in_at(c, "Ids", i);
        if (fl_tensor_numel(t))
            memcpy(to, t->data, fl_tensor_bytes(t));
        to += fl_tensor_numel(t);
    }
    qsort(ids, (size_t)all, sizeof *ids, compare_ids);
    for (int64_t i = 0; i < all; i++)
        if (!unique || ids[unique - 1] != ids[i])
            ids[unique++] = ids[i];
    *n = unique;
    *out = ids;
    return FL_OK;
}

static fl_err split_tensors(fl_call *c)
{
    const int shards = fl_out_count(c, "Out");
    const int64_t *ids;
    int64_t n;
    FL_TRY(unique_ids(c, &n, &ids));
    for (int s = 0; s < shards; s++) {
        fl_value *out = fl_out_value(c, "Out", s);
        fl_shape shape = {2, {0, 1}};
        if (!out)
            continue;
        for (int64_t i = 0; i < n; i++)
            shape.dim[0] += fl_id_server(ids[i], shards) == s;
        out->kind = FL_LOD_TENSOR;
        FL_TRY(fl_tensor_resize(&out->tensor, FL_I64, &shape));
        int64_t *to = out->tensor.data;
        for (int64_t i = 0; i < n; i++)
            if (fl_id_server(ids[i], shards) == s)
                *to++ = ids[i];
    }
    return FL_OK;
}

static fl_err split_rows(fl_call *c, const fl_rows *x)
{
    const int shards = fl_out_count(c, "Out");
    const int64_t *row = fl_rows_index(x);
    const size_t bytes =
        (size_t)fl_rows_width(x) * fl_dtype_size(x->value.dtype);
    fl_shape shape = x->value.shape;
    shape.dim[0] = x->height;
    for (int s = 0; s < shards; s++) {
        fl_value *out = fl_out_value(c, "Out", s);
        int64_t n = 0;
        if (!out)
            continue;
        for (int64_t i = 0; i < x->n; i++)
            n += fl_id_server(row[i], shards) == s;
        FL_TRY(fl_rows_resize(&out->rows, x->value.dtype, &shape, n));
        int64_t *index = fl_rows_index(&out->rows);
        char *to = out->rows.value.data;
        for (int64_t i = 0; i < x->n; i++) {
            if (fl_id_server(row[i], shards) != s)
                continue;
            *index++ = row[i];
            memcpy(to, (const char *)x->value.data + (size_t)i * bytes, bytes);
            to += bytes;
        }
    }
    return FL_OK;
}

static fl_err split_ids(fl_call *c)
{
    const fl_value *first = fl_in_value(c, "Ids", 0);
    return first->kind == FL_SELECTED_ROWS ? split_rows(c, &first->rows)
                                           : split_tensors(c);
}

/* Check that rows of X i have the type and width of those of X 0. */
static fl_err check_shard(const fl_infer *x, const fl_meta *first, int i)
{
    const fl_meta *m = fl_meta_in(x, "X", i);
    char s[FL_SHAPE_TEXT];
    if (!m || !fl_meta_in(x, "Rows", i) || !first)
        return fl_fail(FL_EINVAL, "merge_ids: X or Rows %d is missing", i);
    if (m->dtype == first->dtype && m->shape.rank && first->shape.rank &&
        m->shape.dim[m->shape.rank - 1] ==
            first->shape.dim[first->shape.rank - 1])
        return FL_OK;
    return fl_fail(FL_ESHAPE,
                   "merge_ids: X %d is %s%s, whose rows differ from those of "
                   "X 0",
                   i, fl_dtype_name(m->dtype), fl_shape_text(&m->shape, s));
}

static fl_err infer_merge_ids(fl_infer *x)
{
    const fl_meta *values = fl_meta_in(x, "X", 0);
    const int n = fl_meta_count_in(x, "Ids"), shards = fl_meta_count_in(x, "X");
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    FL_TRY(fl_meta_check(x, "Rows", FL_SET(FL_I64)));
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (fl_meta_count_in(x, "Rows") != shards ||
        fl_meta_count_out(x, "Out") != n)
        return fl_fail(FL_EINVAL,
                       "merge_ids: %d Rows for %d X, %d Out for %d Ids",
                       fl_meta_count_in(x, "Rows"), shards,
                       fl_meta_count_out(x, "Out"), n);
    for (int i = 0; i < shards; i++)
        FL_TRY(check_shard(x, values, i));
    for (int i = 0; i < n; i++) {
        const fl_meta *ids = fl_meta_in(x, "Ids", i);
        fl_meta *out = fl_meta_out(x, "Out", i);
        if (!ids)
            return fl_fail(FL_EINVAL, "merge_ids: Ids %d is missing", i);
        fl_shape s = ids->shape;
        if (s.rank < 1 || s.dim[s.rank - 1] != 1 || !values->shape.rank)
            return fl_fail(FL_ESHAPE, "merge_ids: Ids %d is not [.., 1]", i);
        s.dim[s.rank - 1] = values->shape.dim[values->shape.rank - 1];
        fl_meta_set(x, "Out", i, values->dtype, &s);
        if (out) {
            out->lod_level = ids->lod_level;
            out->lod = ids->lod;
        }
    }
    return FL_OK;
}

/* The row with this id is row `at` of X `shard`. */
typedef struct found {
    int64_t id, at;
    int shard;
} found;

static int compare_found(const void *a, const void *b)
{
    const int64_t x = ((const found *)a)->id, y = ((const found *)b)->id;
    return (x > y) - (x < y);
}

/* List all rows of all shards, sorted by id, in the call's scratch memory. */
static fl_err index_rows(fl_call *c, int64_t *n, const found **out)
{
    int64_t all = 0;
    for (int s = 0; s < fl_in_count(c, "Rows"); s++) {
        const fl_tensor *x = fl_in_at(c, "X", s);
        const int64_t rows = fl_tensor_numel(fl_in_at(c, "Rows", s));
        const int64_t width = x->shape.dim[x->shape.rank - 1];
        if (fl_dim_mul(rows, width) > fl_tensor_numel(x))
            return fl_fail(FL_ESHAPE,
                           "merge_ids: X %d has %lld elements for %lld rows "
                           "of %lld",
                           s, (long long)fl_tensor_numel(x), (long long)rows,
                           (long long)width);
        all += rows;
    }
    found *at = fl_scratch(c, all, sizeof *at), *to = at;
    if (!at)
        return FL_ENOMEM;
    for (int s = 0; s < fl_in_count(c, "Rows"); s++) {
        const fl_tensor *rows = fl_in_at(c, "Rows", s);
        for (int64_t i = 0, m = fl_tensor_numel(rows); i < m; i++)
            *to++ = (found){((const int64_t *)rows->data)[i], i, s};
    }
    qsort(at, (size_t)all, sizeof *at, compare_found);
    *n = all;
    *out = at;
    return FL_OK;
}

static fl_err find_row(const fl_call *c, int64_t n, const found *index,
                       int64_t id, const char **row)
{
    const found want = {.id = id};
    const found *row_at =
        n ? bsearch(&want, index, (size_t)n, sizeof *index, compare_found)
          : NULL;
    if (!row_at)
        return fl_fail(FL_EINVAL, "merge_ids: no Rows have the id %lld",
                       (long long)id);
    const fl_tensor *x = fl_in_at(c, "X", row_at->shard);
    const int64_t width = x->shape.dim[x->shape.rank - 1];
    *row = (const char *)x->data +
           (size_t)(row_at->at * width) * fl_dtype_size(x->dtype);
    return FL_OK;
}

static fl_err merge_ids(fl_call *c)
{
    const fl_attr *padding = fl_attr_get(c, "padding_idx");
    const found *index = NULL;
    int64_t rows = 0;
    FL_TRY(index_rows(c, &rows, &index));
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const fl_tensor *ids = fl_in_at(c, "Ids", i);
        fl_tensor *out = fl_out_at(c, "Out", i);
        const int64_t n = fl_tensor_numel(ids);
        if (!out || !n)
            continue;
        const size_t bytes = fl_tensor_bytes(out) / (size_t)n;
        const int64_t pad = i < padding->n ? padding->longs[i] : -1;
        for (int64_t k = 0; k < n; k++) {
            const int64_t id = ((const int64_t *)ids->data)[k];
            char *to = (char *)out->data + (size_t)k * bytes;
            const char *row = NULL;
            FL_TRY(find_row(c, rows, index, id, &row));
            if (pad != -1 && id == pad)
                memset(to, 0, bytes);
            else
                memcpy(to, row, bytes);
        }
    }
    return FL_OK;
}

const fl_op_def fl_op_split_byref = {
    .type = "split_byref",
    .in = {{"X"}},
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"sections", FL_ATTR_INTS},
            {"num", FL_ATTR_INT},
            {"axis", FL_ATTR_INT},
        },
    .infer = infer_split_byref,
    .run = split_byref,
};

const fl_op_def fl_op_split_ids = {
    .type = "split_ids",
    .in = {{"Ids", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer_split_ids,
    .run = split_ids,
};

static fl_err run_split_rows(fl_call *c)
{
    return split_rows(c, &fl_in_value(c, "Ids", 0)->rows);
}

/* split_ids of selected rows, as a plan runs it: what it writes has the shape
 * of what it reads, however many rows it has. */
const fl_op_def fl_op_split_rows = {
    .type = "split_rows",
    .in = {{"Ids"}},
    .out = {{"Out", FL_MANY}},
    .flags = FL_OP_HIDDEN,
    .infer = infer_split_ids,
    .run = run_split_rows,
};

const fl_op_def fl_op_merge_ids = {
    .type = "merge_ids",
    .in = {{"Ids", FL_MANY}, {"Rows", FL_MANY}, {"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .attr = {{"padding_idx", FL_ATTR_LONGS}}, /* by Ids; -1: no padding */
    .infer = infer_merge_ids,
    .run = merge_ids,
};
