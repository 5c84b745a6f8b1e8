/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_optimizer.c - Switch and Optimizer, which keep state between calls.
 *
 * Each has a net of its own; every call sets it to the current programs. */
#include "_fluid.h"

#include <string.h>

/* --- Switch --- */

typedef struct py_switch {
    PyObject head;
    py_state *st;
    fl_net *net;
    fl_switch s;
} py_switch;

static PyObject *switch_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    py_state *st = py_state_of(type);
    py_switch *s = st ? (py_switch *)py_alloc(type) : NULL;
    if (s)
        s->st = st;
    return (PyObject *)s;
}

static void switch_dealloc(PyObject *self)
{
    fl_net_free(((py_switch *)self)->net);
    py_dealloc(self);
}

static fl_net *net_for(py_state *st, fl_net **place)
{
    if (!*place)
        *place = fl_net_over(((py_program *)st->main)->p,
                             ((py_program *)st->startup)->p,
                             ((py_names *)st->names)->n);
    return *place;
}

/* Begin or end a case. The current block of the program becomes that of the
 * net. */
static PyObject *move_case(py_switch *s, fl_var *cond, bool end)
{
    py_call c;
    PyObject *o = NULL;
    if (!py_call_begin(&c, s->st, NULL, NULL, net_for(s->st, &s->net))) {
        const fl_err err = end ? fl_switch_end(c.net, &s->s)
                               : fl_switch_case(c.net, &s->s, cond);
        o = py_result(s->st, err);
        c.main->current_block = fl_net_look(c.net).block;
    }
    py_call_end(&c);
    return o;
}

static PyObject *switch_case(PyObject *self, PyObject *condition)
{
    py_switch *s = (py_switch *)self;
    fl_var *cond = NULL;
    if (condition != Py_None &&
        py_to_var(s->st, condition, "a case's condition", &cond))
        return NULL;
    return move_case(s, cond, false);
}

static PyObject *switch_end(PyObject *self, PyObject *none)
{
    py_switch *s = (py_switch *)self;
    if (!s->s.cond) {
        PyErr_SetString(PyExc_ValueError, "Switch.end: no case is open");
        return NULL;
    }
    return move_case(s, NULL, true);
}

static PyMethodDef switch_methods[] = {
    {"case", switch_case, METH_O, "Open a case; None: the default."},
    {"end", switch_end, METH_NOARGS, "Close the open case."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot switch_slots[] = {
    {Py_tp_doc, "Cases of which the first that holds runs."},
    {Py_tp_new, (void *)switch_new},
    {Py_tp_dealloc, (void *)switch_dealloc},
    {Py_tp_methods, switch_methods},
    {0, NULL},
};

PyType_Spec py_switch_spec = {
    .name = "_fluid.Switch",
    .basicsize = sizeof(py_switch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = switch_slots,
};

/* --- Optimizer --- */

typedef struct py_optimizer {
    PyObject head;
    py_state *st;
    fl_net *net;
    fl_optimizer *o;
    PyObject *hooks; /* hooks of a Python subclass; None: those of the table */
    fl_optimizer_hooks table; /* those of the table */
    PyObject *keep;           /* objects that its arguments point to */
    py_program *main;         /* of its variables; NULL before the first call */
} py_optimizer;

static fl_err call_hook(py_optimizer *o, const char *method, PyObject *list)
{
    py_call *c = o->st->call;
    py_role old;
    if (!list || py_role_enter(c, o->net, &old)) {
        Py_XDECREF(list);
        return FL_EINVAL; /* a Python exception is set */
    }
    PyObject *block = py_block_wrap(c->main, 0);
    PyObject *r =
        block ? PyObject_CallMethod(o->hooks, method, "OO", block, list) : NULL;
    py_role_leave(c, &old);
    Py_DECREF(list);
    Py_XDECREF(block);
    Py_XDECREF(r);
    return r ? FL_OK : FL_EINVAL;
}

static fl_err on_begin(void *user, fl_optimizer *o, const fl_param_grads *pgs)
{
    py_optimizer *me = user;
    PyObject *list = PyList_New((Py_ssize_t)pgs->n);
    for (int64_t i = 0; list && i < pgs->n; i++) {
        PyObject *p = py_var_wrap(me->st->call->main, pgs->at[i].param);
        if (!p || PyList_SetItem(list, (Py_ssize_t)i, p))
            Py_CLEAR(list);
    }
    return call_hook(me, "create_accumulators", list);
}

static fl_err on_update(void *user, fl_optimizer *o, const fl_param_grad *pg)
{
    py_optimizer *me = user;
    py_program *p = me->st->call->main;
    const fl_param_grads one = {(fl_param_grad *)pg, 1, 1};
    PyObject *list = py_params_grads(p, &one);
    PyObject *pair = list ? Py_NewRef(PyList_GetItem(list, 0)) : NULL;
    Py_XDECREF(list);
    return call_hook(me, "append_op", pair);
}

static fl_err on_finish(void *user, fl_optimizer *o, const fl_param_grads *pgs)
{
    py_optimizer *me = user;
    return call_hook(me, "finish", py_params_grads(me->st->call->main, pgs));
}

static const fl_signature *signature_of(py_state *st, const char *name)
{
    static const fl_arg_def args[] = {
        {"learning_rate", FL_ARG_FLOAT_OR_VAR, NULL},
        {"regularization", FL_ARG_REGULARIZER, "None"},
        {"name", FL_ARG_STR, "None"},
    };
    static const fl_signature own = {"Optimizer", "", NULL, 3, args};
    const fl_signature *rows;
    if (name)
        for (int i = fl_optimizer_table(st->engine, &rows) - 1; i >= 0; i--)
            if (!strcmp(rows[i].name, name))
                return &rows[i];
    return &own;
}

static int make_optimizer(py_call *c, py_optimizer *o, const char *name,
                          PyObject *dict)
{
    const fl_optimizer_hooks hooks = {on_begin, on_update, on_finish, o};
    fl_arg *args;
    if (py_to_args(c, name ? name : "Optimizer", signature_of(c->st, name),
                   dict, &args) < 0)
        return -1;
    const fl_err err = name ? fl_optimizer_new(o->net, name, args, &o->o)
                            : fl_optimizer_custom(o->net, &hooks, args, &o->o);
    if (err)
        py_raise(c->st, err);
    else if (name && o->hooks != Py_None)
        o->table = fl_optimizer_hook(o->o, &hooks);
    o->keep = Py_XNewRef(c->pool.list);
    return err ? -1 : 0;
}

static PyObject *optimizer_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = {"name", "arguments", "hooks", NULL};
    py_state *st = py_state_of(type);
    const char *name;
    PyObject *dict, *hooks = Py_None;
    py_call c;
    if (!st || !PyArg_ParseTupleAndKeywords(args, kw, "zO|O:Optimizer", names,
                                            &name, &dict, &hooks))
        return NULL;
    if (!name && hooks == Py_None) {
        PyErr_SetString(PyExc_TypeError,
                        "an Optimizer without a name needs hooks");
        return NULL;
    }
    py_optimizer *o = (py_optimizer *)py_alloc(type);
    if (!o)
        return NULL;
    o->st = st;
    o->hooks = Py_NewRef(hooks);
    PyObject *self = (PyObject *)o;
    const bool failed =
        py_call_begin(&c, st, NULL, NULL, net_for(st, &o->net)) ||
        make_optimizer(&c, o, name, dict);
    py_call_end(&c); /* before self is freed, because the call uses its net */
    if (failed)
        Py_CLEAR(self);
    return self;
}

static int optimizer_traverse(PyObject *self, visitproc visit, void *arg)
{
    py_optimizer *o = (py_optimizer *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(o->hooks);
    Py_VISIT(o->keep);
    Py_VISIT(o->main);
    return 0;
}

static int optimizer_clear(PyObject *self)
{
    py_optimizer *o = (py_optimizer *)self;
    Py_CLEAR(o->hooks);
    Py_CLEAR(o->keep);
    Py_CLEAR(o->main);
    return 0;
}

static void optimizer_dealloc(PyObject *self)
{
    py_optimizer *o = (py_optimizer *)self;
    PyObject_GC_UnTrack(self);
    fl_optimizer_free(o->o);
    fl_net_free(o->net);
    optimizer_clear(self);
    py_dealloc(self);
}

/* Begin a call on the program of these variables. */
static int begin_call(py_call *c, py_optimizer *o, py_program *main,
                      PyObject *startup)
{
    py_program *s =
        startup && startup != Py_None ? (py_program *)startup : NULL;
    if (s && !PyObject_TypeCheck(startup, o->st->type[PY_PROGRAM])) {
        PyErr_Format(PyExc_TypeError, "%R is not a Program", startup);
        s = NULL;
    }
    if (main)
        py_replace((PyObject **)&o->main, Py_NewRef((PyObject *)main));
    return py_call_begin(c, o->st, o->main, s, o->net) || PyErr_Occurred() ? -1
                                                                           : 0;
}

static PyObject *ops_list(py_program *p, const fl_ops *ops)
{
    PyObject *list = PyList_New((Py_ssize_t)ops->n);
    for (int64_t i = 0; list && i < ops->n; i++) {
        PyObject *o = py_op_wrap(p, ops->at[i]);
        if (!o || PyList_SetItem(list, (Py_ssize_t)i, o))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *pack(py_call *c, const fl_ops *ops, const fl_param_grads *pgs)
{
    return Py_BuildValue("(NN)", ops_list(c->main, ops),
                         py_params_grads(c->main, pgs));
}

/* Run minimize, or only backward. */
static PyObject *run_minimize(PyObject *self, PyObject *args, PyObject *kw,
                              bool update)
{
    static char *names[] = {"loss", "startup", "parameter_list", "no_grad_set",
                            NULL};
    py_optimizer *o = (py_optimizer *)self;
    PyObject *loss, *startup = NULL, *params = NULL, *no_grad = NULL;
    PyObject *result = NULL;
    fl_backward_opts opts;
    fl_param_grads pgs = {0};
    fl_ops ops = {0};
    fl_var *v;
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!|OOO:minimize", names,
                                     o->st->type[PY_VARIABLE], &loss, &startup,
                                     &params, &no_grad) ||
        py_to_var(o->st, loss, "loss", &v))
        return NULL;
    if (!begin_call(&c, o, ((py_variable *)loss)->program, startup) &&
        !py_to_backward(&c.pool, params, no_grad, &opts)) {
        const fl_err err =
            update ? fl_optimizer_minimize(o->o, v, &opts, &pgs, &ops)
                   : fl_optimizer_backward(o->o, v, &opts, &pgs);
        if (err)
            py_raise(o->st, err);
        else
            result =
                update ? pack(&c, &ops, &pgs) : py_params_grads(c.main, &pgs);
    }
    fl_free(pgs.at);
    fl_free(ops.at);
    py_call_end(&c);
    return result;
}

static PyObject *minimize(PyObject *self, PyObject *args, PyObject *kw)
{
    return run_minimize(self, args, kw, true);
}

static PyObject *backward(PyObject *self, PyObject *args, PyObject *kw)
{
    return run_minimize(self, args, kw, false);
}

/* Convert (param, grad) pairs. The program is that of the first parameter. */
static int to_pairs(py_pool *p, py_state *st, PyObject *o, fl_param_grads *out,
                    py_program **program)
{
    PyObject *list = PySequence_List(o);
    const int failed = !list || py_pool_keep(p, list);
    Py_XDECREF(list);
    if (failed)
        return -1;
    out->n = PyList_Size(list);
    out->at = py_pool_alloc(p, (size_t)(out->n + 1) * sizeof *out->at);
    for (Py_ssize_t i = 0; out->at && i < out->n; i++) {
        fl_var **pair;
        int n = 0;
        PyObject *item = PySequence_List(PyList_GetItem(list, i));
        const int kept = item ? py_pool_keep(p, item) : -1;
        Py_XDECREF(item);
        if (kept || py_to_vars(p, st, item, "params_grads", &n, &pair))
            return -1;
        if (n != 2 || !pair[0]) {
            PyErr_SetString(PyExc_ValueError,
                            "params_grads must hold (parameter, gradient)");
            return -1;
        }
        out->at[i] = (fl_param_grad){pair[0], pair[1]};
        *program = ((py_variable *)PyList_GetItem(item, 0))->program;
    }
    return out->at ? 0 : -1;
}

static PyObject *apply_gradients(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"params_grads", "startup", NULL};
    py_optimizer *o = (py_optimizer *)self;
    PyObject *pairs, *startup = NULL, *result = NULL;
    py_program *program = NULL;
    py_pool pool = {NULL};
    fl_param_grads pgs = {0};
    fl_ops ops = {0};
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O:apply_gradients", names,
                                     &pairs, &startup))
        return NULL;
    if (to_pairs(&pool, o->st, pairs, &pgs, &program)) {
        py_pool_fini(&pool);
        return NULL;
    }
    if (!begin_call(&c, o, program, startup)) {
        const fl_err err = fl_optimizer_apply_gradients(o->o, &pgs, &ops);
        result = err ? py_raise(o->st, err) : ops_list(c.main, &ops);
    }
    fl_free(ops.at);
    py_call_end(&c);
    py_pool_fini(&pool);
    return result;
}

static PyObject *param_rate(PyObject *self, PyObject *param)
{
    py_optimizer *o = (py_optimizer *)self;
    PyObject *result = NULL;
    fl_var *v, *rate;
    py_call c;
    if (py_to_var(o->st, param, "param", &v))
        return NULL;
    if (!begin_call(&c, o, ((py_variable *)param)->program, NULL)) {
        const fl_err err = fl_optimizer_rate(o->o, v, &rate);
        result = err ? py_raise(o->st, err) : py_var_wrap(c.main, rate);
    }
    py_call_end(&c);
    return result;
}

static PyObject *accumulator(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"kind", "param", "fill_value", "shape", NULL};
    py_optimizer *o = (py_optimizer *)self;
    const char *kind;
    PyObject *param, *of_shape = Py_None, *result = NULL;
    double start = 0;
    fl_shape shape;
    fl_var *v, *made;
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "sO!|dO:accumulator", names,
                                     &kind, o->st->type[PY_VARIABLE], &param,
                                     &start, &of_shape) ||
        py_to_var(o->st, param, "param", &v) ||
        (of_shape != Py_None && py_to_shape(of_shape, &shape)))
        return NULL;
    if (!begin_call(&c, o, ((py_variable *)param)->program, NULL)) {
        const fl_err err = fl_optimizer_accumulator(
            o->o, kind, v, start, of_shape == Py_None ? NULL : &shape, &made);
        result = err ? py_raise(o->st, err) : py_var_wrap(c.main, made);
    }
    py_call_end(&c);
    return result;
}

static PyObject *get_accumulator(PyObject *self, PyObject *args)
{
    py_optimizer *o = (py_optimizer *)self;
    const char *kind;
    PyObject *param;
    fl_var *v;
    if (!PyArg_ParseTuple(args, "sO!:get_accumulator", &kind,
                          o->st->type[PY_VARIABLE], &param) ||
        py_to_var(o->st, param, "param", &v))
        return NULL;
    return py_var_wrap(((py_variable *)param)->program,
                       fl_optimizer_get(o->o, kind, v));
}

typedef struct gathered {
    py_program *program;
    PyObject *dict; /* NULL: a Python error is set */
} gathered;

static void gather_accumulator(void *user, const char *kind, const char *param,
                               fl_var *v)
{
    gathered *g = user;
    PyObject *var = g->dict ? py_var_wrap(g->program, v) : NULL;
    PyObject *of_kind = var ? PyDict_GetItemString(g->dict, kind) : NULL;
    Py_XINCREF(of_kind);
    if (var && !of_kind && (of_kind = PyDict_New()) &&
        PyDict_SetItemString(g->dict, kind, of_kind))
        Py_CLEAR(of_kind);
    if (!of_kind || PyDict_SetItemString(of_kind, param, var))
        Py_CLEAR(g->dict);
    Py_XDECREF(of_kind);
    Py_XDECREF(var);
}

static PyObject *accumulators(PyObject *self, PyObject *none)
{
    py_optimizer *o = (py_optimizer *)self;
    py_program *p = o->main ? o->main : (py_program *)o->st->main;
    gathered g = {p, PyDict_New()};
    fl_optimizer_each(o->o, gather_accumulator, &g);
    return g.dict;
}

/* --- what minimize does between gradients and updates --- */

static PyObject *change_grads(PyObject *module, PyObject *pairs,
                              PyObject *decay, bool clip)
{
    py_state *st = PyModule_GetState(module);
    py_program *program = NULL;
    const fl_regularizer *other = NULL;
    py_pool pool = {NULL};
    fl_param_grads pgs = {0};
    PyObject *result = NULL;
    py_call c;
    if (to_pairs(&pool, st, pairs, &pgs, &program)) {
        py_pool_fini(&pool);
        return NULL;
    }
    if (!py_call_begin(&c, st, program, NULL, NULL) &&
        (!decay || decay == Py_None || !py_to_regularizer(&c, decay, &other))) {
        const fl_err err = clip ? fl_clip_grads(c.net, &pgs)
                                : fl_decay_grads(c.net, other, &pgs);
        result = err ? py_raise(st, err) : py_params_grads(c.main, &pgs);
    }
    py_call_end(&c);
    py_pool_fini(&pool);
    return result;
}

static PyObject *clip_grads(PyObject *module, PyObject *pairs)
{
    return change_grads(module, pairs, NULL, true);
}

static PyObject *decay_grads(PyObject *module, PyObject *args)
{
    PyObject *pairs, *decay = NULL;
    if (!PyArg_ParseTuple(args, "O|O:decay_grads", &pairs, &decay))
        return NULL;
    return change_grads(module, pairs, decay, false);
}

PyMethodDef py_optimizer_functions[] = {
    {"clip_grads", clip_grads, METH_O, "Pairs of clipped gradients."},
    {"decay_grads", decay_grads, METH_VARARGS, "Pairs of decayed gradients."},
    {NULL, NULL, 0, NULL},
};

/* --- the table's part of an update, for hooks that add to it --- */

static int no_table(const py_optimizer *o)
{
    if (o->table.update)
        return 0;
    PyErr_SetString(PyExc_TypeError,
                    "an optimizer that a user has defined has no "
                    "update in the table");
    return -1;
}

static PyObject *create_accumulators(PyObject *self, PyObject *params)
{
    py_optimizer *o = (py_optimizer *)self;
    fl_param_grads pgs = {0};
    PyObject *result = NULL;
    fl_var **vars;
    int n = 0;
    py_call c;
    if (no_table(o))
        return NULL;
    if (!begin_call(&c, o, NULL, NULL) &&
        !py_to_vars(&c.pool, o->st, params, "parameters", &n, &vars) &&
        (pgs.at = py_pool_alloc(&c.pool, (size_t)(n + 1) * sizeof *pgs.at))) {
        for (int i = 0; i < n; i++)
            pgs.at[pgs.n++] = (fl_param_grad){vars[i], NULL};
        result = py_result(o->st, o->table.begin(o->table.user, o->o, &pgs));
    }
    py_call_end(&c);
    return result;
}

static PyObject *last_op(py_call *c)
{
    const fl_block *b = fl_program_block(c->main->p, 0);
    return py_op_wrap(c->main, fl_block_op(b, fl_block_look(b).n_ops - 1));
}

static PyObject *append_op(PyObject *self, PyObject *pair)
{
    py_optimizer *o = (py_optimizer *)self;
    PyObject *result = NULL;
    fl_var **vars;
    fl_err err;
    int n = 0;
    py_call c;
    if (no_table(o))
        return NULL;
    if (!begin_call(&c, o, NULL, NULL) &&
        !py_to_vars(&c.pool, o->st, pair, "param_and_grad", &n, &vars)) {
        const fl_param_grad pg = {vars[0], n > 1 ? vars[1] : NULL};
        if (!pg.param || !pg.grad)
            PyErr_SetString(PyExc_ValueError,
                            "append_op takes (parameter, gradient)");
        else if ((err = o->table.update(o->table.user, o->o, &pg)))
            py_raise(o->st, err);
        else
            result = last_op(&c);
    }
    py_call_end(&c);
    return result;
}

static PyObject *finish(PyObject *self, PyObject *pairs)
{
    py_optimizer *o = (py_optimizer *)self;
    fl_param_grads pgs = {0};
    py_program *program = NULL;
    PyObject *result = NULL;
    py_call c;
    if (no_table(o))
        return NULL;
    if (!begin_call(&c, o, NULL, NULL) &&
        !to_pairs(&c.pool, o->st, pairs, &pgs, &program))
        result = py_result(o->st, o->table.finish(o->table.user, o->o, &pgs));
    py_call_end(&c);
    return result;
}

static PyObject *get_rate(PyObject *self, void *closure)
{
    py_optimizer *o = (py_optimizer *)self;
    fl_var *rate = NULL;
    const fl_err err = fl_optimizer_rate(o->o, NULL, &rate);
    if (err)
        return py_raise(o->st, err);
    py_program *p = o->main ? o->main : (py_program *)o->st->main;
    return py_var_wrap(p, rate);
}

static PyGetSetDef optimizer_fields[] = {
    {"rate", get_rate, NULL, "The learning rate; None before it is made.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef optimizer_methods[] = {
    {"minimize", PY_KEYWORDS(minimize), "Gradients and updates."},
    {"backward", PY_KEYWORDS(backward), "The first half of minimize."},
    {"apply_gradients", PY_KEYWORDS(apply_gradients), "The second half."},
    {"param_rate", param_rate, METH_O, "The rate of a parameter."},
    {"accumulator", PY_KEYWORDS(accumulator), "A new one."},
    {"get_accumulator", get_accumulator, METH_VARARGS, "Or None."},
    {"accumulators", accumulators, METH_NOARGS,
     "{kind: {name of the parameter: variable}}."},
    {"create_accumulators", create_accumulators, METH_O, "As the table says."},
    {"append_op", append_op, METH_O, "The update that the table says."},
    {"finish", finish, METH_O, "What the table says of all."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot optimizer_slots[] = {
    {Py_tp_doc, "An optimiser of the table, or of the user's own."},
    {Py_tp_new, (void *)optimizer_new},
    {Py_tp_dealloc, (void *)optimizer_dealloc},
    {Py_tp_traverse, (void *)optimizer_traverse},
    {Py_tp_clear, (void *)optimizer_clear},
    {Py_tp_methods, optimizer_methods},
    {Py_tp_getset, optimizer_fields},
    {0, NULL},
};

PyType_Spec py_optimizer_spec = {
    .name = "_fluid.Optimizer",
    .basicsize = sizeof(py_optimizer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = optimizer_slots,
};
