/* SPDX-License-Identifier: Apache-2.0 */
/* embed.h - rows of a large table by id, with prefetching.
 *
 * A table of millions of rows lies in main memory; each row is a miss of some
 * hundred nanoseconds. The ids are known beforehand, so rows are prefetched
 * about twenty ids early and the misses overlap. */
#ifndef FL_KERNEL_EMBED_H
#define FL_KERNEL_EMBED_H

#include "op/op.h"

enum {
    FL_EMBED_AHEAD = 20 /* a row is prefetched this many ids before its use */
};

/* Ids of one slot: row r of the result belongs to ids[off[r]] up to
 * ids[off[r + 1]], or to ids[r] alone where off is NULL. */
typedef struct fl_embed {
    const int64_t *ids, *off;
    int64_t n;       /* ids */
    int64_t rows;    /* of the result */
    int64_t width;   /* elements of a row of the table */
    int64_t step;    /* elements from one row of the result to the next */
    int64_t padding; /* the id whose row counts as 0 or is skipped; -1: none */
} fl_embed;

/* The ids of a tensor; with `pool` grouped by its last level of sequences. */
fl_embed fl_embed_of(const fl_tensor *ids, bool pool, int64_t width,
                     int64_t step, int64_t padding);

/* EINVAL: "lookup_table: id 9 is outside the table of 9 rows". */
fl_err fl_embed_check(const char *type, const fl_embed *e,
                      int64_t height) FL_MUST_CHECK;

/* Row r of out is the sum of the rows of the table that belong to it. */
void fl_embed_get_f32(const fl_embed *e, const float *table, float *out);
void fl_embed_get_f64(const fl_embed *e, const double *table, double *out);

/* table[id] += scale * row r of g, in the order of rows and of the ids of a
 * row. */
void fl_embed_add_f32(const fl_embed *e, float scale, const float *g,
                      float *table);
void fl_embed_add_f64(const fl_embed *e, double scale, const double *g,
                      double *table);

/* Prefetch the first rows of a slot while another slot is processed. */
void fl_embed_warm(const fl_embed *e, const void *table, size_t size);

/* --- many slots side by side (fused_embed_*) --- */

/* The attributes of every fused_embed_* operator. */
#define FL_EMBED_ATTRS                                                         \
    {"order", FL_ATTR_INTS, .required = true}, {"pool", FL_ATTR_BOOL},         \
    {                                                                          \
        "padding_idx", FL_ATTR_LONG, .i = -1                                   \
    }

/* The order of the inputs in a concat of pooled lookups: an entry k of `order`
 * is Ids k, or Dense -(k + 1) if it is negative. Checks `order`, Ids, W (slot
 * `table`) and Dense against each other, and computes the shape of the concat.
 */
fl_err fl_embed_infer(const fl_infer *x, const char *table,
                      fl_shape *out) FL_MUST_CHECK;

/* The shape rule of Out, the concat. It has the sequences of the concat's first
 * input: those of a pooled one without the last level, which only the kernel
 * can cut off (fl_embed_cut_lod). */
fl_err fl_embed_infer_concat(fl_infer *x) FL_MUST_CHECK;
fl_err fl_embed_cut_lod(fl_call *c) FL_MUST_CHECK;

/* A list of the distinct ids, and the position of each id in it: id number i of
 * all Ids is id[at[i]]. As a tensor for another op it is i64 [2 n + 1]: m, then
 * at[n], then id[n], of which the first m are used. */
typedef struct fl_embed_where {
    int64_t n, m; /* number of ids, and of distinct ids */
    const int64_t *at, *id;
} fl_embed_where;

fl_embed_where fl_embed_where_of(const fl_tensor *t);
int64_t fl_embed_count_ids(const fl_call *c);

/* One input of the concat. */
typedef struct fl_embed_part {
    fl_embed ids;           /* used if dense is NULL */
    const fl_tensor *dense; /* [rows,width] */
    int64_t first;          /* number of ids in the Ids inputs before it */
    int64_t column, width;  /* its first column in the concat */
} fl_embed_part;

/* Visits the parts from left to right, or from right to left. Set c, table,
 * step and reverse; all other fields start as zero. */
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
