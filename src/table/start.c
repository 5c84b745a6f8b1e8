/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - computes the start values of rows.
 *
 * A normal number takes two draws. A truncated one takes pairs of draws until
 * the number is within two standard deviations of the mean. */
#include "table/start.h"

#include <math.h>

enum {
    POOL = 4096 /* elements of `from` that are kept at most */
};

static uint64_t mix_text(const char *text, uint64_t seed)
{
    uint64_t x = fl_table_mix(seed);
    for (; *text; text++)
        x = fl_table_mix(x + (unsigned char)*text + 1);
    return x;
}

/* The k-th draw for a column of a row. */
static uint64_t draw_bits(uint64_t key, int64_t column, uint64_t k)
{
    return fl_table_mix(
        fl_table_mix(key + (uint64_t)column * UINT64_C(0x9e3779b97f4a7c15)) +
        k);
}

/* Map 64 random bits to a number in [0, 1). */
static double unit_of(uint64_t x)
{
    return (double)(x >> 11) * 0x1p-53;
}

static double draw_normal(uint64_t key, int64_t column, uint64_t k)
{
    const double u = 1 - unit_of(draw_bits(key, column, 2 * k)); /* never 0 */
    const double v = unit_of(draw_bits(key, column, 2 * k + 1));
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static double draw_truncated(uint64_t key, int64_t column)
{
    double z = draw_normal(key, column, 0);
    for (uint64_t k = 1; fabs(z) > 2; k++)
        z = draw_normal(key, column, k);
    return z;
}

static double draw_start(const fl_row_start *r, uint64_t key, int64_t column)
{
    const fl_table_start *s = &r->how;
    const fl_tensor *p = &r->pool;
    uint64_t at;
    switch (s->kind) {
    case FL_START_UNIFORM:
        return s->a + (s->b - s->a) * unit_of(draw_bits(key, column, 0));
    case FL_START_NORMAL:
        return s->a + s->b * draw_normal(key, column, 0);
    case FL_START_TRUNCATED:
        return s->a + s->b * draw_truncated(key, column);
    case FL_START_PICKED:
        at = draw_bits(key, column, 0) % (uint64_t)fl_tensor_numel(p);
        return p->dtype == FL_F64 ? ((const double *)p->data)[at]
                                  : ((const float *)p->data)[at];
    default:
        return s->a;
    }
}

static void set_number(const fl_row_start *r, void *at, int64_t i, double x)
{
    if (r->dtype == FL_F64)
        ((double *)at)[i] = x;
    else
        ((float *)at)[i] = (float)x;
}

fl_err fl_row_start_init(fl_row_start *r, const fl_table_start *how,
                         const char *name, fl_dtype dtype, int64_t width)
{
    *r = (fl_row_start){*how, dtype, width, mix_text(name, how->seed), {0}};
    r->how.from = NULL;
    if (how->kind != FL_START_PICKED)
        return FL_OK;
    const fl_tensor *from = how->from;
    const int64_t numel = from ? fl_tensor_numel(from) : 0;
    if (numel < 1 || from->dtype != dtype)
        return fl_fail(FL_EINVAL,
                       "table \"%s\" starts with %lld numbers of %s, expected "
                       "some of %s",
                       name, (long long)numel,
                       from ? fl_dtype_word(from->dtype) : "nothing",
                       fl_dtype_word(dtype));
    const fl_shape most = {1, {numel < POOL ? numel : POOL}};
    const fl_tensor first = fl_tensor_view(dtype, &most, from->data);
    return fl_tensor_copy(&r->pool, &first);
}

void fl_row_start_fini(fl_row_start *r)
{
    fl_tensor_fini(&r->pool);
}

void fl_row_start_value(const fl_row_start *r, int64_t id, void *value)
{
    const uint64_t key = fl_table_mix(r->salt ^ fl_table_mix((uint64_t)id));
    for (int64_t i = 0; i < r->width; i++)
        set_number(r, value, i, draw_start(r, key, i));
}

void fl_row_start_state(const fl_row_start *r, double x, void *state)
{
    for (int64_t i = 0; i < r->width; i++)
        set_number(r, state, i, x);
}
