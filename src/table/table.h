/* table.h - rows by any int64 id, made when they are first written.
 *
 * A row is its id, its value and the state of the optimiser that updates it,
 * side by side:
 *
 *     id  value[width]  state0[width]  state1[width] ..
 *
 * How a row starts depends on (seed, name, id, column) alone: neither the order
 * of asking nor the number of servers matters. So reading makes no row: one
 * that is not there reads as it would start, and to look at a table, or to save
 * it, takes no memory. Updates are made in the row, by the rule of the dense
 * operator, and have its bits.
 *
 * Rows lie in bins, of at most 4 KB where rows are short, with a head of 64
 * bytes for 16 to 59 rows; their places are filled to 82 .. 91 percent. So a
 * row of a big table takes, in bytes,
 *
 *     (row + 64 / rows of a bin) / (0.82 .. 0.91)
 *     row = 8 + size * width * (1 + states), up to a multiple of 8
 *
 * Thread: one at a time. */
#ifndef FL_TABLE_TABLE_H
#define FL_TABLE_TABLE_H

#include "base/atomic.h"
#include "ops/rule.h"
#include "tensor/tensor.h"

typedef struct fl_table fl_table;

/* What several tables may take together. Thread: any. */
typedef struct fl_budget {
    int64_t limit; /* bytes; 0: until 1/32 of the machine's memory is left */
    fl_count used; /* bytes */
} fl_budget;

typedef enum fl_start_kind {
    FL_START_CONSTANT,  /* a */
    FL_START_UNIFORM,   /* from a up to, but without, b */
    FL_START_NORMAL,    /* mean a, deviation b */
    FL_START_TRUNCATED, /* the same, within 2 b of a */
    FL_START_PICKED,    /* one of the numbers of `from` */
} fl_start_kind;

typedef struct fl_table_start {
    fl_start_kind kind;
    double a, b;
    uint64_t seed;
    const fl_tensor *from; /* its first numbers are copied */
} fl_table_start;

typedef struct fl_table_opts {
    const char *name;
    fl_dtype dtype; /* f32 or f64 */
    int64_t width;
    uint64_t key; /* of the hash: rows come in its order */
    fl_table_start start;
    const fl_rule *rule;          /* NULL: rows are never updated */
    bool lacks[FL_RULE_STATES];   /* an optional state is not used */
    double state[FL_RULE_STATES]; /* where states start */
    fl_budget *budget;            /* outlives the table; NULL: its own */
} fl_table_opts;

/* Own: *out is new. Err: EINVAL. */
fl_err fl_table_new(const fl_table_opts *opts, fl_table **out) FL_MUST_CHECK;
void fl_table_free(fl_table *t); /* NULL is fine */

int64_t fl_table_rows(const fl_table *t); /* made so far */
int64_t fl_table_width(const fl_table *t);
int64_t fl_table_span(const fl_table *t);  /* numbers of a row, state and all */
int64_t fl_table_bytes(const fl_table *t); /* that it has from the system */
uint64_t fl_table_key_of(const fl_table *t);

/* A part of rows: a state of the rule, which the table has, or one of these. */
enum {
    FL_TABLE_VALUE = -1,
    FL_TABLE_WHOLE = -2 /* value and states */
};

/* Values, or a state, into `out`, which becomes [n, width]. */
fl_err fl_table_read(const fl_table *t, int state, int64_t n, const int64_t *id,
                     fl_tensor *out) FL_MUST_CHECK;

/* Below, rows that are not there yet are made; ENOMEM: there is no room. */

/* A step of the rule: grad is [n, width], ids differ from each other. */
fl_err fl_table_apply(fl_table *t, int64_t n, const int64_t *id,
                      const void *grad, const fl_hyper *h) FL_MUST_CHECK;

/* What was read out before: values or a state, [n, width], or whole rows,
 * [n, span]. What is not loaded stays, or starts. Of equal ids the last one
 * counts. */
fl_err fl_table_load(fl_table *t, int state, int64_t n, const int64_t *id,
                     const fl_tensor *rows) FL_MUST_CHECK;

/* --- reading it out (table_scan.c) --- */

/* Zero is the start. It stays good while rows are made and updated. */
typedef struct fl_table_cursor {
    uint64_t next;
    bool done;
} fl_table_cursor;

/* The next rows, at most n: id becomes [m], rows [m, span]; m = 0 is the end.
 * Rows come in the order of their hashes, which is the same for the same ids
 * and key, so what several servers read out can be merged. A row that was made
 * meanwhile comes or not, any other comes once. */
fl_err fl_table_scan(const fl_table *t, fl_table_cursor *c, int64_t n,
                     fl_tensor *id, fl_tensor *rows) FL_MUST_CHECK;
/* The hash in a table with that key; no two ids share one. */
uint64_t fl_table_order(uint64_t key, int64_t id);
/* The key of all tables of a job, from the digest of their names and shapes:
 * who does not know the model cannot find ids whose hashes are neighbours. The
 * order of rows in a saved file depends on it. */
uint64_t fl_table_key(const uint64_t tables[2]);

#endif
