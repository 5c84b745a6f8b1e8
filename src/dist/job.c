/* job.c - the limits of a job, all in one place. */
#include "dist/job.h"

#include "base/flag.h"
#include "dist/codec.h"
#include "graph/program.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_SERVERS = 4096,
    MAX_TRAINERS = FL_MEMBERS_MOST,
    MAX_SHARDS = 4096,
    LONGEST = 1 << 30, /* seconds, 34 years: that is for ever */
};

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

fl_job fl_job_defaults(fl_job job)
{
    fl_job j = job;
    j.servers = (int)or_else(job.servers, 1);
    j.trainers = (int)or_else(job.trainers, 1);
    j.shards = (int)or_else(job.shards, 1);
    j.lease = or_else(job.lease, 10 * FL_SEC);
    j.broken = or_else(job.broken, 1 * FL_SEC);
    j.rejoin = job.rejoin < 0 ? 0 : or_else(job.rejoin, 30 * FL_SEC);
    j.start = or_else(job.start, 600 * FL_SEC);
    j.linger = or_else(job.linger, 5 * FL_SEC);
    j.stall = or_else(job.stall, 5 * FL_SEC);
    j.retry = or_else(job.retry, 500 * FL_MS);
    j.call = or_else(job.call, 5 * FL_SEC);
    j.reach = or_else(job.reach, 60 * FL_SEC);
    j.gone = or_else(job.gone, 5 * FL_SEC);
    if (j.gone > j.reach)
        j.gone = j.reach;
    if (j.call > j.reach / 4) /* who waits must hear that it still does */
        j.call = j.reach / 4;
    j.max_parked = (int)or_else(job.max_parked, 64 * (int64_t)j.trainers);
    j.max_parts = (int)or_else(job.max_parts, 4096);
    j.max_sessions = (int)or_else(job.max_sessions, 65536);
    j.max_staged = (size_t)or_else((int64_t)job.max_staged, INT64_C(16) << 30);
    return j;
}

static const struct {
    const char *name;
    size_t at; /* of the limit in fl_job */
} settable[] = {
    {"FLUID_LEASE", offsetof(fl_job, lease)},
    {"FLUID_REJOIN", offsetof(fl_job, rejoin)},
    {"FLUID_START", offsetof(fl_job, start)},
    {"FLUID_REACH", offsetof(fl_job, reach)},
    {"FLUID_LINGER", offsetof(fl_job, linger)},
    {"FLUID_STALL", offsetof(fl_job, stall)},
};

/* What of a server outlives its process. */
static fl_err check_durability(void)
{
    const char *level = fl_flag_text("FLUID_DURABILITY");
    if (!level || !*level || !strcmp(level, "memory"))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "FLUID_DURABILITY is \"%s\"; this version knows \"memory\" "
                   "only: what a server holds ends with its process",
                   level);
}

fl_err fl_job_limits(fl_job *job)
{
    for (size_t i = 0; i < sizeof settable / sizeof *settable; i++) {
        int64_t *limit = (int64_t *)((char *)job + settable[i].at);
        double seconds = -1;
        FL_TRY(fl_flag_number(settable[i].name, &seconds));
        if (*limit || seconds < 0)
            continue;
        if (!seconds && limit != &job->rejoin)
            return fl_fail(FL_EINVAL, "%s is 0, it must be more",
                           settable[i].name);
        *limit = seconds < LONGEST ? (int64_t)(seconds * (double)FL_SEC)
                                   : (int64_t)LONGEST * FL_SEC;
        if (!*limit)
            *limit = seconds ? 1 : -1;
    }
    return check_durability();
}

fl_job fl_job_of(const fl_place *place, const fl_job *limits)
{
    fl_job job = *limits;
    job.id = (fl_id){place->digest[0], place->digest[1] + FL_PROTOCOL};
    job.servers = place->n_servers;
    job.endpoints = place->servers;
    job.trainers = place->trainers;
    job.shards = 1; /* a server deals what it holds to its threads itself */
    job.async = place->async;
    return fl_job_defaults(job);
}

bool fl_job_lost(const fl_job *job, uint64_t known, uint64_t now)
{
    return known && now && known != now && job->plant != FL_PLANT_QUIET;
}

bool fl_job_gone(const fl_job *job, fl_refusals *since, int64_t now)
{
    if (!*since)
        *since = now;
    return now >= *since + job->gone;
}

const char *fl_job_gone_text(const fl_job *job, char buf[FL_GONE_TEXT])
{
    snprintf(buf, FL_GONE_TEXT,
             "refuses connections for %.0f s: it has ended or was killed",
             (double)job->gone / (double)FL_SEC);
    return buf;
}

const char *fl_job_server(const fl_job *job, int i, char *buf, size_t size)
{
    if (job->endpoints)
        snprintf(buf, size, "server %d (%s)", i, job->endpoints[i]);
    else
        snprintf(buf, size, "server %d", i);
    return buf;
}

const char *fl_job_short(fl_id id, char buf[FL_JOB_SHORT])
{
    snprintf(buf, FL_JOB_SHORT, "%08x", (unsigned)(id.hi >> 32));
    return buf;
}

const char *fl_job_token(const fl_job *job, char buf[FL_JOB_TOKEN])
{
    snprintf(buf, FL_JOB_TOKEN, "%016llx%016llx",
             (unsigned long long)job->id.hi, (unsigned long long)job->id.lo);
    return buf;
}

static fl_err in_range(const char *what, int64_t n, int64_t most)
{
    if (n < 1 || n > most)
        return fl_fail(FL_EINVAL, "job: %lld %s; there may be 1 to %lld",
                       (long long)n, what, (long long)most);
    return FL_OK;
}

fl_err fl_job_check(const fl_job *job)
{
    FL_TRY(in_range("servers", job->servers, MAX_SERVERS));
    FL_TRY(in_range("trainers", job->trainers, MAX_TRAINERS));
    FL_TRY(in_range("shards", job->shards, MAX_SHARDS));
    return in_range("ns of lease", job->lease, INT64_MAX / 4);
}
