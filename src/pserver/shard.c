/* SPDX-License-Identifier: Apache-2.0 */
/* shard.c - where the values of a server come from, and who keeps them.
 *
 * Easy to get wrong: the journal borrows from the state directory, and the
 * store writes into it. So the store ends first, then the journal, then the
 * state. */
#include "pserver/shard.h"

#include "base/failpoint.h"
#include "base/flag.h"
#include "base/log.h"
#include "pserver/redo.h"

#include <stdio.h>

#define WATCH (10 * FL_SEC) /* between looks at the state directory */

struct fl_shard {
    fl_shard_opts opts;
    int owners;
    bool existing;         /* the state must be there */
    fl_recovery *recovery; /* NULL: all ends with the process */
    fl_redo *redo;         /* level `host`; NULL: all ends with the host */
    bool replaying;        /* the store does again what `redo` has recorded */
    fl_pstore *store;      /* NULL: fl_shard_stop was called */
    fl_store ops;
    fl_state state;
    int64_t ticked, watched; /* when; Thread: the caller's */
    char unkept[512]; /* why an image could not be saved; "": it could. Thread:
                         the machine's */
};

/* --- what the state is found by --- */

static fl_err read_owners(int *out)
{
    double number = 1;
    FL_TRY(fl_flag_number("FLUID_OWNERS", &number));
    *out = number < 1                ? 1
           : number > FL_OWNERS_MOST ? FL_OWNERS_MOST
                                     : (int)number;
    return FL_OK;
}

bool fl_shard_kept(const fl_program *startup)
{
    const fl_placement *place = fl_placement_of(startup->job);
    char token[FL_JOB_TOKEN];
    fl_job limits = {0};
    int owners;
    if (place->server < 0 || fl_job_limits(&limits) || read_owners(&owners) ||
        limits.durability == FL_MEMORY)
        return false; /* listen_and_serv reports what is wrong */
    const fl_job job = fl_placement_job(place, &limits);
    return fl_statedir_waits(
        &(fl_statedir_opts){.job = fl_job_token(&job, token),
                            .server = place->server,
                            .owners = owners});
}

/* --- callbacks of the store --- */

static void on_applied(void *self, const char *why)
{
    const fl_shard *s = self;
    if (s->replaying)
        fl_redo_applied(s->redo, why);
    else
        s->opts.applied(s->opts.self, why);
}

/* A journal is not replayed while the caller waits for room. */
static bool on_full(void *self, const char *why)
{
    const fl_shard *s = self;
    return !s->replaying && s->opts.full(s->opts.self, why);
}

static void on_answer(void *self, fl_peer to, const fl_msg *m)
{
    const fl_shard *s = self;
    s->opts.answer(s->opts.self, to, m);
}

static void on_written(void *self, int64_t number, const char *why)
{
    const fl_shard *s = self;
    s->opts.written(s->opts.self, number, why);
}

/* --- opening --- */

/* Find the state of an earlier process of this server, or begin a new one. */
static fl_err open_state(fl_shard *s)
{
    const fl_shard_opts *o = &s->opts;
    fl_entropy *e = o->env->entropy;
    if (o->job->durability == FL_MEMORY)
        return FL_OK;
    const fl_err err = fl_recovery_open(
        &(fl_recovery_opts){.job = o->job,
                            .name = o->name,
                            .setup = o->setup,
                            .existing = s->existing,
                            .server = o->place->server,
                            .owners = s->owners,
                            .id = e->draw(e) | 1,
                            .bytes = fl_pstore_bytes(o->program, o->scope),
                            .poll = o->poll,
                            .serves = o->serves,
                            .user = o->self,
                            .fill = s->redo ? fl_redo_fill : NULL,
                            .fill_self = s->redo},
        &s->recovery);
    if (err == FL_ENOENT && !o->setup)
        return fl_fail_at(err,
                          "the startup program has left the parameters to the "
                          "state of an earlier process, which was removed "
                          "since; start this server again");
    return err;
}

static bool is_state_found(const fl_shard *s)
{
    return s->recovery && fl_statedir_found(fl_recovery_dir(s->recovery));
}

static void close_state(fl_shard *s)
{
    fl_recovery_close(s->recovery);
    s->recovery = NULL;
}

static fl_err new_store(fl_shard *s)
{
    const fl_shard_opts *o = &s->opts;
    const double most = (double)(INT64_C(1) << 60);
    double table_bytes = 0;
    bool allow_nan = false;
    FL_TRY(fl_flag_number("FLUID_TABLE_MEMORY", &table_bytes));
    FL_TRY(fl_flag_bool("FLUID_ALLOW_NAN", &allow_nan));
    table_bytes = table_bytes < most ? table_bytes : most;
    return fl_pstore_new(&(fl_pstore_opts){.env = o->env,
                                           .program = o->program,
                                           .op = o->op,
                                           .scope = o->scope,
                                           .owners = s->owners,
                                           .allow_nan = allow_nan,
                                           .table_bytes = (int64_t)table_bytes,
                                           .recovery = s->recovery,
                                           .place = o->place,
                                           .snapshots = o->snapshots->dir,
                                           .self = s,
                                           .applied = on_applied,
                                           .full = on_full,
                                           .answer = on_answer,
                                           .written = on_written},
                         &s->store);
}

static fl_err open_store(fl_shard *s)
{
    FL_TRY(open_state(s));
    return new_store(s);
}

/* Whether the server may go on without a state: the level is the default, and
 * no earlier process has left a state. A state that belongs to something else,
 * or that another process holds, is refused. */
static bool may_fall_back(const fl_shard *s, fl_err err)
{
    if (!s->opts.job->or_memory || s->existing || is_state_found(s))
        return false;
    return err == FL_ENOMEM || err == FL_EIO ||
           (err == FL_EINVAL && s->recovery); /* it cannot keep the program */
}

/* The state cannot be kept, and fl_errmsg says why: remove what has begun of
 * it, and go on at level `memory`. */
static fl_err fall_back(fl_shard *s)
{
    char *why = fl_mem_strdup(fl_errmsg());
    if (s->recovery)
        fl_recovery_remove(s->recovery);
    close_state(s);
    const fl_err err = new_store(s);
    if (!err)
        FL_WARN("%s; this server runs at level memory: the job ends if its "
                "process is killed",
                why);
    fl_mem_free(why);
    return err;
}

/* The host was lost. Do on the state, which was filled from its base, what the
 * journal has recorded; then open the state again, as after the end of a
 * process. */
static fl_err replay_journal(fl_shard *s)
{
    s->replaying = true;
    const fl_err err =
        fl_redo_replay(s->redo, s->recovery, fl_pstore_ops(s->store));
    fl_shard_stop(s);
    s->replaying = false;
    fl_failpoint_hit("recover.replay");
    if (!err)
        fl_statedir_ready(fl_recovery_dir(s->recovery));
    close_state(s);
    FL_TRY(err);
    return open_store(s);
}

static fl_err find_values(fl_shard *s)
{
    const fl_shard_opts *o = &s->opts;
    FL_TRY(read_owners(&s->owners));
    s->existing = o->existing || fl_pstore_lacks(o->program, o->scope);
    if (o->job->durability == FL_HOST)
        s->redo = fl_redo_new(
            &(fl_redo_opts){.durable = o->durable, .self = o->self});
    fl_err err = open_store(s);
    if (err && may_fall_back(s, err))
        err = fall_back(s);
    FL_TRY(err);
    if (!s->recovery)
        FL_INFO("durability: memory; what this server holds ends with its "
                "process");
    if (s->redo && fl_redo_filled(s->redo))
        FL_TRY(replay_journal(s));
    if (is_state_found(s))
        fl_snapshots_fini(o->snapshots);
    else
        FL_TRY(fl_snapshots_choose(o->snapshots, o->place, o->job));
    return o->snapshots->restore
               ? fl_pstore_load(s->store, o->snapshots->restore)
               : FL_OK;
}

fl_err fl_shard_open(const fl_shard_opts *opts, fl_shard **out)
{
    fl_entropy *e = opts->env->entropy;
    fl_shard *s = fl_mem_alloc(sizeof *s);
    s->opts = *opts;
    const fl_err err = find_values(s);
    s->opts.setup = NULL;
    if (err) {
        fl_shard_undo(s);
        return err;
    }
    s->ops = s->redo ? fl_redo_wrap(s->redo, fl_pstore_ops(s->store))
                     : *fl_pstore_ops(s->store);
    s->state = s->recovery ? fl_recovery_state(s->recovery)
                           : (fl_state){e->draw(e) | 1, 1};
    *out = s;
    return FL_OK;
}

bool fl_shard_keeps(const fl_shard *s)
{
    return s->recovery;
}

fl_state fl_shard_state(const fl_shard *s)
{
    return s->state;
}

const fl_store *fl_shard_ops(const fl_shard *s)
{
    return &s->ops;
}

fl_err fl_shard_restore(fl_shard *s, fl_server *server, fl_coord *coord,
                        int64_t now)
{
    return s->recovery ? fl_recovery_restore(s->recovery, server, coord, now)
                       : FL_OK;
}

fl_err fl_shard_begin(fl_shard *s, fl_server *server)
{
    if (s->recovery)
        fl_pstore_resume(s->store, server);
    return s->redo ? fl_redo_begin(s->redo, s->recovery) : FL_OK;
}

/* --- the end --- */

void fl_shard_stop(fl_shard *s)
{
    fl_pstore_free(s->store);
    s->store = NULL;
}

void fl_shard_close(fl_shard *s, bool remove)
{
    if (s->redo && remove)
        fl_redo_remove(s->redo);
    fl_redo_free(s->redo);
    if (s->recovery && (remove || !fl_recovery_begun(s->recovery)))
        fl_recovery_remove(s->recovery);
    close_state(s);
    fl_mem_free(s);
}

void fl_shard_undo(fl_shard *s)
{
    const fl_sentence why = fl_sentence_keep();
    if (!s)
        return;
    fl_shard_stop(s);
    fl_shard_close(s, s->opts.brought && !is_state_found(s));
    fl_sentence_restore(&why);
}

/* --- pushes --- */

fl_err fl_shard_check_owners(fl_shard *s)
{
    return fl_pstore_room(s->store);
}

fl_err fl_shard_check_room(fl_shard *s, size_t bytes)
{
    FL_TRY(fl_shard_check_owners(s));
    return s->redo ? fl_redo_room(s->redo, bytes) : FL_OK;
}

fl_err fl_shard_stage(fl_shard *s, const fl_packet *packet, fl_arena *arena,
                      fl_msg *m)
{
    return s->recovery ? fl_recovery_stage(s->recovery, packet, arena, m)
                       : FL_OK;
}

bool fl_shard_rebasing(fl_shard *s)
{
    return s->redo && fl_redo_rebasing(s->redo);
}

void fl_shard_applied(fl_shard *s)
{
    if (s->redo)
        fl_redo_finished(s->redo);
}

/* --- what the journal must contain first --- */

fl_err fl_shard_reserve(fl_shard *s, const fl_msg *m)
{
    return s->recovery ? fl_recovery_reserve(s->recovery, m) : FL_OK;
}

void fl_shard_save(fl_shard *s, const void *server, size_t n_server,
                   const void *coord, size_t n_coord)
{
    if (s->redo)
        fl_redo_images(s->redo, server, n_server, coord, n_coord);
    if (fl_recovery_save(s->recovery, server, n_server, coord, n_coord))
        snprintf(s->unkept, sizeof s->unkept, "cannot keep its state: %s",
                 fl_errmsg());
}

bool fl_shard_hold(fl_shard *s, const fl_envelope *e)
{
    return s->redo && fl_redo_hold(s->redo, e);
}

bool fl_shard_holds(const fl_shard *s)
{
    return s->redo && fl_redo_holds(s->redo);
}

void fl_shard_release(fl_shard *s, uint64_t number,
                      void (*send)(void *self, const fl_envelope *e),
                      void *self)
{
    fl_redo_release(s->redo, number, send, self);
}

/* --- time passes --- */

fl_err fl_shard_check_saved(const fl_shard *s)
{
    return s->unkept[0] ? fl_fail(FL_EIO, "%s", s->unkept) : FL_OK;
}

fl_err fl_shard_tick(fl_shard *s, int64_t now)
{
    if (s->recovery && now >= s->watched + WATCH) {
        s->watched = now;
        fl_recovery_watch(s->recovery);
    }
    if (!s->redo || now < s->ticked + FL_SEC)
        return FL_OK;
    s->ticked = now;
    return fl_redo_tick(s->redo);
}

static void settle_store(void *store)
{
    fl_pstore_settle(store);
}

fl_err fl_shard_renew(fl_shard *s, bool *copied)
{
    *copied = false;
    return s->redo ? fl_redo_renew(s->redo, settle_store, s->store, copied)
                   : FL_OK;
}

fl_err fl_shard_commit(fl_shard *s)
{
    return fl_redo_commit(s->redo);
}

/* --- what `paddle why` shows --- */

void fl_shard_waits(fl_shard *s, fl_str *rows)
{
    fl_pstore_waits(s->store, rows);
}

void fl_shard_about(fl_shard *s, bool names, fl_str *text)
{
    fl_str_printf(text, "durability %s",
                  s->recovery ? fl_job_durability(s->opts.job) : "memory");
    if (s->recovery && names)
        fl_recovery_about(s->recovery, text);
    if (s->redo && names)
        fl_redo_about(s->redo, text);
}
