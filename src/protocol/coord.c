/* SPDX-License-Identifier: Apache-2.0 */
/* coord.c - the coordinator: who joins, views, rounds, servers, the end.
 *
 * What it knows of ranks is in members.h, of trainers that wait for one in
 * joins.h, of snapshots in history.h; what follows from them is here. Every
 * event that changes something calls settle_job, which grants ranks to parked
 * JOINs, decides the round and ends the job as far as the change allows.
 *
 * Easy to get wrong:
 * - A decision is final. P(k) is fixed once, with exactly the members of that
 *   moment, and is repeated unchanged even if some of them are lost later.
 * - Views, decisions and END are repeated until each server has acknowledged
 *   them; a STATE acknowledges everything that it covers. The current view is
 *   also sent twice per lease as a sign of life. */
#include "protocol/coord.h"
#include "protocol/image.h"
#include "protocol/joins.h"
#include "protocol/plant.h"

#include <stdio.h>

/* A server that cannot be reached gets END repeated for at least this long. */
#define REFUSED_AFTER FL_SEC

enum {
    REASON_MAX = FL_MEMBERS_REASON, /* bytes of a sentence why a job ends */
    DECIDED_MAX = 16, /* decisions that some server has not closed yet */
};

typedef struct decision {
    int64_t round;
    fl_member *member; /* P(round), by rank */
    int n;
    int64_t snapshot; /* of the version that it makes; 0: none is taken */
} decision;

/* What the coordinator knows of one server. */
typedef struct server_status {
    int64_t view, version; /* the newest ones that it has acknowledged */
    fl_state state;        /* the first state it reported; id 0: none yet */
    int64_t generation;    /* that it has reported */
    uint64_t former;       /* its state id in an earlier generation */
    bool over;             /* it has ended */
    bool confirmed;        /* it was told that the coordinator knows that */
    int64_t sent, heard;   /* time of the last message; 0: none yet */
    fl_refusals refused;
} server_status;

struct fl_coord {
    const fl_job *job;
    fl_outbox *out;
    int64_t born, ticked;
    int64_t stalled; /* when waits were last reported */
    fl_members *members;
    fl_joins *joins;       /* parked JOINs */
    server_status *server; /* job->servers elements */
    bool changed;          /* an image would differ from the last one */
    int64_t view, round;
    FL_VEC(decision) decided;
    fl_history *history; /* snapshots, and going back to one */
    bool ended;
    int code;
    char reason[REASON_MAX + 64];
    int64_t version; /* END's: servers end at this version; < 0: at once */
    int64_t ended_at;
};

static fl_peer to_call(uint64_t call)
{
    return (fl_peer){FL_PEER_CALL, 0, call};
}

static fl_peer to_server(int index)
{
    return (fl_peer){FL_PEER_SERVER, index, 0};
}

static fl_msg answer_to(const fl_coord *c, fl_msg_kind kind, const fl_msg *m)
{
    return (fl_msg){.kind = kind,
                    .job = c->job->id,
                    .session = m->session,
                    .tag = m->tag,
                    .view = c->view};
}

/* --- to the servers --- */

static void say_end(fl_coord *c, fl_peer to, uint64_t tag)
{
    fl_outbox_say(c->out, to,
                  (fl_msg){.kind = FL_MSG_END,
                           .job = c->job->id,
                           .tag = tag,
                           .code = c->code,
                           .round = c->version,
                           .expected = to.kind == FL_PEER_SERVER
                                           ? c->server[to.index].state.id
                                           : 0},
                  "%s", c->reason);
}

/* Tell a server that its end is known, so that it may leave. */
static void confirm_end(fl_coord *c, int server)
{
    c->server[server].confirmed = true;
    fl_outbox_send(c->out, to_server(server),
                   (fl_msg){.kind = FL_MSG_END,
                            .job = c->job->id,
                            .expected = c->server[server].state.id,
                            .code = c->code,
                            .round = c->version,
                            .over = true});
}

static void send_view(fl_coord *c, int server, int64_t now)
{
    const int n = c->job->trainers;
    const int64_t writing = fl_history_writing(c->history);
    fl_member *member =
        fl_arena_alloc(c->out->arena, (size_t)n * sizeof *member);
    fl_leave *left = fl_arena_alloc(c->out->arena, (size_t)n * sizeof *left);
    const int n_left = fl_members_list_left(c->members, now, left);
    fl_outbox_send(c->out, to_server(server),
                   (fl_msg){.kind = FL_MSG_VIEW,
                            .job = c->job->id,
                            .expected = c->server[server].state.id,
                            .view = c->view,
                            .round = c->round,
                            .snapshot = c->job->async ? writing : 0,
                            .member = member,
                            .n_member = fl_members_list(c->members, member),
                            .left = left,
                            .n_left = n_left});
}

static void send_closes(fl_coord *c, int server)
{
    for (int64_t i = 0; i < c->decided.n; i++) {
        const decision *d = &c->decided.at[i];
        if (d->round < c->server[server].version)
            continue;
        fl_outbox_send(c->out, to_server(server),
                       (fl_msg){.kind = FL_MSG_CLOSE,
                                .job = c->job->id,
                                .expected = c->server[server].state.id,
                                .round = d->round,
                                .snapshot = d->snapshot,
                                .member = d->member,
                                .n_member = d->n});
    }
}

static void tell_server(fl_coord *c, int server, int64_t now)
{
    server_status *s = &c->server[server];
    if (s->over && !s->confirmed)
        confirm_end(c, server);
    if (s->over)
        return;
    s->sent = now;
    if (s->generation < c->out->generation && s->heard && !c->ended) {
        fl_outbox_send(c->out, to_server(server),
                       (fl_msg){.kind = FL_MSG_REWIND,
                                .job = c->job->id,
                                .snapshot = fl_history_base(c->history)});
        return;
    }
    if (!c->ended)
        send_view(c, server, now);
    send_closes(c, server);
    if (c->ended)
        say_end(c, to_server(server), 0);
}

/* A server that has the view is not sent it again with every round. */
static void tell_decision(fl_coord *c, int server, int64_t now)
{
    server_status *s = &c->server[server];
    if (s->over || s->view < c->view) {
        tell_server(c, server, now);
        return;
    }
    s->sent = now;
    send_closes(c, server);
}

static void tell_all_servers(fl_coord *c, int64_t now)
{
    for (int i = 0; i < c->job->servers; i++)
        tell_server(c, i, now);
}

static void begin_view(fl_coord *c, int64_t now)
{
    c->view++;
    tell_all_servers(c, now);
}

/* --- a session leaves --- */

static void fence_session(fl_coord *c, fl_peer from, const fl_msg *m,
                          int64_t now)
{
    char why[128] = "this session was never granted a rank";
    fl_msg answer = answer_to(c, FL_MSG_FENCED, m);
    fl_leave leave;
    answer.rank = -1;
    if (fl_members_past(c->members, m->session, now, &leave)) {
        answer.rank = leave.rank;
        fl_leave_text(&leave, why, sizeof why);
    }
    fl_outbox_say(c->out, from, answer, "%s", why);
}

static void lose_rank(fl_coord *c, const fl_rank *r, fl_left why, int code,
                      const char *reason, int64_t now)
{
    fl_members_lose(c->members, r->rank, why, c->view + 1, now);
    fl_members_blame(c->members, r->rank, code, reason);
    c->changed = true;
    const bool waits = fl_members_awaits(c->members, r, now);
    fl_outbox_note(c->out,
                   waits ? "trainer %d (%s) is lost: %s; round %lld waits for "
                           "it, %.0f s at most"
                         : "trainer %d (%s) is lost: %s",
                   r->rank, r->who, reason, (long long)c->round,
                   (double)(r->wait_until - now) / (double)FL_SEC);
    begin_view(c, now);
}

static void complete_rank(fl_coord *c, const fl_rank *r, int64_t now)
{
    fl_members_complete(c->members, r->rank, c->view + 1, now);
    c->changed = c->changed || !FL_PLANTED(DONEFORGET);
    fl_outbox_note(c->out, "trainer %d (%s) is complete, %d of %d", r->rank,
                   r->who, fl_members_count(c->members, FL_RANK_DONE),
                   c->job->trainers);
}

/* --- a session joins --- */

static void say_grant(fl_coord *c, const fl_rank *r, uint64_t call,
                      uint64_t tag)
{
    fl_outbox_send(c->out, to_call(call),
                   (fl_msg){.kind = FL_MSG_GRANT,
                            .job = c->job->id,
                            .session = r->session,
                            .tag = tag,
                            .rank = r->rank,
                            .g = r->g,
                            .round = c->round,
                            .step = r->step,
                            .position = r->position});
}

static void grant_rank(fl_coord *c, const fl_rank *r, const fl_join *w,
                       int64_t now)
{
    fl_members_grant(c->members, (fl_member){r->rank, w->session, c->view + 1},
                     w->explicit_id, w->who, now);
    c->changed = c->changed || !FL_PLANTED(FORGETGRANT);
    fl_outbox_note(c->out, "trainer %d is %s", r->rank, r->who);
    begin_view(c, now);
    say_grant(c, r, w->call, w->tag);
}

static void serve_joins(fl_coord *c, int64_t now)
{
    const fl_rank *r;
    fl_join w;
    int64_t at = 0;
    while (!c->ended && (r = fl_joins_next(c->joins, &at, now, &w)))
        grant_rank(c, r, &w, now);
    fl_joins_probe(c->joins, now);
}

/* --- snapshots --- */

/* A snapshot does not depend on the servers, only on the number of trainers. */
static fl_job any_job(const fl_coord *c)
{
    return (fl_job){.trainers = c->job->trainers};
}

static void visit_cut(fl_image *im, fl_coord *c)
{
    fl_image_count(im, &c->round, 0, INT64_MAX - 1);
    fl_members_visit_cut(c->members, im);
}

/* Give the next snapshot its number, and keep what it has of this machine: the
 * ranks and positions of the open round. The servers' part is not older. */
static int64_t begin_snapshot(fl_coord *c, int64_t now)
{
    const fl_job any = any_job(c);
    fl_str *image =
        fl_history_begin(c->history, c->job->async ? 0 : c->round, now);
    fl_image im = fl_image_begin(image, FL_IMAGE_CUT, &any, 0);
    visit_cut(&im, c);
    fl_image_finish(&im);
    return fl_history_writing(c->history);
}

/* Asynchronous: a snapshot is taken at any time. */
static void take_snapshot(fl_coord *c, int64_t now)
{
    if (!c->job->async || c->ended || !fl_history_due(c->history, now) ||
        !fl_members_all_came(c->members))
        return;
    begin_snapshot(c, now);
    c->changed = true; /* no number is given twice */
    tell_all_servers(c, now);
}

/* --- rounds --- */

static bool decide_round(fl_coord *c, int64_t now)
{
    if (c->ended || c->job->async || !fl_members_have_met(c->members, now))
        return false;
    if (c->decided.n >= DECIDED_MAX)
        return false; /* wait until the slowest server has closed some */
    decision d = {.round = c->round++};
    d.member = fl_mem_alloc((size_t)c->job->trainers * sizeof *d.member);
    d.n = fl_members_close_round(c->members, d.member);
    if (fl_history_due(c->history, now))
        d.snapshot = begin_snapshot(c, now);
    fl_push(&c->decided, d);
    c->changed = !FL_PLANTED(DECIDEFORGET);
    for (int i = 0; i < c->job->servers; i++)
        tell_decision(c, i, now);
    return true;
}

/* --- the end --- */

/* End the job. Servers first reach `version`; < 0: they end at once. */
static void end_job(fl_coord *c, int code, const char *why, int64_t version,
                    int64_t now)
{
    if (c->ended)
        return;
    c->ended = true;
    c->changed = !FL_PLANTED(ENDFORGET);
    c->code = code;
    c->ended_at = now;
    c->version = version;
    snprintf(c->reason, sizeof c->reason, "%s", why);
    fl_outbox_note(c->out, "the job ends with code %d: %s", code, c->reason);
    for (int i = 0; i < fl_joins_count(c->joins); i++) {
        const fl_join *w = fl_joins_get(c->joins, i);
        say_end(c, to_call(w->call), w->tag);
    }
    fl_joins_clear(c->joins);
    tell_all_servers(c, now);
}

static void end_job_if_due(fl_coord *c, int64_t now)
{
    if (c->ended)
        return;
    if (fl_members_count_past(c->members) >= c->job->max_sessions) {
        char why[160];
        snprintf(why, sizeof why,
                 "%lld sessions of trainers have ended, expected fewer than "
                 "%d: are trainers started again in a loop?",
                 (long long)fl_members_count_past(c->members),
                 c->job->max_sessions);
        fl_coord_end(c, 1, why, now);
        return;
    }
    if (fl_members_may_go_on(c->members, now))
        return;
    const fl_rank *r = fl_members_first_lost(c->members);
    if (!fl_members_all_came(c->members) &&
        (!r || now < fl_members_deadline(c->members)))
        return;
    char why[REASON_MAX + 64];
    if (r)
        snprintf(why, sizeof why, "trainer %d: %s", r->rank, r->reason);
    else
        snprintf(why, sizeof why, "every trainer is complete");
    end_job(c, r ? r->code : 0, why, c->round, now);
}

static void settle_job(fl_coord *c, int64_t now)
{
    if (fl_history_rewinds(c->history))
        return;
    do
        serve_joins(c, now);
    while (decide_round(c, now));
    end_job_if_due(c, now);
}

/* --- messages of trainers --- */

static void on_join(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_members_find(c->members, m->session);
    fl_leave left;
    if (m->rank < (m->explicit_id ? 0 : FL_ANY_ID) ||
        m->rank >= c->job->trainers) {
        fl_msg answer = answer_to(c, FL_MSG_ERROR, m);
        answer.code = FL_EINVAL;
        fl_outbox_say(c->out, from, answer,
                      "join: trainer id %d is out of range, the job has %d "
                      "trainers: ids go from 0 to %d",
                      m->rank, c->job->trainers, c->job->trainers - 1);
    } else if (fl_members_past(c->members, m->session, now, &left)) {
        fence_session(c, from, m, now);
    } else if (r) {
        say_grant(c, r, from.call, m->tag);
    } else if (!fl_joins_repeat(c->joins, from, m, c->round, now)) {
        if (!fl_joins_park(c->joins, from, m, now))
            fl_outbox_say(
                c->out, from, answer_to(c, FL_MSG_PARKED, m),
                "%d trainers wait to join already, which is the limit",
                c->job->max_parked);
        settle_job(c, now);
    }
}

static void on_renew(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_members_find(c->members, m->session);
    if (!r) {
        fence_session(c, from, m, now);
        return;
    }
    fl_members_renew(c->members, r->rank, from.call,
                     m->echo <= fl_joins_last_probe(c->joins) ? m->echo : 0,
                     now);
    fl_outbox_send(c->out, from, answer_to(c, FL_MSG_ACK, m));
    settle_job(c, now);
}

/* What is wrong with the BARRIER of a member; NULL: nothing. */
static const char *flaw_of_barrier(const fl_coord *c, const fl_rank *r,
                                   const fl_msg *m)
{
    const size_t n = m->position ? strlen(m->position) : 0;
    if (m->round > c->round || m->round < 0)
        return "that round is not open";
    if (c->job->async && !m->step)
        return "the job is asynchronous";
    if (m->step < 0 || m->step > r->step + 1 || (m->step > 0) != (n > 0) ||
        n >= FL_POSITION_MOST)
        return "its step or position is out of range";
    return NULL;
}

/* The servers have all pushes of the step. */
static void take_barrier(fl_coord *c, const fl_rank *r, const fl_msg *m,
                         int64_t now)
{
    if (!c->job->async && m->round != c->round)
        return; /* a repeat */
    if (fl_members_barrier(c->members, r->rank, m->step, m->position, now))
        c->changed = c->changed || !FL_PLANTED(BARRIERACK);
}

static void on_barrier(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_members_find(c->members, m->session);
    if (!r) {
        fence_session(c, from, m, now);
        return;
    }
    const char *wrong = flaw_of_barrier(c, r, m);
    if (wrong) {
        fl_msg answer = answer_to(c, FL_MSG_ERROR, m);
        answer.code = FL_EPROTO;
        fl_outbox_say(c->out, from, answer,
                      "barrier: round %lld, step %lld, round %lld is open: %s",
                      (long long)m->round, (long long)m->step,
                      (long long)c->round, wrong);
        return;
    }
    take_barrier(c, r, m, now);
    fl_outbox_send(c->out, from, answer_to(c, FL_MSG_ACK, m));
    settle_job(c, now);
}

static void on_complete(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_members_find(c->members, m->session);
    fl_leave left;
    if (r) {
        complete_rank(c, r, now);
        begin_view(c, now);
    } else if (!fl_members_past(c->members, m->session, now, &left)) {
        fl_joins_forget(c->joins, m->session, "it completed");
    } else if (left.why != FL_LEFT_DONE) {
        r = fl_members_last_held(c->members, m->session);
        if (!r) { /* its rank has been granted to another session */
            fence_session(c, from, m, now);
            return;
        }
        complete_rank(c, r, now);
    }
    fl_outbox_send(c->out, from, answer_to(c, FL_MSG_ACK, m));
    settle_job(c, now);
}

static void on_failed(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const char *why = m->text && *m->text ? m->text : "it failed";
    const int code = m->code > 0 && m->code < 256 ? m->code : 1;
    const fl_rank *r = fl_members_find(c->members, m->session);
    if (r) {
        lose_rank(c, r, FL_LEFT_FAILED, code, why, now);
    } else if ((r = fl_members_last_held(c->members, m->session))) {
        c->changed = true; /* replaces "its lease ran out", which says less */
        fl_members_blame(c->members, r->rank, code, why);
    } else {
        fl_joins_forget(c->joins, m->session, why);
    }
    fl_outbox_send(c->out, from, answer_to(c, FL_MSG_ACK, m));
    settle_job(c, now);
}

/* The server that has lost its state, as a trainer's message shows, or -1. The
 * trainer has seen another state id of that server (the coordinator has the id
 * of server 0), or it has pulled a version that this coordinator never
 * decided. */
static int server_that_lost_state(const fl_coord *c, const fl_msg *m)
{
    if (!fl_msg_carries(m->kind, "seen") || m->generation < c->out->generation)
        return -1;
    if (m->generation > c->out->generation)
        return 0;
    for (int i = 0; i < m->n_seen && i < c->job->servers; i++)
        if (fl_job_lost(m->seen[i],
                        i ? c->server[i].state.id : c->out->state.id))
            return i;
    const bool ahead =
        !c->job->async && m->round > c->round && !FL_PLANTED(QUIET);
    return ahead ? 0 : -1;
}

/* --- going back --- */

/* A server cannot restore the snapshot that the job goes back to. */
static void go_further_back(fl_coord *c, int server, int64_t number,
                            const char *why, int64_t now)
{
    char name[96], text[sizeof c->reason];
    if (fl_history_go_further(c->history, server, number, why))
        return;
    snprintf(text, sizeof text,
             "%s cannot restore snapshot %lld, and there is no older one of "
             "this job: %s",
             fl_job_server(c->job, server, name, sizeof name),
             (long long)number, why);
    fl_coord_end(c, 1, text, now);
}

/* A server has lost its state: the job goes back to its newest snapshot. False:
 * there is none. `m` shows the loss: its sender knows a generation, and perhaps
 * the state id that server 0 had. */
static bool go_back(fl_coord *c, int server, const fl_msg *m)
{
    const uint64_t was = m->n_seen ? m->seen[0] : m->expected;
    if (!fl_history_newest(c->history, was) || c->ended)
        return false;
    fl_history_go_back(c->history, server, m->generation);
    return true;
}

/* End the job, because a server has lost its parameters. Otherwise it would
 * silently train with new ones: perhaps only this trainer has noticed. */
static void end_job_lost_state(fl_coord *c, int server, const fl_msg *m,
                               int64_t now)
{
    const fl_rank *r = fl_members_find(c->members, m->session);
    char name[96], why[REASON_MAX], version[48] = "";
    if (go_back(c, server, m))
        return;
    if (!c->job->async)
        snprintf(version, sizeof version, " (version %lld)",
                 (long long)m->round);
    snprintf(why, sizeof why,
             "%s was started again and has lost its parameters, which %s has "
             "used%s; start the job again",
             fl_job_server(c->job, server, name, sizeof name),
             r                                   ? r->who
             : m->kind == FL_MSG_JOIN && m->text ? m->text
                                                 : "a trainer",
             version);
    fl_coord_end(c, 1, why, now);
}

/* Whether the trainer has used what the servers held before the job went back.
 * A process that has used nothing knows of no generation, and may join. */
static bool is_rewound(const fl_coord *c, const fl_msg *m)
{
    bool some = false;
    for (int i = 0; i < m->n_seen; i++)
        some |= m->seen[i] != 0;
    return some && m->generation < c->out->generation &&
           m->kind != FL_MSG_FAILED;
}

static void answer_rewound(fl_coord *c, fl_peer from, const fl_msg *m)
{
    fl_msg answer = answer_to(c, FL_MSG_FENCED, m);
    answer.rank = -1;
    fl_outbox_say(
        c->out, from, answer, "rewound: the job went back to %s %lld",
        c->job->async ? "snapshot" : "version",
        (long long)(c->job->async ? fl_history_base(c->history) : c->round));
}

static void from_trainer(fl_coord *c, fl_peer from, const fl_msg *m,
                         int64_t now)
{
    const int lost = server_that_lost_state(c, m);
    if (lost >= 0)
        end_job_lost_state(c, lost, m, now);
    if (c->ended) {
        say_end(c, from, m->tag);
        return;
    }
    if (fl_history_rewinds(c->history)) {
        /* this machine is about to be made anew, which breaks all calls, or to
         * end, which answers this one */
        fl_joins_hold(c->joins, from, m, now);
        return;
    }
    if (is_rewound(c, m)) {
        answer_rewound(c, from, m);
        return;
    }
    switch (m->kind) {
    case FL_MSG_JOIN:
        on_join(c, from, m, now);
        break;
    case FL_MSG_RENEW:
        on_renew(c, from, m, now);
        break;
    case FL_MSG_BARRIER:
        on_barrier(c, from, m, now);
        break;
    case FL_MSG_COMPLETE:
        on_complete(c, from, m, now);
        break;
    case FL_MSG_FAILED:
        on_failed(c, from, m, now);
        break;
    default: {
        fl_msg answer = answer_to(c, FL_MSG_ERROR, m);
        answer.code = FL_EPROTO;
        fl_outbox_say(c->out, from, answer,
                      "coordinator: it takes no request %s",
                      fl_msg_name(m->kind));
    }
    }
}

/* --- messages of servers --- */

/* Drop the decisions that every server has carried out. */
static void forget_decisions(fl_coord *c)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < c->job->servers; i++)
        if (c->server[i].version < least)
            least = c->server[i].version;
    while (c->decided.n && c->decided.at[0].round < least) {
        fl_mem_free(c->decided.at[0].member);
        fl_remove(&c->decided, 0);
    }
}

static void end_job_for_server(fl_coord *c, int server, const char *why,
                               int64_t now)
{
    char name[96], text[REASON_MAX];
    snprintf(text, sizeof text, "%s %s",
             fl_job_server(c->job, server, name, sizeof name), why);
    fl_coord_end(c, 1, text, now);
}

/* Whether a STATE shows that a server has lost its state; *lost is then its
 * index. One of a higher generation than ours shows that we have lost ours. */
static bool shows_loss(const fl_coord *c, int server, const fl_msg *m,
                       int *lost)
{
    const server_status *s = &c->server[server];
    const int64_t own = c->out->generation;
    const bool ours =
        m->generation > own || (m->generation == own && server &&
                                fl_job_lost(m->expected, c->out->state.id));
    *lost = ours ? 0 : server;
    return ours ||
           (m->generation < s->generation && m->state.id != s->former) ||
           (m->generation == own && s->generation == own &&
            fl_job_lost(s->state.id, m->state.id));
}

/* A server has ended because of an error. */
static void on_failed_server(fl_coord *c, int server, const fl_msg *m,
                             int64_t now)
{
    if (m->text) /* it names the server */
        fl_coord_end(c, 1, m->text, now);
    else
        end_job_for_server(c, server, "failed", now);
}

/* A STATE of the time before the job went back. A server that has failed by
 * then cannot go back with the others. */
static void on_former_state(fl_coord *c, int server, const fl_msg *m,
                            int64_t now)
{
    server_status *s = &c->server[server];
    const bool first = !s->heard;
    s->heard = now;
    s->refused = 0;
    if (s->generation == c->out->generation)
        return; /* it was under way for long */
    s->former = m->state.id;
    s->over = s->over || (m->over && (m->code || c->ended));
    if (m->over && m->code) {
        on_failed_server(c, server, m, now);
    } else if (m->damaged && m->damaged == fl_history_base(c->history) &&
               !c->ended && !FL_PLANTED(DAMAGED)) {
        go_further_back(c, server, m->damaged, m->text ? m->text : "?", now);
    } else if (first) {
        tell_server(c, server, now);
    }
}

static void on_state(fl_coord *c, int server, const fl_msg *m, int64_t now)
{
    server_status *s = &c->server[server];
    int lost;
    if (fl_history_rewinds(c->history))
        return;
    if (shows_loss(c, server, m, &lost)) {
        char why[128];
        if (go_back(c, lost, m))
            return;
        snprintf(why, sizeof why,
                 "was started again and has lost its parameters (version %lld)",
                 (long long)s->version);
        end_job_for_server(c, lost, why, now);
        s->over = s->over || m->over;
        return;
    }
    if (m->generation < c->out->generation) {
        on_former_state(c, server, m, now);
        return;
    }
    const bool first = !s->heard, over = m->over && (c->ended || m->code);
    const bool back = s->generation < m->generation;
    c->changed =
        c->changed || s->state.id != m->state.id || over > s->over || back;
    s->state = m->state;
    s->generation = m->generation;
    fl_history_wrote(c->history, server, m->snapshot);
    s->heard = now;
    s->refused = 0;
    if (m->view > s->view && m->view <= c->view)
        s->view = m->view;
    if (m->round > s->version && m->round <= c->round)
        s->version = m->round;
    s->over = s->over || over;
    forget_decisions(c);
    if (m->over && m->code)
        on_failed_server(c, server, m, now);
    settle_job(c, now); /* a decision may have waited for this server */
    if (s->over && m->over)
        confirm_end(c, server);
    else if (first || back) /* it may have ignored messages before its first
                               STATE */
        tell_server(c, server, now);
}

/* --- time --- */

/* This process itself was stopped for `gap`: extend all time limits by it. */
static void forgive_gap(fl_coord *c, int64_t gap)
{
    fl_members_forgive(c->members, gap);
    for (int i = 0; i < c->job->servers; i++)
        c->server[i].heard += c->server[i].heard ? gap : 0;
}

static void expire_leases(fl_coord *c, int64_t now)
{
    const fl_rank *r;
    while ((r = fl_members_find_expired(c->members, now)))
        if (r->call_broke)
            lose_rank(c, r, FL_LEFT_CALL, 1, "its connection broke", now);
        else
            lose_rank(c, r, FL_LEFT_LEASE, 1, "its lease ran out", now);
}

static void check_limits(fl_coord *c, int64_t now)
{
    if (!fl_members_all_came(c->members) && now >= c->born + c->job->start) {
        char why[128];
        snprintf(why, sizeof why,
                 "%d of %d trainers came within %.0f s (FLUID_START sets how "
                 "long to wait); were all started?",
                 c->job->trainers - fl_members_count(c->members, FL_RANK_FRESH),
                 c->job->trainers, (double)c->job->start / (double)FL_SEC);
        end_job(c, 1, why, c->round, now);
    }
    for (int i = 0; i < c->job->servers && !c->ended; i++) {
        const server_status *s = &c->server[i];
        const int64_t limit =
            s->heard ? s->heard + c->job->reach : c->born + c->job->start;
        char name[96], why[128];
        snprintf(why, sizeof why, "%s does not answer",
                 fl_job_server(c->job, i, name, sizeof name));
        if (now >= limit)
            fl_coord_end(c, 1, why, now);
    }
}

static void repeat_to_servers(fl_coord *c, int64_t now)
{
    for (int i = 0; i < c->job->servers; i++) {
        const server_status *s = &c->server[i];
        const bool behind = !s->heard || c->ended || s->view < c->view ||
                            s->version < c->round ||
                            s->generation < c->out->generation;
        const int64_t pause = behind ? c->job->retry : c->job->lease / 2;
        if (now >= s->sent + pause)
            tell_server(c, i, now);
    }
}

/* --- reports --- */

static void list_server_waits(const fl_coord *c, int64_t now, fl_str *rows)
{
    for (int i = 0; i < c->job->servers; i++) {
        const server_status *s = &c->server[i];
        char whom[96];
        bool up_to_date =
            c->ended ? s->over : s->view == c->view && s->version == c->round;
        if (up_to_date)
            continue;
        fl_wait_row(rows, "coordinator",
                    fl_job_server(c->job, i, whom, sizeof whom),
                    c->ended ? "to end" : "to acknowledge a view or a decision",
                    now - (s->heard ? s->heard : c->born),
                    s->heard ? c->job->reach : c->job->start);
    }
}

static void count_trainers(fl_coord *c, int64_t now)
{
    fl_str missing = {0};
    const int64_t limit = fl_members_deadline(c->members) - c->born;
    const int came =
        c->job->trainers - fl_members_count(c->members, FL_RANK_FRESH);
    for (int i = 0; i < c->job->trainers; i++)
        if (fl_members_get(c->members, i)->state == FL_RANK_FRESH &&
            missing.n < 200)
            fl_str_printf(&missing, " %d", i);
    fl_outbox_note(c->out,
                   "%d of %d trainers have come, waiting for%s, %.0f s of %.0f",
                   came, c->job->trainers, missing.at ? missing.at : "",
                   (double)(now - c->born) / (double)FL_SEC,
                   (double)limit / (double)FL_SEC);
    fl_str_fini(&missing);
}

static void say_waits(fl_coord *c, int64_t now)
{
    fl_str rows = {0};
    fl_coord_waits(c, now, &rows);
    fl_outbox_stalled(c->out, &rows);
    fl_str_fini(&rows);
}

static void report_stalls(fl_coord *c, int64_t now)
{
    if (c->ended || now < c->stalled + c->job->stall)
        return;
    c->stalled = now;
    if (!fl_members_all_came(c->members))
        count_trainers(c, now);
    else if (fl_members_are_stalled(c->members, now))
        say_waits(c, now);
}

/* --- the machine --- */

fl_coord *fl_coord_new(const fl_job *job, fl_state state, fl_outbox *out,
                       int64_t now)
{
    fl_coord *c = fl_mem_alloc(sizeof *c);
    c->job = job;
    c->out = out;
    out->state = state;
    c->born = c->ticked = c->stalled = now;
    c->members = fl_members_new(job, now);
    c->joins = fl_joins_new(job, c->members, out);
    c->server = fl_mem_alloc((size_t)job->servers * sizeof *c->server);
    c->history = fl_history_new(job, out);
    return c;
}

void fl_coord_free(fl_coord *c)
{
    if (!c)
        return;
    for (int64_t i = 0; i < c->decided.n; i++)
        fl_mem_free(c->decided.at[i].member);
    fl_vec_fini(&c->decided);
    fl_history_free(c->history);
    fl_joins_free(c->joins);
    fl_members_free(c->members);
    fl_mem_free(c->server);
    fl_mem_free(c);
}

/* --- what outlives the process --- */

static void visit_status(fl_image *im, server_status *s)
{
    fl_image_count(im, &s->view, 0, INT64_MAX);
    fl_image_count(im, &s->version, 0, INT64_MAX);
    fl_image_word(im, &s->state.id);
    fl_image_any(im, &s->state.incarnation);
    fl_image_count(im, &s->generation, 0, INT64_MAX - 1);
    fl_image_word(im, &s->former);
    fl_image_bool(im, &s->over);
}

static void visit_coord(fl_image *im, fl_coord *c)
{
    fl_image_count(im, &c->out->generation, 0, INT64_MAX - 1);
    fl_history_visit(c->history, im);
    fl_image_count(im, &c->view, 0, INT64_MAX - 1);
    fl_image_count(im, &c->round, 0, INT64_MAX - 1);
    fl_members_visit(c->members, im);
    for (int i = 0; i < c->job->servers; i++)
        visit_status(im, &c->server[i]);
    fl_members_visit_past(c->members, im);
    fl_image_vec(im, &c->decided, DECIDED_MAX);
    for (int64_t i = 0; i < c->decided.n; i++) {
        decision *d = &c->decided.at[i];
        fl_image_count(im, &d->round, 0, INT64_MAX - 1);
        fl_image_members(im, &d->member, &d->n, c->job->trainers);
    }
    fl_image_bool(im, &c->ended);
    fl_image_int(im, &c->code, INT32_MIN, INT32_MAX);
    fl_image_any(im, &c->version);
    fl_image_text(im, c->reason, sizeof c->reason);
}

bool fl_coord_changed(const fl_coord *c)
{
    return c->changed;
}

void fl_coord_image(fl_coord *c, fl_str *to)
{
    fl_image im = fl_image_begin(to, FL_IMAGE_COORD, c->job, 0);
    visit_coord(&im, c);
    fl_image_finish(&im);
    c->changed = false;
}

/* Ranks, views and decisions that cannot be together. */
static bool is_contradictory(const fl_coord *c)
{
    if (!fl_members_are_sound(c->members, c->view))
        return true;
    for (int64_t i = 0; i < c->decided.n; i++)
        if (c->decided.at[i].round !=
            c->round - c->decided.n + i) /* the newest, without a gap */
            return true;
    return false;
}

fl_err fl_coord_restore(fl_coord *c, const void *image, size_t n, int64_t now)
{
    fl_image im;
    FL_TRY(fl_image_open(&im, image, n, FL_IMAGE_COORD, c->job, 0));
    visit_coord(&im, c);
    im.bad = im.bad || is_contradictory(c);
    FL_TRY(fl_image_check(&im));
    fl_members_restart(c->members, now);
    for (int i = 0; i < c->job->servers; i++)
        c->server[i].heard = c->server[i].state.id ? now : 0;
    c->ended_at = now;
    fl_joins_restart(c->joins);
    return FL_OK;
}

/* --- snapshots and going back --- */

void fl_coord_snapshots(fl_coord *c, int64_t every, int64_t last,
                        const fl_history_origin *found, int64_t n, int64_t now)
{
    fl_history_open(c->history, every, last, found, n, now);
}

bool fl_coord_written(const fl_coord *c, fl_coord_moment *out)
{
    int64_t version;
    const fl_str *image;
    if (c->ended || !fl_history_written(c->history, &version, &image))
        return false;
    *out = (fl_coord_moment){.number = fl_history_writing(c->history),
                             .version = version,
                             .generation = c->out->generation,
                             .image = image->at,
                             .n = image->n};
    return true;
}

void fl_coord_committed(fl_coord *c, int64_t number, int64_t oldest)
{
    fl_history_committed(c->history, number, oldest);
    c->changed = c->changed || oldest;
}

fl_err fl_coord_rewind(fl_coord *c, const void *image, size_t n, int64_t base,
                       bool anew)
{
    const fl_job any = any_job(c);
    fl_image im;
    FL_TRY(fl_image_open(&im, image, n, FL_IMAGE_CUT, &any, 0));
    visit_cut(&im, c);
    FL_TRY(fl_image_check(&im));
    fl_members_rewind(c->members, anew);
    /* above all views of earlier generations */
    c->view = (int64_t)((uint64_t)c->out->generation << 32);
    fl_history_rewind(c->history, base);
    c->changed = true;
    return FL_OK;
}

int64_t fl_coord_rewinds(const fl_coord *c, int64_t *generation)
{
    *generation = fl_history_next_generation(c->history);
    return fl_history_rewinds(c->history);
}

void fl_coord_cannot_rewind(fl_coord *c, const char *why, int64_t now)
{
    go_further_back(c, 0, fl_history_rewinds(c->history), why, now);
}

int64_t fl_coord_damaged(const fl_coord *c)
{
    return fl_history_damaged(c->history);
}

/* --- events --- */

void fl_coord_greet(fl_coord *c, int server, int64_t now)
{
    if (!fl_history_rewinds(c->history) &&
        now >= c->server[server].sent + c->job->retry)
        tell_server(c, server, now);
}

void fl_coord_recv(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const bool call = from.kind == FL_PEER_CALL;
    if (!fl_id_same(m->job, c->job->id)) {
        if (call)
            fl_outbox_wrong_job(c->out, from, m, c->job);
    } else if (call && c->ended) {
        say_end(c, from, m->tag);
    } else if (call) {
        from_trainer(c, from, m, now);
    } else if (from.kind == FL_PEER_SERVER && m->kind == FL_MSG_STATE &&
               from.index >= 0 && from.index < c->job->servers) {
        on_state(c, from.index, m, now);
    }
}

int fl_coord_admit(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_members_find(c->members, m->session);
    if (!fl_id_same(m->job, c->job->id))
        fl_outbox_wrong_job(c->out, from, m, c->job);
    else if (c->ended)
        say_end(c, from, m->tag);
    else if (!r)
        fence_session(c, from, m, now);
    else
        return r->rank;
    return -1;
}

void fl_coord_hangup(fl_coord *c, uint64_t call, int64_t now)
{
    fl_joins_hangup(c->joins, call);
    fl_members_hangup(c->members, call, now);
}

/* A server that cannot be reached may not have started yet, or the network may
 * have failed for a moment. So END is repeated for REFUSED_AFTER before a
 * refusal counts as its acknowledgement. */
void fl_coord_refused(fl_coord *c, int server, bool no_listener, int64_t now)
{
    const bool may_return = c->job->durability != FL_MEMORY && !c->code;
    const int64_t time = may_return                       ? c->job->restart
                         : c->job->linger > REFUSED_AFTER ? c->job->linger
                                                          : REFUSED_AFTER;
    server_status *s = &c->server[server];
    char name[96], text[FL_GONE_TEXT], why[REASON_MAX];
    if (c->ended) { /* a list of servers may name one that does not exist */
        const bool awaited = !s->heard && !c->code;
        if (!s->over && !awaited && now >= c->ended_at + time)
            s->over = s->confirmed = true; /* nobody is there to be told */
        return;
    }
    if (!s->heard || !no_listener || !fl_job_gone(c->job, &s->refused, now))
        return;
    snprintf(why, sizeof why, "%s %s",
             fl_job_server(c->job, server, name, sizeof name),
             fl_job_gone_text(c->job, text));
    fl_coord_end(c, 1, why, now);
}

void fl_coord_tick(fl_coord *c, int64_t now)
{
    if (now - c->ticked > c->job->lease / 3)
        forgive_gap(c, now - c->ticked);
    c->ticked = now;
    if (fl_history_rewinds(c->history))
        return;
    if (!c->ended) {
        expire_leases(c, now);
        check_limits(c, now);
        settle_job(c, now);
        take_snapshot(c, now);
    }
    repeat_to_servers(c, now);
    report_stalls(c, now);
}

void fl_coord_end(fl_coord *c, int code, const char *why, int64_t now)
{
    end_job(c, code, why, -1, now);
}

bool fl_coord_told(const fl_coord *c)
{
    for (int i = 0; i < c->job->servers; i++)
        if (!c->server[i].over || !c->server[i].confirmed)
            return false;
    return c->ended;
}

bool fl_coord_over(const fl_coord *c, int64_t now)
{
    if (!c->ended || now < c->ended_at + c->job->linger)
        return false;
    return now >= c->ended_at + c->job->reach || fl_coord_told(c);
}

bool fl_coord_ended(const fl_coord *c, int *code, const char **why)
{
    if (c->ended) {
        *code = c->code;
        *why = c->reason;
    }
    return c->ended;
}

void fl_coord_waits(const fl_coord *c, int64_t now, fl_str *rows)
{
    if (!c->ended)
        fl_members_waits(c->members, c->round, now, rows);
    fl_joins_waits(c->joins, now, rows);
    list_server_waits(c, now, rows);
}

int64_t fl_coord_round(const fl_coord *c)
{
    return c->round;
}

int64_t fl_coord_view(const fl_coord *c)
{
    return c->view;
}

int fl_coord_done(const fl_coord *c)
{
    return fl_members_count(c->members, FL_RANK_DONE);
}

int fl_coord_parked(const fl_coord *c)
{
    return fl_joins_count(c->joins);
}

bool fl_coord_has(const fl_coord *c, fl_id session)
{
    return fl_members_find(c->members, session) != NULL;
}

int fl_coord_members(const fl_coord *c, fl_member *out)
{
    return fl_members_list(c->members, out);
}
