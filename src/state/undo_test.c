/* SPDX-License-Identifier: Apache-2.0 */
/* An owner that adds numbers, killed at each of its stores in turn. */
#include "state/control.h"
#include "state/dense.h"
#include "state/test_state.h"
#include "state/undo.h"

#include <stdio.h>
#include <string.h>

enum {
    UPDATES = 3,
    BLOCKS = 2,
    NUMBERS =
        140,    /* of a block; a log has many bytes and few in other places */
    STORES = 4, /* of a block, at which the process is killed */
    TASKS = 2,
    BLOCK_BYTES = NUMBERS * sizeof(double)
};

/* Everything that is opened to work on a state. */
typedef struct bench {
    fl_statedir *dir;
    fl_dense *dense;
    fl_undo *undo;
    double *x[UPDATES];
    double *rate;
    double hidden; /* made by the rates, and not kept */
} bench;

static void *find_place(void *self, uint32_t space, uint64_t offset,
                        size_t bytes)
{
    return space ? NULL : fl_dense_find(self, offset, bytes);
}

/* The hidden number is made from the kept one, as learning rates are. */
static void run_rates(bench *b)
{
    *b->rate = *b->rate * 0.5 + 1;
    fl_failpoint_hit("test.rates");
    b->hidden = *b->rate / 3;
}

static void open_bench(bench *b)
{
    char about[32];
    b->dir = test_state();
    b->dense = fl_dense_new();
    for (int i = 0; i < UPDATES; i++) {
        snprintf(about, sizeof about, "x%d", i);
        fl_dense_add(b->dense, about, BLOCKS * BLOCK_BYTES);
    }
    fl_dense_add(b->dense, "rate", sizeof(double));
    CHECK_OK(fl_dense_map(b->dense, b->dir));
    for (int i = 0; i < UPDATES; i++)
        b->x[i] = fl_dense_at(b->dense, i);
    b->rate = fl_dense_at(b->dense, UPDATES);
    CHECK_OK(fl_undo_new(b->dir, 0, &b->undo));
    if (!fl_statedir_found(b->dir)) {
        for (int i = 0; i < UPDATES * BLOCKS * NUMBERS; i++)
            b->x[i / (BLOCKS * NUMBERS)][i % (BLOCKS * NUMBERS)] = i;
        fl_statedir_ready(b->dir);
    }
    const fl_spaces in = {b->dense, find_place};
    CHECK_OK(fl_undo_recover(b->undo, &in));
    if (fl_undo_rates_ran(b->undo))
        run_rates(b);
}

static void close_bench(bench *b)
{
    fl_undo_free(b->undo);
    fl_dense_free(b->dense);
    fl_statedir_close(b->dir);
}

static void write_block(bench *b, int update, int block)
{
    double *at = b->x[update] + block * NUMBERS;
    if (fl_undo_written(b->undo, block))
        return;
    const uint64_t offset = fl_dense_offset(b->dense, at);
    CHECK_OK(fl_undo_add(b->undo, 0, offset, at, sizeof *at));
    CHECK_OK(fl_undo_add(b->undo, 0, offset + sizeof *at, at + 1,
                         BLOCK_BYTES - sizeof *at));
    fl_undo_arm(b->undo, block);
    for (int i = 0; i < NUMBERS; i++) {
        at[i] = at[i] * 1.25 + b->hidden + update;
        if (i % (NUMBERS / STORES) == 0)
            fl_failpoint_hit("owner.torn");
    }
    fl_undo_next(b->undo, block);
}

static void run_task(bench *b)
{
    fl_undo_begin(b->undo, &(fl_undo_task){.rates_due = true});
    if (!fl_undo_rated(b->undo)) {
        fl_undo_rates_begin(b->undo);
        CHECK_OK(fl_undo_rates_add(b->undo, fl_dense_offset(b->dense, b->rate),
                                   b->rate, sizeof *b->rate));
        fl_undo_rates_arm(b->undo);
        run_rates(b);
    }
    for (int u = 0; u < UPDATES; u++) {
        if (!fl_undo_enter(b->undo, u))
            continue;
        for (int k = 0; k < BLOCKS; k++)
            write_block(b, u, k);
        fl_undo_leave(b->undo, u);
    }
    fl_undo_finish(b->undo);
}

static void run_all(void *arg)
{
    bench b = {0};
    open_bench(&b);
    while (fl_undo_done(b.undo) < TASKS)
        run_task(&b);
    close_bench(&b);
}

/* What is in the state at the end; the state is removed. */
static void take_result(double out[UPDATES][BLOCKS * NUMBERS])
{
    bench b = {0};
    open_bench(&b);
    CHECK_INT(fl_undo_done(b.undo), TASKS);
    for (int i = 0; i < UPDATES; i++)
        memcpy(out[i], b.x[i], BLOCKS * BLOCK_BYTES);
    fl_statedir_remove(b.dir);
    close_bench(&b);
}

/* Kill at hit n, then at hit m of the process that goes on, then let it run. */
static void kill_twice(int n, int m, bool *hit)
{
    char first[32], second[32];
    snprintf(first, sizeof first, "*:%d", n);
    snprintf(second, sizeof second, "*:%d", m);
    *hit = test_kill_at(first, run_all, NULL);
    test_kill_at(second, run_all, NULL);
    CHECK(!test_kill_at(NULL, run_all, NULL));
}

static void a_kill_at_any_store_gives_the_same_bits(void)
{
    double calm[UPDATES][BLOCKS * NUMBERS], torn[UPDATES][BLOCKS * NUMBERS];
    int n = 0;
    CHECK(!test_kill_at(NULL, run_all, NULL));
    take_result(calm);
    for (bool hit = true; hit;) {
        n++;
        kill_twice(n, 1 + n * 7 % 23, &hit);
        take_result(torn);
        CHECK(!memcmp(calm, torn, sizeof calm));
    }
    CHECK(n > TASKS * UPDATES * BLOCKS * (STORES + 4));
}

/* A push that ends a step, and the begin of the next one, which does not. */
static void begin_step(void *arg)
{
    bench b = {0};
    open_bench(&b);
    fl_undo_begin(b.undo, &(fl_undo_task){.last = true, .rates_due = true});
    fl_undo_finish(b.undo);
    fl_undo_begin(b.undo, &(fl_undo_task){.rates_due = true});
    close_bench(&b);
}

static void rates_are_due_after_any_kill_in_between(void)
{
    int n = 0;
    for (bool hit = true; hit;) {
        char at[32];
        bench b = {0};
        snprintf(at, sizeof at, "*:%d", ++n);
        hit = test_kill_at(at, begin_step, NULL);
        open_bench(&b);
        CHECK(fl_undo_rates_due(b.undo));
        fl_statedir_remove(b.dir);
        close_bench(&b);
    }
    CHECK(n > 5);
}

static void a_damaged_log_is_refused(void)
{
    bench b = {0};
    fl_mapping *m;
    open_bench(&b);
    fl_undo_begin(b.undo, &(fl_undo_task){0});
    CHECK(fl_undo_enter(b.undo, 0));
    CHECK_OK(fl_undo_add(b.undo, 9, 5, b.x[0], 8)); /* there is no space 9 */
    fl_undo_arm(b.undo, 0);
    CHECK_ERR(fl_undo_recover(b.undo, &(fl_spaces){b.dense, find_place}),
              FL_EINVAL, "its log names no memory of the state");
    CHECK_OK(fl_statedir_make(b.dir, "slots", 10, &m));
    fl_mapping_unref(m);
    fl_statedir_remove(b.dir);
    close_bench(&b);
}

static void a_state_of_other_variables_is_refused(void)
{
    bench b = {0};
    open_bench(&b);
    close_bench(&b);
    fl_statedir *d = test_state();
    fl_dense *dense = fl_dense_new();
    fl_dense_add(dense, "y0", 8);
    CHECK_ERR(fl_dense_map(dense, d), FL_EINVAL,
              "it goes on with \"x0 at 0, 2240 bytes\", expected \"y0 at 0");
    fl_dense_free(dense);
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

/* --- images --- */

static void save_images(void *arg)
{
    fl_control *c;
    char a[400], b[100];
    fl_statedir *d = test_state();
    CHECK_OK(fl_control_new(d, 0, &c));
    fl_statedir_ready(d);
    for (int i = 1; i < 6; i++) {
        memset(a, i, sizeof a);
        memset(b, i, sizeof b);
        CHECK_OK(fl_control_save(
            c, &(fl_control_image){{a, b}, {sizeof a, sizeof b}}));
    }
    fl_control_free(c);
    fl_statedir_close(d);
}

static void an_image_is_the_old_one_or_the_new_one(void)
{
    for (int n = 1; n <= 11; n++) {
        char at[32];
        fl_control *c;
        fl_control_image image;
        snprintf(at, sizeof at, "*:%d", n);
        CHECK(test_kill_at(at, save_images, NULL) == (n < 11));
        fl_statedir *d = test_state();
        CHECK_OK(fl_control_new(d, 0, &c));
        CHECK_OK(fl_control_load(c, &image));
        const char *a = image.at[0], *b = image.at[1];
        CHECK_INT((int64_t)image.n[0], n > 1 ? 400 : 0);
        for (int i = 0; n > 1 && i < 100; i++)
            CHECK(a[i] == n / 2 && a[i + 300] == n / 2 && b[i] == n / 2);
        if (n == 11) {
            ((char *)image.at[1])[50]++;
            CHECK_ERR(fl_control_load(c, &image), FL_EINVAL, "is damaged");
        }
        fl_control_free(c);
        fl_statedir_remove(d);
        fl_statedir_close(d);
    }
}

const fl_test fl_tests[] = {
    {"a task that is killed at any store gives the same bits",
     a_kill_at_any_store_gives_the_same_bits},
    {"learning rates are due after any kill between two steps",
     rates_are_due_after_any_kill_in_between},
    {"an undo log that is damaged is refused", a_damaged_log_is_refused},
    {"a state of other variables is refused",
     a_state_of_other_variables_is_refused},
    {"an image of the machines is the old one or the new one",
     an_image_is_the_old_one_or_the_new_one},
    {0},
};
