/* SPDX-License-Identifier: Apache-2.0 */
/* members.c - the ranks of a job: sessions, leases, barriers, positions.
 *
 * Easy to get wrong:
 * - The BARRIER of a session that leaves does not count, and neither does the
 *   position of that step: the next holder of the rank does the step again.
 * - A rank that is lost twice in a round gains no time: the round waits for it
 *   until the first limit. */
#include "protocol/members.h"
#include "protocol/plant.h"

#include <stdio.h>

/* A coordinator that was started again gives every lease this much more. */
#define GRACE (5 * FL_SEC)
/* After a failure the job waits this long for trainers that never came: perhaps
 * they were started with the others, on a slower host. */
#define LATE (20 * FL_SEC)

/* A session that is over. */
typedef struct past_session {
    fl_leave leave;
    int64_t at;
} past_session;

struct fl_members {
    const fl_job *job;
    int64_t born;
    fl_rank *rank;             /* job->trainers elements */
    FL_VEC(past_session) past; /* oldest first */
};

fl_members *fl_members_new(const fl_job *job, int64_t now)
{
    fl_members *m = fl_mem_alloc(sizeof *m);
    m->job = job;
    m->born = now;
    m->rank = fl_mem_alloc((size_t)job->trainers * sizeof *m->rank);
    for (int i = 0; i < job->trainers; i++)
        m->rank[i].rank = i;
    return m;
}

void fl_members_free(fl_members *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->job->trainers; i++) {
        fl_mem_free(m->rank[i].position);
        fl_mem_free(m->rank[i].next_position);
    }
    fl_mem_free(m->rank);
    fl_vec_fini(&m->past);
    fl_mem_free(m);
}

/* --- who is there --- */

const fl_rank *fl_members_get(const fl_members *m, int rank)
{
    return &m->rank[rank];
}

const fl_rank *fl_members_find(const fl_members *m, fl_id session)
{
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_HELD &&
            fl_id_same(m->rank[i].session, session))
            return &m->rank[i];
    return NULL;
}

int fl_members_count(const fl_members *m, fl_rank_state state)
{
    int n = 0;
    for (int i = 0; i < m->job->trainers; i++)
        n += m->rank[i].state == state;
    return n;
}

bool fl_members_all_came(const fl_members *m)
{
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_FRESH)
            return false;
    return true;
}

int fl_members_list(const fl_members *m, fl_member *out)
{
    int n = 0;
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_HELD)
            out[n++] = (fl_member){i, m->rank[i].session, m->rank[i].g};
    return n;
}

int fl_members_list_left(const fl_members *m, int64_t now, fl_leave *out)
{
    int n = 0;
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].left) {
            out[n] = m->rank[i].leave;
            out[n++].ago = now - m->rank[i].left_at;
        }
    return n;
}

static past_session *find_past(const fl_members *m, fl_id session)
{
    for (int64_t i = m->past.n - 1; i >= 0; i--)
        if (fl_id_same(m->past.at[i].leave.session, session))
            return &m->past.at[i];
    return NULL;
}

bool fl_members_past(const fl_members *m, fl_id session, int64_t now,
                     fl_leave *out)
{
    const past_session *p = find_past(m, session);
    if (!p)
        return false;
    *out = p->leave;
    out->ago = now - p->at;
    return true;
}

int64_t fl_members_count_past(const fl_members *m)
{
    return m->past.n;
}

/* --- positions --- */

static void set_position(char **position, const char *to)
{
    fl_mem_free(*position);
    *position = to ? fl_mem_strdup(to) : NULL;
}

/* The step counts: a trainer that gets this rank goes on behind its examples.
 */
static void count_step(fl_rank *r)
{
    if (!r->next_position)
        return;
    fl_mem_free(r->position);
    r->position = r->next_position;
    r->next_position = NULL;
    r->step++;
}

/* --- sessions come and go --- */

void fl_members_grant(fl_members *m, fl_member who, bool explicit_id,
                      const char *name, int64_t now)
{
    fl_rank *r = &m->rank[who.rank];
    r->state = FL_RANK_HELD;
    r->session = who.session;
    r->g = who.g;
    r->since = now;
    r->explicit_id = explicit_id;
    r->lease = now + m->job->lease;
    r->call_broke = r->barrier = false;
    r->open = r->echo = 0;
    snprintf(r->who, sizeof r->who, "%s", name);
}

/* How long a lost rank is kept for its trainer. */
static int64_t rejoin_of(const fl_members *m, const fl_rank *r)
{
    return r->leave.why == FL_LEFT_FAILED ? m->job->rejoin_failed
                                          : m->job->rejoin;
}

/* When the open round no longer waits for a rank that is lost now. */
static int64_t wait_limit(const fl_members *m, const fl_rank *r, int64_t now)
{
    return now + (rejoin_of(m, r) ? m->job->hold : 0);
}

/* The session leaves its rank. The caller decides the next state of the rank.
 */
static void leave_rank(fl_members *m, fl_rank *r, fl_left why, int64_t view,
                       int64_t now)
{
    r->leave = (fl_leave){
        .rank = r->rank, .session = r->session, .view = view, .why = why};
    r->left = true;
    r->left_at = now;
    r->open = 0;
    if (!FL_PLANTED(DEAD_MEMBER))
        r->barrier =
            false; /* the BARRIER of a session that leaves does not count */
    set_position(&r->next_position, NULL);
    fl_push(&m->past, (past_session){r->leave, now});
}

void fl_members_lose(fl_members *m, int rank, fl_left why, int64_t view,
                     int64_t now)
{
    fl_rank *r = &m->rank[rank];
    leave_rank(m, r, why, view, now);
    r->state = FL_RANK_LOST;
    if (!r->wait_until) /* dying again gains no time */
        r->wait_until = wait_limit(m, r, now);
}

void fl_members_blame(fl_members *m, int rank, int code, const char *reason)
{
    fl_rank *r = &m->rank[rank];
    r->code = code;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
}

void fl_members_complete(fl_members *m, int rank, int64_t view, int64_t now)
{
    fl_rank *r = &m->rank[rank];
    past_session *p = find_past(m, r->session);
    if (r->state == FL_RANK_HELD)
        leave_rank(m, r, FL_LEFT_DONE, view, now);
    else if (p)
        p->leave.why = r->leave.why = FL_LEFT_DONE;
    r->state = FL_RANK_DONE;
}

const fl_rank *fl_members_last_held(const fl_members *m, fl_id session)
{
    const past_session *p = find_past(m, session);
    const fl_rank *r = p ? &m->rank[p->leave.rank] : NULL;
    return r && p->leave.why != FL_LEFT_DONE && r->state == FL_RANK_LOST &&
                   fl_id_same(r->session, session)
               ? r
               : NULL;
}

const fl_rank *fl_members_any_free(const fl_members *m, int64_t now)
{
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_FRESH)
            return &m->rank[i];
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_LOST &&
            (!m->rank[i].explicit_id ||
             now >= m->rank[i].left_at + rejoin_of(m, &m->rank[i])))
            return &m->rank[i];
    return NULL;
}

bool fl_members_may_join(const fl_members *m)
{
    if (m->job->async || !fl_members_all_came(m))
        return true;
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_HELD && m->rank[i].barrier)
            return false;
    return true;
}

/* --- leases --- */

void fl_members_renew(fl_members *m, int rank, uint64_t call, uint64_t echo,
                      int64_t now)
{
    fl_rank *r = &m->rank[rank];
    r->call_broke = false;
    r->lease = now + m->job->lease;
    r->open = call;
    if (echo > r->echo)
        r->echo = echo;
}

void fl_members_hangup(fl_members *m, uint64_t call, int64_t now)
{
    for (int i = 0; i < m->job->trainers; i++) {
        fl_rank *r = &m->rank[i];
        if (r->state != FL_RANK_HELD || r->open != call)
            continue;
        r->open = 0;
        r->call_broke = true;
        if (r->lease > now + m->job->broken)
            r->lease = now + m->job->broken;
    }
}

void fl_members_forgive(fl_members *m, int64_t gap)
{
    for (int i = 0; i < m->job->trainers; i++)
        m->rank[i].lease += gap;
}

const fl_rank *fl_members_find_expired(const fl_members *m, int64_t now)
{
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_HELD && now >= m->rank[i].lease)
            return &m->rank[i];
    return NULL;
}

/* --- rounds --- */

bool fl_members_barrier(fl_members *m, int rank, int64_t step,
                        const char *position, int64_t now)
{
    fl_rank *r = &m->rank[rank];
    if (m->job->async ? step <= r->step : r->barrier)
        return false;
    if (step == r->step + 1)
        set_position(&r->next_position, position);
    if (m->job->async || FL_PLANTED(POSEARLY))
        count_step(r);
    if (!m->job->async) {
        r->barrier = true;
        r->barrier_at = now;
    }
    return true;
}

bool fl_members_awaits(const fl_members *m, const fl_rank *r, int64_t now)
{
    return r->state == FL_RANK_LOST && now < r->wait_until && !m->job->async;
}

bool fl_members_have_met(const fl_members *m, int64_t now)
{
    int barriers = 0;
    for (int i = 0; i < m->job->trainers; i++) {
        const fl_rank *r = &m->rank[i];
        if ((r->state == FL_RANK_HELD && !r->barrier) ||
            fl_members_awaits(m, r, now))
            return false;
        barriers += r->state == FL_RANK_HELD && r->barrier;
    }
    return barriers > 0 && fl_members_all_came(m);
}

int fl_members_close_round(fl_members *m, fl_member *out)
{
    int n = 0;
    for (int i = 0; i < m->job->trainers; i++) {
        fl_rank *r = &m->rank[i];
        if (r->barrier)
            out[n++] = (fl_member){i, r->session, r->g};
        if (r->barrier)
            count_step(r);
        r->barrier = false;
        r->wait_until = 0; /* also of a rank that did not come back in time */
    }
    return n;
}

/* --- the end --- */

bool fl_members_may_go_on(const fl_members *m, int64_t now)
{
    for (int i = 0; i < m->job->trainers; i++) {
        const fl_rank *r = &m->rank[i];
        if (r->state == FL_RANK_HELD ||
            (r->state == FL_RANK_LOST && now < r->left_at + rejoin_of(m, r)))
            return true;
    }
    return false;
}

const fl_rank *fl_members_first_lost(const fl_members *m)
{
    const fl_rank *first = NULL;
    for (int i = 0; i < m->job->trainers; i++) {
        const fl_rank *r = &m->rank[i];
        if (r->state == FL_RANK_LOST && (!first || r->left_at < first->left_at))
            first = r;
    }
    return first;
}

int64_t fl_members_deadline(const fl_members *m)
{
    const int64_t late = m->job->rejoin > LATE ? m->job->rejoin : LATE;
    int64_t by = m->born + m->job->start, last = 0;
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_LOST && m->rank[i].left_at > last)
            last = m->rank[i].left_at;
    const bool failed =
        fl_members_first_lost(m) && !fl_members_count(m, FL_RANK_HELD);
    return failed && last + late < by ? last + late : by;
}

/* --- waits --- */

static int64_t oldest_barrier(const fl_members *m)
{
    int64_t oldest = INT64_MAX;
    for (int i = 0; i < m->job->trainers; i++)
        if (m->rank[i].state == FL_RANK_HELD && m->rank[i].barrier &&
            m->rank[i].barrier_at < oldest)
            oldest = m->rank[i].barrier_at;
    return oldest;
}

static void list_start_waits(const fl_members *m, int64_t now, fl_str *rows)
{
    for (int i = 0; i < m->job->trainers; i++) {
        char whom[32];
        if (m->rank[i].state != FL_RANK_FRESH)
            continue;
        snprintf(whom, sizeof whom, "trainer %d", i);
        fl_wait_row(rows, "coordinator", whom, "to come", now - m->born,
                    fl_members_deadline(m) - m->born);
    }
}

static void list_rank_waits(const fl_members *m, int64_t round, int64_t now,
                            fl_str *rows)
{
    for (int i = 0; i < m->job->trainers; i++) {
        const fl_rank *r = &m->rank[i];
        char whom[FL_MEMBERS_WHO + 32], what[64];
        if (!fl_members_awaits(m, r, now))
            continue;
        snprintf(whom, sizeof whom, "trainer %d (was %s)", i, r->who);
        snprintf(what, sizeof what, "to come back for round %lld",
                 (long long)round);
        fl_wait_row(rows, "coordinator", whom, what, now - r->left_at,
                    r->wait_until - r->left_at);
    }
}

/* Whether the job, which has no member, waits for the trainer of a lost rank
 * before it ends. */
static bool keeps_job(const fl_members *m, const fl_rank *r, int64_t now)
{
    return r->state == FL_RANK_LOST && now < r->left_at + rejoin_of(m, r) &&
           !fl_members_count(m, FL_RANK_HELD);
}

static void list_return_waits(const fl_members *m, int64_t now, fl_str *rows)
{
    for (int i = 0; i < m->job->trainers; i++) {
        const fl_rank *r = &m->rank[i];
        char whom[FL_MEMBERS_WHO + 32];
        if (!keeps_job(m, r, now) || fl_members_awaits(m, r, now))
            continue;
        snprintf(whom, sizeof whom, "trainer %d (was %s)", i, r->who);
        fl_wait_row(rows, "coordinator", whom,
                    "to come back, else the job ends", now - r->left_at,
                    rejoin_of(m, r));
    }
}

static void list_barrier_waits(const fl_members *m, int64_t round, int64_t now,
                               fl_str *rows)
{
    const int64_t since = oldest_barrier(m);
    if (since == INT64_MAX)
        return;
    for (int i = 0; i < m->job->trainers; i++) {
        const fl_rank *r = &m->rank[i];
        char whom[FL_MEMBERS_WHO + 32], what[48];
        if (r->state != FL_RANK_HELD || r->barrier)
            continue;
        snprintf(whom, sizeof whom, "trainer %d (%s)", i, r->who);
        snprintf(what, sizeof what, "barrier of round %lld", (long long)round);
        fl_wait_row(rows, "coordinator", whom, what, now - since,
                    r->lease - now);
    }
}

void fl_members_waits(const fl_members *m, int64_t round, int64_t now,
                      fl_str *rows)
{
    list_start_waits(m, now, rows);
    list_rank_waits(m, round, now, rows);
    list_return_waits(m, now, rows);
    list_barrier_waits(m, round, now, rows);
}

bool fl_members_are_stalled(const fl_members *m, int64_t now)
{
    if (oldest_barrier(m) <= now - m->job->stall)
        return true;
    for (int i = 0; i < m->job->trainers; i++)
        if (fl_members_awaits(m, &m->rank[i], now) ||
            keeps_job(m, &m->rank[i], now))
            return true;
    return false;
}

/* --- what outlives the process --- */

static void visit_rank(fl_image *im, fl_rank *r, int trainers)
{
    int state = (int)r->state;
    fl_image_int(im, &state, FL_RANK_FRESH, FL_RANK_DONE);
    r->state = (fl_rank_state)state;
    fl_image_id(im, &r->session);
    fl_image_count(im, &r->g, 0, INT64_MAX - 1);
    fl_image_bool(im, &r->explicit_id);
    fl_image_bool(im, &r->barrier);
    if (!FL_PLANTED(POSLOST)) {
        fl_image_count(im, &r->step, 0, INT64_MAX - 1);
        fl_image_string(im, &r->position, FL_POSITION_MOST);
        fl_image_string(im, &r->next_position, FL_POSITION_MOST);
    }
    fl_image_text(im, r->who, sizeof r->who);
    fl_image_bool(im, &r->left);
    if (!r->left)
        return;
    fl_image_leave(im, &r->leave, trainers);
    fl_image_int(im, &r->code, INT32_MIN, INT32_MAX);
    fl_image_text(im, r->reason, sizeof r->reason);
}

void fl_members_visit(fl_members *m, fl_image *im)
{
    for (int i = 0; i < m->job->trainers; i++)
        visit_rank(im, &m->rank[i], m->job->trainers);
}

void fl_members_visit_past(fl_members *m, fl_image *im)
{
    fl_image_vec(im, &m->past, m->job->max_sessions + 1);
    for (int64_t i = 0; i < m->past.n; i++)
        fl_image_leave(im, &m->past.at[i].leave, m->job->trainers);
}

void fl_members_visit_cut(fl_members *m, fl_image *im)
{
    for (int i = 0; i < m->job->trainers; i++) {
        fl_rank *r = &m->rank[i];
        bool done = r->state == FL_RANK_DONE;
        fl_image_bool(im, &done);
        r->state = done ? FL_RANK_DONE : r->state;
        fl_image_count(im, &r->step, 0, INT64_MAX - 1);
        fl_image_string(im, &r->position, FL_POSITION_MOST);
        fl_image_text(im, r->who, sizeof r->who);
    }
}

bool fl_members_are_sound(const fl_members *m, int64_t view)
{
    for (int i = 0; i < m->job->trainers; i++) {
        const fl_rank *r = &m->rank[i];
        if ((r->left && r->leave.rank != i) || r->g > view ||
            (r->state == FL_RANK_LOST && !r->left))
            return false;
    }
    return true;
}

void fl_members_restart(fl_members *m, int64_t now)
{
    for (int i = 0; i < m->job->trainers; i++) {
        fl_rank *r = &m->rank[i];
        r->lease = now + m->job->lease + GRACE;
        r->since = r->barrier_at = r->left_at = now;
        r->wait_until = r->state == FL_RANK_LOST ? wait_limit(m, r, now) : 0;
    }
    for (int64_t i = 0; i < m->past.n; i++)
        m->past.at[i].at = now;
}

void fl_members_rewind(fl_members *m, bool anew)
{
    for (int i = 0; i < m->job->trainers; i++) {
        fl_rank *r = &m->rank[i];
        r->state =
            r->state == FL_RANK_DONE && !anew ? FL_RANK_DONE : FL_RANK_FRESH;
    }
}
