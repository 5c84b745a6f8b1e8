/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_scope.c - Scope, Value and SelectedRows.
 *
 * A Python object for a variable of a scope holds the scope and the name, not
 * a pointer, because values may be erased and scopes dropped meanwhile. */
#include "_fluid.h"

#include <string.h>

/* --- Scope --- */

fl_scope *py_scope_get(py_scope *s)
{
    if (!s->s)
        PyErr_SetString(PyExc_RuntimeError,
                        "the scope is gone: its parent dropped its kids");
    return s->s;
}

fl_scope *py_scope_begin_run(py_scope *s)
{
    s->runs += s->s != NULL;
    return py_scope_get(s);
}

void py_scope_end_run(py_scope *s)
{
    s->runs--;
}

/* Whether a C call uses one of these scopes or a scope below them. */
static bool any_runs(const py_scope *kid)
{
    for (; kid; kid = kid->next)
        if (kid->runs || any_runs(kid->kids))
            return true;
    return false;
}

static PyObject *scope_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    py_state *st = py_state_of(type);
    py_scope *s = st ? (py_scope *)py_alloc(type) : NULL;
    if (s) {
        s->st = st;
        s->s = fl_scope_new();
    }
    return (PyObject *)s;
}

static void leave_parent(py_scope *s)
{
    for (py_scope **at = &s->parent->kids; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            return;
        }
}

/* The C scope of a child stays in its parent until the parent drops its kids.
 */
static void scope_dealloc(PyObject *self)
{
    py_scope *s = (py_scope *)self;
    if (s->parent)
        leave_parent(s);
    else
        fl_scope_free(s->s);
    Py_CLEAR(s->parent);
    py_dealloc(self);
}

static PyObject *make_value(py_scope *s, PyObject *name);

static PyObject *scope_var(PyObject *self, PyObject *name)
{
    py_scope *s = (py_scope *)self;
    fl_scope *at = py_scope_get(s);
    const char *text;
    if (!at || py_to_text(name, "a variable's name", &text))
        return NULL;
    fl_scope_var(at, text);
    return make_value(s, name);
}

static PyObject *scope_find(PyObject *self, PyObject *name)
{
    py_scope *s = (py_scope *)self;
    fl_scope *at = py_scope_get(s);
    const char *text;
    if (!at || py_to_text(name, "a variable's name", &text))
        return NULL;
    return fl_scope_find(at, text) ? make_value(s, name) : Py_NewRef(Py_None);
}

static PyObject *scope_erase(PyObject *self, PyObject *of_names)
{
    py_scope *s = (py_scope *)self;
    fl_scope *at = py_scope_get(s);
    py_pool pool = {NULL};
    const char *const *names;
    int n;
    bool ok = at && !py_to_names(&pool, of_names, &n, &names);
    if (ok && (s->runs || any_runs(s->kids))) {
        PyErr_SetString(PyExc_RuntimeError,
                        "erase: a program runs in this scope, or in one below "
                        "it, on another thread; wait for its end");
        ok = false;
    }
    for (int i = 0; ok && i < n; i++)
        fl_scope_erase(at, names[i]);
    py_pool_fini(&pool);
    return ok ? Py_NewRef(Py_None) : NULL;
}

static PyObject *scope_child(PyObject *self, PyObject *none)
{
    py_scope *s = (py_scope *)self;
    if (!py_scope_get(s))
        return NULL;
    py_scope *kid = (py_scope *)py_alloc(Py_TYPE(self));
    if (!kid)
        return NULL;
    kid->st = s->st;
    kid->s = fl_scope_child(s->s);
    kid->parent = (py_scope *)Py_NewRef(self);
    kid->next = s->kids;
    s->kids = kid;
    return (PyObject *)kid;
}

static void mark_gone(py_scope *kid)
{
    for (; kid; kid = kid->next) {
        kid->s = NULL;
        mark_gone(kid->kids);
    }
}

static PyObject *scope_drop_kids(PyObject *self, PyObject *none)
{
    py_scope *s = (py_scope *)self;
    if (!py_scope_get(s))
        return NULL;
    if (any_runs(s->kids)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "drop_kids: a program runs in a child of this scope "
                        "on another thread; wait for its end");
        return NULL;
    }
    mark_gone(s->kids);
    fl_scope_drop_kids(s->s);
    return Py_NewRef(Py_None);
}

/* Append a name to a list. After an error *list is NULL. */
static void add_name(void *to, const char *name, fl_value *v)
{
    PyObject **list = to;
    PyObject *o = *list ? PyUnicode_FromString(name) : NULL;
    if (!o || PyList_Append(*list, o))
        Py_CLEAR(*list);
    Py_XDECREF(o);
}

static PyObject *scope_names(PyObject *self, PyObject *none)
{
    fl_scope *at = py_scope_get((py_scope *)self);
    PyObject *list = at ? PyList_New(0) : NULL;
    if (list)
        fl_scope_each(at, add_name, &list);
    return list;
}

static PyMethodDef scope_methods[] = {
    {"var", scope_var, METH_O,
     "The variable of this scope; made if it does not exist."},
    {"find_var", scope_find, METH_O,
     "The variable of this scope or its parents, or None."},
    {"erase", scope_erase, METH_O, "Remove these names from this scope."},
    {"new_scope", scope_child, METH_NOARGS, "A new child scope."},
    {"drop_kids", scope_drop_kids, METH_NOARGS, "Drop all child scopes."},
    {"local_var_names", scope_names, METH_NOARGS, "In order of creation."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot scope_slots[] = {
    {Py_tp_doc, "A mapping from names to values."},
    {Py_tp_new, (void *)scope_new},
    {Py_tp_dealloc, (void *)scope_dealloc},
    {Py_tp_methods, scope_methods},
    {0, NULL},
};

PyType_Spec py_scope_spec = {
    .name = "_fluid.Scope",
    .basicsize = sizeof(py_scope),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = scope_slots,
};

/* --- Value --- */

typedef struct py_value {
    PyObject head;
    py_state *st;
    py_scope *scope;
    PyObject *name;
} py_value;

static PyObject *make_value(py_scope *s, PyObject *name)
{
    py_value *v = (py_value *)py_alloc(s->st->type[PY_VALUE]);
    if (!v)
        return NULL;
    v->st = s->st;
    v->scope = (py_scope *)Py_NewRef((PyObject *)s);
    v->name = Py_NewRef(name);
    return (PyObject *)v;
}

static void value_dealloc(PyObject *self)
{
    Py_CLEAR(((py_value *)self)->scope);
    Py_CLEAR(((py_value *)self)->name);
    py_dealloc(self);
}

static fl_value *find_value(py_state *st, py_scope *s, PyObject *name)
{
    fl_scope *at = py_scope_get(s);
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    fl_value *v = at && text ? fl_scope_find(at, text) : NULL;
    if (at && text && !v)
        PyErr_Format(st->enforce_not_met, "the scope holds \"%s\" no longer",
                     text);
    return v;
}

static fl_value *value_of(PyObject *self)
{
    py_value *v = (py_value *)self;
    return find_value(v->st, v->scope, v->name);
}

static PyObject *value_name(PyObject *self, void *closure)
{
    return Py_NewRef(((py_value *)self)->name);
}

static PyObject *value_type(PyObject *self, void *closure)
{
    const fl_value *v = value_of(self);
    return v ? PyLong_FromLong((long)fl_value_kind(v)) : NULL;
}

static PyGetSetDef value_fields[] = {
    {"name", value_name, NULL, "Its name.", NULL},
    {"type", value_type, NULL, "Its kind; 0: nothing yet.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *value_tensor(PyObject *self, PyObject *none)
{
    py_value *o = (py_value *)self;
    fl_value *v = value_of(self);
    fl_tensor *t;
    if (!v)
        return NULL;
    const fl_err err = fl_value_tensor(v, &t);
    return err ? py_raise_run(o->st, err)
               : py_tensor_view(o->st, (PyObject *)o->scope, o->name);
}

static PyObject *make_rows(py_state *st, PyTypeObject *type, py_scope *s,
                           PyObject *name);

static PyObject *value_rows(PyObject *self, PyObject *none)
{
    py_value *o = (py_value *)self;
    fl_value *v = value_of(self);
    fl_rows *r;
    if (!v)
        return NULL;
    const fl_err err = fl_value_rows(v, &r);
    return err ? py_raise_run(o->st, err)
               : make_rows(o->st, o->st->type[PY_ROWS], o->scope, o->name);
}

/* New tensors, because the tensors of an array may move in memory. */
static PyObject *value_array(PyObject *self, PyObject *none)
{
    py_value *o = (py_value *)self;
    fl_value *v = value_of(self);
    fl_tensor *at;
    int64_t n;
    if (!v)
        return NULL;
    fl_err err = fl_value_array(v, &n, &at);
    if (err)
        return py_raise_run(o->st, err);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        fl_tensor copy = {0};
        err = fl_tensor_copy(&copy, &at[i]);
        PyObject *t =
            err ? py_raise_run(o->st, err) : py_tensor_take(o->st, &copy);
        if (!t || PyList_SetItem(list, (Py_ssize_t)i, t))
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef value_methods[] = {
    {"get_tensor", value_tensor, METH_NOARGS, "A view."},
    {"get_selected_rows", value_rows, METH_NOARGS, "A view."},
    {"get_lod_tensor_array", value_array, METH_NOARGS, "Copies."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot value_slots[] = {
    {Py_tp_doc, "What a scope holds under a name."},
    {Py_tp_dealloc, (void *)value_dealloc},
    {Py_tp_methods, value_methods},
    {Py_tp_getset, value_fields},
    {0, NULL},
};

PyType_Spec py_value_spec = {
    .name = "_fluid.Value",
    .basicsize = sizeof(py_value),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = value_slots,
};

/* --- SelectedRows --- */

typedef struct py_rows {
    PyObject head;
    py_state *st;
    fl_value *own; /* NULL: the value of a scope */
    py_scope *scope;
    PyObject *name;
} py_rows;

static fl_rows *rows_of(PyObject *self)
{
    py_rows *o = (py_rows *)self;
    fl_value *v = o->own ? o->own : find_value(o->st, o->scope, o->name);
    fl_rows *r = NULL;
    if (v && fl_value_rows(v, &r))
        py_raise_run(o->st, FL_EINVAL);
    return r;
}

fl_tensor *py_rows_tensor(PyObject *rows)
{
    fl_rows *r = rows_of(rows);
    return r ? &r->value : NULL;
}

static int64_t listed(const fl_rows *r)
{
    return r->index.data ? r->index.shape.dim[0] : 0;
}

/* Clear the rows if the number of values does not match, because kernels rely
 * on n. */
void py_rows_settle(PyObject *rows)
{
    fl_rows *r = rows_of(rows);
    if (!r)
        return;
    const bool fits = r->value.data && r->value.shape.rank &&
                      r->value.shape.dim[0] == listed(r);
    r->n = fits ? listed(r) : 0;
}

static PyObject *make_rows(py_state *st, PyTypeObject *type, py_scope *s,
                           PyObject *name)
{
    py_rows *o = (py_rows *)py_alloc(type);
    if (!o)
        return NULL;
    o->st = st;
    if (s) {
        o->scope = (py_scope *)Py_NewRef((PyObject *)s);
        o->name = Py_NewRef(name);
    } else {
        o->own = fl_value_new();
    }
    return (PyObject *)o;
}

PyObject *py_rows_take(py_state *st, fl_rows *r)
{
    PyObject *self = make_rows(st, st->type[PY_ROWS], NULL, NULL);
    fl_rows *mine = self ? rows_of(self) : NULL;
    if (mine) {
        *mine = *r;
        return self;
    }
    fl_tensor_fini(&r->index);
    fl_tensor_fini(&r->value);
    return NULL;
}

static PyObject *set_rows(PyObject *self, PyObject *list)
{
    static const fl_attr_type longs = FL_ATTR_LONGS;
    py_rows *o = (py_rows *)self;
    py_pool pool = {NULL};
    PyObject *result = NULL;
    fl_attr rows;
    fl_rows *r = NULL;
    if (!py_to_attr(&pool, o->st, "rows", &longs, list, &rows) &&
        (r = rows_of(self))) {
        const fl_shape shape = {1, {rows.n}};
        const fl_err err = fl_tensor_resize(&r->index, FL_I64, &shape);
        if (!err)
            memcpy(r->index.data, rows.longs,
                   (size_t)rows.n * sizeof *rows.longs);
        if (!err)
            py_rows_settle(self);
        result = py_result(o->st, err);
    }
    py_pool_fini(&pool);
    return result;
}

static PyObject *rows_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = {"rows", "height", NULL};
    py_state *st = py_state_of(type);
    PyObject *rows = NULL;
    long long height = 0;
    if (!st || !PyArg_ParseTupleAndKeywords(args, kw, "|OL:SelectedRows", names,
                                            &rows, &height))
        return NULL;
    PyObject *self = make_rows(st, type, NULL, NULL);
    if (!self)
        return NULL;
    rows_of(self)->height = height;
    PyObject *none = rows ? set_rows(self, rows) : Py_NewRef(Py_None);
    if (!none)
        Py_CLEAR(self);
    Py_XDECREF(none);
    return self;
}

static void rows_dealloc(PyObject *self)
{
    py_rows *o = (py_rows *)self;
    fl_value_free(o->own);
    Py_CLEAR(o->scope);
    Py_CLEAR(o->name);
    py_dealloc(self);
}

static PyObject *get_rows(PyObject *self, PyObject *none)
{
    const fl_rows *r = rows_of(self);
    PyObject *list = r ? PyList_New((Py_ssize_t)listed(r)) : NULL;
    for (int64_t i = 0; list && i < listed(r); i++) {
        PyObject *o = PyLong_FromLongLong(((const int64_t *)r->index.data)[i]);
        if (!o || PyList_SetItem(list, (Py_ssize_t)i, o))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *get_height(PyObject *self, PyObject *none)
{
    const fl_rows *r = rows_of(self);
    return r ? PyLong_FromLongLong(r->height) : NULL;
}

static PyObject *set_height(PyObject *self, PyObject *height)
{
    const long long h = PyLong_AsLongLong(height);
    fl_rows *r = h == -1 && PyErr_Occurred() ? NULL : rows_of(self);
    if (!r)
        return NULL;
    r->height = h;
    return Py_NewRef(Py_None);
}

static PyObject *rows_tensor(PyObject *self, PyObject *none)
{
    return py_tensor_view(((py_rows *)self)->st, self, NULL);
}

static PyMethodDef rows_methods[] = {
    {"rows", get_rows, METH_NOARGS, "The indices of the rows, a list."},
    {"set_rows", set_rows, METH_O,
     "Set the indices of the rows, before or after their values."},
    {"height", get_height, METH_NOARGS,
     "The number of rows of the whole matrix."},
    {"set_height", set_height, METH_O,
     "Set the number of rows of the whole matrix."},
    {"get_tensor", rows_tensor, METH_NOARGS,
     "The values of the rows, without a copy."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot rows_slots[] = {
    {Py_tp_doc, "Some rows of a tall matrix."},
    {Py_tp_new, (void *)rows_new},
    {Py_tp_dealloc, (void *)rows_dealloc},
    {Py_tp_methods, rows_methods},
    {0, NULL},
};

PyType_Spec py_rows_spec = {
    .name = "_fluid.SelectedRows",
    .basicsize = sizeof(py_rows),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = rows_slots,
};
