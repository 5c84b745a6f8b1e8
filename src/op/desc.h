/* SPDX-License-Identifier: Apache-2.0 */
/* desc.h - an operator as written in a program:
 *
 * type, names, attributes. The struct is in fluid.h. Names are in the arena of
 * the desc, which a desc must have to be changed. */
#ifndef FL_OP_DESC_H
#define FL_OP_DESC_H

#include "op/attr.h"

#define FL_EMPTY       "@EMPTY@" /* in place of a variable that is absent */
#define FL_GRAD_SUFFIX "@GRAD"

void fl_desc_init(fl_desc *d, fl_arena *a, const char *type);
fl_desc *fl_desc_new(fl_arena *a, const char *type);
fl_desc *fl_desc_dup(fl_arena *a, const fl_desc *from);

/* Replace the names in a slot; they are copied to the arena. */
void fl_desc_set_in(fl_desc *d, const char *slot, int n, const char *const *);
void fl_desc_set_out(fl_desc *d, const char *slot, int n, const char *const *);
void fl_desc_set_in1(fl_desc *d, const char *slot, const char *name);
void fl_desc_set_out1(fl_desc *d, const char *slot, const char *name);
void fl_desc_set_attr(fl_desc *d,
                      const fl_attr *value); /* value has the name */
bool fl_desc_remove_attr(fl_desc *d, const char *name);

const fl_args *fl_desc_in(const fl_desc *d, const char *slot); /* NULL: none */
const fl_args *fl_desc_out(const fl_desc *d, const char *slot);
const fl_attr *fl_desc_attr(const fl_desc *d, const char *name);

/* Whether any slot contains the variable. */
bool fl_desc_reads(const fl_desc *d, const char *name);
bool fl_desc_writes(const fl_desc *d, const char *name);

/* First name of a slot, or NULL. */
const char *fl_desc_in1(const fl_desc *d, const char *slot);
const char *fl_desc_out1(const fl_desc *d, const char *slot);

/* Replace every use of a name. Returns how many were replaced. */
int fl_desc_rename_in(fl_desc *d, const char *from, const char *to);
int fl_desc_rename_out(fl_desc *d, const char *from, const char *to);

/* "x" -> "x@GRAD". */
const char *fl_grad_name(fl_arena *a, const char *name);

#endif
