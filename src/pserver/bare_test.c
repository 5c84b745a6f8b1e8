/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/bare.h"

#include "pserver/test_server.h"

static const float ten[] = {10, 20};

/* A job on one server, and a bare server that gets it. */
typedef struct bare_scene {
    town t;
    fl_machines *machines;
    fl_bare *bare;
    int64_t now;
    int begun; /* how often a job has begun */
    char who[96];
    uint64_t call; /* of the last answer; 0: there is none yet */
    fl_msg_kind kind;
    int64_t round;
    int code;
    char text[512];
} bare_scene;

static void note_answer(void *self, uint64_t call, const fl_msg *m)
{
    bare_scene *s = self;
    s->call = call;
    s->kind = m->kind;
    s->round = m->round;
    s->code = m->code;
    snprintf(s->text, sizeof s->text, "%s", m->text ? m->text : "");
    CHECK(m->job.lo == 4 && m->tag == call);
}

static fl_err note_begin(void *self, const fl_arrival *job, const char *who,
                         bool kept)
{
    bare_scene *s = self;
    CHECK(!kept);
    CHECK(s->call == 1); /* the last part is not answered yet */
    CHECK(fl_scope_find(fl_arrival_scope(job), "w"));
    snprintf(s->who, sizeof s->who, "%s", who);
    s->begun++;
    return FL_OK;
}

static void begin_bare(bare_scene *s)
{
    *s = (bare_scene){.now = FL_SEC};
    town_cut(&s->t, 1, 2, false);
    s->machines =
        fl_machines_new(&(fl_machines_opts){.clock = fl_clock_real()});
    s->bare = fl_bare_new(&(fl_bare_opts){.env = &s->t.host[0].env,
                                          .trainers = 2,
                                          .machines = s->machines,
                                          .self = s,
                                          .answer = note_answer,
                                          .begin = note_begin});
}

static void end_bare(bare_scene *s)
{
    fl_bare_free(s->bare);
    fl_machines_free(s->machines);
    town_close(&s->t);
}

static fl_msg setup_message(uint64_t sender, uint64_t call, int64_t seq,
                            fl_parcel *p)
{
    return (fl_msg){.kind = FL_MSG_SETUP,
                    .job = {3, 4},
                    .session = {1, sender},
                    .tag = call,
                    .seq = seq,
                    .count = 2,
                    .text = "host:77",
                    .about = "servers x\ntrainers 2\nmode synchronous\n",
                    .blob = p ? fl_parcel_blob(p) : (fl_blob){0}};
}

/* Own: takes p. */
static void send_part(bare_scene *s, uint64_t sender, uint64_t call,
                      int64_t seq, fl_parcel *p)
{
    const fl_msg m = setup_message(sender, call, seq, p);
    fl_bare_add(s->bare, call, &m, "10.0.0.7:99", s->now);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
}

static void send_programs(bare_scene *s, uint64_t sender, uint64_t call)
{
    const fl_cut *c = s->t.s.cut;
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_bytes(p, "servers", s->t.all, strlen(s->t.all));
    parcel_add_program(p, "program", c->server[0]);
    parcel_add_program(p, "startup", c->server_startup[0]);
    send_part(s, sender, call, 1, p);
}

static void send_start(bare_scene *s, uint64_t sender, uint64_t call)
{
    const fl_shape shape = {2, {2, 1}};
    const fl_tensor t = fl_tensor_view(FL_F32, &shape, ten);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "w", &t);
    send_part(s, sender, call, 2, p);
}

static void check_answer(const bare_scene *s, uint64_t call, fl_msg_kind kind,
                         const char *text)
{
    CHECK_INT((int64_t)s->call, (int64_t)call);
    CHECK_INT(s->kind, kind);
    CHECK_STR(s->text, text);
}

static void a_job_arrives_in_parts(void)
{
    bare_scene s;
    begin_bare(&s);
    CHECK(!fl_bare_take(s.bare));
    CHECK(!fl_bare_encode(s.bare));
    send_programs(&s, 5, 1);
    send_start(&s, 5, 2);
    CHECK_INT((int64_t)s.call, 0); /* the caller's thread answers */
    CHECK(fl_bare_take(s.bare));
    check_answer(&s, 1, FL_MSG_ACK, "");
    CHECK_INT(s.round, 0);
    CHECK_INT(s.begun, 0);
    CHECK(fl_bare_take(s.bare));
    check_answer(&s, 2, FL_MSG_ACK, "");
    CHECK_INT(s.round, 1);
    CHECK_INT(s.begun, 1);
    CHECK_STR(s.who, "host:77 (10.0.0.7:99)");
    CHECK(!fl_bare_take(s.bare));
    fl_packet *setup = fl_bare_encode(s.bare);
    CHECK(setup);
    fl_packet_unref(setup);
    end_bare(&s);
}

static void senders_do_not_mix(void)
{
    bare_scene s;
    begin_bare(&s);
    send_part(&s, 6, 1, 0, NULL); /* a question: is there a job? */
    check_answer(&s, 1, FL_MSG_ACK, "");
    CHECK_INT(s.round, 0);
    send_programs(&s, 5, 2);
    s.now += 10 * FL_SEC - 1;
    send_programs(&s, 6, 3);
    check_answer(&s, 3, FL_MSG_PARKED, "another process brings a program");
    s.now++;
    send_programs(&s, 6, 4); /* the first one is silent for too long */
    check_answer(&s, 3, FL_MSG_PARKED, "another process brings a program");
    CHECK(fl_bare_take(s.bare) && fl_bare_take(s.bare));
    check_answer(&s, 4, FL_MSG_ACK, "");
    end_bare(&s);
}

static void a_refused_part_is_forgotten(void)
{
    bare_scene s;
    begin_bare(&s);
    send_start(&s, 5, 1);
    CHECK(fl_bare_take(s.bare));
    check_answer(&s, 1, FL_MSG_PARKED,
                 "this server was started again, and has no program yet");
    send_part(&s, 5, 2, 1, fl_parcel_new());
    CHECK(fl_bare_take(s.bare));
    CHECK_INT((int64_t)s.call, 2);
    CHECK_INT(s.kind, FL_MSG_ERROR);
    CHECK_INT(s.code, FL_EPROTO);
    send_programs(&s, 6, 3); /* another sender need not wait */
    CHECK(fl_bare_take(s.bare));
    check_answer(&s, 3, FL_MSG_ACK, "");
    end_bare(&s);
}

static void a_server_says_whose_job_it_runs(void)
{
    const fl_job job =
        fl_job_defaults((fl_job){.id = {3, 4}, .servers = 1, .trainers = 2});
    const fl_store store = {.keep = fl_keeper_copies};
    bare_scene s;
    fl_server *server;
    fl_coord *coord;
    begin_bare(&s);
    fl_machines_begin(
        s.machines,
        &(fl_machines_job){.job = &job, .state = {1, 1}, .store = &store},
        &server, &coord);
    fl_msg m = setup_message(5, 1, 1, NULL);
    fl_bare_refuse(s.bare, 1, &m, &job, server, s.now);
    check_answer(&s, 1, FL_MSG_ACK, "");
    CHECK_INT(s.round, 1);
    m = setup_message(5, 2, 1, NULL);
    m.job.hi = 9;
    fl_bare_refuse(s.bare, 2, &m, &job, server, s.now);
    check_answer(&s, 2, FL_MSG_ERROR,
                 "this server runs the job that a server's script brought");
    CHECK(!fl_bare_give_up(s.bare)); /* it is not from a state */
    CHECK(!fl_bare_gave_up(s.bare));
    end_bare(&s);
}

const fl_test fl_tests[] = {
    {"a job arrives in parts", a_job_arrives_in_parts},
    {"parts of two senders do not mix", senders_do_not_mix},
    {"a part that is refused is forgotten", a_refused_part_is_forgotten},
    {"a server says whose job it runs", a_server_says_whose_job_it_runs},
    {0},
};
