/* SPDX-License-Identifier: Apache-2.0 */
/* update.h - one gradient of a server, and how it changes its parameter.
 *
 * The transpiler gives each gradient a block of the server's program. The block
 * becomes an update, which is made in up to three steps:
 *
 *     mean    the gradients that the participants sent become one
 *     rule    the optimiser op, if update.c can run it without a plan: on the
 *             rows of a table, or on a tensor, chunk by chunk
 *     plan    the other ops of the block
 *
 * Thread: the owner of the update. What is set when it is made: any. */
#ifndef FL_PSERVER_UPDATE_H
#define FL_PSERVER_UPDATE_H

#include "base/map.h"
#include "exec/exe.h"
#include "protocol/server.h"
#include "pserver/kept.h"
#include "table/table.h"
#include "wire/codec.h"

typedef FL_VEC(fl_value *) fl_values;

/* What a participant sent for a gradient: all of it, or a slice. */
typedef struct fl_given {
    int from; /* index of the participant, in order of rank */
    const fl_item *item;
} fl_given;

/* How far the items of one participant have been read. */
typedef struct fl_given_cursor {
    const fl_given *next;
    size_t from; /* bytes of *next that were read */
} fl_given_cursor;

/* Asynchronous: a gradient of which some slices are missing. */
typedef struct fl_slices {
    int rank;
    fl_id session;
    fl_tensor tensor; /* of the gradient's shape */
    int64_t have;     /* elements that have arrived */
} fl_slices;

/* The optimiser op that runs by its rule, not in the plan. */
typedef struct fl_ruled {
    const fl_op *op;      /* NULL: the plan runs the optimiser */
    const char *param;    /* name of the parameter */
    fl_rule_step step;    /* attributes, and the scalars of the last step */
    const fl_value *rate; /* NULL: the op has none */
    const fl_value *power[FL_RULE_POWERS]; /* NULL: the op has none */
    fl_value *value;                       /* parameter; NULL for a table */
    fl_value *state[FL_RULE_STATES];       /* NULL: absent, or in a table */
} fl_ruled;

typedef struct fl_update {
    int number;            /* index among all updates of the server */
    const fl_var *grad;    /* name, kind, dtype, shape */
    const fl_block *block; /* of the server's program */
    int64_t first;         /* index of the op of `block` after sum and scale */
    bool adds; /* the gradient is a sum over the trainers, no mean */
    int owner; /* index of the owner */
    fl_program
        *program;     /* ops of `block` from `first` on, without the rule's */
    fl_plan *plan;    /* made from `program` */
    fl_value *mean;   /* the gradient as the plan reads it */
    bool writes_mean; /* the plan changes `mean` */
    fl_values writes; /* values that plan and rule change */
    int64_t plan_writes; /* how many of `writes`, from the first, the plan
                            changes */
    bool by_rows; /* the plan's optimiser changes listed rows only, of the
                     values in `ruled` */
    const fl_guard *guard; /* of the owner; NULL: nothing is kept */
    int64_t runs;          /* how often the update has run */
    fl_table *table;       /* NULL: the parameter is a tensor */
    fl_ruled ruled;
    FL_VEC(fl_given) given; /* items of this round, sorted by participant */
    FL_VEC(fl_given_cursor) reader; /* one for each participant */
    int n;                          /* divisor of the mean */
    FL_VEC(fl_slices) slices;       /* one for each rank that sent some */
    fl_rows own; /* scratch memory: rows of one participant */
    fl_rows all; /* scratch memory: merged rows of each participant in turn */
    fl_rows sum; /* merged rows of all participants: a table's gradient */
} fl_update;

/* What an update is made from. All of it outlives the update. */
typedef struct fl_update_env {
    const fl_program *program; /* the server's */
    const fl_exec_env *exec;   /* its watch may end the loading of a table */
    fl_scope *user;            /* where the startup program has run */
    fl_scope *scope;           /* the owner's; its parent is `user` */
    fl_arena *arena;
    fl_map *rated;     /* names that learning-rate blocks write */
    fl_budget *tables; /* memory of all tables */
    fl_statedir *dir;  /* where tables are kept; NULL: nowhere */
    fl_extents *extents;
    int number; /* of this update among all */
} fl_update_env;

/* Make u->table if the parameter is a table, and load the files that the scope
 * names for it. The optimiser op is removed from u->program. Err: EINVAL,
 * ENOENT, and those of fl_table_file_load. */
fl_err fl_update_make_table(fl_update *u, const fl_update_env *e) FL_MUST_CHECK;

/* Take the optimiser op of a tensor out of u->program if its rule gives the
 * same bits. */
void fl_update_take_rule(fl_update *u, const fl_update_env *e);

/* After u->program was compiled: find the values that the rule needs. Err:
 * ENOENT. */
fl_err fl_update_bind_rule(fl_update *u, const fl_update_env *e) FL_MUST_CHECK;

/* Compute the mean of u->given over n participants. *some is false if nobody
 * sent a dense gradient: then there is nothing to apply. Err: EPROTO, ENOMEM.
 */
fl_err fl_update_mean(fl_update *u, int n, bool *some) FL_MUST_CHECK;

/* Asynchronous: add one item of one trainer. *some is true when the trainer's
 * gradient is complete. Err: ENOMEM. */
fl_err fl_update_add(fl_update *u, const fl_staged *by, const fl_item *item,
                     bool *some) FL_MUST_CHECK;

/* Make sure that all that the update guards at a time fits into the undo log.
 * Err: ENOMEM: the state has no room, and nothing has changed. */
fl_err fl_update_reserve(const fl_update *u) FL_MUST_CHECK;

/* Apply the rule, if there is one, to the gradient. The caller runs the plan
 * after that. Err: ENOENT, ENOMEM. */
fl_err fl_update_apply(fl_update *u) FL_MUST_CHECK;

/* Run the plan; what it writes is guarded. Err: those of the plan, ENOMEM. */
fl_err fl_update_run_plan(fl_update *u) FL_MUST_CHECK;

/* After the plan has run: forget the items, and return memory that was lent. */
void fl_update_clear(fl_update *u);

/* Whether `name` is the update's table or an optimiser state in its rows.
 * *state is then the state's index, or FL_TABLE_VALUE. */
bool fl_update_in_rows(const fl_update *u, const char *name, int *state);

void fl_update_fini(fl_update *u);

#endif
