/* ops.c - list.h as an array. */
#include "dist/ops.h"

const fl_op_def *const fl_dist_ops_table[] = {
#define FL_OP(type) &fl_op_##type,
#include "dist/list.h"
#undef FL_OP
};

const int fl_dist_ops_count =
    sizeof fl_dist_ops_table / sizeof *fl_dist_ops_table;
