/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/joins.h"

#include "protocol/test_talk.h"

/* Two ranks and who waits for them. Calls are numbered by the tests. */
typedef struct scene {
    fl_job job;
    fl_outbox out;
    fl_members *members;
    fl_joins *j;
    int64_t now, view;
} scene;

static void open_scene(scene *s, fl_job job)
{
    job.id = job_id;
    job.trainers = 2;
    *s = (scene){.job = fl_job_defaults(job), .now = FL_SEC};
    fl_outbox_init(&s->out);
    s->members = fl_members_new(&s->job, s->now);
    s->j = fl_joins_new(&s->job, s->members, &s->out);
}

static void close_scene(scene *s)
{
    fl_joins_free(s->j);
    fl_members_free(s->members);
    fl_outbox_fini(&s->out);
}

static fl_msg join_of(uint64_t n, int claim, bool explicit_id, uint64_t call)
{
    return (fl_msg){.kind = FL_MSG_JOIN,
                    .job = job_id,
                    .session = session(n),
                    .rank = claim,
                    .explicit_id = explicit_id,
                    .tag = call,
                    .text = "host:2"};
}

/* Session n asks for a rank on that call. */
static void park(scene *s, uint64_t n, int claim, bool explicit_id,
                 uint64_t call)
{
    const fl_msg m = join_of(n, claim, explicit_id, call);
    CHECK(fl_joins_park(s->j, on_call(call), &m, s->now));
}

/* Session n holds the rank, with its open call 900 + n. */
static void hold_rank(scene *s, int rank, uint64_t n)
{
    fl_members_grant(s->members, (fl_member){rank, session(n), ++s->view}, true,
                     "host:1", s->now);
    fl_members_renew(s->members, rank, 900 + n, 0, s->now);
}

/* The rank that the next JOIN gets, and the call of that JOIN; -1: none gets
 * one. */
static int next_rank(scene *s, uint64_t *call)
{
    int64_t at = 0;
    fl_join w;
    fl_outbox_clear(&s->out);
    const fl_rank *r = fl_joins_next(s->j, &at, s->now, &w);
    *call = r ? w.call : 0;
    return r ? r->rank : -1;
}

static void are_served_in_order(void)
{
    scene s;
    fl_join w;
    int64_t at = 0;
    open_scene(&s, (fl_job){0});
    park(&s, 1, 1, false, 10);
    park(&s, 2, FL_ANY_ID, false, 11);
    CHECK_INT(fl_joins_count(s.j), 2);
    CHECK_INT(fl_joins_next(s.j, &at, s.now, &w)->rank, 1);
    CHECK_INT((int64_t)w.call, 10);
    CHECK_STR(w.who, "host:2");
    hold_rank(&s, 1, 1);
    CHECK_INT(fl_joins_next(s.j, &at, s.now, &w)->rank, 0);
    CHECK_INT((int64_t)w.call, 11);
    CHECK(!fl_joins_next(s.j, &at, s.now, &w));
    CHECK_INT(fl_joins_count(s.j), 0);
    close_scene(&s);
}

/* A restarted process claims the rank that its dead session holds. */
static void wait_while_the_holder_is_in_doubt(void)
{
    scene s;
    uint64_t call;
    open_scene(&s, (fl_job){0});
    hold_rank(&s, 0, 1);
    park(&s, 3, 0, false, 10);
    CHECK_INT(next_rank(&s, &call), -1); /* not even rank 1, which is fresh */
    fl_joins_probe(s.j, s.now);
    const fl_msg *probe = heard(&s.out, 901, FL_MSG_PROBE);
    CHECK_INT((int64_t)probe->echo, (int64_t)fl_joins_last_probe(s.j));
    fl_members_renew(s.members, 0, 901, 0, s.now); /* was under way before */
    CHECK_INT(next_rank(&s, &call), -1);
    fl_members_renew(s.members, 0, 901, fl_joins_last_probe(s.j), s.now);
    CHECK_INT(next_rank(&s, &call), 1); /* the holder lives */
    CHECK_INT((int64_t)call, 10);
    close_scene(&s);
}

static void get_the_rank_of_a_lost_holder(void)
{
    scene s;
    uint64_t call;
    open_scene(&s, (fl_job){0});
    hold_rank(&s, 0, 1);
    park(&s, 3, 0, true, 10);
    fl_joins_probe(s.j, s.now);
    fl_members_lose(s.members, 0, FL_LEFT_LEASE, ++s.view, s.now);
    CHECK_INT(next_rank(&s, &call), 0);
    close_scene(&s);
}

static void repeat_probes_after_a_pause(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    hold_rank(&s, 0, 1);
    park(&s, 3, 0, true, 10);
    fl_joins_probe(s.j, s.now);
    CHECK(heard(&s.out, 901, FL_MSG_PROBE) != NULL);
    fl_outbox_clear(&s.out);
    fl_joins_probe(s.j, s.now + s.job.retry - 1);
    CHECK(!heard(&s.out, 901, FL_MSG_PROBE));
    fl_joins_probe(s.j, s.now + s.job.retry);
    CHECK(heard(&s.out, 901, FL_MSG_PROBE) != NULL);
    CHECK_INT((int64_t)fl_joins_last_probe(s.j), 1);
    s.out.state.incarnation = 2;
    fl_joins_restart(s.j);
    CHECK_INT((int64_t)fl_joins_last_probe(s.j), INT64_C(2) << 32);
    close_scene(&s);
}

static void are_turned_away_by_a_holder_that_lives(void)
{
    scene s;
    uint64_t call;
    open_scene(&s, (fl_job){0});
    hold_rank(&s, 0, 1);
    park(&s, 3, 0, true, 10);
    fl_joins_probe(s.j, s.now);
    fl_members_renew(s.members, 0, 901, fl_joins_last_probe(s.j), s.now);
    CHECK_INT(next_rank(&s, &call), -1);
    CHECK(mentions(heard(&s.out, 10, FL_MSG_ERROR),
                   "trainer id 0 is held by host:1"));
    CHECK(mentions(heard(&s.out, 901, FL_MSG_PROBE),
                   "host:2 was started with trainer id 0 as well"));
    CHECK_STR(s.out.note.at[0],
              "host:2 was turned away: trainer id 0 is held by host:1");
    CHECK_INT(fl_joins_count(s.j), 0);
    close_scene(&s);
}

static void are_turned_away_from_a_rank_that_is_done(void)
{
    scene s;
    uint64_t call;
    open_scene(&s, (fl_job){0});
    hold_rank(&s, 0, 1);
    fl_members_complete(s.members, 0, ++s.view, s.now);
    park(&s, 3, 0, true, 10);
    park(&s, 4, 0, false, 11); /* not an explicit id: any rank will do */
    CHECK_INT(next_rank(&s, &call), 1);
    CHECK_INT((int64_t)call, 11);
    CHECK(mentions(heard(&s.out, 10, FL_MSG_ERROR), "has completed"));
    CHECK_INT(heard(&s.out, 10, FL_MSG_ERROR)->code, FL_EDONE);
    close_scene(&s);
}

static void wait_while_a_round_has_a_barrier(void)
{
    scene s;
    uint64_t call;
    fl_member member[2];
    open_scene(&s, (fl_job){0});
    hold_rank(&s, 0, 1);
    hold_rank(&s, 1, 2);
    fl_members_lose(s.members, 1, FL_LEFT_LEASE, ++s.view, s.now);
    fl_members_barrier(s.members, 0, 0, NULL, s.now);
    park(&s, 3, 1, true, 10);
    CHECK_INT(next_rank(&s, &call), -1);
    const fl_msg again = join_of(3, 1, true, 11);
    CHECK(fl_joins_repeat(s.j, on_call(11), &again, 6, s.now));
    CHECK(mentions(heard(&s.out, 10, FL_MSG_PARKED),
                   "round 6 is about to close"));
    fl_members_close_round(s.members, member);
    CHECK_INT(next_rank(&s, &call), 1);
    CHECK_INT((int64_t)call, 11); /* it has kept its place */
    close_scene(&s);
}

/* The round waits for that rank. */
static void get_an_awaited_rank_in_the_round(void)
{
    scene s;
    uint64_t call;
    open_scene(&s, (fl_job){.hold = 10 * FL_SEC});
    hold_rank(&s, 0, 1);
    hold_rank(&s, 1, 2);
    fl_members_lose(s.members, 1, FL_LEFT_LEASE, ++s.view, s.now);
    fl_members_barrier(s.members, 0, 0, NULL, s.now);
    park(&s, 3, 1, true, 10);
    CHECK_INT(next_rank(&s, &call), 1);
    close_scene(&s);
}

static void are_forgotten_with_their_call(void)
{
    scene s;
    const fl_msg m = join_of(7, 0, false, 12);
    open_scene(&s, (fl_job){.max_parked = 2});
    park(&s, 1, 0, false, 10);
    park(&s, 2, 0, false, 11);
    CHECK(!fl_joins_park(s.j, on_call(12), &m, s.now)); /* too many */
    fl_joins_hangup(s.j, 10);
    CHECK_INT(fl_joins_count(s.j), 1);
    CHECK(!fl_joins_repeat(s.j, on_call(12), &m, 0, s.now));
    fl_joins_forget(s.j, session(2), "it completed");
    CHECK(mentions(heard(&s.out, 11, FL_MSG_PARKED), "it completed"));
    CHECK_INT(fl_joins_count(s.j), 0);
    fl_joins_hold(s.j, on_call(13), &m, s.now);
    CHECK_INT((int64_t)fl_joins_get(s.j, 0)->call, 13);
    fl_joins_clear(s.j);
    CHECK_INT(fl_joins_count(s.j), 0);
    close_scene(&s);
}

static void name_what_they_wait_for(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){.lease = 10 * FL_SEC});
    hold_rank(&s, 0, 1);
    park(&s, 3, 0, false, 10);
    park(&s, 4, FL_ANY_ID, false, 11);
    fl_joins_waits(s.j, s.now + FL_SEC, &rows);
    CHECK_STR(rows.at,
              "host:2 waits for rank 0 (held by host:1): to join, 1.0 s "
              "(limit 9.0 s)\n"
              "host:2 waits for a rank: to join, 1.0 s\n");
    fl_str_fini(&rows);
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"joins are served in order", are_served_in_order},
    {"a join waits while the holder is in doubt",
     wait_while_the_holder_is_in_doubt},
    {"a join gets the rank of a lost holder", get_the_rank_of_a_lost_holder},
    {"a holder is probed again after a pause", repeat_probes_after_a_pause},
    {"a join is turned away by a holder that lives",
     are_turned_away_by_a_holder_that_lives},
    {"a join is turned away from a rank that is done",
     are_turned_away_from_a_rank_that_is_done},
    {"a join waits while a round has a barrier",
     wait_while_a_round_has_a_barrier},
    {"a join gets an awaited rank in the round",
     get_an_awaited_rank_in_the_round},
    {"a join is forgotten with its call", are_forgotten_with_their_call},
    {"joins name what they wait for", name_what_they_wait_for},
    {0},
};
