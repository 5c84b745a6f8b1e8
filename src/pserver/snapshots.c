/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.c - what a job begins with, and what it goes back to. */
#include "pserver/snapshots.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

fl_err fl_snapshots_read(fl_snapshots *s, const fl_disk *disk,
                         const fl_placement *place)
{
    double every = 600;
    s->disk = disk;
    s->dir = fl_flag_text("FLUID_SNAPSHOT_DIR");
    FL_TRY(fl_flag_number("FLUID_SNAPSHOT_EVERY", &every));
    if (every <= 0)
        return fl_fail(FL_EINVAL, "FLUID_SNAPSHOT_EVERY is 0, it must be more");
    s->every =
        every < 1e9 ? (int64_t)(every * (double)FL_SEC) : (int64_t)1e9 * FL_SEC;
    if (!s->dir && !place->server && !s->back)
        FL_INFO("no snapshots are taken: FLUID_SNAPSHOT_DIR is not set");
    return FL_OK;
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

typedef FL_VEC(uint64_t) state_ids;

enum {
    BEGUN_MOST = 1 << 16 /* bytes; some thousand losses */
};

/* Append the states that have begun with the snapshot. */
static void read_begun(const fl_snapshots *s, int64_t number, state_ids *ids)
{
    char *path = fl_path_join(s->dir, "begun");
    fl_str text = {0};
    const fl_err err = s->disk->read(s->disk, path, BEGUN_MOST, &text);
    if (err && err != FL_ENOENT)
        FL_WARN("%s", fl_errmsg());
    for (const char *at = err ? NULL : text.at; at && *at;) {
        int64_t of;
        uint64_t id;
        if (sscanf(at, "%" SCNd64 " %" SCNx64, &of, &id) == 2 && of == number)
            fl_push(ids, id);
        at = strchr(at, '\n');
        at += at ? 1 : 0;
    }
    fl_str_fini(&text);
    fl_mem_free(path);
}

void fl_snapshots_enter(const fl_snapshots *s, uint64_t state)
{
    const int64_t number = fl_restore_job(s->restore)->number;
    char *path = fl_path_join(s->dir, "begun");
    state_ids ids = {0};
    fl_str text = {0};
    read_begun(s, number, &ids);
    fl_push(&ids, state);
    for (int64_t i = 0; i < ids.n; i++)
        fl_str_printf(&text, "%" PRId64 " %016" PRIx64 "\n", number, ids.at[i]);
    if (fl_disk_write(s->disk, path, text.at, text.n, true))
        FL_WARN("if this server loses its state once more before the next "
                "snapshot, the job ends: %s",
                fl_errmsg());
    fl_str_fini(&text);
    fl_vec_fini(&ids);
    fl_mem_free(path);
}

/* --- beginning --- */

static const char *run_name(void)
{
    const char *run = fl_flag_text("FLUID_JOB"); /* of the launcher */
    return run ? run : "";
}

/* Whether an earlier process of the launcher's job, whose state is lost, wrote
 * the newest snapshot. If not, its owner is told that it is there. */
static fl_err find_own(const fl_snapshots *s, const fl_placement *place,
                       bool *own)
{
    int64_t last, whole;
    fl_snapshot_job job = {0};
    fl_str image = {0};
    *own = false;
    FL_TRY(fl_snapshot_find(s->disk, s->dir, &last, &whole));
    if (!whole)
        return FL_OK;
    const fl_err err = fl_snapshot_read(s->disk, s->dir, whole, &job, &image);
    fl_str_fini(&image);
    *own = !err && *job.run && !strcmp(job.run, run_name());
    if (!*own && !place->server)
        FL_INFO("this job begins anew; snapshot %lld of an earlier one is in "
                "%s: `paddle resume %s` goes on from it",
                (long long)whole, s->dir, s->dir);
    return FL_OK;
}

fl_err fl_snapshots_choose(fl_snapshots *s, const fl_placement *place,
                           const fl_job *job)
{
    const bool asked = fl_flag_text("FLUID_RESTORE") != NULL;
    bool own = false;
    if (!s->dir && !asked)
        return FL_OK;
    if (!s->dir)
        return fl_fail(FL_EINVAL, "FLUID_RESTORE is set, and "
                                  "FLUID_SNAPSHOT_DIR is not: say where the "
                                  "snapshots are");
    if (!s->back && !asked)
        FL_TRY(find_own(s, place, &own));
    if (!s->back && !asked && !own)
        return FL_OK;
    FL_TRY(fl_restore_open(s->disk, s->dir, s->back, place, job, &s->restore));
    const fl_snapshot_job *of = fl_restore_job(s->restore);
    if (!s->back) {
        s->generation = of->generation + 1;
        s->anew = asked;
    }
    FL_INFO("going on from snapshot %lld in %s: version %lld, generation %lld; "
            "values of the startup program are not used",
            (long long)of->number, s->dir,
            (long long)fl_restore_version(s->restore),
            (long long)s->generation);
    return FL_OK;
}

fl_err fl_snapshots_rewind(fl_snapshots *s, fl_server *server, fl_coord *coord,
                           int64_t now)
{
    const fl_str *image = fl_restore_server(s->restore);
    FL_TRY(fl_server_rewind(server, fl_restore_version(s->restore),
                            s->coordinator, image->at, image->n));
    image = fl_restore_coordinator(s->restore);
    if (coord)
        FL_TRY(fl_coord_rewind(coord, image->at, image->n,
                               fl_restore_job(s->restore)->number, s->anew,
                               now));
    fl_snapshots_fini(s);
    return FL_OK;
}

/* --- serving --- */

fl_err fl_snapshots_begin(const fl_snapshots *s, fl_coord *coord, int64_t now)
{
    int64_t last, whole;
    if (!s->dir)
        return FL_OK;
    fl_snapshot_job job = {0};
    state_ids of = {0};
    fl_str image = {0};
    FL_TRY(fl_snapshot_find(s->disk, s->dir, &last, &whole));
    if (whole && fl_snapshot_read(s->disk, s->dir, whole, &job, &image))
        FL_WARN("a snapshot cannot be used: %s", fl_errmsg());
    fl_push(&of, job.state);
    read_begun(s, whole, &of);
    fl_coord_snapshots(coord, s->every, last, whole, of.at, of.n, now);
    fl_vec_fini(&of);
    fl_str_fini(&image);
    return FL_OK;
}

bool fl_snapshots_commit(const fl_snapshots *s, const fl_coord_moment *of,
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
    return whole;
}

/* --- going back --- */

bool fl_snapshots_goes_back(fl_snapshots *s, const fl_server *server,
                            const fl_coord *coord)
{
    s->back = coord ? fl_coord_rewinds(coord, &s->generation) : 0;
    s->coordinator = 0;
    if (s->back)
        return true;
    s->back = fl_server_rewinds(server, &s->generation);
    s->coordinator = s->back ? fl_server_coordinator(server) : 0;
    return s->back > 0;
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
