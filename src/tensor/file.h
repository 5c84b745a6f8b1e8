/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - Paddle's tensor files.
 *
 *   LoDTensor                          SelectedRows
 *   u32  0, version                    u32  0, version
 *   u64  LoD levels                    u64  rows R
 *   level by level:                    i64  row, R times
 *     u64  bytes of the level          i64  height
 *     i64  offset, starting with 0     tensor: dim 0 is R
 *   tensor
 *
 *   tensor
 *   u32  0, version
 *   i32  bytes of the description
 *   protobuf TensorDesc {1: dtype, 2: dims}
 *   the elements, row by row
 *
 * All little endian. A combined file is such records back to back; the caller
 * knows the order of the names. */
#ifndef FL_TENSOR_FILE_H
#define FL_TENSOR_FILE_H

#include "base/folder.h"
#include "base/stage.h"
#include "tensor/value.h"

/* Append the record of a tensor or of selected rows. With as_f16 the elements
 * of an f32 or f64 tensor are written as f16. */
fl_err fl_value_encode(const fl_value *v, bool as_f16,
                       fl_str *out) FL_MUST_CHECK;

/* Append the record of a tensor without LoD up to its elements, for a caller
 * that writes the elements in parts. */
void fl_tensor_head(fl_dtype dtype, const fl_shape *shape, fl_str *out);

/* Read that back, from the first n bytes of a tensor's record or of the tensor
 * part of a record of selected rows. *used is the number of bytes before the
 * elements. */
fl_err fl_tensor_head_decode(const char *name, fl_kind kind, const void *bytes,
                             size_t n, fl_dtype *dtype, fl_shape *shape,
                             size_t *used) FL_MUST_CHECK;

/* Append the record of selected rows up to its list of rows. */
void fl_rows_head(int64_t n, fl_str *out);
/* Append the height and the tensor part up to the elements. */
void fl_rows_tail(int64_t height, fl_dtype dtype, const fl_shape *shape,
                  fl_str *out);

/* Read the record at the beginning of n bytes. *used is its length. v->kind
 * says which is expected: FL_SELECTED_ROWS, else a tensor. The input is not
 * trusted: a size is compared with the number of bytes that are left before
 * memory is allocated. `name` is for error messages. v is unchanged on failure.
 * Err: EPROTO, ENOMEM. */
fl_err fl_value_decode(const char *name, const void *bytes, size_t n,
                       fl_value *v, size_t *used) FL_MUST_CHECK;

/* Write n records as one file of a save. The elements are not copied before
 * they are written. Err: EINVAL, EIO, ENOENT, ENOMEM. */
fl_err fl_values_stage(fl_stage *stage, const char *name, int n,
                       const fl_value *const *v, bool as_f16) FL_MUST_CHECK;

/* Read a file of a folder that holds exactly n records. On failure the values
 * before the faulty one have already been loaded. */
fl_err fl_values_read(const fl_folder *f, const char *name, int n,
                      fl_value *const *v) FL_MUST_CHECK;

/* The same for one file by its path (fl_file_write, fl_file_read); missing
 * directories are created. */
fl_err fl_values_save(const fl_disk *disk, const char *path, int n,
                      const fl_value *const *v, bool as_f16) FL_MUST_CHECK;
fl_err fl_values_load(const fl_disk *disk, const char *path, int n,
                      fl_value *const *v) FL_MUST_CHECK;

#endif
