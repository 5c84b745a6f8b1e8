/* SPDX-License-Identifier: Apache-2.0 */
/* dump.h - the text of a variable, as Fluid prints fetched variables. */
#ifndef FL_TRAIN_DUMP_H
#define FL_TRAIN_DUMP_H

#include "base/str.h"
#include "tensor/value.h"

/* "LABEL\tNAME\t" and lines of LoD, dims, layout, dtype and elements. */
void fl_dump(fl_str *out, const char *label, const char *name,
             const fl_value *v);

/* The first element as a number; NAN: there is none. */
double fl_first_number(const fl_value *v);

#endif
