/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_convert.c - Python objects to C values and back.
 *
 * The tables of the library say what to convert to; names of operators or
 * layers never decide it. */
#include "_fluid.h"

#include <string.h>

/* --- memory of a call --- */

int py_pool_keep(py_pool *p, PyObject *o)
{
    if (!p->list && !(p->list = PyList_New(0)))
        return -1;
    return PyList_Append(p->list, o);
}

/* The memory is a bytes object in the list of the pool, and is freed with it.
 */
void *py_pool_alloc(py_pool *p, size_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!bytes)
        return NULL;
    const int failed = py_pool_keep(p, bytes);
    Py_DECREF(bytes); /* the list holds a reference */
    if (failed)
        return NULL;
    return memset(PyBytes_AsString(bytes), 0, size);
}

void py_pool_fini(py_pool *p)
{
    Py_CLEAR(p->list);
}

/* --- single values --- */

static int wrong_type(const char *what, const char *want, PyObject *o)
{
    PyErr_Format(PyExc_TypeError, "%s must be %s, not %R", what, want,
                 (PyObject *)Py_TYPE(o));
    return -1;
}

int py_to_text(PyObject *o, const char *what, const char **out)
{
    Py_ssize_t n = 0;
    if (!PyUnicode_Check(o))
        return wrong_type(what, "a str", o);
    *out = PyUnicode_AsUTF8AndSize(o, &n);
    if (!*out)
        return -1;
    if (strlen(*out) == (size_t)n)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s has a character of code 0, which C ends at: %R", what, o);
    return -1;
}

static int to_int(PyObject *o, const char *what, int64_t *out)
{
    PyObject *i = PyNumber_Index(o);
    if (!i) {
        PyErr_Clear();
        return wrong_type(what, "an int", o);
    }
    *out = PyLong_AsLongLong(i);
    Py_DECREF(i);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int to_float(PyObject *o, const char *what, double *out)
{
    *out = PyFloat_AsDouble(o);
    if (*out != -1 || !PyErr_Occurred())
        return 0;
    PyErr_Clear();
    return wrong_type(what, "a number", o);
}

static int to_bool(PyObject *o, bool *out)
{
    const int truth = PyObject_IsTrue(o);
    *out = truth > 0;
    return truth < 0 ? -1 : 0;
}

static int named_dtype(PyObject *name, fl_dtype *out)
{
    const char *text;
    if (py_to_text(name, "a dtype", &text))
        return -1;
    if (fl_dtype_find(text, out))
        return 0;
    PyErr_Format(PyExc_ValueError, "there is no dtype \"%s\"", text);
    return -1;
}

/* Convert a number of VarType, a name, numpy.dtype("float32") or numpy.float32.
 */
int py_to_dtype(PyObject *o, fl_dtype *out)
{
    int64_t number;
    if (PyUnicode_Check(o))
        return named_dtype(o, out);
    if (PyIndex_Check(o) && !PyType_Check(o)) {
        if (to_int(o, "a dtype", &number))
            return -1;
        *out = (fl_dtype)number;
        return 0;
    }
    PyObject *name =
        PyObject_GetAttrString(o, PyType_Check(o) ? "__name__" : "name");
    if (!name) {
        PyErr_Clear();
        return wrong_type("a dtype", "a name, a number or a numpy dtype", o);
    }
    const int failed = named_dtype(name, out);
    Py_DECREF(name);
    return failed;
}

/* --- lists --- */

/* The items of a list, tuple, array or set as a list, in the pool. A str is
 * refused. */
static PyObject *as_list(py_pool *p, PyObject *o, const char *what)
{
    PyObject *list = PyUnicode_Check(o) ? NULL : PySequence_List(o);
    if (!list) {
        PyErr_Clear();
        wrong_type(what, "a list", o);
        return NULL;
    }
    const int failed = py_pool_keep(p, list);
    Py_DECREF(list);
    return failed ? NULL : list;
}

int py_to_items(py_pool *p, PyObject *o, const char *what, PyObject **out)
{
    PyObject *items = PyMapping_Items(o);
    const int failed = !items || py_pool_keep(p, items);
    Py_XDECREF(items);
    if (failed)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_Size(items); i++) {
        PyObject *pair = PyList_GetItem(items, i);
        if (PyTuple_Check(pair) && PyTuple_Size(pair) == 2)
            continue;
        PyErr_Format(PyExc_TypeError,
                     "items() of %s must give (key, value) pairs, not %R", what,
                     pair);
        return -1;
    }
    *out = items;
    return 0;
}

static bool is_list(PyObject *o)
{
    return !PyUnicode_Check(o) && !PyBytes_Check(o) &&
           (PySequence_Check(o) || PyAnySet_Check(o));
}

int py_to_shape(PyObject *o, fl_shape *out)
{
    py_pool pool = {NULL};
    PyObject *list = as_list(&pool, o, "a shape");
    int failed = list ? 0 : -1;
    const Py_ssize_t n = list ? PyList_Size(list) : 0;
    if (n > FL_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "a shape has %zd dimensions, at most %d",
                     n, FL_MAX_RANK);
        failed = -1;
    }
    *out = (fl_shape){.rank = (int)n};
    for (Py_ssize_t i = 0; !failed && i < n; i++)
        failed = to_int(PyList_GetItem(list, i), "a dimension", &out->dim[i]);
    py_pool_fini(&pool);
    return failed;
}

static int to_ints(py_pool *p, PyObject *o, const char *what, int *n,
                   const int64_t **out)
{
    PyObject *list = as_list(p, o, what);
    if (!list)
        return -1;
    *n = (int)PyList_Size(list);
    int64_t *at = py_pool_alloc(p, (size_t)(*n + 1) * sizeof *at);
    for (int i = 0; at && i < *n; i++)
        if (to_int(PyList_GetItem(list, i), what, &at[i]))
            return -1;
    *out = at;
    return at ? 0 : -1;
}

static int to_floats(py_pool *p, PyObject *o, const char *what, int *n,
                     const double **out)
{
    PyObject *list = as_list(p, o, what);
    if (!list)
        return -1;
    *n = (int)PyList_Size(list);
    double *at = py_pool_alloc(p, (size_t)(*n + 1) * sizeof *at);
    for (int i = 0; at && i < *n; i++)
        if (to_float(PyList_GetItem(list, i), what, &at[i]))
            return -1;
    *out = at;
    return at ? 0 : -1;
}

static int to_bools(py_pool *p, PyObject *o, const char *what, int *n,
                    const bool **out)
{
    PyObject *list = as_list(p, o, what);
    if (!list)
        return -1;
    *n = (int)PyList_Size(list);
    bool *at = py_pool_alloc(p, (size_t)(*n + 1) * sizeof *at);
    for (int i = 0; at && i < *n; i++)
        if (to_bool(PyList_GetItem(list, i), &at[i]))
            return -1;
    *out = at;
    return at ? 0 : -1;
}

/* Whether o is a str or has a name, as a Variable has. */
static bool is_named(PyObject *o)
{
    return PyUnicode_Check(o) || PyObject_HasAttrString(o, "name");
}

static int to_name(py_pool *p, PyObject *o, const char **out)
{
    if (PyUnicode_Check(o))
        return py_to_text(o, "a name", out);
    PyObject *name = PyObject_GetAttrString(o, "name");
    if (!name) {
        PyErr_Clear();
        return wrong_type("a name", "a str or a Variable", o);
    }
    const int failed = py_pool_keep(p, name) || py_to_text(name, "a name", out);
    Py_DECREF(name);
    return failed ? -1 : 0;
}

int py_to_names(py_pool *p, PyObject *o, int *n, const char *const **out)
{
    const bool many = !is_named(o); /* a Variable has items, but is one */
    PyObject *list = many ? as_list(p, o, "names") : NULL;
    if (many && !list)
        return -1;
    *n = many ? (int)PyList_Size(list) : 1;
    const char **at = py_pool_alloc(p, (size_t)(*n + 1) * sizeof *at);
    for (int i = 0; at && i < *n; i++)
        if (to_name(p, many ? PyList_GetItem(list, i) : o, &at[i]))
            return -1;
    *out = at;
    return at ? 0 : -1;
}

/* --- variables --- */

static bool is_var(py_state *st, PyObject *o)
{
    return PyObject_TypeCheck(o, st->type[PY_VARIABLE]);
}

int py_to_var(py_state *st, PyObject *o, const char *what, fl_var **out)
{
    if (!is_var(st, o))
        return wrong_type(what, "a Variable", o);
    *out = ((py_variable *)o)->v;
    if (*out)
        return 0;
    PyErr_SetString(PyExc_RuntimeError,
                    "the variable is gone: its program was replaced");
    return -1;
}

int py_to_vars(py_pool *p, py_state *st, PyObject *o, const char *what, int *n,
               fl_var ***out)
{
    PyObject *list = as_list(p, o, what);
    if (!list)
        return -1;
    *n = (int)PyList_Size(list);
    *out = py_pool_alloc(p, (size_t)(*n + 1) * sizeof **out);
    for (int i = 0; *out && i < *n; i++)
        if (PyList_GetItem(list, i) != Py_None &&
            py_to_var(st, PyList_GetItem(list, i), what, &(*out)[i]))
            return -1;
    return *out ? 0 : -1;
}

/* --- arguments of layers --- */

static int to_list_arg(py_call *c, const char *what, fl_arg_type type,
                       PyObject *o, fl_arg *out)
{
    int failed;
    if (type == FL_ARG_VARS)
        failed = py_to_vars(&c->pool, c->st, o, what, &out->n,
                            (fl_var ***)&out->vars);
    else if (type == FL_ARG_FLOATS)
        failed = to_floats(&c->pool, o, what, &out->n, &out->floats);
    else if (type == FL_ARG_STRS)
        failed = py_to_names(&c->pool, o, &out->n, &out->strs);
    else
        failed = to_ints(&c->pool, o, what, &out->n, &out->ints);
    if (!out->n)
        out->n = -1; /* an empty list */
    return failed;
}

static int to_params(py_call *c, PyObject *o, fl_arg *out)
{
    const bool many = PyList_Check(o) || PyTuple_Check(o);
    const int n = many ? (int)PySequence_Size(o) : 1;
    fl_param_attr *at = py_pool_alloc(&c->pool, (size_t)(n + 1) * sizeof *at);
    for (int i = 0; at && i < n; i++) {
        PyObject *one = many ? PySequence_GetItem(o, i) : Py_NewRef(o);
        const int failed =
            !one || py_pool_keep(&c->pool, one) || py_to_param(c, one, &at[i]);
        Py_XDECREF(one);
        if (failed)
            return -1;
    }
    out->attr = at;
    out->n = many ? n : 0;
    return at ? 0 : -1;
}

static int to_tensor_arg(py_call *c, PyObject *o, fl_arg *out)
{
    fl_tensor *t = py_pool_alloc(&c->pool, sizeof *t);
    out->tensor = t;
    return t ? py_to_tensor(&c->pool, c->st, o, t) : -1;
}

/* Convert a variable. n marks the argument as a variable where the table also
 * allows a number. */
static int to_var_arg(py_call *c, const char *what, PyObject *o, int n,
                      fl_arg *out)
{
    out->n = n;
    return py_to_var(c->st, o, what, &out->var);
}

static int to_single(py_call *c, const char *what, fl_arg_type type,
                     PyObject *o, fl_arg *out)
{
    fl_dtype dtype = FL_F32;
    int failed;
    switch (type) {
    case FL_ARG_FLOAT:
    case FL_ARG_FLOAT_OR_VAR:
    case FL_ARG_FLOATS:
        return to_float(o, what, &out->f);
    case FL_ARG_BOOL:
        return to_bool(o, &out->b);
    case FL_ARG_STR:
    case FL_ARG_STRS:
        return py_to_text(o, what, &out->s);
    case FL_ARG_DTYPE:
        failed = py_to_dtype(o, &dtype);
        out->i = dtype;
        return failed;
    case FL_ARG_PARAM:
        return to_params(c, o, out);
    case FL_ARG_INIT:
        return py_to_init(c, o, &out->init);
    case FL_ARG_REGULARIZER:
        return py_to_regularizer(c, o, &out->regularizer);
    case FL_ARG_CLIP:
        return py_to_clip(c, o, &out->clip);
    case FL_ARG_TENSOR:
        return to_tensor_arg(c, o, out);
    case FL_ARG_VAR_OR_TENSOR:
        out->n = 1;
        return to_tensor_arg(c, o, out);
    case FL_ARG_VAR:
    case FL_ARG_VARS:
        return to_var_arg(c, what, o, 0, out);
    default:
        return to_int(o, what, &out->i);
    }
}

static int to_arg(py_call *c, const char *what, fl_arg_type type, PyObject *o,
                  fl_arg *out)
{
    const bool lists = type == FL_ARG_VARS || type == FL_ARG_INTS ||
                       type == FL_ARG_FLOATS || type == FL_ARG_STRS ||
                       type == FL_ARG_INT_OR_INTS;
    if (is_var(c->st, o) &&
        (type == FL_ARG_FLOAT_OR_VAR || type == FL_ARG_INT_OR_VAR))
        return to_var_arg(c, what, o, 1, out);
    if (is_var(c->st, o) && type == FL_ARG_VAR_OR_TENSOR)
        return to_var_arg(c, what, o, 0, out);
    if (lists && !is_var(c->st, o) && is_list(o))
        return to_list_arg(c, what, type, o, out);
    return to_single(c, what, type, o, out);
}

static const fl_arg_def *find_arg(const fl_signature *sig, const char *name)
{
    for (int i = 0; i < sig->n_args; i++)
        if (!strcmp(sig->args[i].name, name))
            return &sig->args[i];
    return NULL;
}

static int add_arg(py_call *c, const char *what, const fl_signature *sig,
                   PyObject *key, PyObject *o, fl_arg *out)
{
    if (py_to_text(key, "an argument's name", &out->name))
        return -1;
    const fl_arg_def *def = find_arg(sig, out->name);
    if (!def)
        return 0; /* the library suggests a similar name */
    PyObject *words =
        PyUnicode_FromFormat("%s: argument \"%s\"", what, out->name);
    const int failed = !words || to_arg(c, PyUnicode_AsUTF8AndSize(words, NULL),
                                        def->type, o, out);
    Py_XDECREF(words);
    return failed ? -1 : 0;
}

int py_to_args(py_call *c, const char *what, const fl_signature *sig,
               PyObject *dict, fl_arg **out)
{
    PyObject *items;
    int used = 0;
    if (py_to_items(&c->pool, dict, what, &items))
        return -1;
    const Py_ssize_t n = PyList_Size(items);
    *out = py_pool_alloc(&c->pool, (size_t)(n + 1) * sizeof **out);
    if (!*out)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        PyObject *value = PyTuple_GetItem(pair, 1);
        if (value == Py_None)
            continue;
        if (add_arg(c, what, sig, PyTuple_GetItem(pair, 0), value,
                    &(*out)[used++]))
            return -1;
    }
    return used;
}

/* --- attributes of operators --- */

static int block_index(py_state *st, PyObject *o, int64_t *out)
{
    if (!PyObject_TypeCheck(o, st->type[PY_BLOCK]))
        return to_int(o, "a block", out);
    *out = ((py_block *)o)->idx;
    return 0;
}

static int to_blocks(py_pool *p, py_state *st, PyObject *o, fl_attr *out)
{
    PyObject *list = as_list(p, o, "blocks");
    if (!list)
        return -1;
    out->n = (int)PyList_Size(list);
    int64_t *at = py_pool_alloc(p, (size_t)(out->n + 1) * sizeof *at);
    for (int i = 0; at && i < out->n; i++)
        if (block_index(st, PyList_GetItem(list, i), &at[i]))
            return -1;
    out->longs = at;
    return at ? 0 : -1;
}

static int to_singles(py_pool *p, PyObject *o, const char *what, fl_attr *out)
{
    const double *wide;
    if (to_floats(p, o, what, &out->n, &wide))
        return -1;
    float *at = py_pool_alloc(p, (size_t)(out->n + 1) * sizeof *at);
    for (int i = 0; at && i < out->n; i++)
        at[i] = (float)wide[i];
    out->floats = at;
    return at ? 0 : -1;
}

/* The attribute type of a value, for attributes that are in no table. */
static fl_attr_type type_of(py_state *st, PyObject *o)
{
    if (PyObject_TypeCheck(o, st->type[PY_BLOCK]))
        return FL_ATTR_BLOCK;
    if (PyUnicode_Check(o))
        return FL_ATTR_STRING;
    if (PyBool_Check(o))
        return FL_ATTR_BOOL;
    if (PyIndex_Check(o))
        return FL_ATTR_INT;
    return FL_ATTR_FLOAT;
}

static fl_attr_type list_type_of(py_state *st, PyObject *o)
{
    static const fl_attr_type of[] = {
        [FL_ATTR_BLOCK] = FL_ATTR_BLOCKS, [FL_ATTR_STRING] = FL_ATTR_STRINGS,
        [FL_ATTR_BOOL] = FL_ATTR_BOOLS,   [FL_ATTR_INT] = FL_ATTR_INTS,
        [FL_ATTR_FLOAT] = FL_ATTR_FLOATS,
    };
    PyObject *first = PySequence_Size(o) > 0 ? PySequence_GetItem(o, 0) : NULL;
    PyErr_Clear();
    const fl_attr_type t = first ? of[type_of(st, first)] : FL_ATTR_INTS;
    Py_XDECREF(first);
    return t;
}

int py_to_attr(py_pool *p, py_state *st, const char *name,
               const fl_attr_type *type, PyObject *o, fl_attr *out)
{
    double f = 0;
    int failed;
    *out = (fl_attr){.name = name};
    out->type = type         ? *type
                : is_list(o) ? list_type_of(st, o)
                             : type_of(st, o);
    switch (out->type) {
    case FL_ATTR_INT:
    case FL_ATTR_LONG:
        return to_int(o, name, &out->i);
    case FL_ATTR_FLOAT:
        failed = to_float(o, name, &f);
        out->f = (float)f;
        return failed;
    case FL_ATTR_STRING:
        return py_to_text(o, name, &out->s);
    case FL_ATTR_BOOL:
        return to_bool(o, &out->b);
    case FL_ATTR_BLOCK:
        return block_index(st, o, &out->i);
    case FL_ATTR_INTS:
    case FL_ATTR_LONGS:
        return to_ints(p, o, name, &out->n, &out->longs);
    case FL_ATTR_FLOATS:
        return to_singles(p, o, name, out);
    case FL_ATTR_STRINGS:
        return py_to_names(p, o, &out->n, &out->strings);
    case FL_ATTR_BOOLS:
        return to_bools(p, o, name, &out->n, &out->bools);
    case FL_ATTR_BLOCKS:
        return to_blocks(p, st, o, out);
    }
    return -1;
}

/* --- back --- */

PyObject *py_from_strings(int n, const char *const *s)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *o = PyUnicode_FromString(s[i]);
        if (!o || PyList_SetItem(list, i, o))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *py_from_shape(const fl_shape *s)
{
    PyObject *t = PyTuple_New(s->rank);
    for (int i = 0; t && i < s->rank; i++) {
        PyObject *o = PyLong_FromLongLong(s->dim[i]);
        if (!o || PyTuple_SetItem(t, i, o))
            Py_CLEAR(t);
    }
    return t;
}

static PyObject *from_item(py_program *p, const fl_attr *a, int i, bool views)
{
    switch (a->type) {
    case FL_ATTR_FLOATS:
        return PyFloat_FromDouble((double)a->floats[i]);
    case FL_ATTR_STRINGS:
        return PyUnicode_FromString(a->strings[i]);
    case FL_ATTR_BOOLS:
        return PyBool_FromLong(a->bools[i]);
    case FL_ATTR_BLOCKS:
        if (views)
            return py_block_wrap(p, (int)a->longs[i]);
        /* fall through */
    default:
        return PyLong_FromLongLong(a->longs[i]);
    }
}

PyObject *py_from_attr(py_program *p, const fl_attr *a, bool views)
{
    switch (a->type) {
    case FL_ATTR_INT:
    case FL_ATTR_LONG:
        return PyLong_FromLongLong(a->i);
    case FL_ATTR_FLOAT:
        return PyFloat_FromDouble((double)a->f);
    case FL_ATTR_STRING:
        return PyUnicode_FromString(a->s ? a->s : "");
    case FL_ATTR_BOOL:
        return PyBool_FromLong(a->b);
    case FL_ATTR_BLOCK:
        return views ? py_block_wrap(p, (int)a->i) : PyLong_FromLongLong(a->i);
    default:
        break;
    }
    PyObject *list = PyList_New(a->n);
    for (int i = 0; list && i < a->n; i++) {
        PyObject *o = from_item(p, a, i, views);
        if (!o || PyList_SetItem(list, i, o))
            Py_CLEAR(list);
    }
    return list;
}
