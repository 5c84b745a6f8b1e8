/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - a file with one record (file.h), read in parts.
 *
 * Open checks the head and the size of the file: a damaged or truncated file
 * is refused before any element is read. */
#ifndef FL_TENSOR_RECORD_H
#define FL_TENSOR_RECORD_H

#include "base/disk.h"
#include "tensor/tensor.h"

typedef struct fl_record {
    const fl_disk *disk;
    fl_file *file;
    int64_t size;     /* bytes of the file */
    const char *path; /* borrowed */
    fl_dtype dtype;
    fl_shape shape;
    int64_t height;   /* of selected rows */
    int64_t elements; /* offset of the elements in the file, in bytes */
} fl_record;

/* kind: FL_LOD_TENSOR or FL_SELECTED_ROWS. Own: *out, until close.
 * Err: EPROTO, EIO, ENOENT. */
fl_err fl_record_open(const fl_disk *disk, const char *path, fl_kind kind,
                      fl_record *out) FL_MUST_CHECK;
void fl_record_close(fl_record *r);

/* Read elements first .. first + n, or in the same way row numbers of selected
 * rows. */
fl_err fl_record_read(const fl_record *r, int64_t first, int64_t n,
                      void *to) FL_MUST_CHECK;
fl_err fl_record_rows(const fl_record *r, int64_t first, int64_t n,
                      int64_t *to) FL_MUST_CHECK;

#endif
