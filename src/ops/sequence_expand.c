/* SPDX-License-Identifier: Apache-2.0 */
/* sequence_expand   sequence i of X (or row i, if X has no LoD), repeated n
 *                   times, where n is the length of sequence i of Y at level
 *                   ref_level of its LoD (-1: the last). Each copy is a
 *                   sequence of Out.
 * gradient          X@GRAD = sum of its copies' Out@GRAD
 *
 * sequence_expand_as: sequence i of Out is row i of X, repeated as often as
 * sequence i of Y has rows; the gradient is the same. */
#define FL_SELF "ops/sequence_expand.c"
#include "op/real.h"

#ifndef FL_OPS_SEQUENCE_EXPAND_C
#define FL_OPS_SEQUENCE_EXPAND_C

#include "kernel/sequence.h"

#include <string.h>

/* What is copied, and how often. */
typedef struct copies {
    int64_t n;
    const int64_t *of; /* offsets of X's sequences; NULL: single rows */
    const int64_t *by; /* offsets of Y's */
} copies;

static copies copies_of(const fl_lod *x, const fl_lod *y, int64_t ref_level)
{
    int level = ref_level < 0 ? y->levels - 1 : (int)ref_level;
    return (copies){y->n[level] - 1, x->levels ? x->off[0] : NULL,
                    y->off[level]};
}

static copies copies_in(const fl_call *c)
{
    static const fl_lod none = {0};
    const fl_lod *x = &fl_in(c, "X")->lod, *y = &fl_in(c, "Y")->lod;
    if (fl_op_attr(c->def, "ref_level") < 0)
        return copies_of(&none, y, -1);
    return copies_of(x, y, fl_attr_i64(c, "ref_level"));
}

static int64_t first_row(const copies *k, int64_t i)
{
    return k->of ? k->of[i] : i;
}

static int64_t length(const copies *k, int64_t i)
{
    return first_row(k, i + 1) - first_row(k, i);
}

static int64_t times(const copies *k, int64_t i)
{
    return k->by[i + 1] - k->by[i];
}

#endif
#ifdef REAL

static fl_err FN(sequence_expand_grad)(fl_call *c)
{
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD");
    copies k = copies_in(c);
    int64_t width = fl_sequence_width(dx);
    memset(dx->data, 0, fl_tensor_bytes(dx));
    for (int64_t i = 0; i < k.n; i++) {
        REAL *to = (REAL *)dx->data + first_row(&k, i) * width;
        int64_t size = length(&k, i) * width;
        for (int64_t j = 0; j < times(&k, i); j++, dy += size)
            FN(fl_add)(size, dy, to);
    }
    return FL_OK;
}

#else

static fl_err sequence_expand_grad(fl_call *c)
{
    return fl_in(c, "Out@GRAD")->dtype == FL_F64 ? sequence_expand_grad_f64(c)
                                                 : sequence_expand_grad_f32(c);
}

/* Each copy of a sequence is a sequence of Out. */
static fl_err set_lod(fl_call *c, const copies *k, fl_tensor *y)
{
    int64_t n = k->by[k->n], at = 0;
    int64_t *off = fl_scratch(c, n + 1, sizeof *off);
    if (!off)
        return FL_ENOMEM;
    off[0] = 0;
    for (int64_t i = 0; i < k->n; i++)
        for (int64_t j = 0; j < times(k, i); j++, at++)
            off[at + 1] = off[at] + length(k, i);
    fl_lod lod = fl_sequence_lod(n + 1, off);
    return fl_lod_copy(&y->lod, &lod);
}

static fl_err sequence_expand(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *y = fl_out(c, "Out");
    copies k = copies_in(c);
    size_t row = (size_t)fl_sequence_width(x) * fl_dtype_size(x->dtype);
    char *to = y->data;
    for (int64_t i = 0; i < k.n; i++) {
        const char *from = (char *)x->data + (size_t)first_row(&k, i) * row;
        size_t bytes = (size_t)length(&k, i) * row;
        for (int64_t j = 0; bytes && j < times(&k, i); j++, to += bytes)
            memcpy(to, from, bytes);
    }
    return k.of ? set_lod(c, &k, y) : FL_OK;
}

static fl_err check_levels(const fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0), *y = fl_meta_in(x, "Y", 0);
    int64_t level = fl_meta_attr(x, "ref_level")->i;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "Y", FL_ANY));
    if (in->shape.rank < 1)
        return fl_fail(FL_ESHAPE, "%s: X [] has no rows", fl_meta_type(x));
    if (in->lod_level > 1)
        return fl_fail(FL_ESHAPE, "%s: X has %d levels of LoD, expected 0 or 1",
                       fl_meta_type(x), in->lod_level);
    if (!fl_meta_running(x))
        return FL_OK;
    if (level < -1 || level >= y->lod_level || !y->lod_level)
        return fl_fail(FL_ESHAPE,
                       "%s: ref_level is %lld, Y has %d levels of LoD",
                       fl_meta_type(x), (long long)level, y->lod_level);
    if (in->lod_level)
        FL_TRY(fl_lod_check(in->lod, in->shape.dim[0]));
    return fl_lod_check(y->lod, y->shape.rank ? y->shape.dim[0] : 1);
}

/* The number of rows of Out at run time. */
static fl_err count_rows(const fl_infer *x, int64_t *rows)
{
    const fl_meta *in = fl_meta_in(x, "X", 0), *y = fl_meta_in(x, "Y", 0);
    copies k = copies_of(in->lod, y->lod, fl_meta_attr(x, "ref_level")->i);
    int64_t have = k.of ? in->lod->n[0] - 1 : in->shape.dim[0];
    if (have != k.n)
        return fl_fail(FL_ESHAPE, "%s: X has %lld %s, Y %lld sequences",
                       fl_meta_type(x), (long long)have,
                       k.of ? "sequences" : "rows", (long long)k.n);
    *rows = 0;
    for (int64_t i = 0; i < k.n; i++)
        *rows = fl_dim_add(*rows, fl_dim_mul(times(&k, i), length(&k, i)));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_meta *out = fl_meta_out(x, "Out", 0);
    fl_shape s = in->shape;
    FL_TRY(check_levels(x));
    s.dim[0] = -1;
    if (fl_meta_running(x))
        FL_TRY(count_rows(x, &s.dim[0]));
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    if (out)
        out->lod_level = in->lod_level; /* the kernel sets the LoD */
    return FL_OK;
}

static fl_err infer_as(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0), *y = fl_meta_in(x, "Y", 0);
    fl_shape s = in->shape;
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    FL_TRY(fl_meta_check(x, "Y", FL_ANY));
    FL_TRY(fl_sequence_check(x, "Y", 0));
    if (s.rank < 1)
        return fl_fail(FL_ESHAPE, "%s: X [] has no rows", fl_meta_type(x));
    if (fl_meta_running(x) && fl_sequences_of(y->lod).n != s.dim[0])
        return fl_fail(FL_ESHAPE, "%s: X has %lld rows, Y %lld sequences",
                       fl_meta_type(x), (long long)s.dim[0],
                       (long long)fl_sequences_of(y->lod).n);
    s.dim[0] = y->shape.dim[0];
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    fl_meta_share_lod(x, "Y", "Out");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    return fl_infer_grad_of_rule(x);
}

const fl_op_def fl_op_sequence_expand = {
    .type = "sequence_expand",
    .in = {{"X"}, {"Y", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"ref_level", FL_ATTR_INT, .i = -1}},
    .infer = infer,
    .run = sequence_expand,
    .grad_in = {"X", "Y", "Out@GRAD"},
    .grad_run = sequence_expand_grad,
    .grad_infer = infer_grad,
};

const fl_op_def fl_op_sequence_expand_as = {
    .type = "sequence_expand_as",
    .in = {{"X"}, {"Y", FL_NOGRAD}},
    .out = {{"Out"}},
    .infer = infer_as,
    .run = sequence_expand,
    .grad_in = {"X", "Y", "Out@GRAD"},
    .grad_run = sequence_expand_grad,
    .grad_infer = infer_grad,
};

#endif
