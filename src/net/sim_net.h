/* SPDX-License-Identifier: Apache-2.0 */
/* sim_net.h - processes and the network between them, in virtual time.
 *
 * The code that runs in a simulated process is the one that ships: the linker
 * gives it other socket calls, another clock and other random numbers (--wrap
 * in the Makefile). A process is a thread, and one runs at a time: it goes on
 * until it sleeps in poll. So the same seed gives the same run.
 *
 * Connections are streams as TCP's: bytes come in order, in pieces, after a
 * delay; a connection that ends says so after what was sent before. Processes
 * are late, sleep and are killed; connections are cut; hosts are cut off, for a
 * while or for good. Tests only: not in the library. */
#ifndef FL_NET_SIM_NET_H
#define FL_NET_SIM_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_PROCESSES = 8,
};

typedef struct sim_net sim_net;

typedef struct sim_net_opts {
    uint64_t seed;
    int processes;
    int64_t delay; /* ns of a piece on its way, at most */
    size_t window; /* bytes that are sent and not read, at most */
    int cores;     /* what fl_cores says */
    int64_t limit; /* ns after which the run ends, whoever still works */
} sim_net_opts;

sim_net *sim_net_new(const sim_net_opts *opts);
void sim_net_free(sim_net *n);

uint64_t sim_net_dice(sim_net *n, uint64_t below); /* 0 .. below - 1 */
int64_t sim_net_now(const sim_net *n);
uint64_t sim_net_trace(const sim_net *n); /* of all events so far */
int64_t sim_net_events(const sim_net *n);

/* Process i starts then: it listens on its port and calls run(user, i). */
void sim_net_start(sim_net *n, int i, int64_t at,
                   void (*run)(void *user, int i), void *user);
const char *sim_net_endpoint(const sim_net *n, int i); /* "127.0.0.1:7001" */

/* Call fault(user) then. */
void sim_net_at(sim_net *n, int64_t at, void (*fault)(void *user), void *user);

/* Until all processes have ended. False: the limit came first. */
bool sim_net_run(sim_net *n);

/* --- faults --- */

void sim_net_kill(sim_net *n, int i);
void sim_net_stop(sim_net *n, int i, int64_t until); /* as SIGSTOP does */
/* A connection of process i ends at both ends with ECONNRESET. The process at
 * the other end; -1: i has no connection. */
int sim_net_cut(sim_net *n, int i);
/* Nothing comes to or from process i until then. A connection that is silent
 * for 14 s ends with ETIMEDOUT. */
void sim_net_isolate(sim_net *n, int i, int64_t until);
/* Somebody connects to process i, sends size random bytes and waits. */
void sim_net_stranger(sim_net *n, int i, size_t size);

/* --- for the code in a process --- */

int sim_net_listener(const sim_net *n, int i); /* a descriptor */
void sim_net_sleep(sim_net *n, int64_t ns);
bool sim_net_killed(const sim_net *n, int i);   /* what it does has no effect */
bool sim_net_ended(const sim_net *n, int i);    /* it was killed or is done */
int sim_net_left_open(const sim_net *n, int i); /* descriptors, at its end */

#endif
