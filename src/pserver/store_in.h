/* store_in.h - the inside of a store, shared by its files.
 *
 *     pstore_make.c  from a program to updates, owners and plans
 *     pstore_rule.c  optimisers that run without a plan
 *     pstore_table.c updates whose parameter is a table
 *     pstore_mean.c  what the participants sent becomes one gradient
 *     pstore_read.c  answers to pulls
 *     pstore.c       check, apply, the threads */
#ifndef FL_PSERVER_STORE_IN_H
#define FL_PSERVER_STORE_IN_H

#include "base/map.h"
#include "base/pool.h"
#include "pserver/store.h"
#include "table/table.h"
#include "wire/codec.h"

#include <pthread.h>

enum {
    FL_OWNERS_MAX = 64 /* threads: more than a machine's memory can feed */
};

typedef FL_VEC(fl_value *) fl_values;

/* What a participant sent for a gradient: all of it, or a slice. */
typedef struct fl_given {
    int from; /* the participant, by rank */
    const fl_item *item;
} fl_given;

/* Elements first .. end of a gradient. */
typedef struct fl_range {
    int64_t first, end;
} fl_range;

/* What a session has sent of a gradient that comes in slices. Thread: as the
 * machine. */
typedef struct fl_arrived {
    int rank;
    fl_id session;
    FL_VEC(fl_range) range; /* in order; none overlaps another */
    int64_t n;              /* elements in them */
} fl_arrived;

/* Async: a gradient whose slices are not all here. */
typedef struct fl_slices {
    int rank;
    fl_id session;
    fl_tensor tensor;
    int64_t have; /* elements */
} fl_slices;

/* The op that the table, or the store, runs in place of the plan. */
typedef struct fl_ruled {
    const fl_op *op;   /* of the update's program once, and of its memory */
    const char *param; /* its name */
    fl_rule_step step; /* attributes; the numbers of the last step */
    const fl_value *rate, *power[FL_RULE_POWERS]; /* NULL: it has none */
    fl_value *value, *state[FL_RULE_STATES];      /* of no table */
} fl_ruled;

/* How far the items of one participant have been read. */
typedef struct fl_given_cursor {
    const fl_given *next;
    size_t from; /* bytes of the next one */
} fl_given_cursor;

/* A gradient and the block that it feeds. Thread: its owner, but for what says
 * otherwise. */
typedef struct fl_update {
    const fl_var *grad;    /* name, kind, dtype, shape */
    const fl_block *block; /* of the server's program */
    int64_t first;         /* op of the block behind sum and scale */
    int owner;
    fl_program *program; /* the block's ops from `first` on */
    fl_plan *plan;
    fl_value *mean; /* what the plan reads as the gradient */
    bool spoils;    /* the plan writes it */
    fl_values writes;
    fl_table *table;                /* NULL: its parameter is a tensor */
    fl_ruled ruled;                 /* op NULL: the plan does it all */
    FL_VEC(fl_given) given;         /* in the round at hand, by participant */
    FL_VEC(fl_given_cursor) reader; /* of each participant */
    int n;                          /* by what their sum is divided */
    FL_VEC(fl_slices) slices;       /* by rank */
    FL_VEC(fl_arrived) arrived;     /* by rank; thread: as the machine */
    fl_rows own, all, sum;          /* memory for the mean of rows */
} fl_update;

/* A variable that may be pulled. Thread: its owner, but for the name. */
typedef struct fl_ware {
    const char *name;
    int owner;
    fl_value *value;
    fl_table *table; /* or NULL */
    int state;       /* that lies in its rows, or FL_TABLE_VALUE */
} fl_ware;

/* The learning-rate block. */
typedef struct fl_rates {
    fl_program *program;
    fl_values writes;
    fl_plan *plan;
} fl_rates;

/* A thread and what belongs to it alone. Thread: its own. */
typedef struct fl_owner {
    fl_pstore *store;
    int index;
    fl_pool *pool;
    fl_group group;
    fl_scope *scope; /* below the user's: gradients, rates */
    FL_VEC(fl_rates) rates;
    bool due; /* the rates shall be made before the next update */
    FL_VEC(fl_update *) updates;
} fl_owner;

/* A round, or in asynchronous mode a push, on its way through the owners. */
typedef struct fl_applying {
    fl_pstore *store;
    fl_staged *by;
    int n;
    /* under the store's lock: */
    int left; /* owners */
    char why[512];
} fl_applying;

struct fl_pstore {
    fl_pstore_opts opts;
    fl_exec_env env;
    fl_store face;
    bool async;
    fl_arena *arena;
    fl_map gradients; /* names that pushes use -> fl_update */
    fl_map kept;      /* names that pulls use -> fl_ware */
    fl_map rated;     /* names that learning-rate blocks write */
    fl_budget tables; /* of all of them */
    FL_VEC(const fl_block *) rate_blocks;
    FL_VEC(fl_update *) updates;
    fl_owner *owner;
    int owners;
    int64_t refused;                /* pushes with NaN; as the machine */
    pthread_mutex_t lock;           /* never held while a callback runs */
    FL_VEC(fl_applying *) applying; /* in order */
};

/* --- pstore_make.c --- */

fl_err fl_pstore_make(fl_pstore *s) FL_MUST_CHECK;

/* Before a plan runs: nobody else sees what it writes. */
fl_err fl_pstore_claim(fl_value *const *at, int64_t n) FL_MUST_CHECK;

/* --- pstore_rule.c --- */

/* u->ruled of a tensor, if that can be; its op leaves u->program. */
void fl_update_take_rule(fl_owner *o, fl_update *u);
/* After the rest of the update was compiled: what the op reads. */
fl_err fl_update_bind_rule(fl_owner *o, fl_update *u) FL_MUST_CHECK;
/* Its numbers now. Err: ENOENT. */
fl_err fl_update_step(fl_update *u, fl_hyper *out) FL_MUST_CHECK;
/* The rule meets the mean of what was given, or u->mean if that is nothing. */
fl_err fl_update_run_rule(fl_update *u) FL_MUST_CHECK;

/* A tensor that the startup program has made. Err: ENOENT. */
fl_err fl_pstore_started(fl_scope *scope, const char *name,
                         const fl_value **out) FL_MUST_CHECK;
double fl_pstore_number(const fl_value *v); /* its first */

/* --- pstore_table.c --- */

/* u->table, where the update's parameter is one; its op leaves u->program. */
fl_err fl_update_make_table(fl_owner *o, fl_update *u) FL_MUST_CHECK;
/* Is it the table, or a state of its rows? *state tells. */
bool fl_update_in_rows(const fl_update *u, const char *name, int *state);
/* The rule meets u->sum. */
fl_err fl_update_run_table(fl_update *u) FL_MUST_CHECK;

/* --- pstore_mean.c --- */

/* What n participants gave becomes u->mean, or for a table u->sum; where a rule
 * shall meet it, it can now be read. *some: there is a gradient; a dense one
 * that nobody sent is none. */
fl_err fl_update_mean(fl_update *u, int n, bool *some) FL_MUST_CHECK;

/* Async: one trainer's next item. *some: its gradient is complete. */
fl_err fl_update_take(fl_update *u, const fl_staged *by, const fl_item *item,
                      bool *some) FL_MUST_CHECK;

/* The next n elements of the mean. */
void fl_update_next(fl_update *u, int64_t n, void *to);

/* After the plan ran: let go of memory that was lent, and of what was given. */
void fl_update_drop(fl_update *u);

/* --- pstore_read.c --- */

void fl_pstore_read(void *self, fl_blob names, fl_peer to, const fl_msg *reply);

#endif
