/* grpc_in.h - what the files of the gRPC backend share.
 *
 *     grpc.c        the queue, its threads, the table of calls; calling
 *     grpc_call.c   the life of a call of either side
 *     grpc_serve.c  what comes in: methods, limits, health
 *
 * A call ends in two steps. Batches in flight hold it, and who works with it;
 * when the last lets go its gRPC object ends (unwind). Memory that was lent may
 * lie in a socket's buffer still; when that is free, too, the last callback
 * runs and the call is gone (finish). Both run on threads of the queue: another
 * thread that lets go last rings the bell, an empty batch that puts a tag into
 * the queue. */
#ifndef FL_NET_GRPC_IN_H
#define FL_NET_GRPC_IN_H

#include "base/atomic.h"
#include "base/pool.h"
#include "base/str.h"
#include "base/vec.h"
#include "net/rpc.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/status.h>
#include <pthread.h>
#include <signal.h>

enum {
    FL_GRPC_WHY = 2000, /* bytes of a sentence that travel; headers are small */
    FL_GRPC_WAITING = 16, /* words: then a served call is not read */
    FL_GRPC_MOST = 1024,  /* words: then a call is ended */
};

typedef struct fl_grpc_call fl_grpc_call;

/* What the queue hands back when something is done. */
typedef struct fl_grpc_tag {
    void (*run)(void *self, bool ok);
    void *self;
} fl_grpc_tag;

/* gRPC itself, which ends with the last packet that it filled. */
typedef struct fl_grpc_library {
    fl_count users;
} fl_grpc_library;

typedef struct fl_grpc_slot {
    fl_grpc_call *call; /* NULL: free */
    uint32_t used;      /* how often, so that no number comes twice */
} fl_grpc_slot;

struct fl_rpc_peer {
    char *address;
    grpc_channel *channel;
};

/* Thread: lock. What stands above it never changes, but for the server, which
 * fl_rpc_listen makes. The lock is never held when gRPC starts a batch, which
 * may drop lent memory, or when foreign code runs. */
struct fl_rpc {
    fl_rpc_opts opts;
    fl_grpc_library *library;
    grpc_completion_queue *queue;
    grpc_channel *nowhere; /* every call fails */
    grpc_call *bell;
    fl_pool *pool;
    fl_group polling;
    grpc_server *server;
    grpc_server_credentials *plain; /* of sockets that are accepted */
    fl_listener *listener;          /* NULL: gRPC listens, at a path */
    fl_grpc_tag stopped, settled;
    grpc_metadata token; /* what own calls show */

    pthread_mutex_t lock;
    pthread_cond_t quiet; /* no call is left, or the server has stopped */
    FL_VEC(fl_grpc_slot) slots;
    FL_VEC(uint32_t) free_slots;
    FL_VEC(fl_rpc_peer *) peers;
    int64_t live; /* calls not yet gone */
    int serving;  /* of them, being served */
    bool healthy, ending, server_stopped;
};

/* Thread: the rpc's lock from `id` on; above it, threads of the queue, which
 * come one after the other. */
struct fl_grpc_call {
    fl_rpc *rpc;
    grpc_call *grpc;
    bool own, open;
    fl_count holds;
    fl_count lent; /* packets with memory in gRPC's hands, 1 for `holds` */
    fl_grpc_tag arrived, read, wrote, closed, unwound, finished;
    grpc_byte_buffer *in, *out;
    grpc_metadata_array head, tail;
    grpc_call_details details;   /* served */
    const fl_rpc_method *method; /* served; NULL: none, or health */
    bool heard_of;               /* served: the method was told */
    uint64_t connection;         /* served: fl_listener_name; 0: not known */
    bool entered;                /* served: counted by its connection */
    bool counted;                /* served: part of rpc->serving */
    int broken;                  /* served: gone before it was answered */
    grpc_status_code status;     /* own */
    grpc_slice why;              /* own */
    bool late;                   /* own: it has a deadline */
    fl_rpc_done done;            /* own */
    void (*heard)(void *self, uint64_t tag, const fl_packet *p); /* own */

    uint64_t id;
    int64_t came; /* served: when, ns */
    bool unread;  /* served: its first message has not come */
    bool paused;  /* served: too many words wait for another to be read */
    FL_VEC(fl_packet *) words; /* the first `said` are gone */
    int64_t said;
    bool writing, greeted, mute; /* mute: nothing can be sent any more */
    bool ended, end_sent;        /* this side says no more; the other knows */
    bool cancelled;              /* own */
    grpc_status_code end_status; /* served */
    fl_str end_why;              /* served */
};

/* --- grpc.c --- */

/* How connections of both sides are set up. */
enum {
    FL_GRPC_ARGS = 32
};
typedef struct fl_grpc_args {
    grpc_arg arg[FL_GRPC_ARGS];
    grpc_channel_args args;
} fl_grpc_args;
const grpc_channel_args *fl_grpc_args_of(const fl_rpc *r, fl_grpc_args *out);

/* tag.run on a thread of the queue. From anywhere. */
void fl_grpc_ring(fl_rpc *r, fl_grpc_tag *tag);

/* Give a call its number; take it back, so that nobody finds it any more. */
void fl_grpc_enter(fl_grpc_call *c);
void fl_grpc_retire(fl_grpc_call *c);

/* A call of that number, held; NULL: it has ended. */
fl_grpc_call *fl_grpc_find(fl_rpc *r, uint64_t id);

void fl_grpc_library_unref(fl_grpc_library *l);

/* New threads of gRPC inherit the mask: no signal is delivered to them. */
void fl_grpc_signals_off(sigset_t *old);
void fl_grpc_signals_on(const sigset_t *old);

/* --- grpc_call.c --- */

fl_grpc_call *fl_grpc_call_new(fl_rpc *r, bool own); /* held once */
void fl_grpc_hold(fl_grpc_call *c);
void fl_grpc_release(fl_grpc_call *c); /* on a thread of the queue */
void fl_grpc_let_be(fl_grpc_call *c);  /* elsewhere */

/* Start a batch; tag.run follows, even if gRPC refuses it. Until then the call
 * is held. */
void fl_grpc_start(fl_grpc_call *c, const grpc_op *ops, int n,
                   fl_grpc_tag *tag);
void fl_grpc_listen_on(fl_grpc_call *c); /* start to read one message */

/* Send what is to be sent next, unless something is on its way. */
void fl_grpc_pump(fl_grpc_call *c);

/* Queue a last or only word; takes p, which may be NULL. False: the call had
 * ended on this side. Then the status, of a served call. */
bool fl_grpc_say(fl_grpc_call *c, fl_packet *p, bool last);
void fl_grpc_end(fl_grpc_call *c, grpc_status_code status, const char *why);

fl_packet *fl_grpc_unpack(fl_rpc *r, grpc_byte_buffer *b); /* takes b */

/* --- grpc_serve.c --- */

void fl_grpc_serve_word(fl_grpc_call *c, grpc_byte_buffer *b);
void fl_grpc_hangup(fl_grpc_call *c);

/* The call will not be found any more: it counts no longer. */
void fl_grpc_count_out(fl_grpc_call *c);

/* --- one table of statuses --- */

grpc_status_code fl_grpc_status_of(fl_err e);
fl_err fl_grpc_err_of(grpc_status_code s);

#endif
