/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/history.h"

#include "protocol/test_talk.h"

/* The history of a job with two servers, and its clock. */
typedef struct scene {
    fl_job job;
    fl_outbox out;
    fl_history *h;
    int64_t now;
} scene;

static void open_scene(scene *s)
{
    *s = (scene){.job = fl_job_defaults((fl_job){.id = job_id, .servers = 2}),
                 .now = FL_SEC};
    fl_outbox_init(&s->out);
    s->out.state = (fl_state){77, 1};
    s->h = fl_history_new(&s->job, &s->out);
}

static void close_scene(scene *s)
{
    fl_history_free(s->h);
    fl_outbox_fini(&s->out);
}

static bool is_written(const scene *s)
{
    int64_t version;
    const fl_str *image;
    return fl_history_written(s->h, &version, &image);
}

/* Snapshots 3, 4 and 7 of state 5, which had begun with 4 of state 2; snapshot
 * 6 is of another run. This state, 77, has begun with 7. */
static void find_snapshots(scene *s)
{
    static const fl_history_origin found[] = {{3, 5, true}, {4, 2, true},
                                              {4, 5},       {6, 6, true},
                                              {7, 77},      {7, 5, true}};
    fl_history_open(s->h, FL_SEC, 7, found, 6, s->now);
}

static void comes_due_after_its_time(void)
{
    scene s;
    open_scene(&s);
    CHECK(!fl_history_due(s.h, INT64_MAX)); /* none are taken */
    fl_history_open(s.h, 5 * FL_SEC, 6, NULL, 0, s.now);
    CHECK(!fl_history_due(s.h, s.now + 5 * FL_SEC - 1));
    s.now += 5 * FL_SEC;
    CHECK(fl_history_due(s.h, s.now));
    CHECK_INT(fl_history_writing(s.h), 0);
    fl_history_begin(s.h, 40, s.now);
    CHECK_INT(fl_history_writing(s.h), 7);
    CHECK(!fl_history_due(s.h, s.now + 5 * FL_SEC)); /* it is being written */
    fl_history_committed(s.h, 7, 7);
    CHECK_INT(fl_history_writing(s.h), 0);
    CHECK(fl_history_due(s.h, s.now + 5 * FL_SEC));
    close_scene(&s);
}

static void is_written_by_all_servers(void)
{
    scene s;
    int64_t version = 0;
    const fl_str *image = NULL;
    open_scene(&s);
    fl_history_open(s.h, FL_SEC, 0, NULL, 0, s.now);
    CHECK(!is_written(&s));
    fl_str_add(fl_history_begin(s.h, 40, s.now), "ranks");
    fl_history_wrote(s.h, 0, 1);
    CHECK(!is_written(&s));
    fl_history_wrote(s.h, 1, 1);
    fl_history_wrote(s.h, 1, 0); /* a message that was overtaken */
    CHECK(fl_history_written(s.h, &version, &image));
    CHECK_INT(version, 40);
    CHECK_STR(image->at, "ranks");
    CHECK_INT((int64_t)fl_history_begin(s.h, 50, s.now)->n, 0);
    CHECK_INT(s.out.note.n, 0);
    CHECK(!is_written(&s));
    close_scene(&s);
}

static void names_servers_that_are_late(void)
{
    scene s;
    open_scene(&s);
    fl_history_open(s.h, FL_SEC, 0, NULL, 0, s.now);
    fl_history_begin(s.h, 0, s.now);
    fl_history_wrote(s.h, 0, 1);
    CHECK(!fl_history_due(s.h, s.now + s.job.reach - 1));
    s.now += s.job.reach;
    CHECK(fl_history_due(s.h, s.now));
    fl_history_begin(s.h, 0, s.now);
    CHECK_INT(fl_history_writing(s.h), 2);
    CHECK_INT(s.out.note.n, 1);
    CHECK_STR(s.out.note.at[0],
              "snapshot 1 is given up: server 1 has not written it");
    fl_history_committed(s.h, 1, 0); /* too late */
    CHECK_INT(fl_history_writing(s.h), 2);
    CHECK_INT(fl_history_newest(s.h, 77), 0);
    close_scene(&s);
}

static void knows_the_older_one_of_its_run(void)
{
    const fl_history_origin at[] = {{3, 5, true}, {4, 2, true}, {4, 5},
                                    {6, 6, true}, {7, 77},      {7, 5, true}};
    CHECK_INT(fl_history_older(at, 6, 7), 4);
    CHECK_INT(fl_history_older(at, 6, 4), 0);
    CHECK_INT(fl_history_older(at, 6, 6), 0);
    CHECK_INT(fl_history_older(at, 6, 5), 0); /* no such snapshot */
}

static void goes_back_to_the_newest(void)
{
    scene s;
    open_scene(&s);
    find_snapshots(&s);
    CHECK_INT(fl_history_newest(s.h, 0), 0);
    CHECK_INT(fl_history_newest(s.h, 8), 0);
    CHECK_INT(fl_history_newest(s.h, 6), 6);
    CHECK_INT(fl_history_newest(s.h, 5), 6); /* the first answer counts */
    CHECK_INT(fl_history_rewinds(s.h), 0);
    fl_history_go_back(s.h, 1, 4);
    CHECK_INT(fl_history_rewinds(s.h), 6);
    CHECK_INT(fl_history_next_generation(s.h), 5);
    CHECK_STR(s.out.note.at[0],
              "server 1 was started again and has lost its parameters: the "
              "job goes back to snapshot 6");
    fl_history_go_back(s.h, 0, 9); /* it is on its way already */
    CHECK_INT(fl_history_next_generation(s.h), 5);
    CHECK_INT(s.out.note.n, 1);
    close_scene(&s);
}

static void goes_further_back_past_damage(void)
{
    scene s;
    open_scene(&s);
    s.out.generation = 1;
    fl_history_rewind(s.h, 7);
    find_snapshots(&s);
    CHECK_INT(fl_history_base(s.h), 7);
    CHECK(fl_history_go_further(s.h, 1, 7, "a flaw"));
    CHECK_INT(fl_history_rewinds(s.h), 4);
    CHECK_INT(fl_history_next_generation(s.h), 2);
    CHECK_INT(fl_history_damaged(s.h), 7);
    CHECK_STR(s.out.note.at[0], "server 1 cannot restore snapshot 7: a flaw; "
                                "the job goes back to snapshot 4");
    CHECK(!fl_history_go_further(s.h, 0, 4, "no such file"));
    CHECK_INT(fl_history_rewinds(s.h), 0);
    CHECK_INT(fl_history_damaged(s.h), 7);
    CHECK_INT(s.out.note.n, 1);
    close_scene(&s);
}

static void forgets_what_was_removed(void)
{
    scene s;
    open_scene(&s);
    find_snapshots(&s);
    fl_history_committed(s.h, 8, 7); /* state 77 has taken it */
    CHECK_INT(fl_history_newest(s.h, 5), 8);
    fl_history_go_back(s.h, 1, 0);
    CHECK(fl_history_go_further(s.h, 1, 8, "a flaw"));
    CHECK_INT(fl_history_rewinds(s.h), 7);
    CHECK(!fl_history_go_further(s.h, 1, 7, "a flaw")); /* 4 was removed */
    close_scene(&s);
}

static void keeps_its_numbers_over_a_restart(void)
{
    scene s, next;
    fl_str bytes = {0};
    fl_image im;
    open_scene(&s);
    fl_history_rewind(s.h, 3);
    fl_history_open(s.h, FL_SEC, 7, NULL, 0, s.now);
    fl_history_begin(s.h, 0, s.now);
    im = fl_image_begin(&bytes, FL_IMAGE_COORD, &s.job, 0);
    fl_history_visit(s.h, &im);
    fl_image_finish(&im);
    open_scene(&next);
    CHECK_OK(
        fl_image_open(&im, bytes.at, bytes.n, FL_IMAGE_COORD, &next.job, 0));
    fl_history_visit(next.h, &im);
    CHECK_OK(fl_image_check(&im));
    CHECK_INT(fl_history_base(next.h), 3);
    CHECK_INT(fl_history_newest(next.h, 0), 3);
    CHECK_INT(fl_history_writing(next.h), 0);
    fl_history_begin(next.h, 0, next.now);
    CHECK_INT(fl_history_writing(next.h), 9); /* no number is given twice */
    fl_str_fini(&bytes);
    close_scene(&next);
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"a snapshot is due after its time", comes_due_after_its_time},
    {"a snapshot is written when all servers have it",
     is_written_by_all_servers},
    {"a snapshot that is given up names its late servers",
     names_servers_that_are_late},
    {"an older snapshot is of the same run", knows_the_older_one_of_its_run},
    {"a job goes back to the newest snapshot", goes_back_to_the_newest},
    {"a job goes further back past damage", goes_further_back_past_damage},
    {"a history forgets what was removed", forgets_what_was_removed},
    {"a history keeps its numbers over a restart",
     keeps_its_numbers_over_a_restart},
    {0},
};
