/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_concat   sequence i of Out = sequences i of all X, concatenated
 * gradient          each X@GRAD has its rows of Out@GRAD */
#include "kernel/move.h"
#include "kernel/sequence.h"

#include <string.h>

/* Copy rows between the sequences of X and those of the concatenated tensor. */
static void copy_sequences(fl_call *c, const char *slot, bool back,
                           char *joined)
{
    int64_t n = fl_sequences_of(&fl_in(c, "X")->lod).n;
    int parts = fl_in_count(c, "X");
    for (int64_t s = 0; s < n; s++)
        for (int i = 0; i < parts; i++) {
            const fl_tensor *x = fl_in_at(c, "X", i);
            fl_tensor *dx = back ? fl_out_at(c, slot, i) : NULL;
            const int64_t *off = fl_sequences_of(&x->lod).off;
            size_t row = (size_t)fl_sequence_width(x) * fl_dtype_size(x->dtype);
            size_t from = (size_t)off[s] * row;
            size_t bytes = (size_t)(off[s + 1] - off[s]) * row;
            if (bytes && !back)
                memcpy(joined, (char *)x->data + from, bytes);
            else if (bytes && dx)
                memcpy((char *)dx->data + from, joined, bytes);
            joined += bytes;
        }
}

static fl_err sequence_concat(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out");
    int64_t n = fl_sequences_of(&fl_in(c, "X")->lod).n;
    int64_t *off = fl_scratch(c, n + 1, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    memset(off, 0, (size_t)(n + 1) * sizeof *off);
    for (int i = 0; i < fl_in_count(c, "X"); i++)
        for (int64_t s = 0; s <= n; s++)
            off[s] += fl_sequences_of(&fl_in_at(c, "X", i)->lod).off[s];
    copy_sequences(c, NULL, false, y->data);
    fl_lod lod = fl_sequence_lod(n + 1, off);
    return fl_lod_copy(&y->lod, &lod);
}

static fl_err sequence_concat_grad(fl_call *c)
{
    copy_sequences(c, "X@GRAD", true, fl_in(c, "Out@GRAD")->data);
    return FL_OK;
}

/* Check that X i has the same shape as the first, except for the number of
 * rows. */
static fl_err check_part(const fl_infer *x, int i)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "X", i);
    fl_shape want = a->shape;
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    FL_TRY(fl_sequence_check(x, "X", i));
    want.dim[0] = b->shape.dim[0];
    if (b->dtype != a->dtype || !fl_shape_equal(&b->shape, &want))
        return fl_fail(FL_ESHAPE, "%s: X 0 is %s%s, X %d is %s%s",
                       fl_meta_type(x), fl_dtype_name(a->dtype),
                       fl_shape_text(&a->shape, s), i, fl_dtype_name(b->dtype),
                       fl_shape_text(&b->shape, t));
    if (!fl_meta_running(x))
        return FL_OK;
    int64_t n = fl_sequences_of(a->lod).n, m = fl_sequences_of(b->lod).n;
    if (m != n)
        return fl_fail(FL_ESHAPE, "%s: X 0 has %lld sequences, X %d has %lld",
                       fl_meta_type(x), (long long)n, i, (long long)m);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    fl_meta *out = fl_meta_out(x, "Out", 0);
    FL_TRY(fl_move_list(x, "X"));
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    const fl_meta *first = fl_meta_in(x, "X", 0);
    int64_t rows = 0;
    for (int i = 0; i < fl_meta_count_in(x, "X"); i++) {
        FL_TRY(check_part(x, i));
        rows = fl_dim_add(rows, fl_meta_in(x, "X", i)->shape.dim[0]);
    }
    fl_shape s = first->shape;
    s.dim[0] = rows;
    fl_meta_set(x, "Out", 0, first->dtype, &s);
    if (out)
        out->lod_level = 1; /* the kernel sets the LoD */
    return FL_OK;
}

const fl_op_def fl_op_sequence_concat = {
    .type = "sequence_concat",
    .in = {{"X", FL_MANY}},
    .out = {{"Out"}},
    .infer = infer,
    .run = sequence_concat,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = sequence_concat_grad,
    .grad_infer = fl_infer_grad_of_rule,
};
