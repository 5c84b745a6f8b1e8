/* SPDX-License-Identifier: Apache-2.0 */
/* attr.h - an attribute: a name, a type, a value.
 *
 * The same struct (fluid.h) is a default in an operator's table and a value in
 * a program. */
#ifndef FL_OP_ATTR_H
#define FL_OP_ATTR_H

#include "base/arena.h"
#include "base/err.h"

/* A copy whose lists and strings live in the arena. */
fl_attr fl_attr_dup(fl_arena *a, const fl_attr *from);
bool fl_attr_equal(const fl_attr *a, const fl_attr *b); /* name too */

/* Convert `value` to the type of `spec`: int and long to each other (an int
 * must fit 32 bits), ints and longs likewise, int to float, and an empty list
 * to any list. Err: EINVAL: "op: attribute x is ints, expected float". */
fl_err fl_attr_convert(fl_arena *a, const char *op, const fl_attr *spec,
                       const fl_attr *value, fl_attr *out) FL_MUST_CHECK;

#endif
