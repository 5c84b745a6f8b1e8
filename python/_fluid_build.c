/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_build.c - calls that build: layers, gradients, parameters.
 *
 * Each call makes a new net over the current programs, so that only the ops
 * that it appended remain after it. */
#include "_fluid.h"

#include <string.h>

/* --- the line of the script --- */

static bool is_ours(py_state *st, PyObject *file)
{
    return PyUnicode_Tailmatch(file, st->package, 0, PY_SSIZE_T_MAX, -1) == 1;
}

/* The innermost frame of the user, outside of the package; NULL: there is none.
 */
static PyFrameObject *users_frame(py_state *st)
{
    PyObject *f = Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (f && f != Py_None) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)f);
        PyObject *file = PyObject_GetAttrString(code, "co_filename");
        const bool ours = !file || is_ours(st, file);
        Py_DECREF(code);
        Py_XDECREF(file);
        if (!ours)
            return (PyFrameObject *)f;
        py_replace(&f, PyObject_GetAttrString(f, "f_back"));
    }
    Py_XDECREF(f);
    PyErr_Clear();
    return NULL;
}

/* Two lines like those of a traceback. */
static PyObject *describe(py_state *st, PyFrameObject *f)
{
    PyObject *code = (PyObject *)PyFrame_GetCode(f);
    PyObject *file = PyObject_GetAttrString(code, "co_filename");
    PyObject *name = PyObject_GetAttrString(code, "co_name");
    const int line = PyFrame_GetLineNumber(f);
    PyObject *text =
        file ? PyObject_CallFunction(st->getline, "Oi", file, line) : NULL;
    PyObject *bare = text ? PyObject_CallMethod(text, "strip", NULL) : NULL;
    PyObject *pair = NULL;
    if (name && bare)
        pair =
            Py_BuildValue("[NN]",
                          PyUnicode_FromFormat("  File \"%U\", line %d, in %U",
                                               file, line, name),
                          PyUnicode_FromFormat("    %U", bare));
    Py_DECREF(code);
    Py_XDECREF(file);
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(bare);
    return pair;
}

static void find_callstack(py_call *c, fl_net_state *s)
{
    PyFrameObject *f = users_frame(c->st);
    PyObject *lines = f ? describe(c->st, f) : NULL;
    Py_XDECREF((PyObject *)f);
    if (lines && !py_pool_keep(&c->pool, lines) &&
        py_to_names(&c->pool, lines, &s->n_callstack, &s->callstack))
        s->n_callstack = 0;
    Py_XDECREF(lines);
    PyErr_Clear(); /* the op is made without the line */
}

/* --- a call --- */

static int fill_state(py_call *c, fl_net_state *s)
{
    const char *const *names;
    int n = 0;
    *s = (fl_net_state){
        .main = c->main->p,
        .startup = c->startup->p,
        .names = ((py_names *)c->st->names)->n,
        .block = c->main->current_block,
        .role = c->main->op_role,
    };
    if (py_pool_keep(&c->pool, c->st->name_scope) ||
        py_to_text(c->st->name_scope, "a name scope", &s->scope) ||
        py_to_names(&c->pool, c->main->role_vars, &n, &names))
        return -1;
    for (int i = 0; i < n && i < 2; i++)
        s->role_var[i] = names[i];
    find_callstack(c, s);
    return 0;
}

int py_call_begin(py_call *c, py_state *st, py_program *main,
                  py_program *startup, fl_net *net)
{
    fl_net_state s;
    *c = (py_call){.st = st, .net = net, .outer = st->call};
    if (!main)
        main = (py_program *)st->main;
    if (!startup)
        startup = (py_program *)st->startup;
    c->main = (py_program *)Py_NewRef((PyObject *)main);
    c->startup = (py_program *)Py_NewRef((PyObject *)startup);
    c->names = Py_NewRef(st->names);
    st->call = c;
    if (!net) {
        c->net = fl_net_over(main->p, startup->p, ((py_names *)st->names)->n);
        c->owns_net = true;
    }
    c->before = fl_net_look(c->net);
    if (fill_state(c, &s))
        return -1;
    fl_net_set(c->net, &s);
    return 0;
}

void py_call_end(py_call *c)
{
    c->st->call = c->outer;
    /* Restore the state of the net: what it borrows ends with this call, and an
     * outer call may still use it. */
    fl_net_set(c->net, &c->before);
    if (c->owns_net)
        fl_net_free(c->net);
    py_pool_fini(&c->pool);
    Py_CLEAR(c->main);
    Py_CLEAR(c->startup);
    Py_CLEAR(c->names);
}

/* --- calling back --- */

int py_role_enter(py_call *c, fl_net *n, py_role *old)
{
    const fl_net_state s = fl_net_look(n);
    const int n_vars = s.role_var[1] ? 2 : s.role_var[0] ? 1 : 0;
    PyObject *vars = py_from_strings(n_vars, s.role_var);
    PyObject *scope = PyUnicode_FromString(s.scope ? s.scope : "/");
    if (!vars || !scope) {
        Py_XDECREF(vars);
        Py_XDECREF(scope);
        return -1;
    }
    *old = (py_role){c->main->op_role, c->main->current_block,
                     c->main->role_vars, c->st->name_scope};
    c->main->op_role = s.role;
    c->main->current_block = s.block;
    c->main->role_vars = vars;
    c->st->name_scope = scope;
    return 0;
}

void py_role_leave(py_call *c, py_role *old)
{
    c->main->op_role = old->role;
    c->main->current_block = old->block;
    py_replace(&c->main->role_vars, old->role_vars);
    py_replace(&c->st->name_scope, old->name_scope);
}

/* --- operators --- */

static int to_slots(py_call *c, PyObject *dict, int *n, fl_args **out)
{
    PyObject *items;
    if (py_to_items(&c->pool, dict, "an operator's slots", &items))
        return -1;
    const Py_ssize_t size = PyList_Size(items);
    *out = py_pool_alloc(&c->pool, (size_t)(size + 1) * sizeof **out);
    if (!*out)
        return -1;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        PyObject *value = PyTuple_GetItem(pair, 1);
        fl_args *a = &(*out)[*n];
        if (value == Py_None)
            continue;
        if (py_to_text(PyTuple_GetItem(pair, 0), "a slot", &a->slot) ||
            py_to_names(&c->pool, value, &a->n, (const char *const **)&a->name))
            return -1;
        ++*n;
    }
    return 0;
}

static int to_attrs(py_call *c, PyObject *dict, fl_desc *d)
{
    PyObject *items;
    if (py_to_items(&c->pool, dict, "an operator's attributes", &items))
        return -1;
    const Py_ssize_t size = PyList_Size(items);
    d->attr = py_pool_alloc(&c->pool, (size_t)(size + 1) * sizeof *d->attr);
    if (!d->attr)
        return -1;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        PyObject *value = PyTuple_GetItem(pair, 1);
        const char *name;
        if (value == Py_None)
            continue;
        if (py_to_text(PyTuple_GetItem(pair, 0), "an attribute", &name) ||
            py_to_attr(&c->pool, c->st, name,
                       py_attr_type(c->st, d->type, name), value,
                       &d->attr[d->n_attr++]))
            return -1;
    }
    return 0;
}

/* The arguments of an operator; Py_None: not given. */
typedef struct parts {
    const char *type;
    PyObject *inputs, *outputs, *attrs;
} parts;

static PyObject *add_op(py_call *c, py_block *b, Py_ssize_t at, const parts *p)
{
    fl_block *block = py_block_get(b);
    fl_desc d = {.type = p->type};
    fl_op *op;
    if (!block ||
        (p->inputs != Py_None && to_slots(c, p->inputs, &d.n_in, &d.in)) ||
        (p->outputs != Py_None && to_slots(c, p->outputs, &d.n_out, &d.out)) ||
        (p->attrs != Py_None && to_attrs(c, p->attrs, &d)))
        return NULL;
    const fl_err err = fl_net_add_op(c->net, block, at, &d, &op);
    return err ? py_raise(c->st, err) : py_op_wrap(b->program, op);
}

PyObject *py_add_op(py_block *b, PyObject *args, PyObject *kw, bool has_index)
{
    static char *names[] = {"index",   "type",  "inputs",
                            "outputs", "attrs", NULL};
    parts p = {NULL, Py_None, Py_None, Py_None};
    Py_ssize_t at = -1;
    PyObject *o = NULL;
    py_call c;
    if (!(has_index ? PyArg_ParseTupleAndKeywords(
                          args, kw, "ns|OOO:insert_op", names, &at, &p.type,
                          &p.inputs, &p.outputs, &p.attrs)
                    : PyArg_ParseTupleAndKeywords(args, kw, "s|OOO:append_op",
                                                  names + 1, &p.type, &p.inputs,
                                                  &p.outputs, &p.attrs)))
        return NULL;
    if (!py_call_begin(&c, b->st, b->program, NULL, NULL))
        o = add_op(&c, b, at, &p);
    py_call_end(&c);
    return o;
}

/* --- layers --- */

enum {
    OUTPUTS = 1024 /* outputs of a layer, at most */
};

static PyObject *vars_list(py_program *p, int n, fl_var *const *vars)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *o = py_var_wrap(p, vars[i]);
        if (!o || PyList_SetItem(list, i, o))
            Py_CLEAR(list);
    }
    return list;
}

/* Arrange the outputs as `returns` says: "a, b" takes one each, "[c]" takes the
 * rest. A second output that was not asked for (return_softmax) is left out. */
static PyObject *arrange(py_program *p, const char *returns, int n,
                         fl_var *const *vars)
{
    PyObject *all = PyList_New(0);
    int used = 0;
    for (const char *at = returns; all && at && *at;) {
        const int take = *at == '[' ? n - used : used < n;
        if (*at != '[' && !take && used)
            break;
        PyObject *o = *at == '[' ? vars_list(p, take, vars + used)
                                 : py_var_wrap(p, take ? vars[used] : NULL);
        if (!o || PyList_Append(all, o))
            Py_CLEAR(all);
        Py_XDECREF(o);
        used += take;
        at = strchr(at, ',');
        at = at ? at + 1 + strspn(at + 1, " ") : NULL;
    }
    PyObject *o = NULL;
    if (all)
        o = PyList_Size(all) == 1 ? Py_NewRef(PyList_GetItem(all, 0))
                                  : PyList_AsTuple(all);
    Py_XDECREF(all);
    return o;
}

static PyObject *call_layer(py_call *c, const char *name, PyObject *dict)
{
    static const fl_signature none = {0};
    const fl_signature *rows, *sig = &none;
    fl_var *outs[OUTPUTS];
    fl_arg *args;
    for (int i = fl_layer_table(c->st->engine, &rows) - 1; i >= 0; i--)
        if (!strcmp(rows[i].name, name))
            sig = &rows[i];
    if (py_to_args(c, name, sig, dict, &args) < 0)
        return NULL;
    const int n = fl_layer_all(c->net, name, args, OUTPUTS, outs);
    if (n < 0)
        return py_raise(c->st, fl_net_error(c->net));
    if (n > OUTPUTS)
        return PyErr_Format(PyExc_ValueError, "%s: %d outputs, at most %d",
                            name, n, OUTPUTS);
    if (sig->returns)
        return arrange(c->main, sig->returns, n, outs);
    return py_var_wrap(c->main, n ? outs[0] : NULL);
}

static PyObject *layer(PyObject *module, PyObject *args)
{
    py_state *st = PyModule_GetState(module);
    const char *name;
    PyObject *dict, *o = NULL;
    py_call c;
    if (!PyArg_ParseTuple(args, "sO:layer", &name, &dict))
        return NULL;
    if (!py_call_begin(&c, st, NULL, NULL, NULL))
        o = call_layer(&c, name, dict);
    py_call_end(&c);
    return o;
}

/* --- functions on variables --- */

static PyObject *math(py_call *c, const char *op, py_variable *x, PyObject *y,
                      bool reversed)
{
    fl_var *a, *b = NULL, *out;
    double number = 0;
    if (py_to_var(c->st, (PyObject *)x, "x", &a))
        return NULL;
    if (PyObject_TypeCheck(y, c->st->type[PY_VARIABLE])) {
        if (py_to_var(c->st, y, "y", &b))
            return NULL;
    } else {
        number = PyFloat_AsDouble(y);
        if (PyErr_Occurred())
            return NULL;
    }
    const fl_err err = fl_var_math(c->net, op, a, b, number, reversed, &out);
    return err ? py_raise(c->st, err) : py_var_wrap(c->main, out);
}

static PyObject *var_math(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"op", "x", "y", "reversed", NULL};
    py_state *st = PyModule_GetState(module);
    const char *op;
    PyObject *x, *y, *o = NULL;
    int reversed = 0;
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "sO!O|p:var_math", names, &op,
                                     st->type[PY_VARIABLE], &x, &y, &reversed))
        return NULL;
    py_variable *v = (py_variable *)x;
    if (!py_call_begin(&c, st, v->program, NULL, NULL))
        o = math(&c, op, v, y, reversed);
    py_call_end(&c);
    return o;
}

static PyObject *make_parameter(py_call *c, const char *name, PyObject **o,
                                bool bias)
{
    fl_shape shape;
    fl_dtype dtype;
    fl_param_attr attr;
    const fl_init *init = NULL;
    fl_var *v;
    if (py_to_shape(o[0], &shape) || py_to_dtype(o[1], &dtype) ||
        py_to_param(c, o[2], &attr) ||
        (o[3] != Py_None && py_to_init(c, o[3], &init)))
        return NULL;
    if (attr.none)
        return Py_NewRef(Py_None);
    const fl_err err =
        fl_net_param(c->net, &attr, name, bias, dtype, &shape, init, &v);
    return err ? py_raise(c->st, err) : py_var_wrap(c->main, v);
}

static PyObject *create_parameter(PyObject *module, PyObject *args,
                                  PyObject *kw)
{
    static char *names[] = {"layer", "shape",   "dtype",
                            "attr",  "is_bias", "default_initializer",
                            NULL};
    py_state *st = PyModule_GetState(module);
    const char *name;
    PyObject *of[4] = {NULL, NULL, Py_None, Py_None}, *o = NULL;
    int bias = 0;
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "sOO|OpO:create_parameter",
                                     names, &name, &of[0], &of[1], &of[2],
                                     &bias, &of[3]))
        return NULL;
    if (!py_call_begin(&c, st, NULL, NULL, NULL))
        o = make_parameter(&c, name, of, bias);
    py_call_end(&c);
    return o;
}

static PyObject *initialize(PyObject *module, PyObject *args)
{
    py_state *st = PyModule_GetState(module);
    PyObject *var, *of, *o = NULL;
    const fl_init *init;
    fl_var *v;
    py_call c;
    if (!PyArg_ParseTuple(args, "O!O:initialize", st->type[PY_VARIABLE], &var,
                          &of) ||
        py_to_var(st, var, "var", &v))
        return NULL;
    py_program *p = ((py_variable *)var)->program;
    if (!py_call_begin(&c, st, p, NULL, NULL) && !py_to_init(&c, of, &init))
        o = py_result(st, fl_init_emit(init, c.net, v));
    py_call_end(&c);
    return o;
}

/* --- gradients --- */

int py_to_backward(py_pool *p, PyObject *params, PyObject *no_grad,
                   fl_backward_opts *out)
{
    *out = (fl_backward_opts){0};
    if (params && params != Py_None &&
        py_to_names(p, params, &out->n_params, &out->params))
        return -1;
    if (no_grad && no_grad != Py_None &&
        py_to_names(p, no_grad, &out->n_no_grad, &out->no_grad))
        return -1;
    return 0;
}

static PyObject *append_backward(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"loss", "parameter_list", "no_grad_set", NULL};
    py_state *st = PyModule_GetState(module);
    PyObject *loss, *params = NULL, *no_grad = NULL, *o = NULL;
    fl_backward_opts opts;
    fl_param_grads pgs = {0};
    fl_var *v;
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!|OO:append_backward", names,
                                     st->type[PY_VARIABLE], &loss, &params,
                                     &no_grad) ||
        py_to_var(st, loss, "loss", &v))
        return NULL;
    if (!py_call_begin(&c, st, ((py_variable *)loss)->program, NULL, NULL) &&
        !py_to_backward(&c.pool, params, no_grad, &opts)) {
        const fl_err err = fl_backward(c.net, v, &opts, &pgs);
        o = err ? py_raise(st, err) : py_params_grads(c.main, &pgs);
    }
    fl_free(pgs.at);
    py_call_end(&c);
    return o;
}

static PyObject *find_gradients(py_call *c, PyObject *of_targets,
                                PyObject *of_inputs, PyObject *of_grads,
                                PyObject *no_grad)
{
    fl_var **targets, **inputs, **given = NULL;
    int n_targets, n_inputs, n_given = 0;
    fl_backward_opts opts;
    if (py_to_vars(&c->pool, c->st, of_targets, "targets", &n_targets,
                   &targets) ||
        py_to_vars(&c->pool, c->st, of_inputs, "inputs", &n_inputs, &inputs) ||
        (of_grads != Py_None &&
         py_to_vars(&c->pool, c->st, of_grads, "target_gradients", &n_given,
                    &given)) ||
        py_to_backward(&c->pool, NULL, no_grad, &opts))
        return NULL;
    if (given && n_given != n_targets)
        return PyErr_Format(PyExc_ValueError,
                            "gradients: %d targets, but %d target gradients",
                            n_targets, n_given);
    fl_var **grads =
        py_pool_alloc(&c->pool, (size_t)(n_inputs + 1) * sizeof *grads);
    if (!grads)
        return NULL;
    const fl_err err = fl_gradients(c->net, n_targets, targets, given, n_inputs,
                                    inputs, &opts, grads);
    return err ? py_raise(c->st, err) : vars_list(c->main, n_inputs, grads);
}

static py_program *program_of(py_state *st, PyObject *vars)
{
    PyObject *first = PySequence_GetItem(vars, 0);
    py_program *p = NULL;
    if (first && PyObject_TypeCheck(first, st->type[PY_VARIABLE]))
        p = ((py_variable *)first)->program;
    Py_XDECREF(first);
    PyErr_Clear();
    return p; /* NULL: the current main program */
}

static PyObject *gradients(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"targets", "inputs", "target_gradients",
                            "no_grad_set", NULL};
    py_state *st = PyModule_GetState(module);
    PyObject *targets, *inputs, *given = Py_None, *no_grad = NULL, *o = NULL;
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OO:gradients", names,
                                     &targets, &inputs, &given, &no_grad))
        return NULL;
    if (!py_call_begin(&c, st, program_of(st, targets), NULL, NULL))
        o = find_gradients(&c, targets, inputs, given, no_grad);
    py_call_end(&c);
    return o;
}

static PyObject *set_gradient_clip(PyObject *module, PyObject *args,
                                   PyObject *kw)
{
    static char *names[] = {"clip", "program", "param_names", NULL};
    py_state *st = PyModule_GetState(module);
    PyObject *of, *program = Py_None, *params = Py_None, *o = NULL;
    const fl_clip *clip = NULL;
    const char *const *list = NULL;
    int n = 0;
    py_call c;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO:set_gradient_clip", names,
                                     &of, &program, &params))
        return NULL;
    if (program != Py_None &&
        !PyObject_TypeCheck(program, st->type[PY_PROGRAM]))
        return PyErr_Format(PyExc_TypeError, "%R is not a Program", program);
    py_program *p = program == Py_None ? NULL : (py_program *)program;
    if (!py_call_begin(&c, st, p, NULL, NULL) &&
        (of == Py_None || !py_to_clip(&c, of, &clip)) &&
        (params == Py_None || !py_to_names(&c.pool, params, &n, &list)))
        o = py_result(st, fl_net_set_clip(c.net, clip, n, list));
    py_call_end(&c);
    return o;
}

/* --- the current programs, names and scope --- */

/* Store `now`, and return the old object. */
static PyObject *swap(PyObject **place, PyObject *now, PyTypeObject *type)
{
    if (!PyObject_TypeCheck(now, type))
        return PyErr_Format(PyExc_TypeError, "%R is not a %R", now, type);
    PyObject *old = *place;
    *place = Py_NewRef(now);
    return old;
}

static PyObject *switch_main(PyObject *module, PyObject *program)
{
    py_state *st = PyModule_GetState(module);
    return swap(&st->main, program, st->type[PY_PROGRAM]);
}

static PyObject *switch_startup(PyObject *module, PyObject *program)
{
    py_state *st = PyModule_GetState(module);
    return swap(&st->startup, program, st->type[PY_PROGRAM]);
}

static PyObject *switch_names(PyObject *module, PyObject *names)
{
    py_state *st = PyModule_GetState(module);
    return swap(&st->names, names, st->type[PY_NAMES]);
}

static PyObject *switch_scope(PyObject *module, PyObject *scope)
{
    py_state *st = PyModule_GetState(module);
    return swap(&st->name_scope, scope, &PyUnicode_Type);
}

static PyObject *main_program(PyObject *module, PyObject *none)
{
    return Py_NewRef(((py_state *)PyModule_GetState(module))->main);
}

static PyObject *startup_program(PyObject *module, PyObject *none)
{
    return Py_NewRef(((py_state *)PyModule_GetState(module))->startup);
}

static PyObject *generate_name(PyObject *module, PyObject *key)
{
    py_state *st = PyModule_GetState(module);
    return PyObject_CallFunctionObjArgs(st->names, key, NULL);
}

PyMethodDef py_build_functions[] = {
    {"layer", layer, METH_VARARGS, "Append a layer."},
    {"var_math", PY_KEYWORDS(var_math), "x op y."},
    {"create_parameter", PY_KEYWORDS(create_parameter),
     "A parameter, with the op that initialises it."},
    {"initialize", initialize, METH_VARARGS,
     "Add an initialising op to the startup program."},
    {"append_backward", PY_KEYWORDS(append_backward), "Gradients of a loss."},
    {"gradients", PY_KEYWORDS(gradients), "Gradients of targets."},
    {"set_gradient_clip", PY_KEYWORDS(set_gradient_clip),
     "Set the clip of parameters."},
    {"switch_main_program", switch_main, METH_O, "Returns the old one."},
    {"switch_startup_program", switch_startup, METH_O, "Returns the old one."},
    {"switch_names", switch_names, METH_O,
     "Set the name generator; returns the old one."},
    {"switch_name_scope", switch_scope, METH_O,
     "Set the name scope; returns the old one."},
    {"main_program", main_program, METH_NOARGS,
     "The program to which layers append."},
    {"startup_program", startup_program, METH_NOARGS,
     "The program that initialises parameters."},
    {"generate_name", generate_name, METH_O, "A new name from a key."},
    {NULL, NULL, 0, NULL},
};

/* --- NameGenerator --- */

static PyObject *names_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = {"prefix", NULL};
    py_state *st = py_state_of(type);
    const char *prefix = NULL;
    if (!st || !PyArg_ParseTupleAndKeywords(args, kw, "|z:NameGenerator", names,
                                            &prefix))
        return NULL;
    py_names *n = (py_names *)py_alloc(type);
    if (n) {
        n->st = st;
        n->n = fl_names_new(prefix);
    }
    return (PyObject *)n;
}

static void names_dealloc(PyObject *self)
{
    fl_names_free(((py_names *)self)->n);
    py_dealloc(self);
}

static PyObject *names_call(PyObject *self, PyObject *args, PyObject *kw)
{
    const char *key;
    if (!PyArg_ParseTuple(args, "s:generate", &key))
        return NULL;
    return py_text(fl_names_give(((py_names *)self)->n, key));
}

static PyType_Slot names_slots[] = {
    {Py_tp_doc, "Counters by key: fc_0, fc_1."},
    {Py_tp_new, (void *)names_new},
    {Py_tp_dealloc, (void *)names_dealloc},
    {Py_tp_call, (void *)names_call},
    {0, NULL},
};

PyType_Spec py_names_spec = {
    .name = "_fluid.NameGenerator",
    .basicsize = sizeof(py_names),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = names_slots,
};
