/* SPDX-License-Identifier: Apache-2.0 */
/* transpile.h - the parts of the transpiler and what they hand to each other.
 *
 *     transpile_plan     which op runs where, which parameter is cut into what
 *     transpile_trainer  the program of trainers, and their startup program
 *     transpile_table    tables that are is_distributed, on the trainer..
 *     transpile_table_serve  ..and on a server
 *     transpile_server   the program of one server
 *     transpile_start    its startup program
 *     transpile          all of it in order; the cut and its programs
 *
 * Nobody changes the programs that are cut: all work on clones of them. */
#ifndef FL_TRANSPILE_TRANSPILE_H
#define FL_TRANSPILE_TRANSPILE_H

#include "build/net.h"
#include "cluster/placement.h"

/* Some rows of a parameter and of its gradient. */
typedef struct fl_slice {
    struct fl_share *of;
    const char *param; /* "w.block1", or "w" where it is whole */
    const char *grad;  /* on the server: "w@GRAD.block1" */
    const char *sent;  /* on the trainer: the same, or with ".trainer_0" */
    int64_t row;       /* its first */
    fl_shape shape;
    int server; /* who holds it */
} fl_slice;

/* A parameter that servers update, and how it is dealt to them. */
typedef struct fl_share {
    const fl_var *param, *grad;
    bool sparse; /* the gradient is selected rows */
    bool remote; /* sparse, and looked up on the servers: never received */
    bool common; /* its update makes a learning rate: every server has all of
                    it, and trainers never receive it */
    int n;
    fl_slice *piece;
    const char *token; /* what its send gives */
} fl_share;

/* Thread: one at a time while it is made; immutable then. */
struct fl_cut {
    fl_arena *arena;
    fl_transpile_opts opts; /* what it points to is not kept; trainer_id is 0
                               where none was given */
    int trainer_id;         /* as given, or FL_ANY_ID */
    int n_servers;
    const char **servers; /* endpoints */
    fl_program *main, *startup;
    fl_ops updates; /* ops of main that servers run for a parameter */
    fl_ops rates;   /* ops of main that make learning rates */
    FL_VEC(fl_share *) shares;
    int *order;                  /* in which shares are sent and dealt */
    FL_VEC(fl_share *) tables;   /* those that are is_distributed; n is 0 */
    FL_VEC(fl_piece) pieces;     /* by server, in order of declaration */
    FL_VEC(const char *) absent; /* variables that trainers have no copy of */
    fl_program *trainer, *trainer_startup;
    fl_program **server, **server_startup;
};

/* Gradients have a trainer's number: servers add them up. */
static inline bool fl_cut_sums(const fl_cut *c)
{
    return !c->opts.async && c->opts.trainers > 1;
}

/* --- transpile_plan.c --- */

fl_err fl_cut_plan(fl_cut *c) FL_MUST_CHECK;
/* op_role_var[i], or NULL. */
const char *fl_cut_role_var(const fl_op *op, int i);
/* Optimise ops that need all gradients (clipping by global norm) run where
 * those are: on the trainer. */
bool fl_cut_is_joint(const fl_op *op);
bool fl_cut_is_rate_op(const fl_op *op);

/* --- transpile.c: small things that several need --- */

/* A desc with an op_role. */
fl_desc *fl_cut_desc(fl_cut *c, const char *type, int role);
/* Of each piece its name, its gradient's on the trainer, its server; or its
 * rows. In the cut's arena. */
typedef enum fl_slice_text {
    FL_PIECE_PARAM,
    FL_PIECE_SENT,
    FL_PIECE_SERVER,
} fl_slice_text;
const char **fl_share_texts(fl_cut *c, const fl_share *s, fl_slice_text which);
const int64_t *fl_share_rows(fl_cut *c, const fl_share *s);
/* A new variable without shape that orders ops: `__control_var@3`. */
fl_err fl_cut_token(fl_cut *c, fl_block *b, const char **out) FL_MUST_CHECK;
/* Last op of the block that writes `name`, or -1. */
int64_t fl_cut_last_writer(const fl_block *b, const char *name);
bool fl_desc_reads(const fl_desc *d, const char *name);
bool fl_desc_writes(const fl_desc *d, const char *name);

/* --- transpile_trainer.c --- */

fl_err fl_cut_make_trainer(fl_cut *c) FL_MUST_CHECK;
fl_err fl_cut_make_trainer_startup(fl_cut *c) FL_MUST_CHECK;
/* c->absent, once the trainer's program is there. */
void fl_cut_find_absent(fl_cut *c);

/* --- transpile_table.c --- */

/* c->tables, in the order of their first lookups. */
fl_err fl_table_find(fl_cut *c) FL_MUST_CHECK;
fl_share *fl_cut_table(const fl_cut *c, const char *name); /* or NULL */
/* Lookups become split_ids, prefetch, merge_ids; the gradient is sent. */
fl_err fl_table_edit_trainer(fl_cut *c, fl_share *t, fl_block *b) FL_MUST_CHECK;
fl_err fl_table_edit_startup(fl_cut *c, const fl_share *t,
                             fl_block *b) FL_MUST_CHECK;
/* What goes to each server and comes back, and the part of the gradient that
 * one trainer sends to one server. */
const char **fl_table_requests(fl_cut *c, const fl_share *t);
const char **fl_table_answers(fl_cut *c, const fl_share *t);
const char *fl_table_part(fl_cut *c, const fl_share *t, int trainer,
                          int server);
fl_err fl_table_declare(fl_block *b, int n, const char **names,
                        const fl_var *like) FL_MUST_CHECK;

/* --- transpile_table_serve.c --- */

/* The op of main that updates the table; NULL: none. */
const fl_op *fl_table_update(const fl_cut *c, const fl_share *t);

/* --- transpile_server.c, transpile_start.c --- */

/* A persistable variable of a server and what it is of. */
typedef struct fl_held {
    const char *origin, *name;
    bool cut;       /* `shape` is a part of the origin's */
    int64_t offset; /* elements of the origin before it */
    fl_shape shape;
    bool by_id; /* rows of a table: one is started, to show how */
} fl_held;

/* One server in the making. */
typedef struct fl_server_cut {
    fl_cut *c;
    int at; /* in c->servers */
    fl_program *p;
    fl_block *b;
    int parent;                   /* of update blocks */
    FL_VEC(fl_held) held;         /* what its startup program starts */
    FL_VEC(const char *) inputs;  /* gradients that come */
    FL_VEC(const char *) blocks;  /* "grad:block" */
    FL_VEC(const char *) sparse;  /* "grad:param" */
    FL_VEC(const char *) fetches; /* "ids:block" */
    FL_VEC(int64_t) updates;      /* blocks to run, in order */
    int64_t checkpoint;           /* block that saves the table, or -1 */
} fl_server_cut;

fl_err fl_cut_make_server(fl_cut *c, int at) FL_MUST_CHECK;
/* Declare a variable of main on the server; persistable ones are held. */
fl_err fl_server_declare(fl_server_cut *s, const fl_var *v) FL_MUST_CHECK;
/* An update block; `grad` is what makes it run. */
fl_block *fl_server_block(fl_server_cut *s, const char *grad);
fl_err fl_table_serve(fl_server_cut *s, const fl_share *t) FL_MUST_CHECK;
/* The only op of the startup program that has to do with a variable; NULL:
 * there are several, or none. */
const fl_op *fl_cut_only_start(const fl_cut *c, const char *name);
fl_err fl_server_start(fl_server_cut *s, fl_program **out) FL_MUST_CHECK;

#endif
