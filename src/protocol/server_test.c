/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/server.h"

#include "protocol/image.h"
#include "protocol/test_talk.h"

/* A server, and a store that writes down what it is told to apply. */
typedef struct scene {
    fl_job job;
    fl_outbox out;
    fl_store store;
    fl_server *s;
    int64_t now;
    char told[256]; /* "r1 r2;": the bytes of each session, per apply */
    int reads;
} scene;

static fl_err check(void *self, const fl_staged *by)
{
    const fl_blob b = by->part[0];
    if (b.size && memchr(b.at, '?', b.size))
        return fl_fail(FL_ESHAPE, "push: not a number");
    return FL_OK;
}

static void apply(void *self, int64_t round, const fl_staged *by, int n)
{
    scene *s = self;
    fl_str text = {0};
    fl_str_printf(&text, "%s", s->told);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < by[i].n; k++)
            fl_str_printf(&text, "%.*s ", (int)by[i].part[k].size,
                          (const char *)by[i].part[k].at);
    snprintf(s->told, sizeof s->told, "%s;", text.at);
    fl_str_fini(&text);
}

static void read_values(void *self, fl_blob names, fl_peer to,
                        const fl_msg *reply)
{
    scene *s = self;
    s->reads++;
    fl_outbox_send(&s->out, to, *reply);
}

static void open_scene(scene *s, fl_job job)
{
    job.id = job_id;
    job.trainers = 3;
    *s = (scene){.job = fl_job_defaults(job), .now = FL_SEC};
    s->store = (fl_store){s, fl_keeper_copies, check, apply, read_values};
    fl_outbox_init(&s->out);
    s->s = fl_server_new(&s->job, 1, (fl_state){55, 1}, &s->store, &s->out,
                         s->now);
}

static void close_scene(scene *s)
{
    fl_server_free(s->s);
    fl_outbox_fini(&s->out);
}

static void from_coord(scene *s, fl_msg m)
{
    fl_outbox_clear(&s->out);
    m.job = job_id;
    m.state.id = m.state.id ? m.state.id : 8;
    fl_server_recv(s->s, at_coord(), &m, s->now);
    fl_server_flush(s->s);
}

/* Send m with members: session n has rank n - 1. */
static void with_members(scene *s, fl_msg m, const char *sessions)
{
    fl_member member[3];
    for (; *sessions; sessions++) {
        const int n = *sessions - '0';
        member[m.n_member++] = (fl_member){n - 1, session((uint64_t)n), 1};
    }
    m.member = member;
    from_coord(s, m);
}

static void view(scene *s, int64_t v, int64_t open, const char *sessions)
{
    with_members(s, (fl_msg){.kind = FL_MSG_VIEW, .view = v, .round = open},
                 sessions);
}

static void close_round(scene *s, int64_t round, const char *sessions)
{
    with_members(s, (fl_msg){.kind = FL_MSG_CLOSE, .round = round}, sessions);
}

static void ask(scene *s, uint64_t call, fl_msg m)
{
    fl_outbox_clear(&s->out);
    m.job = job_id;
    m.tag = m.tag ? m.tag : call;
    m.g = m.g ? m.g : 1;
    fl_server_recv(s->s, on_call(call), &m, s->now);
    fl_server_flush(s->s);
}

/* The seq-th push of session n ; count 0: more come. */
static void push(scene *s, uint64_t n, int64_t seq, int64_t round,
                 int64_t count, const char *bytes)
{
    ask(s, 100,
        (fl_msg){.kind = FL_MSG_PUSH,
                 .session = session(n),
                 .seq = seq,
                 .round = round,
                 .count = count,
                 .blob = {bytes, strlen(bytes), NULL}});
}

static void pull(scene *s, uint64_t n, int64_t round, uint64_t call)
{
    ask(s, call,
        (fl_msg){.kind = FL_MSG_PULL,
                 .session = session(n),
                 .round = round,
                 .tag = 40 + n});
}

static void applied(scene *s)
{
    fl_outbox_clear(&s->out);
    fl_server_applied(s->s, NULL, s->now);
    fl_server_flush(s->s);
}

/* --- pushes and rounds --- */

static void closes_in_rank_order(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "123");
    push(&s, 3, 2, 0, 2, "c2");
    push(&s, 3, 1, 0, 0, "c1");
    push(&s, 1, 1, 0, 1, "a1");
    CHECK(said(&s.out, FL_MSG_ACK));
    push(&s, 2, 1, 0, 1, "b1");
    push(&s, 1, 1, 0, 1, "a1"); /* a repeat: acknowledged, no effect */
    CHECK(said(&s.out, FL_MSG_ACK));
    close_round(&s, 0, "13"); /* session 2 was lost before the decision */
    CHECK_STR(s.told, "a1 c1 c2 ;");
    CHECK_INT(fl_server_version(s.s), 0);
    close_round(&s, 0, "13"); /* a repeat while the round is applied */
    CHECK_STR(s.told, "a1 c1 c2 ;");
    applied(&s);
    CHECK_INT(said(&s.out, FL_MSG_STATE)->round, 1);
    CHECK_INT((int64_t)fl_server_bytes(s.s), 0);
    close_round(&s, 0, "13"); /* a repeat after that */
    CHECK_INT(said(&s.out, FL_MSG_STATE)->round, 1);
    CHECK_STR(s.told, "a1 c1 c2 ;");
    push(&s, 1, 1, 0, 1, "a1"); /* a late repeat of a closed round */
    CHECK(said(&s.out, FL_MSG_ACK));
    push(&s, 2, 2, 0, 1, "b2");
    CHECK(mentions(said(&s.out, FL_MSG_FENCED), "round 0 is closed"));
    close_scene(&s);
}

static void keeps_a_close_that_is_early(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 0, 1, "a");
    close_round(&s, 1, "1");
    CHECK_STR(s.told, "");
    close_round(&s, 0, "1");
    CHECK_STR(s.told, "a ;");
    applied(&s); /* round 1 is next: the CLOSE that came early is used */
    CHECK(mentions(said(&s.out, FL_MSG_STATE), "round 1 is to close"));
    close_scene(&s);
}

static void counts_a_version_once_it_is_applied(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 0, 1, "a");
    close_round(&s, 0, "1");
    CHECK_STR(s.told, "a ;");
    CHECK_INT(fl_server_version(s.s), 0);
    pull(&s, 1, 0, 50); /* too late: round 0 is being applied */
    CHECK(heard(&s.out, 50, FL_MSG_FENCED));
    applied(&s);
    CHECK_INT(fl_server_version(s.s), 1);
    close_scene(&s);
}

static void keeps_what_a_decision_may_need(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "12");
    push(&s, 1, 1, 0, 1, "a");
    push(&s, 2, 1, 0, 1, "b");
    view(&s, 2, 1, "1"); /* session 2 lost in round 1: P(0) may name it */
    CHECK_INT((int64_t)fl_server_bytes(s.s), 2);
    close_round(&s, 0, "12");
    CHECK_STR(s.told, "a b ;");
    applied(&s);
    CHECK_INT(fl_server_seats(s.s), 1);
    push(&s, 1, 2, 1, 1, "a");
    view(&s, 3, 1, ""); /* session 1 lost before P(1): no decision names it */
    CHECK_INT((int64_t)fl_server_bytes(s.s), 0);
    CHECK_INT(fl_server_seats(s.s), 0);
    close_scene(&s);
}

static void ends_the_job_when_gradients_are_missing(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 0, 2, "a"); /* the first of two pushes */
    pull(&s, 1, 1, 50);
    close_round(&s, 0, "1");
    const fl_msg *m = said(&s.out, FL_MSG_STATE);
    CHECK(m->over && m->code == 1);
    CHECK(mentions(m, "trainer 0, whose gradients are not all here"));
    CHECK(heard(&s.out, 50, FL_MSG_END));
    close_scene(&s);
}

static void ends_the_job_when_a_push_runs_ahead(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 3, 1, "a");
    CHECK(said(&s.out, FL_MSG_ERROR));
    CHECK(mentions(said(&s.out, FL_MSG_STATE), "pushed round 3, version is 0"));
    close_scene(&s);
}

static void refuses_bad_pushes(void)
{
    scene s;
    open_scene(&s, (fl_job){.max_staged = 4});
    view(&s, 1, 0, "1");
    push(&s, 1, 0, 0, 0, "a");
    CHECK(mentions(said(&s.out, FL_MSG_ERROR), "begin at 1"));
    push(&s, 1, FL_WINDOW + 1, 0, 0, "a");
    CHECK(mentions(said(&s.out, FL_MSG_ERROR), "expected 1 to 64"));
    push(&s, 1, 1, 0, 0, "?");
    CHECK_INT(said(&s.out, FL_MSG_ERROR)->code, FL_ESHAPE);
    push(&s, 1, 1, 0, 0, "12345");
    CHECK_INT(said(&s.out, FL_MSG_ERROR)->code, FL_ENOMEM);
    push(&s, 1, 1, 0, -1, "a");
    CHECK(said(&s.out, FL_MSG_ERROR));
    ask(&s, 8, (fl_msg){.kind = (fl_msg_kind)-3});
    CHECK(heard(&s.out, 8, FL_MSG_ERROR));
    CHECK_INT((int64_t)fl_server_bytes(s.s), 0);
    push(&s, 1, 1, 0, 1, "a"); /* the refused pushes had no effect */
    CHECK(said(&s.out, FL_MSG_ACK));
    close_scene(&s);
}

/* Asynchronous: a push that has been applied makes room for others. */
static void lets_pushes_wait_for_room(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true, .max_staged = 4});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 0, 0, "abc"); /* applying begins */
    push(&s, 1, 2, 0, 0, "de");
    CHECK(mentions(said(&s.out, FL_MSG_PARKED),
                   "waits for room: 3 bytes are staged of at most 4"));
    push(&s, 1, 3, 0, 0, "12345"); /* larger than the limit */
    CHECK_INT(said(&s.out, FL_MSG_ERROR)->code, FL_ENOMEM);
    applied(&s);
    push(&s, 1, 2, 0, 0, "de");
    CHECK(!said(&s.out, FL_MSG_PARKED) && !said(&s.out, FL_MSG_ERROR));
    CHECK_INT((int64_t)fl_server_bytes(s.s), 2);
    applied(&s);
    CHECK(said(&s.out, FL_MSG_ACK));
    close_scene(&s);
}

/* A push that was parked for its view is not counted twice. */
static void a_parked_push_counts_once(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true, .max_staged = 4});
    push(&s, 1, 1, 0, 0, "abc"); /* parked: view 1 has not come */
    CHECK_INT((int64_t)fl_server_bytes(s.s), 3);
    view(&s, 1, 0, "1");
    CHECK_STR(s.told, "abc ;");
    CHECK_INT((int64_t)fl_server_bytes(s.s), 3);
    applied(&s);
    CHECK(said(&s.out, FL_MSG_ACK));
    CHECK_INT((int64_t)fl_server_bytes(s.s), 0);
    close_scene(&s);
}

static void refuses_another_job(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    const fl_msg m = {.kind = FL_MSG_PULL, .job = {0xab12345678, 1}};
    fl_server_recv(s.s, on_call(3), &m, s.now);
    fl_server_flush(s.s);
    CHECK(mentions(heard(&s.out, 3, FL_MSG_ERROR), "this is another job"));
    close_scene(&s);
}

/* --- pulls and fences --- */

static void parks_a_pull_until_its_version(void)
{
    scene s;
    fl_str rows = {0};
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    pull(&s, 1, 0, 50);
    CHECK_INT(heard(&s.out, 50, FL_MSG_VALUES)->round, 0);
    push(&s, 1, 1, 0, 1, "a");
    pull(&s, 1, 1, 51);
    CHECK_INT(fl_server_parked(s.s), 1);
    pull(&s, 1, 1, 52); /* a repeat on a newer call */
    CHECK(mentions(heard(&s.out, 51, FL_MSG_PARKED), "waits for version 1"));
    CHECK_INT(fl_server_parked(s.s), 1);
    s.now += 6 * FL_SEC;
    fl_server_waits(s.s, s.now, &rows);
    CHECK_STR(rows.at, "trainer 0 at server 1 waits for the "
                       "coordinator: the decision that makes version 1, 6.0 s "
                       "(limit 54.0 s)\n");
    fl_str_fini(&rows);
    close_round(&s, 0, "1");
    applied(&s);
    CHECK_INT(heard(&s.out, 52, FL_MSG_VALUES)->round, 1);
    CHECK_INT(fl_server_parked(s.s), 0);
    pull(&s, 1, 0, 53);
    CHECK(heard(&s.out, 53, FL_MSG_FENCED));
    close_scene(&s);
}

static void parks_a_newcomer_until_its_view(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    ask(&s, 60, (fl_msg){.kind = FL_MSG_PULL, .session = session(2), .g = 2});
    CHECK_INT(fl_server_parked(s.s), 1);
    view(&s, 2, 0, "12");
    CHECK(heard(&s.out, 60, FL_MSG_VALUES));
    ask(&s, 61, (fl_msg){.kind = FL_MSG_PULL, .session = session(3), .g = 3});
    view(&s, 4, 0, "12"); /* session 3 came and left between two views */
    CHECK(heard(&s.out, 61, FL_MSG_FENCED));
    close_scene(&s);
}

static void fences_who_is_lost(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "12");
    push(&s, 2, 1, 0, 1, "b");
    pull(&s, 2, 1, 50);
    const fl_leave left = {1, session(2), 3, FL_LEFT_LEASE, 2 * FL_SEC};
    with_members(
        &s,
        (fl_msg){.kind = FL_MSG_VIEW, .view = 3, .left = &left, .n_left = 1},
        "1");
    CHECK(heard(&s.out, 50, FL_MSG_FENCED)); /* the parked request too */
    view(&s, 1, 0, "12");                    /* an old view changes nothing */
    s.now += 10 * FL_SEC;
    push(&s, 2, 2, 0, 1, "b");
    CHECK_STR(said(&s.out, FL_MSG_FENCED)->text,
              "rank 1 lost: lease ran out 12.0 s ago (view 3)");
    close_scene(&s);
}

static void forgets_a_request_whose_call_broke(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    pull(&s, 1, 1, 50);
    fl_server_hangup(s.s, 50);
    CHECK_INT(fl_server_parked(s.s), 0);
    close_scene(&s);
}

static void parks_so_many_requests(void)
{
    scene s;
    open_scene(&s, (fl_job){.max_parked = 2});
    for (uint64_t call = 1; call <= 4; call++)
        ask(&s, call,
            (fl_msg){.kind = FL_MSG_PULL, .session = session(call), .g = 9});
    CHECK_INT(fl_server_parked(s.s), 2);
    CHECK(heard(&s.out, 4, FL_MSG_PARKED));
    close_scene(&s);
}

/* --- asynchronous mode --- */

static void applies_on_arrival_once(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 0, 0, "a");
    CHECK_STR(s.told, "a ;");
    CHECK(!said(&s.out, FL_MSG_ACK));
    ask(&s, 101,
        (fl_msg){.kind = FL_MSG_PUSH, .session = session(1), .seq = 1});
    CHECK(heard(&s.out, 100, FL_MSG_PARKED)); /* replaced by a newer call */
    applied(&s);
    CHECK(heard(&s.out, 101, FL_MSG_ACK));
    push(&s, 1, 1, 0, 0, "a");
    CHECK(said(&s.out, FL_MSG_ACK));
    CHECK_STR(s.told, "a ;");
    pull(&s, 1, 0, 50);
    CHECK(heard(&s.out, 50, FL_MSG_VALUES));
    view(&s, 2, 0, "");
    push(&s, 1, 2, 0, 0, "a");
    CHECK(said(&s.out, FL_MSG_FENCED));
    close_scene(&s);
}

/* --- the end --- */

static void ends_with_the_version_of_the_end(void)
{
    scene s;
    int code = -1;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 0, 1, "a");
    pull(&s, 1, 5, 50);
    from_coord(&s, (fl_msg){.kind = FL_MSG_END, .code = 3, .round = 1});
    CHECK(heard(&s.out, 50, FL_MSG_END));
    CHECK(!said(&s.out, FL_MSG_STATE)->over);
    close_round(&s, 0, "1");
    applied(&s);
    CHECK(said(&s.out, FL_MSG_STATE)->over);
    CHECK(!fl_server_over(s.s, s.now, &code)); /* still lingering */
    pull(&s, 1, 1, 51);
    CHECK_INT(heard(&s.out, 51, FL_MSG_END)->code, 3);
    CHECK(fl_server_over(s.s, s.now + 5 * FL_SEC, &code));
    CHECK_INT(code, 3);
    CHECK(!fl_server_lacks_trainers(s.s)); /* as at the limit for the start */
    view(&s, 2, 1, "");
    CHECK(fl_server_lacks_trainers(s.s));
    close_scene(&s);
}

static void knows_that_trainers_may_be_there_after_an_end(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    CHECK(!fl_server_lacks_trainers(s.s));
    from_coord(&s, (fl_msg){.kind = FL_MSG_END, .code = 1, .round = -1});
    CHECK(fl_server_ended(s.s));
    CHECK(!fl_server_lacks_trainers(s.s));
    close_scene(&s);
}

static void stays_until_its_end_is_known(void)
{
    scene s;
    int code = -1;
    open_scene(&s, (fl_job){.durability = FL_PROCESS});
    view(&s, 1, 0, "1");
    from_coord(&s, (fl_msg){.kind = FL_MSG_END});
    CHECK(said(&s.out, FL_MSG_STATE)->over);
    s.now += 20 * FL_SEC; /* longer than it lingers */
    fl_outbox_clear(&s.out);
    fl_server_tick(s.s, s.now);
    CHECK(!fl_server_over(s.s, s.now, &code));
    CHECK(said(&s.out, FL_MSG_STATE)->over); /* until it is answered */
    from_coord(&s, (fl_msg){.kind = FL_MSG_END, .over = true});
    CHECK(!said(&s.out, FL_MSG_STATE)); /* which would be answered again */
    CHECK(fl_server_confirmed(s.s));
    CHECK(fl_server_over(s.s, s.now, &code));
    CHECK_INT(code, 0);
    s.now += FL_SEC;
    fl_server_tick(s.s, s.now);
    CHECK(!said(&s.out, FL_MSG_STATE));
    close_scene(&s);
}

static void says_that_it_cannot_restore_a_snapshot(void)
{
    scene s;
    int64_t generation = 0;
    const fl_msg back = {.kind = FL_MSG_REWIND, .snapshot = 7, .generation = 1};
    open_scene(&s, (fl_job){0});
    from_coord(&s, back);
    CHECK_INT(fl_server_rewinds(s.s, &generation), 7);
    fl_server_cannot_rewind(s.s, "a flaw", s.now);
    for (int i = 0; i < 2; i++) { /* it is not tried again */
        const fl_msg *said_so = said(&s.out, FL_MSG_STATE);
        CHECK_INT(said_so->damaged, 7);
        CHECK_INT(said_so->generation, 0);
        CHECK_STR(said_so->text, "a flaw");
        CHECK_INT(fl_server_rewinds(s.s, &generation), 0);
        from_coord(&s, back);
    }
    from_coord(&s,
               (fl_msg){.kind = FL_MSG_REWIND, .snapshot = 4, .generation = 2});
    CHECK_INT(fl_server_rewinds(s.s, &generation), 4);
    CHECK_INT(generation, 2);
    close_scene(&s);
}

/* The coordinator of the generation before has failed, and so has the job. */
static void obeys_a_failing_end_of_an_older_generation(void)
{
    scene s;
    int code = 0;
    const char *why;
    open_scene(&s, (fl_job){0});
    s.out.generation = 2;
    from_coord(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 1, .generation = 2});
    from_coord(&s, (fl_msg){.kind = FL_MSG_END, .generation = 1});
    CHECK(!fl_server_end(s.s, &code, &why)); /* of the time before */
    from_coord(&s, (fl_msg){.kind = FL_MSG_END,
                            .generation = 1,
                            .code = 1,
                            .round = -1,
                            .text = "no room"});
    CHECK(fl_server_end(s.s, &code, &why) && code == 1);
    CHECK_STR(why, "no room");
    CHECK(said(&s.out, FL_MSG_STATE)->over);
    close_scene(&s);
}

/* So that a coordinator notices soon that this process has no state. */
static void reports_at_once_when_it_starts(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    fl_server_tick(s.s, s.now += 250 * FL_MS);
    CHECK(said(&s.out, FL_MSG_STATE));
    view(&s, 1, 0, "1");
    fl_outbox_clear(&s.out);
    fl_server_tick(s.s, s.now += 4 * FL_SEC);
    CHECK(!said(&s.out, FL_MSG_STATE)); /* it is known */
    close_scene(&s);
}

static void gives_up_on_a_silent_coordinator(void)
{
    scene s;
    int code = 0;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    pull(&s, 1, 1, 50);
    for (int i = 0; i < 241; i++)
        fl_server_tick(s.s, s.now += 250 * FL_MS);
    CHECK(mentions(heard(&s.out, 50, FL_MSG_END), "silent for 60 s"));
    CHECK(fl_server_over(s.s, s.now + 5 * FL_SEC, &code));
    CHECK_INT(code, 1);
    close_scene(&s);
}

/* A server that waits for its coordinator reports that. */
static void says_that_no_coordinator_comes(void)
{
    scene s;
    bool told = false;
    open_scene(&s, (fl_job){0});
    for (int i = 0; i < 21; i++) {
        fl_outbox_clear(&s.out);
        fl_server_tick(s.s, s.now += 250 * FL_MS);
        for (int64_t k = 0; k < s.out.note.n; k++)
            told |= strstr(s.out.note.at[k], "server 1 waits for server 0: "
                                             "to come, 5.") != NULL;
    }
    CHECK(told);
    fl_str rows = {0};
    view(&s, 1, 0, "1");
    fl_server_waits(s.s, s.now + 9 * FL_SEC, &rows);
    CHECK(!rows.n);
    fl_server_waits(s.s, s.now + 11 * FL_SEC, &rows);
    CHECK(rows.n && strstr(rows.at, "a sign of life, 11.0 s (limit 60"));
    fl_str_fini(&rows);
    close_scene(&s);
}

static void knows_a_coordinator_that_lost_its_state(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    from_coord(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 1, .state = {9, 1}});
    CHECK(mentions(said(&s.out, FL_MSG_STATE), "was started again"));
    close_scene(&s);
}

static void ignores_an_insane_view(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "21"); /* not sorted by rank */
    CHECK_INT(fl_server_view(s.s), 0);
    from_coord(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 1, .n_member = 4});
    from_coord(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 1, .n_left = -1});
    CHECK_INT(fl_server_view(s.s), 0);
    close_scene(&s);
}

static void serves_nobody_without_the_state_that_is_expected(void)
{
    scene s;
    int code;
    const char *why;
    open_scene(&s, (fl_job){0});
    with_members(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 1, .expected = 55},
                 "1");
    CHECK(!fl_server_end(s.s, &code, &why));
    with_members(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 2, .expected = 54},
                 "1");
    CHECK(fl_server_end(s.s, &code, &why));
    CHECK_STR(why, "server 1: it was started again and has lost its "
                   "parameters");
    CHECK(said(&s.out, FL_MSG_STATE)->state.id == 55);
    ask(&s, 9, (fl_msg){.kind = FL_MSG_PULL, .session = session(1)});
    CHECK(heard(&s.out, 9, FL_MSG_END)->state.id == 55);
    close_scene(&s);
}

static void ends_where_no_coordinator_listens(void)
{
    scene s;
    int code;
    const char *why;
    fl_str rows = {0};
    open_scene(&s, (fl_job){0});
    fl_server_refused(s.s, s.now);
    s.now += 6 * FL_SEC;
    fl_server_refused(s.s, s.now); /* it may be slow to start */
    CHECK(!fl_server_end(s.s, &code, &why));
    fl_server_tick(s.s, s.now);
    view(&s, 1, 0, "1");
    fl_outbox_clear(&s.out);
    for (int i = 0; i < 44; i++) {
        CHECK(i > 39 || !said(&s.out, FL_MSG_STATE));
        fl_server_tick(s.s, s.now += 250 * FL_MS);
    }
    CHECK(said(&s.out, FL_MSG_STATE)); /* after a silent lease it asks */
    fl_server_refused(s.s, s.now);
    CHECK(!fl_server_end(s.s, &code, &why));
    fl_server_waits(s.s, s.now, &rows);
    CHECK(rows.n && strstr(rows.at, "a sign of life; it refuses connections"));
    fl_str_fini(&rows);
    s.now += 5 * FL_SEC;
    fl_server_refused(s.s, s.now);
    CHECK(fl_server_end(s.s, &code, &why));
    CHECK_STR(why,
              "server 0, the coordinator, has refused connections for 5 s: it "
              "has ended or was killed");
    close_scene(&s);
}

/* --- what outlives the process --- */

/* The process is killed after its last image, and started again. */
static void restart_server(scene *s, const fl_str *image)
{
    fl_server_free(s->s);
    fl_outbox_clear(&s->out);
    s->s = fl_server_new(&s->job, 1, (fl_state){55, 2}, &s->store, &s->out,
                         s->now);
    CHECK_OK(fl_server_restore(s->s, image->at, image->n, s->now));
}

/* An asynchronous server with members 1 and 2 that was killed and restarted. */
static void open_restarted(scene *s)
{
    fl_str image = {0};
    open_scene(s, (fl_job){.async = true});
    view(s, 1, 0, "12");
    fl_server_image(s->s, &image);
    restart_server(s, &image);
    fl_str_fini(&image);
}

static bool restage(scene *s, uint64_t n, int64_t seq, int64_t round,
                    int64_t count, const char *bytes)
{
    const fl_push_id id = {session(n), (int)n - 1, seq, round, count};
    const fl_blob kept =
        fl_keeper_copies.keep(NULL, (fl_blob){bytes, strlen(bytes), NULL});
    if (fl_server_restage(s->s, &id, kept))
        return true;
    fl_keeper_copies.drop(NULL, kept);
    return false;
}

static void goes_on_with_a_round(void)
{
    scene s;
    fl_str image = {0};
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "12");
    CHECK(fl_server_changed(s.s));
    push(&s, 1, 1, 0, 1, "a");
    fl_server_image(s.s, &image);
    CHECK(!fl_server_changed(s.s));
    push(&s, 2, 1, 0, 1, "b"); /* the store has it: no new image */
    CHECK(!fl_server_changed(s.s));
    restart_server(&s, &image);
    CHECK_INT(fl_server_view(s.s), 1);
    CHECK(restage(&s, 1, 1, 0, 1, "a"));
    CHECK(restage(&s, 2, 1, 0, 1, "b"));
    CHECK(!restage(&s, 3, 1, 0, 1, "c")); /* no member */
    push(&s, 2, 1, 0, 1, "b");            /* repeated: it was staged */
    CHECK_INT(said(&s.out, FL_MSG_ACK)->state.incarnation, 2);
    close_round(&s, 0, "12");
    CHECK_STR(s.told, "a b ;");
    applied(&s);
    CHECK_INT(fl_server_version(s.s), 1);
    push(&s, 1, 1, 0, 1, "a"); /* and of a closed round */
    CHECK(said(&s.out, FL_MSG_ACK));
    fl_str_fini(&image);
    close_scene(&s);
}

static void applies_a_decided_round_again(void)
{
    scene s;
    fl_str image = {0};
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "12");
    push(&s, 1, 1, 0, 1, "a");
    push(&s, 2, 1, 0, 1, "b");
    view(&s, 2, 1, "1"); /* lost, but P(0) may have it */
    close_round(&s, 0, "12");
    close_round(&s, 1, "1"); /* early */
    fl_server_image(s.s, &image);
    s.told[0] = 0;
    restart_server(&s, &image);
    CHECK(restage(&s, 1, 1, 0, 1, "a"));
    CHECK(restage(&s, 2, 1, 0, 1, "b"));
    CHECK(!restage(&s, 1, 2, 1, 1, "a2")); /* it was not acknowledged */
    fl_server_flush(s.s);
    CHECK_STR(s.told, "a b ;");
    close_round(&s, 0, "12"); /* repeated */
    CHECK_STR(s.told, "a b ;");
    applied(&s);
    CHECK_INT(fl_server_version(s.s), 1);
    CHECK_INT(fl_server_seats(s.s), 1);
    CHECK(mentions(said(&s.out, FL_MSG_STATE), "round 1 is to close"));
    fl_str_fini(&image);
    close_scene(&s);
}

static void tells_nobody_before_the_image(void)
{
    scene s;
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "1");
    push(&s, 1, 1, 0, 1, "a");
    pull(&s, 1, 1, 50);
    s.told[0] = 0;
    fl_outbox_clear(&s.out);
    const fl_member one = {0, session(1), 1};
    const fl_msg m = {.kind = FL_MSG_CLOSE,
                      .job = job_id,
                      .state.id = 8,
                      .member = &one,
                      .n_member = 1};
    fl_server_recv(s.s, at_coord(), &m, s.now);
    CHECK(fl_server_changed(s.s));
    CHECK_STR(s.told, ""); /* the decision is in no image yet */
    fl_server_flush(s.s);
    CHECK_STR(s.told, "a ;");
    fl_server_applied(s.s, NULL, s.now);
    CHECK(fl_server_changed(s.s) && !heard(&s.out, 50, FL_MSG_VALUES));
    fl_server_flush(s.s);
    CHECK(heard(&s.out, 50, FL_MSG_VALUES));
    close_scene(&s);
}

static void keeps_an_older_view_out(void)
{
    scene s;
    fl_str image = {0};
    int code = 0;
    const char *why = NULL;
    open_scene(&s, (fl_job){0});
    view(&s, 7, 0, "1");
    fl_server_image(s.s, &image);
    restart_server(&s, &image);
    view(&s, 6, 0, "12");
    CHECK_INT(fl_server_view(s.s), 7);
    from_coord(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 8, .state.id = 9});
    CHECK(fl_server_end(s.s, &code, &why)); /* another coordinator */
    fl_str_fini(&image);
    fl_server_image(s.s, &image);
    restart_server(&s, &image);
    CHECK(fl_server_ended(s.s) && fl_server_end(s.s, &code, &why));
    CHECK(strstr(why, "the coordinator was started again"));
    CHECK_INT(code, 1);
    fl_str_fini(&image);
    close_scene(&s);
}

static void leaves_if_it_was_leaving(void)
{
    scene s;
    fl_str image = {0};
    int code = -1;
    open_scene(&s, (fl_job){.durability = FL_PROCESS});
    view(&s, 1, 0, "1");
    fl_server_image(s.s, &image);
    restart_server(&s, &image);
    CHECK(!fl_server_leaves(s.s) && !fl_server_confirmed(s.s));
    from_coord(&s, (fl_msg){.kind = FL_MSG_END});
    fl_str_fini(&image);
    fl_server_image(s.s, &image);
    restart_server(&s, &image);
    s.now += 20 * FL_SEC; /* longer than it lingers */
    CHECK(!fl_server_over(s.s, s.now, &code));
    CHECK(fl_server_leaves(s.s) && fl_server_confirmed(s.s));
    CHECK(fl_server_over(s.s, s.now, &code));
    CHECK_INT(code, 0);
    fl_str_fini(&image);
    close_scene(&s);
}

/* The coordinator may be gone, so it must not be asked again. */
static void leaves_if_its_end_was_confirmed(void)
{
    scene s;
    fl_str image = {0};
    int code = -1;
    open_scene(&s, (fl_job){.durability = FL_PROCESS});
    view(&s, 1, 0, "1");
    from_coord(&s, (fl_msg){.kind = FL_MSG_END});
    fl_server_image(s.s, &image);
    CHECK(!fl_server_changed(s.s));
    from_coord(&s, (fl_msg){.kind = FL_MSG_END, .over = true});
    CHECK(fl_server_changed(s.s));
    fl_str_fini(&image);
    fl_server_image(s.s, &image);
    restart_server(&s, &image);
    CHECK(fl_server_confirmed(s.s));
    s.now += 20 * FL_SEC; /* longer than it lingers */
    CHECK(fl_server_over(s.s, s.now, &code));
    CHECK_INT(code, 0);
    fl_str_fini(&image);
    close_scene(&s);
}

static void gets_an_interrupted_push_first(void)
{
    scene s;
    open_restarted(&s);
    fl_server_rewindow(s.s, session(1), 0, (fl_window){2, 0}, 0, 0);
    fl_server_interrupted(s.s, session(1), 0, 3);
    push(&s, 1, 2, 0, 1, "a"); /* was applied */
    CHECK(said(&s.out, FL_MSG_ACK));
    push(&s, 2, 1, 0, 1, "b");
    CHECK_STR(s.told, "");
    CHECK_INT(fl_server_parked(s.s), 1);
    push(&s, 1, 3, 0, 1, "c");
    CHECK_STR(s.told, "c ;");
    applied(&s);
    CHECK_STR(s.told, "c ;b ;");
    close_scene(&s);
}

static void gives_an_interrupted_push_up(void)
{
    scene s;
    open_restarted(&s);
    fl_server_interrupted(s.s, session(1), 0, 3);
    push(&s, 2, 1, 0, 1, "b");
    CHECK_STR(s.told, "");
    view(&s, 2, 0, "2"); /* its trainer died as well */
    CHECK_STR(s.told, "b ;");
    close_scene(&s);
}

static fl_id forgotten;

static void keep_forgotten(void *self, fl_id session)
{
    forgotten = session;
}

/* The view that dropped the session was saved, and its push given up only after
 * that. The coordinator sends no newer view. */
static void gives_a_push_of_nobody_up(void)
{
    scene s;
    fl_str image = {0};
    open_scene(&s, (fl_job){.async = true});
    s.store.forget = keep_forgotten;
    view(&s, 1, 0, "12");
    view(&s, 2, 0, "2");
    fl_server_image(s.s, &image);
    restart_server(&s, &image);
    fl_server_interrupted(s.s, session(1), 0, 3);
    view(&s, 2, 0, "2");
    CHECK(fl_id_same(forgotten, session(1)));
    push(&s, 2, 1, 0, 1, "b");
    CHECK_STR(s.told, "b ;");
    fl_str_fini(&image);
    close_scene(&s);
}

/* Each byte that differs is noticed. */
static void refuses_a_changed_image(void)
{
    scene s;
    fl_str image = {0};
    open_scene(&s, (fl_job){0});
    view(&s, 1, 0, "12");
    push(&s, 1, 1, 0, 1, "a");
    fl_server_image(s.s, &image);
    for (size_t i = 0; i < image.n; i++) {
        fl_server *other = fl_server_new(&s.job, 1, (fl_state){55, 2}, &s.store,
                                         &s.out, s.now);
        image.at[i] ^= 4;
        CHECK_INT(fl_server_restore(other, image.at, image.n, s.now),
                  FL_EPROTO);
        CHECK_INT(fl_server_restore(other, image.at, i, s.now), FL_EPROTO);
        image.at[i] ^= 4;
        fl_server_free(other);
    }
    fl_server *other =
        fl_server_new(&s.job, 0, (fl_state){55, 2}, &s.store, &s.out, s.now);
    CHECK_ERR(
        fl_server_restore(other, image.at, image.n, s.now), FL_EPROTO,
        "image: it is of server 1 of job 00000000000000070000000000000009 with "
        "3 trainers; this is server 0 of job "
        "00000000000000070000000000000009 with 3");
    fl_server_free(other);
    fl_str_fini(&image);
    close_scene(&s);
}

/* --- snapshots of asynchronous jobs --- */

static char cut_image[256];
static size_t cut_bytes;

static void keep_cut(void *self, const fl_moment *cut)
{
    CHECK(cut->n <= sizeof cut_image);
    memcpy(cut_image, cut->image, cut->n);
    cut_bytes = cut->n;
}

static void push_step(scene *s, uint64_t n, int64_t seq, int64_t step,
                      const char *bytes)
{
    ask(s, 100 + (uint64_t)seq,
        (fl_msg){.kind = FL_MSG_PUSH,
                 .session = session(n),
                 .seq = seq,
                 .count = 1,
                 .step = step,
                 .part = 1,
                 .blob = {bytes, strlen(bytes), NULL}});
}

/* The store has applied step 1, is applying step 2, and gets step 3 after the
 * cut. After going back, a trainer makes all three again. */
static void a_cut_knows_its_pushes(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true});
    s.store.cut = keep_cut;
    view(&s, 1, 0, "1");
    push_step(&s, 1, 1, 1, "a");
    applied(&s);
    push_step(&s, 1, 2, 2, "b");
    from_coord(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 1, .snapshot = 7});
    push_step(&s, 1, 3, 3, "c");
    CHECK_STR(s.told, "a ;b ;c ;");
    close_scene(&s);
    open_scene(&s, (fl_job){.async = true});
    CHECK_OK(fl_server_rewind(s.s, 1, 8, cut_image, cut_bytes));
    with_members(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 2}, "1");
    for (int64_t i = 1; i <= 3; i++) {
        push_step(&s, 1, i, i, i == 3 ? "c" : "twice");
        applied(&s);
    }
    CHECK_STR(s.told, " ; ;c ;"); /* the first two only have their numbers */
    close_scene(&s);
}

/* What the store has of a push that a crash has interrupted, or that some
 * owners had not begun, is in no snapshot: after going back the push comes
 * again as a whole. If its trainer is lost as well, the part stays in the
 * model, and nothing waits for it. */
static void a_cut_waits_for(bool interrupted)
{
    for (int given_up = 0; given_up < 2; given_up++) {
        scene s;
        cut_bytes = 0;
        open_restarted(&s);
        s.store.cut = keep_cut;
        if (interrupted)
            fl_server_interrupted(s.s, session(1), 0, 1);
        else
            fl_server_half_applied(s.s, session(1), 1);
        from_coord(&s, (fl_msg){.kind = FL_MSG_VIEW, .view = 1, .snapshot = 7});
        CHECK(!cut_bytes);
        if (given_up) { /* its trainer died as well */
            view(&s, 2, 0, "2");
        } else {
            push_step(&s, 1, 1, 1, "a");
            CHECK(!cut_bytes);
            applied(&s);
        }
        CHECK(cut_bytes);
        close_scene(&s);
    }
}

static void a_cut_waits_for_an_interrupted_push(void)
{
    a_cut_waits_for(true);
}

static void a_cut_waits_for_a_push_that_some_owners_have(void)
{
    a_cut_waits_for(false);
}

/* The store forgets the windows of a session that has left, so that only the
 * image can say that its last push was applied. */
static void knows_a_push_that_was_applied_late(void)
{
    scene s;
    fl_str image = {0};
    open_scene(&s, (fl_job){.async = true});
    view(&s, 1, 0, "1");
    push_step(&s, 1, 1, 1, "a");
    view(&s, 2, 0, "2");
    fl_server_image(s.s, &image);
    applied(&s);
    CHECK(fl_server_changed(s.s));
    fl_str_fini(&image);
    fl_server_image(s.s, &image);
    restart_server(&s, &image);
    view(&s, 3, 0, "12");
    push_step(&s, 1, 1, 1, "twice");
    CHECK_STR(s.told, "a ; ;");
    fl_str_fini(&image);
    close_scene(&s);
}

/* An owner that is done early would clear its window, and a server that is
 * killed then would know of the push neither by windows nor by its image. */
static void a_push_is_applied_before_its_session_is_forgotten(void)
{
    scene s;
    open_scene(&s, (fl_job){.async = true});
    s.store.forget = keep_forgotten;
    forgotten = (fl_id){0};
    view(&s, 1, 0, "1");
    push_step(&s, 1, 1, 1, "a");
    view(&s, 2, 0, "2");
    CHECK(fl_id_same(forgotten, (fl_id){0}));
    applied(&s);
    CHECK(fl_id_same(forgotten, session(1)));
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"a server ends where no coordinator listens any more",
     ends_where_no_coordinator_listens},
    {"a server serves nobody without the state that is expected",
     serves_nobody_without_the_state_that_is_expected},
    {"a round closes in rank order, once", closes_in_rank_order},
    {"an early close is kept", keeps_a_close_that_is_early},
    {"a version counts once it is applied",
     counts_a_version_once_it_is_applied},
    {"staged gradients outlive a loss that may be in a decision",
     keeps_what_a_decision_may_need},
    {"missing gradients end the job", ends_the_job_when_gradients_are_missing},
    {"a push that runs ahead ends the job",
     ends_the_job_when_a_push_runs_ahead},
    {"a bad push has no effect", refuses_bad_pushes},
    {"a server lets pushes wait for room", lets_pushes_wait_for_room},
    {"a parked push counts once", a_parked_push_counts_once},
    {"another job is refused", refuses_another_job},
    {"a pull waits for its version", parks_a_pull_until_its_version},
    {"a newcomer waits for its view", parks_a_newcomer_until_its_view},
    {"a lost session is fenced", fences_who_is_lost},
    {"a request whose call broke is forgotten",
     forgets_a_request_whose_call_broke},
    {"a server parks so many requests", parks_so_many_requests},
    {"an asynchronous push is applied once", applies_on_arrival_once},
    {"a server ends with the version of the end",
     ends_with_the_version_of_the_end},
    {"a server knows that trainers may be there after an end",
     knows_that_trainers_may_be_there_after_an_end},
    {"a server stays until the coordinator knows its end",
     stays_until_its_end_is_known},
    {"a server obeys a failing end of an older generation",
     obeys_a_failing_end_of_an_older_generation},
    {"server says that it cannot restore a snapshot",
     says_that_it_cannot_restore_a_snapshot},
    {"a server reports at once when it starts", reports_at_once_when_it_starts},
    {"a server gives up on a silent coordinator",
     gives_up_on_a_silent_coordinator},
    {"a server says that no coordinator comes", says_that_no_coordinator_comes},
    {"a coordinator that lost its state ends the job",
     knows_a_coordinator_that_lost_its_state},
    {"an insane view is ignored", ignores_an_insane_view},
    {"a restarted server goes on with a round", goes_on_with_a_round},
    {"a restarted server applies a decided round again",
     applies_a_decided_round_again},
    {"a server tells nobody what is in no image",
     tells_nobody_before_the_image},
    {"a restarted server knows its view and its end", keeps_an_older_view_out},
    {"a restarted server leaves if it was leaving", leaves_if_it_was_leaving},
    {"a restarted server leaves if its end was confirmed",
     leaves_if_its_end_was_confirmed},
    {"an interrupted push comes before others", gets_an_interrupted_push_first},
    {"an interrupted push is given up with its session",
     gives_an_interrupted_push_up},
    {"an interrupted push of a session that had left is given up",
     gives_a_push_of_nobody_up},
    {"an image with another byte is refused", refuses_a_changed_image},
    {"a cut of an asynchronous server knows the pushes that it has",
     a_cut_knows_its_pushes},
    {"a cut waits for a push that a crash has interrupted",
     a_cut_waits_for_an_interrupted_push},
    {"a cut waits for a push that some owners have applied",
     a_cut_waits_for_a_push_that_some_owners_have},
    {"a restarted server knows a push that was applied after its session left",
     knows_a_push_that_was_applied_late},
    {"a push is applied before its session is forgotten",
     a_push_is_applied_before_its_session_is_forgotten},
    {0},
};
