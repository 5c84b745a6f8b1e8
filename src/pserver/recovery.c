/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.c - images and staged pushes, written and found again.
 *
 *     staged message      its size, in a line of its own
 *                         the message, as it came */
#include "pserver/recovery.h"

#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "state/control.h"
#include "state/staging.h"
#include "wire/parcel.h"

#include <stdio.h>
#include <string.h>

enum {
    LINE = 64,        /* bytes before the message; see above */
    SPARE = 4 << 20,  /* bytes that a state needs besides parameters and pushes
                       */
    IMAGE = 1 << 10,  /* bytes of the images that a trainer takes, without its
                         position */
    EVENT = 16 << 10, /* bytes that an event adds to the images, and */
    MEMBER = 128,     /* for each trainer; without positions */
};

/* How long a process that holds the state may take to end; and one that serves,
 * whose job may have ended, after the time for which it answers. */
#define HOLDER_ENDS   (20 * FL_SEC)
#define SERVER_LEAVES FL_SEC

struct fl_recovery {
    const fl_job *job;
    fl_statedir *dir;
    fl_control *control;
    fl_staging *staging; /* NULL: asynchronous */
    bool begun;          /* an image was saved */
    char full[512];      /* why the last fl_recovery_reserve failed; "": it did
                            not */
    bool vanished;       /* the log says that the files have no names */
};

/* A message that lies in the stage. Its largest tensor is aligned, so it may
 * begin at any address itself. */
typedef struct __attribute__((packed)) staged_message {
    uint64_t size;
    char pad[LINE - sizeof(uint64_t)];
    char bytes[];
} staged_message;

/* What ends a staged message. */
typedef struct staged_owner {
    fl_staging *staging;
    void *at;
} staged_owner;

/* --- life --- */

static bool is_ended(void *user)
{
    const fl_recovery_opts *o = user;
    return o->poll && o->poll(o->user);
}

static bool is_served(void *user)
{
    const fl_recovery_opts *o = user;
    return o->serves && o->serves(o->user);
}

static fl_err open_files(fl_recovery *r)
{
    FL_TRY(
        fl_control_new(r->dir, (size_t)r->job->trainers * IMAGE, &r->control));
    if (r->job->async)
        return FL_OK;
    return fl_staging_new(r->dir, r->job->max_staged, &r->staging);
}

/* The file `setup`: the size of the message, then the message. */
static fl_err keep_setup(fl_recovery *r, const fl_packet *setup)
{
    const uint64_t size = fl_packet_size(setup);
    fl_mapping *m;
    FL_TRY(fl_statedir_make(r->dir, "setup", sizeof size + size, &m));
    char *at = fl_mapping_at(m);
    memcpy(at, &size, sizeof size);
    fl_bytes_copy((fl_bytes){setup, 0, size}, 0, at + sizeof size, size);
    fl_mapping_unref(m);
    fl_failpoint_hit("setup.kept");
    return FL_OK;
}

static void drop_mapping(void *mapping)
{
    fl_mapping_unref(mapping);
}

static fl_err read_file(const char *file, fl_packet **out)
{
    fl_mapping *m;
    uint64_t size = 0;
    FL_TRY(fl_mapping_find(file, 0, &m));
    const char *at = fl_mapping_at(m);
    if (fl_mapping_size(m) > sizeof size)
        memcpy(&size, at, sizeof size);
    if (!size || size > fl_mapping_size(m) - sizeof size) {
        const fl_err err =
            fl_fail(FL_EINVAL, "%s is damaged: it has %zu bytes, and says %llu",
                    file, fl_mapping_size(m), (unsigned long long)size);
        fl_mapping_unref(m);
        return err;
    }
    *out = fl_packet_new();
    fl_packet_lend(*out, at + sizeof size, size, drop_mapping, m);
    return FL_OK;
}

fl_err fl_recovery_read_setup(const char *path, fl_packet **out)
{
    char *file = fl_path_join(path, "setup");
    const fl_err err = read_file(file, out);
    fl_mem_free(file);
    return err;
}

fl_err fl_recovery_open(const fl_recovery_opts *o, fl_recovery **out)
{
    char token[FL_JOB_TOKEN];
    const size_t pushes =
        o->job->async ? 0 : o->bytes * (size_t)o->job->trainers;
    const size_t images = 2 * IMAGE * (size_t)o->job->trainers;
    fl_recovery *r = fl_mem_alloc(sizeof *r);
    r->job = o->job;
    fl_err err = fl_statedir_open(
        &(fl_statedir_opts){.job = fl_job_token(o->job, token),
                            .name = o->name,
                            .existing = o->existing,
                            .server = o->server,
                            .owners = o->owners,
                            .id = o->id,
                            .need = o->bytes + pushes + images + SPARE,
                            .wait = o->job->start < HOLDER_ENDS ? o->job->start
                                                                : HOLDER_ENDS,
                            .wait_serving = o->job->linger + SERVER_LEAVES,
                            .serves = is_served,
                            .poll = is_ended,
                            .user = (void *)o,
                            .fill = o->fill,
                            .fill_self = o->fill_self},
        &r->dir);
    if (!err && o->setup && !fl_statedir_found(r->dir))
        err = keep_setup(r, o->setup);
    if (!err)
        err = open_files(r);
    if (err) {
        if (r->dir && !fl_statedir_found(r->dir))
            fl_recovery_remove(r);
        fl_recovery_close(r);
        return err;
    }
    *out = r;
    return FL_OK;
}

void fl_recovery_close(fl_recovery *r)
{
    if (!r)
        return;
    fl_staging_free(r->staging);
    fl_control_free(r->control);
    fl_statedir_close(r->dir);
    fl_mem_free(r);
}

fl_statedir *fl_recovery_dir(const fl_recovery *r)
{
    return r->dir;
}

fl_state fl_recovery_state(const fl_recovery *r)
{
    return (fl_state){fl_statedir_id(r->dir), fl_statedir_incarnation(r->dir)};
}

void fl_recovery_remove(fl_recovery *r)
{
    fl_statedir_set_over(r->dir, true);
    fl_statedir_remove(r->dir);
}

bool fl_recovery_begun(const fl_recovery *r)
{
    return r->begun || fl_statedir_found(r->dir);
}

void fl_recovery_watch(fl_recovery *r)
{
    if (r->vanished || fl_statedir_exists(r->dir))
        return;
    r->vanished = true;
    FL_WARN("the files of %s were removed: this server goes on, but a process "
            "that is started again would find nothing",
            fl_statedir_path(r->dir));
}

void fl_recovery_about(const fl_recovery *r, fl_str *lines)
{
    fl_str_printf(lines, ": %s, used by process number %lld%s",
                  fl_statedir_path(r->dir),
                  (long long)fl_statedir_incarnation(r->dir),
                  fl_statedir_exists(r->dir)
                      ? ""
                      : "; its files were removed: a process that is started "
                        "again would find nothing");
    if (r->full[0])
        fl_str_printf(lines, "; trainers wait for room: %s", r->full);
}

/* --- staging --- */

static void free_staged(void *owner)
{
    staged_owner *o = owner;
    fl_staging_give(o->staging, o->at);
    fl_mem_free(o);
}

/* Decode a staged message. Its memory is given back when the parcel of the
 * message ends, or here. */
static fl_err decode_staged(fl_recovery *r, staged_message *staged,
                            fl_arena *arena, fl_msg *m)
{
    staged_owner *o = fl_mem_alloc(sizeof *o);
    *o = (staged_owner){r->staging, staged};
    fl_packet *p = fl_packet_new();
    fl_packet_lend(p, staged->bytes, staged->size, free_staged, o);
    const fl_err err = fl_msg_decode(NULL, p, arena, m);
    if (!err && !m->blob.owner) { /* a push without tensors */
        fl_parcel *none = fl_parcel_new();
        m->blob = fl_parcel_blob(none);
        fl_parcel_unref(none);
    }
    if (!err) {
        fl_parcel_hold(fl_parcel_of(m->blob), p);
        m->blob.at = staged;
    }
    fl_packet_unref(p);
    return err;
}

/* Where the largest tensor of the message begins, so that it can be aligned. */
static size_t find_largest(const fl_msg *m)
{
    const fl_parcel *p = fl_parcel_of(m->blob);
    fl_bytes largest = {0};
    for (int i = 0; p && i < p->n; i++)
        if (p->item[i].data.size > largest.size)
            largest = p->item[i].data;
    return largest.at;
}

fl_err fl_recovery_stage(fl_recovery *r, const fl_packet *packet,
                         fl_arena *arena, fl_msg *m)
{
    const size_t size = fl_packet_size(packet);
    void *at;
    if (!r->staging)
        return FL_OK;
    FL_TRY(
        fl_staging_take(r->staging, LINE + size, LINE + find_largest(m), &at));
    staged_message *staged = at;
    staged->size = size;
    fl_bytes_copy((fl_bytes){packet, 0, size}, 0, staged->bytes, size);
    fl_keeper_parcels.drop(NULL, m->blob);
    *m = (fl_msg){0};
    return decode_staged(r, staged, arena, m);
}

fl_blob fl_recovery_keep(fl_recovery *r, const fl_push_id *id, fl_blob b)
{
    const staged_message *staged = b.at;
    fl_staging_keep(r->staging, &(fl_staging_entry){
                                    .session = {id->session.hi, id->session.lo},
                                    .rank = id->rank,
                                    .seq = id->seq,
                                    .round = id->round,
                                    .count = id->count,
                                    .at = (void *)staged,
                                    .size = LINE + staged->size});
    return fl_keeper_parcels.keep(NULL, b);
}

void fl_recovery_closed(fl_recovery *r, int64_t version)
{
    fl_staging_close(r->staging, version);
}

void fl_recovery_forget(fl_recovery *r, fl_id session)
{
    fl_staging_forget(r->staging, (uint64_t[]){session.hi, session.lo});
}

/* --- images --- */

fl_err fl_recovery_save(fl_recovery *r, const void *server, size_t n_server,
                        const void *coord, size_t n_coord)
{
    r->begun = true;
    return fl_control_save(
        r->control, &(fl_control_image){{server, coord}, {n_server, n_coord}});
}

fl_err fl_recovery_reserve(fl_recovery *r, const fl_msg *m)
{
    const size_t position = m->position ? strlen(m->position) : 0;
    const fl_err err = fl_control_reserve(
        r->control, EVENT + (size_t)r->job->trainers * MEMBER + position);
    snprintf(r->full, sizeof r->full, "%s", err ? fl_errmsg() : "");
    return err;
}

fl_err fl_recovery_each_staged(fl_recovery *r,
                               void (*fn)(void *self, const fl_push_id *id,
                                          fl_blob kept),
                               void *self)
{
    fl_staging_entry e;
    for (int64_t i = 0; r->staging && fl_staging_next(r->staging, &i, &e);) {
        fl_arena *arena = fl_arena_new();
        fl_msg m = {0};
        const staged_message *staged = e.at;
        fl_err err = FL_OK;
        if (e.size < LINE || staged->size != e.size - LINE)
            err = fl_fail(FL_EINVAL,
                          "%s/stage is damaged: a push of %zu bytes "
                          "says that it has %llu",
                          fl_statedir_path(r->dir), e.size,
                          (unsigned long long)staged->size);
        if (!err)
            err = decode_staged(r, e.at, arena, &m);
        fl_arena_free(arena);
        FL_TRY(err);
        const fl_push_id id = {.session = {e.session[0], e.session[1]},
                               .rank = (int)e.rank,
                               .seq = e.seq,
                               .round = e.round,
                               .count = e.count};
        fn(self, &id, m.blob);
    }
    return FL_OK;
}

typedef struct restaging {
    fl_server *server;
    int n; /* pushes that the server needs */
} restaging;

/* Give the machine a push that was staged when the process ended. */
static void restage_push(void *self, const fl_push_id *id, fl_blob kept)
{
    restaging *to = self;
    if (fl_server_restage(to->server, id, kept))
        to->n++;
    else
        fl_keeper_parcels.drop(NULL, kept);
}

fl_err fl_recovery_restore(fl_recovery *r, fl_server *server, fl_coord *coord,
                           int64_t now)
{
    fl_control_image image;
    restaging pushes = {server, 0};
    if (!fl_statedir_found(r->dir)) {
        fl_statedir_ready(r->dir);
        FL_INFO("durability: %s; the state is in %s", fl_job_durability(r->job),
                fl_statedir_path(r->dir));
        return FL_OK;
    }
    FL_TRY(fl_control_load(r->control, &image));
    if (image.n[0])
        FL_TRY(fl_server_restore(server, image.at[0], image.n[0], now));
    if (image.n[1] && coord)
        FL_TRY(fl_coord_restore(coord, image.at[1], image.n[1], now));
    FL_TRY(fl_recovery_each_staged(r, restage_push, &pushes));
    if (fl_statedir_is_over(r->dir) && !fl_server_leaves(server))
        fl_statedir_set_over(r->dir, false); /* as when the job went back */
    FL_INFO("durability: %s; going on at version %lld with %d staged "
            "pushes from %s; values of the startup program are not used",
            fl_job_durability(r->job), (long long)fl_server_version(server),
            pushes.n, fl_statedir_path(r->dir));
    return FL_OK;
}
