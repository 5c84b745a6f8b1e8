/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.h - a number for each value that a plan touches.
 *
 * Passes over a plan keep what they learn about a value in arrays, which they
 * index by this number. */
#ifndef FL_EXEC_NUMBERS_H
#define FL_EXEC_NUMBERS_H

#include "op/op.h"

/* Zero is empty. Add all values, then sort once, then find. */
typedef struct fl_numbers {
    FL_VEC(fl_value *) values; /* sorted; a value's number is its position */
} fl_numbers;

void fl_numbers_add(fl_numbers *m, fl_value *v); /* NULL is fine */
void fl_numbers_add_call(fl_numbers *m, const fl_call *c);
void fl_numbers_sort(fl_numbers *m);
void fl_numbers_fini(fl_numbers *m);

int64_t fl_numbers_find(const fl_numbers *m, const fl_value *v); /* -1: none */

#endif
