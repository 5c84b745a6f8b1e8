/* job.h - what every party of a job knows: its size, its mode, its limits.
 *
 * All times are nanoseconds of a clock that only moves forward; no two
 * processes compare theirs. */
#ifndef FL_PROTOCOL_JOB_H
#define FL_PROTOCOL_JOB_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_PROTOCOL = 1, /* version of the messages, part of a job's digest */
    FL_TRAINERS_MOST = 8192, /* a message has room for a view of so many that
                                each have a session now and had one before */
};

/* A session (drawn by a trainer process) or the digest of a job. */
typedef struct fl_id {
    uint64_t hi, lo;
} fl_id;

static inline bool fl_id_same(fl_id a, fl_id b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

/* What a server or the coordinator holds: an id that is drawn when it begins
 * with nothing, and how often a process was started with it. Today each start
 * begins with nothing. */
typedef struct fl_state {
    uint64_t id; /* 0: not known */
    int64_t incarnation;
} fl_state;

/* Zero is the default, which fl_job_defaults puts in its place. */
typedef struct fl_job {
    fl_id id; /* digest of programs, endpoints, trainers, mode, protocol */
    int servers, trainers;        /* 0 = 1 */
    const char *const *endpoints; /* of servers, for sentences; NULL: none */
    const char *about; /* the same: a line "NAME SHAPE" of each variable */
    bool async;

    int64_t lease;  /* a silent trainer is lost after it; 10 s */
    int64_t broken; /* the same once its open call broke; 1 s */
    int64_t rejoin; /* a lost rank is kept for its claimant; 30 s, < 0: none */
    int64_t start;  /* all trainers must have come; 10 min */
    int64_t linger; /* a server answers END before it leaves; 5 s */
    int64_t stall;  /* waits older than this are reported; 5 s */
    int64_t retry;  /* between repeats of coordinator and servers; 500 ms */
    int64_t call;   /* a trainer's request is sent again after; 5 s */
    int64_t reach;  /* a party that must answer may be silent; 60 s */
    int64_t gone;   /* one that was there may refuse connections; 5 s */

    int max_parked;    /* requests parked at one party; 64 per trainer */
    int max_parts;     /* pushes of a trainer to a server in a round; 4096 */
    int max_sessions;  /* sessions ever granted; 65536 */
    size_t max_staged; /* bytes staged and parked at one server; 16 GiB */
    size_t max_values; /* bytes of values in a message; 0: what it can have */
} fl_job;

fl_job fl_job_defaults(fl_job job);

/* What the environment says of limits, in seconds: FLUID_LEASE, FLUID_REJOIN
 * (0: none), FLUID_START, FLUID_REACH, FLUID_LINGER, FLUID_STALL; and in bytes:
 * FLUID_STAGED. Those that are not 0 already stay as they are. FLUID_DURABILITY
 * is checked. Err: EINVAL. */
fl_err fl_job_limits(fl_job *job) FL_MUST_CHECK;

/* Two state ids of one party, of which neither is 0, differ: what it held is
 * gone. */
bool fl_job_lost(const fl_job *job, uint64_t known, uint64_t now);

/* When a party refused connections first since it was heard; 0: it did not. */
typedef int64_t fl_refusals;

/* It refuses a connection now. True: it has done so for so long that its
 * process is gone. Only of one that was there: before, it may just be slow to
 * start. */
bool fl_job_gone(const fl_job *job, fl_refusals *since, int64_t now);

/* "refuses connections for 5 s: it has ended or was killed" into buf. */
enum {
    FL_GONE_TEXT = 80
};
const char *fl_job_gone_text(const fl_job *job, char buf[FL_GONE_TEXT]);

/* "server 1 (host:6174)" into buf, which it returns. */
const char *fl_job_server(const fl_job *job, int i, char *buf, size_t size);

/* What the job consists of, as lines: servers, trainers, mode, then each
 * variable that servers hold, with its shape. A long list is cut. */
void fl_job_about(const fl_job *job, fl_str *lines);

/* What differs between this job and another that is told by its lines, as the
 * end of a sentence: "trainers: 2 here, 3 there; w: [13,1] here, [14,1] there".
 * There is always something: if nothing else, what servers do. */
void fl_job_differs(const fl_job *job, const char *other, fl_str *text);

/* The digest as 32 hexadecimal digits: what its parties show to each other
 * (FL_RPC_TOKEN). Into buf, which it returns. */
enum {
    FL_JOB_TOKEN = 33
};
const char *fl_job_token(const fl_job *job, char buf[FL_JOB_TOKEN]);

/* Numbers that a job can have. Err: EINVAL. */
fl_err fl_job_check(const fl_job *job) FL_MUST_CHECK;

#endif
