/* SPDX-License-Identifier: Apache-2.0 */
/* desc.h - an operator as written in a program: type, names, attributes.
 *
 * fluid.h has the struct. Names live in the arena of the program (or of the
 * test); a desc that is changed must have one. */
#ifndef FL_OP_DESC_H
#define FL_OP_DESC_H

#include "op/attr.h"

#define FL_EMPTY       "@EMPTY@" /* a slot's argument that is not there */
#define FL_GRAD_SUFFIX "@GRAD"

void fl_desc_init(fl_desc *d, fl_arena *a, const char *type);
fl_desc *fl_desc_new(fl_arena *a, const char *type);
fl_desc *fl_desc_dup(fl_arena *a, const fl_desc *from);

/* Replace a slot's names (all copied into the arena). */
void fl_desc_set_in(fl_desc *d, const char *slot, int n, const char *const *);
void fl_desc_set_out(fl_desc *d, const char *slot, int n, const char *const *);
void fl_desc_set_in1(fl_desc *d, const char *slot, const char *name);
void fl_desc_set_out1(fl_desc *d, const char *slot, const char *name);
void fl_desc_set_attr(fl_desc *d, const fl_attr *value); /* by value's name */
bool fl_desc_remove_attr(fl_desc *d, const char *name);

const fl_args *fl_desc_in(const fl_desc *d, const char *slot); /* NULL: none */
const fl_args *fl_desc_out(const fl_desc *d, const char *slot);
const fl_attr *fl_desc_attr(const fl_desc *d, const char *name);

/* Whether any slot has the variable. */
bool fl_desc_reads(const fl_desc *d, const char *name);
bool fl_desc_writes(const fl_desc *d, const char *name);

/* First name of a slot, or NULL. */
const char *fl_desc_in1(const fl_desc *d, const char *slot);
const char *fl_desc_out1(const fl_desc *d, const char *slot);

/* Every use of a name becomes another; how many were changed. */
int fl_desc_rename_in(fl_desc *d, const char *from, const char *to);
int fl_desc_rename_out(fl_desc *d, const char *from, const char *to);

/* "x" -> "x@GRAD". */
const char *fl_grad_name(fl_arena *a, const char *name);

#endif
