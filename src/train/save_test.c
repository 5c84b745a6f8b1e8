/* SPDX-License-Identifier: Apache-2.0 */
#include "train/save.h"

#include "base/memdisk.h"
#include "exec/test_exec.h"
#include "tensor/file.h"
#include "trainer/test_job.h"

enum {
    ROWS = 7, /* rows on the servers */
    WIDTH = 2,
    SERVERS = 2
};

static const int64_t vast = INT64_C(1000000000000);

/* A trainer of a job whose table "t" has rows by id. Element i of row r is
 * 10 r + i. */
typedef struct scene {
    test_job job;
    fl_piece kept[SERVERS];
    fl_program *program;
    fl_memdisk *memory;
    const fl_disk *disk;
    fl_saver saver;
} scene;

static void fill(test_job *j, int server)
{
    test_job_var(j, server, "t", ROWS, WIDTH, 0);
    float *x = test_find(&j->server[server], "t", 1)->value.data;
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(i / WIDTH * 10 + i % WIDTH);
}

static void open_scene(scene *s, int64_t rows)
{
    fl_str text = {0};
    *s = (scene){.memory = fl_memdisk_new()};
    s->disk = fl_memdisk_disk(s->memory);
    test_job_begin(&s->job, SERVERS, 1, true);
    for (int i = 0; i < SERVERS; i++) {
        fill(&s->job, i);
        s->kept[i] = (fl_piece){"t", "t", i, FL_BY_ID, {2, {rows, WIDTH}}};
    }
    s->job.place.pieces = s->kept;
    s->job.place.n_pieces = SERVERS;
    fl_str_printf(&text, "block 0\n  param t: f32[%lld,%d]\n", (long long)rows,
                  WIDTH);
    CHECK_OK(fl_program_parse(fl_check_registry(), text.at, &s->program));
    fl_str_fini(&text);
    s->saver = (fl_saver){.place = &s->job.place, .scope = fl_scope_new()};
    CHECK_OK(fl_trainer_new(&s->job.place, NULL, &s->saver.trainer));
}

static void close_scene(scene *s)
{
    CHECK_OK(fl_trainer_leave(s->saver.trainer, NULL, 0, NULL, 0));
    fl_trainer_free(s->saver.trainer);
    fl_scope_free(s->saver.scope);
    fl_program_free(s->program);
    fl_memdisk_free(s->memory);
    test_job_end(&s->job);
}

static fl_err save(scene *s)
{
    fl_stage stage;
    fl_err err = fl_stage_init(&stage, s->disk, "d", "model");
    s->saver.stage = &stage;
    if (!err)
        err = fl_saver_save(&s->saver, s->program, NULL, -1, NULL);
    if (!err)
        err = fl_stage_commit(&stage);
    fl_stage_fini(&stage);
    return err;
}

static fl_value saved(scene *s, fl_kind kind)
{
    fl_value v = {.kind = kind};
    CHECK_OK(fl_values_load(s->disk, "d/t", 1, (fl_value *[]){&v}));
    return v;
}

/* The number of files without the manifest. */
static int64_t files(scene *s)
{
    fl_file_names names = {0};
    CHECK_OK(s->disk->list(s->disk, "d", &names));
    int64_t n = 0;
    for (int64_t i = 0; i < names.n; i++)
        n += strcmp(names.at[i], FL_MANIFEST) != 0;
    fl_file_names_fini(&names);
    return n;
}

static void a_table_is_saved_whole(void)
{
    scene s;
    open_scene(&s, ROWS);
    CHECK_OK(save(&s));
    fl_value v = saved(&s, FL_LOD_TENSOR);
    CHECK(fl_shape_equal(&v.tensor.shape, &(fl_shape){2, {ROWS, WIDTH}}));
    const float *x = v.tensor.data;
    for (int64_t i = 0; i < ROWS * WIDTH; i++)
        CHECK_NEAR(x[i], i / WIDTH * 10 + i % WIDTH, 0);
    CHECK_INT(files(&s), 1);
    fl_value_fini(&v);
    close_scene(&s);
}

static void a_vast_table_is_saved_as_its_rows(void)
{
    scene s;
    bool seen[ROWS] = {false};
    open_scene(&s, vast);
    CHECK_OK(save(&s));
    fl_value v = saved(&s, FL_SELECTED_ROWS);
    CHECK_INT(v.rows.n, ROWS);
    CHECK(v.rows.height == vast);
    const int64_t *id = fl_rows_index(&v.rows);
    const float *x = v.rows.value.data;
    const uint64_t key = fl_table_key(s.job.place.tables);
    for (int64_t i = 0; i < ROWS; i++) {
        CHECK(!i ||
              fl_table_order(key, id[i - 1]) < fl_table_order(key, id[i]));
        CHECK(!seen[id[i]]);
        seen[id[i]] = true;
        CHECK_NEAR(x[i * WIDTH], id[i] * 10, 0);
        CHECK_NEAR(x[i * WIDTH + 1], id[i] * 10 + 1, 0);
    }
    CHECK_INT(files(&s), 1); /* the temporary list is removed */
    fl_value_fini(&v);
    close_scene(&s);
}

static void rows_that_are_listed_twice_are_refused(void)
{
    scene s;
    open_scene(&s, vast);
    s.job.server[1].lists_all = true;
    CHECK_OK(fl_disk_write(s.disk, "d/t", "old", 3, false));
    CHECK_ERR(save(&s), FL_EPROTO, "which is the wrong order");
    CHECK_INT(files(&s), 1);
    fl_str old = {0};
    CHECK_OK(s.disk->read(s.disk, "d/t", 100, &old));
    CHECK_STR(old.at, "old");
    fl_str_fini(&old);
    close_scene(&s);
}

/* The disk fails at the k-th operation and all later ones, for every k. */
static void a_disk_that_fails_leaves_the_old_file_or_the_new(void)
{
    const int64_t sizes[] = {ROWS, vast};
    for (int k = 0; k < 2; k++) {
        scene s;
        fl_err err = FL_EIO;
        open_scene(&s, sizes[k]);
        for (int64_t n = 0; err; n++) {
            fl_str bytes = {0};
            CHECK_OK(fl_disk_write(s.disk, "d/t", "old", 3, true));
            (void)!s.disk->remove(s.disk, "d/__manifest__");
            fl_memdisk_fail_after(s.memory, n);
            err = save(&s);
            fl_memdisk_fail_after(s.memory, -1);
            CHECK_OK(fl_file_read(s.disk, "d/t", 1000, &bytes));
            CHECK(err || bytes.n > 3);
            fl_str_fini(&bytes);
            CHECK(n < 100);
        }
        CHECK_OK(save(&s)); /* removes what failed saves left */
        CHECK_INT(files(&s), 1);
        close_scene(&s);
    }
}

const fl_test fl_tests[] = {
    {"a table is saved whole", a_table_is_saved_whole},
    {"a vast table is saved as its rows", a_vast_table_is_saved_as_its_rows},
    {"rows that are listed twice are refused",
     rows_that_are_listed_twice_are_refused},
    {"a disk that fails leaves the old file or the new",
     a_disk_that_fails_leaves_the_old_file_or_the_new},
    {0},
};
