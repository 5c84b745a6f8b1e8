/* ops.h - the table of all operators of distributed programs. */
#ifndef FL_DIST_OPS_H
#define FL_DIST_OPS_H

#include "op/op.h"

#define FL_OP(type) extern const fl_op_def fl_op_##type;
#include "dist/list.h"
#undef FL_OP

extern const fl_op_def *const fl_dist_ops_table[];
extern const int fl_dist_ops_count;

#endif
