/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - the other servers of a job: one-way messages to them and from them.
 *
 * A server must prove who it is. Each process draws a random number, its
 * secret, and sends it to the endpoints of the other servers only. Every
 * message between servers carries the secret of its receiver. A server that
 * gets a message without its own secret ignores the message and sends its
 * secret to the coordinator's endpoint: a knock. So only a process that can
 * listen at the endpoints, or to the network between them, can speak as one of
 * the servers.
 *
 * There is one channel for each server and kind of message. A channel has one
 * message on its way; of those that wait only the newest is kept, since the
 * state machines repeat what is not answered.
 *
 * Thread: the one that holds the lock of the machines. */
#ifndef FL_PSERVER_PEERS_H
#define FL_PSERVER_PEERS_H

#include "cluster/placement.h"
#include "net/rpc.h"
#include "pserver/machines.h"

typedef struct fl_peers fl_peers;

typedef struct fl_peers_opts {
    fl_rpc *rpc;               /* it ends before the peers are freed */
    fl_machines *machines;     /* they get what other servers send */
    const fl_placement *place; /* the servers, and which one this is */
    const fl_job *job;
    fl_state state;  /* of this server */
    uint64_t secret; /* of this process; never 0 */
    const fl_clock *clock;
} fl_peers_opts;

/* Own: new. What opts points to is borrowed. Free accepts NULL. */
fl_peers *fl_peers_new(const fl_peers_opts *opts);
void fl_peers_free(fl_peers *p);

/* Send a message to another server, with what proves this one. The machines are
 * told if it is refused. If a server of another job answers for a lease, the
 * job fails. */
void fl_peers_send(fl_peers *p, int server, const fl_msg *m);

/* A message of another server has come: answer the call, and give the message
 * to the machine that it is for, if its sender has proven itself. */
void fl_peers_recv(fl_peers *p, uint64_t call, const fl_msg *m);

/* Whether a message of this kind is on its way to any server. */
bool fl_peers_sending(const fl_peers *p, fl_msg_kind kind);

#endif
