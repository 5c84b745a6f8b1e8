/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_exec.c - Executor; saving and loading.
 *
 * The interpreter lock is released while C works. Threads that run the same
 * Executor take turns. Between operators the library polls, and Ctrl-C is
 * noticed then. */
#include "_fluid.h"

#include <string.h>

typedef struct py_executor {
    PyObject head;
    py_state *st;
    fl_exe *exe;
    PyThread_type_lock turn;
    PyThreadState *thread; /* state of the thread that runs */
} py_executor;

static int poll(void *user)
{
    py_executor *e = user;
    PyEval_RestoreThread(e->thread);
    const int stop = PyErr_CheckSignals();
    e->thread = PyEval_SaveThread();
    return stop;
}

static PyObject *executor_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = {"no_fuse", NULL};
    py_state *st = py_state_of(type);
    int no_fuse = 0;
    if (!st ||
        !PyArg_ParseTupleAndKeywords(args, kw, "|p:Executor", names, &no_fuse))
        return NULL;
    py_executor *e = (py_executor *)py_alloc(type);
    if (!e)
        return NULL;
    e->st = st;
    e->turn = PyThread_allocate_lock();
    e->exe = fl_exe_new(st->engine, &(fl_exe_opts){.no_fuse = no_fuse,
                                                   .lenient = true,
                                                   .poll = poll,
                                                   .user = e});
    return (PyObject *)e;
}

static void executor_dealloc(PyObject *self)
{
    py_executor *e = (py_executor *)self;
    fl_exe_free(e->exe);
    if (e->turn)
        PyThread_free_lock(e->turn);
    py_dealloc(self);
}

/* Wait without the interpreter lock, which the other thread needs. */
static void take_turn(py_executor *e)
{
    if (PyThread_acquire_lock(e->turn, NOWAIT_LOCK))
        return;
    Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(e->turn, WAIT_LOCK);
    Py_END_ALLOW_THREADS
}

/* --- run --- */

/* Convert the items of a dict, in its order, to feeds[0 .. n). */
static int to_feeds(py_pool *p, py_state *st, PyObject *dict, int n,
                    fl_feed *feeds)
{
    PyObject *items;
    if (py_to_items(p, dict, "a feed", &items))
        return -1;
    if (PyList_Size(items) != n) {
        PyErr_SetString(PyExc_ValueError, "places are fed other variables");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        fl_feed *f = &feeds[i];
        if (py_to_text(PyTuple_GetItem(pair, 0), "a feed's name", &f->name) ||
            py_to_tensor(p, st, PyTuple_GetItem(pair, 1), &f->tensor))
            return -1;
    }
    return 0;
}

/* Convert a tuple of dicts; all must have the names of the first one. */
static int to_all_feeds(py_pool *p, py_state *st, PyObject *dicts, int *n,
                        fl_feed **out)
{
    const int places = (int)PyTuple_Size(dicts);
    const Py_ssize_t each = PyMapping_Size(PyTuple_GetItem(dicts, 0));
    if (each < 0)
        return -1;
    *n = (int)each;
    *out = py_pool_alloc(p, ((size_t)places * (size_t)each + 1) * sizeof **out);
    for (int i = 0; *out && i < places; i++) {
        fl_feed *feeds = *out + i * *n;
        if (to_feeds(p, st, PyTuple_GetItem(dicts, i), *n, feeds))
            return -1;
        for (int f = 0; f < *n; f++)
            if (strcmp(feeds[f].name, (*out)[f].name)) {
                PyErr_Format(PyExc_ValueError,
                             "one place is fed %s where another is fed %s",
                             (*out)[f].name, feeds[f].name);
                return -1;
            }
    }
    return *out ? 0 : -1;
}

static int to_fetches(py_pool *p, PyObject *list, int *n, fl_fetch **out)
{
    const char *const *names;
    if (py_to_names(p, list, n, &names))
        return -1;
    *out = py_pool_alloc(p, (size_t)(*n + 1) * sizeof **out);
    for (int i = 0; *out && i < *n; i++)
        (*out)[i].name = names[i];
    return *out ? 0 : -1;
}

static PyObject *take_fetched(py_state *st, fl_fetch *f)
{
    if (f->kind == FL_SELECTED_ROWS)
        return py_rows_take(st, &f->rows);
    return f->kind ? py_tensor_take(st, &f->tensor) : Py_NewRef(Py_None);
}

/* Convert fetched values to Python objects, or free them after an error. */
static PyObject *fetched(py_state *st, int n, fl_fetch *fetches, bool ok)
{
    PyObject *list = ok ? PyList_New(n) : NULL;
    for (int i = 0; i < n; i++) {
        if (!list) {
            fl_fetch_fini(&fetches[i]);
            continue;
        }
        PyObject *o = take_fetched(st, &fetches[i]);
        if (!o || PyList_SetItem(list, i, o))
            Py_CLEAR(list);
    }
    return list;
}

typedef struct request {
    fl_program *program;
    fl_scope *scope;
    PyObject *feeds; /* a tuple of dicts */
    PyObject *fetch;
    fl_places places;
} request;

static PyObject *run_once(py_executor *e, py_pool *pool, const request *o)
{
    int n_feeds, n_fetches;
    fl_feed *feeds;
    fl_fetch *fetches;
    if (to_all_feeds(pool, e->st, o->feeds, &n_feeds, &feeds) ||
        to_fetches(pool, o->fetch, &n_fetches, &fetches))
        return NULL;
    take_turn(e);
    e->thread = PyEval_SaveThread();
    const fl_err err =
        fl_exe_run_places(e->exe, &o->places, o->program, o->scope, n_feeds,
                          feeds, n_fetches, fetches);
    PyThreadState *thread = e->thread; /* the next thread overwrites it */
    PyThread_release_lock(e->turn);
    PyEval_RestoreThread(thread);
    if (err == FL_EINTR && !PyErr_Occurred())
        py_raise_sigterm(e->st);
    else if (err)
        py_raise_run(e->st, err);
    else
        PyErr_Clear(); /* Ctrl-C at a server whose job was complete */
    return fetched(e->st, n_fetches, fetches, !err);
}

static PyObject *run_request(py_executor *e, PyObject *program, PyObject *scope,
                             request *o)
{
    PyObject *got = NULL;
    py_pool pool = {NULL};
    o->program = ((py_program *)program)->p;
    o->scope = o->feeds ? py_scope_begin_run((py_scope *)scope) : NULL;
    if (o->scope) {
        got = run_once(e, &pool, o);
        py_scope_end_run((py_scope *)scope);
    }
    py_pool_fini(&pool);
    Py_XDECREF(o->feeds);
    return got;
}

static PyObject *run_program(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"program", "scope", "feed", "fetch", NULL};
    py_executor *e = (py_executor *)self;
    PyObject *program, *scope, *feed;
    request o = {.places = {.n = 1}};
    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O!O!OO:run", names, e->st->type[PY_PROGRAM], &program,
            e->st->type[PY_SCOPE], &scope, &feed, &o.fetch))
        return NULL;
    o.feeds = PyTuple_Pack(1, feed);
    return run_request(e, program, scope, &o);
}

static PyObject *run_places(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"program", "scope", "feeds", "fetch",
                            "places",  "scale", NULL};
    py_executor *e = (py_executor *)self;
    PyObject *program, *scope, *feeds;
    request o = {0};
    int scale = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!O!OOi|i:run_places", names,
                                     e->st->type[PY_PROGRAM], &program,
                                     e->st->type[PY_SCOPE], &scope, &feeds,
                                     &o.fetch, &o.places.n, &scale))
        return NULL;
    o.feeds = PySequence_Tuple(feeds);
    const Py_ssize_t n = o.feeds ? PyTuple_Size(o.feeds) : 1;
    if (n != 1 && n != o.places.n) {
        Py_CLEAR(o.feeds);
        PyErr_Format(PyExc_ValueError, "a list of %zd feeds for %d places", n,
                     o.places.n);
    }
    o.places.apart = n > 1;
    o.places.scale = (fl_grad_scale)scale;
    return run_request(e, program, scope, &o);
}

/* --- profile --- */

static PyObject *profile(PyObject *self, PyObject *on)
{
    py_executor *e = (py_executor *)self;
    const int truth = PyObject_IsTrue(on);
    if (truth < 0)
        return NULL;
    take_turn(e);
    fl_exe_profile(e->exe, truth);
    PyThread_release_lock(e->turn);
    return Py_NewRef(Py_None);
}

static PyObject *profile_rows(PyObject *self, PyObject *none)
{
    py_executor *e = (py_executor *)self;
    take_turn(e);
    const int n = fl_exe_profile_rows(e->exe, 0, NULL);
    fl_profile_row *rows = PyMem_Calloc((size_t)n + 1, sizeof *rows);
    PyObject *list = rows ? PyList_New(n) : PyErr_NoMemory();
    if (list)
        fl_exe_profile_rows(e->exe, n, rows);
    for (int i = 0; list && i < n; i++) {
        PyObject *row = py_profile_row(e->st, &rows[i]);
        if (!row || PyList_SetItem(list, i, row))
            Py_CLEAR(list);
    }
    PyThread_release_lock(e->turn);
    PyMem_Free(rows);
    return list;
}

static PyObject *profile_trace(PyObject *self, PyObject *none)
{
    py_executor *e = (py_executor *)self;
    take_turn(e);
    char *text = fl_exe_profile_trace(e->exe);
    PyThread_release_lock(e->turn);
    return py_text(text);
}

static PyMethodDef methods[] = {
    {"run", PY_KEYWORDS(run_program), "Run a program once."},
    {"run_places", PY_KEYWORDS(run_places),
     "Run a program once on several threads."},
    {"profile", profile, METH_O,
     "Start or stop profiling; starting clears the times."},
    {"profile_rows", profile_rows, METH_NOARGS,
     "The times of operators, the largest total first."},
    {"profile_trace", profile_trace, METH_NOARGS,
     "The times as JSON for chrome://tracing."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Runs programs and keeps their plans."},
    {Py_tp_new, (void *)executor_new},
    {Py_tp_dealloc, (void *)executor_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec py_executor_spec = {
    .name = "_fluid.Executor",
    .basicsize = sizeof(py_executor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* --- saving and loading --- */

/* Arguments of save and load. */
typedef struct files {
    PyObject *program, *scope;
    const char *dir, *file;
    int n;
    const char *const *names; /* NULL: every persistable variable */
} files;

static fl_err move_vars(fl_engine *e, const files *f, bool save)
{
    const fl_program *p = ((py_program *)f->program)->p;
    fl_scope *s = ((py_scope *)f->scope)->s;
    if (!f->names)
        return save ? fl_save_persistables(e, p, s, f->dir, f->file)
                    : fl_load_persistables(e, p, s, f->dir, f->file);
    return save ? fl_save_vars(e, p, s, f->dir, f->file, f->n, f->names)
                : fl_load_vars(e, p, s, f->dir, f->file, f->n, f->names);
}

static PyObject *vars(PyObject *module, PyObject *args, PyObject *kw, bool save)
{
    static char *keys[] = {"program",  "scope", "dirname",
                           "filename", "names", NULL};
    py_state *st = PyModule_GetState(module);
    PyObject *of_names = Py_None;
    py_pool pool = {NULL};
    files f = {0};
    fl_err err = FL_OK;
    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O!O!s|zO:vars", keys, st->type[PY_PROGRAM], &f.program,
            st->type[PY_SCOPE], &f.scope, &f.dir, &f.file, &of_names) ||
        (of_names != Py_None && py_to_names(&pool, of_names, &f.n, &f.names)) ||
        !py_scope_begin_run((py_scope *)f.scope)) {
        py_pool_fini(&pool);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS err = move_vars(st->engine, &f, save);
    Py_END_ALLOW_THREADS py_scope_end_run((py_scope *)f.scope);
    py_pool_fini(&pool);
    return err ? py_raise_run(st, err) : Py_NewRef(Py_None);
}

static PyObject *save_vars(PyObject *module, PyObject *args, PyObject *kw)
{
    return vars(module, args, kw, true);
}

static PyObject *load_vars(PyObject *module, PyObject *args, PyObject *kw)
{
    return vars(module, args, kw, false);
}

/* --- checkpoints --- */

static PyObject *save_checkpoint(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {"program", "scope", "dirname", "most",
                           "epoch",   "step",  NULL};
    py_state *st = PyModule_GetState(module);
    files f = {0};
    long long epoch, step;
    int most;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!O!siLL:save_checkpoint", keys,
                                     st->type[PY_PROGRAM], &f.program,
                                     st->type[PY_SCOPE], &f.scope, &f.dir,
                                     &most, &epoch, &step) ||
        !py_scope_begin_run((py_scope *)f.scope))
        return NULL;
    fl_checkpoint at = {.epoch = epoch, .step = step};
    fl_err err;
    Py_BEGIN_ALLOW_THREADS err =
        fl_checkpoint_save(st->engine, ((py_program *)f.program)->p,
                           ((py_scope *)f.scope)->s, f.dir, most, &at);
    Py_END_ALLOW_THREADS py_scope_end_run((py_scope *)f.scope);
    return err ? py_raise_run(st, err) : PyLong_FromLongLong(at.serial);
}

static PyObject *load_checkpoint(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {"program", "scope", "dirname", NULL};
    py_state *st = PyModule_GetState(module);
    files f = {0};
    fl_checkpoint c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!O!s:load_checkpoint", keys,
                                     st->type[PY_PROGRAM], &f.program,
                                     st->type[PY_SCOPE], &f.scope, &f.dir) ||
        !py_scope_begin_run((py_scope *)f.scope))
        return NULL;
    fl_err err;
    Py_BEGIN_ALLOW_THREADS err =
        fl_checkpoint_load(st->engine, ((py_program *)f.program)->p,
                           ((py_scope *)f.scope)->s, f.dir, &c);
    Py_END_ALLOW_THREADS py_scope_end_run((py_scope *)f.scope);
    if (err)
        return py_raise_run(st, err);
    return c.serial < 0 ? Py_NewRef(Py_None)
                        : Py_BuildValue("(LLL)", (long long)c.serial,
                                        (long long)c.epoch, (long long)c.step);
}

static PyObject *clean_checkpoints(PyObject *module, PyObject *dir)
{
    py_state *st = PyModule_GetState(module);
    const char *path;
    if (py_to_text(dir, "a folder", &path))
        return NULL;
    const fl_err err = fl_checkpoint_clean(st->engine, path);
    return err ? py_raise_run(st, err) : Py_NewRef(Py_None);
}

/* --- models --- */

static PyObject *save_model(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {
        "program",        "scope",           "dirname",      "feeds", "targets",
        "model_filename", "params_filename", "program_only", "whole", NULL};
    py_state *st = PyModule_GetState(module);
    PyObject *program, *scope, *of_feeds, *of_targets;
    const char *dir, *const *feeds, *const *targets;
    int n_feeds, n_targets, only = 0, whole = 0;
    fl_model_opts opts = {0};
    py_pool pool = {NULL};
    fl_err err = FL_OK;
    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O!O!sOO|zzpp:save_inference_model", keys,
            st->type[PY_PROGRAM], &program, st->type[PY_SCOPE], &scope, &dir,
            &of_feeds, &of_targets, &opts.model_file, &opts.params_file, &only,
            &whole) ||
        py_to_names(&pool, of_feeds, &n_feeds, &feeds) ||
        py_to_names(&pool, of_targets, &n_targets, &targets) ||
        !py_scope_begin_run((py_scope *)scope)) {
        py_pool_fini(&pool);
        return NULL;
    }
    opts.program_only = only;
    opts.whole = whole;
    Py_BEGIN_ALLOW_THREADS err = fl_model_save(
        st->engine, ((py_program *)program)->p, ((py_scope *)scope)->s, dir,
        n_feeds, feeds, n_targets, targets, &opts);
    Py_END_ALLOW_THREADS py_scope_end_run((py_scope *)scope);
    py_pool_fini(&pool);
    return err ? py_raise_run(st, err) : Py_NewRef(Py_None);
}

static PyObject *load_model(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *keys[] = {"scope", "dirname", "model_filename",
                           "params_filename", NULL};
    py_state *st = PyModule_GetState(module);
    PyObject *scope;
    const char *dir;
    fl_model_opts opts = {0};
    fl_model m = {0};
    fl_err err;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!s|zz:load_inference_model",
                                     keys, st->type[PY_SCOPE], &scope, &dir,
                                     &opts.model_file, &opts.params_file) ||
        !py_scope_begin_run((py_scope *)scope))
        return NULL;
    Py_BEGIN_ALLOW_THREADS err =
        fl_model_load(st->engine, dir, ((py_scope *)scope)->s, &opts, &m);
    Py_END_ALLOW_THREADS py_scope_end_run((py_scope *)scope);
    if (err)
        return py_raise_run(st, err);
    PyObject *feeds = py_from_strings(m.n_feeds, m.feeds);
    PyObject *fetches = py_from_strings(m.n_fetches, m.fetches);
    return Py_BuildValue("(NNN)", py_program_wrap(st, m.program, NULL), feeds,
                         fetches);
}

static PyObject *show_saved(PyObject *module, PyObject *path)
{
    py_state *st = PyModule_GetState(module);
    const char *name;
    char *text;
    if (py_to_text(path, "a path", &name))
        return NULL;
    const fl_err err = fl_show(st->engine, name, &text);
    return err ? py_raise_run(st, err) : py_text(text);
}

PyMethodDef py_exec_functions[] = {
    {"save_vars", PY_KEYWORDS(save_vars),
     "Save the values of variables to files."},
    {"load_vars", PY_KEYWORDS(load_vars),
     "Load the values of variables from files."},
    {"save_checkpoint", PY_KEYWORDS(save_checkpoint),
     "Save all that training needs to go on; the serial number."},
    {"load_checkpoint", PY_KEYWORDS(load_checkpoint),
     "The newest: serial, epoch and step; None: there is none."},
    {"clean_checkpoints", clean_checkpoints, METH_O,
     "Remove every checkpoint of a folder."},
    {"save_inference_model", PY_KEYWORDS(save_model), "In Paddle's layout."},
    {"load_inference_model", PY_KEYWORDS(load_model),
     "The program, its feeds and its fetches."},
    {"show", show_saved, METH_O, "A saved program or tensor as text."},
    {NULL, NULL, 0, NULL},
};
