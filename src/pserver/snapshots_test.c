/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/snapshots.h"

#include "base/memdisk.h"
#include "base/test.h"

#include <stdlib.h>

static const fl_job job = {.id = {1, 2}, .servers = 1, .trainers = 1};
static const fl_placement place = {.n_servers = 1, .trainers = 1};

/* Snapshot `number` of this launch, without values. */
static void write_snapshot(const fl_snapshots *s, int64_t number)
{
    const fl_snapshot_index index = {.servers = 1, .number = number};
    const fl_coord_moment of = {.number = number, .image = "x", .n = 1};
    fl_stage to;
    CHECK_OK(fl_snapshot_begin(&to, s->disk, s->dir, &index));
    CHECK_OK(fl_snapshot_end(&to, &index));
    fl_stage_fini(&to);
    CHECK(fl_snapshots_commit(s, &of, &job, 5) > 0);
}

/* The snapshot that a process begins with; 0: none. */
static int64_t begin(const fl_disk *disk, const char *launch, int64_t *next)
{
    fl_snapshots s = {.disk = disk, .dir = "snap"};
    setenv("FLUID_JOB", launch, 1);
    CHECK_OK(fl_snapshots_choose(&s, &place, &job));
    const int64_t number = s.restore ? fl_restore_job(s.restore)->number : 0;
    *next = s.generation;
    fl_snapshots_fini(&s);
    return number;
}

/* Server 0 of a job that was resumed has lost its state: trainers that had
 * completed are not started again. */
static void a_resumed_job_begins_anew_once(void)
{
    fl_memdisk *m = fl_memdisk_new();
    fl_snapshots s = {.disk = fl_memdisk_disk(m), .dir = "snap"};
    setenv("FLUID_RESTORE", "1", 1);
    setenv("FLUID_JOB", "1.1", 1);
    write_snapshot(&s, 1);
    CHECK_OK(fl_snapshots_choose(&s, &place, &job));
    CHECK(!s.anew);
    fl_snapshots_fini(&s);
    setenv("FLUID_JOB", "2.2", 1);
    CHECK_OK(fl_snapshots_choose(&s, &place, &job));
    CHECK(s.anew);
    fl_snapshots_fini(&s);
    unsetenv("FLUID_RESTORE");
    unsetenv("FLUID_JOB");
    fl_memdisk_free(m);
}

/* Server 0 of launch 1.1 was killed while it went back to the older one. */
static void a_mark_is_of_one_launch(void)
{
    fl_memdisk *m = fl_memdisk_new();
    fl_snapshots s = {.disk = fl_memdisk_disk(m), .dir = "snap"};
    int64_t generation;
    setenv("FLUID_JOB", "1.1", 1);
    write_snapshot(&s, 1);
    write_snapshot(&s, 2);
    s.back = 1;
    s.generation = 7;
    fl_snapshots_leave(&s, &job);
    CHECK_INT(begin(s.disk, "1.1", &generation), 1);
    CHECK_INT(generation, 7);
    CHECK_INT(begin(s.disk, "1.12", &generation), 0);
    CHECK_INT(generation, 0);
    setenv("FLUID_RESTORE", "1", 1);
    CHECK_INT(begin(s.disk, "2.2", &generation), 2);
    CHECK_INT(generation, 1);
    unsetenv("FLUID_RESTORE");
    unsetenv("FLUID_JOB");
    fl_memdisk_free(m);
}

const fl_test fl_tests[] = {
    {"a resumed job begins anew once", a_resumed_job_begins_anew_once},
    {"a mark of a job that goes back is of one launch",
     a_mark_is_of_one_launch},
    {0},
};
