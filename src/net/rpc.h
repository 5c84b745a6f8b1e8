/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h - requests and answers between processes, as bytes.
 *
 *     a request     is answered once: fl_rpc_answer or fl_rpc_refuse
 *     an open call  lives until one side ends it; both may speak at any time
 *
 * The methods that are served are a table. Everything that happens is told by
 * callbacks on threads of the backend, with none of its locks held; they may
 * call any function here except fl_rpc_free, and must not wait. A packet that
 * came may be kept, longer than the fl_rpc even. net/ does not know what the
 * bytes mean. The backend is gRPC (grpc.c); nothing of it exists before
 * fl_rpc_new. */
#ifndef FL_NET_RPC_H
#define FL_NET_RPC_H

#include "net/listener.h"
#include "net/packet.h"

typedef struct fl_rpc fl_rpc;           /* Thread: any */
typedef struct fl_rpc_peer fl_rpc_peer; /* where calls go; lives with fl_rpc */

/* --- serving --- */

typedef struct fl_rpc_method {
    const char *name; /* "/fluid.Server/Push"; NULL ends the table */
    bool open;        /* an open call */
    /* A request, or a word on an open call; p is borrowed (ref to keep). Of an
     * open call the first is NULL: it was opened. */
    void (*heard)(void *self, const struct fl_rpc_method *by, uint64_t call,
                  const fl_packet *p);
} fl_rpc_method;

typedef struct fl_rpc_opts {
    const fl_rpc_method *methods; /* NULL: only calls */
    void *self;                   /* for heard and hangup */
    /* Who made the call has gone before it was answered, or an open call has
     * ended. Exactly once for an open call that was heard of. */
    void (*hangup)(void *self, uint64_t call);
    int threads;        /* that callbacks run on; 0 = 1 */
    int max_calls;      /* of members at once; 0 = 1024, more are refused */
    size_t max_message; /* bytes, either way; 0 = 2^31 - 1 */
    bool held; /* who started us holds the port for us (SO_REUSEPORT) */
    /* Known to members only. Own calls show it, as metadata FL_RPC_TOKEN. A
     * connection on which nobody has shown it is a stranger's, for which small
     * limits hold (listener.h). NULL: none is shown, none is asked for. */
    const char *token;
} fl_rpc_opts;

#define FL_RPC_TOKEN "fluid-job"

/* Own: new. opts and the token are copied, the methods are not. */
fl_err fl_rpc_new(const fl_rpc_opts *opts, fl_rpc **out) FL_MUST_CHECK;

/* Cancel and hang up all calls, wait until the last callback has returned,
 * end the threads. NULL is fine. */
void fl_rpc_free(fl_rpc *r);

/* Begin to serve on "host:port" (port 0: any free one); *port is the one. The
 * address is bound alone: EIO if the port is taken, and by whom if that can be
 * known ("port 6174 on 127.0.0.1 is taken by process 4711 (python3)"). Once. */
fl_err fl_rpc_listen(fl_rpc *r, const char *address, int *port) FL_MUST_CHECK;

/* Does it still listen? Err: EIO. */
fl_err fl_rpc_check(fl_rpc *r) FL_MUST_CHECK;

/* What the health service (grpc.health.v1) answers; not serving at first. */
void fl_rpc_healthy(fl_rpc *r, bool serving);

/* The connection of a call is a member's from now on: its bytes have shown it.
 * And what it is; that of a call which has ended is a stranger's. */
void fl_rpc_trust(fl_rpc *r, uint64_t call);
fl_standing fl_rpc_standing(fl_rpc *r, uint64_t call);

/* Take p. A call that has hung up is passed over; an open one ends with p. */
void fl_rpc_answer(fl_rpc *r, uint64_t call, fl_packet *p);
/* Who made the call, as "127.0.0.1:40312"; "?" if it has ended. */
const char *fl_rpc_caller(fl_rpc *r, uint64_t call, char *buf, size_t size);

/* A status with a sentence instead. Ends an open call, too. */
void fl_rpc_refuse(fl_rpc *r, uint64_t call, fl_err code, const char *why);

/* --- calling --- */

typedef enum fl_rpc_end {
    FL_RPC_OK,
    FL_RPC_REFUSED,   /* nobody listens, no such host, no way there */
    FL_RPC_BROKEN,    /* the connection went away */
    FL_RPC_LATE,      /* the time was over */
    FL_RPC_DENIED,    /* the peer answered with a status: code, text */
    FL_RPC_CANCELLED, /* fl_rpc_cancel, fl_rpc_free */
} fl_rpc_end;

typedef struct fl_rpc_reply {
    fl_rpc_end end;
    fl_err code;      /* of DENIED, as given to fl_rpc_refuse; else EIO .. */
    const char *text; /* why; "" when OK */
    const fl_packet
        *packet;      /* OK: the answer, NULL of an open call. Borrowed */
    bool no_listener; /* REFUSED: the host is there and says so */
} fl_rpc_reply;

/* Exactly once for every call that was made, when no memory that was lent to it
 * is in use any more. So a call to a peer that takes no bytes may end later
 * than its time: with the connection, which is given up after 15 s. */
typedef struct fl_rpc_done {
    void (*run)(void *self, uint64_t tag, const fl_rpc_reply *reply);
    void *self;
    uint64_t tag;
} fl_rpc_done;

/* The peer at "host:port" or "unix:path": found or made. It connects when it is
 * first called, again when a connection broke, and never uses a proxy. */
fl_rpc_peer *fl_rpc_peer_at(fl_rpc *r, const char *address);

/* Ask; takes p. timeout in ns (0: none). The number of the call. A peer that
 * cannot be reached ends it at once (REFUSED): retries are the caller's. */
uint64_t fl_rpc_call(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     fl_packet *p, int64_t timeout, fl_rpc_done done);

/* An open call. `heard` gets each word of the other side until done.run. */
uint64_t fl_rpc_open(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     void (*heard)(void *self, uint64_t tag,
                                   const fl_packet *p),
                     fl_rpc_done done);

/* A word on an open call of either side; takes p. Words wait for each other: a
 * call on which 1024 of them wait is ended, and a served one is not read while
 * 16 do. A call that has ended is passed over. */
void fl_rpc_say(fl_rpc *r, uint64_t call, fl_packet *p);

/* End an own call: done.run comes with CANCELLED unless it had ended. */
void fl_rpc_cancel(fl_rpc *r, uint64_t call);

#endif
