/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - defaults and settings of a job's limits, and texts about a job. */
#include "protocol/job.h"
#include "protocol/plant.h"

#include "base/flag.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_SERVERS = 4096,
    LONGEST = 1 << 30, /* seconds, about 34 years */
    ABOUT_HEAD = 3,    /* lines of fl_job_about before those of variables */
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
    j.lease = or_else(job.lease, 10 * FL_SEC);
    j.broken = or_else(job.broken, 1 * FL_SEC);
    j.rejoin = job.rejoin < 0 ? 0 : or_else(job.rejoin, 30 * FL_SEC);
    j.rejoin_failed =
        job.rejoin_failed < 0 ? 0 : or_else(job.rejoin_failed, j.rejoin);
    j.start = or_else(job.start, 600 * FL_SEC);
    j.linger = or_else(job.linger, 5 * FL_SEC);
    j.stall = or_else(job.stall, 5 * FL_SEC);
    j.retry = or_else(job.retry, 500 * FL_MS);
    j.call = or_else(job.call, 5 * FL_SEC);
    j.restart = or_else(job.restart, 300 * FL_SEC);
    const bool returns = j.durability != FL_MEMORY || j.snapshots;
    j.reach = or_else(job.reach, returns ? j.restart : 60 * FL_SEC);
    j.gone = or_else(job.gone, returns ? j.restart : 5 * FL_SEC);
    if (j.gone > j.reach)
        j.gone = j.reach;
    if (j.call > j.reach / 4) /* so that a request is tried several times */
        j.call = j.reach / 4;
    j.max_parked = (int)or_else(job.max_parked, 64 * (int64_t)j.trainers);
    j.max_parts = (int)or_else(job.max_parts, 4096);
    j.max_sessions = (int)or_else(job.max_sessions, 65536);
    j.max_staged = (size_t)or_else((int64_t)job.max_staged, INT64_C(16) << 30);
    return j;
}

static const struct {
    const char *name;
    size_t at; /* offset of the limit in fl_job */
} settable[] = {
    {"FLUID_LEASE", offsetof(fl_job, lease)},
    {"FLUID_REJOIN", offsetof(fl_job, rejoin)},
    {"FLUID_REJOIN_FAILED", offsetof(fl_job, rejoin_failed)},
    {"FLUID_START", offsetof(fl_job, start)},
    {"FLUID_REACH", offsetof(fl_job, reach)},
    {"FLUID_RESTART", offsetof(fl_job, restart)},
    {"FLUID_LINGER", offsetof(fl_job, linger)},
    {"FLUID_STALL", offsetof(fl_job, stall)},
};

fl_err fl_job_level(fl_job *job, const char *setting, const char *level)
{
    static const struct {
        const char *name;
        fl_durability durability;
        bool or_memory;
    } levels[] = {{"memory", FL_MEMORY, false},
                  {"process", FL_PROCESS, false},
                  {"auto", FL_PROCESS, true},
                  {"host", FL_HOST, false}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(level, levels[i].name)) {
            job->durability = levels[i].durability;
            job->or_memory = levels[i].or_memory;
            return FL_OK;
        }
    return fl_fail(FL_EINVAL,
                   "%s is \"%s\"; the levels are \"memory\" "
                   "(what a server holds ends with its process), "
                   "\"process\" (it outlives the process), \"auto\" "
                   "(\"process\" where there is room, else \"memory\") and "
                   "\"host\" (it outlives the host)",
                   setting, level);
}

const char *fl_job_durability(const fl_job *job)
{
    return job->durability == FL_HOST      ? "host"
           : job->durability == FL_PROCESS ? "process"
                                           : "memory";
}

static fl_err read_durability(fl_job *job)
{
    const char *level = fl_flag_text("FLUID_DURABILITY");
    if (job->durability)
        return FL_OK;
    return fl_job_level(job, "FLUID_DURABILITY", level ? level : "auto");
}

/* FLUID_STAGED, in bytes. */
static fl_err read_staged(fl_job *job)
{
    double bytes = 0;
    FL_TRY(fl_flag_number("FLUID_STAGED", &bytes));
    if (!job->max_staged && bytes)
        job->max_staged = bytes < (double)(INT64_C(1) << 60) ? (size_t)bytes
                                                             : (size_t)1 << 60;
    return FL_OK;
}

fl_err fl_job_limits(fl_job *job)
{
    const bool waits = !job->hold && !job->rejoin;
    FL_TRY(read_staged(job));
    FL_TRY(read_durability(job));
    job->snapshots |= fl_flag_text("FLUID_SNAPSHOT_DIR") != NULL;
    for (size_t i = 0; i < sizeof settable / sizeof *settable; i++) {
        int64_t *limit = (int64_t *)((char *)job + settable[i].at);
        double seconds = -1;
        FL_TRY(fl_flag_number(settable[i].name, &seconds));
        if (*limit || seconds < 0)
            continue;
        if (!seconds && limit != &job->rejoin && limit != &job->rejoin_failed)
            return fl_fail(FL_EINVAL, "%s is 0, expected more than 0 seconds",
                           settable[i].name);
        *limit = seconds < LONGEST ? (int64_t)(seconds * (double)FL_SEC)
                                   : (int64_t)LONGEST * FL_SEC;
        if (!*limit)
            *limit = seconds ? 1 : -1;
    }
    if (waits && job->rejoin > 0) /* somebody said that trainers come back */
        job->hold = job->rejoin;
    return FL_OK;
}

bool fl_job_lost(uint64_t known, uint64_t now)
{
    return known && now && known != now && !FL_PLANTED(QUIET);
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
             "has refused connections for %.0f s: it has ended or was killed",
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

const char *fl_job_token(const fl_job *job, char buf[FL_JOB_TOKEN])
{
    snprintf(buf, FL_JOB_TOKEN, "%016llx%016llx",
             (unsigned long long)job->id.hi, (unsigned long long)job->id.lo);
    return buf;
}

/* --- how two jobs differ --- */

void fl_job_about(const fl_job *job, fl_str *lines)
{
    fl_str_add(lines, "servers");
    for (int i = 0; i < job->servers; i++)
        fl_str_printf(lines, "%s%s", i ? "," : " ",
                      job->endpoints ? job->endpoints[i] : "?");
    fl_str_printf(lines, "\ntrainers %d\nmode %ssynchronous\n", job->trainers,
                  job->async ? "a" : "");
    if (job->about)
        fl_str_add(lines, job->about);
}

/* A line of fl_job_about: a name, a space, and the rest. */
typedef struct about_line {
    const char *at;
    int name, rest, all; /* lengths of name, rest and line */
} about_line;

static bool next_line(const char **at, about_line *out)
{
    const size_t all = strcspn(*at, "\n"), name = strcspn(*at, " \n");
    *out = (about_line){*at, (int)name, 0, (int)all};
    if (name < all)
        out->rest = (int)(all - name - 1);
    *at += all + ((*at)[all] == '\n');
    return all > 0;
}

static bool same_text(const char *a, int n, const char *b, int m)
{
    return n == m && !strncmp(a, b, (size_t)n);
}

/* Append how two lines at the same position differ. A list that has ended has
 * an empty line. */
static void say_pair(const about_line *own, const about_line *other,
                     fl_str *text)
{
    const char *between = text->n ? "; " : "";
    if (same_text(own->at, own->name, other->at, other->name))
        fl_str_printf(text, "%s%.*s: %.*s here, %.*s there", between, own->name,
                      own->at, own->rest, own->at + own->all - own->rest,
                      other->rest, other->at + other->all - other->rest);
    else if (own->all && other->all)
        fl_str_printf(text, "%svariables: %.*s here, %.*s there", between,
                      own->all, own->at, other->all, other->at);
    else
        fl_str_printf(text, "%svariable %.*s is only %s", between,
                      own->all ? own->all : other->all,
                      own->all ? own->at : other->at,
                      own->all ? "here" : "there");
}

void fl_job_differs(const fl_job *job, const char *other, fl_str *text)
{
    fl_str lines = {0};
    fl_job_about(job, &lines);
    const char *own = lines.at;
    fl_str found = {0};
    for (int i = 0, variables = 0; !variables; i++) {
        about_line a, b;
        const bool here = next_line(&own, &a), there = next_line(&other, &b);
        if (!here && !there)
            break;
        if (same_text(a.at, a.all, b.at, b.all))
            continue;
        say_pair(&a, &b, &found);
        variables += i >= ABOUT_HEAD; /* report only the first */
    }
    fl_str_add(text, found.n ? found.at
                             : "what servers do differs (the optimiser or its "
                               "settings), or the version of Fluid");
    fl_str_fini(&found);
    fl_str_fini(&lines);
}

static fl_err in_range(const char *what, int64_t n, int64_t most)
{
    if (n < 1 || n > most)
        return fl_fail(FL_EINVAL, "job: %lld %s, expected 1 to %lld",
                       (long long)n, what, (long long)most);
    return FL_OK;
}

fl_err fl_job_check(const fl_job *job)
{
    FL_TRY(in_range("servers", job->servers, MAX_SERVERS));
    FL_TRY(in_range("trainers", job->trainers, FL_TRAINERS_MOST));
    return in_range("ns of lease", job->lease, INT64_MAX / 4);
}
