/* SPDX-License-Identifier: Apache-2.0 */
/* similarity_focus   a mask of 0 and 1 with the shape of X [N,A,B,C]
 *
 * For each example, and each of `indexes` along `axis`, the other two dims are
 * a matrix of similarities. Its largest element is chosen, then the largest one
 * in the rows and columns without a chosen element, and so on, until all rows
 * or all columns have one. Of equal elements the first is chosen. Out is 1 at
 * the chosen positions, for all indices along the axis. There is no gradient.
 */
#define FL_SELF "ops/similarity_focus.c"
#include "op/real.h"

#ifndef FL_OPS_SIMILARITY_FOCUS_C
#define FL_OPS_SIMILARITY_FOCUS_C

/* The strides of the matrices, and the length of the axis. */
typedef struct layout {
    int64_t rows, columns, depth;
    int64_t by_row, by_column, by_depth; /* steps */
} layout;

static layout layout_of(const fl_shape *s, int64_t axis)
{
    const int64_t step[] = {0, s->dim[2] * s->dim[3], s->dim[3], 1};
    const int64_t r = axis == 1 ? 2 : 1, c = axis == 3 ? 2 : 3;
    return (layout){s->dim[r], s->dim[c], s->dim[axis],
                    step[r],   step[c],   step[axis]};
}

#endif
#ifdef REAL

/* Find the largest element whose row and column are not taken yet. */
static void FN(largest)(const layout *at, const REAL *x, const bool *taken,
                        int64_t *row, int64_t *column)
{
    const REAL *best = NULL;
    for (int64_t i = 0; i < at->rows; i++)
        for (int64_t j = 0; !taken[i] && j < at->columns; j++) {
            const REAL *p = x + i * at->by_row + j * at->by_column;
            if (taken[at->rows + j] || (best && !(*p > *best)))
                continue;
            best = p;
            *row = i;
            *column = j;
        }
}

static void FN(choose)(const layout *at, const REAL *x, bool *taken, REAL *y)
{
    const int64_t n = at->rows < at->columns ? at->rows : at->columns;
    memset(taken, 0, (size_t)(at->rows + at->columns) * sizeof *taken);
    for (int64_t k = 0; k < n; k++) {
        int64_t i = 0, j = 0;
        FN(largest)(at, x, taken, &i, &j);
        taken[i] = taken[at->rows + j] = true;
        for (int64_t d = 0; d < at->depth; d++)
            y[i * at->by_row + j * at->by_column + d * at->by_depth] = 1;
    }
}

static fl_err FN(similarity_focus)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const fl_attr *indexes = fl_attr_get(c, "indexes");
    const layout at = layout_of(&x->shape, fl_attr_i64(c, "axis"));
    const int64_t size = at.rows * at.columns * at.depth;
    bool *taken = fl_scratch(c, at.rows + at.columns, sizeof *taken);
    if (!taken)
        return FL_ENOMEM;
    REAL *y = fl_cleared(fl_out(c, "Out"));
    for (int64_t i = 0; i < x->shape.dim[0]; i++)
        for (int k = 0; k < indexes->n; k++) {
            const REAL *from = (const REAL *)x->data + i * size;
            FN(choose)
            (&at, from + indexes->longs[k] * at.by_depth, taken, y + i * size);
        }
    return FL_OK;
}

#else

FL_REAL_KERNEL(similarity_focus)

static fl_err infer(fl_infer *x)
{
    const fl_shape *s = &fl_meta_in(x, "X", 0)->shape;
    const int64_t axis = fl_meta_attr(x, "axis")->i;
    const fl_attr *indexes = fl_meta_attr(x, "indexes");
    char text[FL_SHAPE_TEXT];
    if (s->rank != 4)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected 4 dims",
                       fl_meta_type(x), fl_shape_text(s, text));
    if (axis < 1 || axis > 3)
        return fl_fail(FL_EINVAL, "%s: axis is %lld, expected 1, 2 or 3",
                       fl_meta_type(x), (long long)axis);
    if (!indexes->n)
        return fl_fail(FL_EINVAL, "%s: indexes are empty", fl_meta_type(x));
    for (int k = 0; k < indexes->n; k++) {
        const int64_t i = indexes->longs[k], n = s->dim[axis];
        if (i < 0 || (n >= 0 && i >= n))
            return fl_fail(FL_EINVAL,
                           "%s: indexes have %lld, but dimension %lld of X is "
                           "%lld",
                           fl_meta_type(x), (long long)i, (long long)axis,
                           (long long)n);
    }
    return fl_infer_real(x);
}

const fl_op_def fl_op_similarity_focus = {
    .type = "similarity_focus",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INT, .required = true},
             {"indexes", FL_ATTR_INTS, .required = true}},
    .infer = infer,
    .run = similarity_focus,
};

#endif
