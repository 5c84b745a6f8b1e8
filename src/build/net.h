/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - a network under construction: two programs and the names in them.
 *
 * Layers, backward and optimisers append to the current block of `main`;
 * parameters are initialised by ops in `startup`. Names are made as Fluid
 * makes them (names.c). fl_net_append sets the op role and the name scope of
 * every op. */
#ifndef FL_BUILD_NET_H
#define FL_BUILD_NET_H

#include "graph/program.h"

/* prefix + key + "_" + count, in arena memory. */
const char *fl_names_generate(fl_names *n, fl_arena *a, const char *key);

/* Thread: one at a time. */
struct fl_net {
    fl_program *main, *startup; /* owned if `owns` is true, else borrowed */
    bool owns;                  /* fl_net_free frees the programs, too */
    fl_names *names;
    bool owns_names;
    int block;               /* current block of main */
    int role;                /* op_role of ops that are appended */
    const char *role_var[2]; /* op_role_var (param, grad); NULL: none */
    const char *scope;       /* op_namescope; NULL means "/" */
    int n_callstack;         /* op_callstack; 0: none */
    const char *const *callstack;
    fl_arena *arena; /* names, and descs that are not appended yet */
    fl_err err;      /* first error of a layer call; it is kept */
    char sentence[1024];
};

/* With two programs of its own; fluid.h's fl_net_new gives the registry. */
fl_net *fl_net_make(const fl_registry *r);

/* Keep `err` and its message if it is the first error. Returns `err`. */
fl_err fl_net_fail(fl_net *n, fl_err err);

fl_block *fl_net_block(const fl_net *n); /* ops are appended to it */

/* Append an op to the current block, or insert it at `at`, and set its role,
 * role vars and scope. */
fl_err fl_net_append(fl_net *n, fl_desc *d) FL_MUST_CHECK;
fl_err fl_net_insert(fl_net *n, int64_t at, fl_desc *d) FL_MUST_CHECK;
fl_desc *fl_net_desc(fl_net *n, const char *type); /* in n->arena */

/* Insert an op into the global block of startup (at -1: the end), and set its
 * scope and role 0. */
fl_err fl_net_start(fl_net *n, int64_t at, fl_desc *d) FL_MUST_CHECK;

/* A new temporary `generate(layer + ".tmp")` in the current block. The op that
 * writes it determines its shape. */
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
void fl_set_strs(fl_desc *d, const char *name, int n, const char *const *at);
/* A string attribute, converted to upper case, as Fluid's pools and phases are.
 */
void fl_set_upper(fl_desc *d, const char *name, const char *s);

/* Err: EINVAL if a program should not contain as many as n elements. */
fl_err fl_values_fit(const char *what, int64_t n) FL_MUST_CHECK;
/* Shape, dtype and values of an assign_value: the elements of `t`, converted to
 * `as` (f32 or i32). `what` is for error messages. */
fl_err fl_set_values(fl_desc *d, const char *what, const fl_tensor *t,
                     fl_dtype as) FL_MUST_CHECK;

bool fl_is_float(fl_dtype t);

/* weight_norm.c: the weight `name`, computed from its direction and its length.
 */
fl_err fl_net_weight_norm(fl_net *n, const fl_param_attr *attr,
                          const char *name, const char *layer, fl_dtype dtype,
                          const fl_shape *shape, const fl_init *init,
                          fl_var **out) FL_MUST_CHECK;

/* --- parameters (param.c) --- */

/* A persistable variable that is not a parameter; startup initialises it. */
fl_err fl_net_global(fl_net *n, const char *name, fl_dtype dtype,
                     const fl_shape *shape, const fl_init *init,
                     fl_var **out) FL_MUST_CHECK;

#endif
