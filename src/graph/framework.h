/* SPDX-License-Identifier: Apache-2.0 */
/* framework.h - short names for what proto/framework.proto generates. */
#ifndef FL_GRAPH_FRAMEWORK_H
#define FL_GRAPH_FRAMEWORK_H

#include "framework.pb-c.h"
#include "graph/program.h"

typedef Paddle__Framework__Proto__ProgramDesc pb_program;
typedef Paddle__Framework__Proto__Version pb_version;
typedef Paddle__Framework__Proto__BlockDesc pb_block;
typedef Paddle__Framework__Proto__VarDesc pb_var;
typedef Paddle__Framework__Proto__VarType pb_type;
typedef Paddle__Framework__Proto__VarType__TensorDesc pb_tensor;
typedef Paddle__Framework__Proto__VarType__LoDTensorDesc pb_lod_tensor;
typedef Paddle__Framework__Proto__VarType__LoDTensorArrayDesc pb_tensor_array;
typedef Paddle__Framework__Proto__OpDesc pb_op;
typedef Paddle__Framework__Proto__OpDesc__Var pb_args;
typedef Paddle__Framework__Proto__OpDesc__Attr pb_attr;

/* The descriptor of a message: PB(op_desc). */
#define PB(name) (&paddle__framework__proto__##name##__descriptor)

/* The message of a program, in an arena. It borrows the strings of the program.
 */
pb_program *fl_pb_program(fl_arena *a, const fl_program *p);
pb_block *fl_pb_block(fl_arena *a, const fl_block *b);
pb_op *fl_pb_op(fl_arena *a, const fl_op *op);
pb_var *fl_pb_var(fl_arena *a, const fl_var *v);

#endif
