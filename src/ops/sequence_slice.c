/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_slice  sequence s of Out = Length[s] rows of sequence s of X, from
 *                 its row Offset[s] on
 * gradient        X@GRAD = Out@GRAD in its place, 0 elsewhere */
#include "kernel/move.h"
#include "kernel/sequence.h"

#include <string.h>

/* The offsets of Out's sequences, in scratch memory. Checks that each slice is
 * inside its sequence. */
static fl_err offsets(fl_call *c, int64_t **out)
{
    const fl_tensor *from = fl_in(c, "Offset"), *count = fl_in(c, "Length");
    const fl_sequences of = fl_sequences_of(&fl_in(c, "X")->lod);
    int64_t *off = fl_scratch(c, of.n + 1, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    off[0] = 0;
    for (int64_t s = 0; s < of.n; s++) {
        const int64_t have = of.off[s + 1] - of.off[s];
        const int64_t at = fl_move_index_at(from, s);
        const int64_t n = fl_move_index_at(count, s);
        if (at < 0 || n < 0 || at > have || n > have - at)
            return fl_fail(FL_EINVAL,
                           "%s: %lld rows from %lld on, but sequence %lld has "
                           "%lld",
                           c->def->type, (long long)n, (long long)at,
                           (long long)s, (long long)have);
        off[s + 1] = off[s] + n;
    }
    *out = off;
    return FL_OK;
}

/* Copy rows between `whole` and the slices. */
static void move_parts(const fl_call *c, const int64_t *off, bool back,
                       char *whole, char *cut)
{
    const fl_tensor *x = fl_in(c, "X"), *from = fl_in(c, "Offset");
    const fl_sequences of = fl_sequences_of(&x->lod);
    const size_t row = (size_t)fl_sequence_width(x) * fl_dtype_size(x->dtype);
    for (int64_t s = 0; s < of.n; s++) {
        const int64_t at = of.off[s] + fl_move_index_at(from, s);
        char *a = whole + (size_t)at * row, *b = cut + (size_t)off[s] * row;
        const size_t bytes = (size_t)(off[s + 1] - off[s]) * row;
        if (bytes)
            memcpy(back ? a : b, back ? b : a, bytes);
    }
}

static fl_err sequence_slice(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_value *out = fl_out_value(c, "Out", 0);
    const int64_t n = fl_sequences_of(&x->lod).n;
    fl_shape s = x->shape;
    int64_t *off;
    FL_TRY(offsets(c, &off));
    s.dim[0] = off[n];
    out->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&out->tensor, x->dtype, &s));
    move_parts(c, off, false, x->data, out->tensor.data);
    const fl_lod lod = fl_sequence_lod(n + 1, off);
    return fl_lod_copy(&out->tensor.lod, &lod);
}

static fl_err sequence_slice_grad(fl_call *c)
{
    const fl_tensor *dy = fl_in(c, "Out@GRAD");
    fl_tensor *dx = fl_out(c, "X@GRAD");
    const int64_t n = fl_sequences_of(&fl_in(c, "X")->lod).n;
    int64_t *off;
    FL_TRY(offsets(c, &off));
    if (dy->shape.dim[0] != off[n])
        return fl_fail(FL_ESHAPE,
                       "sequence_slice_grad: Out@GRAD has %lld rows, Length "
                       "adds up to %lld",
                       (long long)dy->shape.dim[0], (long long)off[n]);
    memset(dx->data, 0, fl_tensor_bytes(dx));
    move_parts(c, off, true, dx->data, dy->data);
    return FL_OK;
}

static fl_err check_column(const fl_infer *x, const char *slot, int64_t n)
{
    const fl_meta *m = fl_meta_in(x, slot, 0);
    const fl_shape want = {2, {n, 1}};
    FL_TRY(fl_meta_check(x, slot, FL_INDEXES));
    return fl_meta_expect(x, slot, m->dtype, &want);
}

static fl_err check_inputs(const fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_sequence_check(x, "X", 0));
    const int64_t n = fl_meta_running(x) ? fl_sequences_of(in->lod).n : -1;
    FL_TRY(check_column(x, "Offset", n));
    return check_column(x, "Length", n);
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    fl_shape s = in->shape;
    FL_TRY(check_inputs(x));
    if (fl_meta_running(x))
        return FL_OK; /* the kernel resizes it */
    s.dim[0] = -1;
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (out)
        out->lod_level = 1;
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *dx = fl_meta_out(x, "X@GRAD", 0);
    fl_shape s = in->shape;
    FL_TRY(check_inputs(x));
    s.dim[0] = -1;
    FL_TRY(fl_meta_expect(x, "Out@GRAD", in->dtype, &s));
    if (dx)
        *dx = *in;
    return FL_OK;
}

const fl_op_def fl_op_sequence_slice = {
    .type = "sequence_slice",
    .in = {{"X"}, {"Offset", FL_NOGRAD}, {"Length", FL_NOGRAD}},
    .out = {{"Out"}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer,
    .run = sequence_slice,
    .grad_in = {"X", "Offset", "Length", "Out@GRAD"},
    .grad_run = sequence_slice_grad,
    .grad_infer = infer_grad,
};
