/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - parts of the verifier that other files use. */
#ifndef FL_GRAPH_VERIFY_H
#define FL_GRAPH_VERIFY_H

#include "graph/program.h"

/* Check that blocks form a tree, and that each block that an attribute names is
 * nested in the block of that op and is named once. So every walk through
 * sub-blocks ends. */
fl_err fl_verify_blocks(const fl_program *p) FL_MUST_CHECK;

/* How many blocks the attribute names, and which. */
int fl_attr_blocks(const fl_attr *a);
int fl_attr_block(const fl_attr *a, int i);

/* Add the names that the op or an op of its sub-blocks reads (writes) and the
 * sub-blocks do not declare: name -> the op, unless the name is there already.
 * Needs fl_verify_blocks. */
void fl_op_add_reads(const fl_op *op, fl_map *names);
void fl_op_add_writes(const fl_op *op, fl_map *names);

#endif
