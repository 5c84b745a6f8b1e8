/* SPDX-License-Identifier: Apache-2.0 */
/* A table that outlives its process, killed at each of its stores in turn. */
#include "check/check.h"
#include "state/test_state.h"
#include "table/table.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 10,
    IDS = 24,         /* of a task */
    TASKS = 3,        /* the second and third add rows to those of the others */
    BUCKET = 45 * 64, /* bytes: the head, and 31 rows of 88 */
    COUNT_AT = 62,    /* where its head has the number of its rows */
};

/* Everything that is opened to work on a state. */
typedef struct shelf {
    fl_statedir *dir;
    fl_extents *extents;
    fl_undo *undo;
    fl_table *table;
} shelf;

static void *find_place(void *self, uint32_t space, uint64_t offset,
                        size_t bytes)
{
    return space ? fl_extents_place(self, space, offset, bytes) : NULL;
}

static void open_shelf(shelf *s)
{
    const fl_op_def *def;
    CHECK_OK(fl_registry_get(fl_check_registry(), "adagrad", &def));
    s->dir = test_state();
    s->extents = fl_extents_new(s->dir);
    CHECK_OK(fl_undo_new(s->dir, 0, &s->undo));
    CHECK_OK(fl_table_new(
        &(fl_table_opts){.name = "emb",
                         .dtype = FL_F32,
                         .width = WIDTH,
                         .rule = def->rule,
                         .start = {FL_START_UNIFORM, -1, 1, .seed = 7},
                         .dir = s->dir,
                         .extents = s->extents},
        &s->table));
    CHECK_OK(fl_undo_recover(s->undo, &(fl_spaces){s->extents, find_place}));
    fl_extents_sweep(s->extents);
    if (!fl_statedir_found(s->dir))
        fl_statedir_ready(s->dir);
}

static void close_shelf(shelf *s)
{
    fl_table_free(s->table);
    fl_undo_free(s->undo);
    fl_extents_free(s->extents);
    fl_statedir_close(s->dir);
}

/* Task k updates ids from 12 k on: half of them are of the task before. */
static void run_task(shelf *s, int64_t k)
{
    int64_t id[IDS];
    float grad[IDS][WIDTH];
    for (int64_t i = 0; i < IDS; i++) {
        id[i] = (int64_t)((uint64_t)(k * IDS / 2 + i) *
                          UINT64_C(0x9e3779b97f4a7c15));
        for (int j = 0; j < WIDTH; j++)
            grad[i][j] = (float)((i * 7 + j * 3 + k) % 11) - 5;
    }
    fl_undo_begin(s->undo, &(fl_undo_task){0});
    if (fl_undo_enter(s->undo, 0)) {
        CHECK_OK(fl_table_apply(s->table, IDS, id, grad,
                                &(fl_hyper){.lr = 0.1, .epsilon = 1e-6},
                                s->undo));
        fl_undo_leave(s->undo, 0);
    }
    fl_undo_finish(s->undo);
}

static void run_all(void *arg)
{
    shelf s = {0};
    open_shelf(&s);
    while (fl_undo_done(s.undo) < TASKS)
        run_task(&s, fl_undo_done(s.undo));
    close_shelf(&s);
}

static void count_extent(void *user, const char *name)
{
    *(int *)user += !strncmp(name, "extent-", 7);
}

/* All rows as bytes. The state is removed. */
static void take_rows(fl_str *out)
{
    shelf s = {0};
    fl_tensor id = {0}, rows = {0};
    fl_table_cursor from = {0};
    int extents = 0;
    open_shelf(&s);
    CHECK_INT(fl_undo_done(s.undo), TASKS);
    CHECK_OK(fl_table_scan(s.table, &from, 1000, &id, &rows));
    CHECK_INT(id.shape.dim[0], fl_table_rows(s.table));
    fl_str_bytes(out, id.data, fl_tensor_bytes(&id));
    fl_str_bytes(out, rows.data, fl_tensor_bytes(&rows));
    fl_statedir_visit(s.dir, count_extent, &extents);
    CHECK_INT(extents, 1); /* memory of smaller segments is gone */
    fl_tensor_fini(&id);
    fl_tensor_fini(&rows);
    fl_statedir_remove(s.dir);
    close_shelf(&s);
}

static void a_kill_at_any_store_gives_the_same_rows(void)
{
    fl_str calm = {0};
    CHECK(!test_kill_at(NULL, run_all, NULL));
    take_rows(&calm);
    CHECK_INT((int64_t)calm.n, IDS * 2 * (8 + 2 * WIDTH * 4));
    for (int n = 1, hit = 1; hit; n++) {
        char first[32], second[32];
        fl_str torn = {0};
        snprintf(first, sizeof first, "*:%d", n);
        snprintf(second, sizeof second, "*:%d", 1 + n * 5 % 17);
        hit = test_kill_at(first, run_all, NULL);
        if (n % 3 == 0)
            test_kill_at(second, run_all, NULL);
        CHECK(!test_kill_at(NULL, run_all, NULL));
        take_rows(&torn);
        CHECK_INT((int64_t)torn.n, (int64_t)calm.n);
        CHECK(!memcmp(torn.at, calm.at, calm.n));
        fl_str_fini(&torn);
    }
    fl_str_fini(&calm);
}

static void a_table_of_other_rows_is_refused(void)
{
    shelf s = {0};
    fl_table *t;
    CHECK(!test_kill_at(NULL, run_all, NULL));
    open_shelf(&s);
    CHECK_ERR(fl_table_new(&(fl_table_opts){.name = "emb",
                                            .dtype = FL_F32,
                                            .width = WIDTH + 1,
                                            .dir = s.dir,
                                            .extents = s.extents},
                           &t),
              FL_EINVAL, "its rows have another layout");
    fl_statedir_remove(s.dir);
    close_shelf(&s);
}

/* The name of the only extent. */
static void take_name(void *user, const char *name)
{
    if (!strncmp(name, "extent-", 7))
        snprintf(user, 32, "%s", name);
}

/* A search ends at a bucket that has room: there must be one. */
static void a_segment_without_room_is_refused(void)
{
    const uint16_t all = 31;
    char name[32] = "";
    fl_mapping *m;
    fl_table *t;
    CHECK(!test_kill_at(NULL, run_all, NULL));
    fl_statedir *d = test_state();
    fl_statedir_visit(d, take_name, name);
    CHECK_OK(fl_statedir_map(d, name, BUCKET, 0, &m));
    char *at = fl_mapping_at(m);
    for (size_t i = 0; i + BUCKET <= fl_mapping_size(m); i += BUCKET)
        memcpy(at + i + COUNT_AT, &all, sizeof all);
    fl_extents *extents = fl_extents_new(d);
    CHECK_ERR(fl_table_new(&(fl_table_opts){.name = "emb",
                                            .dtype = FL_F32,
                                            .width = 2 * WIDTH,
                                            .dir = d,
                                            .extents = extents},
                           &t),
              FL_EINVAL, "a segment has no room");
    fl_extents_free(extents);
    fl_mapping_unref(m);
    fl_statedir_remove(d);
    fl_statedir_close(d);
}

const fl_test fl_tests[] = {
    {"a table that is killed at any store has the same rows",
     a_kill_at_any_store_gives_the_same_rows},
    {"a table of other rows is refused", a_table_of_other_rows_is_refused},
    {"a segment without room is refused", a_segment_without_room_is_refused},
    {0},
};
