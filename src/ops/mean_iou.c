/* SPDX-License-Identifier: Apache-2.0 */
/* mean_iou  how far Predictions and Labels agree, class by class: OutCorrect
 *           counts agreements, OutWrong each side of a disagreement, i32
 *           [num_classes]; OutMeanIou is the mean of correct / (correct +
 *           wrong) over the classes that occur, f32 [1]. The lists In.. are
 *           added first, and the mean of InMeanIou to the result. */
#include "kernel/move.h"

#include <string.h>

static fl_err count_classes(const fl_call *c, int64_t classes, int32_t *wrong,
                            int32_t *correct)
{
    const fl_tensor *p = fl_in(c, "Predictions"), *l = fl_in(c, "Labels");
    for (int64_t i = 0, n = fl_tensor_numel(p); i < n; i++) {
        const int64_t a = fl_move_index_at(p, i), b = fl_move_index_at(l, i);
        if (a < 0 || a >= classes || b < 0 || b >= classes)
            return fl_fail(FL_EINVAL,
                           "mean_iou: element %lld is %lld, its label %lld, "
                           "but there are %lld classes",
                           (long long)i, (long long)a, (long long)b,
                           (long long)classes);
        if (a == b) {
            correct[a]++;
        } else {
            wrong[a]++;
            wrong[b]++;
        }
    }
    return FL_OK;
}

static void add_list(const fl_call *c, const char *slot, int64_t n, int32_t *to)
{
    for (int i = 0; i < fl_in_count(c, slot); i++)
        for (int64_t k = 0; k < n; k++)
            to[k] += ((int32_t *)fl_in_at(c, slot, i)->data)[k];
}

static fl_err mean_iou(fl_call *c)
{
    const int64_t classes = fl_attr_i64(c, "num_classes");
    fl_tensor *wrongs = fl_out(c, "OutWrong"),
              *rights = fl_out(c, "OutCorrect");
    int32_t *wrong = wrongs->data, *correct = rights->data;
    float sum = 0, *mean = fl_out(c, "OutMeanIou")->data;
    int64_t occur = 0;
    memset(wrong, 0, fl_tensor_bytes(wrongs));
    memset(correct, 0, fl_tensor_bytes(rights));
    FL_TRY(count_classes(c, classes, wrong, correct));
    add_list(c, "InWrongs", classes, wrong);
    add_list(c, "InCorrects", classes, correct);
    for (int64_t k = 0; k < classes; k++) {
        const int32_t all = wrong[k] + correct[k];
        occur += all > 0;
        sum += all > 0 ? (float)correct[k] / (float)all : 0;
    }
    *mean = occur ? sum / (float)occur : 0;
    for (int i = 0; i < fl_in_count(c, "InMeanIou"); i++)
        *mean += *(float *)fl_in_at(c, "InMeanIou", i)->data;
    return FL_OK;
}

static fl_err check_list(const fl_infer *x, const char *slot, fl_dtype dtype,
                         int64_t n)
{
    for (int i = 0; i < fl_meta_count_in(x, slot); i++) {
        const fl_meta *m = fl_meta_in(x, slot, i);
        if (!m || m->dtype != dtype || fl_shape_numel(&m->shape) != n)
            return fl_fail(FL_ESHAPE, "mean_iou: %s %d is not %s of %lld", slot,
                           i, fl_dtype_name(dtype), (long long)n);
    }
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const int64_t classes = fl_meta_attr(x, "num_classes")->i;
    const fl_shape one = {1, {1}}, each = {1, {classes}};
    FL_TRY(fl_meta_check(x, "Predictions", FL_INDEXES));
    FL_TRY(fl_meta_alike(x, "Predictions", "Labels"));
    if (classes < 1 || classes > INT32_MAX)
        return fl_fail(FL_EINVAL,
                       "mean_iou: num_classes is %lld, expected 1 or more",
                       (long long)classes);
    FL_TRY(check_list(x, "InWrongs", FL_I32, classes));
    FL_TRY(check_list(x, "InCorrects", FL_I32, classes));
    FL_TRY(check_list(x, "InMeanIou", FL_F32, 1));
    fl_meta_set(x, "OutMeanIou", 0, FL_F32, &one);
    fl_meta_set(x, "OutWrong", 0, FL_I32, &each);
    fl_meta_set(x, "OutCorrect", 0, FL_I32, &each);
    return FL_OK;
}

const fl_op_def fl_op_mean_iou = {
    .type = "mean_iou",
    .in = {{"Predictions", FL_NOGRAD},
           {"Labels", FL_NOGRAD},
           {"InWrongs", FL_MANY | FL_OPTIONAL | FL_NOGRAD},
           {"InCorrects", FL_MANY | FL_OPTIONAL | FL_NOGRAD},
           {"InMeanIou", FL_MANY | FL_OPTIONAL | FL_NOGRAD}},
    .out = {{"OutMeanIou"}, {"OutWrong"}, {"OutCorrect"}},
    .attr = {{"num_classes", FL_ATTR_INT, .required = true}},
    .infer = infer,
    .run = mean_iou,
};
