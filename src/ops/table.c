/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - list.h as an array. */
#include "ops/ops.h"

const fl_op_def *const fl_ops_table[] = {
#define FL_OP(type) &fl_op_##type,
#include "ops/list.h"
#undef FL_OP
};

const int fl_ops_count = sizeof fl_ops_table / sizeof *fl_ops_table;
