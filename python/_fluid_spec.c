/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_spec.c - initializers, regularizers, clips, parameter attributes.
 *
 * The method _fluid_spec() of an object returns a dict that describes it. An
 * object without this method that can be called was written by the user: the
 * library calls it back while it builds, and ops that it appends get the same
 * role and name scope as ops of the library. */
#include "_fluid.h"

#include <string.h>

/* --- hooks --- */

static void hook_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((py_hook *)self)->object);
    py_dealloc(self);
}

static int hook_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((py_hook *)self)->object);
    return 0;
}

static int hook_clear(PyObject *self)
{
    Py_CLEAR(((py_hook *)self)->object);
    return 0;
}

static PyType_Slot hook_slots[] = {
    {Py_tp_doc, "What Python gave the library to hold."},
    {Py_tp_dealloc, (void *)hook_dealloc},
    {Py_tp_traverse, (void *)hook_traverse},
    {Py_tp_clear, (void *)hook_clear},
    {0, NULL},
};

PyType_Spec py_hook_spec = {
    .name = "_fluid.Hook",
    .basicsize = sizeof(py_hook),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = hook_slots,
};

/* Make a hook. The pool and the main program keep it, because parameters of
 * both programs point to it. */
static void *make_hook(py_call *c, PyObject *object)
{
    py_hook *h = (py_hook *)py_alloc(c->st->type[PY_HOOK]);
    if (!h)
        return NULL;
    h->st = c->st;
    h->object = Py_NewRef(object);
    PyObject *o = (PyObject *)h;
    const int failed = py_pool_keep(&c->pool, o) ||
                       PyList_Append(c->main->keep, o) ||
                       PyList_Append(c->startup->keep, o);
    Py_DECREF(o);
    return failed ? NULL : h;
}

PyObject *py_from_hook(void *user)
{
    return Py_NewRef(user ? ((py_hook *)user)->object : Py_None);
}

/* --- specs --- */

/* The dict that describes an object, in the pool. NULL without an exception: it
 * has none. */
static PyObject *spec_of(py_call *c, PyObject *o)
{
    PyObject *spec = NULL;
    if (PyObject_HasAttrString(o, "_fluid_spec"))
        spec = PyObject_CallMethod(o, "_fluid_spec", NULL);
    if (spec && !PyDict_Check(spec)) {
        PyErr_SetString(PyExc_TypeError, "_fluid_spec() must give a dict");
        Py_CLEAR(spec);
    }
    if (spec && py_pool_keep(&c->pool, spec))
        Py_CLEAR(spec);
    Py_XDECREF(spec); /* the pool holds a reference */
    return spec;
}

/* The value of a key, borrowed; NULL: it is missing or None. */
static PyObject *field(PyObject *spec, const char *key)
{
    PyObject *o = PyDict_GetItemString(spec, key);
    return o == Py_None ? NULL : o;
}

static int get_text(PyObject *spec, const char *key, const char **out)
{
    PyObject *o = field(spec, key);
    return o ? py_to_text(o, key, out) : 0;
}

static int get_double(PyObject *spec, const char *key, double *out)
{
    PyObject *o = field(spec, key);
    if (o)
        *out = PyFloat_AsDouble(o);
    return o && PyErr_Occurred() ? -1 : 0;
}

static int get_float(PyObject *spec, const char *key, float *out)
{
    double wide = (double)*out;
    const int failed = get_double(spec, key, &wide);
    *out = (float)wide;
    return failed;
}

static int get_bool(PyObject *spec, const char *key, bool *out)
{
    PyObject *o = field(spec, key);
    const int truth = o ? PyObject_IsTrue(o) : *out;
    *out = truth > 0;
    return truth < 0 ? -1 : 0;
}

static bool says(PyObject *spec, const char *what)
{
    PyObject *o = field(spec, "what");
    return o && PyUnicode_Check(o) &&
           !PyUnicode_CompareWithASCIIString(o, what);
}

static int not_one(PyObject *o, const char *what)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%R is not %s %s", o,
                     strchr("aeiou", *what) ? "an" : "a", what);
    return -1;
}

/* --- initializers --- */

/* The error code for a Python exception. The message is never read. */
static fl_err failed_in_python(void)
{
    return FL_EINVAL;
}

static fl_err on_init(const fl_init *self, fl_net *n, fl_var *v)
{
    py_hook *h = self->user;
    py_call *c = h->st->call;
    PyObject *var = py_var_wrap(c->startup, v);
    PyObject *block = py_block_wrap(c->startup, 0);
    PyObject *r =
        var && block ? PyObject_CallFunctionObjArgs(h->object, var, block, NULL)
                     : NULL;
    Py_XDECREF(var);
    Py_XDECREF(block);
    Py_XDECREF(r);
    return r ? FL_OK : failed_in_python();
}

static int fill_init(py_call *c, PyObject *spec, fl_init *i)
{
    double seed = 0;
    PyObject *array = field(spec, "array");
    if (get_text(spec, "kind", &i->kind) || get_double(spec, "a", &i->a) ||
        get_double(spec, "b", &i->b) ||
        get_bool(spec, "gaussian", &i->gaussian) ||
        get_double(spec, "fan_in", &i->fan_in) ||
        get_double(spec, "fan_out", &i->fan_out) ||
        get_double(spec, "seed", &seed))
        return -1;
    i->seed = (int64_t)seed;
    if (!array)
        return 0;
    fl_tensor *t = py_pool_alloc(&c->pool, sizeof *t);
    i->array = t;
    return t ? py_to_tensor(&c->pool, c->st, array, t) : -1;
}

int py_to_init(py_call *c, PyObject *o, const fl_init **out)
{
    fl_init *i = py_pool_alloc(&c->pool, sizeof *i);
    PyObject *spec = i ? spec_of(c, o) : NULL;
    *out = i;
    if (spec)
        return says(spec, "init") ? fill_init(c, spec, i)
                                  : not_one(o, "initializer");
    if (!i || PyErr_Occurred() || !PyCallable_Check(o))
        return not_one(o, "initializer");
    i->emit = on_init;
    i->user = make_hook(c, o);
    return i->user ? 0 : -1;
}

/* --- regularizers --- */

static fl_err on_regularizer(const fl_regularizer *self, fl_net *n,
                             fl_var *param, fl_var *grad, fl_var **term)
{
    py_hook *h = self->user;
    py_call *c = h->st->call;
    py_role old;
    if (py_role_enter(c, n, &old))
        return failed_in_python();
    PyObject *p = py_var_wrap(c->main, param), *g = py_var_wrap(c->main, grad);
    PyObject *b = py_block_wrap(c->main, fl_net_look(n).block);
    PyObject *r = p && g && b
                      ? PyObject_CallFunctionObjArgs(h->object, p, g, b, NULL)
                      : NULL;
    py_role_leave(c, &old);
    fl_err err = r ? FL_OK : failed_in_python();
    if (r && r != Py_None &&
        py_to_var(c->st, r, "what a regularizer returns", term))
        err = failed_in_python();
    Py_XDECREF(p);
    Py_XDECREF(g);
    Py_XDECREF(b);
    Py_XDECREF(r);
    return err;
}

int py_to_regularizer(py_call *c, PyObject *o, const fl_regularizer **out)
{
    fl_regularizer *r = py_pool_alloc(&c->pool, sizeof *r);
    PyObject *spec = r ? spec_of(c, o) : NULL;
    *out = r;
    if (!r || PyErr_Occurred())
        return -1;
    if (spec ? !says(spec, "regularizer") : !PyCallable_Check(o))
        return not_one(o, "regularizer");
    if (!spec)
        r->emit = on_regularizer;
    else if (get_text(spec, "kind", &r->kind) ||
             get_float(spec, "coeff", &r->coeff))
        return -1;
    r->user = make_hook(c, o);
    return r->user ? 0 : -1;
}

/* --- clips --- */

int py_to_clip(py_call *c, PyObject *o, const fl_clip **out)
{
    fl_clip *clip = py_pool_alloc(&c->pool, sizeof *clip);
    PyObject *spec = clip ? spec_of(c, o) : NULL;
    *out = clip;
    if (!spec || !says(spec, "clip"))
        return not_one(o, "gradient clip");
    if (get_text(spec, "kind", &clip->kind) ||
        get_float(spec, "max", &clip->max) ||
        get_float(spec, "min", &clip->min) ||
        get_text(spec, "group", &clip->group))
        return -1;
    clip->user = make_hook(c, o);
    return clip->user ? 0 : -1;
}

/* --- parameter attributes --- */

static int fill_param(py_call *c, PyObject *spec, fl_param_attr *a)
{
    bool trainable = true, average = true;
    double dim = -1;
    PyObject *init = field(spec, "initializer");
    PyObject *decay = field(spec, "regularizer");
    PyObject *clip = field(spec, "gradient_clip");
    if (get_text(spec, "name", &a->name) ||
        get_float(spec, "learning_rate", &a->learning_rate) ||
        get_bool(spec, "trainable", &trainable) ||
        get_bool(spec, "do_model_average", &average) ||
        (init && py_to_init(c, init, &a->init)) ||
        (decay && py_to_regularizer(c, decay, &a->regularizer)) ||
        (clip && py_to_clip(c, clip, &a->clip)) ||
        get_bool(spec, "weight_norm", &a->weight_norm) ||
        get_double(spec, "dim", &dim))
        return -1;
    a->weight_norm_dim = (int)dim;
    a->frozen = !trainable;
    a->no_average = !average;
    return 0;
}

int py_to_param(py_call *c, PyObject *o, fl_param_attr *out)
{
    *out = (fl_param_attr){0};
    if (o == Py_None || o == Py_True)
        return 0;
    out->none = o == Py_False;
    if (out->none)
        return 0;
    if (PyUnicode_Check(o))
        return py_to_text(o, "a parameter's name", &out->name);
    PyObject *spec = spec_of(c, o);
    if (PyErr_Occurred())
        return -1;
    if (spec && says(spec, "param"))
        return fill_param(c, spec, out);
    if (spec && says(spec, "regularizer"))
        return py_to_regularizer(c, o, &out->regularizer);
    return py_to_init(c, o, &out->init);
}
