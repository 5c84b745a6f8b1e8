/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - dtype, shape, counted memory, and the tensor over them.
 *
 * fl_tensor, fl_shape and fl_lod are public values (fluid.h). Copying a tensor
 * with fl_tensor_ref shares its memory; writing through a shared one needs
 * fl_tensor_unique first. A tensor without buf borrows the caller's memory for
 * as long as the caller said, so nothing may keep a share of it: fl_tensor_ref
 * of a borrowed tensor copies. */
#ifndef FL_TENSOR_TENSOR_H
#define FL_TENSOR_TENSOR_H

#include "base/err.h"

/* --- dtype --- */

bool fl_dtype_valid(int number);
const char *fl_dtype_word(fl_dtype t); /* "float32", as Python users say */

/* --- shape --- */

fl_shape fl_shape_of(int rank, const int64_t *dim);
bool fl_shape_equal(const fl_shape *a, const fl_shape *b);
/* May they be equal, once every -1 is known? */
bool fl_shape_alike(const fl_shape *a, const fl_shape *b);
int64_t fl_shape_numel(const fl_shape *s); /* -1 if a dim is unknown */
int64_t fl_shape_span(const fl_shape *s, int from, int to); /* prod [from,to) */

/* Sizes, and what is made of them: -1 (not known) where one is, INT64_MAX where
 * the result does not fit, which no tensor can have. */
int64_t fl_dim_mul(int64_t a, int64_t b);
int64_t fl_dim_add(int64_t a, int64_t b);

/* "[-1,8]" into text, which it returns. */
enum {
    FL_SHAPE_TEXT = 24 * FL_MAX_RANK
};
const char *fl_shape_text(const fl_shape *s, char text[FL_SHAPE_TEXT]);

/* Elements as a byte size; EINVAL if negative, ENOMEM if it overflows. Nothing
 * can be read from more than 2^33 empty rows, but a loop over them would not
 * end: ENOMEM, too. */
fl_err fl_shape_bytes(const fl_shape *s, fl_dtype t,
                      size_t *bytes) FL_MUST_CHECK;

/* --- counted memory --- */

fl_err fl_buf_new(size_t size, fl_buf **buf) FL_MUST_CHECK; /* one reference */
/* Memory of someone else, which stays until drop(owner); one reference. */
fl_err fl_buf_lend(void *at, size_t size, void (*drop)(void *owner),
                   void *owner, fl_buf **buf) FL_MUST_CHECK;
fl_buf *fl_buf_ref(fl_buf *b);
void fl_buf_unref(fl_buf *b); /* NULL is fine */
void *fl_buf_data(fl_buf *b);
size_t fl_buf_size(const fl_buf *b);
bool fl_buf_shared(const fl_buf *b); /* more than one reference */

/* --- tensor --- */

/* Make the memory t's alone, copying if it is shared or borrowed. */
fl_err fl_tensor_unique(fl_tensor *t) FL_MUST_CHECK;

/* Another shape over the same elements (t keeps its memory). ESHAPE when the
 * counts differ. */
fl_err fl_tensor_reshape(fl_tensor *t, const fl_shape *shape) FL_MUST_CHECK;

int64_t fl_tensor_numel(const fl_tensor *t); /* 0 without memory */
size_t fl_tensor_bytes(const fl_tensor *t);

/* As C converts, and where C says nothing the nearest int64; NaN is 0. */
int64_t fl_whole(double v);
float fl_f16_to_f32(uint16_t h);
uint16_t fl_f32_to_f16(float f);

/* --- level of detail (lod.c) --- */

void fl_lod_fini(fl_lod *l);

fl_err fl_lod_ref(fl_lod *dst, const fl_lod *src) FL_MUST_CHECK;

bool fl_lod_equal(const fl_lod *a, const fl_lod *b);

/* Sequences from up to `to` of the outermost level; *from and *to become the
 * rows they have. src was checked; memory of dst is used again. */
fl_err fl_lod_slice(fl_lod *dst, const fl_lod *src, int64_t *from,
                    int64_t *to) FL_MUST_CHECK;

/* The sequences of n > 0 tensors, of one after those of the other. dst is of
 * none of them. EINVAL: their levels differ. */
fl_err fl_lod_join(fl_lod *dst, int n,
                   const fl_tensor *const *src) FL_MUST_CHECK;

#endif
