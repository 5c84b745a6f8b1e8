/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - what every party of a job knows: its size, its mode, its limits.
 *
 * All times are nanoseconds of a monotonic clock. Processes never compare their
 * clocks with each other. */
#ifndef FL_PROTOCOL_JOB_H
#define FL_PROTOCOL_JOB_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_PROTOCOL = 1, /* version of the messages; part of a job's digest */
    FL_TRAINERS_MOST = 8192, /* trainers of a job at most: a view that lists a
                                present and a former session of each must fit
                                into a message */
};

/* 128 bits that name a session (a trainer process draws them at random) or a
 * job (its digest). */
typedef struct fl_id {
    uint64_t hi, lo;
} fl_id;

static inline bool fl_id_same(fl_id a, fl_id b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

/* Names the parameters and rounds that a server or the coordinator holds in
 * memory. */
typedef struct fl_state {
    uint64_t id;         /* drawn at random when the party begins with nothing,
                            as it does today at each start; 0: not known */
    int64_t incarnation; /* how often a process was started with this state */
} fl_state;

/* What of a server outlives what. */
typedef enum fl_durability {
    FL_MEMORY,  /* nothing outlives its process */
    FL_PROCESS, /* what it holds outlives its process */
    FL_HOST,    /* and its host */
} fl_durability;

/* fl_job_defaults replaces a limit of 0 by the default that is named here. */
typedef struct fl_job {
    fl_id id; /* digest of programs, endpoints, trainers, mode, protocol */
    int servers, trainers;        /* how many there are; default 1 */
    const char *const *endpoints; /* of the servers, for messages to the user;
                                     NULL: not known */
    const char *about; /* a line "NAME SHAPE" for each variable that servers
                          hold, for messages to the user; NULL: not known */
    bool async; /* servers apply each push when it comes, without rounds */
    fl_durability durability;
    bool or_memory; /* a server whose state has no room goes on at FL_MEMORY */
    bool snapshots; /* a server that has lost its state may come back */

    /* Times. */
    int64_t lease;  /* a trainer that is silent for so long is lost; 10 s */
    int64_t broken; /* a trainer whose open call broke is lost if it is silent
                       for so long; 1 s */
    int64_t rejoin; /* a lost rank is kept for so long for the trainer that had
                       it; 30 s, < 0: it is not kept */
    int64_t rejoin_failed; /* the same for a trainer that says that it has
                              failed; `rejoin`, < 0: it is not kept, and no
                              round waits for it */
    int64_t hold;    /* a synchronous round waits so long for a rank that was
                        lost in it; 0: it does not wait */
    int64_t start;   /* all trainers must have joined after so long; 10 min */
    int64_t linger;  /* an ended server answers END for so long, then leaves;
                        5 s */
    int64_t stall;   /* a wait that lasts longer is reported; 5 s */
    int64_t retry;   /* coordinator and servers repeat a message that is not
                        answered after so long; 500 ms */
    int64_t call;    /* a trainer repeats a request that is not answered after
                        so long; 5 s */
    int64_t restart; /* a server whose state outlives its process may take so
                        long to be there again; 300 s */
    int64_t reach;   /* a party that must answer and is silent for so long is
                        taken for lost; 60 s; `restart` if states outlive
                        processes, or snapshots are taken */
    int64_t gone;    /* a party that was heard and then refuses connections for
                        so long is taken for ended; 5 s; `restart` if states
                        outlive processes, or snapshots are taken */

    /* Limits. */
    int max_parked;    /* requests parked at one party; 64 per trainer */
    int max_parts;     /* pushes of a trainer to a server in a round; 4096 */
    int max_sessions;  /* sessions that are ever granted; 65536 */
    size_t max_staged; /* bytes staged and parked at one server; 16 GiB */
    size_t max_values; /* bytes of values in a message; 0: as many as a
                          message can carry */
} fl_job;

fl_job fl_job_defaults(fl_job job);

/* Set the level that a text names. `setting` says where the text stands. Err:
 * EINVAL. */
fl_err fl_job_level(fl_job *job, const char *setting,
                    const char *level) FL_MUST_CHECK;

const char *fl_job_durability(const fl_job *job); /* the name of its level */

/* Set limits that are 0 from the environment. FLUID_LEASE, FLUID_REJOIN (0: a
 * lost rank is not kept; else rounds wait for it, too), FLUID_START,
 * FLUID_REACH, FLUID_RESTART, FLUID_LINGER, FLUID_STALL and
 * FLUID_REJOIN_FAILED (0: a trainer that has failed is not waited for) are
 * seconds; FLUID_STAGED is bytes; FLUID_DURABILITY is a level, "auto" if it is
 * not set; FLUID_SNAPSHOT_DIR says that snapshots are taken. Err: EINVAL. */
fl_err fl_job_limits(fl_job *job) FL_MUST_CHECK;

/* Whether a party has lost what it held: both state ids of it are known (not
 * 0), and they differ. */
bool fl_job_lost(uint64_t known, uint64_t now);

/* The time at which a party first refused a connection since it was last heard;
 * 0: it has refused none. */
typedef int64_t fl_refusals;

/* Note that a party refuses a connection now. True: it has refused connections
 * for job->gone, so its process has ended. Call it only for a party that was
 * heard before: one that was not may be slow to start. */
bool fl_job_gone(const fl_job *job, fl_refusals *since, int64_t now);

/* Write "refuses connections for 5 s: it has ended or was killed" to buf, and
 * return buf. */
enum {
    FL_GONE_TEXT = 80
};
const char *fl_job_gone_text(const fl_job *job, char buf[FL_GONE_TEXT]);

/* Write "server 1 (host:6174)" to buf, and return buf. */
const char *fl_job_server(const fl_job *job, int i, char *buf, size_t size);

/* Append a description of the job: lines for servers, trainers and mode, then a
 * line with name and shape for each variable that servers hold. A long list is
 * cut. */
void fl_job_about(const fl_job *job, fl_str *lines);

/* Append what differs between this job and one that is described by the lines
 * `other`: "trainers: 2 here, 3 there; w: [13,1] here, [14,1] there". If all
 * lines are equal, the text says that the optimiser or the version differs. */
void fl_job_differs(const fl_job *job, const char *other, fl_str *text);

/* Write the digest as 32 hexadecimal digits to buf, and return buf. The parties
 * of a job show it to each other (FL_RPC_TOKEN). */
enum {
    FL_JOB_TOKEN = 33
};
const char *fl_job_token(const fl_job *job, char buf[FL_JOB_TOKEN]);

/* Check the numbers of servers and trainers, and the lease. Err: EINVAL. */
fl_err fl_job_check(const fl_job *job) FL_MUST_CHECK;

#endif
