/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - list.h as an array. */
#include "trainer/ops.h"

const fl_op_def *const fl_trainer_ops_table[] = {
#define FL_OP(type) &fl_op_##type,
#include "trainer/list.h"
#undef FL_OP
};

const int fl_trainer_ops_count =
    sizeof fl_trainer_ops_table / sizeof *fl_trainer_ops_table;
