/* net.h - a network under construction: two programs and the names in them.
 *
 * Layers, backward and optimisers append to the current block of `main`;
 * parameters are initialised by ops in `startup`. Names are made as Fluid
 * makes them (names.c). Op roles and name scopes are stamped on every op that
 * passes through fl_net_append. */
#ifndef FL_BUILD_NET_H
#define FL_BUILD_NET_H

#include "graph/program.h"

/* Counters by key: generate("fc") is fc_0, then fc_1. */
typedef struct fl_names fl_names;
fl_names *fl_names_new(const char *prefix); /* NULL: none */
void fl_names_free(fl_names *n);
/* prefix + key + "_" + count, in arena memory. */
const char *fl_names_generate(fl_names *n, fl_arena *a, const char *key);

/* Thread: one at a time. */
struct fl_net {
    fl_program *main, *startup; /* borrowed or owned, see owns */
    bool owns;                  /* fl_net_free ends the programs too */
    fl_names *names;
    bool owns_names;
    int block;               /* current block of main */
    int role;                /* op_role of what is appended */
    const char *role_var[2]; /* op_role_var (param, grad); NULL: none */
    const char *scope;       /* op_namescope; NULL reads as "/" */
    fl_arena *arena;         /* names and descs on their way */
    fl_err err;              /* first failure of a layer call; sticky */
    char sentence[1024];
};

/* With two programs of its own; fluid.h's fl_net_new gives the registry. */
fl_net *fl_net_make(const fl_registry *r);
/* The same over programs and names that stay the caller's. */
fl_net *fl_net_over(fl_program *main, fl_program *startup, fl_names *names);

/* Keep `err` and its sentence if it is the first; returns it. */
fl_err fl_net_fail(fl_net *n, fl_err err);

fl_block *fl_net_block(const fl_net *n); /* where ops go now */

/* Append to the current block (or insert at `at`), stamped with role, role
 * vars and scope. */
fl_err fl_net_append(fl_net *n, fl_desc *d) FL_MUST_CHECK;
fl_err fl_net_insert(fl_net *n, int64_t at, fl_desc *d) FL_MUST_CHECK;
fl_desc *fl_net_desc(fl_net *n, const char *type); /* in n->arena */

/* Insert into the global block of startup (at -1: the end), stamped with the
 * scope and role 0. */
fl_err fl_net_start(fl_net *n, int64_t at, fl_desc *d) FL_MUST_CHECK;

/* A new temporary `generate(layer + ".tmp")` in the current block. Its shape
 * comes with the op that writes it. */
fl_err fl_net_tmp(fl_net *n, const char *layer, fl_dtype dtype,
                  fl_var **out) FL_MUST_CHECK;

/* --- slots and attributes of a desc on its way (set.c) --- */

void fl_set_in(fl_desc *d, const char *slot, const fl_var *v);
void fl_set_ins(fl_desc *d, const char *slot, int n, fl_var *const *v);
void fl_set_out(fl_desc *d, const char *slot, const fl_var *v);
void fl_set_int(fl_desc *d, const char *name, int64_t i);
void fl_set_float(fl_desc *d, const char *name, double f);
void fl_set_bool(fl_desc *d, const char *name, bool b);
void fl_set_str(fl_desc *d, const char *name, const char *s);
void fl_set_ints(fl_desc *d, const char *name, int n, const int64_t *at);
/* A string attribute in capitals, as Fluid's pools and phases are. */
void fl_set_upper(fl_desc *d, const char *name, const char *s);

/* EINVAL: n elements are more than should stand in a program. */
fl_err fl_values_fit(const char *what, int64_t n) FL_MUST_CHECK;
/* Shape, dtype and values of an assign_value: the elements of `t`, converted
 * to `as` (f32 or i32). `what` is for the sentence. */
fl_err fl_set_values(fl_desc *d, const char *what, const fl_tensor *t,
                     fl_dtype as) FL_MUST_CHECK;

bool fl_is_float(fl_dtype t);

/* --- initialisers (init.c) --- */

/* Declare `v` in the startup program, persistable, and put the op that starts
 * it there, in front of the others (Fluid prepends). A variable that an op of
 * startup writes already is left as it is. */
fl_err fl_init_emit(const fl_init *i, fl_net *n, fl_var *v) FL_MUST_CHECK;

/* --- parameters (param.c) --- */

/* A parameter in the global block of main and of startup with its start op.
 * attr NULL is the default; `layer` gives the name: generate(layer + ".w").
 * init_default NULL: Xavier for weights, 0 for biases. An existing parameter
 * of that name is shared if dtype and shape agree. */
fl_err fl_net_param(fl_net *n, const fl_param_attr *attr, const char *layer,
                    bool bias, fl_dtype dtype, const fl_shape *shape,
                    const fl_init *init_default, fl_var **out) FL_MUST_CHECK;

/* A persistable variable that is no parameter, started in startup. */
fl_err fl_net_global(fl_net *n, const char *name, fl_dtype dtype,
                     const fl_shape *shape, const fl_init *init,
                     fl_var **out) FL_MUST_CHECK;

/* --- backward (backward.c) --- */

typedef struct fl_param_grad {
    fl_var *param, *grad; /* grad may be NULL */
} fl_param_grad;
typedef FL_VEC(fl_param_grad) fl_param_grads;

typedef struct fl_backward_opts {
    int n_params; /* 0: every trainable parameter */
    const char *const *params;
    int n_no_grad;
    const char *const *no_grad;
} fl_backward_opts;

/* Append the gradient of `loss` to main. Fluid's names and accumulation.
 * Own: out->at is the caller's (fl_vec_fini). */
fl_err fl_backward(fl_net *n, fl_var *loss, const fl_backward_opts *opts,
                   fl_param_grads *out) FL_MUST_CHECK;

/* Gradients of targets with respect to inputs; grads[i] may come out NULL.
 * target_grads may be NULL (ones). */
fl_err fl_gradients(fl_net *n, int n_targets, fl_var *const *targets,
                    fl_var *const *target_grads, int n_inputs,
                    fl_var *const *inputs, const fl_backward_opts *opts,
                    fl_var **grads) FL_MUST_CHECK;

#endif
