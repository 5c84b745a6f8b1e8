/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_block.c - Block. */
#include "_fluid.h"

#include <string.h>

fl_block *py_block_get(py_block *b)
{
    fl_block *at = fl_program_block(b->program->p, b->idx);
    if (!at)
        PyErr_Format(PyExc_RuntimeError,
                     "block %d is gone: its program was replaced", b->idx);
    return at;
}

static int get_block_info(PyObject *self, fl_block_info *out)
{
    const fl_block *b = py_block_get((py_block *)self);
    if (b)
        *out = fl_block_look(b);
    return b ? 0 : -1;
}

static int block_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((py_block *)self)->program);
    return 0;
}

static int block_clear(PyObject *self)
{
    Py_CLEAR(((py_block *)self)->program);
    return 0;
}

static void block_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    block_clear(self);
    py_dealloc(self);
}

/* --- fields --- */

static PyObject *get_program(PyObject *self, void *closure)
{
    return Py_NewRef((PyObject *)((py_block *)self)->program);
}

static PyObject *get_idx(PyObject *self, void *closure)
{
    return PyLong_FromLong(((py_block *)self)->idx);
}

static PyObject *get_parent(PyObject *self, void *closure)
{
    fl_block_info i;
    return get_block_info(self, &i) ? NULL : PyLong_FromLong(i.parent);
}

static PyObject *get_forward(PyObject *self, void *closure)
{
    fl_block_info i;
    return get_block_info(self, &i) ? NULL : PyLong_FromLong(i.forward);
}

static int set_forward(PyObject *self, PyObject *value, void *closure)
{
    fl_block *b = py_block_get((py_block *)self);
    const long idx = value ? PyLong_AsLong(value) : -1;
    if (!b || PyErr_Occurred())
        return -1;
    fl_block_set_forward(b, (int)idx);
    return 0;
}

static PyObject *get_num_ops(PyObject *self, void *closure)
{
    fl_block_info i;
    return get_block_info(self, &i) ? NULL : PyLong_FromLongLong(i.n_ops);
}

static int put_var(PyObject *dict, py_program *p, fl_var *v)
{
    PyObject *o = py_var_wrap(p, v);
    const int failed = !o || PyDict_SetItemString(dict, fl_var_name(v), o);
    Py_XDECREF(o);
    return failed ? -1 : 0;
}

static PyObject *get_vars(PyObject *self, void *closure)
{
    fl_block_info i;
    py_block *b = (py_block *)self;
    if (get_block_info(self, &i))
        return NULL;
    fl_var **vars = PyMem_Calloc((size_t)i.n_vars + 1, sizeof *vars);
    PyObject *dict = vars ? PyDict_New() : PyErr_NoMemory();
    if (dict)
        fl_block_vars(py_block_get(b), i.n_vars, vars);
    for (int64_t k = 0; dict && k < i.n_vars; k++)
        if (put_var(dict, b->program, vars[k]))
            Py_CLEAR(dict);
    PyMem_Free(vars);
    return dict;
}

static PyObject *get_ops(PyObject *self, void *closure)
{
    fl_block_info i;
    py_block *b = (py_block *)self;
    if (get_block_info(self, &i))
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)i.n_ops);
    for (int64_t k = 0; list && k < i.n_ops; k++) {
        PyObject *o = py_op_wrap(b->program, fl_block_op(py_block_get(b), k));
        if (!o || PyList_SetItem(list, (Py_ssize_t)k, o))
            Py_CLEAR(list);
    }
    return list;
}

static PyGetSetDef fields[] = {
    {"program", get_program, NULL, "Whose block it is.", NULL},
    {"idx", get_idx, NULL, "Its index.", NULL},
    {"parent_idx", get_parent, NULL, "-1: the global block.", NULL},
    {"forward_block_idx", get_forward, set_forward,
     "The block that this is the gradient of, or -1.", NULL},
    {"num_ops", get_num_ops, NULL, "How many operators there are.", NULL},
    {"vars", get_vars, NULL, "A dict, in order of creation.", NULL},
    {"ops", get_ops, NULL, "A list.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- variables --- */

static PyObject *find_with(PyObject *self, PyObject *name,
                           fl_var *(*find)(const fl_block *, const char *))
{
    py_block *b = (py_block *)self;
    const fl_block *at = py_block_get(b);
    const char *text;
    if (!at || py_to_text(name, "a variable's name", &text))
        return NULL;
    return py_var_wrap(b->program, find(at, text));
}

static PyObject *find_var(PyObject *self, PyObject *name)
{
    return find_with(self, name, fl_block_var);
}

static PyObject *find_var_recursive(PyObject *self, PyObject *name)
{
    return find_with(self, name, fl_block_find);
}

/* Arguments of create_var; NULL or None: not given. */
typedef struct wanted {
    PyObject *name, *type, *dtype, *shape, *lod_level, *persistable;
    int stop_gradient, is_data;
} wanted;

static bool given(PyObject *o)
{
    return o && o != Py_None;
}

static int overlay(const wanted *w, fl_var_info *i)
{
    if (given(w->type)) {
        PyObject *number = PyNumber_Index(w->type);
        i->kind = number ? (fl_kind)PyLong_AsLong(number) : i->kind;
        Py_XDECREF(number);
    }
    if (given(w->lod_level))
        i->lod_level = (int)PyLong_AsLong(w->lod_level);
    if (given(w->persistable))
        i->persistable = PyObject_IsTrue(w->persistable) > 0;
    if (PyErr_Occurred() ||
        (given(w->dtype) && py_to_dtype(w->dtype, &i->dtype)) ||
        (given(w->shape) && py_to_shape(w->shape, &i->shape)))
        return -1;
    return 0;
}

/* Declare a variable. If it exists, it must agree with the arguments that are
 * given; others are not compared. */
static PyObject *declare(py_block *b, fl_block *at, const char *name,
                         const wanted *w)
{
    fl_var *old = fl_block_var(at, name), *v;
    fl_var_info i = {.dtype = FL_F32};
    if (old)
        i = fl_var_look(old);
    if (overlay(w, &i))
        return NULL;
    if (!old) {
        i.stop_gradient = w->stop_gradient;
        i.is_data = w->is_data;
    }
    i.name = name;
    const fl_err err = fl_block_declare(at, &i, &v);
    return err ? py_raise(b->st, err) : py_var_wrap(b->program, v);
}

static PyObject *create_var(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"name",          "type",      "dtype",
                            "shape",         "lod_level", "persistable",
                            "stop_gradient", "is_data",   NULL};
    py_block *b = (py_block *)self;
    fl_block *at = py_block_get(b);
    wanted w = {0};
    const char *name;
    if (!at || !PyArg_ParseTupleAndKeywords(
                   args, kw, "|OOOOOOpp:create_var", names, &w.name, &w.type,
                   &w.dtype, &w.shape, &w.lod_level, &w.persistable,
                   &w.stop_gradient, &w.is_data))
        return NULL;
    if (given(w.name))
        return py_to_text(w.name, "a variable's name", &name)
                   ? NULL
                   : declare(b, at, name, &w);
    char *made = fl_names_give(((py_names *)b->st->names)->n, "_generated_var");
    PyObject *o = declare(b, at, made, &w);
    fl_free(made);
    return o;
}

static PyObject *declare_parameter(py_call *c, py_block *b, fl_var_info *i,
                                   PyObject *attr)
{
    fl_param_attr a;
    fl_var *v;
    if (py_to_param(c, attr, &a))
        return NULL;
    const fl_param_info param = {
        .trainable = !a.frozen,
        .learning_rate = a.learning_rate ? a.learning_rate : 1,
        .regularizer = a.regularizer,
        .clip = a.clip,
        .do_model_average = !a.no_average,
    };
    i->param = &param;
    i->persistable = true;
    const fl_err err =
        fl_block_declare(fl_program_block(b->program->p, 0), i, &v);
    return err ? py_raise(b->st, err) : py_var_wrap(b->program, v);
}

static PyObject *create_parameter(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"name", "shape", "dtype", "attr", NULL};
    py_block *b = (py_block *)self;
    PyObject *shape, *dtype, *attr = Py_None, *o = NULL;
    fl_var_info i = {0};
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "sOO|O:create_parameter", names,
                                     &i.name, &shape, &dtype, &attr) ||
        py_to_shape(shape, &i.shape) || py_to_dtype(dtype, &i.dtype))
        return NULL;
    if (!py_call_begin(&c, b->st, b->program, NULL, NULL))
        o = declare_parameter(&c, b, &i, attr);
    py_call_end(&c);
    return o;
}

static PyObject *remove_var(PyObject *self, PyObject *name)
{
    fl_block *at = py_block_get((py_block *)self);
    const char *text;
    if (!at || py_to_text(name, "a variable's name", &text))
        return NULL;
    return PyBool_FromLong(fl_block_remove_var(at, text));
}

static PyObject *rename_var(PyObject *self, PyObject *args)
{
    py_block *b = (py_block *)self;
    fl_block *at = py_block_get(b);
    const char *from, *to;
    if (!at || !PyArg_ParseTuple(args, "ss:rename_var", &from, &to))
        return NULL;
    const fl_err err = fl_block_rename_var(at, from, to);
    return err ? py_raise(b->st, err)
               : py_var_wrap(b->program, fl_block_var(at, to));
}

/* --- operators --- */

static PyObject *append_op(PyObject *self, PyObject *args, PyObject *kw)
{
    return py_add_op((py_block *)self, args, kw, false);
}

static PyObject *insert_op(PyObject *self, PyObject *args, PyObject *kw)
{
    return py_add_op((py_block *)self, args, kw, true);
}

static PyObject *remove_op(PyObject *self, PyObject *index)
{
    fl_block *at = py_block_get((py_block *)self);
    const Py_ssize_t i = at ? PyLong_AsSsize_t(index) : -1;
    if (!at || (i == -1 && PyErr_Occurred()))
        return NULL;
    if (!fl_block_op(at, i))
        return PyErr_Format(PyExc_IndexError, "block %d has no op %zd",
                            ((py_block *)self)->idx, i);
    fl_block_remove_op(at, i);
    return Py_NewRef(Py_None);
}

static PyObject *to_string(PyObject *self, PyObject *none)
{
    const fl_block *at = py_block_get((py_block *)self);
    return at ? py_text(fl_block_proto(at)) : NULL;
}

static PyMethodDef methods[] = {
    {"find_var", find_var, METH_O,
     "Find a variable of this block; None: there is none."},
    {"find_var_recursive", find_var_recursive, METH_O,
     "Find a variable of this block or of its parents."},
    {"create_var", PY_KEYWORDS(create_var),
     "Create a variable, or return an equal one that is there."},
    {"create_parameter", PY_KEYWORDS(create_parameter),
     "Create a parameter in the global block."},
    {"append_op", PY_KEYWORDS(append_op),
     "Append an operator; its outputs get their shapes."},
    {"insert_op", PY_KEYWORDS(insert_op), "Insert an operator at an index."},
    {"remove_op", remove_op, METH_O, "Remove the operator at an index."},
    {"remove_var", remove_var, METH_O,
     "Remove a variable; return whether there was one."},
    {"rename_var", rename_var, METH_VARARGS,
     "Rename a variable, in operators as well."},
    {"to_string", to_string, METH_NOARGS, "Protobuf's text format."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A block of a program."},
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_tp_traverse, (void *)block_traverse},
    {Py_tp_clear, (void *)block_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};

PyType_Spec py_block_spec = {
    .name = "_fluid.Block",
    .basicsize = sizeof(py_block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
