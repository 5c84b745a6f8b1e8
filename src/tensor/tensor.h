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

size_t fl_dtype_size(fl_dtype t);      /* bytes of an element; 0: unknown */
const char *fl_dtype_name(fl_dtype t); /* "f32"; "?" if unknown */
bool fl_dtype_find(const char *name, fl_dtype *t); /* "f32" or "float32" */
bool fl_dtype_valid(int number);

/* --- shape --- */

fl_shape fl_shape_of(int rank, const int64_t *dim);
bool fl_shape_equal(const fl_shape *a, const fl_shape *b);
int64_t fl_shape_numel(const fl_shape *s); /* -1 if a dim is unknown */
int64_t fl_shape_span(const fl_shape *s, int from, int to); /* prod [from,to) */

/* "[-1,8]" into text, which it returns. */
enum {
    FL_SHAPE_TEXT = 24 * FL_MAX_RANK
};
const char *fl_shape_text(const fl_shape *s, char text[FL_SHAPE_TEXT]);

/* Elements as a byte size; EINVAL if negative, ENOMEM if it overflows. */
fl_err fl_shape_bytes(const fl_shape *s, fl_dtype t,
                      size_t *bytes) FL_MUST_CHECK;

/* --- counted memory --- */

fl_err fl_buf_new(size_t size, fl_buf **buf) FL_MUST_CHECK; /* one reference */
fl_buf *fl_buf_ref(fl_buf *b);
void fl_buf_unref(fl_buf *b); /* NULL is fine */
void *fl_buf_data(fl_buf *b);
size_t fl_buf_size(const fl_buf *b);
bool fl_buf_shared(const fl_buf *b); /* more than one reference */

/* --- tensor --- */

/* The given dtype and shape, contents undefined. Keeps its memory when that is
 * its own alone and large enough: the steady state allocates nothing. The LoD
 * is dropped. */
fl_err fl_tensor_resize(fl_tensor *t, fl_dtype dtype,
                        const fl_shape *shape) FL_MUST_CHECK;

/* dst shares the memory of src (or copies a borrowed one), LoD too. */
fl_err fl_tensor_ref(fl_tensor *dst, const fl_tensor *src) FL_MUST_CHECK;

/* dst has its own copy, LoD too. */
fl_err fl_tensor_copy(fl_tensor *dst, const fl_tensor *src) FL_MUST_CHECK;

/* Make the memory t's alone, copying if it is shared or borrowed. */
fl_err fl_tensor_unique(fl_tensor *t) FL_MUST_CHECK;

/* Another shape over the same elements (t keeps its memory). ESHAPE when the
 * counts differ. */
fl_err fl_tensor_reshape(fl_tensor *t, const fl_shape *shape) FL_MUST_CHECK;

int64_t fl_tensor_numel(const fl_tensor *t); /* 0 without memory */
size_t fl_tensor_bytes(const fl_tensor *t);

/* Elements of `from` converted to `to`, as C converts. Both have n. Where C
 * says nothing (a float beyond int64) the nearest int64 is taken, NaN is 0. */
fl_err fl_convert(int64_t n, fl_dtype from, const void *src, fl_dtype to,
                  void *dst) FL_MUST_CHECK;
float fl_f16_to_f32(uint16_t h);
uint16_t fl_f32_to_f16(float f);

/* --- level of detail (lod.c) --- */

void fl_lod_fini(fl_lod *l);

/* Copy offsets; keeps memory when its own alone and large enough. */
fl_err fl_lod_copy(fl_lod *dst, const fl_lod *src) FL_MUST_CHECK;
fl_err fl_lod_ref(fl_lod *dst, const fl_lod *src) FL_MUST_CHECK;

/* From sequence lengths (counts), per level. */
fl_err fl_lod_from_lengths(fl_lod *dst, int levels, const int64_t *n,
                           const int64_t *const *length) FL_MUST_CHECK;

/* EINVAL unless offsets start at 0, never fall, each level's last offset is
 * the number of sequences of the next, and the last level's is `rows`
 * (-1: not compared). */
fl_err fl_lod_check(const fl_lod *l, int64_t rows) FL_MUST_CHECK;
bool fl_lod_equal(const fl_lod *a, const fl_lod *b);

#endif
