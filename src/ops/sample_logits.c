/* SPDX-License-Identifier: Apache-2.0 */
/* sample_logits   the logits of the labels and of some other classes, instead
 *                 of all K: what a softmax over few of many classes needs
 *
 * Of Logits [N,K] and Labels [N,T] the outputs have T + num_samples columns,
 * the labels first. The other classes are drawn once for all rows, each class
 * once, small numbers more often (class k is drawn with log((k + 2) / (k + 1))
 * / log(K + 1)): frequent classes should have small numbers.
 *
 *     SampledLogits = Logits[Samples] - log(Probabilities)
 *     SampledLabels = 0 .. T - 1
 *
 * Probabilities are how likely a class is to be among the samples at all. A
 * sample that is a label of its row is an accidental hit; with
 * remove_accidental_hits it gets 1e20 less. With use_customized_samples both
 * Samples and Probabilities are taken as given.
 *
 * gradient   Logits@GRAD[Samples] += SampledLogits@GRAD */
#define FL_SELF "ops/sample_logits.c"
#include "op/real.h"

#ifndef FL_OPS_SAMPLE_LOGITS_C
#define FL_OPS_SAMPLE_LOGITS_C

#include "base/random.h"

/* Shapes of a call: [rows, classes] and [rows, labels]. */
typedef struct sizes {
    int64_t rows, classes, labels, columns;
} sizes;

static sizes sizes_of(const fl_call *c)
{
    const fl_shape *x = &fl_in(c, "Logits")->shape;
    const fl_shape *labels = &fl_in(c, "Labels")->shape;
    return (sizes){x->dim[0], x->dim[1], labels->dim[1],
                   labels->dim[1] + fl_attr_i64(c, "num_samples")};
}

static fl_err check_classes(const fl_call *c, const char *slot, int64_t classes)
{
    const int64_t *id = fl_in(c, slot)->data;
    for (int64_t i = 0, n = fl_numel(c, slot); i < n; i++)
        if (id[i] < 0 || id[i] >= classes)
            return fl_fail(
                FL_EINVAL, "%s: %s has %lld, but there are %lld classes",
                c->def->type, slot, (long long)id[i], (long long)classes);
    return FL_OK;
}

static int64_t draw_class(fl_rng *r, int64_t classes)
{
    const double x = exp(fl_rng_f64(r) * log((double)classes + 1));
    return ((int64_t)x - 1) %
           classes; /* rounding may give one more than the last class */
}

static double likelihood(int64_t id, int64_t classes)
{
    return log(((double)id + 2) / ((double)id + 1)) / log((double)classes + 1);
}

/* The probability that a class is in the sample after this number of draws. */
static double among(double p, int64_t samples, int64_t tries)
{
    return tries == samples ? p * (double)samples
                            : -expm1((double)tries * log1p(-p));
}

/* Draw different samples into the first row, after its labels; *out is the
 * number of draws. */
static fl_err draw_all(fl_call *c, sizes n, int64_t *first, int64_t *out)
{
    const int64_t seed = fl_attr_i64(c, "seed");
    fl_rng r = fl_rng_of(seed ? (uint32_t)seed : c->hooks->entropy(c));
    uint8_t *seen = fl_scratch(c, n.classes, sizeof *seen);
    int64_t tries = 0;
    if (!seen)
        return FL_ENOMEM;
    memset(seen, 0, (size_t)n.classes);
    for (int64_t j = n.labels; j < n.columns; tries++) {
        const int64_t id = draw_class(&r, n.classes);
        if (!seen[id])
            first[j++] = id;
        seen[id] = 1;
    }
    *out = tries;
    return FL_OK;
}

static void copy_input(fl_call *c, const char *in, const char *out)
{
    const fl_tensor *from = fl_in(c, in);
    fl_tensor *to = fl_out(c, out);
    if (to->data != from->data)
        memcpy(to->data, from->data, fl_tensor_bytes(from));
}

static bool is_label(const int64_t *row, int64_t labels, int64_t id)
{
    for (int64_t j = 0; j < labels; j++)
        if (row[j] == id)
            return true;
    return false;
}

#endif
#ifdef REAL

static fl_err FN(sample)(fl_call *c, sizes n)
{
    const int64_t *label = fl_in(c, "Labels")->data;
    const int64_t others = n.columns - n.labels;
    int64_t *id = fl_out(c, "Samples")->data;
    REAL *p = fl_out(c, "Probabilities")->data;
    const int64_t *first = id;
    int64_t tries = 0;
    if (n.rows)
        FL_TRY(draw_all(c, n, id, &tries));
    for (int64_t i = 0; i < n.rows; i++)
        for (int64_t j = 0; j < n.columns; j++, id++, p++) {
            *id = j < n.labels ? *label++ : first[j];
            *p = (REAL)among(likelihood(*id, n.classes), others, tries);
        }
    return FL_OK;
}

/* -log(0) is replaced by 1e20: such a class is never chosen. */
static REAL FN(corrected)(REAL logit, REAL p)
{
    const REAL log_p = RM(log)(p);
    return logit - (isinf(log_p) ? (REAL)-1e20 : log_p);
}

static fl_err FN(sample_logits)(fl_call *c)
{
    const sizes n = sizes_of(c);
    const bool remove = fl_attr_bool(c, "remove_accidental_hits");
    const REAL *x = fl_in(c, "Logits")->data;
    FL_TRY(check_classes(c, "Labels", n.classes));
    if (fl_attr_bool(c, "use_customized_samples")) {
        FL_TRY(check_classes(c, "CustomizedSamples", n.classes));
        copy_input(c, "CustomizedSamples", "Samples");
        copy_input(c, "CustomizedProbabilities", "Probabilities");
    } else {
        FL_TRY(FN(sample)(c, n));
    }
    const int64_t *id = fl_out(c, "Samples")->data;
    const REAL *p = fl_out(c, "Probabilities")->data;
    REAL *y = fl_out(c, "SampledLogits")->data;
    int64_t *place = fl_out(c, "SampledLabels")->data;
    for (int64_t i = 0; i < n.rows; i++, x += n.classes, id += n.columns)
        for (int64_t j = 0; j < n.columns; j++, y++, p++) {
            *y = FN(corrected)(x[id[j]], *p);
            if (j < n.labels)
                *place++ = j;
            else if (remove && is_label(id, n.labels, id[j]))
                *y -= (REAL)1e20;
        }
    return FL_OK;
}

static fl_err FN(sample_logits_grad)(fl_call *c)
{
    fl_tensor *out = fl_out(c, "Logits@GRAD");
    const fl_tensor *samples = fl_in(c, "Samples");
    const int64_t columns = samples->shape.dim[1];
    const int64_t *id = samples->data;
    const REAL *dy = fl_in(c, "SampledLogits@GRAD")->data;
    REAL *dx = fl_cleared(out);
    FL_TRY(check_classes(c, "Samples", out->shape.dim[1]));
    for (int64_t i = 0; i < out->shape.dim[0]; i++, dx += out->shape.dim[1])
        for (int64_t j = 0; j < columns; j++)
            dx[*id++] += *dy++;
    return FL_OK;
}

#else

FL_REAL_KERNEL(sample_logits)

/* The first input has integers, so the dtype comes from another one. */
static fl_err sample_logits_grad(fl_call *c)
{
    return fl_in(c, "SampledLogits@GRAD")->dtype == FL_F64
               ? sample_logits_grad_f64(c)
               : sample_logits_grad_f32(c);
}

static fl_err check_rank(const fl_infer *x, const char *slot, int rank)
{
    const fl_shape *s = &fl_meta_in(x, slot, 0)->shape;
    char text[FL_SHAPE_TEXT];
    if (s->rank == rank)
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: %s is %s, expected %d dims", fl_meta_type(x),
                   slot, fl_shape_text(s, text), rank);
}

static fl_err check_samples(const fl_infer *x, const fl_meta *logits,
                            const fl_shape *s)
{
    const int64_t n = fl_meta_attr(x, "num_samples")->i;
    const int64_t classes = logits->shape.dim[1];
    const bool custom = fl_meta_attr(x, "use_customized_samples")->b;
    if (n < 1 || n > INT32_MAX)
        return fl_fail(FL_EINVAL, "%s: num_samples is %lld, expected 1 or more",
                       fl_meta_type(x), (long long)n);
    if (!custom && classes >= 0 && n > classes)
        return fl_fail(FL_EINVAL,
                       "%s: num_samples is %lld, but there are %lld classes",
                       fl_meta_type(x), (long long)n, (long long)classes);
    if (!custom)
        return FL_OK;
    if (!fl_meta_in(x, "CustomizedSamples", 0) ||
        !fl_meta_in(x, "CustomizedProbabilities", 0))
        return fl_fail(FL_EINVAL,
                       "%s: use_customized_samples needs CustomizedSamples and "
                       "CustomizedProbabilities",
                       fl_meta_type(x));
    FL_TRY(fl_meta_expect(x, "CustomizedSamples", FL_I64, s));
    return fl_meta_expect(x, "CustomizedProbabilities", logits->dtype, s);
}

/* Set a shape without elements, which the gradient reads. */
static void set_dim(const fl_infer *x, const char *slot, const fl_meta *of)
{
    const fl_shape s = {3, {0, of->shape.dim[0], of->shape.dim[1]}};
    fl_meta_set(x, slot, 0, of->dtype, &s);
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *logits = fl_meta_in(x, "Logits", 0);
    const fl_meta *labels = fl_meta_in(x, "Labels", 0);
    FL_TRY(fl_meta_check(x, "Logits", FL_REALS));
    FL_TRY(fl_meta_check(x, "Labels", FL_SET(FL_I64)));
    FL_TRY(check_rank(x, "Logits", 2));
    FL_TRY(check_rank(x, "Labels", 2));
    const fl_shape rows = {2, {logits->shape.dim[0], labels->shape.dim[1]}};
    FL_TRY(fl_meta_expect(x, "Labels", FL_I64, &rows));
    fl_shape s = rows;
    s.dim[1] = fl_dim_add(s.dim[1], fl_meta_attr(x, "num_samples")->i);
    FL_TRY(check_samples(x, logits, &s));
    fl_meta_set(x, "Samples", 0, FL_I64, &s);
    fl_meta_set(x, "Probabilities", 0, logits->dtype, &s);
    fl_meta_set(x, "SampledLogits", 0, logits->dtype, &s);
    fl_meta_set(x, "SampledLabels", 0, FL_I64, &rows);
    set_dim(x, "LogitsDim", logits);
    set_dim(x, "LabelsDim", labels);
    return FL_OK;
}

static fl_err infer_grad(fl_infer *x)
{
    const fl_meta *dim = fl_meta_in(x, "LogitsDim", 0);
    FL_TRY(fl_meta_check(x, "LogitsDim", FL_REALS));
    FL_TRY(fl_meta_check(x, "Samples", FL_SET(FL_I64)));
    FL_TRY(check_rank(x, "LogitsDim", 3));
    FL_TRY(check_rank(x, "Samples", 2));
    const fl_shape s = {2, {dim->shape.dim[1], dim->shape.dim[2]}};
    const fl_shape few = {
        2, {s.dim[0], fl_meta_in(x, "Samples", 0)->shape.dim[1]}};
    FL_TRY(fl_meta_expect(x, "Samples", FL_I64, &few));
    FL_TRY(fl_meta_expect(x, "SampledLogits@GRAD", dim->dtype, &few));
    fl_meta_set(x, "Logits@GRAD", 0, dim->dtype, &s);
    return FL_OK;
}

const fl_op_def fl_op_sample_logits = {
    .type = "sample_logits",
    .in = {{"Logits"},
           {"Labels", FL_NOGRAD},
           {"CustomizedSamples", FL_NOGRAD | FL_OPTIONAL},
           {"CustomizedProbabilities", FL_NOGRAD | FL_OPTIONAL}},
    .out = {{"Samples", FL_INTERMEDIATE},
            {"Probabilities", FL_INTERMEDIATE},
            {"LogitsDim", FL_INTERMEDIATE},
            {"LabelsDim", FL_INTERMEDIATE},
            {"SampledLogits"},
            {"SampledLabels"}},
    .attr = {{"use_customized_samples", FL_ATTR_BOOL},
             {"uniq", FL_ATTR_BOOL, .b = true},
             {"remove_accidental_hits", FL_ATTR_BOOL, .b = true},
             {"num_samples", FL_ATTR_INT, .required = true},
             {"seed", FL_ATTR_INT, .i = 0}},
    .flags = FL_OP_RANDOM,
    .infer = infer,
    .run = sample_logits,
    .grad_in = {"LogitsDim", "LabelsDim", "Samples", "SampledLogits@GRAD"},
    .grad_run = sample_logits_grad,
    .grad_infer = infer_grad,
};

#endif
