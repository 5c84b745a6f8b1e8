/* SPDX-License-Identifier: Apache-2.0 */
/* text_value.c - the values of attributes, whose type shows in their text. */
#include "graph/text_read.h"

#include "base/vec.h"

#include <stdlib.h>

/* The elements of a list while it is read. Only one of the vectors is used. */
typedef struct list {
    FL_VEC(int64_t) longs;
    FL_VEC(float) floats;
    FL_VEC(bool) bools;
    FL_VEC(const char *) strings;
} list;

fl_err fl_read_number(fl_text_reader *r, fl_attr *v)
{
    char *end;
    const char *digits = r->at + (*r->at == '-' || *r->at == '+');
    const size_t whole = strspn(digits, "0123456789");
    if (whole && !strchr(".eE", digits[whole] ? digits[whole] : ' ')) {
        const bool is_long = digits[whole] == 'l';
        v->type = is_long ? FL_ATTR_LONG : FL_ATTR_INT;
        FL_TRY(fl_read_int(r, is_long ? INT64_MIN : INT32_MIN,
                           is_long ? INT64_MAX : INT32_MAX, &v->i));
        r->at += is_long;
        return FL_OK;
    }
    v->type = FL_ATTR_FLOAT;
    v->f = strtof(r->at, &end); /* strtof would skip a line break */
    if (end == r->at || strchr("\n\v\f", *r->at))
        return fl_read_expected(r, "a value");
    r->at = end;
    return FL_OK;
}

/* Read a value that is not a list. Its first letters show its type. */
static fl_err read_scalar(fl_text_reader *r, fl_attr *v)
{
    fl_read_skip(r);
    if (*r->at == '"') {
        v->type = FL_ATTR_STRING;
        return fl_read_string(r, &v->s);
    }
    if (fl_read_accept(r, "@")) {
        v->type = FL_ATTR_BLOCK;
        return fl_read_int(r, 0, FL_READ_BLOCKS, &v->i);
    }
    v->b = fl_read_word(r, "true");
    if (v->b || fl_read_word(r, "false")) {
        v->type = FL_ATTR_BOOL;
        return FL_OK;
    }
    return fl_read_number(r, v);
}

static fl_attr_type list_of(fl_attr_type t)
{
    static const fl_attr_type lists[] = {
        [FL_ATTR_INT] = FL_ATTR_INTS,     [FL_ATTR_FLOAT] = FL_ATTR_FLOATS,
        [FL_ATTR_BOOL] = FL_ATTR_BOOLS,   [FL_ATTR_STRING] = FL_ATTR_STRINGS,
        [FL_ATTR_BLOCK] = FL_ATTR_BLOCKS, [FL_ATTR_LONG] = FL_ATTR_LONGS,
    };
    return lists[t];
}

static void push_element(list *l, const fl_attr *e)
{
    if (e->type == FL_ATTR_FLOAT)
        fl_push(&l->floats, e->f);
    else if (e->type == FL_ATTR_BOOL)
        fl_push(&l->bools, e->b);
    else if (e->type == FL_ATTR_STRING)
        fl_push(&l->strings, e->s);
    else
        fl_push(&l->longs, e->i);
}

/* Copy the elements to the attribute, in the arena of the statement. */
static void take_list(fl_text_reader *r, list *l, fl_attr *v)
{
    if (v->type == FL_ATTR_FLOATS)
        v->floats = fl_arena_dup(r->a, l->floats.at,
                                 (size_t)v->n * sizeof *l->floats.at);
    else if (v->type == FL_ATTR_BOOLS)
        v->bools =
            fl_arena_dup(r->a, l->bools.at, (size_t)v->n * sizeof *l->bools.at);
    else if (v->type == FL_ATTR_STRINGS)
        v->strings = fl_arena_dup(r->a, l->strings.at,
                                  (size_t)v->n * sizeof *l->strings.at);
    else
        v->longs =
            fl_arena_dup(r->a, l->longs.at, (size_t)v->n * sizeof *l->longs.at);
}

static fl_err read_elements(fl_text_reader *r, list *l, fl_attr *v)
{
    v->n = 0;
    do {
        fl_attr e = {0};
        FL_TRY(read_scalar(r, &e));
        if (v->n && list_of(e.type) != v->type)
            return FL_READ_FAIL(r, "a list of %s holds a %s",
                                fl_attr_type_name(v->type),
                                fl_attr_type_name(e.type));
        v->type = list_of(e.type);
        push_element(l, &e);
        v->n++;
    } while (fl_read_accept(r, ","));
    return fl_read_expect(r, "]");
}

/* Read an empty list such as "ints[]", which names its type. */
static bool accept_empty_list(fl_text_reader *r, fl_attr *v)
{
    static const fl_attr_type lists[] = {FL_ATTR_INTS,    FL_ATTR_FLOATS,
                                         FL_ATTR_STRINGS, FL_ATTR_BOOLS,
                                         FL_ATTR_BLOCKS,  FL_ATTR_LONGS};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *name = fl_attr_type_name(lists[i]);
        const size_t n = strlen(name);
        if (!strncmp(r->at, name, n) && !strncmp(r->at + n, "[]", 2)) {
            r->at += n + 2;
            v->type = lists[i];
            return true;
        }
    }
    return false;
}

fl_err fl_read_value(fl_text_reader *r, fl_attr *v)
{
    fl_read_skip(r);
    if (accept_empty_list(r, v))
        return FL_OK;
    if (!fl_read_accept(r, "["))
        return read_scalar(r, v);
    list l = {0};
    fl_err err = read_elements(r, &l, v);
    if (!err)
        take_list(r, &l, v);
    fl_vec_fini(&l.longs);
    fl_vec_fini(&l.floats);
    fl_vec_fini(&l.bools);
    fl_vec_fini(&l.strings);
    return err;
}
