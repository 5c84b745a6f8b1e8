/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - a whole job in one process: virtual time, one seed, many faults.
 *
 * The machines are the ones that ship. Messages between them are dropped,
 * delayed, doubled and reordered; trainers die, stop, resume, restart, fail;
 * links are cut and heal; servers stop and resume; one server, or all of them,
 * are killed and started again without their state, or with it, also between
 * any two stores to it (sim_disk.c); a second process is started with the
 * explicit id of another trainer (a rival). The invariants of
 * docs/protocol.md are checked after every event. After the last fault the job
 * must end. The same options give the same run. For tests only, not in the
 * library. */
#ifndef FL_PROTOCOL_SIM_H
#define FL_PROTOCOL_SIM_H

#include "base/str.h"
#include "protocol/job.h"

/* Which faults a run has. */
typedef enum fl_sim_weather {
    FL_SIM_DRAWN, /* one of the others, drawn from the seed */
    FL_SIM_CALM,  /* no faults at all */
    FL_SIM_NOISE, /* faults of messages only */
    FL_SIM_STORM, /* faults of messages and of processes */
} fl_sim_weather;

/* An option that is 0 is drawn from the seed. */
typedef struct fl_sim_opts {
    uint64_t seed;
    fl_sim_weather weather;
    int servers, trainers, rounds;
    bool sync, async; /* both false: drawn */
    bool any_id;      /* no trainer has an explicit id */
} fl_sim_opts;

typedef struct fl_sim_result {
    bool ok;
    uint64_t trace; /* hash of all events: equal for equal runs */
    int64_t events, rounds, seconds;
    int code; /* exit code of the job */
    /* how often each of these happened */
    int64_t lost, fenced, rejoined, parked_joins, kills, late_loss;
    int64_t replaced; /* servers started again without their state */
    int64_t crashed;  /* servers started again with their state */
    int64_t rivals;   /* trainers that ended because another had their id */
    int64_t rewound;  /* jobs that went back to a snapshot */
    int64_t damaged;  /* snapshots that a server could not restore */
    int64_t warned;   /* trainers that ended because a server was replaced */
} fl_sim_result;

/* False: an invariant was broken; *report has the seed, the letter of the
 * invariant, the last events and all waits. */
bool fl_sim_run(const fl_sim_opts *opts, fl_sim_result *result, fl_str *report);

#endif
