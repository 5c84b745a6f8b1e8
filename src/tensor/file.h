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
 * All little endian. A combined file is such records back to back; the order
 * of names is the caller's business. */
#ifndef FL_TENSOR_FILE_H
#define FL_TENSOR_FILE_H

#include "base/folder.h"
#include "base/stage.h"
#include "tensor/value.h"

/* Append the record of a tensor or of selected rows. With as_f16 the elements
 * of an f32 or f64 tensor are written as f16. */
fl_err fl_value_encode(const fl_value *v, bool as_f16,
                       fl_str *out) FL_MUST_CHECK;

/* The record of a tensor without LoD up to its elements, for who has them in
 * parts. */
void fl_tensor_head(fl_dtype dtype, const fl_shape *shape, fl_str *out);

/* The same back, from the first n bytes of a tensor's record, or of the tensor
 * part of one of selected rows; *used bytes come before its elements. */
fl_err fl_tensor_head_decode(const char *name, fl_kind kind, const void *bytes,
                             size_t n, fl_dtype *dtype, fl_shape *shape,
                             size_t *used) FL_MUST_CHECK;

/* The record of selected rows up to these. */
void fl_rows_head(int64_t n, fl_str *out);
/* Its tensor part up to the elements, with the height before it. */
void fl_rows_tail(int64_t height, fl_dtype dtype, const fl_shape *shape,
                  fl_str *out);

/* The record at the front of n bytes; *used is its length. v->kind says which
 * is expected: FL_SELECTED_ROWS, else a tensor. Nothing is believed: a size is
 * compared with the bytes that are there before memory is asked for. `name`
 * is for sentences. v is unchanged on failure. Err: EPROTO, ENOMEM. */
fl_err fl_value_decode(const char *name, const void *bytes, size_t n,
                       fl_value *v, size_t *used) FL_MUST_CHECK;

/* n records as one file of a save. The elements go to the disk from where they
 * lie. Err: EINVAL, EIO, ENOENT, ENOMEM. */
fl_err fl_values_stage(fl_stage *stage, const char *name, int n,
                       const fl_value *const *v, bool as_f16) FL_MUST_CHECK;

/* A file of a folder that holds n records and nothing else. On failure the
 * values before the one at fault are loaded already. */
fl_err fl_values_read(const fl_folder *f, const char *name, int n,
                      fl_value *const *v) FL_MUST_CHECK;

/* The same for one file by its path (fl_file_write, fl_file_read); directories
 * above it are made. */
fl_err fl_values_save(const fl_disk *disk, const char *path, int n,
                      const fl_value *const *v, bool as_f16) FL_MUST_CHECK;
fl_err fl_values_load(const fl_disk *disk, const char *path, int n,
                      fl_value *const *v) FL_MUST_CHECK;

#endif
