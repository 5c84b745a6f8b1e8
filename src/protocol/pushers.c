/* SPDX-License-Identifier: Apache-2.0 */
/* pushers.c - windows and staged pushes, by session.
 *
 * Easy to get wrong: a pusher that is no member any more is only gone, not
 * forgotten, while a decision may name it. Its window and what it has staged
 * stay until the round is closed. */
#include "protocol/pushers.h"
#include "protocol/plant.h"

struct fl_pusher {
    fl_id session;
    int rank;
    bool gone; /* not a member any more; kept because a decision may name it */
    fl_window window;     /* sequence numbers seen in all rounds */
    FL_VEC(fl_blob) part; /* staged pushes, sorted by seq */
    FL_VEC(int64_t) seq;  /* sequence number of each part */
    int64_t
        count; /* pushes of the round; 0: unknown until the last one comes */
};

struct fl_pushers {
    const fl_job *job;
    const fl_store *store;
    FL_VEC(fl_pusher) pusher; /* in order of their first push */
    FL_VEC(fl_id) forgotten;  /* sessions that the store is told to forget */
    size_t bytes;             /* of staged pushes */
};

fl_pushers *fl_pushers_new(const fl_job *job, const fl_store *store)
{
    fl_pushers *ps = fl_mem_alloc(sizeof *ps);
    ps->job = job;
    ps->store = store;
    return ps;
}

/* Drop the staged pushes of a session. Its window stays. */
static void clear_stage(fl_pushers *ps, fl_pusher *p)
{
    for (int64_t i = 0; i < p->part.n; i++) {
        ps->bytes -= p->part.at[i].size;
        ps->store->keep.drop(ps->store->keep.self, p->part.at[i]);
    }
    p->part.n = p->seq.n = 0;
    p->count = 0;
}

static void free_pusher(fl_pushers *ps, int64_t i)
{
    fl_pusher *p = &ps->pusher.at[i];
    clear_stage(ps, p);
    fl_vec_fini(&p->part);
    fl_vec_fini(&p->seq);
    fl_remove(&ps->pusher, i);
}

void fl_pushers_free(fl_pushers *ps)
{
    if (!ps)
        return;
    while (ps->pusher.n)
        free_pusher(ps, ps->pusher.n - 1);
    fl_vec_fini(&ps->pusher);
    fl_vec_fini(&ps->forgotten);
    fl_mem_free(ps);
}

int fl_pushers_count(const fl_pushers *ps)
{
    return (int)ps->pusher.n;
}

size_t fl_pushers_bytes(const fl_pushers *ps)
{
    return ps->bytes;
}

fl_pusher *fl_pushers_find(const fl_pushers *ps, fl_id session)
{
    for (int64_t i = 0; i < ps->pusher.n; i++)
        if (fl_id_same(ps->pusher.at[i].session, session))
            return &ps->pusher.at[i];
    return NULL;
}

fl_pusher *fl_pushers_add(fl_pushers *ps, fl_id session, int rank)
{
    fl_pusher *old = fl_pushers_find(ps, session);
    if (old)
        return old;
    fl_pusher p = {.session = session, .rank = rank};
    fl_push(&ps->pusher, p);
    return &ps->pusher.at[ps->pusher.n - 1];
}

/* --- a push comes --- */

bool fl_pusher_has_seen(const fl_pusher *p, int64_t seq)
{
    return !FL_PLANTED(DUPLICATE) && fl_window_fits(&p->window, seq) &&
           fl_window_seen(&p->window, seq);
}

fl_err fl_pushers_check(const fl_pushers *ps, const fl_pusher *p, int64_t seq)
{
    if (!fl_window_fits(&p->window, seq))
        return fl_fail(FL_EPROTO,
                       "push: its number is %lld, expected 1 to %lld",
                       (long long)seq, (long long)p->window.base + FL_WINDOW);
    if (p->part.n >= ps->job->max_parts)
        return fl_fail(FL_EPROTO,
                       "push: a round has at most %d pushes of a trainer, this "
                       "is one more",
                       ps->job->max_parts);
    return FL_OK;
}

void fl_pusher_mark(fl_pusher *p, int64_t seq)
{
    if (!fl_window_seen(&p->window, seq))
        fl_window_mark(&p->window, seq);
}

static void insert_part(fl_pushers *ps, fl_pusher *p, const fl_push_id *id,
                        fl_blob kept)
{
    int64_t at = p->seq.n;
    while (at > 0 && p->seq.at[at - 1] > id->seq)
        at--;
    fl_insert(&p->seq, at, id->seq);
    fl_insert(&p->part, at, kept);
    if (id->count)
        p->count = id->count;
    ps->bytes += kept.size;
}

void fl_pushers_stage(fl_pushers *ps, fl_pusher *p, const fl_msg *m)
{
    const fl_push_id id = {p->session, p->rank, m->seq, m->round, m->count};
    const fl_store *to = ps->store;
    if (!to->stage || FL_PLANTED(ACKEARLY) || FL_PLANTED(WINFIRST))
        insert_part(ps, p, &id, to->keep.keep(to->keep.self, m->blob));
    else
        insert_part(ps, p, &id, to->stage(to->self, &id, m->blob));
}

bool fl_pushers_restage(fl_pushers *ps, fl_pusher *p, const fl_push_id *id,
                        fl_blob kept)
{
    if (!fl_window_fits(&p->window, id->seq))
        return false;
    if (!FL_PLANTED(NOREMARK))
        fl_pusher_mark(p, id->seq);
    insert_part(ps, p, id, kept);
    return true;
}

void fl_pushers_rewindow(fl_pushers *ps, fl_id session, int rank, fl_window w)
{
    fl_pusher *p = fl_pushers_add(ps, session, rank);
    p->rank = rank; /* a view may not have come */
    p->window = w;
}

/* --- a round closes --- */

bool fl_pushers_have_all(const fl_pushers *ps, fl_id session)
{
    const fl_pusher *p = fl_pushers_find(ps, session);
    if (!p)
        return false;
    if (FL_PLANTED(DUPLICATE))
        return p->count && p->part.n >= p->count;
    return p->count && p->part.n == p->count;
}

static bool is_among(const fl_member *member, int64_t n, fl_id session)
{
    for (int64_t i = 0; i < n; i++)
        if (fl_id_same(member[i].session, session))
            return true;
    return false;
}

int fl_pushers_gather(const fl_pushers *ps, const fl_member *member, int n,
                      fl_staged *by)
{
    int got = 0;
    for (int64_t i = 0; i < ps->pusher.n; i++) {
        const fl_pusher *p = &ps->pusher.at[i];
        if (!is_among(member, n, p->session))
            continue;
        int at = got++;
        for (; at > 0 && by[at - 1].rank > p->rank && !FL_PLANTED(ARRIVAL);
             at--)
            by[at] = by[at - 1];
        by[at] = (fl_staged){p->rank,    p->session, (int)p->part.n,
                             p->part.at, true,       0};
    }
    return got;
}

static void forget_pusher(fl_pushers *ps, int64_t i)
{
    fl_push(&ps->forgotten, ps->pusher.at[i].session);
    free_pusher(ps, i);
}

void fl_pushers_close_round(fl_pushers *ps)
{
    for (int64_t i = ps->pusher.n - 1; i >= 0; i--) {
        fl_pusher *p = &ps->pusher.at[i];
        clear_stage(ps, p);
        if (p->gone)
            forget_pusher(ps, i);
    }
}

/* --- a session leaves --- */

void fl_pushers_retain(fl_pushers *ps, const fl_member *member, int64_t n,
                       bool undecided)
{
    for (int64_t i = ps->pusher.n - 1; i >= 0; i--) {
        if (is_among(member, n, ps->pusher.at[i].session))
            continue;
        ps->pusher.at[i].gone = true;
        if (undecided)
            forget_pusher(ps, i);
    }
}

void fl_pushers_flush(fl_pushers *ps,
                      bool (*uses)(const void *self, fl_id session),
                      const void *self)
{
    int64_t n = 0;
    for (int64_t i = 0; i < ps->forgotten.n; i++) {
        const fl_id session = ps->forgotten.at[i];
        if (uses(self, session))
            ps->forgotten.at[n++] = session;
        else if (ps->store->forget)
            ps->store->forget(ps->store->self, session);
    }
    ps->forgotten.n = n;
}

void fl_pushers_visit(fl_pushers *ps, fl_image *im)
{
    fl_image_vec(im, &ps->pusher, 2 * (int64_t)ps->job->trainers);
    for (int64_t i = 0; i < ps->pusher.n; i++) {
        fl_pusher *p = &ps->pusher.at[i];
        fl_image_id(im, &p->session);
        fl_image_int(im, &p->rank, 0, ps->job->trainers - 1);
        fl_image_bool(im, &p->gone);
        fl_image_window(im, &p->window);
    }
}
