/* SPDX-License-Identifier: Apache-2.0 */
/* dropout   training: an element stays with probability 1 - p
 *               Mask = u >= p, one u in [0, 1) for each element
 *               Out  = X * Mask, with upscale_in_train / (1 - p)
 *           is_test: Out = X * (1 - p), with upscale_in_train X; no Mask
 * gradient  X@GRAD = Out@GRAD * Mask, with upscale_in_train / (1 - p)
 *
 * Each run draws from a generator of its own: with fix_seed the same numbers
 * every time, as in the original. */
#define FL_SELF "ops/dropout.c"
#include "op/real.h"

#ifndef FL_OPS_DROPOUT_C
#define FL_OPS_DROPOUT_C

#include "base/random.h"

#include <string.h>

static bool upscales(const char *implementation)
{
    return !strcmp(implementation, "upscale_in_train");
}

/* The factor of elements that are kept. */
static double factor(const fl_call *c)
{
    double p = fl_attr_f32(c, "dropout_prob");
    bool up = upscales(fl_attr_str(c, "dropout_implementation"));
    if (fl_attr_bool(c, "is_test"))
        return up ? 1 : 1 - p;
    return up && p < 1 ? 1 / (1 - p) : 1;
}

static void draw_mask(fl_call *c, int64_t n, uint8_t *mask)
{
    const float p = fl_attr_f32(c, "dropout_prob");
    uint64_t seed = fl_attr_bool(c, "fix_seed")
                        ? (uint64_t)fl_attr_i64(c, "seed")
                        : c->hooks->entropy(c);
    fl_rng rng = fl_rng_of(seed);
    for (int64_t i = 0; i < n; i++)
        mask[i] = fl_rng_f32(&rng) >= p;
}

#endif
#ifdef REAL

FL_CLONES static void FN(apply)(int64_t n, REAL by, const uint8_t *mask,
                                const REAL *x, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = mask[i] ? x[i] * by : 0;
}

static fl_err FN(dropout)(fl_call *c)
{
    const REAL *x = fl_in(c, "X")->data, by = (REAL)factor(c);
    REAL *y = fl_out(c, "Out")->data;
    int64_t n = fl_numel(c, "X");
    if (!fl_attr_bool(c, "is_test")) {
        uint8_t *mask = fl_out(c, "Mask")->data;
        draw_mask(c, n, mask);
        FN(apply)(n, by, mask, x, y);
        return FL_OK;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * by;
    return FL_OK;
}

static fl_err FN(dropout_grad)(fl_call *c)
{
    const uint8_t *mask = fl_in(c, "Mask")->data;
    const REAL *dy = fl_in(c, "Out@GRAD")->data;
    REAL *dx = fl_out(c, "X@GRAD")->data;
    FN(apply)(fl_numel(c, "Mask"), (REAL)factor(c), mask, dy, dx);
    return FL_OK;
}

#else

FL_REAL_KERNEL(dropout)

/* The first input is the mask, so the dtype comes from another one. */
static fl_err dropout_grad(fl_call *c)
{
    return fl_in(c, "Out@GRAD")->dtype == FL_F64 ? dropout_grad_f64(c)
                                                 : dropout_grad_f32(c);
}

static fl_err check_attrs(const fl_infer *x)
{
    float p = fl_meta_attr(x, "dropout_prob")->f;
    const char *how = fl_meta_attr(x, "dropout_implementation")->s;
    if (!(p >= 0 && p <= 1))
        return fl_fail(FL_EINVAL, "%s: dropout_prob is %g, expected 0 to 1",
                       fl_meta_type(x), p);
    if (!how || (strcmp(how, "downgrade_in_infer") && !upscales(how)))
        return fl_fail(FL_EINVAL,
                       "%s: dropout_implementation is \"%s\", expected "
                       "downgrade_in_infer or upscale_in_train",
                       fl_meta_type(x), how ? how : "");
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0);
    FL_TRY(check_attrs(x));
    FL_TRY(fl_infer_real(x));
    if (!fl_meta_attr(x, "is_test")->b)
        fl_meta_set(x, "Mask", 0, FL_U8, &m->shape);
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "Out@GRAD", 0);
    FL_TRY(check_attrs(x));
    if (fl_meta_attr(x, "is_test")->b)
        return fl_fail(FL_EINVAL, "%s: there is no gradient with is_test",
                       fl_meta_type(x));
    FL_TRY(fl_meta_check(x, "Out@GRAD", FL_REALS));
    FL_TRY(fl_meta_expect(x, "Mask", FL_U8, &m->shape));
    fl_meta_set(x, "X@GRAD", 0, m->dtype, &m->shape);
    fl_meta_share_lod(x, "Out@GRAD", "X@GRAD");
    return FL_OK;
}

const fl_op_def fl_op_dropout = {
    .type = "dropout",
    .in = {{"X"}},
    .out = {{"Out"}, {"Mask", FL_INTERMEDIATE}},
    .attr = {{"dropout_prob", FL_ATTR_FLOAT, .f = 0.5f},
             {"is_test", FL_ATTR_BOOL},
             {"fix_seed", FL_ATTR_BOOL},
             {"seed", FL_ATTR_INT},
             {"dropout_implementation", FL_ATTR_STRING,
              .s = "downgrade_in_infer"}},
    .flags = FL_OP_RANDOM | FL_OP_IN_PLACE | FL_OP_GRAD_IN_PLACE,
    .infer = infer,
    .run = dropout,
    .grad_in = {"Mask", "Out@GRAD"},
    .grad_run = dropout_grad,
    .grad_infer = infer_grad,
};

#endif
