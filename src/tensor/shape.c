/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c - dimensions and the number of elements.
 *
 * Dimensions may come from a file or a peer, so their product is always
 * checked for overflow. */
#include "tensor/tensor.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

fl_shape fl_shape_of(int rank, const int64_t *dim)
{
    assert(rank >= 0 && rank <= FL_MAX_RANK);
    fl_shape s = {.rank = rank};
    for (int i = 0; i < rank; i++)
        s.dim[i] = dim[i];
    return s;
}

bool fl_shape_equal(const fl_shape *a, const fl_shape *b)
{
    return a->rank == b->rank &&
           !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

bool fl_shape_alike(const fl_shape *a, const fl_shape *b)
{
    bool alike = a->rank == b->rank;
    for (int i = 0; alike && i < a->rank; i++)
        alike = a->dim[i] == b->dim[i] || a->dim[i] == -1 || b->dim[i] == -1;
    return alike;
}

int64_t fl_shape_span(const fl_shape *s, int from, int to)
{
    int64_t n = 1;
    bool zero = false, over = false;
    for (int i = from; i < to; i++) {
        if (s->dim[i] < 0)
            return -1;
        zero |= !s->dim[i];
        over |= __builtin_mul_overflow(n, s->dim[i], &n);
    }
    return zero   ? 0
           : over ? INT64_MAX
                  : n; /* a product with 0 is 0, even if it overflows before */
}

int64_t fl_dim_mul(int64_t a, int64_t b)
{
    int64_t n;
    if (a < 0 || b < 0)
        return -1;
    return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}

int64_t fl_dim_add(int64_t a, int64_t b)
{
    int64_t n;
    if (a < 0 || b < 0)
        return -1;
    return __builtin_add_overflow(a, b, &n) ? INT64_MAX : n;
}

int64_t fl_shape_numel(const fl_shape *s)
{
    return fl_shape_span(s, 0, s->rank);
}

const char *fl_shape_text(const fl_shape *s, char text[FL_SHAPE_TEXT])
{
    int n = 0;
    for (int i = 0; i < s->rank; i++)
        n += snprintf(text + n, (size_t)(FL_SHAPE_TEXT - n), "%c%lld",
                      i ? ',' : '[', (long long)s->dim[i]);
    snprintf(text + n, (size_t)(FL_SHAPE_TEXT - n), n ? "]" : "[]");
    return text;
}

/* The product of the dimensions that are not 0, of a shape without elements. */
static int64_t count_empty(const fl_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n = s->dim[i] ? fl_dim_mul(n, s->dim[i]) : n;
    return n;
}

fl_err fl_shape_bytes(const fl_shape *s, fl_dtype t, size_t *bytes)
{
    static const int64_t most_empty = (int64_t)1 << 33;
    char text[FL_SHAPE_TEXT];
    int64_t n = fl_shape_numel(s), size = (int64_t)fl_dtype_size(t);
    if (!size)
        return fl_fail(FL_EINVAL, "tensor: unknown element type %d", (int)t);
    if (n < 0)
        return fl_fail(FL_EINVAL, "tensor: shape %s has a negative dimension",
                       fl_shape_text(s, text));
    if (n == INT64_MAX || __builtin_mul_overflow(n, size, &n) ||
        (!n && count_empty(s) > most_empty))
        return fl_fail(FL_ENOMEM, "tensor: %s%s is more than memory can hold",
                       fl_dtype_name(t), fl_shape_text(s, text));
    *bytes = (size_t)n;
    return FL_OK;
}
