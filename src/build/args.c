/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - bind a call to its table of arguments. */
#include "build/args.h"

#include "base/str.h"
#include "tensor/tensor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {
    [FL_ARG_VAR] = "variable",
    [FL_ARG_VARS] = "variable or list of variables",
    [FL_ARG_INT] = "int",
    [FL_ARG_FLOAT] = "float",
    [FL_ARG_BOOL] = "bool",
    [FL_ARG_STR] = "string",
    [FL_ARG_DTYPE] = "dtype",
    [FL_ARG_INTS] = "list of ints",
    [FL_ARG_FLOATS] = "list of floats",
    [FL_ARG_STRS] = "list of strings",
    [FL_ARG_PARAM] = "parameter attribute",
    [FL_ARG_INIT] = "initializer",
    [FL_ARG_TENSOR] = "array",
    [FL_ARG_REGULARIZER] = "regularizer",
    [FL_ARG_CLIP] = "gradient clip",
    [FL_ARG_FLOAT_OR_VAR] = "float or variable",
    [FL_ARG_INT_OR_VAR] = "int or variable",
    [FL_ARG_VAR_OR_TENSOR] = "variable or array",
    [FL_ARG_INT_OR_INTS] = "int or list of ints",
};

const char *fl_arg_type_name(fl_arg_type t)
{
    return type_names[t];
}

static int find_arg(const fl_arg_def *def, const char *name)
{
    for (int i = 0; i < FL_ARGS && def[i].name; i++)
        if (!strcmp(def[i].name, name))
            return i;
    return -1;
}

bool fl_arg_known(const fl_arg_def *def, const char *name)
{
    return find_arg(def, name) >= 0;
}

static fl_err fail_unknown_arg(const char *what, const fl_arg_def *def,
                               const char *name)
{
    fl_near near = {.name = name};
    for (int i = 0; i < FL_ARGS && def[i].name; i++)
        fl_near_offer(&near, def[i].name);
    if (near.best)
        return fl_fail(FL_EINVAL,
                       "%s: unknown argument \"%s\"; did you mean \"%s\"?",
                       what, name, near.best);
    return fl_fail(FL_EINVAL, "%s: unknown argument \"%s\"", what, name);
}

/* --- defaults --- */

static fl_arg parse_dtype(const char *name)
{
    fl_dtype t = FL_F32;
    const bool known = fl_dtype_find(name, &t);
    assert(known);
    (void)known;
    return (fl_arg){.i = t};
}

/* "'relu'" without its quotes. */
static char *unquote(fl_arena *a, const char *text)
{
    const size_t n = strlen(text);
    assert(n >= 2 && text[0] == '\'' && text[n - 1] == '\'');
    char *s = fl_arena_strdup(a, text + 1);
    s[n - 2] = 0;
    return s;
}

/* "[0, 1]" */
static fl_arg parse_ints(fl_arena *a, const char *text)
{
    fl_arg list = {.n = 0};
    int64_t *at = fl_arena_alloc(a, strlen(text) * sizeof *at);
    assert(text[0] == '[' && text[strlen(text) - 1] == ']');
    for (char *end; *text != ']'; text = end)
        at[list.n++] = strtoll(text + 1, &end, 10);
    list.ints = at;
    return list;
}

static fl_arg parse_default(fl_arena *a, const fl_arg_def *def)
{
    switch (def->type) {
    case FL_ARG_INT:
    case FL_ARG_INT_OR_VAR:
    case FL_ARG_INT_OR_INTS:
        return (fl_arg){.i = strtoll(def->value, NULL, 10)};
    case FL_ARG_FLOAT:
    case FL_ARG_FLOAT_OR_VAR:
        return (fl_arg){.f = strtod(def->value, NULL)};
    case FL_ARG_BOOL:
        return (fl_arg){.b = !strcmp(def->value, "True")};
    case FL_ARG_DTYPE:
        return parse_dtype(unquote(a, def->value));
    case FL_ARG_INTS:
        return parse_ints(a, def->value);
    default:
        assert(def->type == FL_ARG_STR); /* others have only None */
        return (fl_arg){.s = unquote(a, def->value)};
    }
}

/* --- what a call gives --- */

static bool is_list(fl_arg_type t)
{
    return t == FL_ARG_VARS || t == FL_ARG_INTS || t == FL_ARG_FLOATS ||
           t == FL_ARG_STRS;
}

static bool is_pointer(fl_arg_type t, int n)
{
    switch (t) {
    case FL_ARG_INT:
    case FL_ARG_FLOAT:
    case FL_ARG_BOOL:
    case FL_ARG_DTYPE:
        return false;
    case FL_ARG_INTS:
    case FL_ARG_FLOATS:
    case FL_ARG_FLOAT_OR_VAR:
    case FL_ARG_INT_OR_VAR:
    case FL_ARG_INT_OR_INTS:
        return n > 0;
    default:
        return n >= 0;
    }
}

/* For an argument that is a pointer, NULL means None. */
static bool is_null(fl_arg_type t, const fl_arg *arg)
{
    return is_pointer(t, arg->n) && !arg->s;
}

/* A single value becomes a list of one element. */
static fl_arg as_list(fl_arena *a, const fl_arg *arg)
{
    fl_arg to = *arg;
    if (arg->n < 0) {
        to.n = 0;
    } else if (!arg->n) {
        to.n = 1;
        to.ints = fl_arena_dup(a, &arg->i, sizeof arg->i);
    }
    return to;
}

static fl_err check_entries(const char *what, const fl_arg_def *def,
                            const fl_arg *list)
{
    if (def->type != FL_ARG_VARS && def->type != FL_ARG_STRS)
        return FL_OK;
    if (def->type == FL_ARG_VARS && !list->n)
        return fl_fail(FL_EINVAL, "%s: argument \"%s\" is an empty list", what,
                       def->name);
    for (int i = 0; i < list->n; i++)
        if (!list->strs[i])
            return fl_fail(FL_EINVAL,
                           "%s: argument \"%s\" has a NULL at index %d", what,
                           def->name, i);
    return FL_OK;
}

static fl_err take_arg(fl_arena *a, fl_bound *b, int i, const fl_arg *arg)
{
    const fl_arg_def *def = &b->def[i];
    if (b->given[i])
        return fl_fail(FL_EINVAL, "%s: argument \"%s\" is given twice", b->what,
                       def->name);
    if (is_null(def->type, arg)) {
        if (def->value)
            return FL_OK;
        return fl_fail(FL_EINVAL, "%s: argument \"%s\" is NULL", b->what,
                       def->name);
    }
    if (def->type == FL_ARG_DTYPE && !fl_dtype_valid((int)arg->i))
        return fl_fail(FL_EINVAL, "%s: argument \"%s\": there is no dtype %lld",
                       b->what, def->name, (long long)arg->i);
    b->value[i] = is_list(def->type) ? as_list(a, arg) : *arg;
    b->given[i] = true;
    return check_entries(b->what, def, &b->value[i]);
}

static fl_err fill_defaults(fl_arena *a, fl_bound *b)
{
    for (int i = 0; i < FL_ARGS && b->def[i].name; i++) {
        const fl_arg_def *def = &b->def[i];
        if (b->given[i])
            continue;
        if (!def->value)
            return fl_fail(FL_EINVAL, "%s: argument \"%s\" is missing (%s)",
                           b->what, def->name, fl_arg_type_name(def->type));
        if (!strcmp(def->value, "None"))
            continue;
        b->value[i] = parse_default(a, def);
        b->given[i] = true;
    }
    return FL_OK;
}

fl_err fl_args_bind(fl_arena *a, const char *what, const fl_arg_def *def,
                    const fl_arg *args, fl_bound *out)
{
    *out = (fl_bound){.what = what, .def = def};
    for (; args && args->name; args++) {
        const int i = find_arg(def, args->name);
        if (i < 0)
            return fail_unknown_arg(what, def, args->name);
        FL_TRY(take_arg(a, out, i, args));
    }
    return fill_defaults(a, out);
}

/* --- reading --- */

static int index_of(const fl_bound *b, const char *name)
{
    const int i = find_arg(b->def, name);
    assert(i >= 0);
    return i;
}

bool fl_arg_given(const fl_bound *b, const char *name)
{
    return b->given[index_of(b, name)];
}

const fl_arg *fl_arg_get(const fl_bound *b, const char *name)
{
    const int i = index_of(b, name);
    return b->given[i] ? &b->value[i] : NULL;
}

static fl_arg read_arg(const fl_bound *b, const char *name)
{
    return b->value[index_of(b, name)]; /* zero if the argument is None */
}

int64_t fl_arg_int(const fl_bound *b, const char *name)
{
    return read_arg(b, name).i;
}

double fl_arg_float(const fl_bound *b, const char *name)
{
    return read_arg(b, name).f;
}

bool fl_arg_bool(const fl_bound *b, const char *name)
{
    return read_arg(b, name).b;
}

const char *fl_arg_str(const fl_bound *b, const char *name)
{
    return read_arg(b, name).s;
}

fl_dtype fl_arg_dtype(const fl_bound *b, const char *name)
{
    return (fl_dtype)read_arg(b, name).i;
}

fl_var *fl_arg_var(const fl_bound *b, const char *name)
{
    return read_arg(b, name).var;
}

fl_var *const *fl_arg_vars(const fl_bound *b, const char *name, int *n)
{
    const fl_arg v = read_arg(b, name);
    *n = v.n;
    return v.vars;
}

const int64_t *fl_arg_ints(const fl_bound *b, const char *name, int *n)
{
    const fl_arg v = read_arg(b, name);
    *n = v.n;
    return v.ints;
}

const double *fl_arg_floats(const fl_bound *b, const char *name, int *n)
{
    const fl_arg v = read_arg(b, name);
    *n = v.n;
    return v.floats;
}
