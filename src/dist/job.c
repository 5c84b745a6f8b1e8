/* job.c - the limits of a job, all in one place. */
#include "dist/job.h"

enum {
    MAX_SERVERS = 4096,
    MAX_TRAINERS = 65536,
    MAX_SHARDS = 4096,
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
    j.max_parked = (int)or_else(job.max_parked, 64 * (int64_t)j.trainers);
    j.max_parts = (int)or_else(job.max_parts, 4096);
    j.max_sessions = (int)or_else(job.max_sessions, 65536);
    j.max_staged = (size_t)or_else((int64_t)job.max_staged, INT64_C(16) << 30);
    return j;
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
