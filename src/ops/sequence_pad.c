/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_pad    sequences of X as rows of Out [n, len, ..], with PadValue
 *                 (one number, or a row) after the shorter ones; len is
 *                 padded_length, or that of the longest. Length is i64 [n,1]
 * gradient        X@GRAD = the rows of Out@GRAD that came from X
 *
 * sequence_unpad  the inverse: the first Length[i] rows of X[i], as sequences
 * gradient        X@GRAD = Out@GRAD in its place, 0 elsewhere */
#include "kernel/move.h"
#include "kernel/sequence.h"

#include <string.h>

/* Copy the rows of one sequence between `flat` and `padded`. */
static void move_rows(bool pad, char *flat, char *padded, size_t bytes)
{
    if (bytes)
        memcpy(pad ? padded : flat, pad ? flat : padded, bytes);
}

static size_t row_bytes(const fl_tensor *padded)
{
    return (size_t)fl_shape_span(&padded->shape, 2, padded->shape.rank) *
           fl_dtype_size(padded->dtype);
}

/* Copy all sequences; off[i] is the offset of sequence i in `flat`. */
static void move_all(bool pad, const int64_t *off, const fl_tensor *flat,
                     const fl_tensor *padded)
{
    const size_t row = row_bytes(padded);
    const size_t step = (size_t)padded->shape.dim[1] * row;
    for (int64_t s = 0; s < padded->shape.dim[0]; s++)
        move_rows(pad, (char *)flat->data + (size_t)off[s] * row,
                  (char *)padded->data + (size_t)s * step,
                  (size_t)(off[s + 1] - off[s]) * row);
}

/* --- pad --- */

static fl_err sequence_pad(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *value = fl_in(c, "PadValue");
    fl_tensor *y = fl_out(c, "Out");
    int64_t *length = fl_out(c, "Length")->data;
    const fl_sequences of = fl_sequences_of(&x->lod);
    const size_t row = row_bytes(y), from = fl_tensor_bytes(value);
    char *to = y->data;
    for (size_t at = 0, all = fl_tensor_bytes(y); row && at < all; at += from)
        memcpy(to + at, value->data, from);
    for (int64_t s = 0; s < of.n; s++)
        length[s] = of.off[s + 1] - of.off[s];
    move_all(true, of.off, x, y);
    return FL_OK;
}

static fl_err sequence_pad_grad(fl_call *c)
{
    const fl_sequences of = fl_sequences_of(&fl_in(c, "X")->lod);
    move_all(false, of.off, fl_out(c, "X@GRAD"), fl_in(c, "Out@GRAD"));
    return FL_OK;
}

/* The padded length at run time. */
static fl_err padded_length(const fl_infer *x, const fl_lod *lod, int64_t *out)
{
    const fl_sequences of = fl_sequences_of(lod);
    int64_t longest = 0;
    for (int64_t s = 0; s < of.n; s++)
        if (of.off[s + 1] - of.off[s] > longest)
            longest = of.off[s + 1] - of.off[s];
    if (*out < 0)
        *out = longest;
    if (*out < longest)
        return fl_fail(FL_ESHAPE,
                       "%s: padded_length is %lld, but a sequence has %lld",
                       fl_meta_type(x), (long long)*out, (long long)longest);
    return FL_OK;
}

static fl_err check_value(const fl_infer *x, const fl_shape *in)
{
    const fl_meta *value = fl_meta_in(x, "PadValue", 0);
    const int64_t n = fl_shape_numel(&value->shape);
    if (value->dtype != fl_meta_in(x, "X", 0)->dtype ||
        (n != 1 && n != fl_shape_span(in, 1, in->rank)))
        return fl_fail(FL_ESHAPE,
                       "%s: PadValue is %s of %lld elements, expected one, or "
                       "as many as a row of X has",
                       fl_meta_type(x), fl_dtype_name(value->dtype),
                       (long long)n);
    return FL_OK;
}

static fl_err infer_pad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "PadValue", FL_ANY));
    FL_TRY(fl_sequence_check(x, "X", 0));
    FL_TRY(check_value(x, &in->shape));
    if (in->shape.rank >= FL_MAX_RANK)
        return fl_fail(FL_ESHAPE, "%s: X has %d dimensions, at most %d",
                       fl_meta_type(x), in->shape.rank, FL_MAX_RANK - 1);
    fl_shape s = {.rank = in->shape.rank + 1}, lengths = {2, {-1, 1}};
    s.dim[0] = -1;
    const int64_t length = fl_meta_attr(x, "padded_length")->i;
    s.dim[1] = length < 0 ? -1 : length;
    if (fl_meta_running(x)) {
        s.dim[0] = lengths.dim[0] = fl_sequences_of(in->lod).n;
        FL_TRY(padded_length(x, in->lod, &s.dim[1]));
    }
    for (int i = 1; i < in->shape.rank; i++)
        s.dim[i + 1] = in->shape.dim[i];
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    fl_meta_set(x, "Length", 0, FL_I64, &lengths);
    return FL_OK;
}

/* --- unpad --- */

/* The offsets of the sequences, in scratch memory. */
static fl_err offsets(fl_call *c, const fl_tensor *x, const int64_t **out)
{
    const int64_t *length = fl_in(c, "Length")->data, n = x->shape.dim[0];
    int64_t *off = fl_scratch(c, n + 1, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    off[0] = 0;
    for (int64_t s = 0; s < n; s++) {
        if (length[s] < 0 || length[s] > x->shape.dim[1])
            return fl_fail(FL_EINVAL, "%s: Length %lld is %lld, X has %lld",
                           c->def->type, (long long)s, (long long)length[s],
                           (long long)x->shape.dim[1]);
        off[s + 1] = off[s] + length[s];
    }
    *out = off;
    return FL_OK;
}

static fl_shape flat_shape(const fl_shape *x, int64_t rows)
{
    fl_shape s = {1, {rows}};
    for (int i = 2; i < x->rank; i++)
        s.dim[s.rank++] = x->dim[i];
    if (s.rank == 1) /* a vector becomes rows of one element */
        s.dim[s.rank++] = 1;
    return s;
}

static fl_err sequence_unpad(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_value *out = fl_out_value(c, "Out", 0);
    const int64_t *off;
    FL_TRY(offsets(c, x, &off));
    const fl_shape s = flat_shape(&x->shape, off[x->shape.dim[0]]);
    out->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&out->tensor, x->dtype, &s));
    move_all(false, off, &out->tensor, x);
    const fl_lod lod = fl_sequence_lod(x->shape.dim[0] + 1, off);
    return fl_lod_copy(&out->tensor.lod, &lod);
}

static fl_err sequence_unpad_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    const int64_t *off;
    FL_TRY(offsets(c, fl_in(c, "X"), &off));
    const int64_t rows = off[dx->shape.dim[0]];
    if (dy->shape.dim[0] != rows)
        return fl_fail(FL_ESHAPE,
                       "sequence_unpad_grad: Out@GRAD has %lld rows, Length "
                       "adds up to %lld",
                       (long long)dy->shape.dim[0], (long long)rows);
    memset(dx->data, 0, fl_tensor_bytes(dx));
    move_all(true, off, dy, dx);
    return FL_OK;
}

static fl_err check_unpad(const fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const fl_shape column = {2, {in->shape.rank ? in->shape.dim[0] : 0, 1}};
    const fl_shape flat = {1, {column.dim[0]}};
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    if (in->shape.rank < 2)
        return fl_fail(FL_ESHAPE, "%s: X has %d dims, expected [n, len, ..]",
                       fl_meta_type(x), in->shape.rank);
    return fl_meta_expect(
        x, "Length", FL_I64,
        fl_meta_in(x, "Length", 0)->shape.rank == 1 ? &flat : &column);
}

static fl_err infer_unpad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    FL_TRY(check_unpad(x));
    if (fl_meta_running(x))
        return FL_OK; /* the kernel resizes it */
    const fl_shape s = flat_shape(&in->shape, -1);
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (out)
        out->lod_level = 1;
    return FL_OK;
}

static fl_err infer_unpad_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    FL_TRY(check_unpad(x));
    const fl_shape s = flat_shape(&in->shape, -1);
    FL_TRY(fl_meta_expect(x, "Out@GRAD", in->dtype, &s));
    fl_meta_set(x, "X@GRAD", 0, in->dtype, &in->shape);
    return FL_OK;
}

const fl_op_def fl_op_sequence_pad = {
    .type = "sequence_pad",
    .in = {{"X"}, {"PadValue", FL_NOGRAD}},
    .out = {{"Out"}, {"Length"}},
    .attr = {{"padded_length", FL_ATTR_INT, .i = -1}},
    .infer = infer_pad,
    .run = sequence_pad,
    .grad_in = {"X", "PadValue", "Out@GRAD"},
    .grad_run = sequence_pad_grad,
    .grad_infer = fl_infer_grad_of_rule,
};

const fl_op_def fl_op_sequence_unpad = {
    .type = "sequence_unpad",
    .in = {{"X"}, {"Length", FL_NOGRAD}},
    .out = {{"Out"}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer_unpad,
    .run = sequence_unpad,
    .grad_in = {"X", "Length", "Out@GRAD"},
    .grad_run = sequence_unpad_grad,
    .grad_infer = infer_unpad_grad,
};
