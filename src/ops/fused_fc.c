/* SPDX-License-Identifier: Apache-2.0 */
/* fused_fc - a fully connected layer in one step; the planner makes it.
 *
 * fused_fc             X [rows.., k..], W [k,n], Bias? [n] -> Out [rows.., n]
 *     Out = act(X W + Bias); rows are X's first x_num_col_dims dims; act is
 *     "", "relu", "sigmoid" or "tanh"
 *
 * fused_act_bias_grad  Out?, Out@GRAD -> Pre@GRAD?, Bias@GRAD?
 *     Pre@GRAD = Out@GRAD * act'(.), told from Out: what reaches the product.
 *     Out may be absent with act ""
 *     Bias@GRAD = sum of Pre@GRAD over rows
 *
 * Bias and activation are applied to a block of rows while the product is still
 * in the cache. */
#define FL_SELF "ops/fused_fc.c"
#include "op/real.h"

#ifndef FL_OPS_FUSED_FC_C
#define FL_OPS_FUSED_FC_C

#include "kernel/gemm.h"
#include "op/vecmath.h"

#include <string.h>

typedef enum act {
    NONE,
    RELU,
    SIGMOID,
    TANH,
    ACTS,
} act;

static const char *const act_names[ACTS] = {"", "relu", "sigmoid", "tanh"};

/* ACTS: the activation is unknown. */
static act act_of(const char *name)
{
    act a = NONE;
    while (a < ACTS && strcmp(act_names[a], name ? name : ""))
        a++;
    return a;
}

/* The number of rows in a block, so that blocks are equal and their results
 * stay in the L2 cache. */
static int64_t block_rows(int64_t rows, int64_t n)
{
    int64_t most = 65536 / (n ? n : 1);
    most = most < 64 ? 64 : most;
    int64_t blocks = (rows + most - 1) / most;
    int64_t each = blocks ? (rows + blocks - 1) / blocks : 0;
    return (each + 7) / 8 * 8; /* oneDNN computes eight rows at a time */
}

#define INLINE static inline __attribute__((always_inline))

/* With a constant activation the loop has no branch. */
#define FL_BY_ACT(a, call)                                                     \
    do {                                                                       \
        if (a == RELU)                                                         \
            call(RELU);                                                        \
        else if (a == SIGMOID)                                                 \
            call(SIGMOID);                                                     \
        else if (a == TANH)                                                    \
            call(TANH);                                                        \
        else                                                                   \
            call(NONE);                                                        \
    } while (0)

#endif
#ifdef REAL

INLINE REAL FN(act_at)(act a, REAL x)
{
    switch (a) {
    case RELU:
        return x > 0 ? x : 0;
    case SIGMOID:
        return FN(fl_sigmoid)(x);
    case TANH:
        return FN(fl_tanh)(x);
    default:
        return x;
    }
}

/* d times the derivative of the activation, whose result is y. */
INLINE REAL FN(slope_at)(act a, REAL y, REAL d)
{
    switch (a) {
    case RELU:
        return y > 0 ? d : 0;
    case SIGMOID:
        return d * y * (1 - y);
    case TANH:
        return d * (1 - y * y);
    default:
        return d;
    }
}

INLINE void FN(finish_as)(act a, int64_t rows, int64_t n, const REAL *bias,
                          REAL *y)
{
    for (int64_t r = 0; r < rows; r++, y += n)
        for (int64_t j = 0; j < n; j++)
            y[j] = FN(act_at)(a, bias ? y[j] + bias[j] : y[j]);
}

FL_CLONES static void FN(finish)(act a, int64_t rows, int64_t n,
                                 const REAL *bias, REAL *y)
{
#define CALL(which) FN(finish_as)(which, rows, n, bias, y)
    FL_BY_ACT(a, CALL);
#undef CALL
}

static fl_err FN(fused_fc)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X"), *w = fl_in(c, "W");
    const fl_tensor *bias = fl_in(c, "Bias");
    const REAL *at = x->data;
    REAL *y = fl_out(c, "Out")->data;
    act a = act_of(fl_attr_str(c, "act"));
    int64_t k = w->shape.dim[0], n = w->shape.dim[1];
    int64_t m =
        fl_shape_span(&x->shape, 0, (int)fl_attr_i64(c, "x_num_col_dims"));
    int64_t step = block_rows(m, n);
    for (int64_t r = 0; r < m; r += step) {
        int64_t rows = m - r < step ? m - r : step;
        fl_gemm(x->dtype, false, false, rows, n, k, 1, at + r * k, w->data, 0,
                y + r * n);
        FN(finish)(a, rows, n, bias ? bias->data : NULL, y + r * n);
    }
    return FL_OK;
}

/* y is read unless a is NONE; to and sum may be NULL. */
INLINE void FN(back_as)(act a, int64_t rows, int64_t n, const REAL *y,
                        const REAL *d, REAL *to, REAL *sum)
{
    for (int64_t r = 0; r < rows; r++, d += n) {
        FL_APART
        for (int64_t j = 0; j < n; j++) {
            REAL v = a == NONE ? d[j] : FN(slope_at)(a, y[r * n + j], d[j]);
            if (to)
                to[r * n + j] = v;
            if (sum)
                sum[j] += v;
        }
    }
}

FL_CLONES static void FN(back)(act a, int64_t rows, int64_t n, const REAL *y,
                               const REAL *d, REAL *to, REAL *sum)
{
#define CALL(which) FN(back_as)(which, rows, n, y, d, to, sum)
    FL_BY_ACT(a, CALL);
#undef CALL
}

static fl_err FN(fused_act_bias_grad)(fl_call *c)
{
    const fl_tensor *y = fl_in(c, "Out"), *d = fl_in(c, "Out@GRAD");
    fl_tensor *pre = fl_out(c, "Pre@GRAD"), *bias = fl_out(c, "Bias@GRAD");
    REAL *to = pre ? pre->data : NULL, *sum = bias ? bias->data : NULL;
    const act a = act_of(fl_attr_str(c, "act"));
    int last = d->shape.rank - 1;
    int64_t rows = fl_shape_span(&d->shape, 0, last), n = d->shape.dim[last];
    const REAL *out = y ? y->data : NULL, *from = d->data;
    double *total = bias ? fl_scratch(c, n, sizeof *total) : NULL;
    if (bias && !total)
        return FL_ENOMEM;
    FN(fl_rows_clear)(n, sum, total);
    for (int64_t r = 0, some; r < rows; r += some) {
        const int64_t at = r * n;
        some = rows - r < FL_ROWS_BLOCK ? rows - r : FL_ROWS_BLOCK;
        FN(back)
        (a, some, n, out ? out + at : NULL, from + at, to ? to + at : NULL,
         sum);
        FN(fl_rows_added)(n, r + some - 1, rows, sum, total);
    }
    return FL_OK;
}

#else

FL_REAL_KERNEL(fused_fc)
FL_REAL_KERNEL(fused_act_bias_grad)

static fl_err check_act(const fl_infer *x, act *a)
{
    const char *name = fl_meta_attr(x, "act")->s;
    *a = act_of(name);
    if (*a < ACTS)
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: act is \"%s\", expected relu, sigmoid, tanh",
                   fl_meta_type(x), name);
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0), *w = fl_meta_in(x, "W", 0);
    int64_t rows = fl_meta_attr(x, "x_num_col_dims")->i;
    act a;
    FL_TRY(check_act(x, &a));
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (rows < 1 || rows >= m->shape.rank)
        return fl_fail(FL_ESHAPE, "%s: X has %d dims, %lld are to be rows",
                       fl_meta_type(x), m->shape.rank, (long long)rows);
    int64_t k = fl_shape_span(&m->shape, (int)rows, m->shape.rank);
    fl_shape weight = {2, {k, -1}}, out = fl_shape_of((int)rows, m->shape.dim);
    FL_TRY(fl_meta_expect(x, "W", m->dtype, &weight));
    fl_shape bias = {1, {w->shape.dim[1]}};
    FL_TRY(fl_meta_expect(x, "Bias", m->dtype, &bias));
    out.dim[out.rank++] = w->shape.dim[1];
    fl_meta_set(x, "Out", 0, m->dtype, &out);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err infer_back(fl_infer *x)
{
    const fl_meta *d = fl_meta_in(x, "Out@GRAD", 0);
    act a;
    FL_TRY(check_act(x, &a));
    FL_TRY(fl_meta_check(x, "Out@GRAD", FL_REALS));
    if (!d->shape.rank)
        return fl_fail(FL_ESHAPE, "%s: Out@GRAD has no dims", fl_meta_type(x));
    if (a != NONE && !fl_meta_in(x, "Out", 0))
        return fl_fail(FL_EINVAL, "%s: input Out is missing", fl_meta_type(x));
    FL_TRY(fl_meta_expect(x, "Out", d->dtype, &d->shape));
    fl_shape bias = {1, {d->shape.dim[d->shape.rank - 1]}};
    fl_meta_set(x, "Pre@GRAD", 0, d->dtype, &d->shape);
    fl_meta_share_lod(x, "Out@GRAD", "Pre@GRAD");
    fl_meta_set(x, "Bias@GRAD", 0, d->dtype, &bias);
    return FL_OK;
}

const fl_op_def fl_op_fused_fc = {
    .type = "fused_fc",
    .in = {{"X"}, {"W"}, {"Bias", FL_OPTIONAL}},
    .out = {{"Out"}},
    .attr = {{"x_num_col_dims", FL_ATTR_INT, .i = 1}, {"act", FL_ATTR_STRING}},
    .flags = FL_OP_HIDDEN,
    .infer = infer,
    .run = fused_fc,
};

const fl_op_def fl_op_fused_act_bias_grad = {
    .type = "fused_act_bias_grad",
    .in = {{"Out", FL_OPTIONAL}, {"Out@GRAD"}},
    .out = {{"Pre@GRAD", FL_OPTIONAL}, {"Bias@GRAD", FL_OPTIONAL}},
    .attr = {{"act", FL_ATTR_STRING}},
    .flags = FL_OP_HIDDEN | FL_OP_IN_PLACE,
    .infer = infer_back,
    .run = fused_act_bias_grad,
};

#endif
