/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_program.c - Program and Block, and the views that a program keeps. */
#include "_fluid.h"

#include <string.h>

/* --- views --- */

/* The cached view of a C object; if there is none, a new one of that class. */
static PyObject *view(py_program *p, const void *at, int cls, bool *made)
{
    PyObject *key = PyLong_FromVoidPtr((void *)at);
    PyObject *o = key ? PyDict_GetItemWithError(p->views, key) : NULL;
    *made = false;
    if (o || PyErr_Occurred()) {
        Py_XINCREF(o);
    } else if ((o = py_alloc(p->st->cls[cls]))) {
        *made = true;
        if (PyDict_SetItem(p->views, key, o))
            Py_CLEAR(o);
    }
    Py_XDECREF(key);
    return o;
}

PyObject *py_op_wrap(py_program *p, fl_op *op)
{
    bool made;
    py_operator *o = (py_operator *)view(p, op, PY_CLS_OPERATOR, &made);
    if (o && made) {
        o->st = p->st;
        o->program = (py_program *)Py_NewRef((PyObject *)p);
        o->op = op;
    }
    return (PyObject *)o;
}

PyObject *py_var_wrap(py_program *p, fl_var *v)
{
    bool made;
    if (!v)
        return Py_NewRef(Py_None);
    const int cls = fl_var_look(v).param ? PY_CLS_PARAMETER : PY_CLS_VARIABLE;
    py_variable *o = (py_variable *)view(p, v, cls, &made);
    if (o && made) {
        o->st = p->st;
        o->program = (py_program *)Py_NewRef((PyObject *)p);
        o->v = v;
    }
    return (PyObject *)o;
}

PyObject *py_block_wrap(py_program *p, int idx)
{
    PyObject *key = PyLong_FromLong(idx);
    PyObject *o = key ? PyDict_GetItemWithError(p->blocks, key) : NULL;
    if (o) {
        Py_INCREF(o);
    } else if (!fl_program_block(p->p, idx)) {
        PyErr_Format(PyExc_IndexError, "the program has no block %d", idx);
    } else if ((o = py_alloc(p->st->cls[PY_CLS_BLOCK]))) {
        ((py_block *)o)->st = p->st;
        ((py_block *)o)->program = (py_program *)Py_NewRef((PyObject *)p);
        ((py_block *)o)->idx = idx;
        if (PyDict_SetItem(p->blocks, key, o))
            Py_CLEAR(o);
    }
    Py_XDECREF(key);
    return o;
}

PyObject *py_params_grads(py_program *p, const fl_param_grads *pgs)
{
    PyObject *list = PyList_New((Py_ssize_t)pgs->n);
    for (int64_t i = 0; list && i < pgs->n; i++) {
        PyObject *param = py_var_wrap(p, pgs->at[i].param);
        PyObject *grad = py_var_wrap(p, pgs->at[i].grad);
        PyObject *pair = param && grad ? PyTuple_Pack(2, param, grad) : NULL;
        Py_XDECREF(param);
        Py_XDECREF(grad);
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair))
            Py_CLEAR(list);
    }
    return list;
}

int py_program_keep(py_program *p, PyObject *list)
{
    PyObject *more = PySequence_InPlaceConcat(p->keep, list);
    Py_XDECREF(more);
    return more ? 0 : -1;
}

/* --- making and freeing a Program --- */

PyObject *py_program_wrap(py_state *st, fl_program *p, py_program *like)
{
    py_program *o = (py_program *)py_alloc(st->cls[PY_CLS_PROGRAM]);
    if (!o) {
        fl_program_free(p);
        return NULL;
    }
    o->st = st;
    o->p = p;
    o->views = PyDict_New();
    o->blocks = PyDict_New();
    o->keep = PyList_New(0);
    o->role_vars = PyList_New(0);
    if (!o->views || !o->blocks || !o->keep || !o->role_vars ||
        (like && py_program_keep(o, like->keep)))
        Py_CLEAR(o);
    return (PyObject *)o;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    py_state *st = py_state_of(type);
    if (!st)
        return NULL;
    PyTypeObject *usual = st->cls[PY_CLS_PROGRAM];
    st->cls[PY_CLS_PROGRAM] = type; /* the requested class may be a subclass */
    PyObject *o = py_program_wrap(st, fl_program_new(st->engine), NULL);
    st->cls[PY_CLS_PROGRAM] = usual;
    return o;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg)
{
    py_program *p = (py_program *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(p->views);
    Py_VISIT(p->blocks);
    Py_VISIT(p->keep);
    Py_VISIT(p->role_vars);
    return 0;
}

static int program_clear(PyObject *self)
{
    py_program *p = (py_program *)self;
    Py_CLEAR(p->views);
    Py_CLEAR(p->blocks);
    Py_CLEAR(p->keep);
    Py_CLEAR(p->role_vars);
    return 0;
}

/* Views hold references to the program, so none is left here. */
static void program_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    program_clear(self);
    fl_program_free(((py_program *)self)->p);
    py_dealloc(self);
}

/* --- fields of a Program --- */

static PyObject *get_num_blocks(PyObject *self, void *closure)
{
    int n = 0;
    while (fl_program_block(((py_program *)self)->p, n))
        n++;
    return PyLong_FromLong(n);
}

static PyObject *get_version(PyObject *self, void *closure)
{
    return PyLong_FromUnsignedLongLong(
        fl_program_version(((py_program *)self)->p));
}

static PyObject *get_seed(PyObject *self, void *closure)
{
    return PyLong_FromLongLong(fl_program_seed(((py_program *)self)->p));
}

static int set_seed(PyObject *self, PyObject *value, void *closure)
{
    const long long seed = value ? PyLong_AsLongLong(value) : 0;
    if (!value || (seed == -1 && PyErr_Occurred())) {
        PyErr_SetString(PyExc_ValueError, "program.random_seed must be an int");
        return -1;
    }
    fl_program_set_seed(((py_program *)self)->p, seed);
    return 0;
}

static PyObject *get_current(PyObject *self, void *closure)
{
    return PyLong_FromLong(((py_program *)self)->current_block);
}

static int set_current(PyObject *self, PyObject *value, void *closure)
{
    py_program *p = (py_program *)self;
    const long idx = value ? PyLong_AsLong(value) : -1;
    if (idx == -1 && PyErr_Occurred())
        return -1;
    if (!fl_program_block(p->p, (int)idx)) {
        PyErr_Format(PyExc_IndexError, "the program has no block %ld", idx);
        return -1;
    }
    p->current_block = (int)idx;
    return 0;
}

static PyObject *get_role(PyObject *self, void *closure)
{
    return PyLong_FromLong(((py_program *)self)->op_role);
}

static int set_role(PyObject *self, PyObject *value, void *closure)
{
    PyObject *i = value ? PyNumber_Index(value) : NULL;
    const long role = i ? PyLong_AsLong(i) : -1;
    Py_XDECREF(i);
    if (role == -1 && PyErr_Occurred())
        return -1;
    ((py_program *)self)->op_role = (int)role;
    return 0;
}

static PyObject *get_role_vars(PyObject *self, void *closure)
{
    return Py_NewRef(((py_program *)self)->role_vars);
}

static int set_role_vars(PyObject *self, PyObject *value, void *closure)
{
    py_program *p = (py_program *)self;
    PyObject *list = value ? PySequence_List(value) : PyList_New(0);
    if (!list)
        return -1;
    py_replace(&p->role_vars, list);
    return 0;
}

static PyGetSetDef program_fields[] = {
    {"num_blocks", get_num_blocks, NULL, "The number of blocks.", NULL},
    {"version", get_version, NULL, "The number of changes so far.", NULL},
    {"random_seed", get_seed, set_seed,
     "Seed of random numbers; 0: other numbers each time.", NULL},
    {"current_block_idx", get_current, set_current,
     "Index of the block to which layers append.", NULL},
    {"op_role", get_role, set_role,
     "The role that operators get that are appended.", NULL},
    {"op_role_vars", get_role_vars, set_role_vars, "Parameter and gradient.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- methods of a Program --- */

static PyObject *program_block(PyObject *self, PyObject *arg)
{
    const long idx = PyLong_AsLong(arg);
    if (idx == -1 && PyErr_Occurred())
        return NULL;
    return py_block_wrap((py_program *)self, (int)idx);
}

static PyObject *create_block(PyObject *self, PyObject *arg)
{
    py_program *p = (py_program *)self;
    const long parent = PyLong_AsLong(arg);
    if (parent == -1 && PyErr_Occurred())
        return NULL;
    if (parent != -1 && !fl_program_block(p->p, (int)parent))
        return PyErr_Format(PyExc_IndexError, "the program has no block %ld",
                            parent);
    fl_block *b = fl_program_add_block(p->p, (int)parent);
    return py_block_wrap(p, fl_block_look(b).idx);
}

static PyObject *clone(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"for_test", NULL};
    py_program *p = (py_program *)self;
    int for_test = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|p:clone", names, &for_test))
        return NULL;
    return py_program_wrap(p->st, fl_program_clone(p->p, for_test), p);
}

static PyObject *prune(PyObject *self, PyObject *arg)
{
    py_program *p = (py_program *)self;
    py_pool pool = {NULL};
    int n;
    const char *const *targets;
    fl_program *out = NULL;
    PyObject *o = NULL;
    if (!py_to_names(&pool, arg, &n, &targets)) {
        const fl_err err = fl_program_prune(p->p, n, targets, &out);
        o = err ? py_raise(p->st, err) : py_program_wrap(p->st, out, p);
    }
    py_pool_fini(&pool);
    return o;
}

static PyObject *inference(PyObject *self, PyObject *args)
{
    py_program *p = (py_program *)self;
    py_pool pool = {NULL};
    PyObject *of_feeds, *of_targets, *o = NULL;
    const char *const *feeds, *const *targets;
    int n_feeds, n_targets;
    fl_program *out = NULL;
    if (!PyArg_ParseTuple(args, "OO:inference", &of_feeds, &of_targets))
        return NULL;
    if (!py_to_names(&pool, of_feeds, &n_feeds, &feeds) &&
        !py_to_names(&pool, of_targets, &n_targets, &targets)) {
        const fl_err err = fl_inference_program(p->p, n_feeds, feeds, n_targets,
                                                targets, &out);
        o = err ? py_raise(p->st, err) : py_program_wrap(p->st, out, p);
    }
    py_pool_fini(&pool);
    return o;
}

/* Identifies the variable of a view, so that it can be found again. */
typedef struct place {
    py_variable *view;
    int block;
    char *name; /* a copy, because names are freed with the content of the
                   program */
} place;

static int collect(py_program *p, place **out)
{
    PyObject *key, *o;
    Py_ssize_t at = 0;
    int n = 0;
    *out = PyMem_Calloc((size_t)PyDict_Size(p->views) + 1, sizeof **out);
    while (*out && PyDict_Next(p->views, &at, &key, &o)) {
        if (!PyObject_TypeCheck(o, p->st->type[PY_VARIABLE])) {
            ((py_operator *)o)->op = NULL;
            continue;
        }
        py_variable *v = (py_variable *)o;
        if (!v->v)
            continue;
        const fl_var_info i = fl_var_look(v->v);
        const size_t size = strlen(i.name) + 1;
        char *name = PyMem_Malloc(size);
        if (name)
            memcpy(name, i.name, size);
        Py_INCREF(o);
        (*out)[n++] = (place){v, fl_block_look(i.block).idx, name};
    }
    return n;
}

/* After the content was replaced: find the variables of views again by block
 * and name, and clear the cache. */
static void settle(py_program *p, place *at, int n)
{
    PyDict_Clear(p->views);
    for (int i = 0; i < n; i++) {
        fl_block *b = fl_program_block(p->p, at[i].block);
        py_variable *v = at[i].view;
        v->v = b && at[i].name ? fl_block_var(b, at[i].name) : NULL;
        PyObject *key = PyLong_FromVoidPtr(v->v);
        if (key && v->v)
            PyDict_SetItem(p->views, key, (PyObject *)v);
        Py_XDECREF(key);
        PyErr_Clear();
        PyMem_Free(at[i].name);
        Py_DECREF((PyObject *)v);
    }
    PyMem_Free(at);
    p->current_block = 0;
}

static void end_program(PyObject *capsule)
{
    fl_program_free(PyCapsule_GetPointer(capsule, NULL));
}

/* Keep the old content of a program alive: an Optimizer may still point into
 * it. */
static int retire(py_program *p)
{
    fl_program *old = fl_program_new(p->st->engine);
    PyObject *o = PyCapsule_New(old, NULL, end_program);
    const int failed = !o || PyList_Append(p->keep, o);
    Py_XDECREF(o);
    if (!failed)
        fl_program_take(old, p->p);
    return failed;
}

static PyObject *take_program(PyObject *self, PyObject *arg)
{
    py_program *p = (py_program *)self, *from = (py_program *)arg;
    place *mine, *theirs;
    if (!PyObject_TypeCheck(arg, p->st->type[PY_PROGRAM]) || from == p)
        return PyErr_Format(PyExc_TypeError, "take: %R is not another Program",
                            arg);
    if (py_program_keep(p, from->keep) || retire(p))
        return NULL;
    const int n = collect(p, &mine), n_theirs = collect(from, &theirs);
    fl_program_take(p->p, from->p);
    fl_program_free(from->p);
    from->p = fl_program_new(p->st->engine);
    settle(p, mine, n);
    settle(from, theirs, n_theirs);
    return Py_NewRef(Py_None);
}

static PyObject *verify(PyObject *self, PyObject *none)
{
    py_program *p = (py_program *)self;
    return py_result(p->st, fl_program_verify(p->p));
}

static PyObject *serialize(PyObject *self, PyObject *none)
{
    py_program *p = (py_program *)self;
    void *bytes;
    size_t n;
    const fl_err err = fl_program_encode(p->p, &bytes, &n);
    if (err)
        return py_raise(p->st, err);
    PyObject *o = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)n);
    fl_free(bytes);
    return o;
}

static PyObject *parse_bytes(PyObject *cls, PyObject *args, PyObject *kw)
{
    static char *names[] = {"data", "name", NULL};
    py_state *st = py_state_of((PyTypeObject *)cls);
    Py_buffer data;
    const char *name = "program";
    fl_program *out;
    if (!st || !PyArg_ParseTupleAndKeywords(args, kw, "y*|s:parse_from_string",
                                            names, &data, &name))
        return NULL;
    const fl_err err =
        fl_program_read(st->engine, name, data.buf, (size_t)data.len, &out);
    PyBuffer_Release(&data);
    return err ? py_raise(st, err) : py_program_wrap(st, out, NULL);
}

static PyObject *program_string(PyObject *self, PyObject *none)
{
    return py_text(fl_program_proto(((py_program *)self)->p));
}

static PyObject *program_text(PyObject *self, PyObject *none)
{
    return py_text(fl_program_text(((py_program *)self)->p));
}

static PyMethodDef program_methods[] = {
    {"block", program_block, METH_O, "The block of that index."},
    {"create_block", create_block, METH_O, "A new block under a parent."},
    {"clone", PY_KEYWORDS(clone), "A copy of the program."},
    {"prune", prune, METH_O, "A program with what the named variables need."},
    {"inference", inference, METH_VARARGS,
     "The program as a saved model has it."},
    {"take", take_program, METH_O,
     "Take the content of another program, which is empty afterwards."},
    {"verify", verify, METH_NOARGS,
     "Check the program; ValueError if it breaks a rule."},
    {"serialize_to_string", serialize, METH_NOARGS,
     "The program as bytes of Paddle's ProgramDesc."},
    {"parse_from_string", (PyCFunction)(void (*)(void))parse_bytes,
     METH_CLASS | METH_VARARGS | METH_KEYWORDS,
     "A program from bytes of a ProgramDesc."},
    {"to_string", program_string, METH_NOARGS, "Protobuf's text format."},
    {"to_text", program_text, METH_NOARGS, "The library's readable form."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "A program: blocks of variables and operators."},
    {Py_tp_new, (void *)program_new},
    {Py_tp_dealloc, (void *)program_dealloc},
    {Py_tp_traverse, (void *)program_traverse},
    {Py_tp_clear, (void *)program_clear},
    {Py_tp_methods, program_methods},
    {Py_tp_getset, program_fields},
    {0, NULL},
};

PyType_Spec py_program_spec = {
    .name = "_fluid.Program",
    .basicsize = sizeof(py_program),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = program_slots,
};
