/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - rows by any int64 id, added when they are first written.
 *
 * A row is its id, its value and the state of the optimiser that updates it,
 * side by side:
 *
 *     id  value[width]  state0[width]  state1[width] ..
 *
 * The start values of a row depend on its id only (start.h). So reading adds no
 * row: for an id without a row the start values are computed, and reading or
 * saving a table takes no memory. An update changes the row in place by the
 * rule of the dense operator, with the same bits as a result.
 *
 * Rows lie in buckets. A bucket has a head of 64 bytes and room for 31 rows; it
 * takes an odd number of cache lines. Buckets of a big table are filled to 82
 * .. 91 percent, so that a row takes, in bytes,
 *
 *     bucket / 31 / (0.82 .. 0.91)
 *     bucket = 64 + 31 * row, up to an odd multiple of 64
 *     row = 8 + size * width * (1 + states), up to a multiple of 8
 *
 * Thread: one at a time. */
#ifndef FL_TABLE_TABLE_H
#define FL_TABLE_TABLE_H

#include "kernel/rule.h"
#include "state/undo.h"
#include "table/memory.h"
#include "table/start.h"

typedef struct fl_table fl_table;

typedef struct fl_table_opts {
    const char *name;
    fl_dtype dtype; /* f32 or f64 */
    int64_t width;
    uint64_t key; /* of the hash, which also orders the rows; fl_table_key */
    fl_table_start start;
    const fl_rule *rule;          /* NULL: rows are never updated */
    bool lacks[FL_RULE_STATES];   /* rows do not have this optional state */
    double state[FL_RULE_STATES]; /* start value of each state */
    fl_statedir
        *dir; /* where the table is kept; NULL: it ends with the process */
    fl_extents *extents; /* memory of a table that is kept */
    int number;          /* names a table that is kept */
    fl_budget *budget;   /* outlives the table; NULL: no limit */
} fl_table_opts;

/* Own: *out is new. Err: EINVAL. */
fl_err fl_table_new(const fl_table_opts *opts, fl_table **out) FL_MUST_CHECK;
void fl_table_free(fl_table *t); /* NULL is fine */

int64_t fl_table_rows(const fl_table *t); /* rows that were added */
int64_t fl_table_width(const fl_table *t);
int64_t fl_table_span(const fl_table *t);  /* elements of value and states */
int64_t fl_table_bytes(const fl_table *t); /* bytes of memory */
uint64_t fl_table_key_of(const fl_table *t);

/* The part of rows to read or load: the index of a state, or one of these. */
enum {
    FL_TABLE_VALUE = -1,
    FL_TABLE_WHOLE = -2 /* value and states; for fl_table_load only */
};

/* Read values, or a state, into `out`, which becomes [n, width]. */
fl_err fl_table_read(const fl_table *t, int state, int64_t n, const int64_t *id,
                     fl_tensor *out) FL_MUST_CHECK;

/* Update rows by one step of the rule. grad: [n, width]; ids differ from each
 * other. Ids without a row get one. Err: ENOMEM, and no value has changed.
 * undo: where the update is one of the owner's task and the table is kept; else
 * NULL. */
fl_err fl_table_apply(fl_table *t, int64_t n, const int64_t *id,
                      const void *grad, const fl_hyper *h,
                      fl_undo *undo) FL_MUST_CHECK;

/* After fl_table_apply has failed: whether there was no room in the state. The
 * same call succeeds when there is. */
bool fl_table_lacks_room(const fl_table *t);

/* The bytes of the rows that fl_table_apply adds to the undo log at a time; *n
 * is their number. */
size_t fl_table_guarded(const fl_table *t, int64_t *n);

/* Write values or a state, [n, width], or whole rows, [n, span]. The other
 * parts of the rows are unchanged. Ids without a row get one. If an id is
 * listed several times, the last row counts. Err: ESHAPE; ENOMEM, and no value
 * has changed. */
fl_err fl_table_load(fl_table *t, int state, int64_t n, const int64_t *id,
                     const fl_tensor *rows) FL_MUST_CHECK;

/* Copy value and states of a row to `to`. False: there is no such row. */
bool fl_table_copy(const fl_table *t, int64_t id, void *to);

/* --- reading all rows --- */

/* The position of a scan; zero is the start. It stays valid while rows are
 * added and updated. */
typedef struct fl_table_cursor {
    uint64_t next; /* hashes below this one have been read */
    bool done;
} fl_table_cursor;

/* Read the next rows, at most n: id becomes [m], rows [m, span]; m = 0 is the
 * end. Rows come in the order of their hashes, which is the same for the same
 * ids and key, so the scans of several servers can be merged. A row that is
 * added during the scan may be read or not; every other row is read once. */
fl_err fl_table_scan(const fl_table *t, fl_table_cursor *c, int64_t n,
                     fl_tensor *id, fl_tensor *rows) FL_MUST_CHECK;
/* The hash of an id in a table with that key. Different ids have different
 * hashes. */
uint64_t fl_table_order(uint64_t key, int64_t id);
/* The key of all tables of a job, from the digest of their names and shapes.
 * Without the key nobody can choose ids whose hashes are neighbours, which
 * would make a table slow. The order of rows in a saved file depends on it. */
uint64_t fl_table_key(const uint64_t tables[2]);

#endif
