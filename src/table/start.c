/* start.c - how rows start.
 *
 * Every number is made from (seed, name, id, column) and nothing else. Normal
 * numbers take two draws each, truncated ones as many pairs as it takes. */
#include "table/table_in.h"

#include <math.h>

enum {
    POOL = 4096 /* numbers that starts are picked from */
};

static uint64_t mix_text(const char *text, uint64_t seed)
{
    uint64_t x = fl_table_mix(seed);
    for (; *text; text++)
        x = fl_table_mix(x + (unsigned char)*text + 1);
    return x;
}

fl_err fl_start_init(fl_table *t)
{
    const fl_table_start *s = &t->opts.start;
    t->salt = mix_text(t->name, s->seed);
    if (s->kind != FL_START_PICKED)
        return FL_OK;
    const int64_t numel = s->from ? fl_tensor_numel(s->from) : 0;
    if (numel < 1 || s->from->dtype != t->opts.dtype)
        return fl_fail(FL_EINVAL,
                       "table \"%s\" starts with %lld numbers of %s, expected "
                       "some of %s",
                       t->name, (long long)numel,
                       s->from ? fl_dtype_word(s->from->dtype) : "nothing",
                       fl_dtype_word(t->opts.dtype));
    const fl_shape most = {1, {numel < POOL ? numel : POOL}};
    const fl_tensor first =
        fl_tensor_view(s->from->dtype, &most, s->from->data);
    t->opts.start.from = NULL;
    return fl_tensor_copy(&t->pool, &first);
}

/* The k-th draw for a column of a row. */
static uint64_t draw(uint64_t key, int64_t column, uint64_t k)
{
    return fl_table_mix(
        fl_table_mix(key + (uint64_t)column * UINT64_C(0x9e3779b97f4a7c15)) +
        k);
}

static double unit(uint64_t x) /* [0, 1) */
{
    return (double)(x >> 11) * 0x1p-53;
}

static double normal(uint64_t key, int64_t column, uint64_t k)
{
    const double u = 1 - unit(draw(key, column, 2 * k)); /* never 0 */
    const double v = unit(draw(key, column, 2 * k + 1));
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static double truncated(uint64_t key, int64_t column)
{
    double z = normal(key, column, 0);
    for (uint64_t k = 1; fabs(z) > 2; k++)
        z = normal(key, column, k);
    return z;
}

static double start_of(const fl_table *t, uint64_t key, int64_t column)
{
    const fl_table_start *s = &t->opts.start;
    const fl_tensor *p = &t->pool;
    uint64_t at;
    switch (s->kind) {
    case FL_START_UNIFORM:
        return s->a + (s->b - s->a) * unit(draw(key, column, 0));
    case FL_START_NORMAL:
        return s->a + s->b * normal(key, column, 0);
    case FL_START_TRUNCATED:
        return s->a + s->b * truncated(key, column);
    case FL_START_PICKED:
        at = draw(key, column, 0) % (uint64_t)fl_tensor_numel(p);
        return p->dtype == FL_F64 ? ((const double *)p->data)[at]
                                  : ((const float *)p->data)[at];
    default:
        return s->a;
    }
}

static void put(const fl_table *t, char *at, int64_t i, double x)
{
    if (t->opts.dtype == FL_F64)
        ((double *)at)[i] = x;
    else
        ((float *)at)[i] = (float)x;
}

void fl_start_state(const fl_table *t, int state, char *at)
{
    for (int64_t i = 0; i < t->opts.width; i++)
        put(t, at, i, t->opts.state[state]);
}

void fl_start_value(const fl_table *t, int64_t id, char *value)
{
    const uint64_t key = fl_table_mix(t->salt ^ fl_table_mix((uint64_t)id));
    for (int64_t i = 0; i < t->opts.width; i++)
        put(t, value, i, start_of(t, key, i));
}

void fl_start_row(const fl_table *t, int64_t id, char *row)
{
    memcpy(row, &id, sizeof id);
    fl_start_value(t, id, fl_row_value(row));
    for (int s = 0; s < FL_RULE_STATES; s++)
        if (t->state[s])
            fl_start_state(t, s, row + t->state[s]);
}
