/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - selected rows of a matrix, and how equal rows are added up.
 *
 * Merging sorts (row, position) pairs by row with a radix sort, which is
 * stable: equal rows stay in order of appearance, and the sum has the same bits
 * every time. The pairs are stored after the result in the index buffer of dst,
 * which keeps its capacity, so that a training step allocates nothing. */
#include "tensor/value.h"

#include "base/clones.h"

typedef fl_row_at pair;

enum {
    DIGIT = 11, /* bits; 2048 counters fit into the first-level cache */
    DIGITS = 1 << DIGIT,
    /* int64 numbers of index memory for each row: one for the result, four for
     * two arrays of pairs */
    SPACE = 1 + 2 * sizeof(pair) / sizeof(int64_t),
};

int64_t *fl_rows_index(const fl_rows *r)
{
    return r->index.data;
}

int64_t fl_rows_width(const fl_rows *r)
{
    return fl_shape_span(&r->value.shape, 1, r->value.shape.rank);
}

fl_err fl_rows_resize(fl_rows *r, fl_dtype dtype, const fl_shape *shape,
                      int64_t n)
{
    fl_shape s = *shape, list = fl_shape_of(1, &n);
    if (s.rank < 1)
        return fl_fail(FL_ESHAPE, "selected rows: shape [] has no rows");
    int64_t height = s.dim[0];
    s.dim[0] = n;
    FL_TRY(fl_tensor_resize(&r->value, dtype, &s));
    FL_TRY(fl_tensor_resize(&r->index, FL_I64, &list));
    r->height = height;
    r->n = n;
    return FL_OK;
}

/* Make the pairs of all rows, and compute the largest difference between two
 * rows. */
FL_CLONES static uint64_t number_rows(const int64_t *row, int64_t n, pair *p)
{
    int64_t low = row[0], high = row[0];
    for (int64_t i = 1; i < n; i++) {
        low = row[i] < low ? row[i] : low;
        high = row[i] > high ? row[i] : high;
    }
    for (int64_t i = 0; i < n; i++)
        p[i] = (pair){(uint64_t)row[i] - (uint64_t)low, i};
    return (uint64_t)high - (uint64_t)low;
}

FL_CLONES static void sort_digit(const pair *from, pair *to, int64_t n,
                                 int shift)
{
    int64_t start[DIGITS] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++)
        start[from[i].row >> shift & (DIGITS - 1)]++;
    for (int i = 0; i < DIGITS; i++) {
        int64_t count = start[i];
        start[i] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[start[from[i].row >> shift & (DIGITS - 1)]++] = from[i];
}

const fl_row_at *fl_rows_order(const fl_rows *r, fl_row_at *space)
{
    int64_t n = r->n;
    pair *a = space, *b = space + n;
    uint64_t width = n ? number_rows(fl_rows_index(r), n, a) : 0;
    for (int shift = 0; shift < 64 && width >> shift; shift += DIGIT) {
        sort_digit(a, b, n, shift);
        pair *sorted = b;
        b = a;
        a = sorted;
    }
    return a;
}

static void add_elements(fl_dtype t, int64_t n, void *to, const void *from)
{
    if (t == FL_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] += ((const float *)from)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] += ((const double *)from)[i];
}

/* Fill dst from src in the order of p. Returns the number of distinct rows. */
static int64_t gather(fl_rows *dst, const fl_rows *src, const pair *p)
{
    fl_dtype t = src->value.dtype;
    const int64_t *row = fl_rows_index(src);
    int64_t *index = fl_rows_index(dst), width = fl_rows_width(src), n = 0;
    size_t size = (size_t)width * fl_dtype_size(t);
    char *out = dst->value.data;
    const char *in = src->value.data;
    for (int64_t i = 0; i < src->n; i++) {
        const char *from = in + (size_t)p[i].at * size;
        if (i && p[i].row == p[i - 1].row) {
            add_elements(t, width, out - size, from);
            continue;
        }
        index[n++] = row[p[i].at];
        memcpy(out, from, size);
        out += size;
    }
    return n;
}

fl_err fl_rows_merge(fl_rows *dst, const fl_rows *src)
{
    fl_dtype t = src->value.dtype;
    if (dst == src)
        return fl_fail(FL_EINVAL,
                       "selected rows: rows cannot be merged into themselves");
    if (t != FL_F32 && t != FL_F64)
        return fl_fail(FL_ESHAPE,
                       "selected rows: rows of %s cannot be added, only f32 "
                       "and f64 can",
                       fl_dtype_name(t));
    int64_t n = src->n, space = SPACE * n;
    fl_shape s = fl_shape_of(1, &space);
    FL_TRY(fl_tensor_resize(&dst->value, t, &src->value.shape));
    FL_TRY(fl_tensor_resize(&dst->index, FL_I64, &s));
    pair *pairs = (pair *)(fl_rows_index(dst) + n);
    dst->n = gather(dst, src, fl_rows_order(src, pairs));
    dst->height = src->height;
    dst->value.shape.dim[0] = dst->index.shape.dim[0] = dst->n;
    return FL_OK;
}

fl_err fl_rows_slice(fl_rows *dst, const fl_rows *src, int64_t start,
                     int64_t height)
{
    const int64_t *row = fl_rows_index(src);
    const size_t bytes =
        (size_t)fl_rows_width(src) * fl_dtype_size(src->value.dtype);
    fl_shape shape = src->value.shape;
    int64_t end = start + height, n = 0;
    shape.dim[0] = height;
    for (int64_t i = 0; i < src->n; i++)
        n += row[i] >= start && row[i] < end;
    FL_TRY(fl_rows_resize(dst, src->value.dtype, &shape, n));
    char *to = dst->value.data;
    int64_t *index = fl_rows_index(dst);
    for (int64_t i = 0; i < src->n; i++) {
        if (row[i] < start || row[i] >= end)
            continue;
        *index++ = row[i] - start;
        memcpy(to, (const char *)src->value.data + (size_t)i * bytes, bytes);
        to += bytes;
    }
    return FL_OK;
}
