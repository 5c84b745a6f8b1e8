/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.h - passes that replace several ops by one, in a plan's copy of a block.
 *
 * The program that the user sees never changes. A pass looks for a pattern in
 * the lines of a block, checks that no other line reads a value that would no
 * longer be computed, and replaces the lines by one hidden operator of ops/. */
#ifndef FL_EXEC_FUSE_H
#define FL_EXEC_FUSE_H

#include "graph/program.h"

/* The ops of a block while its plan is compiled, in the order of execution. */
typedef struct fl_lines {
    const fl_block *block;
    fl_arena *arena;
    FL_VEC(fl_desc *)
    descs;       /* NULL: removed, or empty. Borrowed from the program until
                  * fl_lines_own makes a copy. */
    fl_map kept; /* names whose values must be right after the run */
    fl_map uses; /* name -> lines that use it, or did before they changed */
} fl_lines;

/* Append an op, and an empty line after it that a pass may fill. */
void fl_lines_add(fl_lines *l, fl_desc *d);
void fl_lines_fini(fl_lines *l);

/* Rewrite the lines. They compute the same values as before, up to rounding. */
void fl_fuse(fl_lines *l);

/* --- for the passes --- */

/* Which lines read and write a name; -1: none. */
int fl_lines_reader(const fl_lines *l, const char *name, int after);
int fl_lines_writer(const fl_lines *l, const char *name, int before);
int fl_lines_readers(const fl_lines *l,
                     const char *name); /* the number of lines that read it */
bool fl_lines_written(const fl_lines *l, const char *name, int from, int to);
bool fl_lines_read(const fl_lines *l, const char *name, int from, int to);

/* Whether one line writes the name, and its value is not needed after the run.
 */
bool fl_lines_temporary(const fl_lines *l, const char *name);

/* Whether the name is temporary, and only line `reader` reads it. */
bool fl_lines_private(const fl_lines *l, const char *name, int reader);

/* The only line that reads a temporary name, if its op has that type; else -1.
 */
int fl_lines_next(const fl_lines *l, const char *name, const char *type);

fl_desc *fl_lines_own(fl_lines *l, int i);         /* a copy to change */
void fl_lines_put(fl_lines *l, int i, fl_desc *d); /* replaces line i */

/* A new hidden op that replaces several. Its errors name `of`, the op whose
 * inputs are most often wrong. */
fl_desc *fl_lines_fused(fl_lines *l, const char *type, const fl_desc *of);

/* The position in the block of a line's op, or of the op that a fused line
 * reports errors for. */
#define FL_FUSED_FROM "fused_from"
int fl_lines_origin(const fl_block *b, const fl_desc *d);

const fl_var *fl_lines_var(const fl_lines *l, const char *name);
bool fl_lines_is(const fl_lines *l, int i, const char *type);

/* The value of an integer attribute; `otherwise` if the op does not have it. */
int64_t fl_desc_int(const fl_desc *d, const char *name, int64_t otherwise);

void fl_fuse_embed(fl_lines *l); /* lookups + pools + concat; gradients too */
void fl_fuse_conv(fl_lines *l);  /* conv + bias + relu + pool; gradients too */
void fl_fuse_bias_grad(fl_lines *l);  /* act_grad + elementwise_add_grad */
void fl_fuse_softmax_ce(fl_lines *l); /* cross_entropy_grad2 + softmax_grad */
void fl_fuse_fc(fl_lines *l);         /* mul + bias + act */
void fl_fuse_mul_send(fl_lines *l);   /* mul_grad's dW + send */
void fl_fuse_mul_sgd(fl_lines *l);    /* mul_grad's Y@GRAD + sgd */

#endif
