/* Random numbers, f32 or f64, in `shape`.
 *
 *     uniform_random             from `min` up to, but without, `max`
 *     gaussian_random            normal: `mean`, `std`
 *     truncated_gaussian_random  the same, within 2 std of the mean
 *
 * Each call starts a generator from `seed`, so that a seed gives the same
 * numbers each time. Seed 0 asks whoever runs the program for one. */
#include "base/random.h"
#include "ops/move.h"

static fl_err infer_random(fl_infer *x)
{
    fl_shape s;
    fl_dtype dtype;
    FL_TRY(fl_move_shape(x, "shape", 0, &s));
    FL_TRY(fl_move_dtype(x, "dtype", &dtype));
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
        return fl_fail(FL_EINVAL, "uniform_random: min is %g, max is %g",
                       (double)min, (double)max);
    return infer_random(x);
}

static fl_rng start(fl_call *c)
{
    int64_t seed = fl_attr_i64(c, "seed");
    return fl_rng_of(seed ? (uint32_t)seed : c->hooks->entropy(c));
}

static fl_err uniform(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out");
    fl_rng r = start(c);
    float min = fl_attr_f32(c, "min"), max = fl_attr_f32(c, "max");
    int64_t n = fl_tensor_numel(y);
    if (y->dtype == FL_F64)
        fl_rng_uniform_f64(&r, (double)min, (double)max, n, y->data);
    else
        fl_rng_uniform_f32(&r, min, max, n, y->data);
    return FL_OK;
}

typedef void (*draw_f32)(fl_rng *, float, float, int64_t, float *);
typedef void (*draw_f64)(fl_rng *, double, double, int64_t, double *);

static fl_err normal(fl_call *c, draw_f32 single, draw_f64 wide)
{
    fl_tensor *y = fl_out(c, "Out");
    fl_rng r = start(c);
    float mean = fl_attr_f32(c, "mean"), std = fl_attr_f32(c, "std");
    int64_t n = fl_tensor_numel(y);
    if (y->dtype == FL_F64)
        wide(&r, (double)mean, (double)std, n, y->data);
    else
        single(&r, mean, std, n, y->data);
    return FL_OK;
}

static fl_err gaussian(fl_call *c)
{
    return normal(c, fl_rng_normal_f32, fl_rng_normal_f64);
}

static fl_err truncated(fl_call *c)
{
    return normal(c, fl_rng_truncated_f32, fl_rng_truncated_f64);
}

const fl_op_def fl_op_uniform_random = {
    .type = "uniform_random",
    .out = {{"Out"}},
    .attr =
        {
            {"shape", FL_ATTR_LONGS, .required = true},
            {"min", FL_ATTR_FLOAT, .f = -1},
            {"max", FL_ATTR_FLOAT, .f = 1},
            {"seed", FL_ATTR_INT, .i = 0},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
        },
    .flags = FL_OP_RANDOM,
    .infer = infer_uniform,
    .run = uniform,
};

const fl_op_def fl_op_gaussian_random = {
    .type = "gaussian_random",
    .out = {{"Out"}},
    .attr =
        {
            {"shape", FL_ATTR_LONGS, .required = true},
            {"mean", FL_ATTR_FLOAT, .f = 0},
            {"std", FL_ATTR_FLOAT, .f = 1},
            {"seed", FL_ATTR_INT, .i = 0},
            {"dtype", FL_ATTR_INT, .i = FL_F32},
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
        },
    .flags = FL_OP_RANDOM,
    .infer = infer_random,
    .run = truncated,
};
