/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/capture.h"

#include "base/memdisk.h"
#include "base/test.h"

enum {
    WIDTH = 2 /* floats of a row */
};

/* A table, and a snapshot of it. One thread is owner and writer: the owner
 * serves the writer where the writer asks it to. */
typedef struct scene {
    fl_memdisk *disk;
    fl_table *table;
    fl_capture *capture;
    fl_snapshot_index index;
} scene;

static void open_scene(scene *s)
{
    *s = (scene){.disk = fl_memdisk_new()};
    CHECK_OK(fl_table_new(
        &(fl_table_opts){.name = "t", .dtype = FL_F32, .width = WIDTH},
        &s->table));
    s->capture = fl_capture_new(1, 1 << 20);
    fl_capture_add_table(s->capture, 0, s->table, "t");
    s->index = (fl_snapshot_index){.servers = 1, .number = 1};
}

static void close_scene(scene *s)
{
    fl_snapshot_index_fini(&s->index);
    fl_capture_free(s->capture);
    fl_table_free(s->table);
    fl_memdisk_free(s->disk);
}

/* Give n rows that value. */
static void set_rows(scene *s, int64_t n, const int64_t *id, float value)
{
    fl_tensor rows = {0};
    CHECK_OK(fl_tensor_resize(&rows, FL_F32, &(fl_shape){2, {n, WIDTH}}));
    for (int64_t i = 0; i < n * WIDTH; i++)
        ((float *)rows.data)[i] = value;
    CHECK_OK(fl_table_load(s->table, FL_TABLE_VALUE, n, id, &rows));
    fl_tensor_fini(&rows);
}

/* The same after the moment of the snapshot. */
static void change_rows(scene *s, int64_t n, const int64_t *id, float value)
{
    fl_capture_rows(s->capture, 0, s->table, n, id);
    set_rows(s, n, id, value);
}

static void poke_owner(void *user, int owner)
{
    fl_capture_serve(((scene *)user)->capture, owner);
}

/* Write the snapshot, and read its rows again. The number of rows. */
static int64_t write_all(scene *s, char *bytes, size_t size)
{
    const fl_disk *d = fl_memdisk_disk(s->disk);
    fl_stage to;
    fl_snapshot_part part;
    CHECK_OK(fl_snapshot_begin(&to, d, "snap", &s->index));
    CHECK_OK(fl_capture_write(s->capture, &to, &s->index, poke_owner, s));
    CHECK_OK(fl_snapshot_end(&to, &s->index));
    fl_stage_fini(&to);
    CHECK_OK(fl_snapshot_part_init(&part, d, "snap", 1, 0));
    CHECK_INT(part.index.table.n, 1);
    const fl_snapshot_table *t = &part.index.table.at[0];
    const size_t n = (size_t)t->rows * (sizeof(int64_t) + (size_t)t->row);
    CHECK(n <= size);
    CHECK_OK(d->read_at(part.data, t->at, bytes, n));
    const int64_t rows = t->rows;
    fl_snapshot_part_fini(&part);
    return rows;
}

static void an_empty_table_has_an_end(void)
{
    scene s;
    char bytes[64];
    open_scene(&s);
    CHECK(fl_capture_enter(s.capture, 0));
    CHECK_INT(write_all(&s, bytes, sizeof bytes), 0);
    close_scene(&s);
}

static void rows_are_written_as_they_were(void)
{
    scene s;
    char bytes[256];
    open_scene(&s);
    set_rows(&s, 3, (int64_t[]){3, 4, 5}, 1);
    CHECK(fl_capture_enter(s.capture, 0));
    change_rows(&s, 2, (int64_t[]){4, 6}, 2);
    CHECK_INT(write_all(&s, bytes, sizeof bytes), 3);
    for (int i = 0; i < 3; i++) {
        const size_t one = sizeof(int64_t) + WIDTH * sizeof(float);
        int64_t id;
        float value;
        memcpy(&id, bytes + (size_t)i * one, sizeof id);
        memcpy(&value, bytes + (size_t)i * one + sizeof id, sizeof value);
        CHECK(id >= 3 && id <= 5 && value == 1);
    }
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"an empty table has an end", an_empty_table_has_an_end},
    {"rows are written as they were", rows_are_written_as_they_were},
    {0},
};
