/* SPDX-License-Identifier: Apache-2.0 */
/* dump.h - a variable in words, as Fluid prints what is fetched. */
#ifndef FL_TRAIN_DUMP_H
#define FL_TRAIN_DUMP_H

#include "base/str.h"
#include "tensor/value.h"

/* "LABEL\tNAME\t" and lines of LoD, dims, layout, dtype and elements. */
void fl_dump(fl_str *out, const char *label, const char *name,
             const fl_value *v);

/* Its first element as a number; NAN: it has none. */
double fl_first_number(const fl_value *v);

#endif
