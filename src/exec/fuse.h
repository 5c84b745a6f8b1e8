/* fuse.h - several ops become one, in a plan's own copy of a block.
 *
 * The program that the user sees never changes. */
#ifndef FL_EXEC_FUSE_H
#define FL_EXEC_FUSE_H

#include "graph/program.h"

/* A block's ops on their way into a plan: the order of running. */
typedef struct fl_lines {
    const fl_block *block;
    fl_arena *arena;
    FL_VEC(fl_desc *) descs; /* NULL: gone */
    int n_kept; /* names that must hold their value after the run */
    const char *const *kept;
} fl_lines;

/* Rewrite the lines. They mean the same afterwards, up to rounding. */
void fl_fuse(fl_lines *l);

#endif
