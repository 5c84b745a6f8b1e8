/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid.h - what the files of the Python extension share.
 *
 * The extension converts objects, holds references, releases the interpreter
 * lock around runs and turns fl_err into exceptions. It knows no operator and
 * no layer: the tables of fluid.h say what to convert to what.
 *
 *     _fluid_module.c    the module, its state, tables, errors
 *     _fluid_convert.c   Python objects to arguments, attributes and tensors
 *     _fluid_spec.c      initializers, regularizers, clips, their callbacks
 *     _fluid_program.c   Program, and the views that it keeps
 *     _fluid_block.c     Block
 *     _fluid_view.c      Operator and Variable
 *     _fluid_build.c     layers, gradients, what is built with functions
 *     _fluid_optimizer.c Switch, Optimizer
 *     _fluid_tensor.c    LoDTensor and the buffer protocol
 *     _fluid_scope.c     Scope, Value, SelectedRows
 *     _fluid_exec.c      Executor, saving and loading
 *     _fluid_data.c      Dataset, Reader
 *     _fluid_train.c     training on them
 *     _fluid_dist.c      Cut, waiting for servers
 *
 * Stable ABI of 3.11: one build serves every later Python. There are no
 * globals; types reach the state through the module that made them. */
#ifndef FLUID_PYTHON_H
#define FLUID_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "fluid.h"

/* Which classes there are; those of views may be replaced by subclasses. */
enum {
    PY_PROGRAM,
    PY_BLOCK,
    PY_OPERATOR,
    PY_VARIABLE,
    PY_NAMES,
    PY_SWITCH,
    PY_OPTIMIZER,
    PY_HOOK,
    PY_TENSOR,
    PY_ROWS,
    PY_VALUE,
    PY_SCOPE,
    PY_EXECUTOR,
    PY_CUT,
    PY_DATASET,
    PY_READER,
    PY_TYPES,
};

enum {
    PY_ARGUMENT,
    PY_SIGNATURE,
    PY_SLOT,
    PY_ATTRIBUTE,
    PY_OP_PROTO,
    PY_PROFILE_ROW,
    PY_RECORDS,
};

typedef struct py_call py_call;

typedef struct py_state {
    fl_engine *engine;
    PyTypeObject *type[PY_TYPES];
    PyTypeObject *record[PY_RECORDS];
    /* Of what C makes: program, block, operator, variable, parameter. */
    PyTypeObject *cls[5];
    PyObject *enforce_not_met;
    PyObject *main, *startup, *names; /* of now */
    PyObject *name_scope;             /* str */
    PyObject *getline;                /* linecache.getline */
    PyObject *package;                /* folder of the paddle package, str */
    py_call *call;                    /* the innermost that builds; or NULL */
} py_state;

enum {
    PY_CLS_PROGRAM,
    PY_CLS_BLOCK,
    PY_CLS_OPERATOR,
    PY_CLS_VARIABLE,
    PY_CLS_PARAMETER,
};

/* Views are cached by their program, so that one C object is one Python
 * object; the cycle is the garbage collector's to break. */
typedef struct py_program {
    PyObject head;
    py_state *st;
    fl_program *p;
    PyObject *views;  /* dict: address of the C object -> view */
    PyObject *blocks; /* dict: index -> Block */
    PyObject *keep;   /* list: what `user` pointers in the program point to */
    PyObject *role_vars; /* list of str */
    int current_block, op_role;
} py_program;

typedef struct py_block {
    PyObject head;
    py_state *st;
    py_program *program;
    int idx;
} py_block;

typedef struct py_operator {
    PyObject head;
    py_state *st;
    py_program *program;
    fl_op *op; /* NULL: gone with what the program held before take() */
} py_operator;

typedef struct py_variable {
    PyObject head;
    py_state *st;
    py_program *program;
    fl_var *v; /* NULL: as above */
} py_variable;

typedef struct py_names {
    PyObject head;
    py_state *st;
    fl_names *n;
} py_names;

typedef struct py_scope {
    PyObject head;
    py_state *st;
    fl_scope *s;                  /* NULL: dropped by its parent */
    struct py_scope *parent;      /* a reference; NULL: it owns s */
    struct py_scope *kids, *next; /* no references: kids take themselves out */
    int runs; /* C that uses s now, without the interpreter lock */
} py_scope;

/* Where a tensor is: its own, a scope's, or the values of selected rows. */
typedef struct py_tensor {
    PyObject head;
    py_state *st;
    fl_tensor own;
    Py_buffer *shared; /* whose memory own borrows; or NULL */
    PyObject *owner;   /* Scope or SelectedRows; NULL: own */
    PyObject *name;    /* in the scope */
} py_tensor;

/* A method that takes keywords, in a table. */
#define PY_KEYWORDS(f)                                                         \
    (PyCFunction)(void (*)(void)) f, METH_VARARGS | METH_KEYWORDS

/* --- _fluid_module.c --- */

py_state *py_state_of(PyTypeObject *type); /* a subclass will do */

/* Set the exception for a code; NULL, for `return`. One that is set already
 * (by a callback) stays. */
PyObject *py_raise(py_state *st, fl_err err);     /* building */
PyObject *py_raise_run(py_state *st, fl_err err); /* running, files */
/* None, or the exception. */
PyObject *py_result(py_state *st, fl_err err);

PyObject *py_text(char *text);       /* a str; text ends here */
PyObject *py_alloc(PyTypeObject *t); /* a zeroed instance */
void py_dealloc(PyObject *self);     /* the end of every dealloc */

/* The reference `now` in place of another, which ends last. */
static inline void py_replace(PyObject **place, PyObject *now)
{
    PyObject *old = *place;
    *place = now;
    Py_XDECREF(old);
}

PyObject *py_profile_row(py_state *st, const fl_profile_row *row);

extern PyType_Spec py_program_spec, py_block_spec, py_operator_spec,
    py_variable_spec, py_names_spec, py_switch_spec, py_optimizer_spec,
    py_hook_spec, py_tensor_spec, py_rows_spec, py_value_spec, py_scope_spec,
    py_executor_spec, py_cut_spec, py_dataset_spec, py_reader_spec;

extern PyMethodDef py_build_functions[], py_optimizer_functions[],
    py_exec_functions[], py_dist_functions[], py_launch_functions[],
    py_train_functions[];

/* --- _fluid_convert.c --- */

/* What a call needs until it returns: memory and references. Zero is empty. */
typedef struct py_pool {
    PyObject *list;
} py_pool;

void *py_pool_alloc(py_pool *p, size_t size); /* NULL: MemoryError */
int py_pool_keep(py_pool *p, PyObject *o);    /* takes no reference of o's */
void py_pool_fini(py_pool *p);

/* Conversions answer 0, or -1 with an exception. What they make lives as long
 * as the pool, and o. */
int py_to_dtype(PyObject *o, fl_dtype *out);
int py_to_shape(PyObject *o, fl_shape *out);
int py_to_text(PyObject *o, const char *what, const char **out);
/* A list of (key, value) tuples; `what` names the mapping. */
int py_to_items(py_pool *p, PyObject *o, const char *what, PyObject **out);
int py_to_names(py_pool *p, PyObject *o, int *n, const char *const **out);
int py_to_vars(py_pool *p, py_state *st, PyObject *o, const char *what, int *n,
               fl_var ***out);
int py_to_var(py_state *st, PyObject *o, const char *what, fl_var **out);
int py_to_attr(py_pool *p, py_state *st, const char *name,
               const fl_attr_type *type, PyObject *o, fl_attr *out);
/* Over o's own memory where that is contiguous; the pool holds a share of it,
 * so that o may get other memory meanwhile. */
int py_to_tensor(py_pool *p, py_state *st, PyObject *o, fl_tensor *out);
/* `what` is the layer; -1, or how many arguments of the dict are not None. */
int py_to_args(py_call *c, const char *what, const fl_signature *sig,
               PyObject *dict, fl_arg **out);

/* An attribute's value as an object. Of blocks the view, or the index. */
PyObject *py_from_attr(py_program *p, const fl_attr *a, bool views);
PyObject *py_from_strings(int n, const char *const *s);
PyObject *py_from_shape(const fl_shape *s); /* a tuple */

/* --- _fluid_spec.c --- */

/* An object that C holds as `user`: what Python gave, and the state. */
typedef struct py_hook {
    PyObject head;
    py_state *st;
    PyObject *object;
} py_hook;

int py_to_init(py_call *c, PyObject *o, const fl_init **out);
int py_to_regularizer(py_call *c, PyObject *o, const fl_regularizer **out);
int py_to_clip(py_call *c, PyObject *o, const fl_clip **out);
int py_to_param(py_call *c, PyObject *o, fl_param_attr *out);
PyObject *py_from_hook(void *user); /* what Python gave, or None */

/* --- _fluid_program.c --- */

PyObject *py_program_wrap(py_state *st, fl_program *p, py_program *like);
PyObject *py_block_wrap(py_program *p, int idx);
PyObject *py_op_wrap(py_program *p, fl_op *op);
PyObject *py_var_wrap(py_program *p, fl_var *v); /* NULL gives None */
PyObject *py_params_grads(py_program *p, const fl_param_grads *pgs);
fl_block *py_block_get(py_block *b); /* NULL: an exception is set */
int py_program_keep(py_program *p, PyObject *list); /* for its `user`s */
/* What the table of an operator says of an attribute; NULL: nothing. */
const fl_attr_type *py_attr_type(py_state *st, const char *op,
                                 const char *name);

/* --- _fluid_build.c --- */

/* One call that builds: a net over the programs of now, stamped with role,
 * name scope and the line of Python that asks for it. */
struct py_call {
    py_state *st;
    py_program *main, *startup; /* references */
    PyObject *names;            /* the same */
    fl_net *net;
    bool owns_net;
    fl_net_state before; /* of a net that outlives the call */
    py_pool pool;
    py_call *outer;
};

/* main, startup NULL: those of now. net NULL: one for this call. */
int py_call_begin(py_call *c, py_state *st, py_program *main,
                  py_program *startup, fl_net *net);
void py_call_end(py_call *c);
/* While C calls Python back, Python's programs say what the net says. */
typedef struct py_role {
    int role, block;
    PyObject *role_vars, *name_scope;
} py_role;
int py_role_enter(py_call *c, fl_net *n, py_role *old);
void py_role_leave(py_call *c, py_role *old);

int py_to_backward(py_pool *p, PyObject *params, PyObject *no_grad,
                   fl_backward_opts *out);
PyObject *py_add_op(py_block *b, PyObject *args, PyObject *kw, bool has_index);

/* --- _fluid_tensor.c, _fluid_scope.c --- */

PyObject *py_tensor_take(py_state *st, fl_tensor *t); /* t is its own now */
PyObject *py_tensor_view(py_state *st, PyObject *owner, PyObject *name);
fl_tensor *py_tensor_get(py_tensor *t); /* NULL: an exception is set */
fl_scope *py_scope_get(py_scope *s);    /* the same */
/* The same for as long as C works without the interpreter lock: until then it
 * cannot be dropped, and nothing in it erased. */
fl_scope *py_scope_begin_run(py_scope *s);
void py_scope_end_run(py_scope *s);
PyObject *py_rows_take(py_state *st, fl_rows *r); /* r is its own now */
fl_tensor *py_rows_tensor(PyObject *rows);
void py_rows_settle(PyObject *rows); /* after its values have changed */

/* --- _fluid_data.c --- */

fl_dataset *py_dataset_get(PyObject *dataset);

#endif
