/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/coord.h"

#include "protocol/test_talk.h"

/* One coordinator and its clock; calls are numbered by the tests. */
typedef struct scene {
    fl_job job;
    fl_outbox out;
    fl_coord *c;
    int64_t now;
} scene;

static void open_scene(scene *s, fl_job job)
{
    job.id = job_id;
    *s = (scene){.job = fl_job_defaults(job), .now = FL_SEC};
    fl_outbox_init(&s->out);
    s->c = fl_coord_new(&s->job, (fl_state){77, 1}, &s->out, s->now);
}

static void close_scene(scene *s)
{
    fl_coord_free(s->c);
    fl_outbox_fini(&s->out);
}

static void tell(scene *s, uint64_t call, fl_msg m)
{
    fl_outbox_clear(&s->out);
    m.job = job_id;
    fl_coord_recv(s->c, on_call(call), &m, s->now);
}

static void join(scene *s, uint64_t n, int claim, uint64_t call)
{
    tell(s, call,
         (fl_msg){.kind = FL_MSG_JOIN,
                  .session = session(n),
                  .rank = claim,
                  .tag = call,
                  .text = "host:1"});
}

/* Join with an explicit id. */
static void join_as(scene *s, uint64_t n, int id, uint64_t call)
{
    tell(s, call,
         (fl_msg){.kind = FL_MSG_JOIN,
                  .session = session(n),
                  .rank = id,
                  .explicit_id = true,
                  .tag = call,
                  .text = "host:2"});
}

static void about(scene *s, fl_msg_kind kind, uint64_t n, int64_t round)
{
    tell(s, 900 + n,
         (fl_msg){
             .kind = kind, .session = session(n), .tag = 5, .round = round});
}

static void renew(scene *s, uint64_t n)
{
    about(s, FL_MSG_RENEW, n, 0);
}

static void barrier(scene *s, uint64_t n, int64_t round)
{
    about(s, FL_MSG_BARRIER, n, round);
}

/* Let time pass in small steps; sessions a and b (0: none) renew at each step.
 */
static void pass(scene *s, int64_t time, uint64_t a, uint64_t b)
{
    for (int64_t end = s->now + time; s->now < end;) {
        s->now += 250 * FL_MS;
        if (a)
            renew(s, a);
        if (b)
            renew(s, b);
        fl_outbox_clear(&s->out);
        fl_coord_tick(s->c, s->now);
    }
}

/* Sessions 1 .. n join with explicit ids 0 .. n-1 and use their grants. */
static void all_come(scene *s)
{
    for (int i = 0; i < s->job.trainers; i++) {
        join_as(s, (uint64_t)i + 1, i, (uint64_t)i + 1);
        renew(s, (uint64_t)i + 1);
    }
}

/* Session n, which holds a rank, answers the newest PROBE. */
static void show_life(scene *s, uint64_t n)
{
    const fl_msg *probe = heard(&s->out, 900 + n, FL_MSG_PROBE);
    CHECK(probe != NULL);
    tell(s, 900 + n,
         (fl_msg){
             .kind = FL_MSG_RENEW, .session = session(n), .echo = probe->echo});
}

static int granted(const scene *s, uint64_t call)
{
    const fl_msg *m = heard(&s->out, call, FL_MSG_GRANT);
    return m ? m->rank : -1;
}

/* --- JOIN --- */

static void grants_a_fresh_rank(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 3});
    join(&s, 1, 2, 10);
    CHECK_INT(granted(&s, 10), 2);
    CHECK_INT(heard(&s.out, 10, FL_MSG_GRANT)->g, 1);
    CHECK_INT(said(&s.out, FL_MSG_VIEW)->view, 1);
    join(&s, 1, 2, 11); /* a repeat gets the same answer */
    CHECK_INT(granted(&s, 11), 2);
    CHECK_INT(fl_coord_view(s.c), 1);
    close_scene(&s);
}

static void grants_a_lost_rank_to_its_claimant(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    pass(&s, 11 * FL_SEC, 1, 0);
    CHECK(!fl_coord_has(s.c, session(2)));
    join(&s, 3, 1, 30);
    CHECK_INT(granted(&s, 30), 1);
    join(&s, 2, 1, 31); /* the session that was lost */
    CHECK(mentions(heard(&s.out, 31, FL_MSG_FENCED), "lease ran out"));
    close_scene(&s);
}

static void parks_for_a_held_rank(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, 0, 10);
    renew(&s, 1);
    join(&s, 2, 0, 20);
    CHECK_INT(fl_coord_parked(s.c), 1);
    CHECK(heard(&s.out, 901,
                FL_MSG_PROBE)); /* asks whether the holder is alive */
    join(&s, 2, 0, 21);
    CHECK(mentions(heard(&s.out, 20, FL_MSG_PARKED), "held by host:1"));
    pass(&s, 9750 * FL_MS, 0, 0);
    CHECK_INT(fl_coord_parked(s.c), 1);
    pass(&s, 250 * FL_MS, 0, 0); /* the holder is lost, so its rank is free */
    CHECK_INT(granted(&s, 21), 0);
    close_scene(&s);
}

static void gives_another_rank_if_the_holder_lives(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, 0, 10);
    renew(&s, 1);
    join(&s, 2, 0, 20); /* claims the rank of another process */
    const uint64_t echo = heard(&s.out, 901, FL_MSG_PROBE)->echo;
    renew(&s, 1); /* sent before the JOIN: does not prove life */
    CHECK_INT(granted(&s, 20), -1);
    tell(&s, 901,
         (fl_msg){.kind = FL_MSG_RENEW, .session = session(1), .echo = echo});
    CHECK_INT(granted(&s, 20), 1);
    close_scene(&s);
}

static void turns_away_a_second_process_with_an_id(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join_as(&s, 1, 1, 10);
    renew(&s, 1);
    s.now += 3 * FL_SEC;
    join_as(&s, 2, 1, 20);
    CHECK_INT(fl_coord_parked(s.c), 1); /* the holder may be dead */
    show_life(&s, 1);
    CHECK(mentions(heard(&s.out, 20, FL_MSG_ERROR),
                   "trainer id 1 is held by host:2, which joined 3 s ago"));
    CHECK(mentions(heard(&s.out, 901, FL_MSG_PROBE),
                   "host:2 was started with trainer id 1 as well"));
    CHECK_INT(fl_coord_parked(s.c), 0);
    join_as(&s, 3, 0, 30);
    CHECK_INT(granted(&s, 30), 0); /* the process whose id it is */
    close_scene(&s);
}

static void grants_an_id_to_who_comes_back(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    join_as(&s, 3, 1, 30); /* started again before its lease ran out */
    CHECK_INT(fl_coord_parked(s.c), 1);
    fl_coord_hangup(s.c, 902, s.now);
    pass(&s, 1 * FL_SEC, 1, 0);
    CHECK_INT(granted(&s, 30), 1);
    renew(&s, 3);
    about(&s, FL_MSG_COMPLETE, 3, 0);
    join_as(&s, 4, 1, 40);
    CHECK(mentions(heard(&s.out, 40, FL_MSG_ERROR),
                   "trainer 1 (host:2) has completed"));
    close_scene(&s);
}

static void gives_ids_in_order_of_arrival(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, FL_ANY_ID, 10);
    CHECK_INT(granted(&s, 10), 0);
    renew(&s, 1);
    about(&s, FL_MSG_FAILED, 1, 0); /* rank 0 is lost */
    join(&s, 2, FL_ANY_ID, 20);
    CHECK_INT(granted(&s, 20), 1); /* a fresh rank comes first */
    renew(&s, 2);
    join(&s, 3, FL_ANY_ID, 30); /* then a lost rank, without a wait */
    CHECK_INT(granted(&s, 30), 0);
    renew(&s, 3);
    join(&s, 4, FL_ANY_ID, 40);
    join(&s, 4, FL_ANY_ID, 41);
    CHECK(mentions(heard(&s.out, 40, FL_MSG_PARKED), "every rank is held"));
    close_scene(&s);
}

static void gives_a_fresh_rank_for_one_that_is_done(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, 0, 10);
    about(&s, FL_MSG_COMPLETE, 1, 0);
    join(&s, 2, 0, 20);
    CHECK_INT(granted(&s, 20), 1);
    close_scene(&s);
}

static void keeps_a_lost_rank_for_its_claimant(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 3});
    all_come(&s);
    about(&s, FL_MSG_COMPLETE, 1, 0);
    pass(&s, 11 * FL_SEC, 3, 0); /* rank 1 is lost */
    join(&s, 4, 0, 40);          /* rank 0 is done, none is fresh */
    CHECK_INT(fl_coord_parked(s.c), 1);
    pass(&s, 28 * FL_SEC, 3, 0);
    CHECK_INT(fl_coord_parked(s.c), 1);
    pass(&s, 2 * FL_SEC, 3, 0); /* its time to rejoin has passed */
    CHECK_INT(fl_coord_parked(s.c), 0);
    CHECK(fl_coord_has(s.c, session(4)));
    close_scene(&s);
}

static void names_the_holders_when_all_are_held(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 1});
    join(&s, 1, 0, 10);
    renew(&s, 1);
    join(&s, 2, 0, 20);
    const uint64_t echo = heard(&s.out, 901, FL_MSG_PROBE)->echo;
    tell(&s, 901,
         (fl_msg){.kind = FL_MSG_RENEW, .session = session(1), .echo = echo});
    CHECK_INT(fl_coord_parked(s.c), 1);
    join(&s, 2, 0, 21);
    CHECK(mentions(heard(&s.out, 20, FL_MSG_PARKED), "0 host:1"));
    fl_str rows = {0};
    fl_coord_waits(s.c, s.now, &rows);
    CHECK(strstr(rows.at, "host:1 waits for rank 0 (held by host:1): to join"));
    fl_str_fini(&rows);
    close_scene(&s);
}

static void parks_while_a_round_has_a_barrier(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 3});
    all_come(&s);
    about(&s, FL_MSG_FAILED, 3, 0);
    barrier(&s, 1, 0);
    join(&s, 4, 2, 40);
    CHECK_INT(fl_coord_parked(s.c), 1);
    barrier(&s, 2, 0); /* decides round 0 */
    CHECK_INT(granted(&s, 40), 2);
    CHECK_INT(heard(&s.out, 40, FL_MSG_GRANT)->round, 1);
    close_scene(&s);
}

static void lets_everyone_in_before_round_0_opens(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, 0, 10);
    renew(&s, 1);
    barrier(&s, 1, 0);
    CHECK_INT(fl_coord_round(s.c), 0); /* rank 1 has not come yet */
    join(&s, 2, 1, 20);
    CHECK_INT(granted(&s, 20), 1);
    close_scene(&s);
}

/* It never sends a message of its session. */
static void loses_a_trainer_that_dies_after_its_grant(void)
{
    scene s;
    int code = 0;
    const char *why = "";
    open_scene(&s, (fl_job){.trainers = 2, .rejoin = -1});
    join_as(&s, 1, 0, 10);
    renew(&s, 1);
    barrier(&s, 1, 0);
    join_as(&s, 2, 1, 20);
    pass(&s, 9 * FL_SEC, 1, 0);
    CHECK_INT(fl_coord_round(s.c), 0); /* its lease lasts */
    pass(&s, 2 * FL_SEC, 1, 0);
    CHECK(!fl_coord_has(s.c, session(2)));
    CHECK_INT(fl_coord_round(s.c), 1); /* the other one goes on */
    about(&s, FL_MSG_COMPLETE, 1, 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_INT(code, 1);
    CHECK_STR(why, "trainer 1: its lease ran out");
    close_scene(&s);
}

static void forgets_a_join_whose_call_broke(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, 0, 10);
    join(&s, 2, 0, 20);
    CHECK_INT(fl_coord_parked(s.c), 1);
    fl_coord_hangup(s.c, 20, s.now);
    CHECK_INT(fl_coord_parked(s.c), 0);
    close_scene(&s);
}

static void refuses_strangers(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, 2, 10);
    CHECK(mentions(heard(&s.out, 10, FL_MSG_ERROR), "the job has 2 trainers"));
    join(&s, 1, -2, 11);
    CHECK(heard(&s.out, 11, FL_MSG_ERROR));
    join_as(&s, 1, -1, 11);
    CHECK(heard(&s.out, 11, FL_MSG_ERROR));
    const fl_msg foreign = {.kind = FL_MSG_JOIN, .job = {0xab12345678, 0xcd}};
    fl_outbox_clear(&s.out);
    fl_coord_recv(s.c, on_call(12), &foreign, s.now);
    const fl_msg *m = heard(&s.out, 12, FL_MSG_ERROR);
    CHECK(mentions(m, "this is another job: programs"));
    CHECK_STR(m->about, "servers ?\ntrainers 2\nmode synchronous\n");
    CHECK(!m->job.hi && !m->job.lo);
    tell(&s, 13, (fl_msg){.kind = (fl_msg_kind)99});
    CHECK(heard(&s.out, 13, FL_MSG_ERROR));
    renew(&s, 5);
    CHECK(mentions(said(&s.out, FL_MSG_FENCED), "never granted"));
    close_scene(&s);
}

static void limits_parked_joins(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 1, .max_parked = 2});
    for (uint64_t n = 1; n <= 4; n++)
        join(&s, n, 0, n);
    CHECK_INT(fl_coord_parked(s.c), 2);
    CHECK(heard(&s.out, 4, FL_MSG_PARKED)); /* no room to park it */
    close_scene(&s);
}

/* --- leases --- */

static void gives_a_second_after_a_broken_call(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    fl_coord_hangup(s.c, 901, s.now);
    fl_coord_hangup(s.c, 902, s.now);
    s.now += 500 * FL_MS;
    renew(&s, 2); /* in time, on a new call */
    pass(&s, 1 * FL_SEC, 0, 0);
    CHECK(!fl_coord_has(s.c, session(1)));
    CHECK(fl_coord_has(s.c, session(2)));
    close_scene(&s);
}

static void blames_nobody_for_its_own_sleep(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    s.now += 60 * FL_SEC; /* the coordinator's process was stopped */
    fl_coord_tick(s.c, s.now);
    CHECK(fl_coord_has(s.c, session(1)));
    CHECK(fl_coord_has(s.c, session(2)));
    close_scene(&s);
}

/* --- rounds --- */

static void decides_by_rank_for_who_is_there(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 3});
    all_come(&s);
    barrier(&s, 3, 0);
    barrier(&s, 2, 0);
    barrier(&s, 2, 0); /* a repeat */
    CHECK(said(&s.out, FL_MSG_ACK));
    pass(&s, 11 * FL_SEC, 1,
         3); /* session 2 is lost, and its barrier with it */
    barrier(&s, 2, 0);
    CHECK(said(&s.out, FL_MSG_FENCED));
    CHECK_INT(fl_coord_round(s.c), 0);
    barrier(&s, 1, 0);
    const fl_msg *m = said(&s.out, FL_MSG_CLOSE);
    CHECK_INT(m->round, 0);
    CHECK_INT(m->n_member, 2);
    CHECK(fl_id_same(m->member[0].session, session(1)));
    CHECK(fl_id_same(m->member[1].session, session(3)));
    barrier(&s, 1, 0); /* a repeat for a round that is decided */
    CHECK(said(&s.out, FL_MSG_ACK));
    barrier(&s, 1, 2);
    CHECK(mentions(said(&s.out, FL_MSG_ERROR), "round 1 is open"));
    close_scene(&s);
}

static void keeps_a_decision_whoever_is_lost(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 1});
    all_come(&s);
    barrier(&s, 1, 0);
    pass(&s, 11 * FL_SEC, 0, 0);
    CHECK(!fl_coord_has(s.c, session(1)));
    const fl_msg *m = said(&s.out, FL_MSG_CLOSE); /* not acknowledged yet */
    CHECK(m && m->n_member == 1);
    CHECK(fl_id_same(m->member[0].session, session(1)));
    CHECK_INT(fl_coord_round(s.c), 1); /* open, though nobody is a member */
    close_scene(&s);
}

static void lets_uneven_trainers_finish(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    barrier(&s, 1, 0);
    barrier(&s, 2, 0);
    barrier(&s, 2, 1);
    about(&s, FL_MSG_COMPLETE, 1, 0); /* round 1 now has one member */
    CHECK_INT(fl_coord_round(s.c), 2);
    CHECK_INT(said(&s.out, FL_MSG_CLOSE)->n_member, 1);
    close_scene(&s);
}

/* --- the end --- */

static void state(scene *s, int server, fl_msg m)
{
    fl_outbox_clear(&s->out);
    m.kind = FL_MSG_STATE;
    m.job = job_id;
    m.state.id = m.state.id ? m.state.id : 5;
    fl_coord_recv(s->c, at_server(server), &m, s->now);
}

/* Acknowledgements may be late by many rounds on a busy machine. */
static void waits_for_a_server_that_is_far_behind(void)
{
    scene s;
    int code;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 1});
    all_come(&s);
    for (int k = 0; k < 16; k++)
        barrier(&s, 1, k);
    CHECK_INT(fl_coord_round(s.c), 16);
    barrier(&s, 1, 16);
    CHECK_INT(fl_coord_round(s.c), 16);
    CHECK(!fl_coord_ended(s.c, &code, &why));
    state(&s, 0, (fl_msg){.round = 2});
    CHECK_INT(fl_coord_round(s.c), 17);
    close_scene(&s);
}

static void ends_when_all_are_done(void)
{
    scene s;
    int code = -1;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 2, .servers = 2});
    all_come(&s);
    barrier(&s, 1, 0);
    barrier(&s, 2, 0);
    about(&s, FL_MSG_COMPLETE, 1, 0);
    CHECK(!fl_coord_ended(s.c, &code, &why));
    about(&s, FL_MSG_COMPLETE, 2, 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_INT(code, 0);
    CHECK_INT(said(&s.out, FL_MSG_END)->round, 1);
    CHECK(said(&s.out, FL_MSG_CLOSE)); /* the decisions up to that version */
    join(&s, 9, 0, 90);                /* every request is answered with END */
    CHECK(heard(&s.out, 90, FL_MSG_END));
    pass(&s, FL_SEC, 0, 0);
    CHECK(said(&s.out, FL_MSG_END) && said(&s.out, FL_MSG_CLOSE));
    CHECK(!said(&s.out, FL_MSG_VIEW));
    state(&s, 0, (fl_msg){.over = true, .round = 1});
    CHECK(said(&s.out, FL_MSG_END)->over); /* server 0 may leave */
    state(&s, 0, (fl_msg){.over = true, .round = 1});
    CHECK(said(&s.out, FL_MSG_END)->over); /* perhaps the first one was lost */
    pass(&s, 5 * FL_SEC, 0, 0);
    CHECK(!said(&s.out, FL_MSG_END) || !said(&s.out, FL_MSG_END)->over);
    CHECK(!fl_coord_over(s.c, s.now));     /* server 1 has not acknowledged */
    fl_coord_refused(s.c, 1, true, s.now); /* server 1 never started */
    CHECK(!fl_coord_over(s.c, s.now));
    state(&s, 1, (fl_msg){.round = 0});
    fl_coord_refused(s.c, 1, true, s.now);
    CHECK(fl_coord_over(s.c, s.now));
    close_scene(&s);
}

/* A list of servers may name one that does not exist. */
static void does_not_wait_after_a_failure_for_a_server_that_never_came(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2, .durability = FL_PROCESS});
    state(&s, 0, (fl_msg){0});
    fl_coord_end(s.c, 1, "enough", s.now);
    state(&s, 0, (fl_msg){.over = true, .code = 1});
    pass(&s, 4 * FL_SEC, 0, 0);
    CHECK(!fl_coord_over(s.c, s.now)); /* it may be starting */
    CHECK(said(&s.out, FL_MSG_END) != NULL);
    fl_coord_refused(s.c, 1, true, s.now);
    CHECK(!fl_coord_over(s.c, s.now)); /* too early */
    pass(&s, 1 * FL_SEC, 0, 0);
    CHECK(!fl_coord_over(s.c, s.now)); /* it may be there, and slow */
    fl_coord_refused(s.c, 1, true, s.now);
    CHECK(fl_coord_over(s.c, s.now));
    close_scene(&s);
}

/* A server that was out of reach for a moment still gets END. */
static void does_not_take_the_first_refusal_for_an_end(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2, .linger = FL_MS});
    all_come(&s);
    state(&s, 0, (fl_msg){0});
    state(&s, 1, (fl_msg){0});
    fl_coord_end(s.c, 1, "enough", s.now);
    fl_coord_refused(s.c, 1, true, s.now);
    pass(&s, FL_SEC / 2, 0, 0);
    CHECK(said(&s.out, FL_MSG_END) != NULL);
    state(&s, 0, (fl_msg){.over = true});
    CHECK(!fl_coord_over(s.c, s.now));
    pass(&s, FL_SEC / 2, 0, 0);
    fl_coord_refused(s.c, 1, true, s.now);
    CHECK(fl_coord_over(s.c, s.now));
    close_scene(&s);
}

static void ends_with_the_first_failure_left(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 3});
    all_come(&s);
    tell(&s, 1,
         (fl_msg){.kind = FL_MSG_FAILED, .session = session(1), .code = 9});
    join(&s, 4, 0, 40); /* it came back: its failure does not count */
    s.now += FL_SEC;
    tell(&s, 2,
         (fl_msg){.kind = FL_MSG_FAILED,
                  .session = session(2),
                  .code = 4,
                  .text = "no such file"});
    s.now += FL_SEC;
    about(&s, FL_MSG_FAILED, 3, 0);
    about(&s, FL_MSG_COMPLETE, 4, 0);
    CHECK(
        !fl_coord_ended(s.c, &code, &why)); /* the trainers may still rejoin */
    pass(&s, 31 * FL_SEC, 0, 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_INT(code, 4);
    CHECK_STR(why, "trainer 1: no such file");
    close_scene(&s);
}

static void counts_the_completion_of_a_lost_session(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    pass(&s, 11 * FL_SEC, 0, 0);
    join(&s, 3, 1, 30);
    about(&s, FL_MSG_COMPLETE, 1, 0); /* its rank is lost, not granted again */
    CHECK(said(&s.out, FL_MSG_ACK));
    CHECK_INT(fl_coord_done(s.c), 1);
    about(&s, FL_MSG_COMPLETE, 1, 0);
    CHECK(said(&s.out, FL_MSG_ACK));  /* a repeat */
    about(&s, FL_MSG_COMPLETE, 2, 0); /* its rank was granted again */
    CHECK(said(&s.out, FL_MSG_FENCED));
    CHECK_INT(fl_coord_done(s.c), 1);
    CHECK(fl_coord_has(s.c, session(3)));
    close_scene(&s);
}

static void ends_at_the_start_limit(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 2, .start = 60 * FL_SEC});
    state(&s, 0, (fl_msg){0});
    join(&s, 1, 0, 10);
    renew(&s, 1);
    for (int i = 0; i < 59; i++) {
        pass(&s, FL_SEC, 1, 0);
        state(&s, 0, (fl_msg){0});
    }
    CHECK(!fl_coord_ended(s.c, &code, &why));
    pass(&s, 2 * FL_SEC, 1, 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_INT(code, 1);
    CHECK_STR(why, "1 of 2 trainers came within 60 s (FLUID_START sets how "
                   "long to wait); were all started?");
    close_scene(&s);
}

static void counts_aloud_while_it_waits(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    join(&s, 1, 0, 10);
    renew(&s, 1);
    pass(&s, 5 * FL_SEC, 0, 0);
    CHECK_INT(s.out.note.n, 1);
    CHECK_STR(s.out.note.at[0],
              "1 of 2 trainers have come, waiting for 1, 5 s of 600");
    close_scene(&s);
}

static void reports_a_stall_by_name(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    state(&s, 0, (fl_msg){.view = 2});
    barrier(&s, 1, 0);
    pass(&s, 6 * FL_SEC, 1, 2);
    fl_coord_waits(s.c, s.now, &rows);
    CHECK_STR(rows.at, "coordinator waits for trainer 1 (host:2): barrier of "
                       "round 0, 6.0 s (limit 10.0 s)\n");
    fl_str_fini(&rows);
    close_scene(&s);
}

static void waits_by_name_when_no_trainer_is_left(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){.trainers = 2, .async = true});
    all_come(&s);
    about(&s, FL_MSG_FAILED, 1, 0);
    pass(&s, 6 * FL_SEC, 2, 0);
    fl_coord_waits(s.c, s.now, &rows);
    CHECK(!rows.at || !strstr(rows.at, "trainer")); /* trainer 1 goes on */
    about(&s, FL_MSG_FAILED, 2, 0);
    pass(&s, 3 * FL_SEC, 0, 0);
    fl_str_fini(&rows);
    fl_coord_waits(s.c, s.now, &rows);
    CHECK(strstr(rows.at, "coordinator waits for trainer 0 (was host:2): to "
                          "come back, else the job ends, 9.0 s (limit 30.0 "
                          "s)\n"
                          "coordinator waits for trainer 1 (was host:2): to "
                          "come back, else the job ends, 3.0 s (limit 30.0 "
                          "s)\n"));
    fl_outbox_clear(&s.out);
    for (int i = 0; i < 20 && !s.out.note.n; i++) /* a line every 5 s */
        fl_coord_tick(s.c, s.now += 250 * FL_MS);
    CHECK(s.out.note.n && strstr(s.out.note.at[0], "waits for trainer 0"));
    fl_str_fini(&rows);
    close_scene(&s);
}

/* Server 0 has lost its state. State 6 had begun with the snapshot that state 5
 * took, and no newer one was taken since. */
static void goes_back_for_any_state_of_a_snapshot(void)
{
    scene s;
    int64_t generation = 0;
    open_scene(&s, (fl_job){.servers = 2, .snapshots = true});
    fl_coord_snapshots(s.c, FL_SEC, 3,
                       (fl_history_origin[]){{3, 5, true}, {3, 6}}, 2, s.now);
    state(&s, 1, (fl_msg){.state = {9, 1}, .expected = 6, .generation = 1});
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 3);
    CHECK_INT(generation, 2);
    close_scene(&s);
}

/* The job has gone back to snapshot 7 of state 5, which server 1 cannot
 * restore. */
static void cannot_restore_7(scene *s, const fl_history_origin *found,
                             int64_t n)
{
    fl_str image = {0};
    scene past;
    fl_coord_moment of;
    open_scene(&past, (fl_job){.servers = 2, .async = true, .snapshots = true});
    fl_coord_snapshots(past.c, FL_SEC, 6, NULL, 0, past.now);
    all_come(&past);
    pass(&past, FL_SEC, 1, 0);
    state(&past, 0, (fl_msg){.snapshot = 7});
    state(&past, 1, (fl_msg){.snapshot = 7});
    CHECK(fl_coord_written(past.c, &of));
    fl_str_bytes(&image, of.image, of.n);
    close_scene(&past);
    open_scene(s, (fl_job){.servers = 2, .async = true, .snapshots = true});
    s->out.generation = 1;
    CHECK_INT(fl_coord_rewind(s->c, image.at, image.n, 7, false), 0);
    fl_coord_snapshots(s->c, FL_SEC, 7, found, n, s->now);
    state(s, 1, (fl_msg){.state = {9, 1}, .damaged = 6, .text = "late"});
    CHECK_INT(said(&s->out, FL_MSG_REWIND)->snapshot, 7);
    state(s, 1, (fl_msg){.state = {9, 1}, .damaged = 7, .text = "a flaw"});
    fl_str_fini(&image);
}

static void goes_back_to_an_older_snapshot(void)
{
    scene s;
    int64_t generation = 0;
    cannot_restore_7(&s,
                     (fl_history_origin[]){{3, 5, true},
                                           {4, 2, true},
                                           {4, 5},
                                           {6, 6, true}, /* of another run */
                                           {7, 77},
                                           {7, 5, true}},
                     6);
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 4);
    CHECK_INT(generation, 2);
    CHECK_INT(fl_coord_damaged(s.c), 7);
    CHECK_STR(s.out.note.at[0], "server 1 cannot restore snapshot 7: a "
                                "flaw; the job goes back to snapshot 4");
    fl_coord_cannot_rewind(s.c, "no such file", s.now); /* nor can server 0 */
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 0);
    close_scene(&s);
}

static void ends_without_an_older_snapshot(void)
{
    scene s;
    int code = 0;
    int64_t generation = 0;
    const char *why = "";
    cannot_restore_7(
        &s, (fl_history_origin[]){{6, 6, true}, {7, 5, true}, {7, 77}}, 3);
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_STR(why, "server 1 cannot restore snapshot 7, and there is no "
                   "older one of this job: a flaw");
    close_scene(&s);
}

/* Older ones are removed when a snapshot is committed. */
static void forgets_snapshots_that_were_removed(void)
{
    scene s;
    int64_t generation = 0;
    open_scene(&s, (fl_job){.servers = 2, .snapshots = true});
    fl_coord_snapshots(s.c, FL_SEC, 2,
                       (fl_history_origin[]){{1, 77, true}, {2, 77, true}}, 2,
                       s.now);
    fl_coord_committed(s.c, 3, 2);
    fl_coord_committed(s.c, 4, 0);
    state(&s, 1, (fl_msg){.state = {9, 1}});
    state(&s, 1, (fl_msg){.state = {8, 1}});
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 3);
    fl_coord_cannot_rewind(s.c, "a flaw", s.now);
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 2);
    CHECK_INT(generation, 1);
    fl_coord_cannot_rewind(s.c, "a flaw", s.now);
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 0);
    close_scene(&s);
}

/* Server 0 was started again after the newest one was lost, with a state that
 * has taken both. */
static void goes_back_though_the_newest_snapshot_is_gone(void)
{
    scene s;
    int64_t generation = 0;
    open_scene(&s, (fl_job){.servers = 2, .snapshots = true});
    fl_coord_committed(s.c, 3, 2);
    fl_coord_snapshots(s.c, FL_SEC, 3,
                       (fl_history_origin[]){{1, 6, true}, {2, 77, true}}, 2,
                       s.now);
    state(&s, 1, (fl_msg){.state = {9, 1}});
    state(&s, 1, (fl_msg){.state = {8, 1}});
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 3);
    fl_coord_cannot_rewind(s.c, "no such file", s.now);
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 2);
    fl_coord_cannot_rewind(s.c, "no such file", s.now);
    CHECK_INT(fl_coord_rewinds(s.c, &generation), 0);
    close_scene(&s);
}

/* It cannot go back to the snapshot with the others. */
static void ends_by_a_server_that_failed_before_the_job_went_back(void)
{
    scene s;
    int code = 0;
    const char *why = "";
    open_scene(&s, (fl_job){.servers = 2, .snapshots = true});
    s.out.generation = 1;
    state(&s, 1, (fl_msg){.state = {9, 1}});
    CHECK_INT(said(&s.out, FL_MSG_REWIND)->kind, FL_MSG_REWIND);
    state(&s, 1,
          (fl_msg){.state = {9, 1},
                   .over = true,
                   .code = 1,
                   .text = "server 1: no room"});
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_STR(why, "server 1: no room");
    close_scene(&s);
}

/* It cannot prove itself, but its answer to the view can. */
static void answers_a_process_that_says_it_is_a_server(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    state(&s, 1, (fl_msg){0});
    s.now += FL_SEC;
    fl_outbox_clear(&s.out);
    fl_coord_greet(s.c, 1, s.now);
    CHECK_INT(said(&s.out, FL_MSG_VIEW)->expected, 5);
    fl_outbox_clear(&s.out);
    fl_coord_greet(s.c, 1, s.now); /* no more often than others are told */
    CHECK(!said(&s.out, FL_MSG_VIEW));
    close_scene(&s);
}

static void knows_a_server_that_lost_its_state(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 1});
    all_come(&s);
    state(&s, 0, (fl_msg){.state = {5, 1}});
    barrier(&s, 1, 0);
    state(&s, 0, (fl_msg){.state = {5, 1}, .round = 1});
    state(&s, 0, (fl_msg){.state = {6, 1}});
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_STR(why, "server 0 was started again and has lost its parameters "
                   "(version 1)");
    CHECK_INT(said(&s.out, FL_MSG_END)->round, -1);
    close_scene(&s);
}

/* All servers were started again; only trainers know the old state. */
static void ends_by_a_trainer_that_knows_another_state(void)
{
    static const uint64_t other[] = {76, 5}, own[] = {77, 0, 9},
                          server[] = {0, 6};
    static const struct {
        fl_msg_kind kind;
        const uint64_t *seen;
        int n;
        int64_t round;
        const char *why; /* NULL: the job goes on */
    } table[] = {
        {FL_MSG_JOIN, own, 3, 0, NULL},
        {FL_MSG_RENEW, own, 1, 0, NULL},
        {FL_MSG_JOIN, other, 2, 7,
         "server 0 was started again and has lost its parameters, which me:1 "
         "has used (version 7); start the job again"},
        {FL_MSG_RENEW, server, 2, 7,
         "server 1 was started again and has lost its parameters, which a "
         "trainer has used (version 7); start the job again"},
        {FL_MSG_FAILED, other, 1, 0,
         "server 0 was started again and has lost its parameters, which a "
         "trainer has used (version 0); start the job again"},
        {FL_MSG_JOIN, NULL, 0, 1,
         "server 0 was started again and has lost its parameters, which me:1 "
         "has used (version 1); start the job again"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        scene s;
        int code = 0;
        const char *why = NULL;
        open_scene(&s, (fl_job){.trainers = 1, .servers = 2});
        state(&s, 1, (fl_msg){.state = {5, 1}});
        tell(&s, 10,
             (fl_msg){.kind = table[i].kind,
                      .session = session(1),
                      .tag = 3,
                      .round = table[i].round,
                      .text = "me:1",
                      .seen = table[i].seen,
                      .n_seen = table[i].n});
        CHECK_INT(fl_coord_ended(s.c, &code, &why), table[i].why != NULL);
        CHECK_STR(why ? why : "", table[i].why ? table[i].why : "");
        CHECK_INT(code, table[i].why != NULL);
        CHECK_INT(heard(&s.out, 10, FL_MSG_END) != NULL, code);
        close_scene(&s);
    }
}

/* Rounds wait for trainers that are silent, but not for one that has failed by
 * itself if nobody starts it again. */
static void does_not_wait_for_a_final_failure(void)
{
    static const struct {
        int64_t failed;
        bool closes;
    } table[] = {{0, false}, {-1, true}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        scene s;
        int code = 0;
        const char *why;
        open_scene(&s, (fl_job){.trainers = 2,
                                .rejoin = 60 * FL_SEC,
                                .rejoin_failed = table[i].failed,
                                .hold = 60 * FL_SEC});
        join(&s, 1, 0, 10);
        renew(&s, 1);
        join(&s, 2, 1, 20);
        renew(&s, 2);
        about(&s, FL_MSG_FAILED, 2, 0);
        about(&s, FL_MSG_BARRIER, 1, 0);
        CHECK_INT(fl_coord_round(s.c), table[i].closes);
        about(&s, FL_MSG_FAILED, 1, 0);
        pass(&s, 1 * FL_SEC, 0, 0);
        CHECK_INT(fl_coord_ended(s.c, &code, &why), table[i].closes);
        close_scene(&s);
    }
}

static void ends_when_all_who_came_have_failed(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 3});
    join(&s, 1, FL_ANY_ID, 10);
    renew(&s, 1);
    join(&s, 2, FL_ANY_ID, 20);
    renew(&s, 2);
    tell(&s, 10,
         (fl_msg){.kind = FL_MSG_FAILED,
                  .session = session(1),
                  .code = 3,
                  .text = "no feed"});
    pass(&s, 40 * FL_SEC, 2, 0);
    CHECK(!fl_coord_ended(s.c, &code, &why)); /* one trainer is left */
    about(&s, FL_MSG_FAILED, 2, 0);
    pass(&s, 29 * FL_SEC, 0, 0);
    CHECK(!fl_coord_ended(s.c, &code, &why)); /* the other may come back */
    pass(&s, 2 * FL_SEC, 0, 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_INT(code, 3);
    CHECK_STR(why, "trainer 0: no feed");
    close_scene(&s);
}

/* With the launcher no trainer is started again, but some may start late. */
static void waits_for_late_trainers_after_a_failure(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 2, .rejoin = 1});
    join(&s, 1, 1, 10);
    renew(&s, 1);
    tell(&s, 10,
         (fl_msg){.kind = FL_MSG_FAILED,
                  .session = session(1),
                  .code = 3,
                  .text = "a bad line"});
    pass(&s, 15 * FL_SEC, 0, 0);
    CHECK(!fl_coord_ended(s.c, &code, &why)); /* trainer 0 may still come */
    fl_str rows = {0};
    fl_coord_waits(s.c, s.now, &rows);
    CHECK(strstr(rows.at, "coordinator waits for trainer 0: to come, 15.0 s "
                          "(limit 20.0 s)\n") != NULL);
    fl_str_fini(&rows);
    pass(&s, 6 * FL_SEC, 0, 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_INT(code, 3);
    close_scene(&s);
}

static void ends_by_a_server_that_refuses_connections(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 1, .servers = 2});
    fl_coord_refused(s.c, 1, true, s.now); /* not heard yet: may start late */
    s.now += 6 * FL_SEC;
    fl_coord_refused(s.c, 1, true, s.now);
    state(&s, 1, (fl_msg){0});
    for (int i = 0; i < 5; i++, s.now += FL_SEC) {
        fl_coord_refused(s.c, 1, true, s.now);
        CHECK(!fl_coord_ended(s.c, &code, &why));
    }
    fl_coord_refused(s.c, 1, false,
                     s.now); /* perhaps only the network failed */
    CHECK(!fl_coord_ended(s.c, &code, &why));
    fl_coord_refused(s.c, 1, true, s.now);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_STR(why,
              "server 1 has refused connections for 5 s: it has ended or was "
              "killed");
    close_scene(&s);
}

static void ends_by_a_server_that_is_silent_or_broken(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){.trainers = 1, .servers = 2});
    state(&s, 1,
          (fl_msg){.over = true, .code = 1, .text = "server 1: no memory"});
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_STR(why, "server 1: no memory"); /* the server names itself */
    close_scene(&s);
    open_scene(&s, (fl_job){.trainers = 1});
    state(&s, 0, (fl_msg){0});
    all_come(&s);
    pass(&s, 61 * FL_SEC, 1, 0);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_STR(why, "server 0 does not answer");
    close_scene(&s);
}

/* --- fl_coord_admit --- */

static int admit(scene *s, fl_id job, uint64_t n)
{
    const fl_msg m = {
        .kind = FL_MSG_TALLY, .job = job, .session = session(n), .tag = 5};
    fl_outbox_clear(&s->out);
    return fl_coord_admit(s->c, on_call(50), &m, s->now);
}

static void members_alone_are_admitted(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    CHECK_INT(admit(&s, job_id, 2), 1);
    CHECK_INT(s.out.out.n, 0);
    CHECK_INT(admit(&s, job_id, 3), -1);
    CHECK(heard(&s.out, 50, FL_MSG_FENCED) != NULL);
    CHECK_INT(admit(&s, (fl_id){1, 2}, 2), -1);
    CHECK(heard(&s.out, 50, FL_MSG_ERROR) != NULL);
    fl_coord_end(s.c, 1, "enough", s.now);
    CHECK_INT(admit(&s, job_id, 2), -1);
    CHECK_INT(heard(&s.out, 50, FL_MSG_END)->tag, 5);
    close_scene(&s);
}

/* --- a round that waits --- */

static void waits_for_a_lost_rank(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){.trainers = 2, .hold = 30 * FL_SEC});
    all_come(&s);
    barrier(&s, 1, 0);
    about(&s, FL_MSG_FAILED, 2, 0); /* trainer 1 */
    CHECK_INT(fl_coord_round(s.c), 0);
    fl_coord_waits(s.c, s.now + 3 * FL_SEC, &rows);
    CHECK(strstr(rows.at, "coordinator waits for trainer 1 (was host:2): to "
                          "come back for round 0, 3.0 s (limit 30.0 s)"));
    join_as(&s, 3, 1, 60); /* though the round has a barrier */
    CHECK_INT(granted(&s, 60), 1);
    CHECK_INT(heard(&s.out, 60, FL_MSG_GRANT)->round, 0);
    barrier(&s, 3, 0);
    const fl_msg *close = said(&s.out, FL_MSG_CLOSE);
    CHECK(close && close->n_member == 2);
    fl_str_fini(&rows);
    close_scene(&s);
}

static void goes_on_without_a_rank_in_the_end(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2, .hold = 30 * FL_SEC});
    all_come(&s);
    barrier(&s, 1, 0);
    about(&s, FL_MSG_FAILED, 2, 0);
    pass(&s, 20 * FL_SEC, 1, 0);
    join_as(&s, 3, 1, 60);
    renew(&s, 3);
    about(&s, FL_MSG_FAILED, 3, 0); /* again: that gains no time */
    pass(&s, 9 * FL_SEC, 1, 0);
    CHECK_INT(fl_coord_round(s.c), 0);
    pass(&s, 2 * FL_SEC, 1, 0);
    CHECK_INT(fl_coord_round(s.c), 1);
    barrier(&s, 1, 1); /* nor is it waited for in the next round */
    CHECK_INT(fl_coord_round(s.c), 2);
    close_scene(&s);
}

/* --- what outlives the process --- */

/* The process is killed after its last image, and started again. */
static void restart_coord(scene *s)
{
    fl_str image = {0};
    fl_coord_image(s->c, &image);
    fl_coord_free(s->c);
    fl_outbox_clear(&s->out);
    s->c = fl_coord_new(&s->job, (fl_state){77, 2}, &s->out, s->now);
    CHECK_OK(fl_coord_restore(s->c, image.at, image.n, s->now));
    fl_str_fini(&image);
}

static void keeps_sessions_over_a_restart(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    restart_coord(&s);
    CHECK_INT(fl_coord_view(s.c), 2);
    join_as(&s, 2, 1, 40); /* its GRANT was lost */
    CHECK_INT(granted(&s, 40), 1);
    pass(&s, 14 * FL_SEC, 0, 0);
    CHECK(fl_coord_has(s.c, session(1))); /* a lease, and five seconds */
    pass(&s, 2 * FL_SEC, 0, 0);
    CHECK(!fl_coord_has(s.c, session(1)));
    restart_coord(&s);
    join_as(&s, 1, 0, 41);
    CHECK(mentions(heard(&s.out, 41, FL_MSG_FENCED), "lease ran out"));
    join_as(&s, 3, 0, 42);
    CHECK_INT(granted(&s, 42), 0);
    close_scene(&s);
}

static void keeps_barriers_over_a_restart(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    barrier(&s, 1, 0);
    restart_coord(&s);
    barrier(&s, 2, 0);
    CHECK_INT(said(&s.out, FL_MSG_CLOSE)->n_member, 2);
    restart_coord(&s);
    CHECK_INT(fl_coord_round(s.c), 1);
    fl_coord_tick(s.c, s.now += 250 * FL_MS);
    CHECK_INT(said(&s.out, FL_MSG_CLOSE)->round, 0); /* until it is closed */
    CHECK_INT(said(&s.out, FL_MSG_CLOSE)->n_member, 2);
    close_scene(&s);
}

static void says_when_an_image_is_needed(void)
{
    scene s;
    fl_str image = {0};
    open_scene(&s, (fl_job){.trainers = 1});
    join_as(&s, 1, 0, 10);
    CHECK(fl_coord_changed(s.c));
    fl_coord_image(s.c, &image);
    CHECK(!fl_coord_changed(s.c));
    renew(&s, 1);
    pass(&s, FL_SEC, 1, 0);
    CHECK(!fl_coord_changed(s.c)); /* leases are not kept */
    barrier(&s, 1, 0);
    CHECK(fl_coord_changed(s.c));
    fl_coord_image(s.c, &image);
    about(&s, FL_MSG_COMPLETE, 1, 0);
    CHECK(fl_coord_changed(s.c));
    fl_str_fini(&image);
    close_scene(&s);
}

static void keeps_the_verdict_over_a_restart(void)
{
    scene s;
    int code = 0;
    const char *why = NULL;
    open_scene(&s, (fl_job){.trainers = 1});
    all_come(&s);
    about(&s, FL_MSG_COMPLETE, 1, 0);
    restart_coord(&s);
    CHECK(fl_coord_ended(s.c, &code, &why));
    CHECK_INT(code, 0);
    fl_coord_tick(s.c, s.now += 250 * FL_MS);
    CHECK(said(&s.out, FL_MSG_END));
    close_scene(&s);
}

/* An echo from before the restart does not prove that the holder lives. */
static void draws_probes_above_old_ones(void)
{
    scene s;
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    join_as(&s, 3, 1, 50);
    const uint64_t old = heard(&s.out, 902, FL_MSG_PROBE)->echo;
    restart_coord(&s);
    renew(&s, 2);
    join_as(&s, 3, 1, 51);
    const uint64_t fresh = heard(&s.out, 902, FL_MSG_PROBE)->echo;
    CHECK(old < UINT32_MAX && fresh > (uint64_t)2 << 32);
    close_scene(&s);
}

static void refuses_a_changed_image(void)
{
    scene s;
    fl_str image = {0};
    open_scene(&s, (fl_job){.trainers = 2});
    all_come(&s);
    barrier(&s, 1, 0);
    fl_coord_image(s.c, &image);
    for (size_t i = 0; i < image.n; i++) {
        fl_coord *other =
            fl_coord_new(&s.job, (fl_state){77, 2}, &s.out, s.now);
        image.at[i] ^= 4;
        CHECK_INT(fl_coord_restore(other, image.at, image.n, s.now), FL_EPROTO);
        image.at[i] ^= 4;
        fl_coord_free(other);
    }
    fl_str_fini(&image);
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"a join gets a fresh rank", grants_a_fresh_rank},
    {"a join gets its lost rank", grants_a_lost_rank_to_its_claimant},
    {"a join waits for a held rank", parks_for_a_held_rank},
    {"a join gets another rank if the holder lives",
     gives_another_rank_if_the_holder_lives},
    {"a join gets a fresh rank for one that is done",
     gives_a_fresh_rank_for_one_that_is_done},
    {"a lost rank is its claimant's for a time",
     keeps_a_lost_rank_for_its_claimant},
    {"a join without a rank hears who holds them",
     names_the_holders_when_all_are_held},
    {"a join waits while a round has a barrier",
     parks_while_a_round_has_a_barrier},
    {"a join is served before round 0 opens",
     lets_everyone_in_before_round_0_opens},
    {"a trainer that dies after its grant is lost like any other",
     loses_a_trainer_that_dies_after_its_grant},
    {"a join whose call broke is forgotten", forgets_a_join_whose_call_broke},
    {"a coordinator refuses strangers", refuses_strangers},
    {"a coordinator parks so many joins", limits_parked_joins},
    {"a broken call leaves a second", gives_a_second_after_a_broken_call},
    {"a coordinator that slept blames nobody", blames_nobody_for_its_own_sleep},
    {"a decision waits for a server that is far behind",
     waits_for_a_server_that_is_far_behind},
    {"a round has who is there, by rank", decides_by_rank_for_who_is_there},
    {"a decision stays whoever is lost", keeps_a_decision_whoever_is_lost},
    {"a round goes on without who completed", lets_uneven_trainers_finish},
    {"a job ends when all are done", ends_when_all_are_done},
    {"a failed job does not wait for a server that never came",
     does_not_wait_after_a_failure_for_a_server_that_never_came},
    {"the first refusal is not taken for an end",
     does_not_take_the_first_refusal_for_an_end},
    {"a job ends with the first failure left",
     ends_with_the_first_failure_left},
    {"a lost session's completion counts once",
     counts_the_completion_of_a_lost_session},
    {"a job ends at the start limit", ends_at_the_start_limit},
    {"a coordinator counts aloud who came", counts_aloud_while_it_waits},
    {"a stall is reported by name", reports_a_stall_by_name},
    {"the wait for lost trainers is reported when no other is left",
     waits_by_name_when_no_trainer_is_left},
    {"a job goes back for any state that began with a snapshot",
     goes_back_for_any_state_of_a_snapshot},
    {"coord goes back to an older snapshot", goes_back_to_an_older_snapshot},
    {"coord ends without an older snapshot", ends_without_an_older_snapshot},
    {"coord forgets snapshots that were removed",
     forgets_snapshots_that_were_removed},
    {"coord goes back though the newest snapshot is gone",
     goes_back_though_the_newest_snapshot_is_gone},
    {"a job ends by a server that failed before it went back",
     ends_by_a_server_that_failed_before_the_job_went_back},
    {"a process that says it is a server gets an answer at once",
     answers_a_process_that_says_it_is_a_server},
    {"a server that lost its state ends the job",
     knows_a_server_that_lost_its_state},
    {"a silent or broken server ends the job",
     ends_by_a_server_that_is_silent_or_broken},
    {"a server that refuses connections ends the job",
     ends_by_a_server_that_refuses_connections},
    {"a trainer that knows another state ends the job",
     ends_by_a_trainer_that_knows_another_state},
    {"a job waits for late trainers after a failure",
     waits_for_late_trainers_after_a_failure},
    {"a failure may be final: nobody waits for its trainer",
     does_not_wait_for_a_final_failure},
    {"a job ends when all who came have failed",
     ends_when_all_who_came_have_failed},
    {"a second process with an id is turned away",
     turns_away_a_second_process_with_an_id},
    {"an id is granted to who comes back with it",
     grants_an_id_to_who_comes_back},
    {"ids are given in order of arrival", gives_ids_in_order_of_arrival},
    {"members alone are admitted", members_alone_are_admitted},
    {"sessions outlive a restart of the coordinator",
     keeps_sessions_over_a_restart},
    {"barriers and decisions outlive a restart", keeps_barriers_over_a_restart},
    {"the coordinator says when an image is needed",
     says_when_an_image_is_needed},
    {"the verdict outlives a restart", keeps_the_verdict_over_a_restart},
    {"probes of a restarted coordinator are new", draws_probes_above_old_ones},
    {"an image with another byte is refused", refuses_a_changed_image},
    {"a round waits for a lost rank if told so", waits_for_a_lost_rank},
    {"a round goes on without a rank in the end",
     goes_on_without_a_rank_in_the_end},
    {0},
};
