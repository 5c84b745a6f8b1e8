/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - one-way messages to the other servers of a job.
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
 * Thread: one at a time; the server process holds the lock of its machines. */
#ifndef FL_PSERVER_PEERS_H
#define FL_PSERVER_PEERS_H

#include "cluster/placement.h"
#include "net/rpc.h"
#include "protocol/message.h"

typedef struct fl_peers fl_peers;

typedef struct fl_peers_opts {
    fl_rpc *rpc;               /* it ends before the peers are freed */
    const fl_placement *place; /* the servers, and which one this is */
    uint64_t secret;           /* of this process; never 0 */
    int64_t limit;             /* nanoseconds for one message */
    /* Called by the network, without a lock, when a message was answered or has
     * failed; `tag` is for fl_peers_delivered. */
    void (*delivered)(void *self, uint64_t tag, const fl_rpc_reply *reply);
    void *self;
} fl_peers_opts;

/* Own: new. Place and rpc are borrowed. Free accepts NULL. */
fl_peers *fl_peers_new(const fl_peers_opts *opts);
void fl_peers_free(fl_peers *p);

/* Send a message to another server, with what proves this one. */
void fl_peers_send(fl_peers *p, int server, const fl_msg *m);

/* Send the secret of this process to the coordinator's endpoint, in a STATE
 * message. A knock that is not answered yet is not sent again. */
void fl_peers_knock(fl_peers *p, const fl_msg *state);

/* A message was answered or has failed: send the one that waits, unless
 * `closed`. Returns the server that it was for. */
int fl_peers_delivered(fl_peers *p, uint64_t tag, bool closed);

/* Whether the message carries the secret of this process. If so, the secret of
 * its sender is remembered. */
bool fl_peers_proves(fl_peers *p, int server, const fl_msg *m);

/* Whether a message of this kind is on its way to any server. */
bool fl_peers_sending(const fl_peers *p, fl_msg_kind kind);

#endif
