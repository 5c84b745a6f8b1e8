/* SPDX-License-Identifier: Apache-2.0 */
/* bare.c - the sender of a job, its parts, and a job that a state has kept.
 *
 * Parts come on the network's thread and are taken by the caller's, since that
 * may take long. */
#include "pserver/bare.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "pserver/recovery.h"
#include "pserver/redo.h"
#include "wire/codec.h"

#include <stdio.h>
#include <unistd.h>

#define SENDER_GONE (10 * FL_SEC) /* a silent sender of a program gives up */

/* A part of a job, until the caller's thread takes it. */
typedef struct job_part {
    uint64_t call;
    fl_msg *msg;  /* own; without the blob */
    fl_blob blob; /* kept */
} job_part;

struct fl_bare {
    fl_bare_opts opts;
    fl_arrival *arrival; /* NULL: no part came. Thread: the caller's */
    char *state_name;    /* NULL: no state is kept under an address. Thread: the
                            caller's */
    /* Who brings the job: */
    fl_id session;          /* 0: nobody does */
    char who[96];           /* host:pid, and its address */
    int64_t last;           /* when its last part came */
    FL_VEC(job_part) parts; /* that came and were not taken yet */
    /* A job from a state: */
    int64_t resumed; /* when it began; 0: the job is not from a state */
    bool heard;      /* a trainer of the job was heard */
    bool given_up;   /* the job makes way for another one */
};

fl_bare *fl_bare_new(const fl_bare_opts *opts)
{
    fl_bare *b = fl_mem_alloc(sizeof *b);
    b->opts = *opts;
    return b;
}

static void free_part(job_part *t)
{
    fl_msg_free(t->msg);
    fl_keeper_parcels.drop(NULL, t->blob);
}

void fl_bare_free(fl_bare *b)
{
    if (!b)
        return;
    for (int64_t i = 0; i < b->parts.n; i++)
        free_part(&b->parts.at[i]);
    fl_vec_fini(&b->parts);
    fl_arrival_free(b->arrival);
    fl_mem_free(b->state_name);
    fl_mem_free(b);
}

/* --- SETUP messages --- */

static void answer_setup(const fl_bare *b, uint64_t call, const fl_msg *m,
                         fl_msg answer)
{
    answer.job = m->job;
    answer.session = m->session;
    answer.tag = m->tag;
    b->opts.answer(b->opts.self, call, &answer);
}

/* Another process brings a job, and has not been silent for long. */
static bool is_setting_up(const fl_bare *b, const fl_msg *m, int64_t now)
{
    return !fl_id_same(b->session, (fl_id){0}) &&
           !fl_id_same(b->session, m->session) && now < b->last + SENDER_GONE;
}

static void add_part(fl_bare *b, uint64_t call, const fl_msg *m,
                     const char *from, int64_t now)
{
    fl_msg bare = *m;
    bare.blob = (fl_blob){0};
    b->session = m->session;
    b->last = now;
    snprintf(b->who, sizeof b->who, "%.32s (%s)", m->text ? m->text : "?",
             from);
    fl_push(&b->parts, (job_part){call, fl_msg_dup(&bare),
                                  fl_keeper_parcels.keep(NULL, m->blob)});
}

void fl_bare_add(fl_bare *b, uint64_t call, const fl_msg *m, const char *from,
                 int64_t now)
{
    if (!m->seq)
        answer_setup(b, call, m, (fl_msg){.kind = FL_MSG_ACK, .round = 0});
    else if (is_setting_up(b, m, now))
        answer_setup(b, call, m,
                     (fl_msg){.kind = FL_MSG_PARKED,
                              .text = "another process brings a program"});
    else
        add_part(b, call, m, from, now);
}

/* Another job comes while this one, from the state, waits for its trainers. It
 * is over if none of them is there any more. */
static void answer_resumed(fl_bare *b, uint64_t call, const fl_msg *m,
                           const fl_job *job, const fl_server *server,
                           int64_t now)
{
    char text[256];
    b->given_up = !fl_server_members(server) && now >= b->resumed + job->lease;
    snprintf(text, sizeof text,
             "this server %s the job that %s brought and its state has kept%s",
             b->given_up ? "gives up" : "waits for the trainers of", b->who,
             b->given_up ? ": none of its trainers has come back" : "");
    if (b->given_up)
        fl_machines_note(b->opts.machines, "%s", text);
    answer_setup(b, call, m, (fl_msg){.kind = FL_MSG_PARKED, .text = text});
}

/* It is another job: the answer says whose it is. */
static void answer_other(const fl_bare *b, uint64_t call, const fl_msg *m,
                         const fl_job *job, bool ended)
{
    char text[256];
    fl_str about = {0};
    snprintf(text, sizeof text, "this server %s the job that %s%s brought",
             ended ? "has ended" : "runs", b->who[0] ? "" : "a ",
             b->who[0] ? b->who : "server's script");
    fl_job_about(job, &about);
    answer_setup(b, call, m,
                 (fl_msg){.kind = FL_MSG_ERROR,
                          .code = FL_EINVAL,
                          .text = text,
                          .about = about.at});
    fl_str_fini(&about);
}

void fl_bare_refuse(fl_bare *b, uint64_t call, const fl_msg *m,
                    const fl_job *job, const fl_server *server, int64_t now)
{
    const char *why;
    int code;
    const bool ended = fl_server_end(server, &code, &why);
    const bool unheard = b->resumed && !b->heard;
    if (ended && (b->opts.keep || unheard)) {
        answer_setup(b, call, m,
                     (fl_msg){.kind = FL_MSG_PARKED,
                              .text = "the job before this one is ending"});
    } else if (fl_id_same(m->job, job->id)) {
        b->heard = true;
        answer_setup(b, call, m, (fl_msg){.kind = FL_MSG_ACK, .round = 1});
    } else if (unheard) {
        answer_resumed(b, call, m, job, server, now);
    } else {
        answer_other(b, call, m, job, ended);
    }
}

/* --- the caller's thread: parts --- */

/* The first part that came. False: none did. */
static bool next_part(fl_bare *b, job_part *out)
{
    fl_machines_lock(b->opts.machines);
    const bool some = b->parts.n > 0;
    if (some) {
        *out = b->parts.at[0];
        fl_remove(&b->parts, 0);
    }
    fl_machines_unlock(b->opts.machines);
    return some;
}

/* `who` has the size of b->who. */
static void copy_who(fl_bare *b, char *who)
{
    fl_machines_lock(b->opts.machines);
    memcpy(who, b->who, sizeof b->who);
    fl_machines_unlock(b->opts.machines);
}

static fl_err add_arrived(fl_bare *b, const job_part *t, bool *done)
{
    fl_msg m = *t->msg;
    m.blob = t->blob;
    if (m.seq == 1) { /* an older one was given up by its sender */
        fl_arrival_free(b->arrival);
        b->arrival = fl_arrival_new(&(fl_arrival_opts){
            .env = b->opts.env, .trainers = b->opts.trainers});
    }
    return fl_arrival_take(b->arrival, &m, done);
}

/* What does not fit is forgotten: the next sender begins anew. */
static void refuse_part(fl_bare *b, const job_part *t, fl_err err)
{
    char who[sizeof b->who];
    copy_who(b, who);
    FL_WARN("the program of %s is refused: %s", who, fl_errmsg());
    answer_setup(
        b, t->call, t->msg,
        (fl_msg){.kind = FL_MSG_ERROR, .code = (int)err, .text = fl_errmsg()});
    fl_arrival_free(b->arrival);
    b->arrival = NULL;
    fl_machines_lock(b->opts.machines);
    b->session = (fl_id){0};
    fl_machines_unlock(b->opts.machines);
}

/* The job has begun when its sender is told that all parts are here. */
static fl_err take_part(fl_bare *b, const job_part *t)
{
    char who[sizeof b->who];
    bool done = false;
    FL_TRY(add_arrived(b, t, &done));
    if (done) {
        copy_who(b, who);
        FL_TRY(b->opts.begin(b->opts.self, b->arrival, who, false));
    }
    answer_setup(b, t->call, t->msg,
                 (fl_msg){.kind = FL_MSG_ACK, .round = done});
    return FL_OK;
}

bool fl_bare_take(fl_bare *b)
{
    job_part t;
    if (!next_part(b, &t))
        return false;
    if (!b->arrival && t.msg->seq > 1) {
        answer_setup(b, t.call, t.msg,
                     (fl_msg){.kind = FL_MSG_PARKED,
                              .text = "this server was started again, and has "
                                      "no program yet"});
    } else {
        const fl_err err = take_part(b, &t);
        if (err)
            refuse_part(b, &t, err);
    }
    free_part(&t);
    return true;
}

/* --- the caller's thread: a job that a state has kept --- */

/* "pserver-HOST:PORT". A server that listens on all addresses has the name of
 * its host. */
static char *name_state(const char *address)
{
    char host[256] = "?";
    const char *port = strrchr(address, ':');
    const bool any =
        fl_starts_with(address, "0.0.0.0:") || fl_starts_with(address, "[::]:");
    fl_str name = {0};
    gethostname(host, sizeof host - 1);
    fl_str_printf(&name, "pserver-%.*s%s",
                  any ? (int)strlen(host) : (int)(port - address),
                  any ? host : address, port);
    for (char *at = name.at; (at = strchr(at, '/'));)
        *at = '_';
    return fl_str_take(&name);
}

/* Find what an earlier process has left: its state, or its journal, if the host
 * was lost. *path: what the user can remove. Own: *path and *packet are new. */
static fl_err find_kept(const fl_bare *b, const fl_job *limits, char **path,
                        fl_packet **packet)
{
    char *at; /* the journal's folder has a copy of the state in it */
    fl_err err = fl_statedir_find(b->state_name, &at);
    const bool lost = err == FL_ENOENT && limits->durability == FL_HOST;
    if (lost)
        err = fl_redo_find_base(b->state_name, &at);
    FL_TRY(err);
    err = fl_recovery_read_setup(at, packet);
    if (err == FL_ENOENT && lost) { /* a base has all files */
        char *dir = fl_path_parent(at);
        err = fl_fail_at(FL_EPROTO, "remove %s to begin the job anew", dir);
        fl_mem_free(dir);
    }
    if (!err)
        *path = lost ? fl_path_parent(at) : fl_mem_strdup(at);
    fl_mem_free(at);
    return err;
}

/* Take the job from the message that a state has kept. */
static fl_err take_kept(fl_bare *b, const fl_packet *packet)
{
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    bool done;
    fl_err err = fl_msg_decode(NULL, packet, arena, &m);
    if (!err) {
        b->arrival = fl_arrival_new(&(fl_arrival_opts){
            .env = b->opts.env, .trainers = b->opts.trainers, .kept = true});
        snprintf(b->who, sizeof b->who, "%s", m.text ? m.text : "?");
        err = fl_arrival_take(b->arrival, &m, &done);
    }
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_free(arena);
    return err;
}

fl_err fl_bare_resume(fl_bare *b, const char *address, const fl_job *limits,
                      const fl_clock *clock)
{
    char *path = NULL;
    fl_packet *packet = NULL;
    if (limits->durability == FL_MEMORY)
        return FL_OK;
    b->state_name = name_state(address);
    fl_err err = find_kept(b, limits, &path, &packet);
    if (err == FL_ENOENT)
        return FL_OK;
    FL_TRY(err);
    err = take_kept(b, packet);
    if (!err)
        err = b->opts.begin(b->opts.self, b->arrival, b->who, true);
    fl_packet_unref(packet);
    if (!err) {
        b->resumed = fl_clock_now(clock);
    } else if (err == FL_ENOENT) { /* its process has just ended the job */
        FL_INFO("%s was removed meanwhile; this server waits for a new job",
                path);
        fl_arrival_free(b->arrival);
        b->arrival = NULL;
        err = FL_OK;
    } else if (err != FL_EINTR) {
        err = fl_fail_at(err,
                         "in %s; remove it with `paddle state rm %s` if it is "
                         "not needed",
                         path, path);
    }
    fl_mem_free(path);
    return err;
}

fl_packet *fl_bare_encode(fl_bare *b)
{
    char who[sizeof b->who];
    copy_who(b, who);
    return b->arrival ? fl_arrival_encode(b->arrival, who) : NULL;
}

const char *fl_bare_state_name(const fl_bare *b)
{
    return b->state_name;
}

/* --- a job from a state --- */

void fl_bare_hear(fl_bare *b)
{
    b->heard = true;
}

bool fl_bare_give_up(fl_bare *b)
{
    if (!b->resumed || b->heard || b->given_up)
        return false;
    b->given_up = true;
    return true;
}

bool fl_bare_gave_up(const fl_bare *b)
{
    return b->given_up;
}
