/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

/* Row 1 has an accidental hit: class 2, its label, is drawn too. */
static void takes_samples_as_given(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sample_logits",
        .attr = {{"use_customized_samples", FL_ATTR_BOOL, .b = true},
                 {"remove_accidental_hits", FL_ATTR_BOOL, .b = false},
                 {"num_samples", FL_ATTR_INT, .i = 2}},
        .in = {{"Logits", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}},
               {"Labels", {2, 1}, {0, 2}, "i64"},
               {"CustomizedSamples", {2, 3}, {0, 3, 1, 2, 2, 3}, "i64"},
               {"CustomizedProbabilities", {2, 3}, {1, 0.5, 0.25, 1, 1, 2}}},
        .out = {{"Samples", {2, 3}, {0, 3, 1, 2, 2, 3}, "i64"},
                {"Probabilities", {2, 3}, {1, 0.5, 0.25, 1, 1, 2}},
                {"SampledLogits",
                 {2, 3},
                 {1, 4.6931472, 3.3862944, 7, 7, 7.3068528}},
                {"SampledLabels", {2, 1}, {0, 0}, "i64"}},
        .want = {"LogitsDim", "LabelsDim"},
        .grad = {"Logits"},
    });
}

static void removes_accidental_hits(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sample_logits",
        .attr = {{"use_customized_samples", FL_ATTR_BOOL, .b = true},
                 {"num_samples", FL_ATTR_INT, .i = 2}},
        .in = {{"Logits", {1, 4}, {5, 6, 7, 8}},
               {"Labels", {1, 1}, {2}, "i64"},
               {"CustomizedSamples", {1, 3}, {2, 2, 3}, "i64"},
               {"CustomizedProbabilities", {1, 3}, {1, 1, 1}}},
        .out = {{"SampledLogits", {1, 3}, {7, -1e20, 8}}},
        .want = {"Samples", "Probabilities", "SampledLabels", "LogitsDim",
                 "LabelsDim"},
    });
}

enum {
    CLASSES = 20,
    SAMPLES = 5,
    COLUMNS = 2 + SAMPLES,
};

static void *make_var(fl_vars *v, const char *name, fl_dtype dtype,
                      int64_t columns)
{
    const fl_shape s = {2, {2, columns}};
    fl_value *x = fl_vars_get(v, name);
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, dtype, &s));
    return x->tensor.data;
}

static fl_desc *drawing(fl_vars *v, int64_t seed)
{
    static const char *const outs[] = {"Samples",       "Probabilities",
                                       "LogitsDim",     "LabelsDim",
                                       "SampledLogits", "SampledLabels"};
    double *x = make_var(v, "x", FL_F64, CLASSES);
    int64_t *labels = make_var(v, "l", FL_I64, 2);
    for (int i = 0; i < 2 * CLASSES; i++)
        x[i] = i;
    for (int i = 0; i < 4; i++)
        labels[i] = 3 * i;
    fl_desc *d = fl_desc_new(v->arena, "sample_logits");
    fl_desc_set_in1(d, "Logits", "x");
    fl_desc_set_in1(d, "Labels", "l");
    for (int i = 0; i < 6; i++)
        fl_desc_set_out1(d, outs[i], outs[i]);
    fl_desc_set_attr(d, &(fl_attr){"num_samples", FL_ATTR_INT, .i = SAMPLES});
    fl_desc_set_attr(d, &(fl_attr){"seed", FL_ATTR_INT, .i = seed});
    return d;
}

/* Probabilities are those of one whole number of tries. */
static void check_odds(const int64_t *id, const double *q)
{
    const double whole = log(CLASSES + 1), p0 = log(2) / whole;
    const double tries = round(log1p(-q[0]) / log1p(-p0)); /* class 0 */
    const bool repeated = q[0] < SAMPLES * p0 - 1e-9 || tries > SAMPLES;
    for (int j = 0; j < COLUMNS; j++) {
        const double p = log((double)(id[j] + 2) / (double)(id[j] + 1)) / whole;
        CHECK_NEAR(q[j], repeated ? 1 - pow(1 - p, tries) : (double)SAMPLES * p,
                   1e-9);
    }
}

static void draws_classes_that_differ(void)
{
    fl_vars v;
    fl_vars_init(&v);
    for (int seed = 1; seed < 20; seed++) {
        bool seen[CLASSES] = {0};
        CHECK_OK(fl_vars_run(&v, drawing(&v, seed)));
        const int64_t *id = fl_vars_get(&v, "Samples")->tensor.data;
        const double *q = fl_vars_get(&v, "Probabilities")->tensor.data;
        const double *y = fl_vars_get(&v, "SampledLogits")->tensor.data;
        CHECK_INT(id[0], 0); /* labels first: 0 and 3, 6 and 9 */
        CHECK_INT(id[COLUMNS + 1], 9);
        for (int j = 2; j < COLUMNS; j++) {
            CHECK_INT(id[COLUMNS + j], id[j]); /* the same for all rows */
            CHECK(id[j] >= 0 && id[j] < CLASSES && !seen[id[j]]);
            seen[id[j]] = true;
        }
        check_odds(id, q);
        CHECK_NEAR(y[1], 3 - log(q[1]), 1e-9);
    }
    fl_vars_fini(&v);
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("sample_logits{num_samples=3} Logits=f32[-1,9] "
                            "Labels=i64[-1,1]"),
              "Samples=i64[-1,4] Probabilities=f32[-1,4] LogitsDim=f32[0,-1,9] "
              "LabelsDim=i64[0,-1,1] SampledLogits=f32[-1,4] "
              "SampledLabels=i64[-1,1]");
    CHECK_ERR(fl_infer_try("sample_logits{num_samples=10} Logits=f32[2,9] "
                           "Labels=i64[2,1]"),
              FL_EINVAL,
              "sample_logits: num_samples is 10, but there are 9 classes");
    CHECK_ERR(fl_infer_try("sample_logits{num_samples=0} Logits=f32[2,9] "
                           "Labels=i64[2,1]"),
              FL_EINVAL, "sample_logits: num_samples is 0, expected 1 or more");
    CHECK_ERR(fl_infer_try("sample_logits{num_samples=1} Logits=f32[2,9] "
                           "Labels=i64[3,1]"),
              FL_ESHAPE,
              "sample_logits: Labels is i64[3,1], expected i64[2,1]");
    CHECK_ERR(fl_infer_try("sample_logits{num_samples=1} Logits=f32[9] "
                           "Labels=i64[3,1]"),
              FL_ESHAPE, "sample_logits: Logits is [9], expected 2 dims");
    CHECK_ERR(fl_infer_try("sample_logits{num_samples=1,"
                           "use_customized_samples=true} Logits=f32[2,9] "
                           "Labels=i64[2,1]"),
              FL_EINVAL,
              "sample_logits: use_customized_samples needs CustomizedSamples "
              "and CustomizedProbabilities");
    CHECK_ERR(fl_infer_try("sample_logits_grad{num_samples=1} "
                           "LogitsDim=f32[0,2,9] LabelsDim=i64[0,2,1] "
                           "Samples=i64[2,2] SampledLogits@GRAD=f32[2,3]"),
              FL_ESHAPE,
              "sample_logits_grad: SampledLogits@GRAD is f32[2,3], expected "
              "f32[2,2]");
}

static void refuses_classes_that_are_not_there(void)
{
    const fl_op_case c = {
        .type = "sample_logits",
        .attr = {{"num_samples", FL_ATTR_INT, .i = 1},
                 {"seed", FL_ATTR_INT, .i = 1}},
        .in = {{"Logits", {1, 2}, {1, 2}}, {"Labels", {1, 1}, {2}, "i64"}},
        .want = {"Samples", "Probabilities", "LogitsDim", "LabelsDim",
                 "SampledLogits", "SampledLabels"},
    };
    CHECK_ERR(fl_check_try(&c), FL_EINVAL,
              "sample_logits: Labels has 2, but there are 2 classes");
}

const fl_test fl_tests[] = {
    {"sample_logits takes samples as given", takes_samples_as_given},
    {"sample_logits removes accidental hits", removes_accidental_hits},
    {"sample_logits draws classes that differ", draws_classes_that_differ},
    {"sample_logits says what does not fit", says_what_does_not_fit},
    {"sample_logits refuses classes that are not there",
     refuses_classes_that_are_not_there},
    {0},
};
