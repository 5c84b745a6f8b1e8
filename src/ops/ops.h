/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - the table of all operators that compute. */
#ifndef FL_OPS_OPS_H
#define FL_OPS_OPS_H

#include "op/op.h"

#define FL_OP(type) extern const fl_op_def fl_op_##type;
#include "ops/list.h"
#undef FL_OP

extern const fl_op_def *const fl_ops_table[];
extern const int fl_ops_count;

#endif
