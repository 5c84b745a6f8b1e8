/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, f32 or f64, in `shape`.
 *
 *     uniform_random             from `min` up to, but without, `max`
 *     gaussian_random            normal: `mean`, `std`
 *     truncated_gaussian_random  the same, within 2 std of the mean
 *     .._batch_size_like         one dimension is that of Input
 *     sampling_id                a class for each row of X, drawn with the
 *                                probabilities in X
 *
 * Each call starts a generator from `seed`, so that a seed gives the same
 * numbers each time. For seed 0 the executor gives one. The first `offset`
 * numbers are skipped, so that a slice of a parameter gets the numbers that it
 * has in the whole parameter. */
#include "base/random.h"
#include "kernel/move.h"

#include <string.h>

/* The largest offset: the numbers before the last slice of a parameter of 32
 * GB. Normal numbers must be drawn one by one, which then takes half a minute.
 */
static const int64_t most_offset = (int64_t)1 << 33;

static fl_err infer_random(fl_infer *x)
{
    const bool like = fl_op_slot_in(x->def, "Input") >= 0;
    fl_shape s;
    fl_dtype dtype;
    FL_TRY(like ? fl_move_batch_shape(x, &s)
                : fl_move_shape(x, "shape", 0, &s));
    FL_TRY(fl_move_dtype(x, "dtype", &dtype));
    const int64_t offset = fl_meta_attr(x, "offset")->i;
    if (offset < 0 || offset > most_offset)
        return fl_fail(FL_EINVAL, "%s: offset is %lld, expected 0 to %lld",
                       fl_meta_type(x), (long long)offset,
                       (long long)most_offset);
    if (dtype != FL_F32 && dtype != FL_F64)
        return fl_fail(FL_EINVAL, "%s: dtype is %s, expected f32 or f64",
                       fl_meta_type(x), fl_dtype_name(dtype));
    fl_meta_set(x, "Out", 0, dtype, &s);
    return FL_OK;
}

static fl_err infer_uniform(fl_infer *x)
{
    float min = fl_meta_attr(x, "min")->f, max = fl_meta_attr(x, "max")->f;
    if (!(min <= max))
        return fl_fail(FL_EINVAL,
                       "%s: min is %g, max is %g, expected min <= max",
                       fl_meta_type(x), (double)min, (double)max);
    return infer_random(x);
}

static fl_err infer_sampling(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (in->shape.rank != 2 || !in->shape.dim[1])
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected [N, classes]",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    const fl_shape s = {1, {in->shape.dim[0]}};
    fl_meta_set(x, "Out", 0, FL_I64, &s);
    return FL_OK;
}

static fl_rng start_rng(fl_call *c)
{
    int64_t seed = fl_attr_i64(c, "seed");
    return fl_rng_of(seed ? (uint32_t)seed : c->hooks->entropy(c));
}

/* A generator after `offset` numbers. A number of f32 takes one draw, one of
 * f64 two. */
static fl_rng start_later(fl_call *c, const fl_tensor *y)
{
    fl_rng r = start_rng(c);
    uint64_t offset = (uint64_t)fl_attr_i64(c, "offset");
    fl_rng_skip(&r, y->dtype == FL_F64 ? 2 * offset : offset);
    return r;
}

static fl_err uniform(fl_call *c)
{
    fl_tensor *y = fl_out_filled(c, "Out");
    fl_rng r = start_later(c, y);
    float min = fl_attr_f32(c, "min"), max = fl_attr_f32(c, "max");
    int64_t n = fl_tensor_numel(y);
    if (y->dtype == FL_F64)
        fl_rng_uniform_f64(&r, (double)min, (double)max, n, y->data);
    else
        fl_rng_uniform_f32(&r, min, max, n, y->data);
    return FL_OK;
}

static fl_err truncated(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out");
    fl_rng r = start_later(c, y);
    float mean = fl_attr_f32(c, "mean"), std = fl_attr_f32(c, "std");
    int64_t n = fl_tensor_numel(y);
    if (y->dtype == FL_F64)
        fl_rng_truncated_f64(&r, (double)mean, (double)std, n, y->data);
    else
        fl_rng_truncated_f32(&r, mean, std, n, y->data);
    return FL_OK;
}

/* Normal numbers are made in pairs, and a pair may take several draws, so that
 * numbers can be skipped only by drawing them. */
static void normal(fl_rng *r, const fl_call *c, fl_dtype dtype, int64_t n,
                   void *out)
{
    float mean = fl_attr_f32(c, "mean"), std = fl_attr_f32(c, "std");
    if (dtype == FL_F64)
        fl_rng_normal_f64(r, (double)mean, (double)std, n, out);
    else
        fl_rng_normal_f32(r, mean, std, n, out);
}

static fl_err gaussian(fl_call *c)
{
    double pair[2]; /* or two floats */
    fl_tensor *y = fl_out_filled(c, "Out");
    fl_rng r = start_rng(c);
    int64_t n = fl_tensor_numel(y), offset = fl_attr_i64(c, "offset");
    char *to = y->data;
    size_t size = fl_dtype_size(y->dtype);
    if (!n)
        return FL_OK;
    if (y->dtype == FL_F64)
        fl_rng_skip_normal_f64(&r, offset / 2);
    else
        fl_rng_skip_normal_f32(&r, offset / 2);
    if (offset % 2) { /* the slice begins with the second number of a pair */
        normal(&r, c, y->dtype, 2, pair);
        memcpy(to, (char *)pair + size, size);
        to += size;
        n--;
    }
    normal(&r, c, y->dtype, n, to);
    return FL_OK;
}

/* The first class at which the sum of probabilities exceeds a random number
 * between min and max. */
static fl_err sampling_id(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const float min = fl_attr_f32(c, "min"), max = fl_attr_f32(c, "max");
    const int64_t n = x->shape.dim[1];
    int64_t *out = fl_out(c, "Out")->data;
    fl_rng r = start_rng(c);
    for (int64_t i = 0; i < x->shape.dim[0]; i++) {
        float u;
        int64_t k = 0;
        fl_rng_uniform_f32(&r, min, max, 1, &u);
        for (double left = (double)u; k < n - 1; k++) {
            left -= x->dtype == FL_F64 ? ((double *)x->data)[i * n + k]
                                       : (double)((float *)x->data)[i * n + k];
            if (left < 0)
                break;
        }
        out[i] = k;
    }
    return FL_OK;
}

#define LIKE                                                                   \
    {"shape", FL_ATTR_INTS, .required = true},                                 \
        {"input_dim_idx", FL_ATTR_INT, .i = 0},                                \
        {"output_dim_idx", FL_ATTR_INT, .i = 0},                               \
        {"seed", FL_ATTR_INT, .i = 0}, {"dtype", FL_ATTR_INT, .i = FL_F32},    \
    {                                                                          \
        "offset", FL_ATTR_LONG, .ours = true                                   \
    }

const fl_op_def fl_op_uniform_random_batch_size_like = {
    .type = "uniform_random_batch_size_like",
    .in = {{"Input", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {LIKE,
             {"min", FL_ATTR_FLOAT, .f = -1},
             {"max", FL_ATTR_FLOAT, .f = 1}},
    .flags = FL_OP_RANDOM,
    .infer = infer_uniform,
    .run = uniform,
};

const fl_op_def fl_op_gaussian_random_batch_size_like = {
    .type = "gaussian_random_batch_size_like",
    .in = {{"Input", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {LIKE,
             {"mean", FL_ATTR_FLOAT, .f = 0},
             {"std", FL_ATTR_FLOAT, .f = 1}},
    .flags = FL_OP_RANDOM,
    .infer = infer_random,
    .run = gaussian,
};

const fl_op_def fl_op_sampling_id = {
    .type = "sampling_id",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"min", FL_ATTR_FLOAT, .f = 0},
             {"max", FL_ATTR_FLOAT, .f = 1},
             {"seed", FL_ATTR_INT, .i = 0}},
    .flags = FL_OP_RANDOM,
    .infer = infer_sampling,
    .run = sampling_id,
};

const fl_op_def fl_op_uniform_random = {
    .type = "uniform_random",
    .out = {{"Out", FL_FILLS}},
    .attr =
        {
            {"shape", FL_ATTR_LONGS, .required = true},
            {"min", FL_ATTR_FLOAT, .f = -1},
            {"max", FL_ATTR_FLOAT, .f = 1},
            {"seed", FL_ATTR_INT, .i = 0},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
            {"offset", FL_ATTR_LONG, .ours = true},
        },
    .flags = FL_OP_RANDOM,
    .infer = infer_uniform,
    .run = uniform,
};

const fl_op_def fl_op_gaussian_random = {
    .type = "gaussian_random",
    .out = {{"Out", FL_FILLS}},
    .attr =
        {
            {"shape", FL_ATTR_LONGS, .required = true},
            {"mean", FL_ATTR_FLOAT, .f = 0},
            {"std", FL_ATTR_FLOAT, .f = 1},
            {"seed", FL_ATTR_INT, .i = 0},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
            {"offset", FL_ATTR_LONG, .ours = true},
        },
    .flags = FL_OP_RANDOM,
    .infer = infer_random,
    .run = gaussian,
};

const fl_op_def fl_op_truncated_gaussian_random = {
    .type = "truncated_gaussian_random",
    .out = {{"Out"}},
    .attr =
        {
            {"shape", FL_ATTR_INTS, .required = true},
            {"mean", FL_ATTR_FLOAT, .f = 0},
            {"std", FL_ATTR_FLOAT, .f = 1},
            {"seed", FL_ATTR_INT, .i = 0},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
            {"offset", FL_ATTR_LONG, .ours = true},
        },
    .flags = FL_OP_RANDOM,
    .infer = infer_random,
    .run = truncated,
};
