/* SPDX-License-Identifier: Apache-2.0 */
/* layer.h - a layer: its name, its arguments, and the ops that it emits.
 *
 * Most layers are one operator: their row says which argument goes to which
 * slot or attribute, and fl_emit_op does the rest. Others have a function.
 * An operator with one input X and one output Out is a layer without a row.
 *
 * Instance names are made before anything else, in Fluid's order; a name that
 * is made in another order renames every variable after it. */
#ifndef FL_BUILD_LAYER_H
#define FL_BUILD_LAYER_H

#include "build/args.h"
#include "build/net.h"

/* Output flags. */
enum {
    FL_HIDDEN = 1, /* the output is created but not returned */
    FL_STOP = 2,   /* no gradient flows back through it */
};

enum {
    FL_LAYER_SLOTS = 5,
};

typedef struct fl_layer_def fl_layer_def;

/* One call of a layer. */
typedef struct fl_emit {
    fl_net *net;
    const fl_layer_def *def;
    fl_bound args;
    const char *name;     /* name of this instance: fc_0, or the name that the
                             caller gave */
    FL_VEC(fl_var *) out; /* outputs that it returns */
} fl_emit;

struct fl_layer_def {
    const char *name;
    const char *doc;    /* a sentence or two */
    const char *prefix; /* of instance names; NULL: the name of the layer; "": a
                           layer of other layers, which has no instance name */
    const char *returns; /* NULL: one variable; "a, b": several, by name;
                            "[a]": the rest as a list */
    fl_arg_def args[FL_ARGS];

    fl_err (*emit)(fl_emit *e); /* NULL: the layer is the operator `op` */
    const char *op;
    struct {
        const char *slot, *arg;
    } in[FL_LAYER_SLOTS];
    struct {
        const char *slot;
        unsigned flags;
    } out[FL_LAYER_SLOTS]; /* in the order in which they get their names */
    /* An argument sets the attribute of the same name unless it is listed here.
     * attr NULL: the argument is accepted and ignored. */
    struct {
        const char *arg, *attr;
    } map[FL_LAYER_SLOTS];
    const char *into; /* argument with a variable for the first output */
    bool names_out;   /* `name` is the first output's own name */
};

/* Tables by subject; each ends with {0}. */
extern const fl_layer_def fl_layers_basic[], fl_layers_loss[], fl_layers_math[],
    fl_layers_shape[], fl_layers_tensor[], fl_layers_sequence[],
    fl_layers_image[], fl_layers_picture[], fl_layers_click[],
    fl_layers_metric[], fl_layers_control[], fl_layers_schedule[],
    fl_layers_collective[];

int fl_layer_count(void);
const fl_layer_def *fl_layer_at(int i);

/* Make a row for an operator that has none. Returns false if the operator
 * cannot be a layer. */
bool fl_layer_of_op(fl_arena *a, const fl_op_def *op, fl_layer_def *out);

/* docs.c: what an argument means, and what the layer of an operator without a
 * row computes. NULL: there is no description; a test fails in that case. */
const char *fl_arg_doc(const fl_arg_def *a);
const char *fl_op_layer_doc(const char *type);

/* Like fl_layer, but a failure is only returned, not kept in the net. Returns
 * the number of outputs; at most max are stored. */
fl_err fl_layer_call(fl_net *n, const char *name, const fl_arg *args, int max,
                     fl_var **outs, int *n_outs) FL_MUST_CHECK;
/* The first output only. */
fl_err fl_layer_get(fl_net *n, const char *name, const fl_arg *args,
                    fl_var **out) FL_MUST_CHECK;

/* --- for the functions of layers (emit.c) --- */

fl_err fl_emit_op(fl_emit *e) FL_MUST_CHECK;
void fl_emit_return(fl_emit *e, fl_var *v);
fl_err fl_emit_tmp(fl_emit *e, fl_dtype dtype, fl_var **out) FL_MUST_CHECK;
/* A temporary through which no gradient flows. */
fl_err fl_emit_stopped(fl_emit *e, fl_dtype dtype, fl_var **out) FL_MUST_CHECK;
/* An argument that is one number for both directions, or two numbers. */
fl_err fl_emit_pair(const fl_emit *e, const char *name,
                    int64_t out[2]) FL_MUST_CHECK;
/* A bias over the dims [from, to), unless argument `bias_attr` is false. *v
 * becomes the sum. */
fl_err fl_emit_bias(fl_emit *e, int from, int to, fl_var **v) FL_MUST_CHECK;
/* Append the operator that argument `act` names, if it is given. *v becomes its
 * output. */
fl_err fl_emit_act(fl_emit *e, fl_var **v) FL_MUST_CHECK;

#endif
