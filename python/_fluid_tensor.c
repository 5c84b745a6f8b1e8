/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_tensor.c - LoDTensor, and memory that crosses without a copy.
 *
 * In: a tensor uses the memory of any C-contiguous buffer. Out: an owned tensor
 * shares its memory as long as the buffer lives, even if the tensor changes or
 * ends. The tensor of a scope is written by the next run, so its buffer is a
 * copy. */
#include "_fluid.h"

#include <string.h>

/* --- formats --- */

static const struct {
    char format[2];
    fl_dtype dtype;
    size_t size; /* size of "l" is 4 or 8, depending on the machine */
} formats[] = {
    {"f", FL_F32, 4}, {"d", FL_F64, 8}, {"q", FL_I64, 8}, {"l", FL_I64, 8},
    {"i", FL_I32, 4}, {"l", FL_I32, 4}, {"h", FL_I16, 2}, {"?", FL_BOOL, 1},
    {"e", FL_F16, 2}, {"H", FL_F16, 2}, /* the bits of a float16 */
    {"B", FL_U8, 1},  {"b", FL_I8, 1},
};

static const char *format_of(fl_dtype t)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == t)
            return formats[i].format;
    return NULL;
}

static int dtype_of(const Py_buffer *b, fl_dtype *out)
{
    const char *f = b->format ? b->format : "B";
    if (*f == '@' || *f == '=' || *f == '<')
        f++;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].format, f) &&
            formats[i].size == (size_t)b->itemsize) {
            *out = formats[i].dtype;
            return 0;
        }
    PyErr_Format(PyExc_TypeError,
                 "an array of format \"%s\" holds no numbers of a tensor", f);
    return -1;
}

/* --- in --- */

static int shape_of(const Py_buffer *b, fl_shape *out)
{
    if (b->ndim > FL_MAX_RANK) {
        PyErr_Format(PyExc_ValueError,
                     "the array has %d dimensions, at most %d", b->ndim,
                     FL_MAX_RANK);
        return -1;
    }
    *out = (fl_shape){.rank = b->ndim};
    for (int i = 0; i < b->ndim; i++)
        out->dim[i] = b->shape[i];
    return 0;
}

/* Copy the elements to contiguous memory of the pool. */
static void *gathered(py_pool *p, const Py_buffer *b)
{
    void *to = py_pool_alloc(p, (size_t)b->len + 1);
    if (to && PyBuffer_ToContiguous(to, b, b->len, 'C'))
        return NULL;
    return to;
}

static int from_buffer(py_pool *p, const Py_buffer *b, fl_tensor *out)
{
    fl_shape shape;
    fl_dtype dtype;
    if (dtype_of(b, &dtype) || shape_of(b, &shape))
        return -1;
    void *data = PyBuffer_IsContiguous(b, 'C') ? b->buf : gathered(p, b);
    if (!data)
        return -1;
    *out = fl_tensor_view(dtype, &shape, data);
    return 0;
}

/* Open a buffer through a memoryview, which the pool releases. */
static int open_buffer(py_pool *p, PyObject *o, Py_buffer **out)
{
    PyObject *view = PyMemoryView_FromObject(o);
    if (!view) {
        PyErr_Format(PyExc_TypeError, "%R is no array", (PyObject *)Py_TYPE(o));
        return -1;
    }
    *out = py_pool_alloc(p, sizeof **out);
    /* The view keeps o's memory while the pool keeps the view. */
    const int failed = !*out || py_pool_keep(p, view) ||
                       PyObject_GetBuffer(view, *out, PyBUF_FULL_RO);
    if (!failed)
        PyBuffer_Release(*out);
    Py_DECREF(view);
    return failed ? -1 : 0;
}

/* A tensor in the pool that shares the memory of o. */
static int share_tensor(py_pool *p, py_tensor *o, fl_tensor *out)
{
    const fl_tensor *t = py_tensor_get(o);
    fl_tensor share = {0};
    Py_buffer *b;
    if (!t)
        return -1;
    const bool borrows =
        o->shared && !t->buf; /* it borrows the memory of an array */
    if (borrows && open_buffer(p, o->shared->obj, &b))
        return -1;
    const fl_err err =
        borrows ? fl_lod_copy(&share.lod, &t->lod) : fl_tensor_ref(&share, t);
    if (err) {
        py_raise_run(o->st, err);
        return -1;
    }
    if (borrows) {
        share.dtype = t->dtype;
        share.shape = t->shape;
        share.data = t->data;
    }
    *out = share;
    PyObject *kept = py_tensor_take(o->st, &share);
    const int failed = !kept || py_pool_keep(p, kept);
    Py_XDECREF(kept);
    return failed ? -1 : 0;
}

int py_to_tensor(py_pool *p, py_state *st, PyObject *o, fl_tensor *out)
{
    Py_buffer *b;
    if (PyObject_TypeCheck(o, st->type[PY_TENSOR]))
        return share_tensor(p, (py_tensor *)o, out);
    return open_buffer(p, o, &b) || from_buffer(p, b, out) ? -1 : 0;
}

/* --- making and freeing --- */

static fl_tensor *of_scope(py_tensor *t)
{
    fl_scope *s = py_scope_get((py_scope *)t->owner);
    const char *name = PyUnicode_AsUTF8AndSize(t->name, NULL);
    fl_value *v = s && name ? fl_scope_find(s, name) : NULL;
    fl_tensor *out = NULL;
    if (s && name && !v)
        PyErr_Format(t->st->enforce_not_met, "the scope holds \"%s\" no longer",
                     name);
    if (v && fl_value_tensor(v, &out))
        py_raise_run(t->st, FL_EINVAL);
    return out;
}

fl_tensor *py_tensor_get(py_tensor *t)
{
    if (!t->owner)
        return &t->own;
    return t->name ? of_scope(t) : py_rows_tensor(t->owner);
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    py_state *st = py_state_of(type);
    py_tensor *t = st ? (py_tensor *)py_alloc(type) : NULL;
    if (t) {
        t->st = st;
        t->own.dtype = FL_F32;
    }
    return (PyObject *)t;
}

PyObject *py_tensor_take(py_state *st, fl_tensor *t)
{
    py_tensor *o = (py_tensor *)py_alloc(st->type[PY_TENSOR]);
    if (!o) {
        fl_tensor_fini(t);
        return NULL;
    }
    o->st = st;
    o->own = *t;
    return (PyObject *)o;
}

PyObject *py_tensor_view(py_state *st, PyObject *owner, PyObject *name)
{
    py_tensor *o = (py_tensor *)py_alloc(st->type[PY_TENSOR]);
    if (!o)
        return NULL;
    o->st = st;
    o->owner = Py_NewRef(owner);
    o->name = Py_XNewRef(name);
    return (PyObject *)o;
}

static void forget_shared(py_tensor *t)
{
    if (!t->shared)
        return;
    if (!t->own.buf) /* it still borrows memory */
        t->own.data = NULL;
    PyBuffer_Release(t->shared);
    PyMem_Free(t->shared);
    t->shared = NULL;
}

static void tensor_dealloc(PyObject *self)
{
    py_tensor *t = (py_tensor *)self;
    forget_shared(t);
    fl_tensor_fini(&t->own);
    Py_CLEAR(t->owner);
    Py_CLEAR(t->name);
    py_dealloc(self);
}

/* --- out --- */

/* State of an exported buffer. */
typedef struct export
{
    fl_tensor t; /* shares the memory, or is a copy */
    Py_ssize_t shape[FL_MAX_RANK], strides[FL_MAX_RANK];
}
export;

static void describe(const export *e, PyObject *self, Py_buffer *b, int flags)
{
    const fl_tensor *t = &e->t;
    Py_ssize_t n = 1;
    for (int i = 0; i < t->shape.rank; i++)
        n *= (Py_ssize_t)t->shape.dim[i];
    b->buf = t->data;
    b->obj = Py_NewRef(self);
    b->itemsize = (Py_ssize_t)fl_dtype_size(t->dtype);
    b->len = n * b->itemsize;
    b->readonly = 0;
    b->ndim = t->shape.rank;
    b->format = flags & PyBUF_FORMAT ? (char *)format_of(t->dtype) : NULL;
    b->shape = flags & PyBUF_ND ? (Py_ssize_t *)e->shape : NULL;
    b->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                     ? (Py_ssize_t *)e->strides
                     : NULL;
    b->suboffsets = NULL;
    b->internal = (void *)e;
}

/* Why a tensor has no elements, if they are in another process. NULL: it is
 * just empty. */
static const char *why_empty(py_tensor *t)
{
    fl_scope *s =
        t->owner && t->name ? py_scope_get((py_scope *)t->owner) : NULL;
    const char *name = s ? PyUnicode_AsUTF8AndSize(t->name, NULL) : NULL;
    const fl_value *v = name ? fl_scope_find(s, name) : NULL;
    fl_tensor none = {0};
    const bool away =
        v && fl_value_is_absent(v) && fl_scope_get(s, name, &none);
    return away ? fl_errmsg() : NULL;
}

static PyObject *raise_empty(PyObject *kind, py_tensor *t)
{
    const char *why = why_empty(t);
    PyErr_SetString(kind, why ? why : "the tensor holds nothing yet");
    return NULL;
}

static int get_buffer(PyObject *self, Py_buffer *b, int flags)
{
    py_tensor *t = (py_tensor *)self;
    const fl_tensor *from = py_tensor_get(t);
    export *e = NULL;
    b->obj = NULL;
    if (!from)
        return -1;
    if (!from->data || !format_of(from->dtype)) {
        raise_empty(PyExc_BufferError, t);
        return -1;
    }
    if (!(e = PyMem_Calloc(1, sizeof *e))) {
        PyErr_NoMemory();
        return -1;
    }
    const fl_err err =
        t->owner ? fl_tensor_copy(&e->t, from) : fl_tensor_ref(&e->t, from);
    if (err) {
        PyMem_Free(e);
        PyErr_SetString(PyExc_BufferError, fl_errmsg());
        return -1;
    }
    Py_ssize_t step = (Py_ssize_t)fl_dtype_size(e->t.dtype);
    for (int i = e->t.shape.rank - 1; i >= 0; i--) {
        e->shape[i] = (Py_ssize_t)e->t.shape.dim[i];
        e->strides[i] = step;
        step *= e->shape[i];
    }
    describe(e, self, b, flags);
    return 0;
}

static void release_buffer(PyObject *self, Py_buffer *b)
{
    export *e = b->internal;
    fl_tensor_fini(&e->t);
    PyMem_Free(e);
}

/* --- methods --- */

static PyObject *done(py_tensor *t, fl_err err)
{
    if (err)
        return py_raise(t->st, err);
    if (t->owner && !t->name)
        py_rows_settle(t->owner);
    return Py_NewRef(Py_None);
}

/* Copy elements. The LoD is not changed, as in Fluid. */
static fl_err copy_in(fl_tensor *to, fl_tensor from)
{
    fl_tensor kept = {0};
    fl_err err = fl_lod_copy(&kept.lod, &to->lod);
    from.lod = kept.lod;
    if (!err)
        err = fl_tensor_copy(to, &from);
    fl_tensor_fini(&kept);
    return err;
}

static PyObject *tensor_set(PyObject *self, PyObject *args)
{
    py_tensor *t = (py_tensor *)self;
    PyObject *array, *place = NULL, *o = NULL;
    py_pool pool = {NULL};
    fl_tensor from;
    if (!PyArg_ParseTuple(args, "O|O:set", &array, &place))
        return NULL;
    fl_tensor *to = py_tensor_get(t);
    if (!to)
        return NULL;
    if (why_empty(
            t)) /* setting a copy here would have no effect on the servers */
        return raise_empty(PyExc_RuntimeError, t);
    if (!py_to_tensor(&pool, t->st, array, &from) && (to = py_tensor_get(t))) {
        const fl_err err = copy_in(to, from);
        if (!err)
            forget_shared(t);
        o = done(t, err);
    }
    py_pool_fini(&pool);
    return o;
}

static PyObject *tensor_share(PyObject *self, PyObject *array)
{
    py_tensor *t = (py_tensor *)self;
    fl_tensor over;
    py_pool pool = {NULL};
    if (t->owner) {
        PyErr_SetString(PyExc_ValueError,
                        "share: a scope's tensor has its own memory; use set");
        return NULL;
    }
    Py_buffer *b = PyMem_Calloc(1, sizeof *b);
    if (!b)
        return PyErr_NoMemory();
    if (PyObject_GetBuffer(array, b, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) {
        PyMem_Free(b);
        return NULL;
    }
    if (from_buffer(&pool, b, &over)) {
        PyBuffer_Release(b);
        PyMem_Free(b);
        return NULL;
    }
    forget_shared(t);
    over.lod = t->own.lod;
    t->own.lod = (fl_lod){0};
    fl_tensor_fini(&t->own);
    t->own = over;
    t->shared = b;
    return Py_NewRef(Py_None);
}

static PyObject *tensor_shape(PyObject *self, PyObject *none)
{
    const fl_tensor *t = py_tensor_get((py_tensor *)self);
    PyObject *tuple = t ? py_from_shape(&t->shape) : NULL;
    PyObject *list = tuple ? PySequence_List(tuple) : NULL;
    Py_XDECREF(tuple);
    return list;
}

/* --- level of detail --- */

/* A LoD level as a list of offsets or of lengths. */
static PyObject *level(const fl_lod *lod, int l, bool lengths)
{
    const int64_t n = lengths ? lod->n[l] - 1 : lod->n[l];
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        const int64_t v =
            lengths ? lod->off[l][i + 1] - lod->off[l][i] : lod->off[l][i];
        PyObject *o = PyLong_FromLongLong(v);
        if (!o || PyList_SetItem(list, (Py_ssize_t)i, o))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *levels(PyObject *self, bool lengths)
{
    const fl_tensor *t = py_tensor_get((py_tensor *)self);
    PyObject *list = t ? PyList_New(t->lod.levels) : NULL;
    for (int l = 0; list && l < t->lod.levels; l++) {
        PyObject *o = level(&t->lod, l, lengths);
        if (!o || PyList_SetItem(list, l, o))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *get_lod(PyObject *self, PyObject *none)
{
    return levels(self, false);
}

static PyObject *get_lengths(PyObject *self, PyObject *none)
{
    return levels(self, true);
}

/* Convert a list of lists of ints, in the pool. */
static int to_levels(py_pool *p, PyObject *o, fl_lod *out)
{
    const Py_ssize_t n = PySequence_Size(o);
    if (n < 0)
        return -1;
    if (n > FL_MAX_LOD) {
        PyErr_Format(PyExc_ValueError, "%zd LoD levels, at most %d", n,
                     FL_MAX_LOD);
        return -1;
    }
    *out = (fl_lod){.levels = (int)n};
    for (Py_ssize_t l = 0; l < n; l++) {
        static const fl_attr_type type = FL_ATTR_LONGS;
        PyObject *item = PySequence_GetItem(o, l);
        fl_attr a;
        const int failed =
            !item || py_to_attr(p, NULL, "a LoD level", &type, item, &a);
        Py_XDECREF(item);
        if (failed)
            return -1;
        out->n[l] = a.n;
        out->off[l] = a.longs;
    }
    return 0;
}

static int64_t rows_of(const fl_tensor *t)
{
    return t->data && t->shape.rank ? t->shape.dim[0] : -1;
}

/* Set the LoD after checking that it fits the number of rows. */
static fl_err put_lod(fl_tensor *t, const fl_lod *lod)
{
    fl_err err = lod->levels ? fl_lod_check(lod, rows_of(t)) : FL_OK;
    return err ? err : fl_lod_copy(&t->lod, lod);
}

static PyObject *set_levels(PyObject *self, PyObject *lists, bool lengths)
{
    py_tensor *t = (py_tensor *)self;
    fl_tensor *to = NULL, made = {0};
    py_pool pool = {NULL};
    fl_lod given;
    PyObject *o = NULL;
    if (!to_levels(&pool, lists, &given) && (to = py_tensor_get(t))) {
        fl_err err = FL_OK;
        if (lengths)
            err = fl_lod_from_lengths(&made.lod, given.levels, given.n,
                                      given.off);
        if (!err)
            err = put_lod(to, lengths ? &made.lod : &given);
        o = py_result(t->st, err);
    }
    fl_tensor_fini(&made);
    py_pool_fini(&pool);
    return o;
}

static PyObject *set_lod(PyObject *self, PyObject *lod)
{
    return set_levels(self, lod, false);
}

static PyObject *set_lengths(PyObject *self, PyObject *lengths)
{
    return set_levels(self, lengths, true);
}

static PyObject *has_valid_lengths(PyObject *self, PyObject *none)
{
    const fl_tensor *t = py_tensor_get((py_tensor *)self);
    if (!t)
        return NULL;
    return PyBool_FromLong(!t->lod.levels ||
                           !fl_lod_check(&t->lod, rows_of(t)));
}

/* --- the private hooks that tests of Fluid use --- */

static PyObject *get_dtype(PyObject *self, PyObject *none)
{
    const fl_tensor *t = py_tensor_get((py_tensor *)self);
    return t ? PyLong_FromLong((long)t->dtype) : NULL;
}

static PyObject *is_initialized(PyObject *self, PyObject *none)
{
    const fl_tensor *t = py_tensor_get((py_tensor *)self);
    return t ? PyBool_FromLong(t->data != NULL) : NULL;
}

/* The number of elements; -1: a dimension is negative, or the number overflows.
 */
static int64_t count_elements(const fl_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] < 0 || __builtin_mul_overflow(n, s->dim[i], &n))
            return -1;
    return n;
}

/* Set the dims before memory is allocated, or change them if the number of
 * elements stays the same. */
static PyObject *set_dims(PyObject *self, PyObject *dims)
{
    py_tensor *o = (py_tensor *)self;
    fl_shape shape;
    fl_tensor *t = py_to_shape(dims, &shape) ? NULL : py_tensor_get(o);
    if (!t)
        return NULL;
    if (count_elements(&shape) < 0)
        return PyErr_Format(PyExc_ValueError,
                            "%R: a tensor cannot have these dims", dims);
    if (t->data && count_elements(&shape) != count_elements(&t->shape))
        return PyErr_Format(PyExc_ValueError,
                            "the tensor has %lld elements, the dims %lld",
                            (long long)count_elements(&t->shape),
                            (long long)count_elements(&shape));
    t->shape = shape;
    return done(o, FL_OK);
}

static PyObject *tensor_alloc(PyObject *self, PyObject *dtype)
{
    py_tensor *o = (py_tensor *)self;
    fl_dtype as;
    fl_tensor *t = py_to_dtype(dtype, &as) ? NULL : py_tensor_get(o);
    if (!t)
        return NULL;
    const fl_shape shape = t->shape;
    const int levels = t->lod.levels; /* set_lod may come before the data */
    const fl_err err = fl_tensor_resize(t, as, &shape);
    if (!err)
        t->lod.levels = levels;
    if (!err)
        memset(t->data, 0, (size_t)count_elements(&shape) * fl_dtype_size(as));
    return done(o, err);
}

static PyObject *tensor_clear(PyObject *self, PyObject *none)
{
    fl_tensor *t = py_tensor_get((py_tensor *)self);
    if (!t)
        return NULL;
    forget_shared((py_tensor *)self);
    fl_tensor_fini(t);
    return done((py_tensor *)self, FL_OK);
}

/* The address of an element; NULL: an exception is set. */
static char *element(PyObject *self, Py_ssize_t i, fl_dtype *dtype)
{
    const fl_tensor *t = py_tensor_get((py_tensor *)self);
    if (!t)
        return NULL;
    if (!t->data || i < 0 || i >= count_elements(&t->shape)) {
        PyErr_Format(PyExc_IndexError, "the tensor has no element %zd", i);
        return NULL;
    }
    *dtype = t->dtype;
    return (char *)t->data + (size_t)i * fl_dtype_size(t->dtype);
}

static PyObject *get_element(PyObject *self, PyObject *index)
{
    const Py_ssize_t i = PyLong_AsSsize_t(index);
    fl_dtype dtype;
    double d;
    const char *at = PyErr_Occurred() ? NULL : element(self, i, &dtype);
    if (!at)
        return NULL;
    const fl_err err = fl_convert(1, dtype, at, FL_F64, &d);
    return err ? py_raise(((py_tensor *)self)->st, err) : PyFloat_FromDouble(d);
}

static PyObject *set_element(PyObject *self, PyObject *args)
{
    Py_ssize_t i;
    double d;
    fl_dtype dtype;
    if (!PyArg_ParseTuple(args, "nd:_set_element", &i, &d))
        return NULL;
    char *at = element(self, i, &dtype);
    return at ? py_result(((py_tensor *)self)->st,
                          fl_convert(1, FL_F64, &d, dtype, at))
              : NULL;
}

/* __array__: numpy uses the buffer protocol first and calls this if there is no
 * buffer. */
static PyObject *as_array(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None, *array = NULL;
    const fl_tensor *t = py_tensor_get((py_tensor *)self);
    if (!t || !PyArg_ParseTupleAndKeywords(args, kw, "|OO:__array__", names,
                                           &dtype, &copy))
        return NULL;
    if (!t->data)
        return raise_empty(PyExc_RuntimeError, (py_tensor *)self);
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *view = PyMemoryView_FromObject(self);
    if (numpy && view)
        array = PyObject_CallMethod(numpy, "asarray", "OO", view, dtype);
    Py_XDECREF(numpy);
    Py_XDECREF(view);
    return array;
}

static PyMethodDef methods[] = {
    {"set", tensor_set, METH_VARARGS, "Copy an array into the tensor."},
    {"share", tensor_share, METH_O,
     "Use the memory of an array without a copy."},
    {"shape", tensor_shape, METH_NOARGS, "The dims, a list."},
    {"lod", get_lod, METH_NOARGS,
     "The offsets of sequences, a list for each level."},
    {"set_lod", set_lod, METH_O,
     "Set the offsets; ValueError if they do not fit the rows."},
    {"recursive_sequence_lengths", get_lengths, METH_NOARGS,
     "The lengths of sequences, a list for each level."},
    {"set_recursive_sequence_lengths", set_lengths, METH_O,
     "Set the lengths; ValueError if they do not fit the rows."},
    {"has_valid_recursive_sequence_lengths", has_valid_lengths, METH_NOARGS,
     "Whether the lengths fit the rows."},
    {"_dtype", get_dtype, METH_NOARGS, "A number of VarType."},
    {"_is_initialized", is_initialized, METH_NOARGS, "Is there memory?"},
    {"_set_dims", set_dims, METH_O, "Other dims."},
    {"_alloc", tensor_alloc, METH_O, "Zeros for its dims."},
    {"_clear", tensor_clear, METH_NOARGS, "Empty again."},
    {"_get_element", get_element, METH_O, "By its place in memory."},
    {"_set_element", set_element, METH_VARARGS, "By its place in memory."},
    {"__array__", PY_KEYWORDS(as_array), "A numpy array."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A tensor with levels of detail."},
    {Py_tp_new, (void *)tensor_new},
    {Py_tp_dealloc, (void *)tensor_dealloc},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, (void *)get_buffer},
    {Py_bf_releasebuffer, (void *)release_buffer},
    {0, NULL},
};

PyType_Spec py_tensor_spec = {
    .name = "_fluid.LoDTensor",
    .basicsize = sizeof(py_tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
