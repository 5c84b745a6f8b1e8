/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - a job without servers in one process: virtual time, one seed, a
 * fault.
 *
 * Every rank runs the code that ships: reducer, ring, mesh and its state
 * machine; only sockets and the clock are simulated (net/sim_net.h). The seed
 * draws the number of ranks, when they start, what they reduce, the delays of
 * the network and one fault. What must hold stands in docs/collective.md, by
 * letter. The same seed gives the same run. Tests only: not in the library. */
#ifndef FL_COLLECTIVE_SIM_H
#define FL_COLLECTIVE_SIM_H

#include "base/str.h"

#include <stdint.h>

typedef enum sim_fault {
    SIM_NO_FAULT,
    SIM_STOPPED,     /* a process is stopped, and goes on */
    SIM_CUT_OFF,     /* a host hears nobody for some seconds */
    SIM_STRANGERS,   /* others connect and send random bytes */
    SIM_KILLED,      /* the faults below end the job */
    SIM_HUNG,        /* a process is stopped for longer than the limit */
    SIM_LOST,        /* a host is cut off for good */
    SIM_CUT,         /* a connection is reset */
    SIM_RAISES,      /* a rank fails by itself */
    SIM_LEAVES,      /* a rank ends before its last step */
    SIM_SKIPS,       /* a rank leaves one value out */
    SIM_OTHER_WORLD, /* a rank was told another number of ranks */
    SIM_OTHER_KEY,   /* a rank has another key */
    SIM_TWICE,       /* two processes have one rank */
    SIM_FAULTS,
} sim_fault;

typedef struct sim_result {
    bool ok;
    uint64_t trace; /* of every event: equal for equal runs */
    int64_t events;
    sim_fault fault;
    bool ended_well; /* every rank, without an error */
} sim_result;

/* False: what must hold does not; *report has the seed, the letter and what
 * became of every rank. */
bool sim_run(uint64_t seed, sim_result *result, fl_str *report);

#endif
