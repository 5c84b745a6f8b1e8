/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_train.c - train: a pass over a dataset.
 *
 * Worker threads never use the interpreter. The calling thread prints, and
 * checks twenty times a second for Ctrl-C and whether the script wants to stop.
 */
#include "_fluid.h"

typedef struct training {
    PyObject *print, *stop; /* callables */
    PyThreadState *thread;
} training;

/* The truth value of a result, which is released; -1: an exception is set. */
static int truth(PyObject *o)
{
    const int t = o ? PyObject_IsTrue(o) : -1;
    Py_XDECREF(o);
    return t;
}

static int print_text(void *user, const char *text)
{
    training *t = user;
    PyEval_RestoreThread(t->thread);
    const int failed = truth(PyObject_CallFunction(t->print, "s", text)) < 0;
    t->thread = PyEval_SaveThread();
    return failed;
}

/* It is asked again while the training ends with an exception: no Python code
 * may run then. */
static int ask_script(training *t)
{
    if (PyErr_Occurred() || PyErr_CheckSignals())
        return FL_END_NOW;
    switch (truth(PyObject_CallNoArgs(t->stop))) {
    case 0:
        return FL_GO_ON;
    case 1:
        return FL_END_STEP;
    default:
        return FL_END_NOW;
    }
}

static int poll(void *user)
{
    training *t = user;
    PyEval_RestoreThread(t->thread);
    const int wish = ask_script(t);
    t->thread = PyEval_SaveThread();
    return wish;
}

static PyObject *progress(const fl_progress *p)
{
    return Py_BuildValue(
        "{sisLsLsLsdsdsdsdsisN}", "threads", p->threads, "examples",
        (long long)p->examples, "batches", (long long)p->batches, "bad_lines",
        (long long)p->bad_lines, "seconds", p->seconds, "rate", p->rate, "loss",
        p->loss, "auc", p->auc, "auc_trainers", p->auc_trainers, "stopped",
        PyBool_FromLong(p->stopped));
}

static PyObject *run_training(py_state *st, training *t, fl_train_opts *o)
{
    fl_progress p;
    o->print = print_text;
    o->poll = poll;
    o->user = t;
    t->thread = PyEval_SaveThread();
    const fl_err err = fl_train(st->engine, o, &p);
    PyEval_RestoreThread(t->thread);
    return err ? py_raise_run(st, err) : progress(&p);
}

static PyObject *train(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"program", "scope",  "dataset", "print",   "stop",
                            "fetch",   "labels", "period",  "threads", "infer",
                            "debug",   "epoch",  NULL};
    py_state *st = PyModule_GetState(module);
    PyObject *program, *scope, *dataset, *fetch, *labels, *result = NULL;
    int infer = 0, debug = 0, n;
    long long period = 0;
    py_pool pool = {NULL};
    training t;
    fl_train_opts o = {0};
    if (!PyArg_ParseTupleAndKeywords(
            args, kw, "O!O!O!OOOO|Lippi:train", names, st->type[PY_PROGRAM],
            &program, st->type[PY_SCOPE], &scope, st->type[PY_DATASET],
            &dataset, &t.print, &t.stop, &fetch, &labels, &period, &o.threads,
            &infer, &debug, &o.epoch))
        return NULL;
    o.program = ((py_program *)program)->p;
    o.dataset = py_dataset_get(dataset);
    o.period = period;
    o.infer = infer;
    o.debug = debug;
    if (!py_to_names(&pool, fetch, &o.n_fetches, &o.fetches) &&
        !py_to_names(&pool, labels, &n, &o.labels)) {
        if (n != o.n_fetches)
            PyErr_Format(PyExc_ValueError, "%d labels for %d fetches", n,
                         o.n_fetches);
        else if ((o.scope = py_scope_begin_run((py_scope *)scope))) {
            result = run_training(st, &t, &o);
            py_scope_end_run((py_scope *)scope);
        }
    }
    py_pool_fini(&pool);
    return result;
}

PyMethodDef py_train_functions[] = {
    {"train", PY_KEYWORDS(train), "A pass over a dataset."},
    {NULL, NULL, 0, NULL},
};
