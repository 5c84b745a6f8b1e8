/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - the table of the operators of a trainer's program that talk to
 * servers. */
#ifndef FL_TRAINER_OPS_H
#define FL_TRAINER_OPS_H

#include "op/op.h"

#define FL_OP(type) extern const fl_op_def fl_op_##type;
#include "trainer/list.h"
#undef FL_OP

extern const fl_op_def *const fl_trainer_ops_table[];
extern const int fl_trainer_ops_count;

#endif
