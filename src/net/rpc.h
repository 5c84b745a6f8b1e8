/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h - requests and answers between processes, as bytes.
 *
 *     a request     is answered once: fl_rpc_answer or fl_rpc_refuse
 *     an open call  lives until one side ends it; both sides may send messages
 *                   ("words") at any time
 *
 * A table lists the methods that are served. Callbacks run on threads of the
 * implementation, with none of its locks held; they may call any function here
 * except fl_rpc_free, and must not block. A received packet may be kept, even
 * longer than the fl_rpc. net/ does not know what the bytes mean. The
 * implementation uses gRPC (grpc.c), which is not started before fl_rpc_new. */
#ifndef FL_NET_RPC_H
#define FL_NET_RPC_H

#include "net/listener.h"
#include "net/packet.h"
#include "net/tls.h"

typedef struct fl_rpc fl_rpc;           /* Thread: any */
typedef struct fl_rpc_peer fl_rpc_peer; /* receiver of calls; Own: fl_rpc's */

/* --- serving --- */

typedef struct fl_rpc_method {
    const char *name; /* "/fluid.Server/Push"; NULL ends the table */
    bool open;        /* an open call */
    /* A request, or a word on an open call, has arrived. p is borrowed; to keep
     * it, take a reference. For an open call the first p is NULL, when it is
     * opened. */
    void (*heard)(void *self, const struct fl_rpc_method *by, uint64_t call,
                  const fl_packet *p);
    int most; /* open call: words without an answer, after which the call is not
                 read until one is answered; 0: words need no answer */
} fl_rpc_method;

typedef struct fl_rpc_opts {
    const fl_rpc_method *methods; /* NULL: it serves nothing */
    void *self;                   /* for heard and hangup */
    /* The caller has ended a call before it was answered, or an open call has
     * ended. It is called exactly once for an open call that was reported. */
    void (*hangup)(void *self, uint64_t call);
    int threads;        /* threads for callbacks; 0 = 1 */
    int max_calls;      /* open calls of members; 0 = 1024, more are refused */
    size_t max_message; /* bytes of a message; 0 = 2^31 - 1 */
    bool held;          /* the launcher holds the port for us (SO_REUSEPORT) */
    /* A text that only members of the job know. Own calls send it as metadata
     * FL_RPC_TOKEN. A connection on which it was not sent is a stranger's and
     * has small limits (listener.h). NULL: none is sent and none is needed. */
    const char *token;
    fl_tls *tls; /* taken, also on failure; NULL: all bytes are plain text */
} fl_rpc_opts;

#define FL_RPC_TOKEN "fluid-job"

/* Own: new. Options and token are copied; the methods must outlive it. */
fl_err fl_rpc_new(const fl_rpc_opts *opts, fl_rpc **out) FL_MUST_CHECK;

/* End all calls, wait until the last callback has returned, and end the
 * threads. NULL is fine. */
void fl_rpc_free(fl_rpc *r);

/* Replace the token. Only while no own call was made. */
void fl_rpc_set_token(fl_rpc *r, const char *token);

/* Begin to serve on "host:port" (port 0: any free port); *port becomes the
 * port. May be called once. The port is not shared with other processes. Err:
 * EIO if the port is taken; the message names the process if possible ("port
 * 6174 on 127.0.0.1 is taken by process 4711 (python3 train.py)"). */
fl_err fl_rpc_listen(fl_rpc *r, const char *address, int *port) FL_MUST_CHECK;

/* Check that it still listens. Err: EIO. */
fl_err fl_rpc_check(fl_rpc *r) FL_MUST_CHECK;

/* Set the answer of the health service (grpc.health.v1); at first it is "not
 * serving". */
void fl_rpc_healthy(fl_rpc *r, bool serving);

/* From now on the connection of a call is a member's. */
void fl_rpc_trust(fl_rpc *r, uint64_t call);
/* Whether the connection of a call is a member's; FL_STRANGER if it has ended.
 */
fl_standing fl_rpc_standing(fl_rpc *r, uint64_t call);

/* Answer a request, which ends the call, or a word of an open call, which stays
 * open. A call that has ended already is ignored. Own: takes p. */
void fl_rpc_answer(fl_rpc *r, uint64_t call, fl_packet *p);
/* The caller's address, "127.0.0.1:40312"; "?" if the call has ended. */
const char *fl_rpc_caller(fl_rpc *r, uint64_t call, char *buf, size_t size);

/* End a call, also an open one, with an error status and a message. */
void fl_rpc_refuse(fl_rpc *r, uint64_t call, fl_err code, const char *why);

/* --- calling --- */

typedef enum fl_rpc_end {
    FL_RPC_OK,
    FL_RPC_REFUSED,   /* no process listens, no such host, or no route */
    FL_RPC_BROKEN,    /* the connection went away */
    FL_RPC_LATE,      /* the timeout has passed */
    FL_RPC_DENIED,    /* the peer answered with a status: code, text */
    FL_RPC_CANCELLED, /* fl_rpc_cancel, fl_rpc_free */
} fl_rpc_end;

typedef struct fl_rpc_reply {
    fl_rpc_end end;
    fl_err code;      /* DENIED: as given to fl_rpc_refuse; otherwise EIO .. */
    const char *text; /* why; "" when OK */
    const fl_packet
        *packet;      /* OK: the answer, borrowed; NULL for an open call */
    bool no_listener; /* REFUSED: the host says that no process listens */
} fl_rpc_reply;

/* `run` is called exactly once for every call, when none of the memory that was
 * lent to it is in use any more. So a call to a peer that does not read may end
 * later than its timeout, with the connection, which ends after 15 s. */
typedef struct fl_rpc_done {
    void (*run)(void *self, uint64_t tag, const fl_rpc_reply *reply);
    void *self;
    uint64_t tag;
} fl_rpc_done;

/* The peer at "host:port" or "unix:path". It connects at the first call,
 * connects again after a connection broke, and never uses a proxy. */
fl_rpc_peer *fl_rpc_peer_at(fl_rpc *r, const char *address);

/* Send a request; timeout in ns (0: none). Returns the number of the call. If
 * the peer cannot be reached, the call ends at once with REFUSED; the caller
 * may retry. Own: takes p. */
uint64_t fl_rpc_call(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     fl_packet *p, int64_t timeout, fl_rpc_done done);

/* Begin an open call. `heard` gets each word of the other side until done.run.
 */
uint64_t fl_rpc_open(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     void (*heard)(void *self, uint64_t tag,
                                   const fl_packet *p),
                     fl_rpc_done done);

/* Send a word on an open call, from either side. Words are sent one after the
 * other: a call with 1024 unsent words is ended, and a served call with 16 is
 * not read. A call that has ended is ignored. Own: takes p. */
void fl_rpc_say(fl_rpc *r, uint64_t call, fl_packet *p);

/* End an own call: done.run gets CANCELLED, unless the call has ended before.
 */
void fl_rpc_cancel(fl_rpc *r, uint64_t call);

#endif
