/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_data.c - Dataset and Reader: files of examples.
 *
 * A load is waited for in short intervals, so that Ctrl-C is noticed. A reader
 * waits as long as its files and commands take. */
#include "_fluid.h"

#include <string.h>

enum {
    NAP = 50 * 1000 * 1000 /* nanoseconds between two checks for Ctrl-C */
};

typedef struct py_dataset {
    PyObject head;
    py_state *st;
    fl_dataset *d;
    int n_columns;
} py_dataset;

typedef struct py_reader {
    PyObject head;
    py_state *st;
    py_dataset *dataset; /* a reference */
    fl_reader *r;
    bool busy; /* a thread uses it */
} py_reader;

/* --- Dataset --- */

static PyObject *dataset_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    py_state *st = py_state_of(type);
    py_dataset *o = st ? (py_dataset *)py_alloc(type) : NULL;
    if (!o)
        return NULL;
    o->st = st;
    o->d = fl_dataset_new();
    return (PyObject *)o;
}

static void dataset_dealloc(PyObject *self)
{
    fl_dataset *d = ((py_dataset *)self)->d;
    /* A running load is cancelled and waited for. */
    Py_BEGIN_ALLOW_THREADS fl_dataset_free(d);
    Py_END_ALLOW_THREADS py_dealloc(self);
}

fl_dataset *py_dataset_get(PyObject *self)
{
    return ((py_dataset *)self)->d;
}

static int to_slot(PyObject *o, fl_data_slot *out)
{
    PyObject *dtype, *shape;
    int sparse, used;
    *out = (fl_data_slot){0};
    if (!PyArg_ParseTuple(o, "sOpOp:slot", &out->name, &dtype, &sparse, &shape,
                          &used) ||
        py_to_dtype(dtype, &out->dtype) || py_to_shape(shape, &out->shape))
        return -1;
    out->sparse = sparse;
    out->unused = !used;
    return 0;
}

static int to_slots(py_pool *p, PyObject *list, int *n, fl_data_slot **out)
{
    PyObject *all = PySequence_Tuple(list);
    const int failed = !all || py_pool_keep(p, all);
    Py_XDECREF(all);
    if (failed)
        return -1;
    *n = (int)PyTuple_Size(all);
    *out = py_pool_alloc(p, (size_t)(*n + 1) * sizeof **out);
    for (int i = 0; *out && i < *n; i++)
        if (to_slot(PyTuple_GetItem(all, i), &(*out)[i]))
            return -1;
    return *out ? 0 : -1;
}

/* Convert file names, which need not be valid text. */
static int to_files(py_pool *p, PyObject *list, int *n, const char *const **out)
{
    const Py_ssize_t many = PySequence_Size(list);
    const char **at =
        many < 0 ? NULL : py_pool_alloc(p, (size_t)(many + 1) * sizeof *at);
    for (Py_ssize_t i = 0; at && i < many; i++) {
        PyObject *bytes = NULL, *o = PySequence_GetItem(list, i);
        const int failed =
            !o || !PyUnicode_FSConverter(o, &bytes) || py_pool_keep(p, bytes);
        at[i] = failed ? NULL : PyBytes_AsString(bytes);
        Py_XDECREF(bytes);
        Py_XDECREF(o);
        if (!at[i])
            return -1;
    }
    *n = (int)many;
    *out = at;
    return at ? 0 : -1;
}

static int count_used(int n, const fl_data_slot *s)
{
    int used = 0;
    for (int i = 0; i < n; i++)
        used += !s[i].unused;
    return used;
}

static PyObject *dataset_set(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"slots",   "files",     "pipe", "batch",
                            "threads", "bad_lines", NULL};
    py_dataset *o = (py_dataset *)self;
    py_pool pool = {NULL};
    PyObject *slots, *files, *result = NULL;
    fl_dataset_opts opts = {0};
    fl_data_slot *s = NULL;
    long long batch = 0, bad_lines = 0;
    if (PyArg_ParseTupleAndKeywords(args, kw, "OO|zLiL:set", names, &slots,
                                    &files, &opts.pipe, &batch, &opts.threads,
                                    &bad_lines) &&
        !to_slots(&pool, slots, &opts.n_slots, &s) &&
        !to_files(&pool, files, &opts.n_files, &opts.files)) {
        opts.slots = s;
        opts.batch = batch;
        opts.bad_lines = bad_lines;
        result = py_result(o->st, fl_dataset_set(o->d, &opts));
        if (result)
            o->n_columns = count_used(opts.n_slots, s);
    }
    py_pool_fini(&pool);
    return result;
}

static PyObject *dataset_load(PyObject *self, PyObject *none)
{
    py_dataset *o = (py_dataset *)self;
    const fl_err err = fl_dataset_load(o->d);
    return err ? py_raise_run(o->st, err) : Py_NewRef(Py_None);
}

static PyObject *dataset_release(PyObject *self, PyObject *none)
{
    Py_BEGIN_ALLOW_THREADS fl_dataset_release(((py_dataset *)self)->d);
    Py_END_ALLOW_THREADS return Py_NewRef(Py_None);
}

static PyObject *dataset_wait(PyObject *self, PyObject *none)
{
    py_dataset *o = (py_dataset *)self;
    fl_err err = FL_ETIMEOUT;
    while (err == FL_ETIMEOUT) {
        Py_BEGIN_ALLOW_THREADS err = fl_dataset_wait(o->d, NAP);
        Py_END_ALLOW_THREADS if (err == FL_ETIMEOUT && PyErr_CheckSignals())
        {
            Py_XDECREF(dataset_release(self, NULL));
            return NULL;
        }
    }
    return err ? py_raise_run(o->st, err) : Py_NewRef(Py_None);
}

static PyObject *dataset_shuffle(PyObject *self, PyObject *seed)
{
    py_dataset *o = (py_dataset *)self;
    const unsigned long long n = PyLong_AsUnsignedLongLongMask(seed);
    if (PyErr_Occurred())
        return NULL;
    const fl_err err = fl_dataset_shuffle(o->d, n);
    return err ? py_raise_run(o->st, err) : Py_NewRef(Py_None);
}

static PyObject *dataset_open(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"ahead", NULL};
    py_dataset *o = (py_dataset *)self;
    fl_reader_opts opts = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|i:open", names, &opts.ahead))
        return NULL;
    py_reader *r = (py_reader *)py_alloc(o->st->type[PY_READER]);
    if (!r)
        return NULL;
    r->st = o->st;
    r->dataset = (py_dataset *)Py_NewRef(self);
    const fl_err err = fl_dataset_open(o->d, 1, &opts, &r->r);
    if (err) {
        Py_DECREF(r);
        return py_raise_run(o->st, err);
    }
    return (PyObject *)r;
}

static PyObject *get_size(PyObject *self, void *none)
{
    return PyLong_FromLongLong(fl_dataset_size(((py_dataset *)self)->d));
}

static PyObject *get_loaded(PyObject *self, void *none)
{
    return PyBool_FromLong(fl_dataset_loaded(((py_dataset *)self)->d));
}

static PyObject *get_width(PyObject *self, void *none)
{
    return PyLong_FromLong(fl_dataset_width(((py_dataset *)self)->d));
}

static PyMethodDef dataset_methods[] = {
    {"set", PY_KEYWORDS(dataset_set), "Set what is read, and how."},
    {"load", dataset_load, METH_NOARGS,
     "Start to load all examples into memory; see wait."},
    {"wait", dataset_wait, METH_NOARGS,
     "Wait until all examples are in memory."},
    {"release", dataset_release, METH_NOARGS,
     "Free the examples, and cancel a running load."},
    {"shuffle", dataset_shuffle, METH_O,
     "Shuffle the examples in memory, by a seed."},
    {"open", PY_KEYWORDS(dataset_open), "Make a Reader of all examples."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef dataset_fields[] = {
    {"size", get_size, NULL, "Examples in memory.", NULL},
    {"loaded", get_loaded, NULL, "Is it in memory?", NULL},
    {"width", get_width, NULL, "How many readers have work.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot dataset_slots[] = {
    {Py_tp_doc, "Files of examples, streamed or in memory."},
    {Py_tp_new, (void *)dataset_new},
    {Py_tp_dealloc, (void *)dataset_dealloc},
    {Py_tp_methods, dataset_methods},
    {Py_tp_getset, dataset_fields},
    {0, NULL},
};

PyType_Spec py_dataset_spec = {
    .name = "_fluid.Dataset",
    .basicsize = sizeof(py_dataset),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = dataset_slots,
};

/* --- Reader --- */

static void reader_dealloc(PyObject *self)
{
    py_reader *o = (py_reader *)self;
    Py_BEGIN_ALLOW_THREADS fl_reader_free(o->r);
    Py_END_ALLOW_THREADS Py_CLEAR(o->dataset);
    py_dealloc(self);
}

/* The tensors of a batch as a list of LoDTensors, which take them. */
static PyObject *to_list(py_state *st, int n, fl_tensor *t)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        if (!list)
            break;
        PyObject *tensor = py_tensor_take(st, &t[i]);
        t[i] = (fl_tensor){0};
        if (!tensor || PyList_SetItem(list, i, tensor))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *reader_next(PyObject *self)
{
    py_reader *o = (py_reader *)self;
    py_pool pool = {NULL};
    const int n = o->dataset->n_columns;
    int64_t rows = 0;
    fl_err err;
    PyObject *list = NULL;
    fl_tensor *t = py_pool_alloc(&pool, (size_t)(n + 1) * sizeof *t);
    if (o->busy)
        PyErr_SetString(PyExc_RuntimeError, "another thread reads here");
    if (t && !o->busy) {
        o->busy = true;
        Py_BEGIN_ALLOW_THREADS err = fl_reader_next(o->r, t, &rows);
        Py_END_ALLOW_THREADS o->busy = false;
        if (err)
            py_raise_run(o->st, err);
        else if (rows)
            list = to_list(o->st, n, t);
        for (int i = 0; i < n; i++)
            fl_tensor_fini(&t[i]);
    }
    py_pool_fini(&pool);
    return list;
}

static PyObject *reader_cancel(PyObject *self, PyObject *none)
{
    fl_reader_cancel(((py_reader *)self)->r);
    return Py_NewRef(Py_None);
}

static PyObject *reader_stats(PyObject *self, PyObject *none)
{
    const fl_reader_stats s = fl_reader_look(((py_reader *)self)->r);
    return Py_BuildValue(
        "{sLsLsLsLsLsLsL}", "examples", (long long)s.examples, "batches",
        (long long)s.batches, "bytes", (long long)s.bytes, "bad_lines",
        (long long)s.bad_lines, "read_ns", (long long)s.read_ns, "parse_ns",
        (long long)s.parse_ns, "wait_ns", (long long)s.wait_ns);
}

static PyObject *reader_bad_lines(PyObject *self, PyObject *none)
{
    py_reader *o = (py_reader *)self;
    const char *text;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && (text = fl_reader_bad_line(o->r, i)); i++) {
        PyObject *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text),
                                           "backslashreplace");
        if (!s || PyList_Append(list, s))
            Py_CLEAR(list);
        Py_XDECREF(s);
    }
    return list;
}

static PyMethodDef reader_methods[] = {
    {"cancel", reader_cancel, METH_NOARGS, "Reading ends, also elsewhere."},
    {"stats", reader_stats, METH_NOARGS, "What was read, and how long."},
    {"bad_lines", reader_bad_lines, METH_NOARGS, "The first, in words."},
    {NULL, NULL, 0, NULL},
};

static PyObject *reader_iter(PyObject *self)
{
    return Py_NewRef(self);
}

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Batches: lists of LoDTensors, one for each used slot."},
    {Py_tp_dealloc, (void *)reader_dealloc},
    {Py_tp_iter, (void *)reader_iter},
    {Py_tp_iternext, (void *)reader_next},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

PyType_Spec py_reader_spec = {
    .name = "_fluid.Reader",
    .basicsize = sizeof(py_reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = reader_slots,
};
