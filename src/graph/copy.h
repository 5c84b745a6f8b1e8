/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - parts of programs copied as they are: what clone and prune share. */
#ifndef FL_GRAPH_COPY_H
#define FL_GRAPH_COPY_H

#include "graph/program.h"

/* An empty program with p's settings and, beyond the global block, nothing. */
fl_program *fl_copy_settings(const fl_program *p);

/* The same var or op again at the end of `to`: nothing is checked, nothing
 * inferred, and the flags of the file it came from are kept. */
fl_var *fl_copy_var(fl_block *to, const fl_var *v);
fl_op *fl_copy_op(fl_block *to, const fl_op *op);

/* The same with the op's sub-blocks, which come to lie below `to`. */
fl_op *fl_copy_op_deep(fl_block *to, const fl_op *op);

/* The ops of a block from `first` on as a program of their own. What the
 * global block of the other declares is persistable in it: values live in the
 * scope and several such programs share them. Own: new. */
fl_program *fl_copy_ops(const fl_block *from, int64_t first);

#endif
