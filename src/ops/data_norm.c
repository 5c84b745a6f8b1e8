/* SPDX-License-Identifier: Apache-2.0 */
/* data_norm   Means  = BatchSum / BatchSize
 *             Scales = sqrt(BatchSize / BatchSquareSum)
 *             Y      = (X - Means) * Scales, column by column of X [N,C]
 * gradient    X@GRAD              = Y@GRAD * Scales
 *             BatchSize@GRAD      = N
 *             BatchSum@GRAD       = sum of X
 *             BatchSquareSum@GRAD = sum of (X - Means)^2, + N * epsilon
 *
 * The last three are not derivatives: they are what a batch adds to the
 * summaries of all data so far. Updates add them unscaled (build/optimizer.c).
 */
#define FL_SELF "ops/data_norm.c"
#include "op/real.h"
#ifdef REAL

FL_CLONES static void FN(shift)(int64_t n, const REAL *x, const REAL *mean,
                                const REAL *scale, REAL *y)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean[i]) * scale[i];
}

FL_CLONES static void FN(stretch)(int64_t n, const REAL *dy, const REAL *scale,
                                  REAL *dx)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * scale[i];
}

FL_CLONES static void FN(add_squares)(int64_t n, const REAL *x,
                                      const REAL *mean, REAL *sum)
{
    FL_APART
    for (int64_t i = 0; i < n; i++)
        sum[i] += (x[i] - mean[i]) * (x[i] - mean[i]);
}

static fl_err FN(data_norm)(fl_call *c)
{
    const fl_shape *s = &fl_in(c, "X")->shape;
    const int64_t n = s->dim[1];
    const REAL *x = fl_in(c, "X")->data;
    const REAL *size = fl_in(c, "BatchSize")->data;
    const REAL *sum = fl_in(c, "BatchSum")->data;
    const REAL *squares = fl_in(c, "BatchSquareSum")->data;
    REAL *mean = fl_out(c, "Means")->data, *scale = fl_out(c, "Scales")->data;
    REAL *y = fl_out(c, "Y")->data;
    for (int64_t i = 0; i < n; i++) {
        mean[i] = sum[i] / size[i];
        scale[i] = RM(sqrt)(size[i] / squares[i]);
    }
    for (int64_t r = 0; r < s->dim[0]; r++)
        FN(shift)(n, x + r * n, mean, scale, y + r * n);
    return FL_OK;
}

static fl_err FN(data_norm_grad)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const int64_t rows = x->shape.dim[0], n = x->shape.dim[1];
    const REAL *mean = fl_in(c, "Means")->data;
    const REAL *scale = fl_in(c, "Scales")->data;
    const REAL *dy = fl_in(c, "Y@GRAD")->data;
    fl_tensor *dx = fl_out(c, "X@GRAD"), *size = fl_out(c, "BatchSize@GRAD");
    REAL *sum = fl_cleared(fl_out(c, "BatchSum@GRAD"));
    REAL *squares = fl_cleared(fl_out(c, "BatchSquareSum@GRAD"));
    double *total = fl_scratch(c, n, 2 * sizeof *total);
    if (!total)
        return FL_ENOMEM;
    FN(fl_rows_clear)(n, sum, total);
    FN(fl_rows_clear)(n, squares, total + n);
    for (int64_t r = 0; r < rows; r++) {
        const REAL *row = (const REAL *)x->data + r * n;
        if (sum)
            FN(fl_add)(n, row, sum);
        if (squares)
            FN(add_squares)(n, row, mean, squares);
        if (dx)
            FN(stretch)(n, dy + r * n, scale, (REAL *)dx->data + r * n);
        FN(fl_rows_added)(n, r, rows, sum, total);
        FN(fl_rows_added)(n, r, rows, squares, total + n);
    }
    for (int64_t i = 0; size && i < n; i++)
        ((REAL *)size->data)[i] = (REAL)rows;
    for (int64_t i = 0; squares && i < n; i++)
        squares[i] += (REAL)rows * fl_attr_f32(c, "epsilon");
    return FL_OK;
}

#else

FL_REAL_KERNEL(data_norm)
FL_REAL_KERNEL(data_norm_grad)

/* Check X and the summaries; return the number of columns. */
static fl_err check_input(const fl_infer *x, fl_shape *columns)
{
    static const char *const summaries[] = {"BatchSize", "BatchSum",
                                            "BatchSquareSum"};
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const float epsilon = fl_meta_attr(x, "epsilon")->f;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (!(epsilon >= 0 && epsilon <= 0.001f))
        return fl_fail(FL_EINVAL, "%s: epsilon is %g, expected 0 to 0.001",
                       fl_meta_type(x), (double)epsilon);
    if (in->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected [N,C]",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    *columns = (fl_shape){1, {in->shape.dim[1]}};
    for (int i = 0; i < 3; i++)
        FL_TRY(fl_meta_expect(x, summaries[i], in->dtype, columns));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape columns;
    FL_TRY(check_input(x, &columns));
    fl_meta_set(x, "Y", 0, in->dtype, &in->shape);
    fl_meta_set(x, "Means", 0, in->dtype, &columns);
    fl_meta_set(x, "Scales", 0, in->dtype, &columns);
    fl_meta_share_lod(x, "X", "Y");
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    fl_shape columns;
    FL_TRY(check_input(x, &columns));
    FL_TRY(fl_meta_expect(x, "Means", in->dtype, &columns));
    FL_TRY(fl_meta_expect(x, "Scales", in->dtype, &columns));
    FL_TRY(fl_meta_alike(x, "X", "Y@GRAD"));
    fl_meta_set(x, "X@GRAD", 0, in->dtype, &in->shape);
    fl_meta_set(x, "BatchSize@GRAD", 0, in->dtype, &columns);
    fl_meta_set(x, "BatchSum@GRAD", 0, in->dtype, &columns);
    fl_meta_set(x, "BatchSquareSum@GRAD", 0, in->dtype, &columns);
    return FL_OK;
}

const fl_op_def fl_op_data_norm = {
    .type = "data_norm",
    .in = {{"X"}, {"BatchSize"}, {"BatchSum"}, {"BatchSquareSum"}},
    .out = {{"Y"}, {"Means", FL_INTERMEDIATE}, {"Scales", FL_INTERMEDIATE}},
    .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 1e-4f},
             {"data_layout", FL_ATTR_STRING, .s = "NCHW"},
             {"use_mkldnn", FL_ATTR_BOOL}},
    .infer = infer,
    .run = data_norm,
    .grad_in = {"X", "Y@GRAD", "BatchSize", "BatchSum", "BatchSquareSum",
                "Scales", "Means"},
    .grad_run = data_norm_grad,
    .grad_infer = infer_grad,
};

#endif
