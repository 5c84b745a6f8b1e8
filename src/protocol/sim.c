/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - the events and the network of the simulator. */
#include "protocol/sim_world.h"

#include <stdio.h>

int sim_coord(const sim *s)
{
    return s->job.servers;
}

int sim_trainer(const sim *s, int proc)
{
    return s->job.servers + 1 + proc;
}

bool sim_is_led(const sim *s, const sim_server *v)
{
    return v->epoch == s->server[0].losses &&
           v->generation == s->server[0].generation;
}

int sim_origin(const sim *s, int party)
{
    const sim_server *v = &s->server[sim_host(s, party)];
    return party > sim_coord(s) ? 0
                                : (int)v->generation * SIM_STATES + v->losses;
}

uint64_t sim_dice(sim *s, uint64_t n)
{
    return s->dice.draw(&s->dice) % n;
}

/* --- events: a heap by time, then by order of creation --- */

static bool is_before(const sim_event *a, const sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_at(sim *s, int64_t after, sim_event e)
{
    e.at = s->now + after;
    e.order = ++s->order;
    fl_push(&s->heap, e);
    int64_t i = s->heap.n - 1;
    for (; i > 0 && is_before(&e, &s->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap.at[i] = s->heap.at[(i - 1) / 2];
    s->heap.at[i] = e;
}

static sim_event next_event(sim *s)
{
    const sim_event top = s->heap.at[0], last = s->heap.at[--s->heap.n];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < s->heap.n; i = child) {
        if (child + 1 < s->heap.n &&
            is_before(&s->heap.at[child + 1], &s->heap.at[child]))
            child++;
        if (!is_before(&s->heap.at[child], &last))
            break;
        s->heap.at[i] = s->heap.at[child];
    }
    s->heap.at[i] = last;
    return top;
}

/* --- the network --- */

int sim_host(const sim *s, int party)
{
    return party == sim_coord(s) ? 0 : party;
}

int sim_life(const sim *s, int party)
{
    return party > sim_coord(s) ? s->proc[party - sim_coord(s) - 1].life
                                : s->server[sim_host(s, party)].life;
}

int sim_losses(const sim *s, int party)
{
    return party > sim_coord(s) ? 0 : s->server[sim_host(s, party)].losses;
}

static bool is_cut(const sim *s, int a, int b)
{
    return s->cut[sim_host(s, a) * s->parties + sim_host(s, b)] > s->now;
}

static int64_t draw_delay(sim *s)
{
    const int64_t d = 1 + (int64_t)sim_dice(s, (uint64_t)s->delay);
    return sim_dice(s, 4) ? d / 16 : d; /* three of four messages are fast */
}

/* One copy of a message from a to b, unless the network loses it. */
static bool carry_message(sim *s, int a, int b, fl_peer from, const fl_msg *m,
                          int life)
{
    const bool local = sim_host(s, a) == sim_host(s, b);
    if (!local && (is_cut(s, a, b) || (int)sim_dice(s, 1000) < s->drop))
        return false;
    sim_at(s, local ? 0 : draw_delay(s),
           (sim_event){.kind = SIM_MSG,
                       .party = b,
                       .from = from,
                       .life = life,
                       .any_life = b <= sim_coord(s) && sim_dice(s, 2),
                       .losses = sim_losses(s, b),
                       .sender_losses = sim_origin(s, a),
                       .msg = fl_msg_dup(m)});
    return true;
}

static bool has_left(const sim *s, int party)
{
    if (party < s->job.servers)
        return s->server[party].left;
    return party == sim_coord(s) && s->coord_left;
}

static bool refuses(const sim *s, int party)
{
    return has_left(s, party) ||
           s->now < s->server[sim_host(s, party)].down_until;
}

static uint64_t new_call(sim *s, const sim_proc *p, int party, const fl_msg *m)
{
    sim_call c = {.proc = p->index,
                  .life = p->life,
                  .party = party,
                  .tag = m->tag,
                  .kind = m->kind,
                  .round = m->round,
                  .push = -1,
                  .open = m->kind == FL_MSG_RENEW};
    if (m->kind == FL_MSG_PUSH && m->blob.size == sizeof(sim_grad))
        c.push = ((const sim_grad *)m->blob.at)->push;
    fl_push(&s->call, c);
    return (uint64_t)s->call.n; /* 0 is no call */
}

static void break_call(sim *s, sim_proc *p, uint64_t tag)
{
    sim_at(s, draw_delay(s),
           (sim_event){.kind = SIM_BROKEN,
                       .party = sim_trainer(s, p->index),
                       .life = p->life,
                       .number = tag});
}

static uint64_t open_call(sim *s, sim_proc *p, int to, const fl_msg *m)
{
    if (!p->open || !fl_id_same(p->open_session, m->session)) {
        p->open = new_call(s, p, to, m);
        p->open_session = m->session;
    }
    return p->open;
}

static void from_trainer(sim *s, sim_proc *p, const fl_envelope *o)
{
    const int me = sim_trainer(s, p->index);
    const int to = o->to.kind == FL_PEER_COORD ? sim_coord(s) : o->to.index;
    if (refuses(s, to)) {
        sim_at(s, draw_delay(s),
               (sim_event){.kind = SIM_BROKEN,
                           .party = me,
                           .life = p->life,
                           .from = o->to,
                           .refused = true,
                           .number = o->msg.tag});
        return;
    }
    const int copies = 1 + ((int)sim_dice(s, 1000) < s->twice);
    for (int i = 0; i < copies; i++) {
        const bool open = o->msg.kind == FL_MSG_RENEW;
        const uint64_t call =
            open ? open_call(s, p, to, &o->msg) : new_call(s, p, to, &o->msg);
        const fl_peer from = {FL_PEER_CALL, 0, call};
        if (!carry_message(s, me, to, from, &o->msg, sim_life(s, to)) &&
            !open && sim_dice(s, 2))
            break_call(s, p, o->msg.tag);
    }
}

static void to_call(sim *s, int me, const fl_envelope *o)
{
    const sim_call c = s->call.at[o->to.call - 1];
    const fl_peer from = {me == sim_coord(s) ? FL_PEER_COORD : FL_PEER_SERVER,
                          me, 0};
    const int copies = 1 + ((int)sim_dice(s, 1000) < s->twice);
    for (int i = 0; i < copies; i++)
        carry_message(s, me, sim_trainer(s, c.proc), from, &o->msg, c.life);
}

static void between_servers(sim *s, int me, const fl_envelope *o)
{
    const int to = o->to.kind == FL_PEER_COORD ? sim_coord(s) : o->to.index;
    if (o->msg.kind == FL_MSG_CLOSE) {
        fl_msg_free(s->close[to]);
        s->close[to] = fl_msg_dup(&o->msg);
    }
    const fl_peer from = {me == sim_coord(s) ? FL_PEER_COORD : FL_PEER_SERVER,
                          me, 0};
    if (refuses(s, to)) {
        sim_at(s, draw_delay(s),
               (sim_event){.kind = SIM_BROKEN,
                           .party = me,
                           .life = sim_life(s, me),
                           .from = o->to,
                           .refused = true});
        return;
    }
    const int copies = 1 + ((int)sim_dice(s, 1000) < s->twice);
    for (int i = 0; i < copies; i++)
        carry_message(s, me, to, from, &o->msg, sim_life(s, to));
}

static fl_outbox *outbox_of(sim *s, int party)
{
    if (party < s->job.servers)
        return &s->server[party].out;
    if (party == sim_coord(s))
        return &s->coord_out;
    return &s->proc[party - sim_coord(s) - 1].out;
}

void sim_drain(sim *s, int party)
{
    fl_outbox *box = outbox_of(s, party);
    if (party <= sim_coord(s))
        sim_disk_save(s, party);
    if (party < s->job.servers)
        fl_server_flush(s->server[party].server);
    if (party <= sim_coord(s) && s->server[sim_host(s, party)].dying) {
        sim_crash_one(s, sim_host(s, party));
        return;
    }
    for (int64_t i = 0; i < box->out.n; i++) {
        const fl_envelope o = box->out.at[i];
        sim_check_sent(s, party, &o);
        if (party > sim_coord(s))
            from_trainer(s, &s->proc[party - sim_coord(s) - 1], &o);
        else if (o.to.kind == FL_PEER_CALL)
            to_call(s, party, &o);
        else
            between_servers(s, party, &o);
    }
    fl_outbox_clear(box);
    sim_snapshot_settle(s, party);
}

/* --- running --- */

static sim_proc *proc_of(sim *s, const sim_event *e)
{
    sim_proc *p = &s->proc[e->party - sim_coord(s) - 1];
    return p->client && p->life == e->life ? p : NULL;
}

static void deliver_message(sim *s, const sim_event *e)
{
    if (e->from.kind == FL_PEER_CALL)
        s->call.at[e->from.call - 1].arrived = true;
    if (e->party > sim_coord(s))
        sim_check_heard(s, proc_of(s, e),
                        e->from.kind == FL_PEER_COORD ? 0 : e->from.index,
                        e->sender_losses);
    if (e->party == sim_coord(s) && e->msg->kind == FL_MSG_COMPLETE)
        sim_check_complete(s, &s->proc[s->call.at[e->from.call - 1].proc]);
    if (e->party < s->job.servers)
        fl_server_recv(s->server[e->party].server, e->from, e->msg, s->now);
    else if (e->party == sim_coord(s))
        fl_coord_recv(s->coord, e->from, e->msg, s->now);
    else
        fl_client_recv(proc_of(s, e)->client, e->from, e->msg, s->now);
}

static void leave_if_over(sim *s, int party)
{
    int code = 0;
    const char *why;
    if (party == sim_coord(s)) {
        s->coord_left = s->coord_left || fl_coord_over(s->coord, s->now);
        if (s->coord_left && fl_coord_ended(s->coord, &code, &why)) {
            s->result->code = code;
            sim_check_leave(s);
        }
    } else if (party < s->job.servers) {
        sim_server *v = &s->server[party];
        if (fl_server_over(v->server, s->now, &code) && !v->left &&
            (party ||
             s->coord_left)) { /* server 0 stays as long as the coordinator */
            v->left = true;
            v->code = code;
        }
    }
}

static void tick_party(sim *s, const sim_event *e)
{
    const int party = e->party;
    if (party < s->job.servers)
        fl_server_tick(s->server[party].server, s->now);
    else if (party == sim_coord(s))
        fl_coord_tick(s->coord, s->now);
    else
        fl_client_tick(proc_of(s, e)->client, s->now);
    leave_if_over(s, party);
    sim_at(s, 250 * FL_MS,
           (sim_event){.kind = SIM_TICK, .party = party, .life = e->life});
}

static void hang_up(sim *s, const sim_event *e)
{
    s->call.at[e->number - 1].gone = true;
    if (e->party < s->job.servers)
        fl_server_hangup(s->server[e->party].server, e->number);
    else
        fl_coord_hangup(s->coord, e->number, s->now);
}

/* The caller of a request hears it, or who repeats messages to a server. */
static void break_off(sim *s, const sim_event *e)
{
    if (e->party == sim_coord(s)) {
        fl_coord_refused(s->coord, e->from.index, true, s->now);
    } else if (e->party < sim_coord(s)) {
        fl_server_refused(s->server[e->party].server, s->now);
    } else {
        if (e->refused)
            fl_client_refused(proc_of(s, e)->client, e->from, s->now);
        fl_client_broken(proc_of(s, e)->client, e->number, s->now);
    }
}

static void remember_event(sim *s, const sim_event *e)
{
    const fl_msg none = {0}, *m = e->msg ? e->msg : &none;
    int from = e->from.kind == FL_PEER_COORD ? sim_coord(s) : e->from.index;
    if (e->msg && e->from.kind == FL_PEER_CALL)
        from = sim_trainer(s, s->call.at[e->from.call - 1].proc);
    s->history[s->result->events++ % SIM_HISTORY] =
        (sim_line){s->now, e->kind, e->party, from, m->kind, m->round, m->tag};
    const uint64_t word[] = {(uint64_t)s->now,
                             (uint64_t)e->kind,
                             (uint64_t)e->party,
                             (uint64_t)m->kind,
                             m->tag,
                             (uint64_t)m->round};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        s->result->trace = (s->result->trace ^ word[i]) * 1099511628211u;
}

static bool is_weather(const sim_event *e)
{
    return e->kind == SIM_FAULT || e->kind == SIM_REPLACE ||
           e->kind == SIM_CRASH;
}

/* Whether the event is for a process that has ended since. */
static bool is_moot(sim *s, const sim_event *e)
{
    if (is_weather(e) || e->kind == SIM_START)
        return false;
    if (e->party > sim_coord(s))
        return !proc_of(s, e);
    const bool same = e->any_life ? e->losses == sim_losses(s, e->party)
                                  : e->life == sim_life(s, e->party);
    return has_left(s, e->party) || !same;
}

static void run_event(sim *s, const sim_event *e)
{
    switch (e->kind) {
    case SIM_MSG:
        deliver_message(s, e);
        break;
    case SIM_TICK:
        tick_party(s, e);
        break;
    case SIM_WORK:
        sim_proc_work(s, e->party - sim_coord(s) - 1);
        break;
    case SIM_APPLIED:
        sim_store_done(s, e->party);
        break;
    case SIM_HANGUP:
        hang_up(s, e);
        break;
    case SIM_BROKEN:
        break_off(s, e);
        break;
    case SIM_START:
        sim_proc_start(s, e->party - sim_coord(s) - 1);
        break;
    case SIM_FAULT:
        sim_fault(s);
        break;
    case SIM_REPLACE:
        sim_replace(s);
        break;
    case SIM_CRASH:
        sim_crash(s);
        break;
    }
}

/* The coordinator may have ended the job. Sometimes servers are killed before
 * all know of it. */
static void note_end(sim *s)
{
    int code;
    const char *why;
    if (s->ended_at || !fl_coord_ended(s->coord, &code, &why))
        return;
    s->ended_at = s->now;
    if (s->storm && s->job.durability != FL_MEMORY && sim_dice(s, 2))
        sim_at(s, (int64_t)sim_dice(s, 2 * (uint64_t)s->delay),
               (sim_event){.kind = SIM_CRASH});
}

static void run_next_event(sim *s)
{
    sim_event e = next_event(s);
    s->now = e.at;
    const bool weather = is_weather(&e);
    if (!weather && s->asleep[sim_host(s, e.party)] > s->now) {
        sim_at(s, s->asleep[sim_host(s, e.party)] - s->now, e);
        return;
    }
    if (!is_moot(s, &e)) {
        remember_event(s, &e);
        run_event(s, &e);
        if (!weather)
            sim_drain(s, e.party);
        note_end(s);
        sim_check_state(s);
    }
    fl_msg_free(e.msg);
}

static bool is_finished(const sim *s)
{
    if (!s->coord_left)
        return false;
    for (int i = 0; i < s->job.servers; i++)
        if (!s->server[i].left)
            return false;
    for (int i = 0; i < s->procs; i++)
        if (!s->proc[i].finished)
            return false;
    return true;
}

bool fl_sim_run(const fl_sim_opts *opts, fl_sim_result *result, fl_str *report)
{
    sim s = {.opts = *opts, .result = result, .report = report};
    const int64_t limit = 6000 * FL_SEC;
    *result = (fl_sim_result){.ok = true, .trace = 14695981039346656037u};
    s.dice = fl_entropy_fake(opts->seed);
    sim_party_init(&s);
    sim_fault_plan(&s);
    while (!s.broken && !is_finished(&s) && s.heap.n && s.now < limit)
        run_next_event(&s);
    if (!s.broken)
        sim_check_end(&s);
    result->ok = !s.broken;
    result->seconds = s.now / FL_SEC;
    result->rounds = s.round.n;
    sim_party_fini(&s);
    return result->ok;
}
