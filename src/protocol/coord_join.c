/* coord_join.c - sessions come and go: ranks, JOIN, COMPLETE, FAILED, lost.
 *
 * Easy to get wrong: a restarted process must not take a second rank beside
 * its own dead session. So a JOIN for a held rank waits until the holder is
 * lost, or has said a number that was drawn after the JOIN came: an old
 * renewal that was long under way proves nothing. A JOIN that claims no rank
 * need not wait: to such trainers one rank is as good as another. */
#include "protocol/coord_in.h"

#include <stdio.h>

bool fl_coord_all_came(const fl_coord *c)
{
    for (int i = 0; i < c->job->trainers; i++)
        if (!c->rank[i].taken)
            return false;
    return true;
}

int fl_coord_count(const fl_coord *c, fl_rank_state state)
{
    int n = 0;
    for (int i = 0; i < c->job->trainers; i++)
        n += c->rank[i].state == state;
    return n;
}

fl_rank *fl_coord_find(const fl_coord *c, fl_id session)
{
    for (int i = 0; i < c->job->trainers; i++)
        if (c->rank[i].state == FL_RANK_HELD &&
            fl_id_same(c->rank[i].session, session))
            return &c->rank[i];
    return NULL;
}

static fl_past *find_past(const fl_coord *c, fl_id session)
{
    for (int64_t i = c->past.n - 1; i >= 0; i--)
        if (fl_id_same(c->past.at[i].leave.session, session))
            return &c->past.at[i];
    return NULL;
}

static fl_waiting *find_waiting(const fl_coord *c, fl_id session)
{
    for (int64_t i = 0; i < c->waiting.n; i++)
        if (fl_id_same(c->waiting.at[i].session, session))
            return &c->waiting.at[i];
    return NULL;
}

void fl_coord_fence(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    char why[128] = "this session was never granted a rank";
    fl_msg answer = fl_coord_answer(c, FL_MSG_FENCED, m);
    const fl_past *p = find_past(c, m->session);
    answer.rank = -1;
    if (p) {
        fl_leave leave = p->leave;
        leave.ago = now - p->at;
        answer.rank = leave.rank;
        fl_leave_text(&leave, why, sizeof why);
    }
    fl_outbox_say(c->out, from, answer, "%s", why);
}

void fl_coord_say_end(fl_coord *c, fl_peer to, uint64_t tag)
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

/* --- leaving --- */

/* The session leaves its rank; what becomes of the rank is the caller's. */
static void leave(fl_coord *c, fl_rank *r, fl_left why, int64_t now)
{
    r->leave = (fl_leave){.rank = (int)(r - c->rank),
                          .session = r->session,
                          .view = c->view + 1,
                          .why = why};
    r->left = true;
    r->left_at = now;
    r->open = 0;
    if (c->job->plant != FL_PLANT_DEAD_MEMBER)
        r->barrier = false; /* who leaves takes his barrier along */
    fl_push(&c->past, (fl_past){r->leave, now});
}

void fl_coord_lose(fl_coord *c, fl_rank *r, fl_left why, int code,
                   const char *reason, int64_t now)
{
    leave(c, r, why, now);
    r->state = r->taken ? FL_RANK_LOST : FL_RANK_FRESH;
    r->code = code;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    fl_outbox_note(c->out, "trainer %d (%s) is lost: %s", r->leave.rank, r->who,
                   reason);
    fl_coord_new_view(c, now);
}

static void set_done(fl_coord *c, fl_rank *r)
{
    r->state = FL_RANK_DONE;
    r->taken = true; /* it came, even if no renewal arrived */
    fl_outbox_note(c->out, "trainer %d (%s) is complete, %d of %d",
                   (int)(r - c->rank), r->who, fl_coord_count(c, FL_RANK_DONE),
                   c->job->trainers);
}

/* The rank that the session was the last to hold, if nobody has it now. */
static fl_rank *last_held(fl_coord *c, const fl_past *p)
{
    fl_rank *r = &c->rank[p->leave.rank];
    bool free = r->state == FL_RANK_LOST || r->state == FL_RANK_FRESH;
    return free && fl_id_same(r->session, p->leave.session) ? r : NULL;
}

static void forget_join(fl_coord *c, fl_id session, const char *why)
{
    fl_waiting *w = find_waiting(c, session);
    if (!w)
        return;
    fl_outbox_say(
        c->out, fl_to_call(w->call),
        (fl_msg){.kind = FL_MSG_PARKED, .job = c->job->id, .tag = w->tag}, "%s",
        why);
    fl_remove(&c->waiting, w - c->waiting.at);
}

void fl_coord_complete(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    fl_rank *r = fl_coord_find(c, m->session);
    fl_past *p = r ? NULL : find_past(c, m->session);
    if (r) {
        leave(c, r, FL_LEFT_DONE, now);
        set_done(c, r);
        fl_coord_new_view(c, now);
    } else if (p && p->leave.why != FL_LEFT_DONE) {
        r = last_held(c, p);
        if (!r) { /* its rank was granted again */
            fl_coord_fence(c, from, m, now);
            return;
        }
        p->leave.why = r->leave.why = FL_LEFT_DONE;
        set_done(c, r);
    } else if (!p) {
        forget_join(c, m->session, "it completed");
    }
    fl_outbox_send(c->out, from, fl_coord_answer(c, FL_MSG_ACK, m));
    fl_coord_settle(c, now);
}

void fl_coord_failed(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const char *why = m->text && *m->text ? m->text : "it failed";
    const int code = m->code > 0 && m->code < 256 ? m->code : 1;
    fl_rank *r = fl_coord_find(c, m->session);
    fl_past *p = r ? NULL : find_past(c, m->session);
    if (r) {
        r->taken = r->taken || m->g == r->g; /* it knew its grant: it came */
        fl_coord_lose(c, r, FL_LEFT_FAILED, code, why, now);
    } else if (p && p->leave.why != FL_LEFT_DONE && (r = last_held(c, p))) {
        r->code = code; /* says more than "lease ran out" */
        snprintf(r->reason, sizeof r->reason, "%s", why);
    } else {
        forget_join(c, m->session, why);
    }
    fl_outbox_send(c->out, from, fl_coord_answer(c, FL_MSG_ACK, m));
    fl_coord_settle(c, now);
}

/* --- coming --- */

static void say_grant(fl_coord *c, const fl_rank *r, uint64_t call,
                      uint64_t tag)
{
    fl_outbox_send(c->out, fl_to_call(call),
                   (fl_msg){.kind = FL_MSG_GRANT,
                            .job = c->job->id,
                            .session = r->session,
                            .tag = tag,
                            .rank = (int)(r - c->rank),
                            .g = r->g,
                            .round = c->round});
}

static void grant(fl_coord *c, fl_rank *r, const fl_waiting *w, int64_t now)
{
    r->state = FL_RANK_HELD;
    r->session = w->session;
    r->g = c->view + 1;
    r->since = now;
    r->explicit_id = w->explicit_id;
    r->lease = now + c->job->lease;
    r->call_broke = r->barrier = false;
    r->open = r->echo = 0;
    snprintf(r->who, sizeof r->who, "%s", w->who);
    fl_outbox_note(c->out, "trainer %d is %s", (int)(r - c->rank), r->who);
    fl_coord_new_view(c, now);
    say_grant(c, r, w->call, w->tag);
}

/* From its first barrier on, the membership of a round only shrinks: nobody
 * who comes and dies again and again can hold it up for ever. */
static bool open_to_join(const fl_coord *c)
{
    if (c->job->async || !fl_coord_all_came(c))
        return true;
    for (int i = 0; i < c->job->trainers; i++)
        if (c->rank[i].state == FL_RANK_HELD && c->rank[i].barrier)
            return false;
    return true;
}

static fl_rank *claimed_by(const fl_coord *c, const fl_waiting *w)
{
    return w->claim == FL_ANY_ID ? NULL : &c->rank[w->claim];
}

/* The rank has a holder who may be dead: nothing of him came since the JOIN. */
static bool is_in_doubt(const fl_rank *r, const fl_waiting *w)
{
    return r->state == FL_RANK_HELD && (!w->asked || r->echo < w->asked);
}

/* A rank for a JOIN that takes any. One that was lost is kept for its claimant
 * if that has no other to claim. */
static fl_rank *any_rank(const fl_coord *c, int64_t now)
{
    for (int i = 0; i < c->job->trainers; i++)
        if (c->rank[i].state == FL_RANK_FRESH)
            return &c->rank[i];
    for (int i = 0; i < c->job->trainers; i++)
        if (c->rank[i].state == FL_RANK_LOST &&
            (!c->rank[i].explicit_id ||
             now >= c->rank[i].left_at + c->job->rejoin))
            return &c->rank[i];
    return NULL;
}

/* The rank that this JOIN gets now, or NULL. */
static fl_rank *rank_for(const fl_coord *c, const fl_waiting *w, int64_t now)
{
    fl_rank *claimed = claimed_by(c, w);
    if (claimed &&
        (claimed->state == FL_RANK_FRESH || claimed->state == FL_RANK_LOST))
        return claimed;
    if (w->explicit_id || (claimed && is_in_doubt(claimed, w)))
        return NULL;
    return any_rank(c, now);
}

/* An id that was given is never changed into another: a second process with it
 * is turned away, and the first one is told. */
static bool turn_away(fl_coord *c, const fl_waiting *w, int64_t now)
{
    const fl_rank *r = claimed_by(c, w);
    const fl_msg error = {.kind = FL_MSG_ERROR,
                          .job = c->job->id,
                          .session = w->session,
                          .tag = w->tag,
                          .code = FL_EINVAL};
    if (!w->explicit_id || is_in_doubt(r, w))
        return false;
    if (r->state == FL_RANK_DONE) {
        fl_outbox_say(c->out, fl_to_call(w->call), error,
                      "trainer %d (%s) has completed: its id cannot be taken "
                      "again",
                      w->claim, r->who);
        return true;
    }
    if (r->state != FL_RANK_HELD)
        return false;
    fl_outbox_say(c->out, fl_to_call(w->call), error,
                  "trainer id %d is held by %s, which joined %.0f s ago and "
                  "answers: two processes were started with this id; give each "
                  "trainer its own, 0 to %d",
                  w->claim, r->who, (double)(now - r->since) / (double)FL_SEC,
                  c->job->trainers - 1);
    fl_outbox_note(c->out, "%s was turned away: trainer id %d is held by %s",
                   w->who, w->claim, r->who);
    if (r->open)
        fl_outbox_say(c->out, fl_to_call(r->open),
                      (fl_msg){.kind = FL_MSG_PROBE,
                               .job = c->job->id,
                               .session = r->session,
                               .echo = c->echo},
                      "%s was started with trainer id %d as well, and was "
                      "turned away",
                      w->who, w->claim);
    return true;
}

void fl_coord_serve(fl_coord *c, int64_t now)
{
    for (int64_t i = 0; i < c->waiting.n && !c->ended;) {
        fl_waiting w = c->waiting.at[i];
        const bool away = turn_away(c, &w, now);
        fl_rank *r = away || !open_to_join(c) ? NULL : rank_for(c, &w, now);
        if (away || r)
            fl_remove(&c->waiting, i);
        else
            i++;
        if (r)
            grant(c, r, &w, now);
    }
    fl_coord_probe(c, now);
}

void fl_coord_probe(fl_coord *c, int64_t now)
{
    for (int64_t i = 0; i < c->waiting.n; i++) {
        fl_waiting *w = &c->waiting.at[i];
        fl_rank *r = claimed_by(c, w);
        if (!r || !is_in_doubt(r, w))
            continue;
        bool first = !w->asked;
        if (first)
            w->asked = ++c->echo;
        if (!r->open || (!first && now < r->probed + c->job->retry))
            continue;
        r->probed = now;
        fl_outbox_send(c->out, fl_to_call(r->open),
                       (fl_msg){.kind = FL_MSG_PROBE,
                                .job = c->job->id,
                                .session = r->session,
                                .echo = c->echo});
    }
}

/* Why a JOIN waits, for its trainer's user. */
static void why_parked(const fl_coord *c, const fl_waiting *w, int64_t now,
                       fl_str *text)
{
    const fl_rank *r = claimed_by(c, w);
    if (!open_to_join(c)) {
        fl_str_printf(text, "round %lld is about to close",
                      (long long)c->round);
    } else if (r && is_in_doubt(r, w)) {
        fl_str_printf(text, "rank %d is held by %s, lease ends in %.0f s",
                      w->claim, r->who,
                      (double)(r->lease - now) / (double)FL_SEC);
    } else {
        fl_str_add(text, "every rank is held, done or kept for its trainer:");
        for (int i = 0; i < c->job->trainers && text->n < 400; i++)
            fl_str_printf(text, " %d %s", i, c->rank[i].who);
    }
}

static void answer_parked(fl_coord *c, const fl_waiting *w, int64_t now)
{
    fl_str why = {0};
    why_parked(c, w, now, &why);
    fl_outbox_say(
        c->out, fl_to_call(w->call),
        (fl_msg){.kind = FL_MSG_PARKED, .job = c->job->id, .tag = w->tag}, "%s",
        why.at);
    fl_str_fini(&why);
}

static void park(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    fl_waiting w = {.session = m->session,
                    .claim = m->rank,
                    .explicit_id = m->explicit_id,
                    .call = from.call,
                    .tag = m->tag,
                    .since = now};
    snprintf(w.who, sizeof w.who, "%s", m->text ? m->text : "a trainer");
    if (c->waiting.n >= c->job->max_parked)
        fl_outbox_say(c->out, from, fl_coord_answer(c, FL_MSG_PARKED, m),
                      "%d trainers wait to join already", c->job->max_parked);
    else
        fl_push(&c->waiting, w);
}

void fl_coord_join(fl_coord *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const fl_rank *r = fl_coord_find(c, m->session);
    fl_waiting *w = find_waiting(c, m->session);
    if (m->rank < (m->explicit_id ? 0 : FL_ANY_ID) ||
        m->rank >= c->job->trainers) {
        fl_msg answer = fl_coord_answer(c, FL_MSG_ERROR, m);
        answer.code = FL_EINVAL;
        fl_outbox_say(c->out, from, answer,
                      "join: trainer id %d, the job has %d trainers", m->rank,
                      c->job->trainers);
    } else if (find_past(c, m->session)) {
        fl_coord_fence(c, from, m, now);
    } else if (r) {
        say_grant(c, r, from.call, m->tag);
    } else if (w) { /* again, on a newer call: keeps its place */
        if (w->call != from.call)
            answer_parked(c, w, now);
        w->call = from.call;
        w->tag = m->tag;
    } else {
        park(c, from, m, now);
        fl_coord_settle(c, now);
    }
}
