/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - parts of the verifier that others stand on. */
#ifndef FL_GRAPH_VERIFY_H
#define FL_GRAPH_VERIFY_H

#include "graph/program.h"

/* Blocks form a tree, and each block named by an attribute lies below the op
 * that names it and is named once: what looks into sub-blocks ends, and soon.
 */
fl_err fl_verify_blocks(const fl_program *p) FL_MUST_CHECK;

/* Does the attribute name blocks? How many, and which. */
int fl_attr_blocks(const fl_attr *a);
int fl_attr_block(const fl_attr *a, int i);

/* Names that the op, or an op of its sub-blocks, reads (writes) outside of
 * those sub-blocks: name -> the op itself, where the name is not in the set
 * yet. Needs fl_verify_blocks. */
void fl_op_add_reads(const fl_op *op, fl_map *names);
void fl_op_add_writes(const fl_op *op, fl_map *names);

#endif
