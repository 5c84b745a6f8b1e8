/* SPDX-License-Identifier: Apache-2.0 */
/* argsort   Out = X sorted along axis, the smallest first; Indices = the
 *           former index of each element. Equal elements keep their order;
 *           NaN comes last. */
#define FL_SELF "ops/argsort.c"
#include "op/number.h"

#ifndef FL_OPS_ARGSORT_C
#define FL_OPS_ARGSORT_C

#include "kernel/softmax.h"

#endif
#ifdef NUM

typedef struct FN(item) {
    NUM value;
    int64_t at;
} FN(item);

/* a comes before b, or they are equal. */
static bool FN(in_order)(NUM a, NUM b)
{
    return a <= b || isnan((double)b);
}

/* Merge two sorted runs of `from`, [0, mid) and [mid, n), into `to`. */
static void FN(merge)(const FN(item) * from, int64_t mid, int64_t n,
                      FN(item) * to)
{
    for (int64_t i = 0, j = mid, k = 0; k < n; k++) {
        bool left =
            j == n || (i < mid && FN(in_order)(from[i].value, from[j].value));
        to[k] = left ? from[i++] : from[j++];
    }
}

/* A merge sort. Returns the one of the two arrays that holds the result. */
static FN(item) * FN(sort)(int64_t n, FN(item) * a, FN(item) * b)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t left = n - i, mid = run < left ? run : left;
            FN(merge)(a + i, mid, 2 * run < left ? 2 * run : left, b + i);
        }
        FN(item) *other = a;
        a = b;
        b = other;
    }
    return a;
}

static fl_err FN(argsort)(fl_call *c)
{
    const fl_tensor *in = fl_in(c, "X");
    const NUM *x = in->data;
    NUM *y = fl_out(c, "Out")->data;
    int64_t *index = fl_out(c, "Indices")->data;
    const fl_axis at = fl_axis_of(&in->shape, fl_attr_i64(c, "axis"));
    FN(item) *space = fl_scratch(c, at.size, 2 * sizeof *space);
    if (!space)
        return FL_ENOMEM;
    const int64_t outer = fl_tensor_numel(in) ? at.outer : 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < at.inner; i++) {
            const int64_t first = o * at.size * at.inner + i;
            for (int64_t j = 0; j < at.size; j++)
                space[j] = (FN(item)){x[first + j * at.inner], j};
            FN(item) *sorted = FN(sort)(at.size, space, space + at.size);
            for (int64_t j = 0; j < at.size; j++) {
                y[first + j * at.inner] = sorted[j].value;
                index[first + j * at.inner] = sorted[j].at;
            }
        }
    return FL_OK;
}

#else

FL_NUMBER_KERNEL(argsort)

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    int dim;
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    FL_TRY(fl_meta_axis(x, "X", &dim));
    fl_meta_set(x, "Out", 0, in->dtype, &in->shape);
    fl_meta_set(x, "Indices", 0, FL_I64, &in->shape);
    fl_meta_share_lod(x, "X", "Out");
    fl_meta_share_lod(x, "X", "Indices");
    return FL_OK;
}

const fl_op_def fl_op_argsort = {
    .type = "argsort",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}, {"Indices"}},
    .attr = {{"axis", FL_ATTR_INT, .i = -1}},
    .infer = infer,
    .run = argsort,
};

#endif
