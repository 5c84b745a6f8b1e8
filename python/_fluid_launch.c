/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_launch.c - what this process is in a job, and starting a job. */
#include "_fluid.h"

/* --- the role --- */

static PyObject *role_dict(const fl_role *r)
{
    static const char *const duties[] = {"LOCAL", "TRAINER", "PSERVER"};
    static const char *const modes[] = {"local", "pserver", "collective"};
    PyObject *endpoints = PyList_New(0), *notes = PyList_New(0);
    for (int i = 0; endpoints && i < r->n_endpoints; i++) {
        PyObject *text = PyUnicode_FromString(r->endpoints[i]);
        if (!text || PyList_Append(endpoints, text))
            Py_CLEAR(endpoints);
        Py_XDECREF(text);
    }
    for (int i = 0; notes && i < r->n_notes; i++) {
        PyObject *text = PyUnicode_FromString(r->notes[i]);
        if (!text || PyList_Append(notes, text))
            Py_CLEAR(notes);
        Py_XDECREF(text);
    }
    if (endpoints && notes)
        return Py_BuildValue(
            "{sssssisisNszsN}", "role", duties[r->duty], "mode", modes[r->mode],
            "trainer_id", r->trainer_id, "trainers", r->trainers, "endpoints",
            endpoints, "endpoint", r->endpoint, "notes", notes);
    Py_XDECREF(endpoints);
    Py_XDECREF(notes);
    return NULL;
}

static PyObject *role(PyObject *module, PyObject *unused)
{
    fl_role r;
    const fl_err err = fl_role_init(&r, NULL);
    if (err)
        return py_raise(PyModule_GetState(module), err);
    PyObject *dict = role_dict(&r);
    fl_role_fini(&r);
    return dict;
}

static PyObject *misspelt(PyObject *module, PyObject *unused)
{
    char *text = fl_role_misspelt();
    PyObject *lines = PyUnicode_FromString(text);
    fl_free(text);
    return lines;
}

static PyObject *keep_log(PyObject *module, PyObject *name)
{
    const char *text;
    if (py_to_text(name, "a file", &text))
        return NULL;
    fl_log_keep(text);
    return Py_NewRef(Py_None);
}

static PyObject *log_line(PyObject *module, PyObject *line)
{
    const char *text;
    if (py_to_text(line, "a line", &text))
        return NULL;
    fl_log_line(text);
    return Py_NewRef(Py_None);
}

/* --- starting --- */

static int poll(void *user)
{
    PyThreadState **thread = user;
    PyEval_RestoreThread(*thread);
    const int stop = PyErr_CheckSignals();
    PyErr_Clear(); /* the launcher handles Ctrl-C */
    *thread = PyEval_SaveThread();
    return stop;
}

/* The words of a command, with a NULL at the end. Own: the pool. */
static const char **words_of(py_pool *pool, PyObject *list, int *n)
{
    const Py_ssize_t size = PySequence_Size(list);
    if (size < 0)
        return NULL;
    const char **words =
        py_pool_alloc(pool, (size_t)(size + 1) * sizeof *words);
    for (Py_ssize_t i = 0; words && i < size; i++) {
        PyObject *word = PySequence_GetItem(list, i);
        const int bad = !word || py_pool_keep(pool, word) ||
                        py_to_text(word, "a word of the command", &words[i]);
        Py_XDECREF(word);
        if (bad)
            return NULL;
    }
    *n = (int)size;
    return words;
}

static PyObject *launch(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {
        "command",    "servers", "trainers",         "endpoints",
        "start_port", "node_ip", "cluster_node_ips", "log_dir",
        "collective", "gpus",    "max_restarts",     "durability",
        NULL};
    PyThreadState *thread;
    fl_launch_opts o = {
        .max_restarts = FL_RESTARTS_DEFAULT, .poll = poll, .user = &thread};
    py_pool pool = {0};
    PyObject *list;
    int code = 1, collective = 0;
    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "Oii|zizzz$pziz:launch", names, &list, &o.servers,
            &o.trainers, &o.endpoints, &o.start_port, &o.node_ip,
            &o.cluster_node_ips, &o.log_dir, &collective, &o.gpus,
            &o.max_restarts, &o.durability))
        return NULL;
    o.collective = collective;
    o.command = words_of(&pool, list, &o.n);
    if (!o.command) {
        py_pool_fini(&pool);
        return NULL;
    }
    thread = PyEval_SaveThread();
    const fl_err err = fl_launch_job(&o, &code);
    PyEval_RestoreThread(thread);
    py_pool_fini(&pool);
    return err ? py_raise_run(PyModule_GetState(module), err)
               : PyLong_FromLong(code);
}

static PyObject *serve(PyObject *module, PyObject *args)
{
    fl_serve_opts o = {.ports = 1};
    if (!PyArg_ParseTuple(args, "ii:serve", &o.port, &o.trainers))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    fl_engine *e = fl_engine_new();
    const fl_err err = fl_serve(e, &o);
    fl_engine_free(e);
    PyEval_RestoreThread(thread);
    if (err == FL_EINTR)
        return py_raise_sigterm(PyModule_GetState(module));
    return err ? py_raise_run(PyModule_GetState(module), err)
               : Py_NewRef(Py_None);
}

PyMethodDef py_launch_functions[] = {
    {"role", role, METH_NOARGS, "What the environment says, as a dict."},
    {"keep_log", keep_log, METH_O,
     "Log lines also go to this file in PADDLE_LOG_DIR."},
    {"log_line", log_line, METH_O, "Log a line."},
    {"misspelt", misspelt, METH_NOARGS,
     "Variables of the environment that look misspelt, a sentence a line."},
    {"serve", serve, METH_VARARGS,
     "Serve a job that trainers bring, on a port; until it has ended."},
    {"launch", PY_KEYWORDS(launch), "Servers and trainers; the exit code."},
    {NULL, NULL, 0, NULL},
};
