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
 * The extension uses the stable ABI of Python 3.11, so that one build works
 * with every later version. There are no globals: types find the state through
 * their module. */
#ifndef FLUID_PYTHON_H
#define FLUID_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "fluid.h"

/* The classes. Python may replace those of views by subclasses. */
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
    /* Classes of the views that C makes: program, block, operator, variable,
     * parameter. */
    PyTypeObject *cls[5];
    PyObject *enforce_not_met;
    PyObject *job_ended;              /* a subclass of it */
    PyObject *main, *startup, *names; /* the current ones */
    PyObject *name_scope;             /* str */
    PyObject *getline;                /* linecache.getline */
    PyObject *package;                /* folder of the paddle package, str */
    py_call *call; /* the innermost call that builds; or NULL */
} py_state;

enum {
    PY_CLS_PROGRAM,
    PY_CLS_BLOCK,
    PY_CLS_OPERATOR,
    PY_CLS_VARIABLE,
    PY_CLS_PARAMETER,
};

/* A program caches its views, so that each C object has one Python object.
 * Views and program refer to each other; the garbage collector frees such
 * cycles. */
typedef struct py_program {
    PyObject head;
    py_state *st;
    fl_program *p;
    PyObject *views;  /* dict: address of the C object -> view */
    PyObject *blocks; /* dict: index -> Block */
    PyObject *keep;   /* list of the objects that `user` pointers in the program
                         point to */
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
    fl_op *op; /* NULL: freed when take() replaced the content of the program */
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
    fl_scope *s;                  /* NULL: its parent has dropped it */
    struct py_scope *parent;      /* a reference; NULL: it owns s */
    struct py_scope *kids, *next; /* without references */
    int runs; /* number of C calls that use s now, without the interpreter lock
               */
} py_scope;

/* A tensor that it owns, that of a variable of a scope, or the values of
 * selected rows. */
typedef struct py_tensor {
    PyObject head;
    py_state *st;
    fl_tensor own;
    Py_buffer *shared; /* the buffer whose memory `own` borrows; or NULL */
    PyObject *owner; /* the Scope or SelectedRows that has the tensor; NULL: it
                        is `own` */
    PyObject *name;  /* name of the variable in the scope */
} py_tensor;

/* The entry of a method with keyword arguments in a PyMethodDef table. */
#define PY_KEYWORDS(f)                                                         \
    (PyCFunction)(void (*)(void)) f, METH_VARARGS | METH_KEYWORDS

/* --- _fluid_module.c --- */

py_state *py_state_of(PyTypeObject *type); /* type may be a subclass */

/* Set the exception for an error code, and return NULL. An exception that a
 * callback has set is kept. */
PyObject *py_raise(py_state *st, fl_err err);     /* for errors of building */
PyObject *py_raise_run(py_state *st, fl_err err); /* running, files */
/* Raise JobEnded: SIGTERM has ended this process, which is a server. */
PyObject *py_raise_sigterm(py_state *st);
/* Return None, or set the exception for an error code and return NULL. */
PyObject *py_result(py_state *st, fl_err err);

PyObject *py_text(char *text);       /* a str; frees text */
PyObject *py_alloc(PyTypeObject *t); /* a zeroed instance */
void py_dealloc(PyObject *self);     /* to be called last in every dealloc */

/* Store the reference `now`, then release the old one. */
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

/* Memory and references that a call needs until it returns. Zero is empty. */
typedef struct py_pool {
    PyObject *list;
} py_pool;

void *py_pool_alloc(py_pool *p, size_t size); /* NULL: MemoryError */
int py_pool_keep(py_pool *p, PyObject *o);    /* takes no reference of o's */
void py_pool_fini(py_pool *p);

/* Conversions return 0, or -1 with an exception set. Their results live as long
 * as the pool and o. */
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
/* A tensor over the memory of o if that is contiguous. The pool keeps the
 * memory alive even if o gets other memory meanwhile. */
int py_to_tensor(py_pool *p, py_state *st, PyObject *o, fl_tensor *out);
/* `what` is the name of the layer. Returns how many arguments of the dict are
 * not None, or -1. */
int py_to_args(py_call *c, const char *what, const fl_signature *sig,
               PyObject *dict, fl_arg **out);

/* The value of an attribute as an object; a block as its view or as its index.
 */
PyObject *py_from_attr(py_program *p, const fl_attr *a, bool views);
PyObject *py_from_strings(int n, const char *const *s);
PyObject *py_from_shape(const fl_shape *s); /* a tuple */

/* --- _fluid_spec.c --- */

/* The `user` pointer of a callback: the object that Python gave, and the state.
 */
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
/* Keep the objects that `user` pointers in the program point to. */
int py_program_keep(py_program *p, PyObject *list);
/* The type of an attribute in the table of an operator; NULL: it has none of
 * that name. */
const fl_attr_type *py_attr_type(py_state *st, const char *op,
                                 const char *name);

/* --- _fluid_build.c --- */

/* A call that builds: a net over the current programs. Its ops are marked with
 * the role, the name scope and the line of the Python script. */
struct py_call {
    py_state *st;
    py_program *main, *startup; /* references */
    PyObject *names;            /* the same */
    fl_net *net;
    bool owns_net;
    fl_net_state before; /* to be restored in a net that outlives the call */
    py_pool pool;
    py_call *outer;
};

/* main, startup NULL: the current programs. net NULL: a new net for this call.
 */
int py_call_begin(py_call *c, py_state *st, py_program *main,
                  py_program *startup, fl_net *net);
void py_call_end(py_call *c);
/* While C calls back into Python, the programs of Python have the role of the
 * net. */
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
