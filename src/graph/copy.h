/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - copies parts of programs unchanged; clone and prune use it. */
#ifndef FL_GRAPH_COPY_H
#define FL_GRAPH_COPY_H

#include "graph/program.h"

/* A new program with the settings of p and an empty global block. */
fl_program *fl_copy_settings(const fl_program *p);

/* Append a copy of a var or op to `to`. Nothing is checked or inferred, and the
 * flags of the file that it came from are kept. */
fl_var *fl_copy_var(fl_block *to, const fl_var *v);
fl_op *fl_copy_op(fl_block *to, const fl_op *op);

/* The same with the sub-blocks of the op, which become children of `to`. */
fl_op *fl_copy_op_deep(fl_block *to, const fl_op *op);

/* A new program with the ops of a block, from op `first` on. Variables of the
 * global block of the other program are persistable in it, so that several such
 * programs share their values in a scope. Own: new. */
fl_program *fl_copy_ops(const fl_block *from, int64_t first);

#endif
