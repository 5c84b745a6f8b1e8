/* SPDX-License-Identifier: Apache-2.0 */
/* Whole networks on several places: they learn what one place learns, and
 * learn the same bits each time. */
#include "base/test.h"
#include "click.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 6,
};

typedef struct job {
    fl_engine *e;
    fl_net *n;
    fl_scope *s;
    fl_exe *exe;
    const char *loss;
} job;

typedef void (*optimize)(fl_net *n, fl_var *cost);

static void job_init(job *j, optimize by)
{
    j->e = fl_engine_new();
    j->n = fl_net_new(j->e);
    fl_net_seed(j->n, 7);
    fl_var *cost = click_net(j->n);
    by(j->n, cost);
    CHECK_OK(fl_net_error(j->n));
    j->loss = fl_var_name(cost);
    j->s = fl_scope_new();
    j->exe = fl_exe_new(j->e, NULL);
    CHECK_OK(fl_exe_run(j->exe, fl_net_startup(j->n), j->s, 0, NULL, 0, NULL));
}

static void job_fini(job *j)
{
    fl_exe_free(j->exe);
    fl_scope_free(j->s);
    fl_net_free(j->n);
    fl_engine_free(j->e);
}

/* The mean of the losses of all places. */
static double step(job *j, int places, int i)
{
    batch b = {0};
    fl_fetch loss = {j->loss, {0}};
    double sum = 0;
    make_batch(&b, i);
    CHECK_OK(fl_exe_run_places(j->exe, &(fl_places){.n = places},
                               fl_net_main(j->n), j->s, SLOTS + 2, b.feeds, 1,
                               &loss));
    CHECK_INT(loss.tensor.shape.dim[0], places);
    for (int k = 0; k < places; k++)
        sum += ((float *)loss.tensor.data)[k];
    fl_tensor_fini(&loss.tensor);
    return sum / places;
}

typedef struct rival {
    fl_scope *scope;
    double gap;
} rival;

static void compare(void *self, const char *name, fl_value *v)
{
    rival *r = self;
    fl_tensor *x, y = {0};
    CHECK_OK(fl_value_tensor(v, &x));
    CHECK_OK(fl_scope_get(r->scope, name, &y));
    const int64_t n = fl_tensor_numel(x);
    CHECK_INT(fl_tensor_numel(&y), n);
    for (int64_t i = 0; i < n && x->dtype == FL_F32; i++)
        r->gap =
            fmax(r->gap, fabs(((float *)x->data)[i] - ((float *)y.data)[i]));
    fl_tensor_fini(&y);
}

/* The largest difference between values of two jobs. */
static double gap(job *a, job *b)
{
    rival r = {b->s, 0};
    fl_scope_each(a->s, compare, &r);
    return r.gap;
}

static void by_sgd(fl_net *n, fl_var *cost)
{
    CHECK_OK(fl_minimize(n, cost, "sgd",
                         (fl_arg[]){{"learning_rate", .f = 0.1}, {0}}));
}

static void by_adam_with_decay_and_clip(fl_net *n, fl_var *cost)
{
    fl_regularizer l2 = {.kind = "l2", .coeff = 0.01f};
    fl_clip clip = {.kind = "global_norm", .max = 0.05f};
    CHECK_OK(fl_net_set_clip(n, &clip, 0, NULL));
    CHECK_OK(fl_minimize(n, cost, "adam",
                         (fl_arg[]){{"learning_rate", .f = 0.01},
                                    {"epsilon", .f = 1e-3},
                                    {"regularization", .regularizer = &l2},
                                    {0}}));
}

static void by_momentum_that_decays(fl_net *n, fl_var *cost)
{
    fl_var *rate = FL_LAYER(n, "exponential_decay", {"learning_rate", .f = 0.2},
                            {"decay_steps", .f = 2}, {"decay_rate", .f = 0.5});
    CHECK_OK(fl_minimize(n, cost, "momentum",
                         (fl_arg[]){{"learning_rate", .n = 1, .var = rate},
                                    {"momentum", .f = 0.9},
                                    {0}}));
}

static const optimize optimizers[] = {
    by_sgd,
    by_adam_with_decay_and_clip,
    by_momentum_that_decays,
};

static void places_learn_what_one_learns(void)
{
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++)
        for (int places = 2; places <= 8; places *= 2) {
            job one, many;
            job_init(&one, optimizers[o]);
            job_init(&many, optimizers[o]);
            CHECK_NEAR(gap(&one, &many), 0, 0);
            for (int i = 0; i < STEPS; i++)
                CHECK_NEAR(step(&many, places, i), step(&one, 1, i), 1e-5);
            CHECK_NEAR(gap(&one, &many), 0, 1e-5);
            job_fini(&one);
            job_fini(&many);
        }
}

static void two_runs_have_the_same_bits(void)
{
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        job a, b;
        job_init(&a, optimizers[o]);
        job_init(&b, optimizers[o]);
        for (int i = 0; i < STEPS; i++)
            CHECK_NEAR(step(&a, 3, i), step(&b, 3, i), 0);
        CHECK_NEAR(gap(&a, &b), 0, 0);
        job_fini(&a);
        job_fini(&b);
    }
}

/* How large the elements of the gradient's rows are together. */
static double sum_of_rows(job *j, int places)
{
    batch b = {0};
    fl_fetch rows = {.name = "table@GRAD"};
    double sum = 0;
    make_batch(&b, 0);
    CHECK_OK(fl_exe_run_places(j->exe, &(fl_places){.n = places},
                               fl_net_main(j->n), j->s, SLOTS + 2, b.feeds, 1,
                               &rows));
    CHECK_INT(rows.kind, FL_SELECTED_ROWS);
    CHECK_INT(rows.rows.height, HEIGHT);
    for (int64_t i = 0; i < rows.rows.n * WIDTH; i++)
        sum += fabs(((float *)rows.rows.value.data)[i]);
    fl_fetch_fini(&rows);
    return sum;
}

static void gradients_of_rows_come_once(void)
{
    job one, many;
    job_init(&one, by_sgd);
    job_init(&many, by_sgd);
    const double want = sum_of_rows(&one, 1), got = sum_of_rows(&many, 2);
    /* Rows that both places have are not merged: no less, but not twice. */
    CHECK(want > 0 && got > want * 0.999 && got < want * 1.5);
    job_fini(&one);
    job_fini(&many);
}

const fl_test fl_tests[] = {
    {"places learn what one place learns", places_learn_what_one_learns},
    {"gradients of rows come once from places", gradients_of_rows_come_once},
    {"two runs on places have the same bits", two_runs_have_the_same_bits},
    {0},
};
