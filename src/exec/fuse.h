/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.h - several ops become one, in a plan's own copy of a block.
 *
 * The program that the user sees never changes. A pass looks for a pattern in
 * the lines of a block, makes sure that nobody else reads what would no longer
 * be computed, and replaces the lines by one hidden operator of ops/. */
#ifndef FL_EXEC_FUSE_H
#define FL_EXEC_FUSE_H

#include "graph/program.h"

/* A block's ops on their way into a plan, in the order of running. */
typedef struct fl_lines {
    const fl_block *block;
    fl_arena *arena;
    FL_VEC(fl_desc *)
    descs;       /* NULL: gone. Borrowed from the program until
                  * fl_lines_own makes a copy. */
    fl_map kept; /* names that must hold their value at the end */
    fl_map uses; /* name -> lines that name it, or did before they changed */
} fl_lines;

/* Behind every line is an empty one, for a pass to fill. */
void fl_lines_add(fl_lines *l, fl_desc *d);
void fl_lines_fini(fl_lines *l);

/* Rewrite the lines. They mean the same afterwards, up to rounding. */
void fl_fuse(fl_lines *l);

/* --- for the passes --- */

/* Where a name is read and written, by line; NULL args end a search. */
int fl_lines_reader(const fl_lines *l, const char *name, int after);
int fl_lines_writer(const fl_lines *l, const char *name, int before);
int fl_lines_readers(const fl_lines *l,
                     const char *name); /* the number of lines that read it */
bool fl_lines_written(const fl_lines *l, const char *name, int from, int to);
bool fl_lines_read(const fl_lines *l, const char *name, int from, int to);

/* Written once, and of no use after the run. */
bool fl_lines_temporary(const fl_lines *l, const char *name);

/* The same, and read by that line alone. */
bool fl_lines_private(const fl_lines *l, const char *name, int reader);

/* The line that reads a private name, if it is of that type; else -1. */
int fl_lines_next(const fl_lines *l, const char *name, const char *type);

fl_desc *fl_lines_own(fl_lines *l, int i);         /* may be changed */
void fl_lines_put(fl_lines *l, int i, fl_desc *d); /* in place of line i */

/* A hidden op in place of several. Errors name `of`, the one whose inputs are
 * most often wrong. */
fl_desc *fl_lines_fused(fl_lines *l, const char *type, const fl_desc *of);

/* Where in the block the op stands that a line is, or is made of. */
#define FL_FUSED_FROM "fused_from"
int fl_lines_origin(const fl_block *b, const fl_desc *d);

const fl_var *fl_lines_var(const fl_lines *l, const char *name);
bool fl_lines_is(const fl_lines *l, int i, const char *type);

/* Attribute values with the operators' defaults (they are always set). */
int64_t fl_desc_int(const fl_desc *d, const char *name, int64_t otherwise);

void fl_fuse_embed(fl_lines *l);      /* lookups + pools + concat, and back */
void fl_fuse_conv(fl_lines *l);       /* conv + bias + relu + pool, and back */
void fl_fuse_bias_grad(fl_lines *l);  /* act_grad + elementwise_add_grad */
void fl_fuse_softmax_ce(fl_lines *l); /* their two gradients */
void fl_fuse_fc(fl_lines *l);         /* mul + bias + act */
void fl_fuse_mul_sgd(fl_lines *l);    /* mul_grad's dW + sgd */

#endif
