/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/members.h"

#include "protocol/test_talk.h"

/* The ranks of a job, and their clock. */
typedef struct scene {
    fl_job job;
    fl_members *m;
    int64_t now, view;
} scene;

static void open_scene(scene *s, fl_job job)
{
    job.id = job_id;
    *s = (scene){.job = fl_job_defaults(job), .now = FL_SEC};
    s->m = fl_members_new(&s->job, s->now);
}

static void close_scene(scene *s)
{
    fl_members_free(s->m);
}

/* Session n gets the rank, with its explicit id. */
static void grant(scene *s, int rank, uint64_t n)
{
    fl_members_grant(s->m, (fl_member){rank, session(n), ++s->view}, true,
                     "host:1", s->now);
}

static void lose(scene *s, int rank, fl_left why)
{
    fl_members_lose(s->m, rank, why, ++s->view, s->now);
    fl_members_blame(s->m, rank, 3, "a fault");
}

/* Sessions 1 .. n hold ranks 0 .. n - 1. */
static void grant_all(scene *s)
{
    for (int i = 0; i < s->job.trainers; i++)
        grant(s, i, (uint64_t)i + 1);
}

static fl_rank_state state_of(const scene *s, int rank)
{
    return fl_members_get(s->m, rank)->state;
}

/* --- sessions --- */

static void go_from_holder_to_holder(void)
{
    scene s;
    fl_member member[2];
    fl_leave left[2];
    open_scene(&s, (fl_job){.trainers = 2});
    CHECK_INT(fl_members_count(s.m, FL_RANK_FRESH), 2);
    grant(&s, 1, 5);
    CHECK(!fl_members_all_came(s.m));
    CHECK_INT(fl_members_find(s.m, session(5))->rank, 1);
    CHECK_INT(fl_members_list(s.m, member), 1);
    CHECK_INT(member[0].rank, 1);
    CHECK_INT(member[0].g, 1);
    CHECK_INT(fl_members_list_left(s.m, s.now, left), 0);
    lose(&s, 1, FL_LEFT_LEASE);
    CHECK_INT(state_of(&s, 1), FL_RANK_LOST);
    CHECK(!fl_members_find(s.m, session(5)));
    CHECK_INT(fl_members_last_held(s.m, session(5))->rank, 1);
    CHECK_INT(fl_members_list_left(s.m, s.now + 7, left), 1);
    CHECK_INT(left[0].view, 2);
    CHECK_INT(left[0].ago, 7);
    grant(&s, 1, 6);
    CHECK_INT(fl_members_find(s.m, session(6))->g, 3);
    CHECK(!fl_members_last_held(s.m, session(5)));
    close_scene(&s);
}

static void remember_sessions_that_are_over(void)
{
    scene s;
    fl_leave leave;
    open_scene(&s, (fl_job){.trainers = 1});
    grant(&s, 0, 1);
    CHECK(!fl_members_past(s.m, session(1), s.now, &leave));
    lose(&s, 0, FL_LEFT_CALL);
    grant(&s, 0, 2);
    CHECK_INT(fl_members_count_past(s.m), 1);
    CHECK(fl_members_past(s.m, session(1), s.now + FL_SEC, &leave));
    CHECK_INT(leave.why, FL_LEFT_CALL);
    CHECK_INT(leave.rank, 0);
    CHECK_INT(leave.ago, FL_SEC);
    close_scene(&s);
}

static void complete_also_after_a_loss(void)
{
    scene s;
    fl_leave leave;
    open_scene(&s, (fl_job){.trainers = 2});
    grant_all(&s);
    fl_members_complete(s.m, 0, ++s.view, s.now);
    CHECK_INT(state_of(&s, 0), FL_RANK_DONE);
    lose(&s, 1, FL_LEFT_LEASE);
    fl_members_complete(s.m, 1, s.view + 1, s.now);
    CHECK_INT(fl_members_count(s.m, FL_RANK_DONE), 2);
    CHECK(!fl_members_last_held(s.m, session(2)));
    CHECK(fl_members_past(s.m, session(2), s.now, &leave));
    CHECK_INT(leave.why, FL_LEFT_DONE);
    CHECK_INT(leave.view, s.view); /* as it was when it was lost */
    CHECK_INT(fl_members_count_past(s.m), 2);
    close_scene(&s);
}

static void are_kept_for_their_explicit_ids(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2, .rejoin = 30 * FL_SEC});
    grant(&s, 0, 1);
    CHECK_INT(fl_members_any_free(s.m, s.now)->rank, 1);
    grant(&s, 1, 2);
    CHECK(!fl_members_any_free(s.m, s.now));
    lose(&s, 0, FL_LEFT_LEASE);
    CHECK(!fl_members_any_free(s.m, s.now + 30 * FL_SEC - 1));
    CHECK_INT(fl_members_any_free(s.m, s.now + 30 * FL_SEC)->rank, 0);
    CHECK(fl_members_may_go_on(s.m, s.now + 30 * FL_SEC)); /* rank 1 is held */
    lose(&s, 1, FL_LEFT_LEASE);
    CHECK(!fl_members_may_go_on(s.m, s.now + 30 * FL_SEC));
    close_scene(&s);
}

static void know_the_first_failure(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 3, .start = 600 * FL_SEC});
    const int64_t born = s.now;
    grant(&s, 0, 1);
    grant(&s, 1, 2);
    CHECK(!fl_members_first_lost(s.m));
    lose(&s, 1, FL_LEFT_FAILED);
    CHECK_INT(fl_members_deadline(s.m), born + 600 * FL_SEC);
    s.now += FL_SEC;
    lose(&s, 0, FL_LEFT_FAILED);
    const fl_rank *first = fl_members_first_lost(s.m);
    CHECK_INT(first->rank, 1);
    CHECK_INT(first->code, 3);
    CHECK_STR(first->reason, "a fault");
    /* rank 2 may be late; it is not waited for until the start limit */
    CHECK_INT(fl_members_deadline(s.m), s.now + s.job.rejoin);
    close_scene(&s);
}

/* --- leases --- */

static void expire_unless_they_are_renewed(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2, .lease = 10 * FL_SEC});
    grant_all(&s);
    fl_members_renew(s.m, 1, 50, 4, s.now + FL_SEC);
    CHECK_INT((int64_t)fl_members_get(s.m, 1)->echo, 4);
    fl_members_renew(s.m, 1, 50, 3, s.now + FL_SEC); /* it was delayed */
    CHECK_INT((int64_t)fl_members_get(s.m, 1)->echo, 4);
    s.now += 10 * FL_SEC;
    CHECK(!fl_members_find_expired(s.m, s.now - 1));
    CHECK_INT(fl_members_find_expired(s.m, s.now)->rank, 0);
    lose(&s, 0, FL_LEFT_LEASE);
    CHECK(!fl_members_find_expired(s.m, s.now));
    fl_members_forgive(s.m, FL_SEC);
    CHECK(!fl_members_find_expired(s.m, s.now + 2 * FL_SEC - 1));
    CHECK_INT(fl_members_find_expired(s.m, s.now + 2 * FL_SEC)->rank, 1);
    close_scene(&s);
}

static void expire_soon_after_their_call_broke(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 1, .broken = FL_SEC});
    grant_all(&s);
    fl_members_renew(s.m, 0, 50, 0, s.now);
    fl_members_hangup(s.m, 51, s.now); /* a call of somebody else */
    CHECK(!fl_members_find_expired(s.m, s.now + FL_SEC));
    fl_members_hangup(s.m, 50, s.now);
    CHECK(fl_members_find_expired(s.m, s.now + FL_SEC)->call_broke);
    fl_members_renew(s.m, 0, 52, 0, s.now);
    CHECK(!fl_members_find_expired(s.m, s.now + FL_SEC));
    close_scene(&s);
}

/* --- rounds --- */

static void meet_when_every_barrier_came(void)
{
    scene s;
    fl_member member[3];
    open_scene(&s, (fl_job){.trainers = 3});
    grant(&s, 0, 1);
    grant(&s, 2, 3);
    CHECK(fl_members_barrier(s.m, 2, 0, NULL, s.now));
    CHECK(!fl_members_barrier(s.m, 2, 0, NULL, s.now)); /* a repeat */
    CHECK(fl_members_barrier(s.m, 0, 0, NULL, s.now));
    CHECK(!fl_members_have_met(s.m, s.now)); /* rank 1 has not come */
    CHECK(fl_members_may_join(s.m));
    grant(&s, 1, 2);
    CHECK(!fl_members_may_join(s.m)); /* the round has a barrier */
    CHECK(!fl_members_have_met(s.m, s.now));
    lose(&s, 1, FL_LEFT_LEASE);
    CHECK(fl_members_have_met(s.m, s.now));
    CHECK_INT(fl_members_close_round(s.m, member), 2);
    CHECK_INT(member[0].rank, 0);
    CHECK_INT(member[1].rank, 2);
    CHECK(!fl_members_have_met(s.m, s.now));
    CHECK(fl_members_may_join(s.m));
    close_scene(&s);
}

static void wait_for_a_lost_rank_once(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){.trainers = 2, .hold = 10 * FL_SEC});
    grant_all(&s);
    fl_members_barrier(s.m, 0, 0, NULL, s.now);
    lose(&s, 1, FL_LEFT_LEASE);
    CHECK(fl_members_awaits(s.m, fl_members_get(s.m, 1), s.now));
    CHECK(!fl_members_have_met(s.m, s.now));
    CHECK(fl_members_are_stalled(s.m, s.now));
    s.now += 4 * FL_SEC;
    fl_members_waits(s.m, 7, s.now, &rows);
    CHECK_STR(rows.at, "coordinator waits for trainer 1 (was host:1): to come "
                       "back for round 7, 4.0 s (limit 10.0 s)\n");
    grant(&s, 1, 3);
    lose(&s, 1, FL_LEFT_LEASE); /* dying again gains no time */
    s.now += 6 * FL_SEC;
    CHECK(!fl_members_awaits(s.m, fl_members_get(s.m, 1), s.now));
    CHECK(fl_members_have_met(s.m, s.now));
    fl_str_fini(&rows);
    close_scene(&s);
}

/* The wait of an earlier round has ended without the rank. */
static void wait_again_in_a_later_round(void)
{
    scene s;
    fl_member member[2];
    open_scene(&s, (fl_job){.trainers = 2, .hold = 10 * FL_SEC});
    grant_all(&s);
    lose(&s, 1, FL_LEFT_LEASE);
    fl_members_barrier(s.m, 0, 0, NULL, s.now);
    s.now += 10 * FL_SEC;
    CHECK(fl_members_have_met(s.m, s.now));
    CHECK_INT(fl_members_close_round(s.m, member), 1);
    s.now += 10 * FL_SEC;
    grant(&s, 1, 3);
    fl_members_barrier(s.m, 0, 0, NULL, s.now);
    lose(&s, 1, FL_LEFT_LEASE);
    CHECK(fl_members_awaits(s.m, fl_members_get(s.m, 1), s.now));
    CHECK(!fl_members_have_met(s.m, s.now));
    s.now += 10 * FL_SEC;
    CHECK(fl_members_have_met(s.m, s.now));
    close_scene(&s);
}

static void count_a_step_with_its_round(void)
{
    scene s;
    fl_member member[2];
    open_scene(&s, (fl_job){.trainers = 2});
    grant_all(&s);
    const fl_rank *a = fl_members_get(s.m, 0), *b = fl_members_get(s.m, 1);
    fl_members_barrier(s.m, 0, 1, "file 3", s.now);
    fl_members_barrier(s.m, 1, 1, "file 4", s.now);
    CHECK_INT(a->step, 0);
    lose(&s, 1, FL_LEFT_LEASE); /* its step does not count */
    CHECK_INT(fl_members_close_round(s.m, member), 1);
    CHECK_INT(a->step, 1);
    CHECK_STR(a->position, "file 3");
    CHECK_INT(b->step, 0);
    CHECK(!b->position);
    close_scene(&s);
}

static void count_steps_at_once_without_rounds(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 1, .async = true});
    grant_all(&s);
    const fl_rank *r = fl_members_get(s.m, 0);
    CHECK(fl_members_barrier(s.m, 0, 1, "file 3", s.now));
    CHECK_INT(r->step, 1);
    CHECK_STR(r->position, "file 3");
    CHECK(!fl_members_barrier(s.m, 0, 1, "file 4", s.now)); /* a repeat */
    CHECK_STR(r->position, "file 3");
    close_scene(&s);
}

static void name_whom_the_start_waits_for(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){.trainers = 2, .start = 60 * FL_SEC});
    grant(&s, 0, 1);
    fl_members_waits(s.m, 0, s.now + FL_SEC, &rows);
    CHECK_STR(rows.at, "coordinator waits for trainer 1: to come, 1.0 s "
                       "(limit 60.0 s)\n");
    fl_str_fini(&rows);
    close_scene(&s);
}

/* --- images --- */

static void write_image(scene *s, fl_str *to)
{
    fl_image im = fl_image_begin(to, FL_IMAGE_COORD, &s->job, 0);
    fl_members_visit(s->m, &im);
    fl_members_visit_past(s->m, &im);
    fl_image_finish(&im);
}

static void outlive_the_process(void)
{
    scene s, next;
    fl_str bytes = {0}, again = {0};
    fl_image im;
    fl_leave leave;
    open_scene(&s, (fl_job){.trainers = 3, .hold = FL_SEC});
    grant(&s, 0, 1);
    grant(&s, 1, 2);
    fl_members_barrier(s.m, 0, 1, "file 3", s.now);
    lose(&s, 1, FL_LEFT_CALL);
    write_image(&s, &bytes);
    open_scene(&next, (fl_job){.trainers = 3, .hold = FL_SEC});
    next.now = 100 * FL_SEC;
    CHECK_OK(
        fl_image_open(&im, bytes.at, bytes.n, FL_IMAGE_COORD, &next.job, 0));
    fl_members_visit(next.m, &im);
    fl_members_visit_past(next.m, &im);
    CHECK_OK(fl_image_check(&im));
    CHECK(fl_members_are_sound(next.m, s.view));
    CHECK(!fl_members_are_sound(next.m, 0)); /* rank 0 has a later view */
    fl_members_restart(next.m, next.now);
    CHECK(fl_members_get(next.m, 0)->barrier);
    CHECK_INT(fl_members_get(next.m, 1)->code, 3);
    CHECK(fl_members_awaits(next.m, fl_members_get(next.m, 1), next.now));
    CHECK(fl_members_past(next.m, session(2), next.now, &leave));
    CHECK_INT(leave.ago, 0);
    CHECK_INT(state_of(&next, 2), FL_RANK_FRESH);
    /* a lease begins anew, and is longer once */
    CHECK(!fl_members_find_expired(next.m, next.now + next.job.lease));
    write_image(&next, &again);
    CHECK_INT((int64_t)again.n, (int64_t)bytes.n);
    CHECK(!memcmp(again.at, bytes.at, bytes.n));
    fl_str_fini(&bytes);
    fl_str_fini(&again);
    close_scene(&next);
    close_scene(&s);
}

/* Read what `bytes` has of three ranks, as after a return to a snapshot. */
static void rewind_to(scene *s, const fl_str *bytes, bool anew)
{
    fl_image im;
    open_scene(s, (fl_job){.trainers = 3, .async = true});
    CHECK_OK(fl_image_open(&im, bytes->at, bytes->n, FL_IMAGE_CUT, &s->job, 0));
    fl_members_visit_cut(s->m, &im);
    CHECK_OK(fl_image_check(&im));
    fl_members_rewind(s->m, anew);
}

static void go_back_to_a_snapshot(void)
{
    scene s, next;
    fl_str bytes = {0};
    open_scene(&s, (fl_job){.trainers = 3, .async = true});
    grant_all(&s);
    fl_members_barrier(s.m, 0, 1, "file 3", s.now);
    fl_members_complete(s.m, 1, ++s.view, s.now);
    fl_image im = fl_image_begin(&bytes, FL_IMAGE_CUT, &s.job, 0);
    fl_members_visit_cut(s.m, &im);
    fl_image_finish(&im);
    rewind_to(&next, &bytes, false);
    CHECK_INT(state_of(&next, 0), FL_RANK_FRESH);
    CHECK_STR(fl_members_get(next.m, 0)->position, "file 3");
    CHECK_INT(state_of(&next, 1), FL_RANK_DONE);
    close_scene(&next);
    rewind_to(&next, &bytes, true);
    CHECK_INT(fl_members_count(next.m, FL_RANK_FRESH), 3);
    close_scene(&next);
    fl_str_fini(&bytes);
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"ranks go from holder to holder", go_from_holder_to_holder},
    {"sessions that are over are remembered", remember_sessions_that_are_over},
    {"ranks complete, also after a loss", complete_also_after_a_loss},
    {"lost ranks are kept for their explicit ids",
     are_kept_for_their_explicit_ids},
    {"lost ranks say which failure was first", know_the_first_failure},
    {"leases expire unless they are renewed", expire_unless_they_are_renewed},
    {"leases expire soon after their call broke",
     expire_soon_after_their_call_broke},
    {"members meet when every barrier came", meet_when_every_barrier_came},
    {"a round waits for a lost rank once", wait_for_a_lost_rank_once},
    {"a later round waits for a lost rank again", wait_again_in_a_later_round},
    {"a step counts with its round", count_a_step_with_its_round},
    {"steps count at once without rounds", count_steps_at_once_without_rounds},
    {"a start names whom it waits for", name_whom_the_start_waits_for},
    {"ranks outlive the process", outlive_the_process},
    {"ranks go back to a snapshot", go_back_to_a_snapshot},
    {0},
};
