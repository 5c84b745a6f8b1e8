/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - rows of a table from files that hold whole variables.
 *
 *     up to INT32_MAX rows   LoDTensor [rows, width]
 *     more                   SelectedRows: those rows that a server has
 *
 * A file is read in parts, and each server keeps the ids that are its own, so a
 * file fits any number of servers. A row of a LoDTensor that
 * equals the start of its id is not added to the table. */
#ifndef FL_TABLE_FILE_H
#define FL_TABLE_FILE_H

#include "cluster/placement.h"
#include "table/table.h"
#include "tensor/record.h"

/* The kind of record that a variable with so many rows is saved as. */
fl_kind fl_table_file_kind(int64_t rows);

/* Open a file and check that it holds the variable of k. k->first is FL_BY_ID.
 * Own: *out, until fl_record_close. Err: EPROTO, ESHAPE, EIO, ENOENT. */
fl_err fl_table_file_open(const fl_disk *disk, const char *path,
                          const fl_piece *k, fl_dtype dtype,
                          fl_record *out) FL_MUST_CHECK;

/* Load the rows of server k->server into its table: values (FL_TABLE_VALUE) or
 * a state. `poll` is called between two parts; if it returns other than 0,
 * loading ends with EINTR. NULL: no poll. */
fl_err fl_table_file_load(fl_table *t, int state, const fl_record *r,
                          const fl_piece *k, int servers,
                          int (*poll)(void *user), void *user) FL_MUST_CHECK;

#endif
