/* SPDX-License-Identifier: Apache-2.0 */
/* auc   AUC = area under the curve of all predictions counted so far
 *
 * A prediction p (the last column of Predict) counts in bucket int(p * T) of
 * T = num_thresholds, as positive where Label is not 0, else as negative.
 *
 *     slide_steps 0   StatPos, StatNeg [1, T + 1] count for ever
 *     slide_steps k   [k, T + 1]: a row of buckets for each of the last k
 *                     batches, the newest last; AUC is of their sum
 *
 * The area is the sum of trapezoids from the top bucket down. ROC: true over
 * false positives, divided by both totals (undivided where one is 0). PR:
 * precision over recall, beginning at precision 1. */
#include "kernel/auc.h"

#define FL_SELF "ops/auc.c"
#include "op/real.h"

#ifndef FL_OPS_AUC_C
#define FL_OPS_AUC_C

#include <string.h>

/* Buckets, thresholds + 1 of each kind. */
typedef struct counts {
    int64_t thresholds;
    int64_t *pos, *neg;
} counts;

#endif
#ifdef REAL

static fl_err FN(count_rows)(const fl_call *c, const counts *to)
{
    const fl_tensor *t = fl_in(c, "Predict");
    const REAL *p = t->data;
    const int64_t *label = fl_in(c, "Label")->data;
    int64_t rows = t->shape.dim[0], width = t->shape.dim[1];
    for (int64_t r = 0; r < rows; r++) {
        REAL x = p[r * width + width - 1];
        if (!(x >= 0 && x <= 1))
            return fl_fail(FL_EINVAL,
                           "auc: Predict is %g in row %lld, expected 0 to 1",
                           (double)x, (long long)r);
        int64_t bucket = (int64_t)(x * (REAL)to->thresholds);
        (label[r] ? to->pos : to->neg)[bucket]++;
    }
    return FL_OK;
}

#else

static fl_err count_rows(const fl_call *c, const counts *to)
{
    return fl_in(c, "Predict")->dtype == FL_F64 ? count_rows_f64(c, to)
                                                : count_rows_f32(c, to);
}

/* Move the rows up by one, so that the last is free for a new batch, and add
 * them up in `sum`. */
FL_CLONES static void slide_up(int64_t *rows, int64_t steps, int64_t n,
                               int64_t *sum)
{
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t s = 0; s + 1 < steps; s++, rows += n)
        for (int64_t b = 0; b < n; b++) {
            rows[b] = rows[n + b];
            sum[b] += rows[b];
        }
    memset(rows, 0, (size_t)n * sizeof *rows);
}

static void add_row(const int64_t *row, int64_t n, int64_t *sum)
{
    for (int64_t b = 0; b < n; b++)
        sum[b] += row[b];
}

static double precision(double pos, double neg)
{
    return pos + neg > 0 ? pos / (pos + neg) : 1;
}

double fl_auc_area(const int64_t *pos, const int64_t *neg, int64_t n, bool pr)
{
    double sum = 0, all_pos = 0, all_neg = 0;
    for (int64_t b = n - 1; b >= 0; b--) {
        double p = all_pos + (double)pos[b], q = all_neg + (double)neg[b];
        if (pr)
            sum += (p - all_pos) *
                   (precision(p, q) + precision(all_pos, all_neg)) / 2;
        else
            sum += (q - all_neg) * (p + all_pos) / 2;
        all_pos = p;
        all_neg = q;
    }
    if (pr)
        return all_pos > 0 ? sum / all_pos : sum;
    return all_pos > 0 && all_neg > 0 ? sum / all_pos / all_neg : sum;
}

static bool is_pr(const char *curve)
{
    return !strcmp(curve, "PR");
}

/* The counts are those of the inputs; the outputs may be other variables. */
static int64_t *state(fl_call *c, const char *in, const char *out)
{
    const fl_tensor *from = fl_in(c, in);
    fl_tensor *to = fl_out(c, out);
    if (from->data != to->data)
        memcpy(to->data, from->data, fl_tensor_bytes(from));
    return to->data;
}

/* Count into the last row of the window, and set *of to the sum of all rows. */
static fl_err count_window(fl_call *c, int64_t steps, counts *of)
{
    int64_t n = of->thresholds + 1, last = (steps - 1) * n;
    int64_t *pos = fl_scratch(c, n, 2 * sizeof *pos), *neg = pos + n;
    if (!pos)
        return FL_ENOMEM;
    counts batch = {n - 1, of->pos + last, of->neg + last};
    slide_up(of->pos, steps, n, pos);
    slide_up(of->neg, steps, n, neg);
    FL_TRY(count_rows(c, &batch));
    add_row(batch.pos, n, pos);
    add_row(batch.neg, n, neg);
    of->pos = pos;
    of->neg = neg;
    return FL_OK;
}

static fl_err auc(fl_call *c)
{
    int64_t steps = fl_attr_i64(c, "slide_steps");
    counts all = {.thresholds = fl_attr_i64(c, "num_thresholds"),
                  .pos = state(c, "StatPos", "StatPosOut"),
                  .neg = state(c, "StatNeg", "StatNegOut")};
    FL_TRY(steps ? count_window(c, steps, &all) : count_rows(c, &all));
    *(double *)fl_out(c, "AUC")->data = fl_auc_area(
        all.pos, all.neg, all.thresholds + 1, is_pr(fl_attr_str(c, "curve")));
    return FL_OK;
}

static fl_err check_attrs(const fl_infer *x)
{
    const char *curve = fl_meta_attr(x, "curve")->s;
    int64_t t = fl_meta_attr(x, "num_thresholds")->i;
    int64_t steps = fl_meta_attr(x, "slide_steps")->i;
    if (curve && strcmp(curve, "ROC") && !is_pr(curve))
        return fl_fail(FL_EINVAL, "auc: curve is \"%s\", expected ROC or PR",
                       curve);
    if (t < 1 || t > 1 << 24)
        return fl_fail(FL_EINVAL,
                       "auc: num_thresholds is %lld, expected 1 to %d",
                       (long long)t, 1 << 24);
    if (steps < 0)
        return fl_fail(FL_EINVAL,
                       "auc: slide_steps is %lld, expected 0 or more",
                       (long long)steps);
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_shape *p = &fl_meta_in(x, "Predict", 0)->shape;
    fl_shape one = {1, {1}};
    FL_TRY(check_attrs(x));
    FL_TRY(fl_meta_check(x, "Predict", FL_REALS));
    if (p->rank != 2 || p->dim[1] == 0)
        return fl_fail(FL_ESHAPE, "auc: Predict has %d dims, expected 2",
                       p->rank);
    fl_shape label = {2, {p->dim[0], 1}};
    int64_t steps = fl_meta_attr(x, "slide_steps")->i;
    int64_t t = fl_meta_attr(x, "num_thresholds")->i;
    fl_shape stat = {2, {steps ? steps : 1, t + 1}};
    FL_TRY(fl_meta_expect(x, "Label", FL_I64, &label));
    FL_TRY(fl_meta_expect(x, "StatPos", FL_I64, &stat));
    FL_TRY(fl_meta_expect(x, "StatNeg", FL_I64, &stat));
    fl_meta_set(x, "AUC", 0, FL_F64, &one);
    fl_meta_set(x, "StatPosOut", 0, FL_I64, &stat);
    fl_meta_set(x, "StatNegOut", 0, FL_I64, &stat);
    return FL_OK;
}

const fl_op_def fl_op_auc = {
    .type = "auc",
    .in = {{"Predict"}, {"Label"}, {"StatPos"}, {"StatNeg"}},
    .out = {{"AUC"}, {"StatPosOut"}, {"StatNegOut"}},
    .attr = {{"curve", FL_ATTR_STRING, .s = "ROC"},
             {"num_thresholds", FL_ATTR_INT, .i = 8191},
             {"slide_steps", FL_ATTR_INT, .i = 1}},
    .infer = infer,
    .run = auc,
};

#endif
