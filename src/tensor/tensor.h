/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - dtype, shape, counted memory, and the tensor over them.
 *
 * fl_tensor, fl_shape and fl_lod are public values (fluid.h). fl_tensor_ref
 * shares the memory of a tensor; call fl_tensor_unique before writing to
 * shared memory. A tensor without buf borrows the memory of the caller for a
 * limited time, so its memory cannot be shared: fl_tensor_ref copies such a
 * tensor. */
#ifndef FL_TENSOR_TENSOR_H
#define FL_TENSOR_TENSOR_H

#include "base/err.h"

/* --- dtype --- */

bool fl_dtype_valid(int number);
const char *fl_dtype_word(fl_dtype t); /* name in Python: "float32" */

/* --- shape --- */

fl_shape fl_shape_of(int rank, const int64_t *dim);
bool fl_shape_equal(const fl_shape *a, const fl_shape *b);
/* Whether the shapes may be equal once every -1 is known. */
bool fl_shape_alike(const fl_shape *a, const fl_shape *b);
int64_t fl_shape_numel(const fl_shape *s); /* -1 if a dim is unknown */
/* The product of dimensions [from, to). */
int64_t fl_shape_span(const fl_shape *s, int from, int to);

/* Arithmetic with sizes. The result is -1 (unknown) if an operand is, and
 * INT64_MAX, which no tensor can have, if the result does not fit. */
int64_t fl_dim_mul(int64_t a, int64_t b);
int64_t fl_dim_add(int64_t a, int64_t b);

/* Write "[-1,8]" to text and return it. */
enum {
    FL_SHAPE_TEXT = 24 * FL_MAX_RANK
};
const char *fl_shape_text(const fl_shape *s, char text[FL_SHAPE_TEXT]);

/* The size of all elements in bytes. Err: EINVAL if a dimension is negative,
 * ENOMEM if the size overflows, and ENOMEM for more than 2^33 empty rows, over
 * which a loop would take too long. */
fl_err fl_shape_bytes(const fl_shape *s, fl_dtype t,
                      size_t *bytes) FL_MUST_CHECK;

/* --- counted memory --- */

fl_err fl_buf_new(size_t size, fl_buf **buf) FL_MUST_CHECK; /* one reference */
/* A buffer with one reference over memory of someone else, which must stay
 * until drop(owner) is called. */
fl_err fl_buf_lend(void *at, size_t size, void (*drop)(void *owner),
                   void *owner, fl_buf **buf) FL_MUST_CHECK;
fl_buf *fl_buf_ref(fl_buf *b);
void fl_buf_unref(fl_buf *b); /* NULL is fine */
void *fl_buf_data(fl_buf *b);
size_t fl_buf_size(const fl_buf *b);
bool fl_buf_shared(const fl_buf *b); /* more than one reference */

/* --- tensor --- */

/* Make sure that only t uses its memory: copy it if it is shared or borrowed.
 */
fl_err fl_tensor_unique(fl_tensor *t) FL_MUST_CHECK;

/* Set another shape for the same elements; t keeps its memory. Err: ESHAPE if
 * the number of elements differs. */
fl_err fl_tensor_reshape(fl_tensor *t, const fl_shape *shape) FL_MUST_CHECK;

int64_t fl_tensor_numel(const fl_tensor *t); /* 0 if the tensor has no memory */
size_t fl_tensor_bytes(const fl_tensor *t);

/* Converts as C does. Where C leaves the result undefined it is the nearest
 * int64, and 0 for NaN. */
int64_t fl_whole(double v);
float fl_f16_to_f32(uint16_t h);
uint16_t fl_f32_to_f16(float f);

/* --- level of detail (lod.c) --- */

void fl_lod_fini(fl_lod *l);

fl_err fl_lod_ref(fl_lod *dst, const fl_lod *src) FL_MUST_CHECK;

bool fl_lod_equal(const fl_lod *a, const fl_lod *b);

/* Copy sequences *from .. *to of the outermost level; *from and *to become the
 * range of their rows. src has been checked. The memory of dst is reused. */
fl_err fl_lod_slice(fl_lod *dst, const fl_lod *src, int64_t *from,
                    int64_t *to) FL_MUST_CHECK;

/* Concatenate the sequences of n > 0 tensors. dst is not one of their LoDs.
 * Err: EINVAL if their numbers of levels differ. */
fl_err fl_lod_join(fl_lod *dst, int n,
                   const fl_tensor *const *src) FL_MUST_CHECK;

#endif
