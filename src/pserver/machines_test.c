/* SPDX-License-Identifier: Apache-2.0 */
/* machines_test.c - what leaves the machines when their lock is released, and
 * in which order. */
#include "pserver/machines.h"

#include "protocol/test_talk.h"

typedef struct scene {
    fl_fake_clock clock;
    fl_job job;
    fl_store store;
    fl_machines *m;
    char
        did[256]; /* "save", "read", and the kinds of messages that were sent */
    fl_msg_kind kind;
    fl_peer to; /* of the last message, as `kind` is */
    char text[256];
    size_t coord_bytes; /* of the last image of the coordinator */
} scene;

static void note_deed(scene *s, const char *what)
{
    const size_t n = strlen(s->did);
    snprintf(s->did + n, sizeof s->did - n, "%s ", what);
}

static void note_send(void *self, const fl_envelope *e)
{
    scene *s = self;
    s->kind = e->msg.kind;
    s->to = e->to;
    snprintf(s->text, sizeof s->text, "%s", e->msg.text ? e->msg.text : "");
    note_deed(s, fl_msg_name(e->msg.kind));
}

static void note_save(void *self, const void *server, size_t n_server,
                      const void *coord, size_t n_coord)
{
    scene *s = self;
    CHECK(n_server > 0);
    s->coord_bytes = n_coord;
    note_deed(s, "save");
}

static void note_read(void *self, fl_blob names, fl_peer to,
                      const fl_msg *reply)
{
    note_deed(self, "read");
}

/* Machines of a server of `servers`, which is not open yet. */
static void begin_scene(scene *s, int server, int servers)
{
    fl_server *made;
    fl_coord *coord;
    *s = (scene){.job = fl_job_defaults((fl_job){
                     .id = job_id, .servers = servers, .trainers = 1})};
    fl_fake_clock_init(&s->clock, FL_SEC);
    s->store =
        (fl_store){.self = s, .keep = fl_keeper_copies, .read = note_read};
    s->m = fl_machines_new(&(fl_machines_opts){
        .clock = &s->clock.clock, .send = note_send, .self = s});
    fl_machines_begin(s->m,
                      &(fl_machines_job){.job = &s->job,
                                         .server = server,
                                         .state = {7, 1},
                                         .generation = 3,
                                         .store = &s->store,
                                         .save = note_save},
                      &made, &coord);
    CHECK(made && !coord == (server > 0));
}

static void open_scene(scene *s, int server, int servers)
{
    begin_scene(s, server, servers);
    fl_machines_open(s->m);
}

/* Give a message of trainer 0 to the server or to the coordinator. */
static void tell(scene *s, fl_msg m)
{
    s->did[0] = 0;
    m.job = job_id;
    m.session = session(1);
    fl_machines_lock(s->m);
    if (fl_msg_info_of(m.kind)->to == FL_PARTY_COORD)
        fl_coord_recv(fl_machines_coord(s->m), on_call(5), &m, s->clock.ns);
    else
        fl_server_recv(fl_machines_server(s->m), on_call(5), &m, s->clock.ns);
    fl_machines_unlock(s->m);
}

static void tick(scene *s)
{
    s->did[0] = 0;
    fl_machines_lock(s->m);
    fl_machines_tick(s->m);
    fl_machines_unlock(s->m);
}

static bool is_over(scene *s, bool sent)
{
    fl_machines_lock(s->m);
    const bool over = fl_machines_over(s->m, sent);
    fl_machines_unlock(s->m);
    return over;
}

/* The view with the new member goes from one machine to the other. The server
 * knows it before the trainer has its GRANT. */
static void images_are_saved_before_answers_leave(void)
{
    scene s;
    open_scene(&s, 0, 1);
    tell(&s, (fl_msg){.kind = FL_MSG_JOIN});
    CHECK_STR(s.did, "save GRANT ");
    CHECK(s.coord_bytes > 0);
    CHECK_INT(fl_server_members(fl_machines_server(s.m)), 1);
    tell(&s, (fl_msg){.kind = FL_MSG_PULL}); /* changes nothing */
    CHECK_STR(s.did, "read ");
    tick(&s);
    CHECK_STR(s.did, "");
    fl_machines_free(s.m);
}

static void another_server_sends_to_the_coordinator(void)
{
    scene s;
    open_scene(&s, 1, 2);
    CHECK(!fl_machines_coord(s.m));
    tick(&s);
    CHECK_STR(s.did, "STATE ");
    CHECK_INT(s.to.kind, FL_PEER_COORD);
    fl_machines_lock(s.m);
    fl_machines_fail(s.m, 4, "server 1 has no disk");
    fl_machines_unlock(s.m);
    CHECK_STR(s.did, "STATE save STATE ");
    CHECK_STR(s.text, "server 1 has no disk");
    CHECK_INT((int64_t)s.coord_bytes, 0);
    CHECK(!fl_machines_complete(s.m));
    CHECK_ERR(fl_machines_result(s.m), FL_EENDED,
              "the job has failed: server 1 has no disk");
    fl_machines_free(s.m);
}

static void nothing_reaches_machines_that_are_not_open(void)
{
    scene s;
    begin_scene(&s, 1, 2);
    CHECK(!fl_machines_server(s.m) && !fl_machines_closed(s.m));
    CHECK_INT(fl_machines_generation(s.m), 3);
    fl_machines_lock(s.m);
    fl_machines_hangup(s.m, 5);
    fl_machines_unlock(s.m);
    fl_machines_open(s.m);
    fl_server *server = fl_machines_server(s.m);
    CHECK(server != NULL);
    fl_machines_close(s.m);
    CHECK(!fl_machines_server(s.m) && fl_machines_closed(s.m));
    fl_machines_lock(s.m);
    fl_server_quit(server, "too late", s.clock.ns);
    fl_machines_unlock(s.m);
    CHECK_STR(s.did, "");
    fl_machines_free(s.m);
}

static void server_0_stays_while_a_trainer_may_ask(void)
{
    scene s;
    open_scene(&s, 0, 1);
    tell(&s, (fl_msg){.kind = FL_MSG_JOIN});
    fl_machines_lock(s.m);
    fl_machines_opened(s.m, 9);
    fl_machines_unlock(s.m);
    CHECK(!is_over(&s, true));
    tell(&s, (fl_msg){.kind = FL_MSG_COMPLETE});
    CHECK_STR(s.did, "save ACK ");
    tick(&s); /* the coordinator tells the server that its STATE has come */
    CHECK(fl_machines_complete(s.m));
    CHECK_OK(fl_machines_result(s.m));
    CHECK(!is_over(&s, true)); /* the call of the session is open */
    fl_machines_lock(s.m);
    fl_machines_hangup(s.m, 9);
    fl_machines_unlock(s.m);
    CHECK(!is_over(&s, false)); /* END is on its way */
    CHECK(is_over(&s, true));
    fl_machines_free(s.m);
}

static void server_0_ends_the_job_with_a_code(void)
{
    scene s;
    const char *why = "";
    int code = 0;
    open_scene(&s, 0, 1);
    fl_machines_lock(s.m);
    fl_machines_fail(s.m, 4, "server 0 was ended");
    fl_machines_unlock(s.m);
    CHECK(fl_coord_ended(fl_machines_coord(s.m), &code, &why));
    CHECK_INT(code, 4);
    CHECK_STR(why, "server 0 was ended");
    fl_machines_free(s.m);
}

const fl_test fl_tests[] = {
    {"images are saved before answers leave",
     images_are_saved_before_answers_leave},
    {"a server that is not server 0 sends to the coordinator",
     another_server_sends_to_the_coordinator},
    {"nothing reaches machines that are not open",
     nothing_reaches_machines_that_are_not_open},
    {"server 0 stays while a trainer may ask",
     server_0_stays_while_a_trainer_may_ask},
    {"server 0 ends the job with a code", server_0_ends_the_job_with_a_code},
    {0},
};
