/* server_stage.c - pushes are staged, and a round is closed from them.
 *
 * Easy to get wrong: staged blocks outlive the view that drops their session,
 * because the decision may have been made before the loss. A view says which
 * round was open when it was made; only what is staged for that round or a
 * later one can be in no decision any more. */
#include "protocol/server_in.h"

fl_seat *fl_server_seat(const fl_server *s, fl_id session)
{
    for (int64_t i = 0; i < s->seat.n; i++)
        if (fl_id_same(s->seat.at[i].session, session))
            return &s->seat.at[i];
    return NULL;
}

static int rank_of(const fl_server *s, fl_id session)
{
    for (int64_t i = 0; i < s->member.n; i++)
        if (fl_id_same(s->member.at[i].session, session))
            return s->member.at[i].rank;
    return -1;
}

static fl_seat *seat_for(fl_server *s, fl_id session)
{
    fl_seat *old = fl_server_seat(s, session);
    if (old)
        return old;
    fl_seat seat = {.session = session, .rank = rank_of(s, session)};
    seat.shard = fl_mem_alloc((size_t)s->job->shards * sizeof *seat.shard);
    fl_push(&s->seat, seat);
    return &s->seat.at[s->seat.n - 1];
}

static void drop_blob(fl_server *s, fl_blob b)
{
    s->bytes -= b.size;
    s->store->keep.drop(s->store->keep.self, b);
}

/* What is staged goes; the window stays. */
static void clear_stage(fl_server *s, fl_staging *st)
{
    for (int64_t i = 0; i < st->part.n; i++)
        drop_blob(s, st->part.at[i]);
    st->part.n = st->seq.n = 0;
    st->count = 0;
}

static void free_seat(fl_server *s, int64_t i)
{
    fl_seat *seat = &s->seat.at[i];
    for (int k = 0; k < s->job->shards; k++) {
        clear_stage(s, &seat->shard[k]);
        fl_vec_fini(&seat->shard[k].part);
        fl_vec_fini(&seat->shard[k].seq);
    }
    fl_mem_free(seat->shard);
    fl_remove(&s->seat, i);
}

void fl_server_free_seats(fl_server *s)
{
    while (s->seat.n)
        free_seat(s, s->seat.n - 1);
}

void fl_server_drop_seats(fl_server *s, int64_t open)
{
    const bool undecided = s->job->async || (open <= s->version && !s->closing);
    for (int64_t i = s->seat.n - 1; i >= 0; i--) {
        if (rank_of(s, s->seat.at[i].session) >= 0)
            continue;
        s->seat.at[i].gone = true;
        if (undecided)
            free_seat(s, i);
    }
}

/* --- a push --- */

static void refuse(fl_server *s, fl_peer to, const fl_msg *m, fl_err code,
                   const char *why)
{
    fl_msg answer = fl_server_answer(s, FL_MSG_ERROR, m);
    answer.code = (int)code;
    fl_outbox_say(s->out, to, answer, "%s", why);
}

/* What can be wrong with a push whatever the state; NULL: nothing. */
static const char *flaw(const fl_server *s, const fl_msg *m)
{
    if (m->shard < 0 || m->shard >= s->job->shards)
        return "push: there is no such shard";
    if (m->seq < 1)
        return "push: numbers begin at 1";
    if (m->count < 0 || m->count > s->job->max_parts || m->round < 0)
        return "push: a count or round is out of range";
    return NULL;
}

static fl_blob keep(fl_server *s, fl_blob b)
{
    s->bytes += b.size;
    return s->store->keep.keep(s->store->keep.self, b);
}

static void stage(fl_server *s, fl_staging *st, const fl_msg *m)
{
    int64_t at = st->seq.n;
    while (at > 0 && st->seq.at[at - 1] > m->seq)
        at--;
    fl_insert(&st->seq, at, m->seq);
    fl_insert(&st->part, at, keep(s, m->blob));
    if (m->count)
        st->count = m->count;
}

static void fly(fl_server *s, fl_peer from, const fl_msg *m)
{
    fl_flying f = {m->session, m->seq, m->tag, from, keep(s, m->blob)};
    fl_staged by = {rank_of(s, m->session), m->session, 1, &f.blob,
                    m->count > 0};
    fl_push(&s->shard[m->shard].flying, f);
    s->store->apply(s->store->self, m->shard, 0, &by, 1);
}

/* A repeat. One that is still being applied is answered when that is over. */
static void again(fl_server *s, fl_peer from, const fl_msg *m)
{
    fl_shard *shard = &s->shard[m->shard];
    for (int64_t i = 0; i < shard->flying.n; i++) {
        fl_flying *f = &shard->flying.at[i];
        if (f->seq != m->seq || !fl_id_same(f->session, m->session))
            continue;
        fl_msg old = {.session = f->session, .tag = f->tag};
        fl_outbox_say(s->out, f->from, fl_server_answer(s, FL_MSG_PARKED, &old),
                      "the push is being applied");
        f->from = from;
        f->tag = m->tag;
        return;
    }
    fl_outbox_send(s->out, from, fl_server_answer(s, FL_MSG_ACK, m));
}

static fl_err check_push(fl_server *s, const fl_staging *st, const fl_msg *m)
{
    if (!fl_window_fits(&st->window, m->seq))
        return fl_fail(FL_EPROTO, "push: number %lld, the window ends at %lld",
                       (long long)m->seq,
                       (long long)st->window.base + FL_WINDOW);
    if (st->part.n >= s->job->max_parts)
        return fl_fail(FL_EPROTO, "push: more than %d in a round",
                       s->job->max_parts);
    if (m->blob.size > s->job->max_staged - s->bytes)
        return fl_fail(FL_ENOMEM,
                       "push: no room for %zu bytes: %zu are staged of at most "
                       "%zu at a server (FLUID_STAGED); set more, or start "
                       "more servers",
                       m->blob.size, s->bytes, s->job->max_staged);
    const fl_staged by = {rank_of(s, m->session), m->session, 1, &m->blob,
                          m->count > 0};
    const fl_err err = s->store->check(s->store->self, m->shard, &by);
    return err ? fl_fail_at(err, "trainer %d", by.rank) : FL_OK;
}

static bool seen(const fl_server *s, const fl_staging *st, int64_t seq)
{
    return s->job->plant != FL_PLANT_DUPLICATE &&
           fl_window_fits(&st->window, seq) && fl_window_seen(&st->window, seq);
}

/* The session is a member. */
void fl_server_push(fl_server *s, fl_peer from, const fl_msg *m, int64_t now)
{
    const char *wrong = flaw(s, m);
    if (wrong) {
        refuse(s, from, m, FL_EPROTO, wrong);
        return;
    }
    fl_staging *st = &seat_for(s, m->session)->shard[m->shard];
    const int64_t open = s->version + s->closing;
    if (seen(s, st, m->seq)) {
        again(s, from, m);
    } else if (!s->job->async && m->round < open) {
        fl_server_fence(s, from, m, now); /* closed without it */
    } else if (!s->job->async && m->round > s->version) {
        refuse(s, from, m, FL_EPROTO, "push: its round is not open yet");
        fl_server_fault(s, now, "trainer %d pushed round %lld, version is %lld",
                        rank_of(s, m->session), (long long)m->round,
                        (long long)s->version);
    } else {
        fl_err err = check_push(s, st, m);
        if (err) {
            refuse(s, from, m, err, fl_errmsg());
            return;
        }
        if (!fl_window_seen(&st->window, m->seq))
            fl_window_mark(&st->window, m->seq);
        if (s->job->async) {
            fly(s, from, m);
            return;
        }
        stage(s, st, m);
        fl_outbox_send(s->out, from, fl_server_answer(s, FL_MSG_ACK, m));
    }
}

/* --- closing --- */

static bool fully_staged(const fl_server *s, const fl_member *who, int shard)
{
    const fl_seat *seat = fl_server_seat(s, who->session);
    if (!seat)
        return false;
    const fl_staging *st = &seat->shard[shard];
    if (s->job->plant == FL_PLANT_DUPLICATE)
        return st->count && st->part.n >= st->count;
    return st->count && st->part.n == st->count;
}

static bool named(const fl_close *c, fl_id session)
{
    for (int i = 0; i < c->n; i++)
        if (fl_id_same(c->member[i].session, session))
            return true;
    return false;
}

/* The participants' gradients for one shard, by rank. */
static int gather(fl_server *s, const fl_close *c, int shard, fl_staged *by)
{
    int n = 0;
    for (int64_t i = 0; i < s->seat.n; i++) {
        const fl_seat *seat = &s->seat.at[i];
        const fl_staging *st = &seat->shard[shard];
        if (!named(c, seat->session))
            continue;
        int at = n++;
        for (; at > 0 && by[at - 1].rank > seat->rank &&
               s->job->plant != FL_PLANT_ARRIVAL;
             at--)
            by[at] = by[at - 1];
        by[at] = (fl_staged){seat->rank, seat->session, (int)st->part.n,
                             st->part.at, true};
    }
    return n;
}

void fl_server_begin_close(fl_server *s, const fl_close *c, int64_t now)
{
    for (int k = 0; k < s->job->shards; k++)
        for (int i = 0; i < c->n; i++)
            if (!fully_staged(s, &c->member[i], k)) {
                fl_server_fault(s, now,
                                "round %lld is to close with trainer %d, whose "
                                "gradients are not all here (shard %d)",
                                (long long)c->round, c->member[i].rank, k);
                return;
            }
    s->closing = true;
    fl_staged *by = fl_mem_alloc((size_t)(c->n + 1) * sizeof *by);
    for (int k = 0; k < s->job->shards; k++) {
        s->shard[k].applying = true;
        s->store->apply(s->store->self, k, c->round, by, gather(s, c, k, by));
    }
    fl_mem_free(by);
}

void fl_server_finish_close(fl_server *s)
{
    for (int64_t i = s->seat.n - 1; i >= 0; i--) {
        fl_seat *seat = &s->seat.at[i];
        for (int k = 0; k < s->job->shards; k++)
            clear_stage(s, &seat->shard[k]);
        if (seat->gone)
            free_seat(s, i);
    }
    s->closing = false;
    s->version++;
}
