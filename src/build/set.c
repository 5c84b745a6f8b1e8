/* SPDX-License-Identifier: Apache-2.0 */
/* set.c - sets slots and attributes of a desc from variables and C values.
 * Types need not be those of the table: int and long are converted when the op
 * is appended to the program. */
#include "build/net.h"

#include <ctype.h>

enum {
    MAX_VALUES = 1024 * 1024, /* largest number of values in an attribute */
};

void fl_set_in(fl_desc *d, const char *slot, const fl_var *v)
{
    fl_desc_set_in1(d, slot, v->name);
}

void fl_set_ins(fl_desc *d, const char *slot, int n, fl_var *const *v)
{
    const char **name = fl_arena_alloc(d->arena, (size_t)n * sizeof *name);
    for (int i = 0; i < n; i++)
        name[i] = v[i]->name;
    fl_desc_set_in(d, slot, n, name);
}

void fl_set_out(fl_desc *d, const char *slot, const fl_var *v)
{
    fl_desc_set_out1(d, slot, v->name);
}

void fl_set_int(fl_desc *d, const char *name, int64_t i)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_LONG, .i = i});
}

void fl_set_float(fl_desc *d, const char *name, double f)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_FLOAT, .f = (float)f});
}

void fl_set_bool(fl_desc *d, const char *name, bool b)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_BOOL, .b = b});
}

void fl_set_str(fl_desc *d, const char *name, const char *s)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_STRING, .s = s});
}

void fl_set_ints(fl_desc *d, const char *name, int n, const int64_t *at)
{
    fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_LONGS, .n = n, .longs = at});
}

void fl_set_strs(fl_desc *d, const char *name, int n, const char *const *at)
{
    fl_desc_set_attr(d,
                     &(fl_attr){name, FL_ATTR_STRINGS, .n = n, .strings = at});
}

void fl_set_upper(fl_desc *d, const char *name, const char *s)
{
    char *to = fl_arena_strdup(d->arena, s);
    for (char *c = to; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    fl_set_str(d, name, to);
}

bool fl_is_float(fl_dtype t)
{
    return t == FL_F16 || t == FL_F32 || t == FL_F64;
}

fl_err fl_values_fit(const char *what, int64_t n)
{
    if (n > MAX_VALUES)
        return fl_fail(
            FL_EINVAL,
            "%s: %lld values, but a program can hold at most %d in one op",
            what, (long long)n, MAX_VALUES);
    return FL_OK;
}

fl_err fl_set_values(fl_desc *d, const char *what, const fl_tensor *t,
                     fl_dtype as)
{
    const int64_t n = fl_tensor_numel(t);
    const bool ints = as == FL_I32;
    fl_attr values = {ints ? "int32_values" : "fp32_values",
                      ints ? FL_ATTR_INTS : FL_ATTR_FLOATS};
    FL_TRY(fl_values_fit(what, n));
    void *at = fl_arena_alloc(d->arena, (size_t)n * sizeof(int64_t));
    FL_TRY(fl_convert(n, t->dtype, t->data, ints ? FL_I64 : FL_F32, at));
    values.n = (int)n;
    values.longs = at; /* or floats, which are in the same union */
    fl_set_ints(d, "shape", t->shape.rank, t->shape.dim);
    fl_set_int(d, "dtype", as);
    fl_desc_set_attr(d, &values);
    return FL_OK;
}
