/* SPDX-License-Identifier: Apache-2.0 */
/* sim_check.c - checks the invariants A to G after every event.
 *
 * The checks do not rely on the machines: the values that a round must produce
 * are computed again from its decision, P(k), alone. */
#include "protocol/sim_world.h"

#include <stdarg.h>
#include <stdio.h>

/* --- reports --- */

static void show_party(const sim *s, int party, fl_str *to)
{
    if (party < s->job.servers)
        fl_str_printf(to, "server%d", party);
    else if (party == sim_coord(s))
        fl_str_add(to, "coordinator");
    else
        fl_str_printf(to, "proc%d", party - sim_coord(s) - 1);
}

static void show_line(const sim *s, const sim_line *l, fl_str *to)
{
    static const char *const kinds[] = {
        [SIM_MSG] = "message",
        [SIM_TICK] = "tick",
        [SIM_WORK] = "batch",
        [SIM_APPLIED] = "applied",
        [SIM_HANGUP] = "hangup",
        [SIM_BROKEN] = "broken call",
        [SIM_START] = "start",
        [SIM_FAULT] = "fault",
        [SIM_REPLACE] = "replace servers",
        [SIM_CRASH] = "crash servers",
    };
    fl_str_printf(to, "%10.4f ", (double)l->at / (double)FL_SEC);
    if (l->kind == SIM_MSG) {
        show_party(s, l->from, to);
        fl_str_add(to, " -> ");
    }
    show_party(s, l->party, to);
    if (l->kind == SIM_MSG)
        fl_str_printf(to, " %s round %lld tag %llu\n", fl_msg_name(l->msg),
                      (long long)l->round, (unsigned long long)l->tag);
    else
        fl_str_printf(to, " %s\n", kinds[l->kind]);
}

static void show_waits(const sim *s, fl_str *to)
{
    fl_coord_waits(s->coord, s->now, to);
    for (int i = 0; i < s->job.servers; i++)
        fl_server_waits(s->server[i].server, s->now, to);
    for (int i = 0; i < s->procs; i++)
        if (s->proc[i].client)
            fl_client_waits(s->proc[i].client, s->now, to);
}

void sim_fail(sim *s, char letter, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    if (s->broken)
        return;
    s->broken = true;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    fl_str_printf(s->report, "seed %llu breaks %c at %.4f s: %s\n",
                  (unsigned long long)s->opts.seed, letter,
                  (double)s->now / (double)FL_SEC, why);
    const int64_t n = s->result->events;
    for (int64_t i = n > SIM_HISTORY ? n - SIM_HISTORY : 0; i < n; i++)
        show_line(s, &s->history[i % SIM_HISTORY], s->report);
    show_waits(s, s->report);
}

/* --- messages of the coordinator: B, E --- */

static bool has(const fl_member *m, int64_t n, fl_id session)
{
    for (int64_t i = 0; i < n; i++)
        if (fl_id_same(m[i].session, session))
            return true;
    return false;
}

static void check_same_view(sim *s, const fl_msg *m)
{
    bool same = s->view.n == m->n_member;
    for (int i = 0; i < m->n_member && same; i++)
        same = fl_id_same(s->view.at[i].session, m->member[i].session);
    if (!same)
        sim_fail(s, 'B', "view %lld has changed", (long long)m->view);
}

static void note_loss(sim *s, const fl_msg *m, const fl_leave *left)
{
    if (left->view != m->view || left->why == FL_LEFT_DONE)
        return;
    s->result->lost++;
    if (!s->lost_at[left->rank])
        s->lost_at[left->rank] = s->now;
}

void sim_check_complete(sim *s, const sim_proc *p)
{
    if (p->rank >= 0)
        s->lost_at[p->rank] = 0;
}

static void note_view(sim *s, const fl_msg *m)
{
    if (m->view < s->view_number)
        sim_fail(s, 'B', "view %lld after %lld", (long long)m->view,
                 (long long)s->view_number);
    if (m->view <= s->view_number) {
        check_same_view(s, m);
        return;
    }
    s->view_number = m->view;
    for (int64_t i = 0; i < s->view.n; i++)
        if (!has(m->member, m->n_member, s->view.at[i].session))
            fl_push(&s->gone, s->view.at[i].session);
    for (int i = 0; i < m->n_left; i++)
        note_loss(s, m, &m->left[i]);
    for (int i = 0; i < m->n_member; i++) {
        if (!has(s->view.at, s->view.n, m->member[i].session) &&
            m->view > s->job.trainers)
            s->result->rejoined++;
        for (int64_t k = 0; k < s->gone.n; k++)
            if (fl_id_same(s->gone.at[k], m->member[i].session))
                sim_fail(s, 'E', "a session is granted twice");
    }
    s->view.n = 0;
    for (int i = 0; i < m->n_member; i++) {
        fl_push(&s->view, m->member[i]);
        s->came[m->member[i].rank] = true;
    }
}

/* Compute version k + 1 of every server from version k and P(k). */
static void expect_version(sim *s, sim_round *r, int64_t k)
{
    r->value = fl_mem_alloc((size_t)s->job.servers * sizeof(float));
    for (int i = 0; i < s->job.servers; i++) {
        float sum = 0;
        for (int m = 0; m < r->n; m++)
            for (int p = 0; p < sim_parts(k, i); p++)
                sum += sim_gradient(r->member[m].rank, k, i, p);
        r->value[i] =
            (k ? s->round.at[k - 1].value[i] : 0) - 0.1f * (sum / (float)r->n);
    }
}

/* Before the first round closes, each rank must have been held. */
static void check_start(sim *s)
{
    for (int i = 0; i < s->job.trainers; i++)
        if (!s->came[i])
            sim_fail(s, 'E', "round 0 closes, trainer %d never came", i);
}

/* A round does not close without a rank that may come back in time. */
static void check_hold(sim *s, const fl_msg *m)
{
    for (int i = 0, at = 0; i < s->job.trainers; i++) {
        const bool in = at < m->n_member && m->member[at].rank == i;
        at += in;
        if (!in && s->lost_at[i] && s->now < s->lost_at[i] + s->job.hold)
            sim_fail(s, 'E',
                     "round %lld closes %.1f s after trainer %d was "
                     "lost",
                     (long long)m->round,
                     (double)(s->now - s->lost_at[i]) / (double)FL_SEC, i);
        s->lost_at[i] = 0;
    }
}

static void note_decision(sim *s, const fl_msg *m)
{
    sim_round r = {.n = m->n_member};
    check_hold(s, m);
    if (m->round == 0)
        check_start(s);
    if (m->round != s->round.n)
        sim_fail(s, 'D', "round %lld is decided after %lld rounds",
                 (long long)m->round, (long long)s->round.n);
    for (int i = 0; i < m->n_member; i++) {
        if (!has(s->view.at, s->view.n, m->member[i].session))
            sim_fail(s, 'E', "P(%lld) has rank %d, whose session was lost",
                     (long long)m->round, m->member[i].rank);
        if (i && m->member[i].rank <= m->member[i - 1].rank)
            sim_fail(s, 'B', "P(%lld) has rank %d twice or out of order",
                     (long long)m->round, m->member[i].rank);
    }
    for (int64_t i = 0; i < s->view.n; i++)
        if (!has(m->member, m->n_member, s->view.at[i].session))
            sim_fail(s, 'B', "P(%lld) leaves out rank %d, which is a member",
                     (long long)m->round, s->view.at[i].rank);
    if (s->broken)
        return;
    r.member = fl_mem_alloc((size_t)r.n * sizeof *r.member);
    memcpy(r.member, m->member, (size_t)r.n * sizeof *r.member);
    expect_version(s, &r, m->round);
    fl_push(&s->round, r);
}

static void note_close(sim *s, const fl_msg *m)
{
    if (m->round >= s->round.n) {
        note_decision(s, m);
        return;
    }
    const sim_round *r = &s->round.at[m->round];
    bool same = r->n == m->n_member;
    for (int i = 0; i < r->n && same; i++)
        same = fl_id_same(r->member[i].session, m->member[i].session);
    if (!same)
        sim_fail(s, 'B', "P(%lld) was decided twice", (long long)m->round);
}

/* --- examples that have a position: X --- */

static bool is_used(const sim *s, const sim_share *share)
{
    for (int64_t i = 0; i < s->used.n; i++) {
        const sim_share *u = &s->used.at[i];
        if (u->rank == share->rank && u->server == share->server &&
            u->part == share->part && u->batch == share->batch)
            return true;
    }
    return false;
}

static void use_share(sim *s, const sim_share *share)
{
    if (is_used(s, share) && !s->result->replaced)
        sim_fail(s, 'X',
                 "server %d applies part %d of batch %lld of rank %d "
                 "twice",
                 share->server, share->part, (long long)share->batch,
                 share->rank);
    fl_push(&s->used, *share);
}

/* Round k uses the batch that comes next in the rank's data. */
static void check_batch(sim *s, const sim_grad *g)
{
    int64_t next = 1;
    for (int64_t k = 0; k < g->round && k < s->round.n; k++)
        for (int i = 0; i < s->round.at[k].n; i++)
            next += s->round.at[k].member[i].rank == g->rank;
    if (g->batch != next)
        sim_fail(s, 'X', "round %lld has batch %lld of rank %d, not %lld",
                 (long long)g->round, (long long)g->batch, g->rank,
                 (long long)next);
}

void sim_check_used(sim *s, const sim_proc *p)
{
    if (!s->job.async || !s->positioned || s->result->replaced)
        return;
    const int rank = fl_client_rank(p->client);
    for (int64_t k = 1; k <= fl_client_steps(p->client); k++)
        for (int j = 0; j < s->job.servers; j++)
            for (int i = 0; i < sim_parts(k, j); i++)
                if (!is_used(s, &(sim_share){rank, j, i, k}))
                    sim_fail(s, 'X',
                             "server %d misses part %d of batch %lld "
                             "of rank %d",
                             j, i, (long long)k, rank);
}

/* --- every message that is sent: A, G --- */

static void note_answer(sim *s, int party, const fl_envelope *o)
{
    if (o->to.call < 1 || o->to.call > (uint64_t)s->call.n) {
        sim_fail(s, 'G', "an answer to no call");
        return;
    }
    sim_call *c = &s->call.at[o->to.call - 1];
    if (c->open)
        return;
    if (c->answered)
        sim_fail(s, 'G', "%s is answered twice", fl_msg_name(c->kind));
    c->answered = true;
    if (o->msg.kind == FL_MSG_PARKED && c->kind == FL_MSG_JOIN)
        s->result->parked_joins++;
    if (o->msg.kind == FL_MSG_ACK && c->push >= 0 && s->job.async &&
        s->push.at[c->push].applied != 1 &&
        !is_used(s, &s->push.at[c->push].share))
        sim_fail(s, 'A', "a push is acknowledged, applied %d times",
                 s->push.at[c->push].applied);
}

/* Whether the field is not 0. */
static bool is_set(const fl_msg *m, const fl_msg_field *f)
{
    static const char zero[sizeof(int64_t)];
    static const size_t size[] = {[FL_FIELD_INT] = sizeof(int),
                                  [FL_FIELD_WORD] = sizeof(int64_t),
                                  [FL_FIELD_BOOL] = sizeof(bool),
                                  [FL_FIELD_TEXT] = sizeof(char *),
                                  [FL_FIELD_LINES] = sizeof(char *)};
    const bool list = f->type == FL_FIELD_LIST;
    const char *at = (const char *)m + (list ? f->count_at : f->at);
    return memcmp(at, zero, list ? sizeof(int) : size[f->type]);
}

/* A message may only use the fields that its row in src/protocol/list.h names.
 */
static void check_fields(sim *s, const fl_msg *m)
{
    for (const fl_msg_field *f = fl_msg_fields; f->name; f++)
        if (is_set(m, f) && !fl_msg_carries(m->kind, f->name))
            sim_fail(s, 'G', "%s carries %s", fl_msg_name(m->kind), f->name);
    if (m->blob.size && !fl_msg_carries(m->kind, "blob"))
        sim_fail(s, 'G', "%s carries a blob", fl_msg_name(m->kind));
}

void sim_check_sent(sim *s, int party, const fl_envelope *o)
{
    check_fields(s, &o->msg);
    if (o->to.kind == FL_PEER_CALL)
        note_answer(s, party, o);
    else if (party == sim_coord(s) && o->msg.kind == FL_MSG_VIEW)
        note_view(s, &o->msg);
    else if (party == sim_coord(s) && o->msg.kind == FL_MSG_CLOSE)
        note_close(s, &o->msg);
    else if (o->msg.kind == FL_MSG_END && o->msg.round < 0)
        s->disorderly = true;
}

/* --- what a store is told to apply: A, B, C --- */

static void check_part(sim *s, int server, const sim_apply *a,
                       const fl_staged *by, const sim_grad *g)
{
    if (++s->push.at[g->push].applied > 1)
        sim_fail(s, 'A', "server %d applies a push of rank %d twice", server,
                 g->rank);
    if (g->batch && s->job.async)
        use_share(s, &s->push.at[g->push].share);
    else if (g->batch && !s->job.async && !s->result->replaced)
        check_batch(s, g);
    if (!fl_id_same(g->session, by->session) || g->server != server ||
        (!s->job.async && g->round != a->round))
        sim_fail(s, 'A', "server %d applies a push of round %lld for %lld",
                 server, (long long)g->round, (long long)a->round);
}

static void check_round(sim *s, int server, const sim_apply *a)
{
    const float got = s->server[server].disk.value;
    if (a->round >= s->round.n) {
        sim_fail(s, 'B', "server %d closes round %lld, which is undecided",
                 server, (long long)a->round);
        return;
    }
    const sim_round *r = &s->round.at[a->round];
    if (a->n != r->n)
        sim_fail(s, 'B', "server %d closes round %lld with %d, P has %d",
                 server, (long long)a->round, a->n, r->n);
    for (int i = 0; i < a->n; i++) {
        int parts = 0;
        for (int k = 0; k < a->by[i].n; k++)
            parts += a->by[i].part[k].size > 0;
        if (!has(r->member, r->n, a->by[i].session))
            sim_fail(s, 'B', "server %d closes round %lld with a stranger",
                     server, (long long)a->round);
        if (parts != sim_parts(a->round, server))
            sim_fail(s, 'A', "server %d uses %d pushes of rank %d", server,
                     parts, a->by[i].rank);
        if (!has(s->view.at, s->view.n, a->by[i].session))
            s->result->late_loss++;
    }
    const float want = r->value[server];
    if (memcmp(&got, &want, sizeof got))
        sim_fail(s, 'C', "server %d version %lld is %a, must be %a", server,
                 (long long)a->round + 1, (double)got, (double)want);
}

void sim_check_apply(sim *s, int server, const sim_apply *a)
{
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < a->by[i].n; k++)
            if (a->by[i].part[k].size)
                check_part(s, server, a, &a->by[i], a->by[i].part[k].at);
    if (!s->job.async && sim_is_led(s, &s->server[server]))
        check_round(s, server, a);
}

/* --- what a trainer sees: D, G --- */

void sim_check_read(sim *s, int server, const fl_msg *reply)
{
    const float *value = reply->blob.at;
    if (!sim_is_led(s, &s->server[server]))
        return;
    if (s->job.async || !reply->round)
        return;
    const float *want = &s->round.at[reply->round - 1].value[server];
    if (memcmp(value, want, sizeof *want))
        sim_fail(s, 'D', "server %d answers a pull with another version",
                 server);
}

void sim_check_values(sim *s, sim_proc *p, int server, const fl_msg *m)
{
    if (!s->job.async && m->round != fl_client_round(p->client))
        sim_fail(s, 'D', "proc %d pulls version %lld and gets %lld", p->index,
                 (long long)fl_client_round(p->client), (long long)m->round);
    if (m->round < p->seen[server] && !s->job.async)
        sim_fail(s, 'D', "proc %d sees version %lld after %lld", p->index,
                 (long long)m->round, (long long)p->seen[server]);
    p->seen[server] = m->round;
}

void sim_check_fenced(sim *s, const sim_proc *p)
{
    for (int i = 0; i < s->job.servers; i++)
        if (!sim_is_led(s, &s->server[i]))
            return; /* it may not know yet that the coordinator was replaced */
    if (fl_coord_has(s->coord, fl_client_session(p->client)))
        sim_fail(s, 'G', "proc %d is fenced and is a member", p->index);
}

/* --- a trainer does not mix two states of a server: Q --- */

void sim_check_heard(sim *s, sim_proc *p, int server, int losses)
{
    int generation = 0;
    for (int i = 0; i < s->job.servers; i++)
        if (p->used[i] / SIM_STATES > generation)
            generation = p->used[i] / SIM_STATES;
    if (losses / SIM_STATES < generation)
        return; /* of the time before the job went back */
    if (p->used[server] && p->used[server] != losses + 1)
        p->misled = true;
    p->used[server] = losses + 1;
}

void sim_check_misled(sim *s, const sim_proc *p)
{
    if (p->misled)
        sim_fail(s, 'Q',
                 "proc %d goes on quietly with a server that has lost "
                 "its state",
                 p->index);
}

/* --- after every event: D, limits, every wait has a row --- */

static int lines(const fl_str *text)
{
    int n = 0;
    for (size_t i = 0; i < text->n; i++)
        n += text->at[i] == '\n';
    return n;
}

static void check_server(sim *s, sim_server *v)
{
    const int64_t version = fl_server_version(v->server);
    if (version != v->version && version != v->version + 1)
        sim_fail(s, 'D', "server %d goes from version %lld to %lld", v->index,
                 (long long)v->version, (long long)version);
    v->version = version;
    if (fl_server_view(v->server) > fl_coord_view(s->coord) && sim_is_led(s, v))
        sim_fail(s, 'B', "server %d has a view of its own", v->index);
    if (fl_server_view(v->server) >> 32 > v->generation)
        sim_fail(s, 'D',
                 "server %d has a view of a generation that it has not "
                 "restored",
                 v->index);
    if (fl_server_parked(v->server) > s->job.max_parked ||
        fl_server_seats(v->server) > 2 * s->job.trainers)
        sim_fail(s, 'G', "server %d has %d parked, %d seats", v->index,
                 fl_server_parked(v->server), fl_server_seats(v->server));
    if (fl_server_ended(v->server) && fl_server_parked(v->server))
        sim_fail(s, 'G', "server %d ends with requests parked", v->index);
}

/* This check is slow, so it runs at every hundredth event only. */
static void check_waits(sim *s)
{
    for (int i = 0; i < s->job.servers; i++) {
        fl_str rows = {0};
        fl_server_waits(s->server[i].server, s->now, &rows);
        if (lines(&rows) < fl_server_parked(s->server[i].server))
            sim_fail(s, 'F', "server %d has a wait without a name", i);
        fl_str_fini(&rows);
    }
    fl_str rows = {0};
    fl_coord_waits(s->coord, s->now, &rows);
    if (lines(&rows) < fl_coord_parked(s->coord))
        sim_fail(s, 'F', "the coordinator has a wait without a name");
    fl_str_fini(&rows);
}

static void check_ids(sim *s)
{
    for (int i = 0; i < s->procs; i++) {
        sim_proc *p = &s->proc[i];
        const int rank = p->client ? fl_client_rank(p->client) : -1;
        if (rank < 0)
            continue;
        p->rank = rank;
        if (p->id != FL_ANY_ID && rank != p->id)
            sim_fail(s, 'H', "the trainer with id %d becomes %d", p->id, rank);
    }
}

void sim_check_state(sim *s)
{
    check_ids(s);
    for (int i = 0; i < s->job.servers; i++)
        check_server(s, &s->server[i]);
    if (s->result->events % 100 == 0)
        check_waits(s);
}

/* --- at the end: F, G --- */

/* The longest time that a process is away or asleep, and some more. */
#define AWAY (60 * FL_SEC)

/* The coordinator waits for nobody who has left. */
void sim_check_leave(sim *s)
{
    const int64_t since =
        s->ended_at > s->storm_ends ? s->ended_at : s->storm_ends;
    if (s->now > since + AWAY)
        sim_fail(s, 'F', "the coordinator stays for %.0f s after the end",
                 (double)(s->now - s->ended_at) / (double)FL_SEC);
}

static void check_calls(sim *s)
{
    for (int64_t i = 0; i < s->call.n; i++) {
        const sim_call *c = &s->call.at[i];
        if (c->arrived && !c->open && !c->answered && !c->gone)
            sim_fail(s, 'G', "%s of proc %d (tag %llu) was never answered",
                     fl_msg_name(c->kind), c->proc, (unsigned long long)c->tag);
    }
}

/* Whether the job must complete: no process is gone for good, and the time to
 * rejoin was long enough. Without explicit ids, or without rounds, a trainer
 * that has just completed and is started again may take the rank of another
 * one. This is a known limit of the protocol. */
static bool must_complete(const sim *s)
{
    for (int i = 0; i < s->procs; i++)
        if (s->proc[i].given_up)
            return false;
    if (!s->storm)
        return s->job.rejoin > 0 || s->opts.weather == FL_SIM_CALM;
    return s->job.rejoin > 100 * FL_SEC && !s->job.async && !s->opts.any_id;
}

static void check_outcome(sim *s, int code, const char *why)
{
    const int done = fl_coord_done(s->coord);
    if (strstr(why, "not all here"))
        sim_fail(s, 'A', "%s", why);
    if (s->result->replaced)
        return; /* it may end in any way that invariant Q allows */
    if ((code == 0) != (done == s->job.trainers))
        sim_fail(s, 'F', "code %d (%s) with %d of %d done", code, why, done,
                 s->job.trainers);
    if (code && must_complete(s))
        sim_fail(s, 'F', "code %d (%s), though all could complete", code, why);
    if (s->disorderly)
        sim_fail(s, 'F', "the job ends early: %s", why);
    for (int i = 0; i < s->job.servers; i++) {
        /* a job that has failed does not wait for a server that is down; when
         * that one is back, nobody may be left who knows the first cause */
        const bool short_of = code && (s->server[i].life || s->server[0].life);
        if (!s->job.async && !short_of && s->server[i].version != s->round.n)
            sim_fail(s, 'G', "server %d exits with version %lld of %lld", i,
                     (long long)s->server[i].version, (long long)s->round.n);
        if (s->server[i].code != code && !(short_of && s->server[i].code))
            sim_fail(s, 'G', "server %d exits with code %d, not %d", i,
                     s->server[i].code, code);
    }
}

void sim_check_end(sim *s)
{
    int code = 0;
    const char *why = "";
    if (!fl_coord_ended(s->coord, &code, &why) || !s->coord_left) {
        sim_fail(s, 'F', "the job does not end");
        return;
    }
    for (int i = 0; i < s->job.servers; i++)
        if (!s->server[i].left)
            sim_fail(s, 'F', "server %d does not end", i);
    for (int i = 0; i < s->procs; i++)
        if (!s->proc[i].finished)
            sim_fail(s, 'F', "proc %d waits for ever", i);
    check_outcome(s, code, why);
    check_calls(s);
}
