/* SPDX-License-Identifier: Apache-2.0 */
/* A click model step after step: nothing is allocated from the third on, and
 * batches may have any number of rows. */
#include "base/mem.h"
#include "base/test.h"
#include "click.h"

#include <math.h>
#include <string.h>

typedef struct job {
    fl_engine *e;
    fl_net *n;
    fl_scope *s;
    fl_exe *exe;
    fl_fetch loss;
} job;

static void job_init(job *j, const char *optimizer, bool no_fuse)
{
    fl_arg args[] = {{"learning_rate", .f = 0.05}, {0}, {0}};
    if (!strcmp(optimizer, "momentum"))
        args[1] = (fl_arg){"momentum", .f = 0.9};
    j->e = fl_engine_new();
    j->n = fl_net_new(j->e);
    fl_var *cost = click_net(j->n);
    CHECK_OK(fl_minimize(j->n, cost, optimizer, args));
    j->s = fl_scope_new();
    j->exe = fl_exe_new(j->e, &(fl_exe_opts){.no_fuse = no_fuse});
    j->loss = (fl_fetch){fl_var_name(cost), {0}};
    CHECK_OK(fl_exe_run(j->exe, fl_net_startup(j->n), j->s, 0, NULL, 0, NULL));
}

static void job_fini(job *j)
{
    fl_tensor_fini(&j->loss.tensor);
    fl_exe_free(j->exe);
    fl_scope_free(j->s);
    fl_net_free(j->n);
    fl_engine_free(j->e);
}

static void step(job *j, int i)
{
    batch b = {0};
    make_batch(&b, i);
    CHECK_OK(fl_exe_run(j->exe, fl_net_main(j->n), j->s, SLOTS + 2, b.feeds, 1,
                        &j->loss));
}

static const char *const optimizers[] = {"sgd", "momentum", "adam"};

/* Batches `stride` apart; those of even steps have one LoD, those of odd ones
 * another. */
static void check_steady(const char *optimizer, bool no_fuse, int stride,
                         int warm)
{
    job j;
    job_init(&j, optimizer, no_fuse);
    for (int i = 0; i < warm; i++)
        step(&j, i * stride);
    uint64_t before = fl_mem_count();
    for (int i = warm; i < 20; i++)
        step(&j, i * stride);
    uint64_t made = fl_mem_count() - before;
    if (made)
        print_error("%s%s: %llu allocations\n", optimizer,
                    no_fuse ? ", not fused" : "", (unsigned long long)made);
    CHECK_INT((int64_t)made, 0);
    job_fini(&j);
}

static void a_click_model_allocates_nothing(void)
{
    for (int o = 0; o < 3; o++)
        for (int no_fuse = 0; no_fuse < 2; no_fuse++)
            check_steady(optimizers[o], no_fuse, 2, 2);
}

static void nor_does_it_when_sequences_change(void)
{
    for (int o = 0; o < 3; o++)
        for (int no_fuse = 0; no_fuse < 2; no_fuse++)
            check_steady(optimizers[o], no_fuse, 1, 4);
}

/* A step with the first `rows` of a batch. */
static fl_err try_step(job *j, int i, int rows)
{
    batch b = {0};
    make_batch(&b, i);
    for (int k = 0; k < SLOTS; k++) {
        b.feeds[k].tensor.lod.n[0] = rows + 1;
        b.feeds[k].tensor.shape.dim[0] = b.off[rows];
    }
    b.feeds[SLOTS].tensor.shape.dim[0] = rows;
    b.feeds[SLOTS + 1].tensor.shape.dim[0] = rows;
    return fl_exe_run(j->exe, fl_net_main(j->n), j->s, SLOTS + 2, b.feeds, 1,
                      &j->loss);
}

static float step_of(job *j, int i, int rows)
{
    CHECK_OK(try_step(j, i, rows));
    return *(float *)j->loss.tensor.data;
}

static void a_batch_without_rows_is_refused(void)
{
    for (int o = 0; o < 3; o++)
        for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
            job j;
            job_init(&j, optimizers[o], no_fuse);
            CHECK(isfinite(step_of(&j, 0, BATCH)));
            CHECK_ERR(try_step(&j, 1, 0), FL_ESHAPE,
                      "mean: X [0,1] has no elements");
            CHECK(isfinite(step_of(&j, 2, 3)));
            CHECK(isfinite(step_of(&j, 3, BATCH)));
            job_fini(&j);
        }
}

const fl_test fl_tests[] = {
    {"a click model allocates nothing from the third step on",
     a_click_model_allocates_nothing},
    {"nor does it when sequences change from step to step",
     nor_does_it_when_sequences_change},
    {"a batch without rows is refused and does no harm",
     a_batch_without_rows_is_refused},
    {0},
};
