/* server.c - a shard server's events: fencing, parking, views, CLOSE, END.
 *
 * A request meets three doors: the end, the view, the version. One that must
 * wait is parked and goes through all three again at each view, CLOSE and END,
 * so that none is forgotten. */
#include "protocol/server_in.h"

#include <stdarg.h>
#include <stdio.h>

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
    s->shard = fl_mem_alloc((size_t)job->shards * sizeof *s->shard);
    return s;
}

static void free_parked(fl_server *s, int64_t i)
{
    fl_blob b = s->parked.at[i].msg.blob;
    s->bytes -= b.size;
    s->store->keep.drop(s->store->keep.self, b);
    fl_remove(&s->parked, i);
}

static void free_close(fl_server *s, int64_t i)
{
    fl_mem_free(s->ahead.at[i].member);
    fl_remove(&s->ahead, i);
}

void fl_server_free(fl_server *s)
{
    if (!s)
        return;
    while (s->parked.n)
        free_parked(s, s->parked.n - 1);
    while (s->ahead.n)
        free_close(s, s->ahead.n - 1);
    fl_server_free_seats(s);
    for (int k = 0; k < s->job->shards; k++) {
        fl_shard *shard = &s->shard[k];
        for (int64_t i = 0; i < shard->flying.n; i++)
            s->store->keep.drop(s->store->keep.self, shard->flying.at[i].blob);
        fl_vec_fini(&shard->flying);
    }
    fl_vec_fini(&s->parked);
    fl_vec_fini(&s->ahead);
    fl_vec_fini(&s->seat);
    fl_vec_fini(&s->member);
    fl_vec_fini(&s->left);
    fl_mem_free(s->shard);
    fl_mem_free(s);
}

int64_t fl_server_version(const fl_server *s)
{
    return s->version;
}

int64_t fl_server_view(const fl_server *s)
{
    return s->view;
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
    return s->bytes;
}

int fl_server_seats(const fl_server *s)
{
    return (int)s->seat.n;
}

/* --- answers --- */

fl_msg fl_server_answer(const fl_server *s, fl_msg_kind kind, const fl_msg *m)
{
    return (fl_msg){.kind = kind,
                    .job = s->job->id,
                    .session = m->session,
                    .tag = m->tag,
                    .view = s->view,
                    .round = s->version,
                    .state = s->out->state,
                    .server = s->index};
}

void fl_server_state(fl_server *s, int64_t now)
{
    s->told = now;
    fl_outbox_send(s->out, (fl_peer){FL_PEER_COORD, 0, 0},
                   (fl_msg){.kind = FL_MSG_STATE,
                            .job = s->job->id,
                            .server = s->index,
                            .view = s->view,
                            .round = s->job->async ? 0 : s->version,
                            .over = s->ended,
                            .code = s->ended ? s->code : 0,
                            .text = s->ended ? s->sentence : NULL});
}

void fl_server_fence(fl_server *s, fl_peer to, const fl_msg *m, int64_t now)
{
    char why[128];
    fl_msg answer = fl_server_answer(s, FL_MSG_FENCED, m);
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
    fl_msg answer = fl_server_answer(s, FL_MSG_END, m);
    answer.code = s->code;
    answer.round = s->end_version;
    fl_outbox_say(s->out, to, answer, "%s", s->sentence);
}

/* The first failure is the one that counts. */
static void fail(fl_server *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void fail(fl_server *s, const char *fmt, ...)
{
    va_list ap;
    if (s->ending)
        return;
    va_start(ap, fmt);
    vsnprintf(s->sentence, sizeof s->sentence, fmt, ap);
    va_end(ap);
    s->ending = true;
    s->code = 1;
    s->end_version = -1;
    fl_outbox_note(s->out, "%s", s->sentence);
}

void fl_server_fault(fl_server *s, int64_t now, const char *fmt, ...)
{
    va_list ap;
    char text[FL_SENTENCE_MAX], name[96];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fail(s, "%s: %s", fl_job_server(s->job, s->index, name, sizeof name), text);
}

void fl_server_quit(fl_server *s, const char *why, int64_t now)
{
    fail(s, "%s", why);
    fl_server_settle(s, now);
}

bool fl_server_end(const fl_server *s, int *code, const char **why)
{
    if (s->ending) {
        *code = s->code;
        *why = s->sentence;
    }
    return s->ending;
}

/* --- requests --- */

static bool is_member(const fl_server *s, fl_id session)
{
    for (int64_t i = 0; i < s->member.n; i++)
        if (fl_id_same(s->member.at[i].session, session))
            return true;
    return false;
}

bool fl_server_expects(const fl_server *s, const fl_msg *m)
{
    return fl_id_same(m->job, s->job->id) &&
           (is_member(s, m->session) || m->g > s->view);
}

static void read_values(fl_server *s, fl_peer from, const fl_msg *m)
{
    const fl_msg reply = fl_server_answer(s, FL_MSG_VALUES, m);
    s->store->read(s->store->self, m->blob, from, &reply);
}

/* Gradients that do not fit now may fit when others were applied. A round that
 * does not fit as a whole never will: that is an error. */
static bool waits_for_room(const fl_server *s, const fl_msg *m)
{
    const bool frees = s->job->async ? s->bytes > 0 : s->closing;
    return frees && m->blob.size <= s->job->max_staged &&
           m->blob.size > s->job->max_staged - s->bytes;
}

/* Answer the request, or return false: it must wait. */
static bool serve(fl_server *s, fl_peer from, const fl_msg *m, int64_t now)
{
    const int64_t open = s->version + s->closing;
    if (s->ending) {
        say_end(s, from, m);
    } else if (!is_member(s, m->session)) {
        if (m->g > s->view)
            return false;
        fl_server_fence(s, from, m, now);
    } else if (m->kind == FL_MSG_PUSH) {
        if (waits_for_room(s, m))
            return false;
        fl_server_push(s, from, m, now);
    } else if (s->job->async || (m->round == open && !s->closing)) {
        read_values(s, from, m);
    } else if (m->round >= open) {
        return false;
    } else {
        fl_server_fence(s, from, m, now);
    }
    return true;
}

static void say_parked(fl_server *s, fl_peer to, const fl_msg *m)
{
    if (m->kind == FL_MSG_PUSH && m->g <= s->view) {
        fl_outbox_say(s->out, to, fl_server_answer(s, FL_MSG_PARKED, m),
                      "server %d waits for room: %zu bytes are staged of at "
                      "most %zu",
                      s->index, s->bytes, s->job->max_staged);
        return;
    }
    fl_outbox_say(s->out, to, fl_server_answer(s, FL_MSG_PARKED, m),
                  m->g > s->view ? "server %d waits for view %lld, has %lld"
                                 : "server %d waits for version %lld, has %lld",
                  s->index, (long long)(m->g > s->view ? m->g : m->round),
                  (long long)(m->g > s->view ? s->view : s->version));
}

static void park(fl_server *s, fl_peer from, const fl_msg *m, int64_t now)
{
    for (int64_t i = 0; i < s->parked.n; i++) {
        fl_parked *p = &s->parked.at[i];
        if (p->msg.tag != m->tag || !fl_id_same(p->msg.session, m->session))
            continue;
        if (p->from.call != from.call)
            say_parked(s, p->from, &p->msg); /* a newer call has its place */
        p->from = from;
        return;
    }
    if (s->parked.n >= s->job->max_parked ||
        m->blob.size > s->job->max_staged - s->bytes) {
        say_parked(s, from, m); /* no room: it asks again */
        return;
    }
    fl_parked p = {from, *m, now};
    s->bytes += m->blob.size;
    p.msg.blob = s->store->keep.keep(s->store->keep.self, m->blob);
    p.msg.text = p.msg.about = NULL;
    p.msg.member = NULL;
    p.msg.left = NULL;
    p.msg.seen = NULL;
    p.msg.n_member = p.msg.n_left = p.msg.n_seen = 0;
    fl_push(&s->parked, p);
}

static void look_again(fl_server *s, int64_t now)
{
    for (int64_t i = 0; i < s->parked.n;) {
        fl_parked p = s->parked.at[i];
        s->bytes -= p.msg.blob.size; /* it needs no room beside itself */
        const bool served = serve(s, p.from, &p.msg, now);
        s->bytes += p.msg.blob.size;
        if (served)
            free_parked(s, i);
        else
            i++;
    }
}

void fl_server_hangup(fl_server *s, uint64_t call)
{
    for (int64_t i = s->parked.n - 1; i >= 0; i--)
        if (s->parked.at[i].from.call == call)
            free_parked(s, i);
}

/* --- from the coordinator --- */

static void on_view(fl_server *s, const fl_msg *m, int64_t now)
{
    if (m->view <= s->view)
        return; /* acknowledged and ignored */
    s->view = m->view;
    s->member.n = s->left.n = 0;
    for (int i = 0; i < m->n_member; i++)
        fl_push(&s->member, m->member[i]);
    for (int i = 0; i < m->n_left; i++)
        fl_push(&s->left, m->left[i]);
    s->left_at = now;
    fl_server_drop_seats(s, m->round);
}

static void on_close(fl_server *s, const fl_msg *m)
{
    const int64_t done = s->version + s->closing;
    if (m->round < done || s->ahead.n >= FL_AHEAD_MAX)
        return;
    for (int64_t i = 0; i < s->ahead.n; i++)
        if (s->ahead.at[i].round == m->round)
            return;
    fl_close c = {.round = m->round, .n = m->n_member};
    c.member = fl_mem_alloc((size_t)(c.n + 1) * sizeof *c.member);
    if (c.n)
        memcpy(c.member, m->member, (size_t)c.n * sizeof *c.member);
    fl_push(&s->ahead, c);
}

static void on_end(fl_server *s, const fl_msg *m)
{
    if (s->ending)
        return;
    s->ending = true;
    s->code = m->code;
    s->end_version = m->round;
    snprintf(s->sentence, sizeof s->sentence, "%s", m->text ? m->text : "");
}

static void close_next(fl_server *s, int64_t now)
{
    for (int64_t i = 0; i < s->ahead.n && !s->closing; i++) {
        fl_close c = s->ahead.at[i];
        if (c.round == s->version) {
            fl_remove(&s->ahead, i);
            fl_server_begin_close(s, &c, now);
            fl_mem_free(c.member);
            return;
        }
    }
}

static bool busy(const fl_server *s)
{
    for (int k = 0; k < s->job->shards; k++)
        if (s->shard[k].applying || s->shard[k].flying.n)
            return true;
    return false;
}

static void end_if_due(fl_server *s, int64_t now)
{
    const bool reached = s->job->async || s->version >= s->end_version;
    if (!s->ending || s->ended || !reached || busy(s))
        return;
    s->ended = true;
    s->ended_at = now;
    fl_server_state(s, now);
}

void fl_server_settle(fl_server *s, int64_t now)
{
    look_again(s, now);
    if (!s->ended)
        close_next(s, now);
    look_again(s, now); /* a fault may have begun the end */
    end_if_due(s, now);
}

/* Members by rank, each rank of the job and only once. */
static bool sane(const fl_server *s, const fl_msg *m)
{
    if (m->n_member < 0 || m->n_member > s->job->trainers || m->n_left < 0 ||
        m->n_left > s->job->trainers)
        return false;
    for (int i = 0; i < m->n_member; i++)
        if (m->member[i].rank < (i ? m->member[i - 1].rank + 1 : 0) ||
            m->member[i].rank >= s->job->trainers)
            return false;
    return true;
}

static void from_coordinator(fl_server *s, const fl_msg *m, int64_t now)
{
    if (!sane(s, m))
        return;
    if (fl_job_lost(s->job, m->expected, s->out->state.id))
        fl_server_fault(s, now,
                        "it was started again and has lost its "
                        "parameters");
    if (m->kind != FL_MSG_END) {
        if (fl_job_lost(s->job, s->coordinator, m->state.id))
            fl_server_fault(s, now,
                            "the coordinator was started again and has "
                            "lost who was a member");
        s->coordinator = m->state.id;
    }
    s->heard = now;
    s->refused = 0;
    if (m->kind == FL_MSG_VIEW)
        on_view(s, m, now);
    else if (m->kind == FL_MSG_CLOSE)
        on_close(s, m);
    else if (m->kind == FL_MSG_END)
        on_end(s, m);
    fl_server_settle(s, now);
    fl_server_state(s, now);
}

static void from_trainer(fl_server *s, fl_peer from, const fl_msg *m,
                         int64_t now)
{
    fl_msg answer = fl_server_answer(s, FL_MSG_ERROR, m);
    answer.code = FL_EPROTO;
    if (!fl_id_same(m->job, s->job->id)) {
        fl_outbox_wrong_job(s->out, from, m, s->job);
    } else if (m->kind != FL_MSG_PUSH && m->kind != FL_MSG_PULL) {
        fl_outbox_say(s->out, from, answer, "server %d: no request %s",
                      s->index, fl_msg_name(m->kind));
    } else {
        const bool was_ending = s->ending;
        if (!serve(s, from, m, now))
            park(s, from, m, now);
        if (s->ending != was_ending)
            fl_server_settle(s, now);
    }
}

void fl_server_recv(fl_server *s, fl_peer from, const fl_msg *m, int64_t now)
{
    if (from.kind == FL_PEER_CALL)
        from_trainer(s, from, m, now);
    else if (from.kind == FL_PEER_COORD && fl_id_same(m->job, s->job->id))
        from_coordinator(s, m, now);
}

/* --- from the store --- */

static void landed(fl_server *s, fl_shard *shard)
{
    fl_flying f = shard->flying.at[0];
    const fl_msg m = {.session = f.session, .tag = f.tag};
    fl_remove(&shard->flying, 0);
    s->bytes -= f.blob.size;
    s->store->keep.drop(s->store->keep.self, f.blob);
    s->version++;
    fl_outbox_send(s->out, f.from, fl_server_answer(s, FL_MSG_ACK, &m));
}

void fl_server_applied(fl_server *s, int shard, const char *why, int64_t now)
{
    fl_shard *sh = &s->shard[shard];
    if (why)
        fl_server_fault(s, now, "cannot apply gradients: %s", why);
    if (sh->flying.n)
        landed(s, sh);
    sh->applying = false;
    if (s->closing && !busy(s)) {
        fl_server_finish_close(s);
        fl_server_state(s, now);
    }
    fl_server_settle(s, now);
}

/* --- time --- */

static int64_t limit_of(const fl_server *s)
{
    return s->coordinator ? s->job->reach : s->job->start;
}

/* Its views come twice per lease, once it is there. */
static bool misses_coordinator(const fl_server *s, int64_t now)
{
    const int64_t silence = now - s->heard;
    return !s->ended && silence >= s->job->stall &&
           (!s->coordinator || silence >= s->job->lease);
}

static void report(fl_server *s, int64_t now)
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

/* No word from the coordinator: the result would not be right. */
static void give_up(fl_server *s, int64_t now, int64_t limit)
{
    s->ending = false; /* an END whose decisions never came */
    fl_server_fault(s, now, "the coordinator is silent for %.0f s",
                    (double)limit / (double)FL_SEC);
}

void fl_server_refused(fl_server *s, int64_t now)
{
    char text[FL_GONE_TEXT], first[96];
    if (s->ending || !s->coordinator || !fl_job_gone(s->job, &s->refused, now))
        return;
    fail(s, "%s, the coordinator, %s",
         fl_job_server(s->job, 0, first, sizeof first),
         fl_job_gone_text(s->job, text));
    fl_server_settle(s, now);
}

void fl_server_tick(fl_server *s, int64_t now)
{
    const int64_t limit = limit_of(s);
    if (now - s->ticked > s->job->lease / 3)
        s->heard += now - s->ticked; /* this process slept */
    s->ticked = now;
    if (!s->ended && now >= s->heard + limit)
        give_up(s, now, limit);
    if (s->ending && !s->ended)
        fl_server_settle(s, now);
    const bool tells = s->ended || misses_coordinator(s, now);
    if (tells && now >= s->told + s->job->retry)
        fl_server_state(s, now); /* its answer tells if the coordinator lives */
    report(s, now);
}

bool fl_server_over(const fl_server *s, int64_t now, int *code)
{
    if (!s->ended || now < s->ended_at + s->job->linger)
        return false;
    *code = s->code;
    return true;
}

/* "trainer 0 at server 1" into buf. */
static void name_of(const fl_server *s, fl_id session, char *buf, size_t size)
{
    snprintf(buf, size, "a newcomer at server %d", s->index);
    for (int64_t i = 0; i < s->member.n; i++)
        if (fl_id_same(s->member.at[i].session, session))
            snprintf(buf, size, "trainer %d at server %d", s->member.at[i].rank,
                     s->index);
}

void fl_server_waits(const fl_server *s, int64_t now, fl_str *rows)
{
    char me[32], who[64], what[64], first[96];
    snprintf(me, sizeof me, "server %d", s->index);
    if (misses_coordinator(s, now))
        fl_wait_row(rows, me, fl_job_server(s->job, 0, first, sizeof first),
                    s->coordinator ? "a sign of life" : "to come",
                    now - s->heard, limit_of(s));
    for (int64_t i = 0; i < s->parked.n; i++) {
        const fl_parked *p = &s->parked.at[i];
        const bool view = p->msg.g > s->view;
        name_of(s, p->msg.session, who, sizeof who);
        snprintf(what, sizeof what, "%s %lld",
                 view ? "view" : "the decision that makes version",
                 (long long)(view ? p->msg.g : p->msg.round));
        /* each word of the coordinator moves the limit on */
        fl_wait_row(rows, who, "the coordinator", what, now - p->since,
                    s->heard + s->job->reach - now);
    }
    if (s->ending && !s->ended) {
        snprintf(what, sizeof what, "version %lld before it ends",
                 (long long)s->end_version);
        fl_wait_row(rows, me, "the coordinator", what, now - s->heard,
                    s->job->reach);
    }
}
