/* SPDX-License-Identifier: Apache-2.0 */
/* machines.c - the lock, and what leaves the process when it is released.
 *
 * Easy to get wrong: the delivery of a message between the two machines may
 * append to the outbox that it was in. */
#include "pserver/machines.h"

#include "base/log.h"
#include "pserver/notes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

typedef enum machines_phase {
    NO_JOB, /* there are none, or they are being made */
    OPEN,
    CLOSED, /* until those of the next job are open */
} machines_phase;

struct fl_machines {
    fl_machines_opts opts;
    pthread_mutex_t lock; /* never held while foreign code runs */
    machines_phase phase;
    fl_machines_job job;
    fl_coord *coord; /* NULL: this is not server 0 */
    fl_server *server;
    fl_outbox coord_out, server_out;
    FL_VEC(uint64_t) open; /* open calls of sessions */
    fl_notes *notes;       /* lines that are logged without the lock */
};

static int64_t now_of(const fl_machines *m)
{
    return fl_clock_now(m->opts.clock);
}

fl_machines *fl_machines_new(const fl_machines_opts *opts)
{
    fl_machines *m = fl_mem_alloc(sizeof *m);
    m->opts = *opts;
    m->notes = fl_notes_new();
    pthread_mutex_init(&m->lock, NULL);
    fl_outbox_init(&m->coord_out);
    fl_outbox_init(&m->server_out);
    return m;
}

void fl_machines_free(fl_machines *m)
{
    fl_machines_end(m);
    fl_outbox_fini(&m->coord_out);
    fl_outbox_fini(&m->server_out);
    fl_vec_fini(&m->open);
    fl_notes_free(m->notes);
    pthread_mutex_destroy(&m->lock);
    fl_mem_free(m);
}

/* --- outboxes --- */

/* Is the message for the other machine of this process? */
static bool is_internal(const fl_machines *m, const fl_envelope *e)
{
    return (e->to.kind == FL_PEER_COORD && m->coord) ||
           (e->to.kind == FL_PEER_SERVER && e->to.index == m->job.server);
}

/* Give messages of an outbox, from *done on, to the other machine. */
static void pass_messages(fl_machines *m, const fl_outbox *box, int64_t *done)
{
    const fl_peer coord = {FL_PEER_COORD, 0, 0},
                  server = {FL_PEER_SERVER, m->job.server, 0};
    while (*done < box->out.n) {
        const fl_envelope e = box->out.at[(*done)++];
        if (!is_internal(m, &e))
            continue;
        if (e.to.kind == FL_PEER_COORD)
            fl_coord_recv(m->coord, server, &e.msg, now_of(m));
        else
            fl_server_recv(m->server, coord, &e.msg, now_of(m));
    }
}

/* The two machines of server 0 may answer each other at once, so both outboxes
 * are read until neither gets new messages. */
static void exchange_messages(fl_machines *m)
{
    int64_t from_coord = 0, from_server = 0;
    while (from_coord < m->coord_out.out.n ||
           from_server < m->server_out.out.n) {
        pass_messages(m, &m->coord_out, &from_coord);
        pass_messages(m, &m->server_out, &from_server);
    }
}

void fl_machines_save(fl_machines *m)
{
    const bool changed = fl_server_changed(m->server) ||
                         (m->coord && fl_coord_changed(m->coord));
    fl_str server = {0}, coord = {0};
    if (!m->job.save || !changed)
        return;
    fl_server_image(m->server, &server);
    if (m->coord)
        fl_coord_image(m->coord, &coord);
    m->job.save(m->opts.self, server.at, server.n, coord.at, coord.n);
    fl_str_fini(&server);
    fl_str_fini(&coord);
}

/* Send the messages of an outbox to other processes, note its lines, and clear
 * it. */
static void empty_outbox(fl_machines *m, fl_outbox *box)
{
    for (int64_t i = 0; i < box->out.n; i++)
        if (!is_internal(m, &box->out.at[i]))
            m->opts.send(m->opts.self, &box->out.at[i]);
    fl_notes_add_outbox(m->notes, box);
    fl_outbox_clear(box);
}

static void flush_outboxes(fl_machines *m)
{
    exchange_messages(m);
    fl_machines_save(m);
    fl_server_flush(m->server);
    empty_outbox(m, &m->coord_out);
    empty_outbox(m, &m->server_out);
    fl_notes_version(m->notes, fl_server_version(m->server), m->opts.clock);
}

/* --- the lock --- */

void fl_machines_lock(fl_machines *m)
{
    pthread_mutex_lock(&m->lock);
}

void fl_machines_unlock(fl_machines *m)
{
    if (m->phase == OPEN)
        flush_outboxes(m);
    char **lines = fl_notes_take(m->notes);
    pthread_mutex_unlock(&m->lock);
    fl_notes_write(lines);
}

/* --- from job to job --- */

void fl_machines_begin(fl_machines *m, const fl_machines_job *job,
                       fl_server **server, fl_coord **coord)
{
    const int64_t now = now_of(m);
    m->job = *job;
    m->coord_out.generation = m->server_out.generation = job->generation;
    if (!job->server)
        m->coord = fl_coord_new(job->job, job->state, &m->coord_out, now);
    m->server = fl_server_new(job->job, job->server, job->state, job->store,
                              &m->server_out, now);
    fl_notes_begin(m->notes, job->job->trainers);
    *server = m->server;
    *coord = m->coord;
}

/* What the machines want to send is sent after the first event. */
static void set_phase(fl_machines *m, machines_phase phase)
{
    pthread_mutex_lock(&m->lock);
    m->phase = phase;
    pthread_mutex_unlock(&m->lock);
}

void fl_machines_open(fl_machines *m)
{
    set_phase(m, OPEN);
}

void fl_machines_close(fl_machines *m)
{
    set_phase(m, CLOSED);
}

void fl_machines_end(fl_machines *m)
{
    fl_coord_free(m->coord);
    fl_server_free(m->server);
    m->coord = NULL;
    m->server = NULL;
    m->open.n = 0;
    fl_outbox_clear(&m->coord_out);
    fl_outbox_clear(&m->server_out);
}

/* --- with the lock --- */

fl_server *fl_machines_server(const fl_machines *m)
{
    return m->phase == OPEN ? m->server : NULL;
}

fl_coord *fl_machines_coord(const fl_machines *m)
{
    return m->phase == OPEN ? m->coord : NULL;
}

int64_t fl_machines_generation(const fl_machines *m)
{
    return m->server_out.generation;
}

bool fl_machines_closed(const fl_machines *m)
{
    return m->phase == CLOSED;
}

void fl_machines_note(fl_machines *m, const char *fmt, ...)
{
    char line[FL_LOG_LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fl_notes_add(m->notes, "%s", line);
}

/* --- events --- */

void fl_machines_tick(fl_machines *m)
{
    const int64_t now = now_of(m);
    if (m->coord)
        fl_coord_tick(m->coord, now);
    fl_server_tick(m->server, now);
}

/* The coordinator's own log has more detail about who joins and leaves. */
void fl_machines_recv(fl_machines *m, const fl_msg *from_coordinator)
{
    const char *why = "";
    int code = 0;
    const int64_t view = fl_server_view(m->server);
    const bool ended = fl_server_end(m->server, &code, &why);
    fl_server_recv(m->server, (fl_peer){FL_PEER_COORD, 0, 0}, from_coordinator,
                   now_of(m));
    if (from_coordinator->kind == FL_MSG_VIEW &&
        fl_server_view(m->server) > view)
        fl_notes_view(m->notes, from_coordinator);
    if (!ended && fl_server_end(m->server, &code, &why))
        fl_notes_add(m->notes, "the job ends with code %d at version %lld: %s",
                     code, (long long)fl_server_version(m->server), why);
}

void fl_machines_opened(fl_machines *m, uint64_t call)
{
    fl_push(&m->open, call);
}

void fl_machines_hangup(fl_machines *m, uint64_t call)
{
    for (int64_t i = m->open.n - 1; i >= 0; i--)
        if (m->open.at[i] == call)
            fl_remove(&m->open, i);
    if (m->phase != OPEN)
        return;
    if (m->coord)
        fl_coord_hangup(m->coord, call, now_of(m));
    fl_server_hangup(m->server, call);
}

void fl_machines_refused(fl_machines *m, int server, bool no_listener)
{
    if (m->coord)
        fl_coord_refused(m->coord, server, no_listener, now_of(m));
    else if (no_listener && !server)
        fl_server_refused(m->server, now_of(m));
}

void fl_machines_fail(fl_machines *m, int code, const char *why)
{
    if (m->coord)
        fl_coord_end(m->coord, code, why, now_of(m));
    else
        fl_server_quit(m->server, why, now_of(m));
}

/* --- the end of the job --- */

bool fl_machines_complete(const fl_machines *m)
{
    const char *why;
    int code = 1;
    return fl_server_end(m->server, &code, &why) && !code;
}

/* Whether no trainer is left and no request can come any more. */
static bool nobody_asks(const fl_machines *m, bool sent)
{
    return fl_server_lacks_trainers(m->server) && fl_server_ended(m->server) &&
           fl_server_confirmed(m->server) &&
           (!m->coord || (fl_coord_told(m->coord) && !m->open.n && sent));
}

bool fl_machines_over(const fl_machines *m, bool sent)
{
    const int64_t now = now_of(m);
    int code;
    return nobody_asks(m, sent) ||
           (fl_server_over(m->server, now, &code) &&
            (!m->coord || fl_coord_over(m->coord, now)));
}

fl_err fl_machines_result(const fl_machines *m)
{
    const char *why = "";
    int code = 0;
    if (!m->coord || !fl_coord_ended(m->coord, &code, &why))
        fl_server_end(m->server, &code, &why);
    return code ? fl_fail(FL_EENDED, "the job has failed: %s", why) : FL_OK;
}

void fl_machines_waits(const fl_machines *m, fl_str *rows)
{
    if (m->coord)
        fl_coord_waits(m->coord, now_of(m), rows);
    fl_server_waits(m->server, now_of(m), rows);
}
