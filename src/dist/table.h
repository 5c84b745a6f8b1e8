/* table.h - rows by any int64 id, made when they are first asked for.
 *
 * How a row starts depends on the table's name, its id and the table's start
 * alone: neither the order of asking nor the number of servers matters. Each
 * number of it is one of the first numbers that the startup program made for
 * the table, picked by (name, id, column).
 * Thread: one at a time. */
#ifndef FL_DIST_TABLE_H
#define FL_DIST_TABLE_H

#include "tensor/tensor.h"

typedef struct fl_table fl_table;

/* `started` is [rows, width] of f32 or f64 and has elements; they are copied as
 * far as they are needed. Own: *out is new. Err: EINVAL. */
fl_err fl_table_new(const char *name, const fl_tensor *started,
                    fl_table **out) FL_MUST_CHECK;
void fl_table_free(fl_table *t); /* NULL is fine */

int64_t fl_table_rows(const fl_table *t); /* made so far */
int64_t fl_table_width(const fl_table *t);

/* Rows into `out`, which becomes [n, width]; those that are new are made. */
fl_err fl_table_read(fl_table *t, int64_t n, const int64_t *id,
                     fl_tensor *out) FL_MUST_CHECK;
/* Back again: `in` is [n, width] of the table's type. */
fl_err fl_table_write(fl_table *t, int64_t n, const int64_t *id,
                      const fl_tensor *in) FL_MUST_CHECK;

#endif
