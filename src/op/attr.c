/* SPDX-License-Identifier: Apache-2.0 */
/* attr.c - attributes: copies, comparison, and the conversions allowed. */
#include "op/attr.h"

#include <string.h>

static const char *const type_names[] = {
    [FL_ATTR_INT] = "int",       [FL_ATTR_FLOAT] = "float",
    [FL_ATTR_STRING] = "string", [FL_ATTR_INTS] = "ints",
    [FL_ATTR_FLOATS] = "floats", [FL_ATTR_STRINGS] = "strings",
    [FL_ATTR_BOOL] = "bool",     [FL_ATTR_BOOLS] = "bools",
    [FL_ATTR_BLOCK] = "block",   [FL_ATTR_LONG] = "long",
    [FL_ATTR_BLOCKS] = "blocks", [FL_ATTR_LONGS] = "longs",
};

const char *fl_attr_type_name(fl_attr_type t)
{
    return t <= FL_ATTR_LONGS ? type_names[t] : "?";
}

/* Bytes of one element of a list; 0: no list. */
static size_t element_size(fl_attr_type t)
{
    switch (t) {
    case FL_ATTR_INTS:
    case FL_ATTR_LONGS:
    case FL_ATTR_BLOCKS:
        return sizeof(int64_t);
    case FL_ATTR_FLOATS:
        return sizeof(float);
    case FL_ATTR_BOOLS:
        return sizeof(bool);
    case FL_ATTR_STRINGS:
        return sizeof(char *);
    default:
        return 0;
    }
}

fl_attr fl_attr_dup(fl_arena *a, const fl_attr *from)
{
    fl_attr to = *from;
    size_t size = element_size(from->type);
    if (from->name)
        to.name = fl_arena_strdup(a, from->name);
    if (from->type == FL_ATTR_STRING)
        to.s = fl_arena_strdup(a, from->s ? from->s : "");
    else if (size)
        to.longs = fl_arena_dup(a, from->longs, size * (size_t)from->n);
    if (from->type == FL_ATTR_STRINGS) {
        const char **s = (const char **)to.strings;
        for (int i = 0; i < to.n; i++)
            s[i] = fl_arena_strdup(a, s[i]);
    }
    return to;
}

static bool equal_strings(const fl_attr *a, const fl_attr *b)
{
    for (int i = 0; i < a->n; i++)
        if (strcmp(a->strings[i], b->strings[i]))
            return false;
    return true;
}

static const char *text_of(const fl_attr *a)
{
    return a->s ? a->s : "";
}

bool fl_attr_equal(const fl_attr *a, const fl_attr *b)
{
    if (strcmp(a->name, b->name) || a->type != b->type)
        return false;
    size_t size = element_size(a->type);
    if (size && a->n != b->n)
        return false;
    switch (a->type) {
    case FL_ATTR_FLOAT:
        return !memcmp(&a->f, &b->f, sizeof a->f); /* NaN equals itself */
    case FL_ATTR_BOOL:
        return a->b == b->b;
    case FL_ATTR_STRING:
        return !strcmp(text_of(a), text_of(b));
    case FL_ATTR_STRINGS:
        return equal_strings(a, b);
    default:
        return size ? !a->n || !memcmp(a->longs, b->longs, size * (size_t)a->n)
                    : a->i == b->i;
    }
}

static bool is_whole(fl_attr_type t)
{
    return t == FL_ATTR_INT || t == FL_ATTR_LONG;
}

static bool is_whole_list(fl_attr_type t)
{
    return t == FL_ATTR_INTS || t == FL_ATTR_LONGS;
}

static bool fits_int(int64_t i)
{
    return i >= INT32_MIN && i <= INT32_MAX;
}

static const float *as_floats(fl_arena *a, const fl_attr *value)
{
    float *f = fl_arena_alloc(a, (size_t)value->n * sizeof *f);
    for (int i = 0; i < value->n; i++)
        f[i] = (float)value->longs[i];
    return f;
}

/* Check that every int of `value` is in the range of the type of `spec`. */
static fl_err check_range(const char *op, const fl_attr *spec,
                          const fl_attr *value)
{
    bool list = is_whole_list(spec->type);
    if (spec->type != FL_ATTR_INT && spec->type != FL_ATTR_INTS)
        return FL_OK;
    for (int i = 0; i < (list ? value->n : 1); i++) {
        int64_t got = list ? value->longs[i] : value->i;
        if (!fits_int(got))
            return fl_fail(FL_EINVAL,
                           "%s: attribute %s is %lld, expected 32 bits", op,
                           spec->name, (long long)got);
    }
    return FL_OK;
}

fl_err fl_attr_convert(fl_arena *a, const char *op, const fl_attr *spec,
                       const fl_attr *value, fl_attr *out)
{
    fl_attr to = *value;
    to.name = spec->name;
    to.type = spec->type;
    if (spec->type == value->type) {
        FL_TRY(check_range(op, spec, value));
    } else if ((is_whole(spec->type) && is_whole(value->type)) ||
               (is_whole_list(spec->type) && is_whole_list(value->type))) {
        FL_TRY(check_range(op, spec, value));
    } else if (spec->type == FL_ATTR_FLOAT && is_whole(value->type)) {
        to.f = (float)value->i;
    } else if (spec->type == FL_ATTR_FLOATS && is_whole_list(value->type)) {
        to.floats = as_floats(a, value);
    } else if (spec->type == FL_ATTR_BOOL && is_whole(value->type) &&
               (value->i == 0 || value->i == 1)) {
        to.b = value->i != 0;
    } else if (is_whole(spec->type) && value->type == FL_ATTR_BOOL) {
        to.i = value->b;
    } else if (!element_size(spec->type) || !element_size(value->type) ||
               value->n) {
        return fl_fail(FL_EINVAL, "%s: attribute %s is %s, expected %s", op,
                       spec->name, fl_attr_type_name(value->type),
                       fl_attr_type_name(spec->type));
    }
    *out = to;
    return FL_OK;
}
