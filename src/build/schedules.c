/* SPDX-License-Identifier: Apache-2.0 */
/* schedules.c - learning rates that change from step to step.
 *
 * The step is a counter in the program, so a schedule consists of ops, too.
 * All have the role LRSched, by which a transpiler finds them and moves them
 * to the server. The order of ops is Fluid's, which is the order in which
 * Python evaluates the formulas; so each formula below is written one operator
 * at a time. */
#include "build/layer.h"

#include <math.h>

/* A number, or a variable once a variable takes part in the computation. */
typedef struct value {
    fl_var *var; /* NULL: it is a number */
    double number;
} value;

/* A schedule under construction. After a failure the functions below do
 * nothing. */
typedef struct schedule {
    fl_emit *e;
    fl_net *n;
    fl_err err;
} schedule;

static value num(double number)
{
    return (value){NULL, number};
}

static value arg(const schedule *s, const char *name)
{
    const fl_arg *a = fl_arg_get(&s->e->args, name);
    return a->n ? (value){a->var, 0} : num(a->f);
}

static double fold(double a, char sign, double b)
{
    return sign == '+'   ? a + b
           : sign == '-' ? a - b
           : sign == '*' ? a * b
                         : a / b;
}

static value op(schedule *s, value a, const char *sign, value b)
{
    value out = {0};
    if (s->err)
        return out;
    if (!a.var && !b.var)
        return num(fold(a.number, *sign, b.number));
    if (a.var)
        s->err =
            fl_var_math(s->n, sign, a.var, b.var, b.number, false, &out.var);
    else
        s->err = fl_var_math(s->n, sign, b.var, NULL, a.number, true, &out.var);
    return out;
}

static value layer(schedule *s, const char *name, const fl_arg *args)
{
    value out = {0};
    if (!s->err)
        s->err = fl_layer_get(s->n, name, args, &out.var);
    return out;
}

static value unary(schedule *s, const char *name, value x)
{
    return layer(s, name, (fl_arg[]){{"x", .var = x.var}, {0}});
}

static value constant(schedule *s, double number)
{
    return layer(s, "fill_constant",
                 (fl_arg[]){{"shape", .i = 1},
                            {"dtype", .i = FL_F32},
                            {"value", .f = number},
                            {0}});
}

static value smaller(schedule *s, value a, value b)
{
    return layer(s, "elementwise_min",
                 (fl_arg[]){{"x", .var = a.var}, {"y", .var = b.var}, {0}});
}

static void assign(schedule *s, value from, value to)
{
    layer(
        s, "assign",
        (fl_arg[]){{"input", .var = from.var}, {"output", .var = to.var}, {0}});
}

/* A learning rate that branches write. It is persistable. */
static value global(schedule *s, const char *name)
{
    return layer(s, "create_global_var",
                 (fl_arg[]){{"shape", .i = 1},
                            {"value", .f = 0},
                            {"dtype", .i = FL_F32},
                            {"persistable", .b = true},
                            {"name", .s = name},
                            {0}});
}

static value emit_counter(schedule *s, int64_t begin)
{
    value count = layer(s, "autoincreased_step_counter",
                        (fl_arg[]){{"counter_name", .s = "@LR_DECAY_COUNTER@"},
                                   {"begin", .i = begin},
                                   {0}});
    return layer(
        s, "cast",
        (fl_arg[]){{"x", .var = count.var}, {"dtype", .i = FL_F32}, {0}});
}

static void begin_case(schedule *s, fl_switch *sw, value cond)
{
    if (!s->err)
        s->err = fl_switch_case(s->n, sw, cond.var);
}

static void end_case(schedule *s, fl_switch *sw)
{
    if (!s->err)
        s->err = fl_switch_end(s->n, sw);
}

/* --- the formulas --- */

static value noam(schedule *s)
{
    const double d = fl_arg_float(&s->e->args, "d_model");
    const double warmup = fl_arg_float(&s->e->args, "warmup_steps");
    value t = emit_counter(s, 1);
    value a = op(s, t, "**", num(-0.5));
    value b = op(s, num(pow(warmup, -1.5)), "*", t);
    return op(s, num(pow(d, -0.5)), "*", smaller(s, a, b));
}

/* t / decay_steps, rounded down if `staircase` is set. */
static value progress(schedule *s)
{
    value t = op(s, emit_counter(s, 0), "/", arg(s, "decay_steps"));
    return fl_arg_bool(&s->e->args, "staircase") ? unary(s, "floor", t) : t;
}

static value exponential(schedule *s)
{
    value p = op(s, arg(s, "decay_rate"), "**", progress(s));
    return op(s, arg(s, "learning_rate"), "*", p);
}

static value natural_exp(schedule *s)
{
    value p = progress(s);
    value x = op(s, op(s, num(-1), "*", arg(s, "decay_rate")), "*", p);
    return op(s, arg(s, "learning_rate"), "*", unary(s, "exp", x));
}

static value inverse_time(schedule *s)
{
    value p = op(s, arg(s, "decay_rate"), "*", progress(s));
    return op(s, arg(s, "learning_rate"), "/", op(s, num(1), "+", p));
}

/* decay_steps times the number of the current cycle, which starts at 1. */
static value cycle_steps(schedule *s, value t, value steps)
{
    fl_switch sw = {0};
    value cycle = unary(s, "ceil", op(s, t, "/", steps));
    value zero = constant(s, 0), one = constant(s, 1);
    begin_case(s, &sw, op(s, t, "==", zero));
    assign(s, one, cycle);
    end_case(s, &sw);
    return op(s, steps, "*", cycle);
}

static value polynomial(schedule *s)
{
    const value end = arg(s, "end_learning_rate");
    value t = emit_counter(s, 0), steps = arg(s, "decay_steps");
    if (fl_arg_bool(&s->e->args, "cycle"))
        steps = cycle_steps(s, t, steps);
    else
        t = smaller(s, t, constant(s, steps.number));
    value span = op(s, arg(s, "learning_rate"), "-", end);
    value left = op(s, num(1), "-", op(s, t, "/", steps));
    value curve = op(s, left, "**", arg(s, "power"));
    return op(s, op(s, span, "*", curve), "+", end);
}

static value piecewise(schedule *s)
{
    int n_bounds = 0, n_values = 0;
    const double *bound = fl_arg_floats(&s->e->args, "boundaries", &n_bounds);
    const double *at = fl_arg_floats(&s->e->args, "values", &n_values);
    fl_switch sw = {0};
    if (n_values != n_bounds + 1) {
        s->err = fl_fail(FL_EINVAL,
                         "piecewise_decay: %d boundaries and %d values, "
                         "expected one value more",
                         n_bounds, n_values);
        return num(0);
    }
    value t = emit_counter(s, 0), lr = global(s, "learning_rate");
    for (int i = 0; i < n_bounds; i++) {
        value b = constant(s, bound[i]), v = constant(s, at[i]);
        begin_case(s, &sw, op(s, t, "<", b));
        assign(s, v, lr);
        end_case(s, &sw);
    }
    value last = constant(s, at[n_bounds]);
    begin_case(s, &sw, num(0));
    assign(s, last, lr);
    end_case(s, &sw);
    return lr;
}

static value cosine(schedule *s)
{
    value t = op(s, emit_counter(s, 0), "/", arg(s, "step_each_epoch"));
    value epoch = unary(s, "floor", t);
    value half = op(s, arg(s, "learning_rate"), "*", num(0.5));
    value x = op(s, op(s, epoch, "*", num(acos(-1))), "/", arg(s, "epochs"));
    return op(s, half, "*", op(s, unary(s, "cos", x), "+", num(1)));
}

static value warmup(schedule *s)
{
    const value start = arg(s, "start_lr"), steps = arg(s, "warmup_steps");
    const double rise = fl_arg_float(&s->e->args, "end_lr") - start.number;
    fl_switch sw = {0};
    value lr = global(s, "learning_rate_warmup"), t = emit_counter(s, 0);
    value after = arg(s, "learning_rate");
    if (!after.var)
        after = constant(s, after.number);
    begin_case(s, &sw, op(s, t, "<", steps));
    value part = op(s, num(rise), "*", op(s, t, "/", steps));
    assign(s, op(s, start, "+", part), lr);
    end_case(s, &sw);
    begin_case(s, &sw, num(0));
    assign(s, after, lr);
    end_case(s, &sw);
    return lr;
}

/* --- the table --- */

static const struct formula {
    const char *name;
    value (*make)(schedule *s);
} formulas[] = {
    {"noam_decay", noam},
    {"exponential_decay", exponential},
    {"natural_exp_decay", natural_exp},
    {"inverse_time_decay", inverse_time},
    {"polynomial_decay", polynomial},
    {"piecewise_decay", piecewise},
    {"cosine_decay", cosine},
    {"linear_lr_warmup", warmup},
};

static value make_schedule(schedule *s)
{
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (!strcmp(formulas[i].name, s->e->def->name))
            return formulas[i].make(s);
    return num(0);
}

/* Restore the role and block of the net, also after a failure. */
static fl_err emit_schedule(fl_emit *e)
{
    fl_net *n = e->net, before = *n;
    schedule s = {e, n, FL_OK};
    n->role = FL_ROLE_LR;
    n->role_var[0] = n->role_var[1] = NULL;
    const value lr = make_schedule(&s);
    n->role = before.role;
    n->block = before.block;
    memcpy(n->role_var, before.role_var, sizeof n->role_var);
    FL_TRY(s.err);
    fl_emit_return(e, lr.var);
    return FL_OK;
}

/* --- paddle.v2 --- */

static fl_err add_global(fl_net *n, const char *name, fl_dtype dtype,
                         int64_t size, double start, fl_var **out)
{
    return fl_layer_get(
        n, "create_global_var",
        (fl_arg[]){{"shape", .n = 1, .ints = &size},
                   {"value", .f = start},
                   {"dtype", .i = dtype},
                   {"persistable", .b = true},
                   {"name", .s = fl_names_generate(n->names, n->arena, name)},
                   {0}},
        out);
}

static void set_floats(fl_desc *d, const char *name, int n, const double *x)
{
    float *own = fl_arena_alloc(d->arena, ((size_t)n + 1) * sizeof *own);
    for (int i = 0; i < n; i++)
        own[i] = (float)x[i];
    fl_desc_set_attr(d,
                     &(fl_attr){name, FL_ATTR_FLOATS, .n = n, .floats = own});
}

/* The variable of the caller is copied for the update, which servers run:
 * `batch` is sent to them like a gradient. */
static fl_err add_v2_ops(fl_emit *e, fl_var *count, fl_var *rate)
{
    fl_net *n = e->net;
    int n_counts = 0, n_rates = 0;
    const double *counts = fl_arg_floats(&e->args, "counts", &n_counts);
    const double *rates = fl_arg_floats(&e->args, "rates", &n_rates);
    fl_var *state, *batch;
    FL_TRY(add_global(n, "v2_samples", FL_F64, 3, 0, &state));
    n->role = FL_ROLE_DIST;
    FL_TRY(fl_layer_get(n, "assign", (fl_arg[]){{"input", .var = count}, {0}},
                        &batch));
    n->role = FL_ROLE_OPTIMIZE;
    n->role_var[0] = state->name;
    n->role_var[1] = batch->name;
    fl_desc *d = fl_net_desc(n, "v2_schedule");
    fl_set_in(d, "State", state);
    fl_set_in(d, "Batch", batch);
    fl_set_out(d, "StateOut", state);
    fl_set_out(d, "LearningRate", rate);
    fl_set_str(d, "schedule", fl_arg_str(&e->args, "schedule"));
    fl_set_float(d, "rate", fl_arg_float(&e->args, "learning_rate"));
    fl_set_float(d, "a", fl_arg_float(&e->args, "a"));
    fl_set_float(d, "b", fl_arg_float(&e->args, "b"));
    set_floats(d, "counts", n_counts, counts);
    set_floats(d, "rates", n_rates, rates);
    return fl_net_append(n, d);
}

static fl_err emit_v2(fl_emit *e)
{
    fl_net *n = e->net, before = *n;
    fl_var *count, *rate;
    FL_TRY(add_global(n, "v2_batch", FL_F64, 3, 0, &count));
    FL_TRY(add_global(n, "learning_rate", FL_F32, 1,
                      fl_arg_float(&e->args, "learning_rate"), &rate));
    const fl_err err = add_v2_ops(e, count, rate);
    n->role = before.role;
    memcpy(n->role_var, before.role_var, sizeof n->role_var);
    FL_TRY(err);
    fl_emit_return(e, rate);
    fl_emit_return(e, count);
    return FL_OK;
}

#define DECAY(type, text)                                                      \
    {                                                                          \
        .name = type, .doc = text "", .prefix = "",                            \
        .args = {{"learning_rate", FL_ARG_FLOAT_OR_VAR},                       \
                 {"decay_steps", FL_ARG_FLOAT},                                \
                 {"decay_rate", FL_ARG_FLOAT},                                 \
                 {"staircase", FL_ARG_BOOL, "False"}},                         \
        .emit = emit_schedule,                                                 \
    }

const fl_layer_def fl_layers_schedule[] = {
    {
        .name = "noam_decay",
        .doc = "The learning rate d_model^-0.5 * min(t^-0.5, t * "
               "warmup_steps^-1.5) at step t.",
        .prefix = "",
        .args = {{"d_model", FL_ARG_FLOAT}, {"warmup_steps", FL_ARG_FLOAT}},
        .emit = emit_schedule,
    },
    DECAY("exponential_decay", "The learning rate learning_rate * "
                               "decay_rate^(t / decay_steps) at step t."),
    DECAY("natural_exp_decay", "The learning rate learning_rate * "
                               "exp(-decay_rate * t / decay_steps) at step t."),
    DECAY("inverse_time_decay", "The learning rate learning_rate / (1 + "
                                "decay_rate * t / decay_steps) at step t."),
    {
        .name = "polynomial_decay",
        .doc = "A learning rate that decreases from learning_rate to "
               "end_learning_rate within decay_steps, in proportion to (1 - "
               "t / decay_steps)^power.",
        .prefix = "",
        .args = {{"learning_rate", FL_ARG_FLOAT_OR_VAR},
                 {"decay_steps", FL_ARG_FLOAT},
                 {"end_learning_rate", FL_ARG_FLOAT, "0.0001"},
                 {"power", FL_ARG_FLOAT, "1.0"},
                 {"cycle", FL_ARG_BOOL, "False"}},
        .emit = emit_schedule,
    },
    {
        .name = "piecewise_decay",
        .doc =
            "The learning rate values[i] for the first i whose boundaries[i] "
            "is above the step, and the last value after all boundaries.",
        .prefix = "",
        .args = {{"boundaries", FL_ARG_FLOATS}, {"values", FL_ARG_FLOATS}},
        .emit = emit_schedule,
    },
    {
        .name = "cosine_decay",
        .doc = "The learning rate learning_rate * (cos(epoch * pi / "
               "epochs) + 1) / 2, where an epoch is step_each_epoch steps.",
        .prefix = "",
        .args = {{"learning_rate", FL_ARG_FLOAT_OR_VAR},
                 {"step_each_epoch", FL_ARG_FLOAT},
                 {"epochs", FL_ARG_FLOAT}},
        .emit = emit_schedule,
    },
    {
        .name = "linear_lr_warmup",
        .doc = "A learning rate that changes linearly from start_lr to "
               "end_lr within warmup_steps, and is learning_rate afterwards.",
        .prefix = "",
        .args = {{"learning_rate", FL_ARG_FLOAT_OR_VAR},
                 {"warmup_steps", FL_ARG_FLOAT},
                 {"start_lr", FL_ARG_FLOAT},
                 {"end_lr", FL_ARG_FLOAT}},
        .emit = emit_schedule,
    },
    {
        .name = "v2_learning_rate",
        .doc = "A learning rate of paddle.v2, which depends on the number of "
               "samples of all trainers. Before each step the caller writes "
               "three numbers to the second result: the number of its samples, "
               "the number of its pass, and 1.",
        .returns = "rate, batch",
        .prefix = "",
        .args = {{"learning_rate", FL_ARG_FLOAT},
                 {"schedule", FL_ARG_STR,
                  .doc = "poly, caffe_poly, exp, discexp, linear, manual or "
                         "pass_manual"},
                 {"a", FL_ARG_FLOAT, "0.0",
                  .doc = "learning_rate_decay_a of paddle.v2"},
                 {"b", FL_ARG_FLOAT, "0.0",
                  .doc = "learning_rate_decay_b of paddle.v2"},
                 {"counts", FL_ARG_FLOATS, "None",
                  .doc = "samples or passes up to which each of the rates "
                         "holds"},
                 {"rates", FL_ARG_FLOATS, "None",
                  .doc = "factors of learning_rate, one for each count"}},
        .emit = emit_v2,
    },
    {0},
};
