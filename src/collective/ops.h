/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - the table of all operators that talk to other ranks. */
#ifndef FL_COLLECTIVE_OPS_H
#define FL_COLLECTIVE_OPS_H

#include "op/op.h"

#define FL_OP(type) extern const fl_op_def fl_op_##type;
#include "collective/list.h"
#undef FL_OP

extern const fl_op_def *const fl_collective_ops_table[];
extern const int fl_collective_ops_count;

#endif
