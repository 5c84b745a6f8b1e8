/* SPDX-License-Identifier: Apache-2.0 */
/* unique              Out = the distinct elements of X, in order of appearance
 *                     Index = for each element of X its index in Out
 * unique_with_counts  the same, and Count = how often each element occurs
 *
 * X is a vector. Index and Count have the type `dtype`, i32 or i64. Elements
 * are equal if their bits are, so that 0 and -0 are different. */
#include "kernel/move.h"

#include <string.h>

/* A hash table of the elements of Out. */
typedef struct table {
    int64_t *slot; /* 1 + index into Out; 0: free */
    uint64_t size; /* a power of two, at least twice the elements */
    const char *x; /* the elements; each has `bytes` bytes */
    size_t bytes;
} table;

static uint64_t bits_at(const table *t, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, t->x + (size_t)i * t->bytes, t->bytes);
    return bits;
}

static int64_t *find_slot(const table *t, const int64_t *first, uint64_t bits)
{
    uint64_t at = (bits ^ bits >> 29) * 0x9e3779b97f4a7c15u;
    for (at >>= 20;; at++) {
        int64_t *slot = &t->slot[at & (t->size - 1)];
        if (!*slot || bits_at(t, first[*slot - 1]) == bits)
            return slot;
    }
}

static void set_int(fl_tensor *t, int64_t i, int64_t value)
{
    if (t->dtype == FL_I32)
        ((int32_t *)t->data)[i] = (int32_t)value;
    else
        ((int64_t *)t->data)[i] = value;
}

/* first[k]: index in X of element k of Out; count[k]: how often it occurs;
 * different: the number of elements of Out. */
static fl_err find_unique(fl_call *c, const fl_tensor *x, int64_t *different,
                          int64_t **first, int64_t **count)
{
    const int64_t n = fl_tensor_numel(x);
    fl_tensor *index = fl_out(c, "Index");
    table t = {.size = 2, .x = x->data, .bytes = fl_dtype_size(x->dtype)};
    while (t.size < 2 * (uint64_t)n)
        t.size *= 2;
    int64_t *space = fl_scratch(c, (int64_t)t.size + 2 * n, sizeof *space);
    if (!space)
        return FL_ENOMEM;
    t.slot = space;
    *first = space + t.size;
    *count = *first + n;
    memset(space, 0, (t.size + 2 * (size_t)n) * sizeof *space);
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t *slot = find_slot(&t, *first, bits_at(&t, i));
        if (!*slot) {
            (*first)[found++] = i;
            *slot = found;
        }
        (*count)[*slot - 1]++;
        set_int(index, i, *slot - 1);
    }
    *different = found;
    return FL_OK;
}

static fl_err size_value(fl_value *v, fl_dtype dtype, int64_t n)
{
    const fl_shape s = {1, {n}};
    v->kind = FL_LOD_TENSOR;
    return fl_tensor_resize(&v->tensor, dtype, &s);
}

static fl_err unique(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const size_t bytes = fl_dtype_size(x->dtype);
    int64_t *first, *count, n;
    FL_TRY(find_unique(c, x, &n, &first, &count));
    fl_value *out = fl_out_value(c, "Out", 0);
    FL_TRY(size_value(out, x->dtype, n));
    for (int64_t k = 0; k < n; k++)
        memcpy((char *)out->tensor.data + (size_t)k * bytes,
               (char *)x->data + (size_t)first[k] * bytes, bytes);
    if (fl_op_slot_out(c->def, "Count") < 0)
        return FL_OK;
    fl_value *counts = fl_out_value(c, "Count", 0);
    FL_TRY(size_value(counts, (fl_dtype)fl_attr_i64(c, "dtype"), n));
    for (int64_t k = 0; k < n; k++)
        set_int(&counts->tensor, k, count[k]);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_shape any = {1, {-1}};
    fl_dtype dtype;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    FL_TRY(fl_move_dtype(x, "dtype", &dtype));
    if (in->shape.rank != 1 || (dtype != FL_I32 && dtype != FL_I64))
        return fl_fail(FL_ESHAPE,
                       "%s: X is %s, dtype is %s, expected [n], i32 or i64",
                       fl_meta_type(x), fl_shape_text(&in->shape, text),
                       fl_dtype_name(dtype));
    fl_meta_set(x, "Index", 0, dtype, &in->shape);
    if (fl_meta_running(x))
        return FL_OK; /* the kernel resizes the others */
    fl_meta_set(x, "Out", 0, in->dtype, &any);
    if (fl_op_slot_out(x->def, "Count") >= 0)
        fl_meta_set(x, "Count", 0, dtype, &any);
    return FL_OK;
}

const fl_op_def fl_op_unique = {
    .type = "unique",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}, {"Index"}},
    .attr = {{"dtype", FL_ATTR_INT, .i = FL_I32}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer,
    .run = unique,
};

const fl_op_def fl_op_unique_with_counts = {
    .type = "unique_with_counts",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}, {"Index"}, {"Count"}},
    .attr = {{"dtype", FL_ATTR_INT, .i = FL_I32}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer,
    .run = unique,
};
