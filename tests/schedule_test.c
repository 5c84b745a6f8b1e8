/* SPDX-License-Identifier: Apache-2.0 */
/* Learning-rate schedules, run: each step's rate against its formula. */
#include "base/test.h"

#include <math.h>

enum {
    STEPS = 25,
};

/* Runs the net's main program STEPS times; the rate of each step. */
static void rates_of(fl_engine *e, fl_net *n, const fl_var *rate, double *out)
{
    CHECK_OK(fl_net_error(n));
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    fl_fetch got = {fl_var_name(rate), {0}};
    CHECK_OK(fl_exe_run(exe, fl_net_startup(n), s, 0, NULL, 0, NULL));
    for (int t = 0; t < STEPS; t++) {
        CHECK_OK(fl_exe_run(exe, fl_net_main(n), s, 0, NULL, 1, &got));
        out[t] = *(float *)got.tensor.data;
    }
    fl_tensor_fini(&got.tensor);
    fl_exe_free(exe);
    fl_scope_free(s);
}

/* t is the step, from 0 on; for noam from 1 on. */
static void check(const char *name, const fl_arg *args,
                  double (*formula)(double t), double first)
{
    double got[STEPS];
    fl_engine *e = fl_engine_new();
    fl_net *n = fl_net_new(e);
    rates_of(e, n, fl_layer(n, name, args), got);
    for (int t = 0; t < STEPS; t++)
        CHECK_NEAR(got[t], formula(t + first), 1e-6);
    fl_net_free(n);
    fl_engine_free(e);
}

static double noam(double t)
{
    return pow(64, -0.5) * fmin(pow(t, -0.5), t * pow(10, -1.5));
}

static double exponential(double t)
{
    return 0.5 * pow(0.9, t / 4);
}

static double exponential_steps(double t)
{
    return 0.5 * pow(0.9, floor(t / 4));
}

static double natural_exp(double t)
{
    return 0.5 * exp(-0.9 * t / 4);
}

static double inverse_time(double t)
{
    return 0.5 / (1 + 0.9 * t / 4);
}

static double polynomial(double t)
{
    return (0.5 - 0.1) * pow(1 - fmin(t, 10) / 10, 2) + 0.1;
}

static double polynomial_again(double t)
{
    double steps = 10 * fmax(1, ceil(t / 10));
    return (0.5 - 0.1) * (1 - t / steps) + 0.1;
}

static double piecewise(double t)
{
    return t < 3 ? 0.1 : t < 7 ? 0.01 : 0.001;
}

static double cosine(double t)
{
    return 0.5 * 0.5 * (cos(floor(t / 4) * M_PI / 6) + 1);
}

static double warmup(double t)
{
    return t < 10 ? 0.1 + (0.4 - 0.1) * t / 10 : 0.3;
}

static void every_schedule_keeps_its_formula(void)
{
    const fl_arg decay[] = {{"learning_rate", .f = 0.5},
                            {"decay_steps", .f = 4},
                            {"decay_rate", .f = 0.9},
                            {0}};
    const fl_arg steps[] = {
        decay[0], decay[1], decay[2], {"staircase", .b = true}, {0}};
    check("exponential_decay", decay, exponential, 0);
    check("exponential_decay", steps, exponential_steps, 0);
    check("natural_exp_decay", decay, natural_exp, 0);
    check("inverse_time_decay", decay, inverse_time, 0);
    check("noam_decay",
          (fl_arg[]){{"d_model", .f = 64}, {"warmup_steps", .f = 10}, {0}},
          noam, 1);
    check("polynomial_decay",
          (fl_arg[]){{"learning_rate", .f = 0.5},
                     {"decay_steps", .f = 10},
                     {"end_learning_rate", .f = 0.1},
                     {"power", .f = 2},
                     {0}},
          polynomial, 0);
    check("polynomial_decay",
          (fl_arg[]){{"learning_rate", .f = 0.5},
                     {"decay_steps", .f = 10},
                     {"end_learning_rate", .f = 0.1},
                     {"cycle", .b = true},
                     {0}},
          polynomial_again, 0);
    check("piecewise_decay",
          (fl_arg[]){{"boundaries", .n = 2, .floats = (double[]){3, 7}},
                     {"values", .n = 3, .floats = (double[]){0.1, 0.01, 0.001}},
                     {0}},
          piecewise, 0);
    check("cosine_decay",
          (fl_arg[]){{"learning_rate", .f = 0.5},
                     {"step_each_epoch", .f = 4},
                     {"epochs", .f = 6},
                     {0}},
          cosine, 0);
    check("linear_lr_warmup",
          (fl_arg[]){{"learning_rate", .f = 0.3},
                     {"warmup_steps", .f = 10},
                     {"start_lr", .f = 0.1},
                     {"end_lr", .f = 0.4},
                     {0}},
          warmup, 0);
}

const fl_test fl_tests[] = {
    {"every schedule keeps its formula", every_schedule_keeps_its_formula},
    {0},
};
