/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - for operators that take selected rows as well as tensors. */
#ifndef FL_KERNEL_ROWS_H
#define FL_KERNEL_ROWS_H

#include "op/op.h"

/* Where an operator that works element by element finds X and Out: the
 * tensors, or the values of selected rows. Out gets the rows of X. */
fl_err fl_rows_pair(fl_call *c, const fl_tensor **x,
                    fl_tensor **out) FL_MUST_CHECK;

/* The same for operators that are not linear: equal rows are added up first,
 * in Out. */
fl_err fl_rows_pair_merged(fl_call *c, const fl_tensor **x,
                           fl_tensor **out) FL_MUST_CHECK;

/* All selected rows of input X in their order, with equal rows added up. */
fl_err fl_rows_join(fl_call *c, fl_rows *out) FL_MUST_CHECK;

/* The positions of selected rows by their row number, in scratch memory. */
typedef struct fl_rows_map {
    const fl_row_at *order;
    int64_t n, low;
} fl_rows_map;

fl_err fl_rows_map_init(fl_rows_map *m, fl_call *c,
                        const fl_rows *r) FL_MUST_CHECK;
/* Returns -1 if the row is not selected. */
int64_t fl_rows_map_find(const fl_rows_map *m, int64_t row);

#endif
