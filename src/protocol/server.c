/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - a server's events: pushes, pulls, views, CLOSE, END.
 *
 * A request passes three checks: the end, the view, the version. A request that
 * must wait is parked. It passes all three checks again at each view, CLOSE and
 * END, so that none is forgotten.
 *
 * Easy to get wrong: staged pushes outlive the view that drops their session,
 * because the decision may have been made before the loss. A view says which
 * round was open when it was made. Only pushes staged for that round or a later
 * one can be in no decision any more.
 *
 * The store begins to apply a round, and reads values, only in fl_server_flush:
 * a decision or a version that is in no image yet may be forgotten by a crash,
 * and nobody may have seen it by then. */
#include "protocol/server.h"
#include "protocol/image.h"
#include "protocol/plant.h"
#include "protocol/pushers.h"
#include "protocol/steps.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    SENTENCE_MAX = 256, /* bytes of END's text that are kept */
    AHEAD_MAX = 16,     /* decisions kept for rounds that are not open yet */
    STAGED_FEW = 16,    /* participants of a round that need no memory */
};

/* Async: a push that a crash has interrupted; the store must get it again. */
typedef struct interrupted_push {
    fl_id session;
    int rank;
    int64_t seq;
    int64_t since;
} interrupted_push;

/* Async: a push that some owners of the store had applied before a crash, and
 * others had not begun. */
typedef struct half_push {
    fl_id session;
    int64_t seq;
} half_push;

/* Values that are read once the image is saved. */
typedef struct due_read {
    fl_blob names; /* kept */
    fl_peer to;
    fl_msg reply;
} due_read;

typedef struct parked_request {
    fl_peer from;
    fl_msg msg; /* the blob is kept; all other pointers are NULL */
    int64_t since;
} parked_request;

/* Async: a push that the store is applying. */
typedef struct push_in_flight {
    fl_id session;
    int rank;
    int64_t seq;
    bool last; /* of a step */
    int64_t step, part;
    uint64_t tag;
    fl_peer from;
    fl_blob blob;
} push_in_flight;

/* A CLOSE: the sessions whose pushes make the version after `round`. */
typedef struct decision {
    int64_t round;
    fl_member *member;
    int n;
    int64_t snapshot; /* of the version that the round makes; 0: none */
} decision;

struct fl_server {
    const fl_job *job;
    const fl_store *store;
    fl_outbox *out;
    int index;
    uint64_t coordinator; /* the coordinator's state id; 0: not heard yet */
    fl_refusals refused;  /* since when the coordinator refuses connections */
    int64_t heard;        /* when the coordinator was last heard */
    int64_t ticked;
    int64_t told;    /* when STATE was last sent */
    int64_t stalled; /* when waits were last reported */
    int64_t version, view;
    bool changed;    /* an image would differ from the last one */
    int64_t flushed; /* the version at the last flush */
    bool closing;    /* round `version` is being applied */
    decision close;  /* closing: the decision that is carried out */
    bool due_apply;  /* closing: the store has not been told yet */
    int64_t due_cut; /* snapshot that the store has not been told of; 0: none */
    int64_t cut;     /* the newest snapshot that was begun, and */
    int64_t written; /* the newest one that is written */
    int64_t rewind;  /* snapshot to go back to; 0: none */
    int64_t next_generation; /* rewind: the generation that begins with it */
    int64_t damaged;         /* snapshot that cannot be restored; 0: none */
    char why_damaged[SENTENCE_MAX];
    FL_VEC(due_read) due;
    FL_VEC(interrupted_push) interrupted; /* in order */
    FL_VEC(half_push) half;
    int64_t given; /* of `in_flight`, how many the store knows */
    FL_VEC(fl_member) member;
    FL_VEC(fl_leave) left;
    int64_t left_at;     /* when `left` was received */
    fl_pushers *pushers; /* windows, and what is staged */
    fl_steps *steps;     /* async: which parts of steps are applied */
    FL_VEC(parked_request) parked;
    FL_VEC(decision) ahead; /* decisions whose round is not open yet */
    FL_VEC(push_in_flight) in_flight; /* in the order of arrival */
    size_t bytes;   /* of pushes that are parked and in flight */
    bool ending;    /* END has arrived */
    bool ended;     /* the version that END names is reached */
    bool confirmed; /* the coordinator knows that */
    int code;
    char sentence[SENTENCE_MAX];
    int64_t end_version; /* the version to end with; < 0: end at once */
    int64_t ended_at;
};

/* The rank of a member; -1: the session is none. */
static int rank_of(const fl_server *s, fl_id session)
{
    for (int64_t i = 0; i < s->member.n; i++)
        if (fl_id_same(s->member.at[i].session, session))
            return s->member.at[i].rank;
    return -1;
}

static bool is_member(const fl_server *s, fl_id session)
{
    return rank_of(s, session) >= 0;
}

/* --- answers --- */

static fl_msg answer_to(const fl_server *s, fl_msg_kind kind, const fl_msg *m)
{
    return (fl_msg){.kind = kind,
                    .job = s->job->id,
                    .session = m->session,
                    .tag = m->tag,
                    .view = s->view,
                    .round = s->version,
                    .state = s->out->state,
                    .generation = s->out->generation,
                    .server = s->index};
}

static void send_state(fl_server *s, int64_t now)
{
    s->told = now;
    fl_outbox_send(s->out, (fl_peer){FL_PEER_COORD, 0, 0},
                   (fl_msg){.kind = FL_MSG_STATE,
                            .job = s->job->id,
                            .server = s->index,
                            .view = s->view,
                            .round = s->job->async ? 0 : s->version,
                            .expected = s->coordinator,
                            .snapshot = s->written,
                            .damaged = s->damaged,
                            .over = s->ended,
                            .code = s->ended ? s->code : 0,
                            .text = s->ended     ? s->sentence
                                    : s->damaged ? s->why_damaged
                                                 : NULL});
}

static void fence_session(fl_server *s, fl_peer to, const fl_msg *m,
                          int64_t now)
{
    char why[128];
    fl_msg answer = answer_to(s, FL_MSG_FENCED, m);
    answer.rank = -1;
    snprintf(why, sizeof why, "round %lld is closed, version is %lld",
             (long long)m->round, (long long)s->version);
    for (int64_t i = 0; i < s->left.n; i++)
        if (fl_id_same(s->left.at[i].session, m->session)) {
            fl_leave left = s->left.at[i];
            left.ago += now - s->left_at;
            answer.rank = left.rank;
            fl_leave_text(&left, why, sizeof why);
        }
    fl_outbox_say(s->out, to, answer, "%s", why);
}

static void say_end(fl_server *s, fl_peer to, const fl_msg *m)
{
    fl_msg answer = answer_to(s, FL_MSG_END, m);
    answer.code = s->code;
    answer.round = s->end_version;
    fl_outbox_say(s->out, to, answer, "%s", s->sentence);
}

/* Begin to end with an error, unless one has been kept already. */
static void fail_with(fl_server *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void fail_with(fl_server *s, const char *fmt, ...)
{
    va_list ap;
    if (s->ending)
        return;
    va_start(ap, fmt);
    vsnprintf(s->sentence, sizeof s->sentence, fmt, ap);
    va_end(ap);
    s->ending = s->changed = true;
    s->code = 1;
    s->end_version = -1;
    fl_outbox_note(s->out, "%s", s->sentence);
}

/* End the job because of an error. The reason gets the server's name in front.
 */
static void fail_server(fl_server *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void fail_server(fl_server *s, const char *fmt, ...)
{
    va_list ap;
    char text[SENTENCE_MAX], name[96];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fail_with(s, "%s: %s", fl_job_server(s->job, s->index, name, sizeof name),
              text);
}

/* --- what takes memory --- */

/* Bytes of pushes that are staged, parked and in flight. */
static size_t bytes_of(const fl_server *s)
{
    return s->bytes + fl_pushers_bytes(s->pushers);
}

static fl_blob keep_blob(fl_server *s, fl_blob b)
{
    s->bytes += b.size;
    return s->store->keep.keep(s->store->keep.self, b);
}

static void drop_blob(fl_server *s, fl_blob b)
{
    s->bytes -= b.size;
    s->store->keep.drop(s->store->keep.self, b);
}

static void free_parked(fl_server *s, int64_t i)
{
    drop_blob(s, s->parked.at[i].msg.blob);
    fl_remove(&s->parked, i);
}

static void free_decision(fl_server *s, int64_t i)
{
    fl_mem_free(s->ahead.at[i].member);
    fl_remove(&s->ahead, i);
}

/* --- pushes --- */

static void refuse_push(fl_server *s, fl_peer to, const fl_msg *m, fl_err code,
                        const char *why)
{
    fl_msg answer = answer_to(s, FL_MSG_ERROR, m);
    answer.code = (int)code;
    fl_outbox_say(s->out, to, answer, "%s", why);
}

/* What is wrong with a push in any state of the server; NULL: nothing. */
static const char *flaw_of_push(const fl_server *s, const fl_msg *m)
{
    if (m->seq < 1)
        return "push: numbers begin at 1";
    if (m->count < 0 || m->count > s->job->max_parts || m->round < 0)
        return "push: a count or round is out of range";
    if (m->step < 0 || (m->step > 0) != (m->part > 0) ||
        (m->step && !s->job->async))
        return "push: a step or part is out of range";
    return NULL;
}

/* Whether this push of a rank's step was applied, or is being applied, in this
 * session or an earlier one. */
static bool has_part(const fl_server *s, int rank, int64_t step, int64_t part)
{
    if (fl_steps_has(s->steps, rank, step, part))
        return true;
    for (int64_t i = 0; i < s->in_flight.n; i++) {
        const push_in_flight *f = &s->in_flight.at[i];
        if (f->rank == rank && f->step == step && f->part == part)
            return true;
    }
    return false;
}

/* A push that an earlier session of the rank has made is replaced by an empty
 * one: the store only marks its number. */
static void apply_push(fl_server *s, fl_peer from, const fl_msg *m)
{
    const int rank = rank_of(s, m->session);
    const bool again = m->step && has_part(s, rank, m->step, m->part) &&
                       !FL_PLANTED(STEPTWICE);
    fl_push(
        &s->in_flight,
        (push_in_flight){.session = m->session,
                         .rank = rank,
                         .seq = m->seq,
                         .last = m->count > 0 && !again,
                         .step = m->step,
                         .part = m->part,
                         .tag = m->tag,
                         .from = from,
                         .blob = keep_blob(s, again ? (fl_blob){0} : m->blob)});
}

/* Answer a push that has been seen before. One that is still being applied is
 * answered when it has been applied. */
static void answer_repeat(fl_server *s, fl_peer from, const fl_msg *m)
{
    for (int64_t i = 0; i < s->in_flight.n; i++) {
        push_in_flight *f = &s->in_flight.at[i];
        if (f->seq != m->seq || !fl_id_same(f->session, m->session))
            continue;
        fl_msg old = {.session = f->session, .tag = f->tag};
        fl_outbox_say(s->out, f->from, answer_to(s, FL_MSG_PARKED, &old),
                      "the push is being applied");
        f->from = from;
        f->tag = m->tag;
        return;
    }
    fl_outbox_send(s->out, from, answer_to(s, FL_MSG_ACK, m));
}

static fl_err check_push(fl_server *s, const fl_pusher *p, const fl_msg *m)
{
    FL_TRY(fl_pushers_check(s->pushers, p, m->seq));
    if (m->blob.size > s->job->max_staged - bytes_of(s))
        return fl_fail(FL_ENOMEM,
                       "push: no room for %zu bytes: %zu are staged of at most "
                       "%zu at a server (FLUID_STAGED); set more, or start "
                       "more servers",
                       m->blob.size, bytes_of(s), s->job->max_staged);
    const fl_staged by = {.rank = rank_of(s, m->session),
                          .session = m->session,
                          .n = 1,
                          .part = &m->blob,
                          .last = m->count > 0,
                          .seq = m->seq};
    const fl_err err = s->store->check(s->store->self, &by);
    return err ? fl_fail_at(err, "trainer %d", by.rank) : FL_OK;
}

/* Requires that the session is a member. */
static void on_push(fl_server *s, fl_peer from, const fl_msg *m, int64_t now)
{
    const char *wrong = flaw_of_push(s, m);
    if (wrong) {
        refuse_push(s, from, m, FL_EPROTO, wrong);
        return;
    }
    fl_pusher *p =
        fl_pushers_add(s->pushers, m->session, rank_of(s, m->session));
    const int64_t open = s->version + s->closing;
    if (fl_pusher_has_seen(p, m->seq)) {
        answer_repeat(s, from, m);
    } else if (!s->job->async && m->round < open) {
        fence_session(s, from, m,
                      now); /* the round was closed without this push */
    } else if (!s->job->async && m->round > s->version) {
        refuse_push(s, from, m, FL_EPROTO, "push: its round is not open yet");
        fail_server(s, "trainer %d pushed round %lld, version is %lld",
                    rank_of(s, m->session), (long long)m->round,
                    (long long)s->version);
    } else {
        fl_err err = check_push(s, p, m);
        if (err) {
            refuse_push(s, from, m, err, fl_errmsg());
            return;
        }
        fl_pusher_mark(p, m->seq);
        if (s->job->async) {
            apply_push(s, from, m);
            return;
        }
        fl_pushers_stage(s->pushers, p, m);
        s->changed = s->changed || FL_PLANTED(WINFIRST);
        fl_outbox_send(s->out, from, answer_to(s, FL_MSG_ACK, m));
    }
}

/* --- requests --- */

static void read_values(fl_server *s, fl_peer from, const fl_msg *m)
{
    fl_push(&s->due,
            (due_read){s->store->keep.keep(s->store->keep.self, m->blob), from,
                       answer_to(s, FL_MSG_VALUES, m)});
}

/* A push that a crash has interrupted comes before all others. */
static bool must_wait_for_interrupted(const fl_server *s, const fl_msg *m)
{
    const fl_pusher *p = fl_pushers_find(s->pushers, m->session);
    if (!s->interrupted.n || (p && fl_pusher_has_seen(p, m->seq)))
        return false;
    const interrupted_push *first = &s->interrupted.at[0];
    return first->seq != m->seq || !fl_id_same(first->session, m->session);
}

/* Whether a push does not fit into memory now, but will when others have been
 * applied. A round that does not fit as a whole never will; check_push refuses
 * it. */
static bool must_wait_for_room(const fl_server *s, const fl_msg *m)
{
    const bool frees = s->job->async ? bytes_of(s) > 0 : s->closing;
    return frees && m->blob.size <= s->job->max_staged &&
           m->blob.size > s->job->max_staged - bytes_of(s);
}

/* Answer the request. False: it must wait. */
static bool serve_request(fl_server *s, fl_peer from, const fl_msg *m,
                          int64_t now)
{
    const int64_t open = s->version + s->closing;
    if (s->ending) {
        say_end(s, from, m);
    } else if (!is_member(s, m->session)) {
        if (m->g > s->view)
            return false;
        fence_session(s, from, m, now);
    } else if (m->kind == FL_MSG_PUSH) {
        if (must_wait_for_room(s, m) || must_wait_for_interrupted(s, m))
            return false;
        on_push(s, from, m, now);
    } else if (s->job->async || (m->round == open && !s->closing)) {
        read_values(s, from, m);
    } else if (m->round >= open) {
        return false;
    } else {
        fence_session(s, from, m, now);
    }
    return true;
}

static void say_parked(fl_server *s, fl_peer to, const fl_msg *m)
{
    const fl_msg answer = answer_to(s, FL_MSG_PARKED, m);
    const interrupted_push *first = s->interrupted.at;
    if (m->g > s->view)
        fl_outbox_say(s->out, to, answer,
                      "server %d waits for view %lld, has %lld", s->index,
                      (long long)m->g, (long long)s->view);
    else if (m->kind != FL_MSG_PUSH)
        fl_outbox_say(s->out, to, answer,
                      "server %d waits for version %lld, has %lld", s->index,
                      (long long)m->round, (long long)s->version);
    else if (s->interrupted.n)
        fl_outbox_say(s->out, to, answer,
                      "server %d waits for push %lld of trainer %d, which is "
                      "applied in part",
                      s->index, (long long)first->seq, first->rank);
    else
        fl_outbox_say(s->out, to, answer,
                      "server %d waits for room: %zu bytes are staged of at "
                      "most %zu",
                      s->index, bytes_of(s), s->job->max_staged);
}

static void park_request(fl_server *s, fl_peer from, const fl_msg *m,
                         int64_t now)
{
    for (int64_t i = 0; i < s->parked.n; i++) {
        parked_request *p = &s->parked.at[i];
        if (p->msg.tag != m->tag || !fl_id_same(p->msg.session, m->session))
            continue;
        say_parked(s, p->from, &p->msg); /* the newer request replaces it */
        p->from = from;
        return;
    }
    if (s->parked.n >= s->job->max_parked ||
        m->blob.size > s->job->max_staged - bytes_of(s)) {
        say_parked(s, from, m); /* no room to park it: the trainer repeats it */
        return;
    }
    parked_request p = {from, *m, now};
    p.msg.blob = keep_blob(s, m->blob);
    fl_msg_forget(&p.msg);
    fl_push(&s->parked, p);
}

static void serve_parked(fl_server *s, int64_t now)
{
    for (int64_t i = 0; i < s->parked.n;) {
        parked_request p = s->parked.at[i];
        s->bytes -= p.msg.blob.size; /* its bytes are counted already */
        const bool served = serve_request(s, p.from, &p.msg, now);
        s->bytes += p.msg.blob.size;
        if (served)
            free_parked(s, i);
        else
            i++;
    }
}

/* --- closing a round --- */

/* The decision is taken over. The store is told by fl_server_flush. */
static void begin_close(fl_server *s, decision *c)
{
    s->changed = true;
    for (int i = 0; i < c->n; i++)
        if (!fl_pushers_have_all(s->pushers, c->member[i].session)) {
            fail_server(s,
                        "round %lld is to close with trainer %d, whose "
                        "gradients are not all here",
                        (long long)c->round, c->member[i].rank);
            fl_mem_free(c->member);
            return;
        }
    s->closing = s->due_apply = true;
    s->close = *c;
}

static void apply_round(fl_server *s)
{
    const decision *c = &s->close;
    fl_staged few[STAGED_FEW], *by = few;
    if (c->n > STAGED_FEW)
        by = fl_mem_alloc((size_t)c->n * sizeof *by);
    s->due_apply = false;
    const int n = fl_pushers_gather(s->pushers, c->member, c->n, by);
    s->store->apply(s->store->self, c->round, by, n);
    if (by != few)
        fl_mem_free(by);
}

static void finish_close(fl_server *s)
{
    fl_pushers_close_round(s->pushers);
    s->closing = false;
    s->due_cut = s->close.snapshot;
    fl_mem_free(s->close.member);
    s->close = (decision){0};
    s->version++;
    s->changed = true;
}

static void close_next(fl_server *s)
{
    for (int64_t i = 0; i < s->ahead.n && !s->closing; i++) {
        decision c = s->ahead.at[i];
        if (c.round == s->version) {
            fl_remove(&s->ahead, i);
            begin_close(s, &c);
            return;
        }
    }
}

/* --- the end --- */

static bool is_applying(const fl_server *s)
{
    return s->closing || s->in_flight.n > 0;
}

static void end_if_due(fl_server *s, int64_t now)
{
    const bool reached = s->job->async || s->version >= s->end_version;
    if (!s->ending || s->ended || !reached || is_applying(s))
        return;
    s->ended = s->changed = true;
    s->ended_at = now;
    send_state(s, now);
}

/* A view, a CLOSE or END came: serve parked requests, close the next round, end
 * if it is time. */
static void settle_server(fl_server *s, int64_t now)
{
    serve_parked(s, now);
    if (!s->ended)
        close_next(s);
    serve_parked(s, now); /* an error in close_next has begun the end */
    end_if_due(s, now);
}

/* --- messages of the coordinator --- */

/* A view has come. `open`: the round that was open when it was made. */
static void drop_gone_pushers(fl_server *s, int64_t open)
{
    const bool undecided = s->job->async || (open <= s->version && !s->closing);
    fl_pushers_retain(s->pushers, s->member.at, s->member.n, undecided);
    for (int64_t i = s->interrupted.n - 1; i >= 0; i--)
        if (!fl_pushers_find(s->pushers, s->interrupted.at[i].session))
            fl_remove(&s->interrupted, i);
    for (int64_t i = s->half.n - 1; i >= 0; i--)
        if (!is_member(s, s->half.at[i].session))
            fl_remove(&s->half, i);
}

static void on_view(fl_server *s, const fl_msg *m, int64_t now)
{
    if (s->job->async && m->snapshot > s->cut && !s->ending) {
        s->due_cut = s->cut = m->snapshot;
        s->changed = true; /* a restart does not take it again */
    }
    if (m->view <= s->view)
        return; /* an old view: acknowledged and ignored */
    s->view = m->view;
    s->changed = s->changed || !FL_PLANTED(STALEVIEW);
    s->member.n = s->left.n = 0;
    for (int i = 0; i < m->n_member; i++)
        fl_push(&s->member, m->member[i]);
    for (int i = 0; i < m->n_left; i++)
        fl_push(&s->left, m->left[i]);
    s->left_at = now;
    drop_gone_pushers(s, m->round);
}

static void on_close(fl_server *s, const fl_msg *m)
{
    const int64_t done = s->version + s->closing;
    if (m->round < done || s->ahead.n >= AHEAD_MAX)
        return;
    for (int64_t i = 0; i < s->ahead.n; i++)
        if (s->ahead.at[i].round == m->round)
            return;
    decision c = {.round = m->round, .n = m->n_member, .snapshot = m->snapshot};
    c.member = fl_mem_alloc((size_t)(c.n + 1) * sizeof *c.member);
    if (c.n)
        memcpy(c.member, m->member, (size_t)c.n * sizeof *c.member);
    fl_push(&s->ahead, c);
    s->changed = true;
}

static void on_end(fl_server *s, const fl_msg *m)
{
    if (s->ending)
        return;
    s->ending = s->changed = true;
    s->code = m->code;
    s->end_version = m->round;
    snprintf(s->sentence, sizeof s->sentence, "%s", m->text ? m->text : "");
}

/* Whether the members of m are sorted by rank, without repeats, and all ranks
 * are ranks of the job. */
static bool are_members_valid(const fl_server *s, const fl_msg *m)
{
    if (m->n_member < 0 || m->n_member > s->job->trainers || m->n_left < 0 ||
        m->n_left > s->job->trainers)
        return false;
    for (int i = 0; i < m->n_member; i++)
        if (m->member[i].rank < (i ? m->member[i - 1].rank + 1 : 0) ||
            m->member[i].rank >= s->job->trainers)
            return false;
    for (int i = 0; i < m->n_left; i++)
        if (m->left[i].rank < 0 || m->left[i].rank >= s->job->trainers)
            return false;
    return true;
}

static void on_rewind(fl_server *s, const fl_msg *m, int64_t now)
{
    if (s->ending)
        return;
    if (m->snapshot == s->damaged) {
        send_state(s, now);
        return;
    }
    s->rewind = m->snapshot;
    s->next_generation = m->generation;
    s->coordinator = m->state.id;
}

/* Whether the message is of this generation of the job. Of an older one, only
 * the end of a job that has failed counts: it never goes on. A newer one begins
 * with REWIND, for which the values are restored first. */
static bool is_of_generation(fl_server *s, const fl_msg *m, int64_t now)
{
    const int64_t newer = m->generation - s->out->generation;
    if (newer < 0)
        return (m->kind == FL_MSG_END && m->code) || FL_PLANTED(STALECLOSE);
    if (!newer || m->kind == FL_MSG_END)
        return true;
    if (m->kind == FL_MSG_REWIND)
        on_rewind(s, m, now);
    else if (FL_PLANTED(VIEWGEN))
        return true;
    else
        send_state(s, now);
    return false;
}

/* Whether this server and the coordinator have the states that each knows of
 * the other. If not, the job goes back to a snapshot, or ends. */
static bool check_states(fl_server *s, const fl_msg *m, int64_t now)
{
    const bool end = m->kind == FL_MSG_END;
    if (m->generation < s->out->generation)
        return true;
    const bool lost = fl_job_lost(m->expected, s->out->state.id);
    const bool lost_coordinator =
        fl_job_lost(s->coordinator, m->state.id) && !end;
    if ((lost || lost_coordinator) && s->store->cut && !end) {
        send_state(s, now);
        return false;
    }
    if (lost)
        fail_server(s, "it was started again and has lost its parameters");
    if (lost_coordinator)
        fail_server(s, "the coordinator was started again and has lost the "
                       "list of members");
    if (end)
        return true;
    s->changed = s->changed || s->coordinator != m->state.id;
    s->coordinator = m->state.id;
    return true;
}

/* Every message is acknowledged with a STATE. A CLOSE that makes the server
 * close a round is acknowledged when the round is closed; a repeat, at once. */
static void from_coordinator(fl_server *s, const fl_msg *m, int64_t now)
{
    const bool was_closing = s->closing;
    if (!are_members_valid(s, m) || s->rewind || !is_of_generation(s, m, now))
        return;
    if (m->kind == FL_MSG_END && m->over) {
        s->confirmed = s->ended;
        s->changed =
            true; /* the coordinator may leave when it has the answer */
        return;
    }
    if (!check_states(s, m, now))
        return;
    s->heard = now;
    s->refused = 0;
    if (m->kind == FL_MSG_VIEW)
        on_view(s, m, now);
    else if (m->kind == FL_MSG_CLOSE)
        on_close(s, m);
    else if (m->kind == FL_MSG_END)
        on_end(s, m);
    settle_server(s, now);
    if (m->kind != FL_MSG_CLOSE || was_closing || !s->closing)
        send_state(s, now);
}

/* --- messages of trainers --- */

static void from_trainer(fl_server *s, fl_peer from, const fl_msg *m,
                         int64_t now)
{
    fl_msg answer = answer_to(s, FL_MSG_ERROR, m);
    answer.code = FL_EPROTO;
    if (!fl_id_same(m->job, s->job->id)) {
        fl_outbox_wrong_job(s->out, from, m, s->job);
    } else if (m->kind != FL_MSG_PUSH && m->kind != FL_MSG_PULL) {
        fl_outbox_say(s->out, from, answer, "server %d: it takes no request %s",
                      s->index, fl_msg_name(m->kind));
    } else {
        const bool was_ending = s->ending;
        if (!serve_request(s, from, m, now))
            park_request(s, from, m, now);
        if (s->ending != was_ending)
            settle_server(s, now);
    }
}

/* --- the store --- */

static void finish_in_flight(fl_server *s)
{
    push_in_flight f = s->in_flight.at[0];
    const fl_msg m = {.session = f.session, .tag = f.tag};
    fl_remove(&s->in_flight, 0);
    s->given--;
    drop_blob(s, f.blob);
    s->version++;
    fl_steps_mark(s->steps, f.rank, f.step, f.part);
    s->changed = s->changed || !is_member(s, f.session); /* no window says so */
    if (s->interrupted.n && s->interrupted.at[0].seq == f.seq &&
        fl_id_same(s->interrupted.at[0].session, f.session))
        fl_remove(&s->interrupted, 0);
    for (int64_t i = s->half.n - 1; i >= 0; i--)
        if (s->half.at[i].seq == f.seq &&
            fl_id_same(s->half.at[i].session, f.session))
            fl_remove(&s->half, i);
    fl_outbox_send(s->out, f.from, answer_to(s, FL_MSG_ACK, &m));
}

/* --- time --- */

static int64_t silence_limit(const fl_server *s)
{
    return s->coordinator ? s->job->reach : s->job->start;
}

/* Whether the coordinator is silent: it has not come yet, or its views, which
 * come twice per lease, have stopped. */
static bool misses_coordinator(const fl_server *s, int64_t now)
{
    const int64_t silence = now - s->heard;
    return !s->ended && silence >= s->job->stall &&
           (!s->coordinator || silence >= s->job->lease);
}

static void report_stalls(fl_server *s, int64_t now)
{
    bool stalled = misses_coordinator(s, now);
    if (now < s->stalled + s->job->stall)
        return;
    for (int64_t i = 0; i < s->parked.n; i++)
        stalled |= now - s->parked.at[i].since >= s->job->stall;
    if (!stalled)
        return;
    s->stalled = now;
    fl_str rows = {0};
    fl_server_waits(s, now, &rows);
    fl_outbox_stalled(s->out, &rows);
    fl_str_fini(&rows);
}

/* End with an error: without the coordinator's decisions the parameters would
 * be wrong. */
static void give_up_coordinator(fl_server *s, int64_t limit)
{
    s->ending = false; /* an END whose decisions are missing is dropped */
    fail_server(s, "the coordinator has been silent for %.0f s",
                (double)limit / (double)FL_SEC);
}

/* Write "trainer 0 at server 1" to buf. */
static void name_of(const fl_server *s, fl_id session, char *buf, size_t size)
{
    const int rank = rank_of(s, session);
    if (rank < 0)
        snprintf(buf, size, "a newcomer at server %d", s->index);
    else
        snprintf(buf, size, "trainer %d at server %d", rank, s->index);
}

/* --- the machine --- */

fl_server *fl_server_new(const fl_job *job, int index, fl_state state,
                         const fl_store *store, fl_outbox *out, int64_t now)
{
    fl_server *s = fl_mem_alloc(sizeof *s);
    s->job = job;
    s->index = index;
    s->store = store;
    s->out = out;
    out->state = state;
    s->heard = s->ticked = s->stalled = now;
    s->steps = fl_steps_new(job->async ? job->trainers : 0);
    s->pushers = fl_pushers_new(job, store);
    return s;
}

void fl_server_free(fl_server *s)
{
    if (!s)
        return;
    while (s->parked.n)
        free_parked(s, s->parked.n - 1);
    while (s->ahead.n)
        free_decision(s, s->ahead.n - 1);
    fl_pushers_free(s->pushers);
    for (int64_t i = 0; i < s->in_flight.n; i++)
        drop_blob(s, s->in_flight.at[i].blob);
    for (int64_t i = 0; i < s->due.n; i++)
        s->store->keep.drop(s->store->keep.self, s->due.at[i].names);
    fl_mem_free(s->close.member);
    fl_steps_free(s->steps);
    fl_vec_fini(&s->due);
    fl_vec_fini(&s->interrupted);
    fl_vec_fini(&s->half);
    fl_vec_fini(&s->in_flight);
    fl_vec_fini(&s->parked);
    fl_vec_fini(&s->ahead);
    fl_vec_fini(&s->member);
    fl_vec_fini(&s->left);
    fl_mem_free(s);
}

/* --- what outlives the process --- */

static void visit_decision(fl_image *im, decision *d, int trainers)
{
    fl_image_count(im, &d->round, 0, INT64_MAX);
    fl_image_members(im, &d->member, &d->n, trainers);
}

static void visit_view(fl_image *im, fl_server *s)
{
    fl_member *member = s->member.at;
    int n = (int)s->member.n;
    fl_image_count(im, &s->view, 0, INT64_MAX);
    fl_image_members(im, &member, &n, s->job->trainers);
    if (!im->to) {
        fl_mem_free(s->member.at);
        s->member.at = member;
        s->member.n = n;
        s->member.cap = n + 1;
    }
    fl_image_vec(im, &s->left, s->job->trainers);
    for (int64_t i = 0; i < s->left.n; i++)
        fl_image_leave(im, &s->left.at[i], s->job->trainers);
}

static void visit_server(fl_image *im, fl_server *s)
{
    fl_image_word(im, &s->coordinator);
    fl_image_count(im, &s->out->generation, 0, INT64_MAX - 1);
    fl_image_count(im, &s->cut, 0, INT64_MAX - 1);
    fl_image_count(im, &s->version, 0, INT64_MAX - 1);
    visit_view(im, s);
    fl_steps_visit(s->steps, im);
    if (!s->job->async) /* else the store knows which pushes were applied */
        fl_pushers_visit(s->pushers, im);
    fl_image_bool(im, &s->closing);
    if (s->closing)
        visit_decision(im, &s->close, s->job->trainers);
    fl_image_vec(im, &s->ahead, AHEAD_MAX);
    for (int64_t i = 0; i < s->ahead.n; i++)
        visit_decision(im, &s->ahead.at[i], s->job->trainers);
    fl_image_bool(im, &s->ending);
    fl_image_bool(im, &s->ended);
    fl_image_bool(im, &s->confirmed);
    fl_image_int(im, &s->code, INT32_MIN, INT32_MAX);
    fl_image_any(im, &s->end_version);
    fl_image_text(im, s->sentence, sizeof s->sentence);
}

bool fl_server_changed(const fl_server *s)
{
    return s->changed;
}

void fl_server_image(fl_server *s, fl_str *to)
{
    fl_image im = fl_image_begin(to, FL_IMAGE_SERVER, s->job, s->index);
    const bool early = FL_PLANTED(VERFIRST) && s->closing;
    s->version += early;
    s->closing ^= early;
    visit_server(&im, s);
    s->version -= early;
    s->closing ^= early;
    fl_image_finish(&im);
    s->changed = false;
}

/* The endpoints of a job that goes on elsewhere differ. */
static fl_job any_job(const fl_server *s)
{
    return (fl_job){.servers = s->job->servers, .trainers = s->job->trainers};
}

/* Pushes that the store has been given are in the snapshot. */
static void begin_cut(fl_server *s)
{
    const fl_job any = any_job(s);
    fl_steps *given = fl_steps_dup(s->steps);
    fl_str bytes = {0};
    for (int64_t i = 0; i < s->given; i++) {
        const push_in_flight *f = &s->in_flight.at[i];
        fl_steps_mark(given, f->rank, f->step, f->part);
    }
    fl_image im = fl_image_begin(&bytes, FL_IMAGE_CUT, &any, s->index);
    fl_steps_visit(given, &im);
    fl_image_finish(&im);
    fl_steps_free(given);
    if (s->store->cut)
        s->store->cut(s->store->self, &(fl_moment){.number = s->due_cut,
                                                   .version = s->version,
                                                   .image = bytes.at,
                                                   .n = bytes.n});
    s->due_cut = 0;
    fl_str_fini(&bytes);
}

fl_err fl_server_rewind(fl_server *s, int64_t version, uint64_t coordinator,
                        const void *image, size_t n)
{
    const fl_job any = any_job(s);
    fl_image im;
    s->version = s->flushed = version;
    s->coordinator = coordinator;
    s->changed = true;
    if (!n)
        return FL_OK;
    FL_TRY(fl_image_open(&im, image, n, FL_IMAGE_CUT, &any, s->index));
    fl_steps_visit(s->steps, &im);
    return fl_image_check(&im);
}

void fl_server_written(fl_server *s, int64_t number, int64_t now)
{
    s->written = number;
    send_state(s, now);
}

int64_t fl_server_rewinds(const fl_server *s, int64_t *generation)
{
    *generation = s->next_generation;
    return s->rewind;
}

void fl_server_cannot_rewind(fl_server *s, const char *why, int64_t now)
{
    s->damaged = s->rewind;
    s->rewind = 0;
    snprintf(s->why_damaged, sizeof s->why_damaged, "%s", why);
    send_state(s, now);
}

/* Whether the store applies a push of the session. Its window must not be
 * forgotten before an image says that the push was applied. */
static bool is_in_flight(const void *server, fl_id session)
{
    const fl_server *s = server;
    bool is = false;
    for (int64_t i = 0; i < s->in_flight.n; i++)
        is |= fl_id_same(s->in_flight.at[i].session, session);
    return is;
}

void fl_server_flush(fl_server *s)
{
    fl_pushers_flush(s->pushers, is_in_flight, s);
    for (int64_t i = 0; i < s->due.n; i++) {
        const due_read *r = &s->due.at[i];
        s->store->read(s->store->self, r->names, r->to, &r->reply);
        s->store->keep.drop(s->store->keep.self, r->names);
    }
    s->due.n = 0;
    if (s->flushed != s->version && s->store->closed && !s->job->async)
        s->store->closed(s->store->self, s->version);
    s->flushed = s->version;
    if (s->due_cut && !s->interrupted.n && !s->half.n)
        begin_cut(s); /* else a part of a push is applied */
    if (s->due_apply)
        apply_round(s);
    while (s->given < s->in_flight.n) {
        const push_in_flight *f = &s->in_flight.at[s->given++];
        const fl_staged by = {.rank = f->rank,
                              .session = f->session,
                              .n = 1,
                              .part = &f->blob,
                              .last = f->last,
                              .seq = f->seq,
                              .step = f->step,
                              .first = f->seq - f->part + 1};
        s->store->apply(s->store->self, 0, &by, 1);
    }
}

fl_err fl_server_restore(fl_server *s, const void *image, size_t n, int64_t now)
{
    fl_image im;
    FL_TRY(fl_image_open(&im, image, n, FL_IMAGE_SERVER, s->job, s->index));
    visit_server(&im, s);
    im.bad = im.bad || (s->closing && s->close.round != s->version) ||
             (s->ended && !s->ending) || (s->confirmed && !s->ended);
    FL_TRY(fl_image_check(&im));
    s->due_apply = s->closing;
    s->flushed = s->version;
    s->left_at = s->ended_at = now;
    return FL_OK;
}

bool fl_server_restage(fl_server *s, const fl_push_id *id, fl_blob kept)
{
    const int rank = rank_of(s, id->session);
    if (id->round != s->version || id->seq < 1 || s->job->async ||
        (rank < 0 && !fl_pushers_find(s->pushers, id->session)))
        return false;
    return fl_pushers_restage(
        s->pushers, fl_pushers_add(s->pushers, id->session, rank), id, kept);
}

void fl_server_rewindow(fl_server *s, fl_id session, int rank, fl_window w,
                        int64_t step, int64_t first)
{
    fl_pushers_rewindow(s->pushers, session, rank, w);
    if (!step || rank < 0 || rank >= s->job->trainers)
        return;
    for (int64_t seq = first; fl_window_fits(&w, seq); seq++)
        if (fl_window_seen(&w, seq))
            fl_steps_mark(s->steps, rank, step, seq - first + 1);
}

void fl_server_interrupted(fl_server *s, fl_id session, int rank, int64_t seq)
{
    fl_pushers_add(s->pushers, session, rank);
    if (is_member(s, session))
        fl_push(&s->interrupted,
                (interrupted_push){session, rank, seq, s->heard});
    else /* the crash came before the store had forgotten it */
        fl_pushers_retain(s->pushers, s->member.at, s->member.n, true);
}

void fl_server_half_applied(fl_server *s, fl_id session, int64_t seq)
{
    if (is_member(s, session))
        fl_push(&s->half, (half_push){session, seq});
}

/* --- events --- */

void fl_server_recv(fl_server *s, fl_peer from, const fl_msg *m, int64_t now)
{
    if (from.kind == FL_PEER_CALL)
        from_trainer(s, from, m, now);
    else if (from.kind == FL_PEER_COORD && fl_id_same(m->job, s->job->id))
        from_coordinator(s, m, now);
}

bool fl_server_expects(const fl_server *s, const fl_msg *m)
{
    return fl_id_same(m->job, s->job->id) &&
           (is_member(s, m->session) || m->g > s->view);
}

void fl_server_applied(fl_server *s, const char *why, int64_t now)
{
    if (why)
        fail_server(s, "cannot apply gradients: %s", why);
    if (s->in_flight.n) {
        finish_in_flight(s);
    } else if (s->closing) {
        finish_close(s);
        send_state(s, now);
    }
    settle_server(s, now);
}

void fl_server_hangup(fl_server *s, uint64_t call)
{
    for (int64_t i = s->parked.n - 1; i >= 0; i--)
        if (s->parked.at[i].from.call == call)
            free_parked(s, i);
}

void fl_server_refused(fl_server *s, int64_t now)
{
    char text[FL_GONE_TEXT], first[96];
    if (s->ending || !s->coordinator || !fl_job_gone(s->job, &s->refused, now))
        return;
    fail_with(s, "%s, the coordinator, %s",
              fl_job_server(s->job, 0, first, sizeof first),
              fl_job_gone_text(s->job, text));
    settle_server(s, now);
}

void fl_server_tick(fl_server *s, int64_t now)
{
    const int64_t limit = silence_limit(s);
    if (now - s->ticked > s->job->lease / 3)
        s->heard += now - s->ticked; /* this process was stopped */
    s->ticked = now;
    if (!s->ended && now >= s->heard + limit)
        give_up_coordinator(s, limit);
    if (s->ending && !s->ended)
        settle_server(s, now);
    const bool tells =
        s->ended ? !s->confirmed
                 : !s->coordinator || !s->told || misses_coordinator(s, now);
    if (tells && now >= s->told + s->job->retry)
        send_state(s, now); /* the coordinator answers: it may not know that
                               this process is a new one */
    report_stalls(s, now);
}

bool fl_server_over(const fl_server *s, int64_t now, int *code)
{
    /* a coordinator that is away now, and comes back, asks for this server */
    const int64_t stays = s->code || s->confirmed || FL_PLANTED(LEAVEEARLY)
                              ? s->job->linger
                              : s->job->reach;
    if (!s->ended || now < s->ended_at + stays)
        return false;
    *code = s->code;
    return true;
}

bool fl_server_confirmed(const fl_server *s)
{
    return s->confirmed;
}

bool fl_server_leaves(fl_server *s)
{
    s->confirmed = s->ended;
    return s->ended;
}

void fl_server_quit(fl_server *s, const char *why, int64_t now)
{
    fail_with(s, "%s", why);
    settle_server(s, now);
}

bool fl_server_end(const fl_server *s, int *code, const char **why)
{
    if (s->ending) {
        *code = s->code;
        *why = s->sentence;
    }
    return s->ending;
}

/* The last VIEW of a job that runs out of trainers is empty; it may come after
 * END. An END without a version is due to something else. */
bool fl_server_lacks_trainers(const fl_server *s)
{
    return s->ending && s->end_version >= 0 && (!s->code || !s->member.n);
}

void fl_server_waits(const fl_server *s, int64_t now, fl_str *rows)
{
    char me[32], who[64], what[64], first[96];
    snprintf(me, sizeof me, "server %d", s->index);
    if (misses_coordinator(s, now))
        fl_wait_row(rows, me, fl_job_server(s->job, 0, first, sizeof first),
                    !s->coordinator ? "to come"
                    : s->refused    ? "a sign of life; it refuses connections"
                                    : "a sign of life",
                    now - s->heard, silence_limit(s));
    for (int64_t i = 0; i < s->parked.n; i++) {
        const parked_request *p = &s->parked.at[i];
        const bool view = p->msg.g > s->view;
        name_of(s, p->msg.session, who, sizeof who);
        snprintf(what, sizeof what, "%s %lld",
                 view ? "view" : "the decision that makes version",
                 (long long)(view ? p->msg.g : p->msg.round));
        /* each message of the coordinator extends the limit */
        fl_wait_row(rows, who, "the coordinator", what, now - p->since,
                    s->heard + s->job->reach - now);
    }
    for (int64_t i = 0; i < s->interrupted.n; i++) {
        const interrupted_push *h = &s->interrupted.at[i];
        snprintf(who, sizeof who, "trainer %d", h->rank);
        snprintf(what, sizeof what,
                 "to send push %lld again, which is applied in part",
                 (long long)h->seq);
        fl_wait_row(rows, me, who, what, now - h->since, 0);
    }
    if (s->ending && !s->ended) {
        snprintf(what, sizeof what, "version %lld before it ends",
                 (long long)s->end_version);
        fl_wait_row(rows, me, "the coordinator", what, now - s->heard,
                    s->job->reach);
    }
}

int64_t fl_server_version(const fl_server *s)
{
    return s->version;
}

uint64_t fl_server_coordinator(const fl_server *s)
{
    return s->coordinator;
}

int64_t fl_server_view(const fl_server *s)
{
    return s->view;
}

int fl_server_members(const fl_server *s)
{
    return (int)s->member.n;
}

bool fl_server_ended(const fl_server *s)
{
    return s->ended;
}

int fl_server_parked(const fl_server *s)
{
    return (int)s->parked.n;
}

size_t fl_server_bytes(const fl_server *s)
{
    return bytes_of(s);
}

int fl_server_seats(const fl_server *s)
{
    return fl_pushers_count(s->pushers);
}
