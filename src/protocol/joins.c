/* SPDX-License-Identifier: Apache-2.0 */
/* joins.c - parked JOINs: who gets which rank, who waits, who is turned away.
 *
 * Easy to get wrong: a restarted process must not get a second rank while its
 * own dead session still holds the first. So a JOIN for a held rank waits until
 * the holder is lost or has answered a PROBE that was sent after the JOIN came.
 * A RENEW that was delayed in the network does not prove that the holder is
 * alive. A JOIN that claims no rank need not wait. */
#include "protocol/joins.h"

#include <stdio.h>

struct fl_joins {
    const fl_job *job;
    const fl_members *members;
    fl_outbox *out;
    uint64_t echo;          /* number of the last PROBE */
    int64_t *probed;        /* when the holder of each rank was last sent PROBE;
                               job->trainers elements */
    FL_VEC(fl_join) parked; /* in order of arrival */
};

fl_joins *fl_joins_new(const fl_job *job, const fl_members *members,
                       fl_outbox *out)
{
    fl_joins *j = fl_mem_alloc(sizeof *j);
    j->job = job;
    j->members = members;
    j->out = out;
    j->probed = fl_mem_alloc((size_t)job->trainers * sizeof *j->probed);
    return j;
}

void fl_joins_free(fl_joins *j)
{
    if (!j)
        return;
    fl_vec_fini(&j->parked);
    fl_mem_free(j->probed);
    fl_mem_free(j);
}

void fl_joins_restart(fl_joins *j)
{
    j->echo = (uint64_t)j->out->state.incarnation << 32;
}

static fl_peer to_call(uint64_t call)
{
    return (fl_peer){FL_PEER_CALL, 0, call};
}

static fl_join *find_parked(const fl_joins *j, fl_id session)
{
    for (int64_t i = 0; i < j->parked.n; i++)
        if (fl_id_same(j->parked.at[i].session, session))
            return &j->parked.at[i];
    return NULL;
}

static const fl_rank *claimed_by(const fl_joins *j, const fl_join *w)
{
    return w->claim == FL_ANY_ID ? NULL : fl_members_get(j->members, w->claim);
}

/* Whether the rank's holder may be dead: it has not answered a PROBE since the
 * JOIN came. */
static bool is_in_doubt(const fl_rank *r, const fl_join *w)
{
    return r->state == FL_RANK_HELD && (!w->asked || r->echo < w->asked);
}

/* --- a JOIN is parked --- */

bool fl_joins_park(fl_joins *j, fl_peer from, const fl_msg *m, int64_t now)
{
    fl_join w = {.session = m->session,
                 .claim = m->rank,
                 .explicit_id = m->explicit_id,
                 .call = from.call,
                 .tag = m->tag,
                 .since = now};
    snprintf(w.who, sizeof w.who, "%s", m->text ? m->text : "a trainer");
    if (j->parked.n >= j->job->max_parked)
        return false;
    fl_push(&j->parked, w);
    return true;
}

/* Write why a JOIN waits, for the user of the trainer, to buf. */
static void why_parked(const fl_joins *j, const fl_join *w, int64_t round,
                       int64_t now, fl_str *text)
{
    const fl_rank *r = claimed_by(j, w);
    if (!fl_members_may_join(j->members)) {
        fl_str_printf(text, "round %lld is about to close", (long long)round);
    } else if (r && is_in_doubt(r, w)) {
        fl_str_printf(text, "rank %d is held by %s, lease ends in %.0f s",
                      w->claim, r->who,
                      (double)(r->lease - now) / (double)FL_SEC);
    } else {
        fl_str_add(text, "every rank is held, done or kept for its trainer:");
        for (int i = 0; i < j->job->trainers && text->n < 400; i++)
            fl_str_printf(text, " %d %s", i,
                          fl_members_get(j->members, i)->who);
    }
}

static void answer_parked(fl_joins *j, const fl_join *w, const char *why)
{
    fl_outbox_say(
        j->out, to_call(w->call),
        (fl_msg){.kind = FL_MSG_PARKED, .job = j->job->id, .tag = w->tag}, "%s",
        why);
}

bool fl_joins_repeat(fl_joins *j, fl_peer from, const fl_msg *m, int64_t round,
                     int64_t now)
{
    fl_join *w = find_parked(j, m->session);
    fl_str why = {0};
    if (!w)
        return false;
    if (w->call != from.call) {
        why_parked(j, w, round, now, &why);
        answer_parked(j, w, why.at);
    }
    fl_str_fini(&why);
    w->call = from.call;
    w->tag = m->tag;
    return true;
}

void fl_joins_hold(fl_joins *j, fl_peer from, const fl_msg *m, int64_t now)
{
    if (j->parked.n < j->job->max_parked)
        fl_push(&j->parked, ((fl_join){.claim = FL_ANY_ID,
                                       .call = from.call,
                                       .tag = m->tag,
                                       .since = now,
                                       .who = "a trainer"}));
}

/* --- it leaves --- */

void fl_joins_forget(fl_joins *j, fl_id session, const char *why)
{
    fl_join *w = find_parked(j, session);
    if (!w)
        return;
    answer_parked(j, w, why);
    fl_remove(&j->parked, w - j->parked.at);
}

void fl_joins_hangup(fl_joins *j, uint64_t call)
{
    for (int64_t i = 0; i < j->parked.n; i++)
        if (j->parked.at[i].call == call)
            fl_remove(&j->parked, i--);
}

/* The rank to grant to this JOIN now; NULL: it must wait. */
static const fl_rank *rank_for(const fl_joins *j, const fl_join *w, int64_t now)
{
    const fl_rank *claimed = claimed_by(j, w);
    if (claimed &&
        (claimed->state == FL_RANK_FRESH || claimed->state == FL_RANK_LOST))
        return claimed;
    if (w->explicit_id || (claimed && is_in_doubt(claimed, w)))
        return NULL;
    return fl_members_any_free(j->members, now);
}

/* Answer a JOIN whose explicit id is done, or held by a process that is alive,
 * with ERROR, and warn the holder. An explicit id is never replaced by another
 * rank. False: the JOIN is not of this kind. */
static bool turn_join_away(fl_joins *j, const fl_join *w, int64_t now)
{
    const fl_rank *r = claimed_by(j, w);
    fl_msg error = {.kind = FL_MSG_ERROR,
                    .job = j->job->id,
                    .session = w->session,
                    .tag = w->tag,
                    .code = FL_EINVAL};
    if (!w->explicit_id || is_in_doubt(r, w))
        return false;
    if (r->state == FL_RANK_DONE) {
        error.code = FL_EDONE;
        fl_outbox_say(j->out, to_call(w->call), error,
                      "trainer %d (%s) has completed: its id cannot be taken "
                      "again, so this process does not go on with its script",
                      w->claim, r->who);
        return true;
    }
    if (r->state != FL_RANK_HELD)
        return false;
    fl_outbox_say(j->out, to_call(w->call), error,
                  "trainer id %d is held by %s, which joined %.0f s ago and "
                  "answers: two processes were started with this id; give each "
                  "trainer its own, 0 to %d",
                  w->claim, r->who, (double)(now - r->since) / (double)FL_SEC,
                  j->job->trainers - 1);
    fl_outbox_note(j->out, "%s was turned away: trainer id %d is held by %s",
                   w->who, w->claim, r->who);
    if (r->open)
        fl_outbox_say(j->out, to_call(r->open),
                      (fl_msg){.kind = FL_MSG_PROBE,
                               .job = j->job->id,
                               .session = r->session,
                               .echo = j->echo},
                      "%s was started with trainer id %d as well, and was "
                      "turned away",
                      w->who, w->claim);
    return true;
}

const fl_rank *fl_joins_next(fl_joins *j, int64_t *at, int64_t now,
                             fl_join *out)
{
    while (*at < j->parked.n) {
        const fl_join w = j->parked.at[*at];
        const bool away = turn_join_away(j, &w, now);
        const fl_rank *r = away ? NULL : rank_for(j, &w, now);
        if (r && !fl_members_may_join(j->members) &&
            !fl_members_awaits(j->members, r, now))
            r = NULL;
        if (away || r)
            fl_remove(&j->parked, *at);
        else
            ++*at;
        if (r) {
            *out = w;
            return r;
        }
    }
    return NULL;
}

int fl_joins_count(const fl_joins *j)
{
    return (int)j->parked.n;
}

const fl_join *fl_joins_get(const fl_joins *j, int i)
{
    return &j->parked.at[i];
}

void fl_joins_clear(fl_joins *j)
{
    j->parked.n = 0;
}

/* --- their holders --- */

void fl_joins_probe(fl_joins *j, int64_t now)
{
    for (int64_t i = 0; i < j->parked.n; i++) {
        fl_join *w = &j->parked.at[i];
        const fl_rank *r = claimed_by(j, w);
        if (!r || !is_in_doubt(r, w))
            continue;
        bool first = !w->asked;
        if (first)
            w->asked = ++j->echo;
        if (!r->open || (!first && now < j->probed[r->rank] + j->job->retry))
            continue;
        j->probed[r->rank] = now;
        fl_outbox_send(j->out, to_call(r->open),
                       (fl_msg){.kind = FL_MSG_PROBE,
                                .job = j->job->id,
                                .session = r->session,
                                .echo = j->echo});
    }
}

uint64_t fl_joins_last_probe(const fl_joins *j)
{
    return j->echo;
}

void fl_joins_waits(const fl_joins *j, int64_t now, fl_str *rows)
{
    for (int64_t i = 0; i < j->parked.n; i++) {
        const fl_join *w = &j->parked.at[i];
        const fl_rank *r = claimed_by(j, w);
        const bool held = r && r->state == FL_RANK_HELD;
        char whom[FL_MEMBERS_WHO + 48];
        if (!r)
            snprintf(whom, sizeof whom, "a rank");
        else if (held)
            snprintf(whom, sizeof whom, "rank %d (held by %s)", w->claim,
                     r->who);
        else
            snprintf(whom, sizeof whom, "rank %d", w->claim);
        fl_wait_row(rows, w->who, whom, "to join", now - w->since,
                    held ? r->lease - now : 0);
    }
}
