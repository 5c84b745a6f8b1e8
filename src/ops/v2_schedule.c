/* SPDX-License-Identifier: Apache-2.0 */
/* v2_schedule: a learning rate of paddle.v2, by the samples of all trainers.
 *
 *     Batch         [samples, passes, trainers] of a step, added over trainers
 *     StateOut      [samples so far, pass, steps]
 *     LearningRate  by StateOut, n samples and pass p:
 *
 *         poly         rate * (1 + a n)^-b
 *         caffe_poly   rate * (1 - n / a)^b, 0 for n > a
 *         exp          rate * a^(n / b)
 *         discexp      rate * a^floor(n / b)
 *         linear       max(rate - a n, b)
 *         manual       rate * rates[i] for the first i with n <= counts[i],
 *                      or the last one
 *         pass_manual  the same by p
 *
 * It is an update, with Batch as the gradient of State: so servers add Batch
 * over all trainers, and run it before other updates read LearningRate. */
#include "op/op.h"

#include <math.h>

static double find_rate(fl_call *c, double count)
{
    const fl_attr *counts = fl_attr_get(c, "counts");
    const fl_attr *rates = fl_attr_get(c, "rates");
    int i = 0;
    while (i < counts->n - 1 && count > counts->floats[i])
        i++;
    return rates->floats[i];
}

static fl_err v2_schedule(fl_call *c)
{
    const char *name = fl_attr_get(c, "schedule")->s;
    const double *batch = fl_in(c, "Batch")->data;
    const double a = fl_attr_f32(c, "a"), b = fl_attr_f32(c, "b");
    const double lr = fl_attr_f32(c, "rate");
    const double *old = fl_in(c, "State")->data;
    double *state = fl_out(c, "StateOut")->data;
    float *rate = fl_out(c, "LearningRate")->data;
    const double n = old[0] + batch[0], steps = old[2] + 1;
    const double pass = batch[2] > 0 ? floor(batch[1] / batch[2]) : old[1];
    double x = lr;
    if (!strcmp(name, "poly"))
        x = lr * pow(1 + a * n, -b);
    else if (!strcmp(name, "caffe_poly"))
        x = n <= a ? lr * pow(1 - n / a, b) : 0;
    else if (!strcmp(name, "exp"))
        x = lr * pow(a, n / b);
    else if (!strcmp(name, "discexp"))
        x = lr * pow(a, floor(n / b));
    else if (!strcmp(name, "linear"))
        x = fmax(lr - a * n, b);
    else if (!strcmp(name, "manual"))
        x = lr * find_rate(c, n);
    else if (!strcmp(name, "pass_manual"))
        x = lr * find_rate(c, pass);
    state[0] = n;
    state[1] = pass;
    state[2] = steps;
    *rate = (float)x;
    return FL_OK;
}

/* Whether the name is one of the schedules above. */
static bool is_schedule(const char *name)
{
    static const char *const names[] = {"poly",       "caffe_poly", "exp",
                                        "discexp",    "linear",     "manual",
                                        "pass_manual"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static fl_err check_three(const fl_infer *x, const char *slot)
{
    const fl_shape *s = &fl_meta_in(x, slot, 0)->shape;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, slot, FL_SET(FL_F64)));
    if (s->rank != 1 || s->dim[0] != 3)
        return fl_fail(FL_ESHAPE, "v2_schedule: %s is %s, expected [3]", slot,
                       fl_shape_text(s, text));
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_attr *name = fl_meta_attr(x, "schedule");
    const int n = fl_meta_attr(x, "counts")->n;
    const int64_t one = 1;
    const fl_shape shape = fl_shape_of(1, &one);
    FL_TRY(check_three(x, "State"));
    FL_TRY(check_three(x, "Batch"));
    if (!is_schedule(name->s))
        return fl_fail(FL_EINVAL,
                       "v2_schedule: schedule is \"%s\", expected poly, "
                       "caffe_poly, exp, discexp, linear, manual or "
                       "pass_manual",
                       name->s);
    if (n != fl_meta_attr(x, "rates")->n || (!n && strstr(name->s, "manual")))
        return fl_fail(FL_EINVAL,
                       "v2_schedule: %d counts and %d rates, expected as many "
                       "of each, and one or more for manual and pass_manual",
                       n, fl_meta_attr(x, "rates")->n);
    fl_meta_set(x, "StateOut", 0, FL_F64, &fl_meta_in(x, "State", 0)->shape);
    fl_meta_set(x, "LearningRate", 0, FL_F32, &shape);
    return FL_OK;
}

const fl_op_def fl_op_v2_schedule = {
    .type = "v2_schedule",
    .in = {{"State", FL_NOGRAD}, {"Batch", FL_NOGRAD}},
    .out = {{"StateOut"}, {"LearningRate"}},
    .attr = {{"schedule", FL_ATTR_STRING, .required = true},
             {"rate", FL_ATTR_FLOAT, .required = true},
             {"a", FL_ATTR_FLOAT},
             {"b", FL_ATTR_FLOAT},
             {"counts", FL_ATTR_FLOATS},
             {"rates", FL_ATTR_FLOATS}},
    .infer = infer,
    .run = v2_schedule,
};
