/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.c - images and staged pushes, written and found again.
 *
 *     room in the stage   size of the message, in a line of its own
 *                         the message, as it came */
#include "pserver/recovery.h"

#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/control.h"
#include "state/staging.h"
#include "wire/parcel.h"

#include <string.h>

enum {
    LINE = 64,       /* bytes before the message; see above */
    SPARE = 4 << 20, /* bytes that a state needs besides parameters and pushes
                      */
};

struct fl_recovery {
    const fl_job *job;
    fl_statedir *dir;
    fl_control *control;
    fl_staging *staging; /* NULL: asynchronous */
    bool begun;          /* an image was saved */
    bool vanished;       /* the log says that the files have no names */
};

/* A message that lies in the stage. */
typedef struct staged_message {
    uint64_t size;
    char pad[LINE - sizeof(uint64_t)];
    char bytes[];
} staged_message;

/* What ends the room of a message. */
typedef struct room_owner {
    fl_staging *staging;
    void *at;
} room_owner;

/* --- life --- */

static bool is_ended(void *user)
{
    const fl_recovery_opts *o = user;
    return o->poll && o->poll(o->user);
}

static fl_err open_files(fl_recovery *r)
{
    FL_TRY(fl_control_new(r->dir, &r->control));
    if (r->job->async)
        return FL_OK;
    return fl_staging_new(r->dir, r->job->max_staged, &r->staging);
}

fl_err fl_recovery_open(const fl_recovery_opts *o, fl_recovery **out)
{
    char token[FL_JOB_TOKEN];
    const size_t pushes =
        o->job->async ? 0 : o->bytes * (size_t)o->job->trainers;
    fl_recovery *r = fl_mem_alloc(sizeof *r);
    r->job = o->job;
    fl_err err =
        fl_statedir_open(&(fl_statedir_opts){.job = fl_job_token(o->job, token),
                                             .server = o->server,
                                             .owners = o->owners,
                                             .id = o->id,
                                             .need = o->bytes + pushes + SPARE,
                                             .wait = o->job->start,
                                             .poll = is_ended,
                                             .user = (void *)o},
                         &r->dir);
    if (!err)
        err = open_files(r);
    if (err) {
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
    fl_statedir_over(r->dir);
    fl_statedir_remove(r->dir);
}

bool fl_recovery_begun(const fl_recovery *r)
{
    return r->begun;
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
    fl_str_printf(lines, ": %s, start %lld with it%s", fl_statedir_path(r->dir),
                  (long long)fl_statedir_incarnation(r->dir),
                  fl_statedir_exists(r->dir)
                      ? ""
                      : "; its files were removed: a process that is started "
                        "again would find nothing");
}

/* --- staging --- */

static void give_room(void *owner)
{
    room_owner *o = owner;
    fl_staging_give(o->staging, o->at);
    fl_mem_free(o);
}

/* Decode the message in a room of the stage. The room is given back when the
 * parcel of the message ends, or here. */
static fl_err decode_staged(fl_recovery *r, staged_message *room,
                            fl_arena *arena, fl_msg *m)
{
    room_owner *o = fl_mem_alloc(sizeof *o);
    *o = (room_owner){r->staging, room};
    fl_packet *p = fl_packet_new();
    fl_packet_lend(p, room->bytes, room->size, give_room, o);
    fl_parcel *hold = fl_parcel_new(); /* of a push without tensors */
    const fl_err err = fl_msg_decode(NULL, p, arena, m);
    if (!err && !m->blob.owner)
        m->blob = fl_parcel_blob(hold);
    if (!err) {
        fl_parcel_hold(fl_parcel_of(m->blob), p);
        m->blob.at = room;
    }
    fl_parcel_unref(hold);
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
    staged_message *room = at;
    room->size = size;
    fl_bytes_copy((fl_bytes){packet, 0, size}, 0, room->bytes, size);
    fl_keeper_parcels.drop(NULL, m->blob);
    *m = (fl_msg){0};
    return decode_staged(r, room, arena, m);
}

fl_blob fl_recovery_keep(fl_recovery *r, const fl_push_id *id, fl_blob b)
{
    const staged_message *room = b.at;
    fl_staging_keep(r->staging, &(fl_staging_entry){
                                    .session = {id->session.hi, id->session.lo},
                                    .rank = id->rank,
                                    .seq = id->seq,
                                    .round = id->round,
                                    .count = id->count,
                                    .at = (void *)room,
                                    .size = LINE + room->size});
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

/* Give the machine the pushes that were staged when the process ended. */
static fl_err restage_pushes(fl_recovery *r, fl_server *server, int *n)
{
    fl_staging_entry e;
    for (int64_t i = 0; fl_staging_next(r->staging, &i, &e);) {
        fl_arena *arena = fl_arena_new();
        fl_msg m = {0};
        const staged_message *room = e.at;
        fl_err err = FL_OK;
        if (e.size < LINE || room->size != e.size - LINE)
            err = fl_fail(FL_EINVAL,
                          "%s/stage is damaged: a push of %zu bytes "
                          "says that it has %llu",
                          fl_statedir_path(r->dir), e.size,
                          (unsigned long long)room->size);
        if (!err)
            err = decode_staged(r, e.at, arena, &m);
        fl_arena_free(arena);
        FL_TRY(err);
        const fl_push_id id = {.session = {e.session[0], e.session[1]},
                               .rank = (int)e.rank,
                               .seq = e.seq,
                               .round = e.round,
                               .count = e.count};
        if (fl_server_restage(server, &id, m.blob))
            ++*n;
        else
            fl_keeper_parcels.drop(NULL, m.blob);
    }
    return FL_OK;
}

fl_err fl_recovery_restore(fl_recovery *r, fl_server *server, fl_coord *coord,
                           int64_t now)
{
    fl_control_image image;
    int pushes = 0;
    if (!fl_statedir_found(r->dir)) {
        fl_statedir_ready(r->dir);
        FL_INFO("durability: process; the state is in %s",
                fl_statedir_path(r->dir));
        return FL_OK;
    }
    FL_TRY(fl_control_load(r->control, &image));
    r->begun = image.n[0] > 0;
    if (image.n[0])
        FL_TRY(fl_server_restore(server, image.at[0], image.n[0], now));
    if (image.n[1] && coord)
        FL_TRY(fl_coord_restore(coord, image.at[1], image.n[1], now));
    if (r->staging)
        FL_TRY(restage_pushes(r, server, &pushes));
    FL_INFO("durability: process; going on at version %lld with %d staged "
            "pushes from %s; values of the startup program are not used",
            (long long)fl_server_version(server), pushes,
            fl_statedir_path(r->dir));
    return FL_OK;
}
