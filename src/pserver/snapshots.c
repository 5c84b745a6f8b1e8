/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.c - what a job begins with, and what it goes back to. */
#include "pserver/snapshots.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HOLDER_ENDS = 20000 /* ms to wait for a process that has the directory: it
                           may be about to end */
};

fl_err fl_snapshots_read(fl_snapshots *s, const fl_disk *disk,
                         const fl_placement *place)
{
    double every = 600;
    s->disk = disk;
    s->dir = fl_flag_text("FLUID_SNAPSHOT_DIR");
    FL_TRY(fl_flag_number("FLUID_SNAPSHOT_EVERY", &every));
    if (every <= 0)
        return fl_fail(
            FL_EINVAL,
            "FLUID_SNAPSHOT_EVERY is 0, expected more than 0 seconds");
    s->every =
        every < 1e9 ? (int64_t)(every * (double)FL_SEC) : (int64_t)1e9 * FL_SEC;
    if (!s->dir && !place->server && !s->back)
        FL_INFO("no snapshots are taken: FLUID_SNAPSHOT_DIR is not set");
    if (s->dir && !place->server && !s->locked) {
        FL_TRY(fl_snapshot_lock_init(&s->lock, s->dir, HOLDER_ENDS));
        s->locked = true;
    }
    return FL_OK;
}

void fl_snapshots_unlock(fl_snapshots *s)
{
    if (s->locked)
        fl_snapshot_lock_fini(&s->lock);
    s->locked = false;
}

void fl_snapshots_fini(fl_snapshots *s)
{
    fl_restore_close(s->restore);
    s->restore = NULL;
}

/* --- the states that have begun with a snapshot ---
 *
 * Server 0 that has lost its state may go back to a snapshot only if the state
 * that the others know belongs to it: the state that took it, or one that has
 * begun with it. The file "begun" has a line for each of the latter:
 *
 *     7 00112233aabbccdd      number of the snapshot, state id */

typedef FL_VEC(fl_history_origin) origin_list;

enum {
    TEXT_MOST = 1 << 16 /* bytes of "begun": some thousand losses */
};

static void read_begun(const fl_snapshots *s, origin_list *begun)
{
    char *path = fl_path_join(s->dir, "begun");
    fl_str text = {0};
    const fl_err err = s->disk->read(s->disk, path, TEXT_MOST, &text);
    if (err && err != FL_ENOENT)
        FL_WARN("%s", fl_errmsg());
    for (const char *at = err ? NULL : text.at; at && *at;) {
        fl_history_origin o = {0};
        if (sscanf(at, "%" SCNd64 " %" SCNx64, &o.snapshot, &o.state) == 2)
            fl_push(begun, o);
        at = strchr(at, '\n');
        at += at ? 1 : 0;
    }
    fl_str_fini(&text);
    fl_mem_free(path);
}

static bool has_number(const fl_snapshot_numbers *all, int64_t number)
{
    for (int64_t i = 0; i < all->n; i++)
        if (all->at[i] == number)
            return true;
    return false;
}

/* Lines of snapshots that were removed are dropped. A state that has begun with
 * a newer one that was set aside since belongs to this one as well. */
static void add_begun(const origin_list *begun, const fl_snapshot_numbers *all,
                      int64_t number, fl_str *text)
{
    for (int64_t i = 0; i < begun->n; i++) {
        const fl_history_origin *o = &begun->at[i];
        const bool there = has_number(all, o->snapshot);
        if (there || o->snapshot > number)
            fl_str_printf(text, "%" PRId64 " %016" PRIx64 "\n",
                          there ? o->snapshot : number, o->state);
    }
}

static void set_aside(const fl_snapshots *s, int64_t number)
{
    char *path;
    if (fl_snapshot_set_aside(s->disk, s->dir, number, &path))
        FL_WARN("a damaged snapshot could not be renamed: %s", fl_errmsg());
    else
        FL_INFO("snapshot %lld is now %s", (long long)number, path);
    fl_mem_free(path);
}

void fl_snapshots_enter(const fl_snapshots *s, uint64_t state)
{
    const int64_t number = fl_restore_job(s->restore)->number;
    char *path = fl_path_join(s->dir, "begun");
    fl_snapshot_numbers all = {0};
    origin_list begun = {0};
    fl_str text = {0};
    read_begun(s, &begun);
    fl_err err = fl_snapshot_list(s->disk, s->dir, &all);
    for (int64_t i = all.n - 1; i >= 0 && all.at[i] > number; i--)
        if (all.at[i] <= s->damaged) {
            set_aside(s, all.at[i]);
            fl_remove(&all, i);
        }
    add_begun(&begun, &all, number, &text);
    fl_str_printf(&text, "%" PRId64 " %016" PRIx64 "\n", number, state);
    if (!err)
        err = fl_disk_write(s->disk, path, text.at, text.n, true);
    if (err)
        FL_WARN("if this server loses its state once more before the next "
                "snapshot, the job ends: %s",
                fl_errmsg());
    fl_str_fini(&text);
    fl_vec_fini(&begun);
    fl_vec_fini(&all);
    fl_mem_free(path);
}

/* Append the states that the whole snapshots belong to. Err: EIO. */
static fl_err list_origins(const fl_snapshots *s, origin_list *out)
{
    fl_snapshot_numbers all = {0};
    origin_list begun = {0};
    FL_TRY(fl_snapshot_list(s->disk, s->dir, &all));
    read_begun(s, &begun);
    for (int64_t i = 0; i < all.n; i++) {
        fl_snapshot_job job = {0};
        fl_str image = {0};
        if (fl_snapshot_read(s->disk, s->dir, all.at[i], &job, &image))
            FL_WARN("a snapshot cannot be used: %s", fl_errmsg());
        else
            fl_push(out, (fl_history_origin){all.at[i], job.state, true});
        fl_str_fini(&image);
    }
    for (int64_t i = 0; i < begun.n; i++)
        if (has_number(&all, begun.at[i].snapshot))
            fl_push(out, begun.at[i]);
    fl_vec_fini(&begun);
    fl_vec_fini(&all);
    return FL_OK;
}

/* --- a job that goes back while server 0 is killed ---
 *
 * The file "going-back" is there from the time before server 0 removes its
 * state until the next one is complete:
 *
 *     snapshot 7
 *     generation 3
 *     damaged 9               fl_snapshots.damaged
 *     job 0123456789abcdef0123456789abcdef
 *     run 1234.5678           of the launcher; the same job may be launched
 *                             anew, and then it does not go on there */

static const char *run_name(void)
{
    const char *run = fl_flag_text("FLUID_JOB"); /* of the launcher */
    return run ? run : "";
}

/* Whether a process of the same launch has taken the snapshot. */
static bool is_own_run(const fl_snapshot_job *of)
{
    return *of->run && !strcmp(of->run, run_name());
}

static void add_owner(const fl_job *job, fl_str *text)
{
    char token[FL_JOB_TOKEN];
    fl_str_printf(text, "job %s\nrun %s\n", fl_job_token(job, token),
                  run_name());
}

void fl_snapshots_leave(const fl_snapshots *s, const fl_job *job)
{
    char *path = fl_path_join(s->dir, "going-back");
    fl_str text = {0};
    fl_str_printf(&text,
                  "snapshot %" PRId64 "\ngeneration %" PRId64
                  "\ndamaged %" PRId64 "\n",
                  s->back, s->generation, s->damaged);
    add_owner(job, &text);
    if (fl_disk_write(s->disk, path, text.at, text.n, true))
        FL_WARN("if this server is killed now, the job may begin anew: %s",
                fl_errmsg());
    fl_failpoint_hit("rewind.mark");
    fl_str_fini(&text);
    fl_mem_free(path);
}

/* The snapshot that an earlier process of this job was going back to when it
 * was killed; 0: none. */
static int64_t find_mark(fl_snapshots *s, const fl_job *job)
{
    int64_t number = 0, generation = 0, damaged = 0;
    char *path = fl_path_join(s->dir, "going-back");
    int owner = 0; /* where it begins in the text */
    fl_str text = {0}, own = {0};
    add_owner(job, &own);
    const fl_err err = s->disk->read(s->disk, path, TEXT_MOST, &text);
    if (err && err != FL_ENOENT)
        FL_WARN("%s", fl_errmsg());
    const bool found = !err && text.at &&
                       sscanf(text.at,
                              "snapshot %" SCNd64 " generation %" SCNd64
                              " damaged %" SCNd64 " %n",
                              &number, &generation, &damaged, &owner) == 3 &&
                       owner && !strcmp(text.at + owner, own.at);
    fl_str_fini(&text);
    fl_str_fini(&own);
    fl_mem_free(path);
    if (!found)
        return 0;
    s->generation = generation;
    s->damaged = damaged;
    return number;
}

static void remove_mark(const fl_snapshots *s)
{
    char *path = fl_path_join(s->dir, "going-back");
    const fl_err err = s->disk->remove(s->disk, path);
    if (err && err != FL_ENOENT)
        FL_WARN("%s", fl_errmsg());
    fl_mem_free(path);
}

/* --- beginning --- */

/* The newest snapshot, if an earlier process of the launcher's job, whose state
 * is lost, wrote it; else 0, and its owner is told that it is there. */
static int64_t find_own(const fl_snapshots *s, int64_t newest)
{
    fl_snapshot_job job = {0};
    fl_str image = {0};
    const fl_err err = fl_snapshot_read(s->disk, s->dir, newest, &job, &image);
    fl_str_fini(&image);
    if (err && !*run_name())
        FL_WARN("a snapshot cannot be used: %s", fl_errmsg());
    if (err ? *run_name() : is_own_run(&job))
        return newest; /* or it is damaged, and may be of this job */
    FL_INFO("this job begins anew; snapshot %lld of an earlier one is in %s: "
            "`paddle resume %s` goes on from it",
            (long long)newest, s->dir, s->dir);
    return 0;
}

/* Snapshot `number` cannot be restored, and fl_errmsg says why: find an older
 * one of the same job. Err: `err`, if there is none. */
static fl_err find_older(fl_snapshots *s, fl_err err, int64_t *number)
{
    char *why = fl_mem_strdup(fl_errmsg());
    char *path = fl_snapshot_path(s->dir, *number);
    origin_list origin = {0};
    int64_t older = 0;
    if (!list_origins(s, &origin))
        older = fl_history_older(origin.at, origin.n, *number);
    fl_vec_fini(&origin);
    if (!older)
        err = fl_fail(
            err,
            "%s; no older snapshot of this job was found; to begin with the "
            "next older one, even if it is of another job, remove %s",
            why, path);
    else
        FL_WARN("snapshot %lld cannot be restored: %s; the job begins with "
                "snapshot %lld",
                (long long)*number, why, (long long)older);
    s->damaged = *number > s->damaged ? *number : s->damaged;
    *number = older;
    fl_mem_free(path);
    fl_mem_free(why);
    return older ? FL_OK : err;
}

/* Open `restore`, with that snapshot or the newest older one that server 0 can
 * restore. */
static fl_err open_any(fl_snapshots *s, int64_t number,
                       const fl_placement *place, const fl_job *job)
{
    for (;;) {
        const fl_err err =
            fl_restore_open(s->disk, s->dir, number, place, job, &s->restore);
        if (!err || err == FL_EINVAL)
            return err;
        FL_TRY(find_older(s, err, &number));
    }
}

/* What server 0 begins with. */
static fl_err choose_first(fl_snapshots *s, const fl_placement *place,
                           const fl_job *job, bool asked)
{
    int64_t last, number = find_mark(s, job);
    if (number)
        return open_any(s, number, place, job);
    FL_TRY(fl_snapshot_find(s->disk, s->dir, &last, &number));
    if (!number && asked)
        return fl_fail(FL_ENOENT, "%s has no whole snapshot", s->dir);
    if (number && !asked)
        number = find_own(s, number);
    if (!number)
        return FL_OK;
    FL_TRY(open_any(s, number, place, job));
    const fl_snapshot_job *of = fl_restore_job(s->restore);
    s->generation = of->generation + 1;
    s->anew = asked && !is_own_run(of); /* else trainers may have completed */
    return FL_OK;
}

fl_err fl_snapshots_choose(fl_snapshots *s, const fl_placement *place,
                           const fl_job *job)
{
    const bool asked = fl_flag_text("FLUID_RESTORE") != NULL;
    if (!s->dir && !asked)
        return FL_OK;
    if (!s->dir)
        return fl_fail(FL_EINVAL,
                       "FLUID_RESTORE is set, but FLUID_SNAPSHOT_DIR is not: "
                       "set it to the folder of the snapshots");
    if (!s->restore && !place->server)
        FL_TRY(choose_first(s, place, job, asked));
    if (!s->restore)
        return FL_OK;
    const fl_snapshot_job *of = fl_restore_job(s->restore);
    FL_INFO("going on from snapshot %lld in %s: version %lld, generation %lld; "
            "values of the startup program are not used",
            (long long)of->number, s->dir,
            (long long)fl_restore_version(s->restore),
            (long long)s->generation);
    return FL_OK;
}

fl_err fl_snapshots_rewind(fl_snapshots *s, fl_server *server, fl_coord *coord)
{
    const fl_str *image = fl_restore_server(s->restore);
    FL_TRY(fl_server_rewind(server, fl_restore_version(s->restore),
                            s->coordinator, image->at, image->n));
    image = fl_restore_coordinator(s->restore);
    if (coord)
        FL_TRY(fl_coord_rewind(coord, image->at, image->n,
                               fl_restore_job(s->restore)->number, s->anew));
    fl_snapshots_fini(s);
    return FL_OK;
}

/* --- serving --- */

fl_err fl_snapshots_begin(const fl_snapshots *s, fl_coord *coord, int64_t now)
{
    int64_t last, whole;
    origin_list origin = {0};
    if (!s->dir)
        return FL_OK;
    remove_mark(s);
    FL_TRY(fl_snapshot_find(s->disk, s->dir, &last, &whole));
    FL_TRY(list_origins(s, &origin));
    fl_coord_snapshots(coord, s->every, last, origin.at, origin.n, now);
    fl_vec_fini(&origin);
    return FL_OK;
}

/* The oldest whole snapshot that is left; this one, if that is not known. */
static int64_t find_oldest(const fl_snapshots *s, int64_t number)
{
    fl_snapshot_numbers all = {0};
    if (!fl_snapshot_list(s->disk, s->dir, &all) && all.n)
        number = all.at[0];
    fl_vec_fini(&all);
    return number;
}

int64_t fl_snapshots_commit(const fl_snapshots *s, const fl_coord_moment *of,
                            const fl_job *job, uint64_t state)
{
    fl_snapshot_job about = {.number = of->number,
                             .version = of->version,
                             .generation = of->generation,
                             .servers = job->servers,
                             .trainers = job->trainers,
                             .async = job->async,
                             .state = state};
    fl_job_token(job, about.digest);
    snprintf(about.run, sizeof about.run, "%s", run_name());
    const bool whole =
        !fl_snapshot_commit(s->disk, s->dir, &about, of->image, of->n);
    if (whole)
        FL_INFO("snapshot %lld of version %lld is in %s", (long long)of->number,
                (long long)of->version, s->dir);
    else
        FL_WARN("snapshot %lld is not committed: %s", (long long)of->number,
                fl_errmsg());
    return whole ? find_oldest(s, of->number) : 0;
}

/* --- going back --- */

bool fl_snapshots_goes_back(fl_snapshots *s, const fl_server *server,
                            const fl_coord *coord)
{
    s->back = coord ? fl_coord_rewinds(coord, &s->generation) : 0;
    s->damaged = s->back ? fl_coord_damaged(coord) : 0;
    s->coordinator = 0;
    if (s->back)
        return true;
    s->back = fl_server_rewinds(server, &s->generation);
    s->coordinator = s->back ? fl_server_coordinator(server) : 0;
    return s->back > 0;
}

fl_err fl_snapshots_open_back(fl_snapshots *s, const fl_placement *place,
                              const fl_job *job)
{
    if (!s->dir)
        return fl_fail(FL_EINVAL,
                       "the job goes back to a snapshot, and "
                       "FLUID_SNAPSHOT_DIR is not set for this server");
    return fl_restore_open(s->disk, s->dir, s->back, place, job, &s->restore);
}

void fl_snapshots_cannot_go_back(fl_snapshots *s, fl_server *server,
                                 fl_coord *coord, int64_t now)
{
    char *why = fl_mem_strdup(fl_errmsg());
    int64_t generation;
    if (coord && fl_coord_rewinds(coord, &generation))
        fl_coord_cannot_rewind(coord, why, now);
    else
        fl_server_cannot_rewind(server, why, now);
    s->back = 0;
    fl_mem_free(why);
}

void fl_snapshots_log_lost(const fl_snapshots *s, bool async, int64_t before,
                           int64_t after)
{
    if (async)
        FL_WARN("the job went back to snapshot %lld: about %lld pushes that "
                "this server had applied since are lost",
                (long long)s->back,
                (long long)(before > after ? before - after : 0));
    else if (before > after) /* else this is the server that lost its state */
        FL_WARN("the job went back to snapshot %lld: rounds %lld to %lld are "
                "lost and made again",
                (long long)s->back, (long long)after, (long long)before - 1);
}
