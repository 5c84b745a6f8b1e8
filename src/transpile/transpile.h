/* SPDX-License-Identifier: Apache-2.0 */
/* transpile.h - the parts of the transpiler, and the types that they share.
 *
 *     plan.c         which op runs where, how each parameter is split
 *     trainer.c      the programs of a trainer
 *     table.c        tables that are is_distributed, in a trainer's program
 *     table_serve.c  the same, in a server's program
 *     server.c       the program of one server
 *     start.c        the startup program of one server
 *     transpile.c    calls the parts in order; owns the cut and its programs
 *     collective.c   programs of ranks without servers
 *
 * The programs that are given are never changed: the parts work on clones. */
#ifndef FL_TRANSPILE_TRANSPILE_H
#define FL_TRANSPILE_TRANSPILE_H

#include "build/net.h"
#include "cluster/placement.h"

/* Some rows of a parameter and of its gradient. */
typedef struct fl_slice {
    struct fl_share *of;
    const char *param; /* "w.block1"; "w" if the parameter is not split */
    const char *grad;  /* on the server: "w@GRAD.block1" */
    const char *sent;  /* on the trainer: the same, perhaps with ".trainer_0" */
    int64_t row;       /* index of its first row */
    fl_shape shape;
    int server; /* index of the server that holds it */
} fl_slice;

/* A parameter that servers update, and how it is split over them. */
typedef struct fl_share {
    const fl_var *param, *grad;
    bool sparse; /* the gradient is selected rows */
    bool remote; /* sparse, and looked up on the servers; trainers never receive
                    it */
    bool common; /* its update computes a learning rate: every server has all of
                    it, and trainers never receive it */
    int n;
    fl_slice *slice;
    const char *token; /* output of its send, which orders later ops */
} fl_share;

/* One call of the transpiler. Thread: one at a time while it is made; immutable
 * afterwards. */
struct fl_cut {
    fl_arena *arena;
    fl_transpile_opts opts; /* its pointers are valid only while the cut is
                               made; trainer_id is 0 if none was given */
    int trainer_id;         /* as given, or FL_ANY_ID */
    int n_servers;
    const char **servers; /* endpoints */
    fl_program *main, *startup;
    fl_ops updates; /* ops of main that servers run for a parameter */
    fl_ops rates;   /* ops of main that compute learning rates */
    FL_VEC(fl_share *) shares;
    int *order; /* the order in which shares are sent and get servers */
    FL_VEC(fl_share *) tables;   /* is_distributed parameters; their n is 0 */
    FL_VEC(fl_piece) pieces;     /* by server, in order of declaration */
    FL_VEC(const char *) absent; /* variables that trainers have no copy of */
    fl_program *trainer, *trainer_startup;
    fl_program **server, **server_startup;
};

/* Whether the names of gradients carry the number of the trainer, so that
 * servers can add them up. */
static inline bool fl_cut_sums(const fl_cut *c)
{
    return !c->opts.async && c->opts.trainers > 1;
}

/* --- plan.c --- */

fl_err fl_cut_plan(fl_cut *c) FL_MUST_CHECK;
/* Name i in the attribute op_role_var; NULL: there is none. */
const char *fl_cut_role_var(const fl_op *op, int i);
/* Whether the op has the role optimize but needs all gradients (clipping by
 * global norm). Such ops stay on the trainer. */
bool fl_cut_is_joint(const fl_op *op);
bool fl_cut_is_rate_op(const fl_op *op);

/* --- transpile.c --- */

/* A new desc with an op_role. */
fl_desc *fl_cut_desc(fl_cut *c, const char *type, int role);
/* For each slice its name, the name of its gradient on the trainer, its server,
 * or the number of its rows. Own: the cut's arena. */
typedef enum fl_slice_text {
    FL_SLICE_PARAM,
    FL_SLICE_SENT,
    FL_SLICE_SERVER,
} fl_slice_text;
const char **fl_share_texts(fl_cut *c, const fl_share *s, fl_slice_text which);
const int64_t *fl_share_rows(fl_cut *c, const fl_share *s);
/* A new variable that only orders ops: `__control_var@3`. */
fl_err fl_cut_token(fl_cut *c, fl_block *b, const char **out) FL_MUST_CHECK;
/* Index of the last op of the block that writes `name`; -1: none does. */
int64_t fl_cut_last_writer(const fl_block *b, const char *name);

/* --- trainer.c --- */

fl_err fl_cut_make_trainer(fl_cut *c) FL_MUST_CHECK;
fl_err fl_cut_make_trainer_startup(fl_cut *c) FL_MUST_CHECK;
/* Set c->absent. Needs the trainer's program. */
void fl_cut_find_absent(fl_cut *c);

/* --- table.c --- */

/* Set c->tables, in the order of their first lookups. */
fl_err fl_table_find(fl_cut *c) FL_MUST_CHECK;
fl_share *fl_cut_table(const fl_cut *c, const char *name); /* or NULL */
/* Replace the lookups of a table by split_ids, prefetch and merge_ids, and send
 * its gradient. */
fl_err fl_table_edit_trainer(fl_cut *c, fl_share *t, fl_block *b) FL_MUST_CHECK;
fl_err fl_table_edit_startup(fl_cut *c, const fl_share *t,
                             fl_block *b) FL_MUST_CHECK;
/* Remove the states of an optimiser in whose place servers use sgd: no process
 * has them, so a save must not look for them. */
void fl_table_drop_states(const fl_cut *c, const fl_share *t, fl_block *b);
/* The names of the ids that go to each server, of the rows that come back, and
 * of the part of the gradient that a trainer sends to a server. */
const char **fl_table_requests(fl_cut *c, const fl_share *t);
const char **fl_table_answers(fl_cut *c, const fl_share *t);
const char *fl_table_part(fl_cut *c, const fl_share *t, int trainer,
                          int server);
fl_err fl_table_declare(fl_block *b, int n, const char **names,
                        const fl_var *like) FL_MUST_CHECK;

/* --- table_serve.c --- */

/* The op of main that updates the table; NULL: there is none. */
const fl_op *fl_table_update(const fl_cut *c, const fl_share *t);
/* Whether servers update a table by this op: it changes only rows that have a
 * gradient. false: they use sgd. */
bool fl_table_keeps_rule(const fl_op *update);

/* --- server.c, start.c --- */

/* A persistable variable of a server, and the variable of the whole program
 * that it is, or is a part of. */
typedef struct fl_held {
    const char *origin, *name;
    bool cut;       /* it is a part of the origin */
    int64_t offset; /* elements of the origin that come before it */
    fl_shape shape;
    bool by_id; /* rows of a table: the startup program makes one row, which
                   shows how rows start */
} fl_held;

/* The programs of one server while they are made. */
typedef struct fl_server_cut {
    fl_cut *c;
    int at; /* index in c->servers */
    fl_program *p;
    fl_block *b;
    int parent;           /* the parent of update blocks */
    FL_VEC(fl_held) held; /* variables that its startup program initialises */
    FL_VEC(const char *) inputs;  /* gradients that trainers send */
    FL_VEC(const char *) blocks;  /* "grad:block" */
    FL_VEC(const char *) sparse;  /* "grad:param" */
    FL_VEC(const char *) fetches; /* "ids:block" */
    FL_VEC(int64_t) updates;      /* blocks to run, in order */
    int64_t checkpoint;           /* block that saves the table, or -1 */
} fl_server_cut;

fl_err fl_cut_make_server(fl_cut *c, int at) FL_MUST_CHECK;
/* Declare a variable of main on the server. A persistable variable becomes one
 * that the server holds. */
fl_err fl_server_declare(fl_server_cut *s, const fl_var *v) FL_MUST_CHECK;
/* A new update block, which runs when `grad` has arrived. */
fl_block *fl_server_block(fl_server_cut *s, const char *grad);
fl_err fl_table_serve(fl_server_cut *s, const fl_share *t) FL_MUST_CHECK;
/* The only op of the startup program that uses a variable; NULL: there are
 * several, or none. */
const fl_op *fl_cut_only_start(const fl_cut *c, const char *name);
fl_err fl_server_start(fl_server_cut *s, fl_program **out) FL_MUST_CHECK;

#endif
