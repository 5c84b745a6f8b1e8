/* SPDX-License-Identifier: Apache-2.0 */
/* embed.h - rows of a large table by id, memory asked for ahead of its use.
 *
 * A table of millions of rows lies in main memory; each row is a miss of some
 * hundred nanoseconds. The ids are known beforehand, so that rows are asked for
 * about twenty ids early and the misses overlap. */
#ifndef FL_KERNEL_EMBED_H
#define FL_KERNEL_EMBED_H

#include "op/op.h"

enum {
    FL_EMBED_AHEAD = 20 /* ids; a row is asked for that many before its use */
};

/* Ids of one slot: row r of the result belongs to ids[off[r]] up to
 * ids[off[r + 1]], or to ids[r] alone where off is NULL. */
typedef struct fl_embed {
    const int64_t *ids, *off;
    int64_t n;       /* ids */
    int64_t rows;    /* of the result */
    int64_t width;   /* elements of a row of the table */
    int64_t step;    /* elements from one row of the result to the next */
    int64_t padding; /* the id whose row counts as 0, or as not there; -1 */
} fl_embed;

/* The ids of a tensor; with `pool` grouped by its last level of sequences. */
fl_embed fl_embed_of(const fl_tensor *ids, bool pool, int64_t width,
                     int64_t step, int64_t padding);

/* EINVAL: "lookup_table: id 9 is outside the table of 9 rows". */
fl_err fl_embed_check(const char *type, const fl_embed *e,
                      int64_t height) FL_MUST_CHECK;

/* Row r of out = the sum of its rows of the table. */
void fl_embed_get_f32(const fl_embed *e, const float *table, float *out);
void fl_embed_get_f64(const fl_embed *e, const double *table, double *out);

/* table[id] += scale * row r of g, row after row, id after id. */
void fl_embed_add_f32(const fl_embed *e, float scale, const float *g,
                      float *table);
void fl_embed_add_f64(const fl_embed *e, double scale, const double *g,
                      double *table);

/* Ask for the first rows of a slot while another is worked on. */
void fl_embed_warm(const fl_embed *e, const void *table, size_t size);

/* --- many slots side by side (fused_embed_*) --- */

/* The attributes of every fused_embed_* operator. */
#define FL_EMBED_ATTRS                                                         \
    {"order", FL_ATTR_INTS, .required = true}, {"pool", FL_ATTR_BOOL},         \
    {                                                                          \
        "padding_idx", FL_ATTR_LONG, .i = -1                                   \
    }

/* Which input stands where in a concat of pooled lookups: number k of `order`
 * is Ids k, or Dense -(k + 1). Checks `order`, Ids, W (slot `table`) and Dense
 * against each other; the shape that the concat has. */
fl_err fl_embed_infer(const fl_infer *x, const char *table,
                      fl_shape *out) FL_MUST_CHECK;

/* The shape rule of Out, the concat. It has the sequences of the concat's first
 * input: those of a pooled one without the last level, which only the kernel
 * can cut off (fl_embed_cut_lod). */
fl_err fl_embed_infer_concat(fl_infer *x) FL_MUST_CHECK;
fl_err fl_embed_cut_lod(fl_call *c) FL_MUST_CHECK;

/* Which row of a list of different ids each id is. Number i of all Ids is
 * row at[i] of id[]. As a tensor, for another op: i64 [2 n + 1], first m, then
 * at[n], then id[n], of which m count. */
typedef struct fl_embed_where {
    int64_t n, m; /* ids; different ones */
    const int64_t *at, *id;
} fl_embed_where;

fl_embed_where fl_embed_where_of(const fl_tensor *t);
int64_t fl_embed_count_ids(const fl_call *c);

/* One input of the concat. */
typedef struct fl_embed_part {
    fl_embed ids;           /* where dense is NULL */
    const fl_tensor *dense; /* [rows,width] */
    int64_t first;          /* ids in the Ids before it */
    int64_t column, width;  /* its place in the concat */
} fl_embed_part;

/* From left to right, or back; starts with c, table, step and reverse set and
 * the rest zero. */
typedef struct fl_embed_walk {
    const fl_call *c;
    const char *table; /* slot */
    int64_t step;      /* columns of the concat */
    bool reverse;      /* from right to left */
    int64_t columns;   /* of the parts so far */
    int i;
} fl_embed_walk;

/* The next part; false after the last. */
bool fl_embed_next(fl_embed_walk *w, fl_embed_part *part);

/* Every id of every Ids is a row of the table. */
fl_err fl_embed_check_all(const fl_call *c, const char *table) FL_MUST_CHECK;

#endif
