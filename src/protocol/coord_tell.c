/* coord_tell.c - what the coordinator tells the servers, and the log.
 *
 * Views, decisions and END are repeated until a server has acknowledged them;
 * a STATE acknowledges all that it covers. The current view also goes out
 * twice per lease as a sign of life, so that neither side waits for a dead
 * one without an end. */
#include "protocol/coord_in.h"

#include <stdio.h>

static void send_view(fl_coord *c, int server, int64_t now)
{
    const int n = c->job->trainers;
    fl_member *member =
        fl_arena_alloc(c->out->arena, (size_t)n * sizeof *member);
    fl_leave *left = fl_arena_alloc(c->out->arena, (size_t)n * sizeof *left);
    int n_left = 0;
    for (int i = 0; i < n; i++)
        if (c->rank[i].left) {
            left[n_left] = c->rank[i].leave;
            left[n_left++].ago = now - c->rank[i].left_at;
        }
    fl_outbox_send(c->out, (fl_peer){FL_PEER_SERVER, server, 0},
                   (fl_msg){.kind = FL_MSG_VIEW,
                            .job = c->job->id,
                            .expected = c->server[server].state.id,
                            .view = c->view,
                            .round = c->round,
                            .member = member,
                            .n_member = fl_coord_members(c, member),
                            .left = left,
                            .n_left = n_left});
}

static void send_closes(fl_coord *c, int server)
{
    for (int64_t i = 0; i < c->decided.n; i++) {
        const fl_decision *d = &c->decided.at[i];
        if (d->round < c->server[server].version)
            continue;
        fl_outbox_send(c->out, (fl_peer){FL_PEER_SERVER, server, 0},
                       (fl_msg){.kind = FL_MSG_CLOSE,
                                .job = c->job->id,
                                .expected = c->server[server].state.id,
                                .round = d->round,
                                .member = d->member,
                                .n_member = d->n});
    }
}

void fl_coord_tell(fl_coord *c, int server, int64_t now)
{
    fl_follower *s = &c->server[server];
    if (s->over)
        return;
    s->sent = now;
    if (!c->ended)
        send_view(c, server, now);
    send_closes(c, server);
    if (c->ended)
        fl_coord_say_end(c, (fl_peer){FL_PEER_SERVER, server, 0}, 0);
}

void fl_coord_tell_all(fl_coord *c, int64_t now)
{
    for (int i = 0; i < c->job->servers; i++)
        fl_coord_tell(c, i, now);
}

void fl_coord_new_view(fl_coord *c, int64_t now)
{
    c->view++;
    fl_coord_tell_all(c, now);
}

/* Decisions that every server has closed are forgotten. */
static void forget_decisions(fl_coord *c)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < c->job->servers; i++)
        if (c->server[i].version < least)
            least = c->server[i].version;
    while (c->decided.n && c->decided.at[0].round < least) {
        fl_mem_free(c->decided.at[0].member);
        fl_remove(&c->decided, 0);
    }
}

static void end_because(fl_coord *c, int server, const char *why, int64_t now)
{
    char name[96], text[FL_REASON_MAX];
    snprintf(text, sizeof text, "%s %s",
             fl_job_server(c->job, server, name, sizeof name), why);
    fl_coord_end(c, 1, text, now);
}

void fl_coord_state(fl_coord *c, int server, const fl_msg *m, int64_t now)
{
    fl_follower *s = &c->server[server];
    if (fl_job_lost(c->job, s->state.id, m->state.id)) {
        char why[128];
        snprintf(why, sizeof why,
                 "was started again and has lost its parameters (version %lld)",
                 (long long)s->version);
        end_because(c, server, why, now);
        s->over = s->over || m->over;
        return;
    }
    const bool first = !s->heard;
    s->state = m->state;
    s->heard = now;
    s->refused = 0;
    if (m->view > s->view && m->view <= c->view)
        s->view = m->view;
    if (m->round > s->version && m->round <= c->round)
        s->version = m->round;
    s->over = s->over || (m->over && (c->ended || m->code));
    forget_decisions(c);
    if (m->over && m->code && m->text) /* which names the server */
        fl_coord_end(c, 1, m->text, now);
    else if (m->over && m->code)
        end_because(c, server, "failed", now);
    fl_coord_settle(c, now); /* a decision may have waited for this server */
    if (first)               /* it may not have known whom to believe */
        fl_coord_tell(c, server, now);
}

/* --- reports --- */

static void count_trainers(fl_coord *c, int64_t now)
{
    fl_str missing = {0};
    int came = 0;
    for (int i = 0; i < c->job->trainers; i++) {
        came += c->rank[i].taken;
        if (!c->rank[i].taken && missing.n < 200)
            fl_str_printf(&missing, " %d", i);
    }
    fl_outbox_note(c->out,
                   "%d of %d trainers have come, waiting for%s, %.0f s of %.0f",
                   came, c->job->trainers, missing.at ? missing.at : "",
                   (double)(now - c->born) / (double)FL_SEC,
                   (double)c->job->start / (double)FL_SEC);
    fl_str_fini(&missing);
}

static int64_t oldest_barrier(const fl_coord *c)
{
    int64_t oldest = INT64_MAX;
    for (int i = 0; i < c->job->trainers; i++)
        if (c->rank[i].state == FL_RANK_HELD && c->rank[i].barrier &&
            c->rank[i].barrier_at < oldest)
            oldest = c->rank[i].barrier_at;
    return oldest;
}

static void say_waits(fl_coord *c, int64_t now)
{
    fl_str rows = {0};
    fl_coord_waits(c, now, &rows);
    fl_outbox_stalled(c->out, &rows);
    fl_str_fini(&rows);
}

void fl_coord_report(fl_coord *c, int64_t now)
{
    if (c->ended || now < c->stalled + c->job->stall)
        return;
    c->stalled = now;
    if (!fl_coord_all_came(c))
        count_trainers(c, now);
    else if (oldest_barrier(c) <= now - c->job->stall)
        say_waits(c, now);
}

static void wait_barriers(const fl_coord *c, int64_t now, fl_str *rows)
{
    const int64_t since = oldest_barrier(c);
    if (since == INT64_MAX)
        return;
    for (int i = 0; i < c->job->trainers; i++) {
        const fl_rank *r = &c->rank[i];
        char whom[FL_WHO_MAX + 32], what[48];
        if (r->state != FL_RANK_HELD || r->barrier)
            continue;
        snprintf(whom, sizeof whom, "trainer %d (%s)", i, r->who);
        snprintf(what, sizeof what, "barrier of round %lld",
                 (long long)c->round);
        fl_wait_row(rows, "coordinator", whom, what, now - since,
                    r->lease - now);
    }
}

static void wait_start(const fl_coord *c, int64_t now, fl_str *rows)
{
    for (int i = 0; i < c->job->trainers; i++) {
        char whom[32];
        if (c->rank[i].taken)
            continue;
        snprintf(whom, sizeof whom, "trainer %d", i);
        fl_wait_row(rows, "coordinator", whom, "to come", now - c->born,
                    c->job->start);
    }
}

static void wait_joins(const fl_coord *c, int64_t now, fl_str *rows)
{
    for (int64_t i = 0; i < c->waiting.n; i++) {
        const fl_waiting *w = &c->waiting.at[i];
        const fl_rank *r = w->claim == FL_ANY_ID ? NULL : &c->rank[w->claim];
        const bool held = r && r->state == FL_RANK_HELD;
        char whom[FL_WHO_MAX + 48];
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

static void wait_servers(const fl_coord *c, int64_t now, fl_str *rows)
{
    for (int i = 0; i < c->job->servers; i++) {
        const fl_follower *s = &c->server[i];
        char whom[96];
        bool up_to_date =
            c->ended ? s->over : s->view == c->view && s->version == c->round;
        if (up_to_date)
            continue;
        fl_wait_row(rows, "coordinator",
                    fl_job_server(c->job, i, whom, sizeof whom),
                    c->ended ? "to end" : "view or decision acknowledged",
                    now - (s->heard ? s->heard : c->born),
                    s->heard ? c->job->reach : c->job->start);
    }
}

void fl_coord_waits(const fl_coord *c, int64_t now, fl_str *rows)
{
    if (!c->ended && !fl_coord_all_came(c))
        wait_start(c, now, rows);
    if (!c->ended)
        wait_barriers(c, now, rows);
    wait_joins(c, now, rows);
    wait_servers(c, now, rows);
}
