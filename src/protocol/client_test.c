/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/client.h"

#include "protocol/test_talk.h"
#include "protocol/window.h"

/* One client, and how often its callbacks were called. */
typedef struct scene {
    fl_job job;
    fl_outbox out;
    fl_app app;
    fl_entropy entropy;
    fl_client *c;
    int64_t now;
    int ready, fenced, over, code;
    char why[128];
} scene;

static void on_values(void *self, int server, const fl_msg *m)
{
}

static void on_ready(void *self, int rank, int64_t round)
{
    ((scene *)self)->ready++;
}

static void on_fenced(void *self, const char *why)
{
    ((scene *)self)->fenced++;
}

static void on_over(void *self, int code, const char *why)
{
    scene *s = self;
    s->over++;
    s->code = code;
    snprintf(s->why, sizeof s->why, "%s", why);
}

static void open_scene(scene *s, fl_job job)
{
    job.id = job_id;
    job.trainers = 4;
    *s = (scene){.job = fl_job_defaults(job), .now = FL_SEC};
    s->app =
        (fl_app){s, fl_keeper_copies, on_values, on_ready, on_fenced, on_over};
    s->entropy = fl_entropy_fake(1);
    fl_outbox_init(&s->out);
    s->c = fl_client_new(&s->job, &s->app, 2, "me:1", &s->entropy, &s->out);
    fl_client_start(s->c, s->now);
}

static void close_scene(scene *s)
{
    fl_client_free(s->c);
    fl_outbox_fini(&s->out);
}

/* Answer the newest request of a kind. */
static void answer(scene *s, fl_msg_kind asked, fl_peer from, fl_msg m)
{
    const fl_msg *request = said(&s->out, asked);
    CHECK(request != NULL);
    m.job = job_id;
    m.tag = request->tag;
    m.session = request->session;
    fl_client_recv(s->c, from, &m, s->now);
}

/* Answer every request in the outbox once, with success. */
static void agree(scene *s)
{
    const int64_t n = s->out.out.n;
    for (int64_t i = 0; i < n; i++) {
        const fl_envelope o = s->out.out.at[i];
        fl_msg m = o.msg;
        if (m.kind == FL_MSG_RENEW)
            continue;
        m.kind = m.kind == FL_MSG_JOIN   ? FL_MSG_GRANT
                 : m.kind == FL_MSG_PULL ? FL_MSG_VALUES
                                         : FL_MSG_ACK;
        m.g = 3;
        fl_client_recv(s->c, o.to, &m, s->now);
    }
    for (int64_t i = 0; i < n; i++)
        fl_remove(&s->out.out, 0);
}

static void become_ready(scene *s)
{
    agree(s); /* JOIN */
    agree(s); /* PULL */
    CHECK_INT(fl_client_now(s->c), FL_CLIENT_READY);
}

static void tick(scene *s, int64_t time)
{
    for (const int64_t end = s->now + time; s->now < end;)
        fl_client_tick(s->c, s->now += 250 * FL_MS);
}

static fl_msg from_state(fl_msg_kind kind, uint64_t id, int64_t incarnation)
{
    return (fl_msg){.kind = kind, .g = 3, .state = {id, incarnation}};
}

/* Go through rounds 0 and 1. The state id of the coordinator and server 0 is 5,
 * that of server 1 is 6. */
static void pull_twice(scene *s)
{
    agree(s);
    for (int i = 0; i < 2; i++) {
        fl_msg values = s->out.out.at[s->out.out.n - 2 + i].msg;
        values.kind = FL_MSG_VALUES;
        values.state = (fl_state){5 + (uint64_t)i, 1};
        fl_client_recv(s->c, at_server(i), &values, s->now);
    }
    CHECK_INT(fl_client_now(s->c), FL_CLIENT_READY);
    CHECK_OK(fl_client_step(s->c, s->now));
    fl_remove(&s->out.out, 0);
    agree(s); /* PUSH */
    agree(s); /* BARRIER, PULL */
    CHECK_INT(s->ready, 2);
}

static void makes_a_round(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    CHECK_INT(said(&s.out, FL_MSG_JOIN)->rank, 2);
    become_ready(&s);
    CHECK_INT(s.ready, 1);
    CHECK_OK(fl_client_push(s.c, 0, (fl_blob){"ab", 2, NULL}, false, s.now));
    CHECK_OK(fl_client_step(
        s.c, s.now)); /* makes the last pushes, which are empty */
    const fl_msg *last = said(&s.out, FL_MSG_PUSH);
    CHECK(last->count == 1 && last->seq == 1); /* the push to server 1 */
    CHECK(!said(&s.out, FL_MSG_BARRIER));
    agree(&s);
    CHECK_INT(said(&s.out, FL_MSG_BARRIER)->round, 0);
    CHECK_INT(said(&s.out, FL_MSG_PULL)->round, 1);
    agree(&s);
    CHECK_INT(s.ready, 2);
    CHECK_INT(fl_client_round(s.c), 1);
    fl_client_leave(s.c, 0, NULL, s.now);
    CHECK(said(&s.out, FL_MSG_COMPLETE));
    agree(&s);
    CHECK(s.over == 1 && s.code == 0);
    close_scene(&s);
}

static void says_that_a_job_goes_on_with_a_kept_state(void)
{
    for (int starts = 1; starts <= 2; starts++) {
        scene s;
        open_scene(&s, (fl_job){.servers = 2});
        answer(&s, FL_MSG_JOIN, (fl_peer){FL_PEER_COORD, 0, 0},
               from_state(FL_MSG_PARKED, 5, starts));
        answer(&s, FL_MSG_JOIN, (fl_peer){FL_PEER_COORD, 0, 0},
               from_state(FL_MSG_GRANT, 5, starts));
        int said_so = 0;
        for (int64_t i = 0; i < s.out.note.n; i++)
            said_so += !!strstr(s.out.note.at[i],
                                "server 0 goes on with the parameters that an "
                                "earlier process of it held");
        CHECK_INT(said_so, starts - 1); /* once */
        close_scene(&s);
    }
}

static void makes_no_barrier_in_async_mode(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true});
    become_ready(&s);
    CHECK_OK(fl_client_push(s.c, 0, (fl_blob){"a", 1, NULL}, true, s.now));
    CHECK_OK(fl_client_step(s.c, s.now));
    agree(&s);
    CHECK(!said(&s.out, FL_MSG_BARRIER));
    CHECK(said(&s.out, FL_MSG_PULL));
    close_scene(&s);
}

/* An asynchronous trainer may push several series without a step in between. */
static void pushes_on_in_async_mode(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true, .max_parts = 4});
    become_ready(&s);
    for (int i = 1; i <= 9; i++) {
        CHECK_OK(
            fl_client_push(s.c, 0, (fl_blob){"a", 1, NULL}, i % 3 == 0, s.now));
        CHECK_INT(said(&s.out, FL_MSG_PUSH)->count, i % 3 ? 0 : 3);
        CHECK(fl_client_pushes(s.c));
        agree(&s);
        CHECK(!fl_client_pushes(s.c));
        CHECK_INT(fl_client_now(s.c), FL_CLIENT_READY);
    }
    close_scene(&s);
}

/* A step without a pull counts when its BARRIER is acknowledged. */
static void commits_a_step(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true});
    become_ready(&s);
    CHECK_ERR(fl_client_commit(s.c, s.now), FL_EINVAL, "have a position");
    for (int i = 1; i <= 2; i++) {
        CHECK_OK(fl_client_position(s.c, "there"));
        CHECK_OK(fl_client_push(s.c, 0, (fl_blob){"a", 1, NULL}, true, s.now));
        CHECK_INT(said(&s.out, FL_MSG_PUSH)->step, i);
        CHECK_ERR(fl_client_commit(s.c, s.now), FL_EINVAL, "acknowledged");
        agree(&s);
        CHECK_OK(fl_client_commit(s.c, s.now));
        CHECK_INT(said(&s.out, FL_MSG_BARRIER)->step, i);
        CHECK(fl_client_pushes(s.c));
        CHECK_INT(fl_client_steps(s.c), i - 1);
        CHECK_ERR(fl_client_position(s.c, NULL), FL_EINVAL,
                  "does not count yet");
        agree(&s);
        CHECK(!fl_client_pushes(s.c) && !said(&s.out, FL_MSG_PULL));
        CHECK_INT(fl_client_steps(s.c), i);
        CHECK_INT(fl_client_now(s.c), FL_CLIENT_READY);
    }
    close_scene(&s);
}

static void asks_again(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    const uint64_t tag = said(&s.out, FL_MSG_JOIN)->tag;
    fl_outbox_clear(&s.out);
    tick(&s, 4 * FL_SEC);
    CHECK(!said(&s.out, FL_MSG_JOIN));
    tick(&s, 2 * FL_SEC);
    CHECK_INT((int64_t)said(&s.out, FL_MSG_JOIN)->tag, (int64_t)tag);
    fl_outbox_clear(&s.out);
    fl_client_broken(s.c, tag, s.now); /* a broken call is retried sooner */
    tick(&s, 500 * FL_MS);
    CHECK(said(&s.out, FL_MSG_JOIN));
    close_scene(&s);
}

static void joins_again_when_fenced(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    const fl_id first = fl_client_session(s.c);
    agree(&s); /* granted rank 2 */
    const uint64_t old = said(&s.out, FL_MSG_PULL)->tag;
    answer(&s, FL_MSG_PULL, at_server(0), (fl_msg){.kind = FL_MSG_FENCED});
    CHECK_INT(s.fenced, 1);
    CHECK(!fl_id_same(first, fl_client_session(s.c)));
    CHECK_INT(said(&s.out, FL_MSG_JOIN)->rank, 2);
    const fl_msg late = {.kind = FL_MSG_FENCED, .job = job_id, .tag = old};
    fl_client_recv(s.c, at_server(0), &late, s.now);
    CHECK_INT(s.fenced, 1); /* a FENCED to an answered request is ignored */
    close_scene(&s);
}

static void joins_again_to_complete(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    become_ready(&s);
    fl_client_leave(s.c, 0, NULL, s.now);
    answer(&s, FL_MSG_COMPLETE, at_coord(), (fl_msg){.kind = FL_MSG_FENCED});
    fl_outbox_clear(&s.out);
    tick(&s, 6 * FL_SEC);
    agree(&s); /* JOIN */
    CHECK(said(&s.out, FL_MSG_COMPLETE));
    CHECK(!said(&s.out, FL_MSG_PULL));
    close_scene(&s);
}

static void answers_a_probe(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    agree(&s);
    fl_outbox_clear(&s.out);
    const fl_msg probe = {.kind = FL_MSG_PROBE,
                          .job = job_id,
                          .session = fl_client_session(s.c),
                          .echo = 12};
    fl_client_recv(s.c, at_coord(), &probe, s.now);
    CHECK_INT((int64_t)said(&s.out, FL_MSG_RENEW)->echo, 12);
    close_scene(&s);
}

static void keeps_to_the_window(void)
{
    scene s;
    int sent = 0;
    open_scene(&s, (fl_job){0});
    become_ready(&s);
    for (int i = 0; i < FL_WINDOW + 10; i++)
        CHECK_OK(fl_client_push(s.c, 0, (fl_blob){"a", 1, NULL}, false, s.now));
    for (int64_t i = 0; i < s.out.out.n; i++)
        sent += s.out.out.at[i].msg.kind == FL_MSG_PUSH;
    CHECK_INT(sent, FL_WINDOW);
    agree(&s);
    CHECK_INT(said(&s.out, FL_MSG_PUSH)->seq, FL_WINDOW + 10);
    close_scene(&s);
}

static void gives_up_with_a_sentence(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    agree(&s); /* JOIN; server 1 does not answer its PULL */
    fl_msg values = s.out.out.at[s.out.out.n - 2].msg; /* PULL of server 0 */
    values.kind = FL_MSG_VALUES;
    fl_client_recv(s.c, at_server(0), &values, s.now);
    for (int i = 0; i < 60; i++) {
        const fl_msg ack = {.kind = FL_MSG_ACK, .job = job_id};
        fl_client_recv(s.c, at_coord(), &ack, s.now);
        tick(&s, FL_SEC);
    }
    const fl_msg *m = said(&s.out, FL_MSG_FAILED);
    CHECK(mentions(m, "server 1 has not answered PULL for 60 s"));
    for (int i = 0; i < 61; i++)
        tick(&s, FL_SEC); /* the coordinator does not answer FAILED either */
    CHECK_INT(s.over, 1);
    CHECK(strstr(s.why, "server 1 has not answered PULL for 60 s"));
    close_scene(&s);
}

/* The coordinator has ended with server 0, so no FAILED can be sent. */
static void gives_up_at_once_with_the_first_server(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    agree(&s);
    for (int i = 0; i < 61; i++)
        tick(&s, FL_SEC);
    CHECK_INT(s.over, 1);
    CHECK_STR(s.why, "server 0 has not answered PULL for 60 s");
    close_scene(&s);
}

static void gives_up_soon_where_nobody_listens(void)
{
    for (int server = 0; server < 2; server++) {
        scene s;
        open_scene(&s, (fl_job){.servers = 2});
        for (int i = 0; i < 20; i++, s.now += FL_SEC)
            fl_client_refused(s.c, at_server(server), s.now);
        CHECK_INT(s.over, 0); /* it may be slow to start */
        pull_twice(&s);
        fl_outbox_clear(&s.out);
        for (int i = 0; i < 5; i++, s.now += FL_SEC)
            fl_client_refused(s.c, at_server(server), s.now);
        CHECK(!s.over && !said(&s.out, FL_MSG_FAILED));
        fl_client_refused(s.c, at_server(server), s.now);
        if (server) /* the coordinator is alive and gets FAILED */
            CHECK(mentions(said(&s.out, FL_MSG_FAILED),
                           "server 1 has refused connections for 5 s: it has "
                           "ended or was killed"));
        else
            CHECK_STR(s.why, "server 0 has refused connections for 5 s: it has "
                             "ended or was killed");
        CHECK_INT(s.over, !server);
        close_scene(&s);
    }
}

static void is_patient_with_parked_requests(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    for (int i = 0; i < 200; i++) {
        answer(&s, FL_MSG_JOIN, at_coord(),
               (fl_msg){.kind = FL_MSG_PARKED, .text = "rank 2 is held"});
        tick(&s, FL_SEC);
    }
    CHECK_INT(s.over, 0);
    close_scene(&s);
}

static void hears_the_end(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    agree(&s);
    answer(&s, FL_MSG_PULL, at_server(0),
           (fl_msg){.kind = FL_MSG_END, .code = 3, .text = "trainer 1: broke"});
    CHECK(s.over == 1 && s.code == 3);
    CHECK_STR(s.why, "trainer 1: broke");
    CHECK_ERR(fl_client_step(s.c, s.now), FL_EINVAL, "not at a step");
    close_scene(&s);
    open_scene(&s, (fl_job){0});
    answer(&s, FL_MSG_JOIN, at_coord(),
           (fl_msg){.kind = FL_MSG_END, .text = "every trainer is complete"});
    CHECK(s.over == 1 && s.code == 1);
    CHECK_STR(s.why, "the job has ended before it could take in this trainer: "
                     "every trainer is complete");
    close_scene(&s);
}

static void says_how_another_job_differs(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    answer(&s, FL_MSG_JOIN, at_coord(),
           (fl_msg){.kind = FL_MSG_ERROR,
                    .text = "this is another job",
                    .about = "servers ?,?\ntrainers 3\nmode synchronous\n"});
    CHECK(s.over == 1 && s.code == 1);
    CHECK_STR(s.why, "the coordinator is of another job than this trainer: "
                     "trainers: 4 here, 3 there");
    close_scene(&s);
}

static void fails_when_refused(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    answer(&s, FL_MSG_JOIN, at_coord(),
           (fl_msg){.kind = FL_MSG_ERROR, .text = "not the same programs"});
    CHECK(s.over == 1 && s.code == 1);
    CHECK_INT(fl_client_error(s.c), FL_EIO);
    close_scene(&s);
    open_scene(&s, (fl_job){0});
    answer(&s, FL_MSG_JOIN, at_coord(),
           (fl_msg){.kind = FL_MSG_ERROR, .code = FL_EDONE, .text = "done"});
    CHECK(s.over == 1 && s.code == 1);
    CHECK_INT(fl_client_error(s.c), FL_EDONE);
    close_scene(&s);
    open_scene(&s, (fl_job){0});
    become_ready(&s);
    CHECK_OK(fl_client_push(s.c, 0, (fl_blob){0}, true, s.now));
    answer(&s, FL_MSG_PUSH, at_server(0),
           (fl_msg){.kind = FL_MSG_ERROR, .text = "push: not a number"});
    CHECK(mentions(said(&s.out, FL_MSG_FAILED), "push: not a number"));
    close_scene(&s);
}

static void says_what_it_has_seen(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    CHECK_INT(said(&s.out, FL_MSG_JOIN)->n_seen, 0);
    CHECK(said(&s.out, FL_MSG_JOIN)->explicit_id);
    pull_twice(&s);
    tick(&s, 3 * FL_SEC);
    const fl_msg *m = said(&s.out, FL_MSG_RENEW);
    CHECK(m->n_seen == 2 && m->seen[0] == 5 && m->seen[1] == 6);
    CHECK_INT(m->round, 1);
    const fl_msg fenced = {.kind = FL_MSG_FENCED,
                           .job = job_id,
                           .session = fl_client_session(s.c)};
    fl_client_recv(s.c, at_coord(), &fenced, s.now);
    m = said(&s.out, FL_MSG_JOIN); /* a new session of the same process */
    CHECK(m->n_seen == 2 && m->seen[0] == 5 && m->seen[1] == 6);
    CHECK_INT(m->round, 1);
    close_scene(&s);
}

static void ends_when_a_state_is_lost(void)
{
    static const char *const why[] = {
        "server 0 was started again and has lost its parameters; this trainer "
        "had version 1",
        "server 1 was started again and has lost its parameters; this trainer "
        "had version 1"};
    for (int i = 0; i < 3; i++) {
        scene s;
        open_scene(&s, (fl_job){.servers = 2});
        pull_twice(&s);
        fl_msg m = from_state(FL_MSG_FENCED, 7, 1);
        m.job = job_id;
        m.session = fl_client_session(s.c);
        fl_client_recv(s.c, i == 2 ? at_coord() : at_server(i), &m, s.now);
        CHECK_INT(s.fenced, 0);
        CHECK(mentions(said(&s.out, FL_MSG_FAILED), why[i % 2]));
        answer(&s, FL_MSG_FAILED, at_coord(), from_state(FL_MSG_ACK, 7, 1));
        CHECK(s.over == 1 && s.code == 1);
        CHECK_STR(s.why, why[i % 2]);
        close_scene(&s);
    }
}

static void asks_at_once_after_a_restart_with_its_state(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    pull_twice(&s);
    fl_client_leave(s.c, 0, NULL, s.now);
    fl_outbox_clear(&s.out);
    fl_msg m = from_state(FL_MSG_ACK, 5, 2);
    m.job = job_id;
    fl_client_recv(s.c, at_coord(), &m, s.now);
    tick(&s, 250 * FL_MS);
    CHECK(said(&s.out, FL_MSG_COMPLETE));
    CHECK_INT(s.over, 0);
    close_scene(&s);
}

static void refuses_a_round_below_what_it_pulled(void)
{
    scene s;
    open_scene(&s, (fl_job){.servers = 2});
    pull_twice(&s);
    const fl_msg fenced = {.kind = FL_MSG_FENCED,
                           .job = job_id,
                           .session = fl_client_session(s.c)};
    fl_client_recv(s.c, at_coord(), &fenced, s.now);
    answer(&s, FL_MSG_JOIN, at_coord(), from_state(FL_MSG_GRANT, 0, 0));
    CHECK(mentions(said(&s.out, FL_MSG_FAILED),
                   "offers round 0 to a trainer that has pulled version 1"));
    close_scene(&s);
}

static void lists_its_waits(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){0});
    fl_client_waits(s.c, s.now + 2 * FL_SEC, &rows);
    CHECK_STR(rows.at, "me:1 waits for the coordinator: answer to JOIN, "
                       "2.0 s (limit 58.0 s)\n");
    fl_str_fini(&rows);
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"a trainer makes a round", makes_a_round},
    {"client says that a job goes on with a kept state",
     says_that_a_job_goes_on_with_a_kept_state},
    {"an asynchronous trainer makes no barrier",
     makes_no_barrier_in_async_mode},
    {"an asynchronous trainer pushes on", pushes_on_in_async_mode},
    {"an asynchronous trainer commits a step", commits_a_step},
    {"a trainer asks again", asks_again},
    {"a fenced trainer joins again", joins_again_when_fenced},
    {"a trainer fenced at its end joins again to complete",
     joins_again_to_complete},
    {"a trainer answers a probe", answers_a_probe},
    {"a trainer keeps to the window", keeps_to_the_window},
    {"a trainer gives up with a sentence", gives_up_with_a_sentence},
    {"a trainer gives up at once with the first server",
     gives_up_at_once_with_the_first_server},
    {"a trainer gives up soon where nobody listens any more",
     gives_up_soon_where_nobody_listens},
    {"a trainer is patient with parked requests",
     is_patient_with_parked_requests},
    {"a trainer hears the end", hears_the_end},
    {"a refused trainer fails", fails_when_refused},
    {"a trainer says how another job differs", says_how_another_job_differs},
    {"a trainer says which states it has seen", says_what_it_has_seen},
    {"a trainer ends when a state is lost", ends_when_a_state_is_lost},
    {"a trainer asks at once after a restart with its state",
     asks_at_once_after_a_restart_with_its_state},
    {"a trainer refuses a round below what it pulled",
     refuses_a_round_below_what_it_pulled},
    {"a trainer lists its waits", lists_its_waits},
    {0},
};
