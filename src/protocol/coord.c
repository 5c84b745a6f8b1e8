/* coord.c - the coordinator's events: leases, barriers, decisions, the end.
 *
 * Easy to get wrong: a decision is final. P(k) is written down once, with
 * exactly the members of that moment, and repeated as it is, whoever is lost
 * afterwards. */
#include "protocol/coord_in.h"

#include <stdio.h>

#define REFUSED_AFTER FL_SEC /* the network tries again several times */

fl_coord *fl_coord_new(const fl_job *job, fl_state state, fl_outbox *out,
                       int64_t now)
{
    fl_coord *c = fl_mem_alloc(sizeof *c);
    c->job = job;
    c->out = out;
    out->state = state;
    c->born = c->ticked = c->stalled = now;
    c->rank = fl_mem_alloc((size_t)job->trainers * sizeof *c->rank);
    c->server = fl_mem_alloc((size_t)job->servers * sizeof *c->server);
    return c;
}

void fl_coord_free(fl_coord *c)
{
    if (!c)
        return;
    for (int64_t i = 0; i < c->decided.n; i++)
        fl_mem_free(c->decided.at[i].member);
    fl_vec_fini(&c->decided);
    fl_vec_fini(&c->waiting);
    fl_vec_fini(&c->past);
    fl_mem_free(c->rank);
    fl_mem_free(c->server);
    fl_mem_free(c);
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
    return fl_coord_count(c, FL_RANK_DONE);
}

int fl_coord_parked(const fl_coord *c)
{
    return (int)c->waiting.n;
}

bool fl_coord_has(const fl_coord *c, fl_id session)
{
    return fl_coord_find(c, session) != NULL;
}

int fl_coord_members(const fl_coord *c, fl_member *out)
{
    int n = 0;
    for (int i = 0; i < c->job->trainers; i++)
        if (c->rank[i].state == FL_RANK_HELD)
            out[n++] = (fl_member){i, c->rank[i].session, c->rank[i].g};
    return n;
}

fl_msg fl_coord_answer(const fl_coord *c, fl_msg_kind kind, const fl_msg *m)
{
    return (fl_msg){.kind = kind,
                    .job = c->job->id,
                    .session = m->session,
                    .tag = m->tag,
                    .view = c->view};
}

/* --- rounds --- */

/* Each member has sent its barrier, and there is one. */
static bool complete(const fl_coord *c)
{
    int barriers = 0;
    for (int i = 0; i < c->job->trainers; i++) {
        const fl_rank *r = &c->rank[i];
        if (r->state == FL_RANK_HELD && !r->barrier)
            return false;
        barriers += r->state == FL_RANK_HELD && r->barrier;
    }
    return barriers > 0 && fl_coord_all_came(c);
}

static bool decide(fl_coord *c, int64_t now)
{
    if (c->ended || c->job->async || !complete(c))
        return false;
    if (c->decided.n >= FL_DECIDED_MAX)
        return false; /* until the slowest server has acknowledged some */
    fl_decision d = {.round = c->round++};
    d.member = fl_mem_alloc((size_t)c->job->trainers * sizeof *d.member);
    for (int i = 0; i < c->job->trainers; i++) {
        fl_rank *r = &c->rank[i];
        if (r->barrier)
            d.member[d.n++] = (fl_member){i, r->session, r->g};
        r->barrier = false;
    }
    fl_push(&c->decided, d);
    fl_coord_tell_all(c, now);
    return true;
}

/* --- the end --- */

/* version < 0: not orderly, nobody waits for one. */
static void end(fl_coord *c, int code, const char *why, int64_t version,
                int64_t now)
{
    if (c->ended)
        return;
    c->ended = true;
    c->code = code;
    c->ended_at = now;
    c->version = version;
    snprintf(c->reason, sizeof c->reason, "%s", why);
    fl_outbox_note(c->out, "the job ends with code %d: %s", code, c->reason);
    for (int64_t i = 0; i < c->waiting.n; i++)
        fl_coord_say_end(c, fl_to_call(c->waiting.at[i].call),
                         c->waiting.at[i].tag);
    c->waiting.n = 0;
    fl_coord_tell_all(c, now);
}

void fl_coord_end(fl_coord *c, int code, const char *why, int64_t now)
{
    end(c, code, why, -1, now);
}

static bool may_go_on(const fl_coord *c, const fl_rank *r, int64_t now)
{
    return r->state == FL_RANK_HELD ||
           (r->state == FL_RANK_LOST && now < r->left_at + c->job->rejoin);
}

/* The first failure of those that are not done. */
static const fl_rank *first_failure(const fl_coord *c)
{
    const fl_rank *first = NULL;
    for (int i = 0; i < c->job->trainers; i++) {
        const fl_rank *r = &c->rank[i];
        if (r->state == FL_RANK_LOST && (!first || r->left_at < first->left_at))
            first = r;
    }
    return first;
}

/* After a failure the job waits this long for trainers that never came: they
 * were perhaps started with the others, on a slower host. */
static const int64_t late = 20 * FL_SEC;

static bool may_still_come(const fl_coord *c, int64_t now)
{
    int64_t last = 0;
    for (int i = 0; i < c->job->trainers; i++)
        if (c->rank[i].state == FL_RANK_LOST && c->rank[i].left_at > last)
            last = c->rank[i].left_at;
    return !fl_coord_all_came(c) && now < last + late;
}

static void end_if_due(fl_coord *c, int64_t now)
{
    if (c->ended)
        return;
    if (c->past.n >= c->job->max_sessions) {
        fl_coord_end(c, 1, "trainers were started again too often", now);
        return;
    }
    for (int i = 0; i < c->job->trainers; i++)
        if (may_go_on(c, &c->rank[i], now))
            return; /* held, or kept for its trainer */
    const fl_rank *r = first_failure(c);
    if (r ? may_still_come(c, now) : !fl_coord_all_came(c))
        return;
    char why[FL_REASON_MAX + 64];
    if (r)
        snprintf(why, sizeof why, "trainer %d: %s", r->leave.rank, r->reason);
    else
        snprintf(why, sizeof why, "every trainer is complete");
    end(c, r ? r->code : 0, why, c->round, now);
}

void fl_coord_settle(fl_coord *c, int64_t now)
{
    do
        fl_coord_serve(c, now);
    while (decide(c, now));
    end_if_due(c, now);
}

bool fl_coord_ended(const fl_coord *c, int *code, const char **why)
{
    if (c->ended) {
        *code = c->code;
        *why = c->reason;
    }
    return c->ended;
}

bool fl_coord_told(const fl_coord *c)
{
    for (int i = 0; i < c->job->servers; i++)
        if (!c->server[i].over)
            return false;
    return c->ended;
}

bool fl_coord_over(const fl_coord *c, int64_t now)
{
    if (!c->ended || now < c->ended_at + c->job->linger)
        return false;
    return now >= c->ended_at + c->job->reach || fl_coord_told(c);
}

/* --- messages --- */

static void renew(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    fl_rank *r = fl_coord_find(c, m->session);
    if (!r) {
        fl_coord_fence(c, from, m, now);
        return;
    }
    r->taken = true;
    r->call_broke = false;
    r->lease = now + c->job->lease;
    r->open = from.call;
    if (m->echo > r->echo && m->echo <= c->echo)
        r->echo = m->echo;
    fl_outbox_send(c->out, from, fl_coord_answer(c, FL_MSG_ACK, m));
    fl_coord_settle(c, now);
}

static void barrier(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    fl_rank *r = fl_coord_find(c, m->session);
    if (!r) {
        fl_coord_fence(c, from, m, now);
        return;
    }
    if (m->round > c->round || m->round < 0 || c->job->async) {
        fl_msg answer = fl_coord_answer(c, FL_MSG_ERROR, m);
        answer.code = FL_EPROTO;
        fl_outbox_say(c->out, from, answer,
                      "barrier: of round %lld, round %lld is open%s",
                      (long long)m->round, (long long)c->round,
                      c->job->async ? " (the job is asynchronous)" : "");
        return;
    }
    r->taken = true; /* it knows its grant */
    if (m->round == c->round && !r->barrier) {
        r->barrier = true;
        r->barrier_at = now;
    }
    fl_outbox_send(c->out, from, fl_coord_answer(c, FL_MSG_ACK, m));
    fl_coord_settle(c, now);
}

/* Which server has lost its state, as a trainer process knows that has seen
 * another one (the coordinator's is that of server 0), or has pulled a version
 * that was never decided here; -1: none. */
static int lost_server(const fl_coord *c, const fl_msg *m)
{
    const bool tells = m->kind == FL_MSG_JOIN || m->kind == FL_MSG_RENEW ||
                       m->kind == FL_MSG_FAILED;
    if (!tells)
        return -1;
    for (int i = 0; i < m->n_seen && i < c->job->servers; i++)
        if (fl_job_lost(c->job, m->seen[i],
                        i ? c->server[i].state.id : c->out->state.id))
            return i;
    const bool ahead = !c->job->async && m->round > c->round &&
                       c->job->plant != FL_PLANT_QUIET;
    return ahead ? 0 : -1;
}

/* Nobody else may know it: the job ends, it does not begin anew quietly. */
static void end_lost(fl_coord *c, int server, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_coord_find(c, m->session);
    char name[96], why[FL_REASON_MAX], version[48] = "";
    if (!c->job->async)
        snprintf(version, sizeof version, " version %lld of",
                 (long long)m->round);
    snprintf(why, sizeof why,
             "%s was started again and has lost its parameters: %s has "
             "used%s the old ones",
             fl_job_server(c->job, server, name, sizeof name),
             r                                   ? r->who
             : m->kind == FL_MSG_JOIN && m->text ? m->text
                                                 : "a trainer",
             version);
    fl_coord_end(c, 1, why, now);
}

static void from_trainer(fl_coord *c, fl_peer from, const fl_msg *m,
                         int64_t now)
{
    const int lost = lost_server(c, m);
    if (lost >= 0) {
        end_lost(c, lost, m, now);
        fl_coord_say_end(c, from, m->tag);
        return;
    }
    switch (m->kind) {
    case FL_MSG_JOIN:
        fl_coord_join(c, from, m, now);
        break;
    case FL_MSG_RENEW:
        renew(c, from, m, now);
        break;
    case FL_MSG_BARRIER:
        barrier(c, from, m, now);
        break;
    case FL_MSG_COMPLETE:
        fl_coord_complete(c, from, m, now);
        break;
    case FL_MSG_FAILED:
        fl_coord_failed(c, from, m, now);
        break;
    default: {
        fl_msg answer = fl_coord_answer(c, FL_MSG_ERROR, m);
        answer.code = FL_EPROTO;
        fl_outbox_say(c->out, from, answer, "coordinator: no request %s",
                      fl_msg_name(m->kind));
    }
    }
}

int fl_coord_admit(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_coord_find(c, m->session);
    if (!fl_id_same(m->job, c->job->id))
        fl_outbox_wrong_job(c->out, from, m, c->job);
    else if (c->ended)
        fl_coord_say_end(c, from, m->tag);
    else if (!r)
        fl_coord_fence(c, from, m, now);
    else
        return (int)(r - c->rank);
    return -1;
}

void fl_coord_recv(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const bool call = from.kind == FL_PEER_CALL;
    if (!fl_id_same(m->job, c->job->id)) {
        if (call)
            fl_outbox_wrong_job(c->out, from, m, c->job);
    } else if (call && c->ended) {
        fl_coord_say_end(c, from, m->tag);
    } else if (call) {
        from_trainer(c, from, m, now);
    } else if (from.kind == FL_PEER_SERVER && m->kind == FL_MSG_STATE &&
               from.index >= 0 && from.index < c->job->servers) {
        fl_coord_state(c, from.index, m, now);
    }
}

void fl_coord_hangup(fl_coord *c, uint64_t call, int64_t now)
{
    for (int64_t i = 0; i < c->waiting.n; i++)
        if (c->waiting.at[i].call == call)
            fl_remove(&c->waiting, i--);
    for (int i = 0; i < c->job->trainers; i++) {
        fl_rank *r = &c->rank[i];
        if (r->state != FL_RANK_HELD || r->open != call)
            continue;
        r->open = 0;
        r->call_broke = true;
        if (r->lease > now + c->job->broken)
            r->lease = now + c->job->broken;
    }
}

/* The network may say so of a server that has not come yet, or that it could
 * not reach a moment ago: END is repeated until it had time to be heard. */
void fl_coord_refused(fl_coord *c, int server, bool no_listener, int64_t now)
{
    const int64_t time =
        c->job->linger > REFUSED_AFTER ? c->job->linger : REFUSED_AFTER;
    fl_follower *s = &c->server[server];
    char name[96], text[FL_GONE_TEXT], why[FL_REASON_MAX];
    if (!s->heard)
        return;
    if (c->ended) {
        s->over = s->over || now >= c->ended_at + time;
        return;
    }
    if (!no_listener || !fl_job_gone(c->job, &s->refused, now))
        return;
    snprintf(why, sizeof why, "%s %s",
             fl_job_server(c->job, server, name, sizeof name),
             fl_job_gone_text(c->job, text));
    fl_coord_end(c, 1, why, now);
}

/* --- time --- */

/* This process itself was stopped: nobody else is to blame for the gap. */
static void forgive(fl_coord *c, int64_t gap)
{
    for (int i = 0; i < c->job->trainers; i++)
        c->rank[i].lease += gap;
    for (int i = 0; i < c->job->servers; i++)
        c->server[i].heard += c->server[i].heard ? gap : 0;
}

static void run_out(fl_coord *c, int64_t now)
{
    for (int i = 0; i < c->job->trainers; i++) {
        fl_rank *r = &c->rank[i];
        if (r->state != FL_RANK_HELD || now < r->lease)
            continue;
        if (r->call_broke)
            fl_coord_lose(c, r, FL_LEFT_CALL, 1, "its connection broke", now);
        else
            fl_coord_lose(c, r, FL_LEFT_LEASE, 1, "its lease ran out", now);
    }
}

static void check_limits(fl_coord *c, int64_t now)
{
    if (!fl_coord_all_came(c) && now >= c->born + c->job->start) {
        int came = 0;
        char why[96];
        for (int i = 0; i < c->job->trainers; i++)
            came += c->rank[i].taken;
        snprintf(why, sizeof why, "%d of %d trainers came within %.0f s", came,
                 c->job->trainers, (double)c->job->start / (double)FL_SEC);
        end(c, 1, why, c->round, now);
    }
    for (int i = 0; i < c->job->servers && !c->ended; i++) {
        const fl_follower *s = &c->server[i];
        const int64_t limit =
            s->heard ? s->heard + c->job->reach : c->born + c->job->start;
        char name[96], why[128];
        snprintf(why, sizeof why, "%s does not answer",
                 fl_job_server(c->job, i, name, sizeof name));
        if (now >= limit)
            fl_coord_end(c, 1, why, now);
    }
}

static void repeat(fl_coord *c, int64_t now)
{
    for (int i = 0; i < c->job->servers; i++) {
        const fl_follower *s = &c->server[i];
        const bool behind =
            c->ended || s->view < c->view || s->version < c->round;
        const int64_t pause = behind ? c->job->retry : c->job->lease / 2;
        if (now >= s->sent + pause)
            fl_coord_tell(c, i, now);
    }
}

void fl_coord_tick(fl_coord *c, int64_t now)
{
    if (now - c->ticked > c->job->lease / 3)
        forgive(c, now - c->ticked);
    c->ticked = now;
    if (!c->ended) {
        run_out(c, now);
        check_limits(c, now);
        fl_coord_settle(c, now);
    }
    repeat(c, now);
    fl_coord_report(c, now);
}
