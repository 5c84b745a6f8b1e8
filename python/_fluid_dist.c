/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_dist.c - programs cut for servers and trainers, programs of ranks
 * without servers; waiting for servers.
 *
 * A Cut owns its programs; what Python gets are copies, which live as other
 * programs do. */
#include "_fluid.h"

#include <string.h>

typedef struct py_cut {
    PyObject head;
    py_state *st;
    fl_cut *cut;
    PyObject *main; /* keeps the objects of `user` pointers in the cut */
} py_cut;

/* --- dispatchers --- */

typedef struct dispatch {
    py_pool *pool;
    PyObject *fn;
} dispatch;

static fl_err ask_dispatcher(void *user, int n, const char *const *pieces,
                             const char **endpoints)
{
    dispatch *d = user;
    const char *const *chosen;
    int n_chosen;
    PyObject *names = py_from_strings(n, pieces);
    PyObject *got =
        names ? PyObject_CallFunctionObjArgs(d->fn, names, NULL) : NULL;
    const int failed = !got || py_pool_keep(d->pool, got) ||
                       py_to_names(d->pool, got, &n_chosen, &chosen);
    Py_XDECREF(names);
    Py_XDECREF(got);
    if (!failed && n_chosen != n)
        PyErr_Format(PyExc_ValueError,
                     "transpile: the dispatcher has %d variables and gives %d "
                     "endpoints",
                     n, n_chosen);
    if (failed || n_chosen != n)
        return FL_EINVAL; /* a Python exception is set */
    memcpy(endpoints, chosen, (size_t)n * sizeof *endpoints);
    return FL_OK;
}

/* --- the cut --- */

static PyObject *wrap_cut(py_state *st, fl_cut *cut, PyObject *main)
{
    py_cut *o = (py_cut *)py_alloc(st->type[PY_CUT]);
    if (!o) {
        fl_cut_free(cut);
        return NULL;
    }
    o->st = st;
    o->cut = cut;
    o->main = Py_NewRef(main);
    return (PyObject *)o;
}

/* The arguments of transpile, partly converted. */
typedef struct options {
    PyObject *main, *startup, *dispatcher, *params;
    int async, half_async, no_slices, runtime_split, dc_asgd, geo, sums;
    long long min_block_size;
    fl_transpile_opts c;
} options;

static PyObject *cut_programs(py_state *st, options *o, py_pool *pool)
{
    dispatch d = {pool, o->dispatcher};
    const fl_dispatcher dispatcher = {ask_dispatcher, &d};
    fl_transpile_opts *c = &o->c;
    fl_cut *cut;
    if (o->params != Py_None &&
        py_to_names(pool, o->params, &c->n_params, &c->params))
        return NULL;
    c->async = o->async;
    c->half_async = o->half_async;
    c->no_slices = o->no_slices;
    c->runtime_split_send_recv = o->runtime_split;
    c->enable_dc_asgd = o->dc_asgd;
    c->geo_sgd_mode = o->geo;
    c->sum_gradients = o->sums;
    c->min_block_size = o->min_block_size;
    if (o->dispatcher != Py_None)
        c->dispatcher = &dispatcher;
    const fl_err err = fl_transpile(((py_program *)o->main)->p,
                                    ((py_program *)o->startup)->p, c, &cut);
    return err ? py_raise(st, err) : wrap_cut(st, cut, o->main);
}

static PyObject *transpile(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {"main",
                           "startup",
                           "pservers",
                           "trainers",
                           "trainer_id",
                           "async_mode",
                           "no_slices",
                           "min_block_size",
                           "split_method",
                           "dispatcher",
                           "runtime_split_send_recv",
                           "enable_dc_asgd",
                           "geo_sgd_mode",
                           "params",
                           "half_async",
                           "sum_gradients",
                           "dense_servers",
                           "serial",
                           NULL};
    py_state *st = PyModule_GetState(module);
    py_pool pool = {NULL};
    options o = {.dispatcher = Py_None, .params = Py_None};
    PyObject *result = NULL;
    if (PyArg_ParseTupleAndKeywords(
            args, kw, "O!O!s|$iippLzOpppOppii:transpile", keys,
            st->type[PY_PROGRAM], &o.main, st->type[PY_PROGRAM], &o.startup,
            &o.c.pservers, &o.c.trainers, &o.c.trainer_id, &o.async,
            &o.no_slices, &o.min_block_size, &o.c.split_method, &o.dispatcher,
            &o.runtime_split, &o.dc_asgd, &o.geo, &o.params, &o.half_async,
            &o.sums, &o.c.dense_servers, &o.c.serial))
        result = cut_programs(st, &o, &pool);
    py_pool_fini(&pool);
    return result;
}

static void cut_dealloc(PyObject *self)
{
    py_cut *c = (py_cut *)self;
    fl_cut_free(c->cut);
    Py_CLEAR(c->main);
    py_dealloc(self);
}

/* A copy of one of its programs. */
static PyObject *copy_program(py_cut *c, const fl_program *p)
{
    return py_program_wrap(c->st, fl_program_clone(p, false),
                           (py_program *)c->main);
}

static PyObject *trainer(PyObject *self, PyObject *none)
{
    return copy_program((py_cut *)self, fl_cut_trainer(((py_cut *)self)->cut));
}

static PyObject *trainer_startup(PyObject *self, PyObject *none)
{
    return copy_program((py_cut *)self,
                        fl_cut_trainer_startup(((py_cut *)self)->cut));
}

static PyObject *server(PyObject *self, PyObject *endpoint)
{
    py_cut *c = (py_cut *)self;
    fl_program *p, *startup;
    const char *name;
    if (py_to_text(endpoint, "an endpoint", &name))
        return NULL;
    const fl_err err = fl_cut_server(c->cut, name, &p, &startup);
    return err ? py_raise(c->st, err)
               : Py_BuildValue("(NN)", copy_program(c, p),
                               copy_program(c, startup));
}

static PyObject *endpoints(PyObject *self, void *closure)
{
    const char *const *at;
    const int n = fl_cut_endpoints(((py_cut *)self)->cut, &at);
    return py_from_strings(n, at);
}

/* Check for Ctrl-C. Called without the interpreter lock. */
static int poll(void *user)
{
    PyThreadState **thread = user;
    PyEval_RestoreThread(*thread);
    const int stop = PyErr_CheckSignals();
    *thread = PyEval_SaveThread();
    return stop;
}

static PyObject *set_up(PyObject *self, PyObject *scope)
{
    py_cut *c = (py_cut *)self;
    if (!PyObject_TypeCheck(scope, (PyTypeObject *)c->st->type[PY_SCOPE])) {
        PyErr_SetString(PyExc_TypeError, "set_up takes a Scope");
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    const fl_wait_opts opts = {0, poll, &thread};
    const fl_err err = fl_cut_set_up(c->cut, ((py_scope *)scope)->s, &opts);
    PyEval_RestoreThread(thread);
    return err ? py_raise_run(c->st, err) : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"trainer", trainer, METH_NOARGS, "The program of trainers."},
    {"trainer_startup", trainer_startup, METH_NOARGS, "What starts it."},
    {"server", server, METH_O, "The program of a server, and its startup."},
    {"set_up", set_up, METH_O,
     "Bring programs and values to servers, or wait until trainer 0 has."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef fields[] = {
    {"endpoints", endpoints, NULL, "Of the servers, in their order.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A program cut into those of trainers and servers."},
    {Py_tp_dealloc, (void *)cut_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};

PyType_Spec py_cut_spec = {
    .name = "_fluid.Cut",
    .basicsize = sizeof(py_cut),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* --- ranks without servers --- */

static PyObject *collective(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {
        "main", "startup", "trainers",     "rank",         "endpoint",
        "mode", "rings",   "hierarchical", "inter_nranks", NULL};
    py_state *st = PyModule_GetState(module);
    fl_collective_opts o = {.inter_nranks = -1};
    fl_program *main_out, *startup_out;
    PyObject *main, *startup;
    int hierarchical = 0;
    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O!O!si|$zzipi:collective", keys, st->type[PY_PROGRAM],
            &main, st->type[PY_PROGRAM], &startup, &o.trainers, &o.rank,
            &o.endpoint, &o.mode, &o.rings, &hierarchical, &o.inter_nranks))
        return NULL;
    o.hierarchical = hierarchical;
    const fl_err err =
        fl_collective(((py_program *)main)->p, ((py_program *)startup)->p, &o,
                      &main_out, &startup_out);
    if (err)
        return py_raise(st, err);
    return Py_BuildValue(
        "(NN)", py_program_wrap(st, main_out, (py_program *)main),
        py_program_wrap(st, startup_out, (py_program *)startup));
}

static PyObject *collective_grads(PyObject *module, PyObject *args)
{
    py_state *st = PyModule_GetState(module);
    PyObject *main;
    fl_program *out;
    int ranks, scale;
    if (!PyArg_ParseTuple(args, "O!ii:collective_grads", st->type[PY_PROGRAM],
                          &main, &ranks, &scale))
        return NULL;
    const fl_err err = fl_collective_grads(((py_program *)main)->p, ranks,
                                           (fl_grad_scale)scale, &out);
    return err    ? py_raise(st, err)
           : !out ? Py_NewRef(Py_None)
                  : py_program_wrap(st, out, (py_program *)main);
}

static PyObject *collective_broadcast(PyObject *module, PyObject *args)
{
    py_state *st = PyModule_GetState(module);
    PyObject *main;
    fl_program *out;
    if (!PyArg_ParseTuple(args, "O!:collective_broadcast", st->type[PY_PROGRAM],
                          &main))
        return NULL;
    const fl_err err = fl_collective_broadcast(((py_program *)main)->p, &out);
    return err ? py_raise(st, err)
               : py_program_wrap(st, out, (py_program *)main);
}

/* --- waiting --- */

static PyObject *wait_ports(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {"endpoints", "limit", NULL};
    py_state *st = PyModule_GetState(module);
    py_pool pool = {NULL};
    PyObject *list, *result = NULL;
    double limit = 0;
    const char *const *at;
    int n;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|d:wait_ports", keys, &list,
                                     &limit))
        return NULL;
    if (!py_to_names(&pool, list, &n, &at)) {
        PyThreadState *thread = PyEval_SaveThread();
        const fl_wait_opts opts = {(int64_t)(limit * 1000), poll, &thread};
        const fl_err err = fl_wait_ports(n, at, &opts);
        PyEval_RestoreThread(thread);
        result = err ? py_raise_run(st, err) : Py_NewRef(Py_None);
    }
    py_pool_fini(&pool);
    return result;
}

static PyObject *leave(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {"code", "why", "limit", NULL};
    py_state *st = PyModule_GetState(module);
    const char *why = "";
    double limit = 0;
    int code = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|isd:leave", keys, &code, &why,
                                     &limit))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    const fl_wait_opts opts = {(int64_t)(limit * 1000), poll, &thread};
    const fl_err err = fl_engine_leave(st->engine, code, why, &opts);
    PyEval_RestoreThread(thread);
    return err ? py_raise_run(st, err) : Py_NewRef(Py_None);
}

static PyObject *exit_begin(PyObject *module, PyObject *unused)
{
    fl_exit_begin();
    return Py_NewRef(Py_None);
}

static PyObject *fetch(PyObject *module, PyObject *args)
{
    py_state *st = PyModule_GetState(module);
    PyObject *program, *scope;
    if (!PyArg_ParseTuple(args, "O!O!:fetch", st->type[PY_PROGRAM], &program,
                          st->type[PY_SCOPE], &scope))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    const fl_wait_opts opts = {0, poll, &thread};
    const fl_err err = fl_params_fetch(st->engine, ((py_program *)program)->p,
                                       ((py_scope *)scope)->s, &opts);
    PyEval_RestoreThread(thread);
    return err ? py_raise_run(st, err) : Py_NewRef(Py_None);
}

/* --- communicators --- */

static py_program *program_of(PyObject *module, PyObject *arg)
{
    py_state *st = PyModule_GetState(module);
    if (PyObject_TypeCheck(arg, (PyTypeObject *)st->type[PY_PROGRAM]))
        return (py_program *)arg;
    PyErr_SetString(PyExc_TypeError, "a communicator takes a Program");
    return NULL;
}

static PyObject *start_communicator(PyObject *module, PyObject *arg)
{
    py_state *st = PyModule_GetState(module);
    py_program *p = program_of(module, arg);
    if (!p)
        return NULL;
    const fl_err err = fl_communicator_start(st->engine, p->p);
    return err ? py_raise(st, err) : Py_NewRef(Py_None);
}

static PyObject *stop_communicator(PyObject *module, PyObject *arg)
{
    py_state *st = PyModule_GetState(module);
    py_program *p = program_of(module, arg);
    if (!p)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    const fl_wait_opts opts = {0, poll, &thread};
    const fl_err err = fl_communicator_stop(st->engine, p->p, &opts);
    PyEval_RestoreThread(thread);
    return err ? py_raise_run(st, err) : Py_NewRef(Py_None);
}

static PyObject *communicator_runs(PyObject *module, PyObject *arg)
{
    py_state *st = PyModule_GetState(module);
    py_program *p = program_of(module, arg);
    return p ? PyBool_FromLong(fl_communicator_running(st->engine, p->p))
             : NULL;
}

PyMethodDef py_dist_functions[] = {
    {"transpile", PY_KEYWORDS(transpile), "Cut a training program."},
    {"collective", PY_KEYWORDS(collective),
     "A training program for ranks without servers, and its startup."},
    {"collective_grads", collective_grads, METH_VARARGS,
     "A program that averages its gradients over all ranks."},
    {"collective_broadcast", collective_broadcast, METH_VARARGS,
     "What gives all ranks the values of rank 0."},
    {"wait_ports", PY_KEYWORDS(wait_ports),
     "Until every endpoint takes connections."},
    {"leave", PY_KEYWORDS(leave),
     "Tell servers that this trainer has completed, or failed."},
    {"exit_begin", exit_begin, METH_NOARGS,
     "Tell the launcher that the script has come to its end."},
    {"fetch", fetch, METH_VARARGS,
     "Copy all parameters from the servers into a scope."},
    {"start_communicator", start_communicator, METH_O,
     "Gradients of this program gather from now on."},
    {"stop_communicator", stop_communicator, METH_O,
     "What has gathered is sent; no more gathers."},
    {"communicator_runs", communicator_runs, METH_O,
     "Do gradients of this program gather?"},
    {NULL, NULL, 0, NULL},
};
