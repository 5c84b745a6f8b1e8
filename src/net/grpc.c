/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.c - implements rpc.h with gRPC.
 *
 * One completion queue serves calls of both sides. Its threads do gRPC's I/O
 * while they wait, so a callback that blocks would stop the network.
 *
 * A call ends in two steps. Batches in flight and functions that use the call
 * hold references to it; when the last one is released, its gRPC object is
 * freed (unwind_call). Lent memory may still be in a socket's buffer; when that
 * is released too, the last callback runs and the call is freed (finish_call).
 * Both steps run on threads of the queue. If another thread releases the last
 * reference, it puts a tag into the queue with an empty batch (ring_bell).
 *
 * A call has at most one sending batch in flight at a time. Easy to get wrong:
 * gRPC may release the last slice of a packet on any thread, deep inside its
 * own code, so the callback only decrements a count.
 *
 * All requests are accepted through one catch-all method, because gRPC would
 * let calls of unknown methods wait forever. A message is read only after the
 * method and the number of calls have been checked. What a stranger's
 * connection may send, and how long its calls may last, is limited
 * (listener.h). */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "net/grpc_acceptor.h"
#include "net/grpc_library.h"
#include "net/port.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/status.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdio.h>

enum {
    WHY_MOST = 2000, /* bytes of an error message: headers are limited */
    LEND_LEAST =
        1024,         /* bytes; smaller memory is faster to copy than to lend */
    SLICES_FEW = 16,  /* slices of a message that need no memory of their own */
    WORDS_FEW = 4,    /* unsent words that need no memory of their own */
    WORDS_PAUSE = 16, /* unsent words after which a served call is not read */
    WORDS_MOST = 1024,    /* unsent words after which a call is ended */
    REQUESTS_ASKED = 256, /* requests that gRPC may deliver before we ask for
                             more; further ones are delivered late */
    CALLS_MOST = 1024,    /* default of opts.max_calls */
    SPARE_MOST = 16,      /* ended calls whose memory is kept for new ones */
};
#define SECOND        INT64_C(1000000000)
#define STRANGER_TIME (5 * SECOND)   /* limit of a whole call */
#define MEMBER_TIME   (600 * SECOND) /* limit until the message is complete */

static const char health[] = "/grpc.health.v1.Health/Check";

typedef struct rpc_call rpc_call;

/* A packet that gRPC is sending. */
typedef struct freight {
    fl_packet *packet;
    rpc_call *call;
    fl_count slices;
} freight;

/* A tag of the completion queue: run is called when its batch is done. */
typedef struct queue_tag {
    void (*run)(void *self, bool ok);
    void *self;
} queue_tag;

typedef struct call_slot {
    rpc_call *call; /* NULL: free */
    uint32_t
        used; /* how often the slot was used, so that call numbers differ */
} call_slot;

struct fl_rpc_peer {
    char *address;
    grpc_channel *channel;
};

/* Thread: `lock` guards the fields below it; those above it never change,
 * except `server`, which fl_rpc_listen sets. The lock is never held when gRPC
 * starts a batch, which may drop lent memory, or when a callback runs. */
struct fl_rpc {
    fl_rpc_opts opts;
    fl_grpc_library *library;
    grpc_completion_queue *queue;
    grpc_channel *nowhere; /* a channel on which every call fails */
    grpc_call *bell;
    fl_pool *pool;
    fl_group polling;
    grpc_server *server;
    grpc_server_credentials *plain; /* for accepted sockets */
    fl_grpc_acceptor *acceptor;     /* NULL: accepted sockets are plain text */
    fl_listener *listener;          /* NULL: gRPC listens at a unix: path */
    queue_tag stopped, settled;
    grpc_metadata token; /* sent with own calls */

    pthread_mutex_t lock;
    pthread_cond_t quiet; /* no call is left, or the server has stopped */
    FL_VEC(call_slot) slots;
    FL_VEC(uint32_t) free_slots;
    FL_VEC(fl_rpc_peer *) peers;
    rpc_call *spare[SPARE_MOST]; /* memory for new calls */
    int spares;
    int64_t live; /* calls that are not freed yet */
    int serving;  /* calls of members that are being served */
    bool healthy, ending, server_stopped;
};

/* Thread: the rpc's lock guards the fields from `id` on; those above belong to
 * the threads of the queue, one at a time. */
struct rpc_call {
    fl_rpc *rpc;
    grpc_call *grpc;
    bool own, open;
    fl_count holds;
    fl_count lent; /* packets that gRPC still uses, plus 1 for `holds` */
    queue_tag arrived, read, wrote, closed, unwound, finished;
    grpc_byte_buffer *in, *out;
    freight first;       /* of a message, if no other one uses it */
    fl_count first_used; /* 1: a message uses it */
    grpc_metadata_array head, tail;
    grpc_call_details details;   /* served */
    const fl_rpc_method *method; /* served; NULL: unknown, or health */
    bool heard_of;               /* served: the method's callback was called */
    uint64_t connection;         /* served: fl_listener_name; 0: not known */
    bool entered;                /* served: counted by its connection */
    bool counted;                /* served: part of rpc->serving */
    int broken;                  /* served: it ended before it was answered */
    grpc_status_code status;     /* own */
    grpc_slice why;              /* own */
    bool late;                   /* own: it has a deadline */
    fl_rpc_done done;            /* own */
    void (*heard)(void *self, uint64_t tag, const fl_packet *p); /* own */

    uint64_t id;
    int64_t came;   /* served: time of arrival, ns */
    bool unread;    /* served: its first message has not arrived */
    bool paused;    /* served: not read, because too many words are unsent */
    int unanswered; /* served: words that were not answered */
    FL_VEC(fl_packet *)
    words; /* messages to send; the first `said` were sent */
    fl_packet *few_words[WORDS_FEW]; /* memory of `words` at first */
    int64_t said;
    bool writing, greeted, mute; /* mute: nothing can be sent any more */
    bool ended, end_sent;        /* this side sends no more; the other knows */
    bool cancelled;              /* own */
    grpc_status_code end_status; /* served */
    fl_str end_why;              /* served */
};

/* --- statuses --- */

static const struct {
    fl_err err;
    grpc_status_code status;
} statuses[] = {
    /* The first row that fits is used. UNAVAILABLE and CANCELLED are left out:
     * gRPC itself reports the end of a connection with them. */
    {FL_OK, GRPC_STATUS_OK},
    {FL_EINVAL, GRPC_STATUS_INVALID_ARGUMENT},
    {FL_ENOENT, GRPC_STATUS_NOT_FOUND},
    {FL_ESHAPE, GRPC_STATUS_FAILED_PRECONDITION},
    {FL_EIO, GRPC_STATUS_INTERNAL},
    {FL_EPROTO, GRPC_STATUS_DATA_LOSS},
    {FL_ETIMEOUT, GRPC_STATUS_DEADLINE_EXCEEDED},
    {FL_ENOMEM, GRPC_STATUS_RESOURCE_EXHAUSTED},
    {FL_EINTR, GRPC_STATUS_ABORTED},
    {FL_ETYPE, GRPC_STATUS_OUT_OF_RANGE},
    {FL_ENOENT, GRPC_STATUS_UNIMPLEMENTED}, /* no such method */
};

static grpc_status_code status_of(fl_err e)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].err == e)
            return statuses[i].status;
    return GRPC_STATUS_INTERNAL;
}

static fl_err err_of(grpc_status_code s)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == s)
            return statuses[i].err;
    return FL_EIO;
}

/* --- the queue --- */

static void poll_queue(void *arg)
{
    fl_rpc *r = arg;
    for (;;) {
        grpc_event e = grpc_completion_queue_next(
            r->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        if (e.type == GRPC_QUEUE_SHUTDOWN)
            return;
        queue_tag *t = e.tag;
        t->run(t->self, e.success);
    }
}

/* Let tag.run be called on a thread of the queue. Thread: any. */
static void ring_bell(fl_rpc *r, queue_tag *tag)
{
    grpc_call_start_batch(r->bell, NULL, 0, tag, NULL);
}

/* --- received packets --- */

static void drop_bytes(void *bytes)
{
    grpc_byte_buffer_destroy(bytes);
}

static void drop_library(void *library)
{
    fl_grpc_library_unref(library);
}

/* Make a packet of received bytes. It keeps the library alive, too. Own: takes
 * b. */
static fl_packet *unpack_bytes(fl_rpc *r, grpc_byte_buffer *b)
{
    grpc_byte_buffer_reader reader;
    grpc_slice *s;
    fl_packet *p = fl_packet_new();
    fl_packet_lend(p, NULL, 0, drop_bytes, b);
    fl_packet_lend(p, NULL, 0, drop_library, fl_grpc_library_ref(r->library));
    if (!grpc_byte_buffer_reader_init(&reader, b))
        return p;
    while (grpc_byte_buffer_reader_peek(&reader, &s))
        fl_packet_lend(p, GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s), NULL,
                       NULL);
    grpc_byte_buffer_reader_destroy(&reader);
    return p;
}

/* --- the end of a call --- */

/* Whether the peer was reached. gRPC has one status for a failed connect and
 * for a broken connection; only its message tells them apart. */
static bool was_reached(const rpc_call *c)
{
    static const char *const never[] = {
        "failed to connect",
        "DNS resolution failed",
        "empty address list",
    };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        size_t n = strlen(never[i]);
        if (GRPC_SLICE_LENGTH(c->why) >= n &&
            !memcmp(GRPC_SLICE_START_PTR(c->why), never[i], n))
            return false;
    }
    return true;
}

/* How an own call has ended. */
static fl_rpc_end end_of(const rpc_call *c)
{
    switch (c->status) {
    case GRPC_STATUS_OK:
        return c->open || c->in ? FL_RPC_OK : FL_RPC_DENIED;
    case GRPC_STATUS_CANCELLED:
        return c->cancelled ? FL_RPC_CANCELLED : FL_RPC_BROKEN;
    case GRPC_STATUS_UNAVAILABLE:
        return c->cancelled     ? FL_RPC_CANCELLED
               : was_reached(c) ? FL_RPC_BROKEN
                                : FL_RPC_REFUSED;
    case GRPC_STATUS_DEADLINE_EXCEEDED:
        return c->late ? FL_RPC_LATE : FL_RPC_DENIED;
    default:
        return FL_RPC_DENIED;
    }
}

static fl_err code_of(const rpc_call *c, fl_rpc_end end)
{
    switch (end) {
    case FL_RPC_OK:
        return FL_OK;
    case FL_RPC_LATE:
        return FL_ETIMEOUT;
    case FL_RPC_CANCELLED:
        return FL_EINTR;
    case FL_RPC_DENIED:
        return c->status ? err_of(c->status) : FL_EPROTO;
    default:
        return FL_EIO;
    }
}

/* Append what the peer or gRPC says of the end. */
static void add_why(const rpc_call *c, fl_str *text)
{
    fl_str why = {0};
    fl_str_bytes(&why, GRPC_SLICE_START_PTR(c->why), GRPC_SLICE_LENGTH(c->why));
    fl_utf8_escape(text, why.at); /* text from the peer */
    fl_str_fini(&why);
}

static void tell_done(rpc_call *c)
{
    fl_rpc_end end = end_of(c);
    fl_str text = {0};
    if (GRPC_SLICE_LENGTH(c->why))
        add_why(c, &text);
    if (end == FL_RPC_DENIED && !c->status)
        fl_str_add(&text, "the peer answered without a message");
    fl_packet *p = NULL;
    if (end == FL_RPC_OK && c->in) {
        p = unpack_bytes(c->rpc, c->in);
        c->in = NULL;
    }
    fl_rpc_reply reply = {end, code_of(c, end), text.at ? text.at : "", p};
    reply.no_listener =
        end == FL_RPC_REFUSED && strstr(reply.text, "Connection refused");
    c->done.run(c->done.self, c->done.tag, &reply);
    fl_packet_unref(p);
    fl_str_fini(&text);
}

static void tell_hangup(rpc_call *c)
{
    const fl_rpc_opts *o = &c->rpc->opts;
    if (c->heard_of && (c->open || !c->ended) && o->hangup)
        o->hangup(o->self, c->id);
}

/* Release what a call has, except its own memory. */
static void call_fini(rpc_call *c)
{
    for (int64_t i = c->said; i < c->words.n; i++)
        fl_packet_unref(c->words.at[i]);
    fl_vec_free_grown(c->words.at, c->few_words);
    fl_str_fini(&c->end_why);
    grpc_byte_buffer_destroy(c->in);
    grpc_byte_buffer_destroy(c->out);
    grpc_metadata_array_destroy(&c->head);
    grpc_metadata_array_destroy(&c->tail);
    grpc_call_details_destroy(&c->details);
    grpc_slice_unref(c->why);
}

static void finish_call(void *self, bool ok)
{
    rpc_call *c = self;
    fl_rpc *r = c->rpc;
    if (c->own)
        tell_done(c);
    else
        tell_hangup(c);
    call_fini(c);
    pthread_mutex_lock(&r->lock);
    const bool keep = r->spares < SPARE_MOST;
    if (keep)
        r->spare[r->spares++] = c;
    if (!--r->live)
        pthread_cond_broadcast(&r->quiet);
    pthread_mutex_unlock(&r->lock);
    if (!keep)
        fl_mem_free(c);
}

static void unwind_call(void *self, bool ok)
{
    rpc_call *c = self;
    if (c->grpc)
        grpc_call_unref(c->grpc);
    if (!fl_count_down(&c->lent))
        finish_call(c, true);
}

static void hold_call(rpc_call *c)
{
    fl_count_up(&c->holds);
}

/* Release a reference. Thread: one of the queue. */
static void release_on_queue(rpc_call *c)
{
    if (!fl_count_down(&c->holds))
        unwind_call(c, true);
}

/* Release a reference. Thread: any. */
static void release_call(rpc_call *c)
{
    if (!fl_count_down(&c->holds))
        ring_bell(c->rpc, &c->unwound);
}

/* --- the table of calls --- */

/* Assign a number to a call. */
static void enter_call(rpc_call *c)
{
    fl_rpc *r = c->rpc;
    pthread_mutex_lock(&r->lock);
    if (!r->free_slots.n) {
        fl_push(&r->free_slots, (uint32_t)r->slots.n);
        fl_push(&r->slots, (call_slot){0});
    }
    uint32_t i = r->free_slots.at[--r->free_slots.n];
    r->slots.at[i].call = c;
    c->id = (uint64_t)++r->slots.at[i].used << 32 | i;
    pthread_mutex_unlock(&r->lock);
}

/* Do not count the call any more. */
static void count_out(rpc_call *c)
{
    if (c->entered && c->rpc->listener)
        fl_listener_leave(c->rpc->listener, c->connection);
    c->entered = false;
}

/* Free the number of a call, so that find_call does not find it any more. */
static void retire_call(rpc_call *c)
{
    fl_rpc *r = c->rpc;
    uint32_t i = (uint32_t)c->id;
    pthread_mutex_lock(&r->lock);
    r->slots.at[i].call = NULL;
    fl_push(&r->free_slots, i);
    r->serving -= c->counted;
    pthread_mutex_unlock(&r->lock);
    if (!c->own)
        count_out(c);
}

/* A reference to the call with that number; NULL: it has ended. */
static rpc_call *find_call(fl_rpc *r, uint64_t id)
{
    rpc_call *c = NULL;
    uint32_t i = (uint32_t)id;
    pthread_mutex_lock(&r->lock);
    if (i < r->slots.n && r->slots.at[i].used == id >> 32)
        c = r->slots.at[i].call;
    if (c)
        hold_call(c);
    pthread_mutex_unlock(&r->lock);
    return c;
}

/* --- batches --- */

/* Start a batch. tag.run is called when it is done, even if gRPC refuses it.
 * The batch holds a reference to the call. */
static void start_batch(rpc_call *c, const grpc_op *ops, int n, queue_tag *tag)
{
    hold_call(c);
    if (grpc_call_start_batch(c->grpc, ops, (size_t)n, tag, NULL))
        ring_bell(c->rpc, tag);
}

/* Start to read one message. */
static void read_next(rpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &c->in;
    start_batch(c, &op, 1, &c->read);
}

/* --- bytes out --- */

static void slice_drop(void *user)
{
    freight *f = user;
    rpc_call *c = f->call;
    if (fl_count_down(&f->slices))
        return;
    fl_packet_unref(f->packet);
    if (f != &c->first)
        fl_mem_free(f);
    else
        fl_count_down(&c->first_used);
    if (!fl_count_down(&c->lent))
        ring_bell(c->rpc, &c->finished);
}

static grpc_slice slice_of(freight *f, fl_span s)
{
    if (s.size < LEND_LEAST)
        return grpc_slice_from_copied_buffer(s.at, s.size);
    fl_count_up(&f->slices);
    return grpc_slice_new_with_user_data((void *)s.at, s.size, slice_drop, f);
}

/* Make a byte buffer that lends the packet's memory. Own: takes p. */
static grpc_byte_buffer *pack_packet(rpc_call *c, fl_packet *p)
{
    const fl_span *spans;
    int n = fl_packet_spans(p, &spans);
    grpc_slice few[SLICES_FEW], *slices = few;
    if (n > SLICES_FEW)
        slices = fl_mem_alloc((size_t)n * sizeof *slices);
    freight *f = &c->first;
    if (fl_count_get(&c->first_used))
        f = fl_mem_alloc(sizeof *f);
    else
        fl_count_up(&c->first_used);
    *f = (freight){p, c};
    fl_count_init(&f->slices, 1);
    fl_count_up(&c->lent);
    for (int i = 0; i < n; i++)
        slices[i] = slice_of(f, spans[i]);
    grpc_byte_buffer *b = grpc_raw_byte_buffer_create(slices, (size_t)n);
    for (int i = 0; i < n; i++)
        grpc_slice_unref(slices[i]);
    if (slices != few)
        fl_mem_free(slices);
    slice_drop(f);
    return b;
}

/* The ops of the next sending batch. */
typedef struct sending {
    bool head, end;
    fl_packet *word;
} sending;

/* Forget the words that were sent once they are half of the list, so that it
 * stays short even if there is always one more to send. */
static void forget_said(rpc_call *c)
{
    if (2 * c->said < c->words.n)
        return;
    c->words.n -= c->said;
    memmove(c->words.at, c->words.at + c->said,
            (size_t)c->words.n * sizeof *c->words.at);
    c->said = 0;
}

static bool next_sending(rpc_call *c, sending *out)
{
    pthread_mutex_lock(&c->rpc->lock);
    bool more = c->said < c->words.n;
    bool go = !c->writing && !c->mute &&
              (!c->greeted || more || (c->ended && !c->end_sent));
    if (go) {
        *out = (sending){.head = !c->greeted};
        if (more)
            out->word = c->words.at[c->said++];
        forget_said(c);
        out->end = c->ended && !c->words.n;
        c->end_sent = out->end;
        c->writing = c->greeted = true;
    }
    pthread_mutex_unlock(&c->rpc->lock);
    return go;
}

static grpc_op head_op(rpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    if (c->own && c->rpc->opts.token) {
        op.data.send_initial_metadata.count = 1;
        op.data.send_initial_metadata.metadata = &c->rpc->token;
    }
    return op;
}

static grpc_op end_op(rpc_call *c, grpc_slice *why)
{
    grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    if (!c->own) {
        *why = grpc_slice_from_copied_buffer(c->end_why.at, c->end_why.n);
        op.op = GRPC_OP_SEND_STATUS_FROM_SERVER;
        op.data.send_status_from_server.status = c->end_status;
        op.data.send_status_from_server.status_details = why;
    }
    return op;
}

/* Start the next sending batch, unless one is in flight. */
static void send_next(rpc_call *c)
{
    sending s;
    grpc_op ops[3];
    int n = 0;
    grpc_slice why = grpc_empty_slice();
    if (!next_sending(c, &s))
        return;
    if (s.head)
        ops[n++] = head_op(c);
    if (s.word) {
        c->out = pack_packet(c, s.word);
        ops[n] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
        ops[n++].data.send_message.send_message = c->out;
    }
    if (s.end)
        ops[n++] = end_op(c, &why);
    start_batch(c, ops, n, &c->wrote);
    grpc_slice_unref(why);
}

static bool add_word(rpc_call *c, fl_packet *p, bool last)
{
    pthread_mutex_lock(&c->rpc->lock);
    bool ok = !c->ended && !c->mute;
    const bool full = ok && c->words.n - c->said >= WORDS_MOST;
    if (full) /* the other side does not read */
        ok = false, c->mute = true;
    if (ok && p) {
        fl_vec_grow_from((void **)&c->words.at, c->few_words, c->words.n,
                         &c->words.cap, c->words.n + 1, sizeof *c->words.at);
        fl_push(&c->words, p);
    }
    c->ended |= last;
    pthread_mutex_unlock(&c->rpc->lock);
    if (full)
        grpc_call_cancel(c->grpc, NULL);
    return ok;
}

/* Queue a message, or if p is NULL only the end. Own: takes p. False: this side
 * had ended the call before. */
static bool say_word(rpc_call *c, fl_packet *p, bool last)
{
    bool ok = add_word(c, p, last);
    if (ok)
        send_next(c);
    else
        fl_packet_unref(p);
    return ok;
}

/* End a served call with a status. */
static void end_call(rpc_call *c, grpc_status_code status, const char *why)
{
    pthread_mutex_lock(&c->rpc->lock);
    if (!c->ended) {
        c->end_status = status;
        fl_str_bytes(&c->end_why, why, strnlen(why, WHY_MOST));
        c->ended = true;
    }
    pthread_mutex_unlock(&c->rpc->lock);
    send_next(c);
}

/* --- bytes in --- */

static void answer_health(rpc_call *c)
{
    unsigned char word[2] = {0x08, 2}; /* HealthCheckResponse.status */
    pthread_mutex_lock(&c->rpc->lock);
    word[1] = c->rpc->healthy ? 1 : 2; /* SERVING, NOT_SERVING */
    pthread_mutex_unlock(&c->rpc->lock);
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, word, sizeof word);
    say_word(c, p, true);
}

/* Under the lock: may another word of a served call be read? Not while too many
 * answers wait to be sent, because the other side does not read them, or too
 * many words wait to be answered. */
static bool may_read(const rpc_call *c)
{
    const int most = c->method ? c->method->most : 0;
    return c->words.n - c->said < WORDS_PAUSE &&
           (!most || c->unanswered < most);
}

static bool pause_reading(rpc_call *c)
{
    pthread_mutex_lock(&c->rpc->lock);
    const bool pause = !may_read(c);
    c->paused = pause;
    pthread_mutex_unlock(&c->rpc->lock);
    return pause;
}

/* Read on, if the call was paused and may be read again. */
static void resume_reading(rpc_call *c)
{
    pthread_mutex_lock(&c->rpc->lock);
    const bool resume = c->paused && may_read(c);
    c->paused &= !resume;
    pthread_mutex_unlock(&c->rpc->lock);
    if (resume)
        read_next(c);
}

static void serve_word(rpc_call *c, grpc_byte_buffer *b)
{
    if (!b && c->open) { /* the other side sends no more */
        end_call(c, GRPC_STATUS_OK, "");
        return;
    }
    if (!b) {
        end_call(c, GRPC_STATUS_INVALID_ARGUMENT, "the request has no message");
        return;
    }
    fl_packet *p = unpack_bytes(c->rpc, b);
    pthread_mutex_lock(&c->rpc->lock);
    c->unread = false;
    c->unanswered++;
    pthread_mutex_unlock(&c->rpc->lock);
    if (c->method) {
        c->heard_of = true;
        c->method->heard(c->rpc->opts.self, c->method, c->id, p);
    } else {
        answer_health(c);
    }
    fl_packet_unref(p);
    if (c->open && !pause_reading(c))
        read_next(c);
}

/* --- events of a call --- */

static void on_read(void *self, bool ok)
{
    rpc_call *c = self;
    grpc_byte_buffer *b = c->in;
    c->in = NULL;
    if (!c->own) {
        serve_word(c, b);
    } else if (b) {
        fl_packet *p = unpack_bytes(c->rpc, b);
        c->heard(c->done.self, c->done.tag, p);
        fl_packet_unref(p);
        read_next(c);
    }
    release_on_queue(c);
}

static void on_closed(void *self, bool ok)
{
    rpc_call *c = self;
    retire_call(c);
    release_on_queue(c);
}

static void on_wrote(void *self, bool ok)
{
    rpc_call *c = self;
    grpc_byte_buffer_destroy(c->out);
    c->out = NULL;
    pthread_mutex_lock(&c->rpc->lock);
    c->writing = false;
    c->mute |= !ok;
    pthread_mutex_unlock(&c->rpc->lock);
    send_next(c);
    resume_reading(c);
    release_on_queue(c);
}

/* Memory for a call, which is counted from now on. */
static rpc_call *take_spare(fl_rpc *r)
{
    rpc_call *c = NULL;
    pthread_mutex_lock(&r->lock);
    r->live++;
    if (r->spares)
        c = r->spare[--r->spares];
    pthread_mutex_unlock(&r->lock);
    if (!c)
        return fl_mem_alloc(sizeof *c);
    memset(c, 0, sizeof *c);
    return c;
}

/* Make a call with one reference. */
static rpc_call *call_new(fl_rpc *r, bool own)
{
    rpc_call *c = take_spare(r);
    c->rpc = r;
    c->own = own;
    c->connection = -1;
    fl_count_init(&c->holds, 1);
    fl_count_init(&c->lent, 1);
    c->read = (queue_tag){on_read, c};
    c->wrote = (queue_tag){on_wrote, c};
    c->closed = (queue_tag){on_closed, c};
    c->unwound = (queue_tag){unwind_call, c};
    c->finished = (queue_tag){finish_call, c};
    grpc_metadata_array_init(&c->head);
    grpc_metadata_array_init(&c->tail);
    grpc_call_details_init(&c->details);
    c->why = grpc_empty_slice();
    c->status = GRPC_STATUS_UNKNOWN;
    c->words.at = c->few_words;
    c->words.cap = WORDS_FEW;
    return c;
}

/* --- incoming requests --- */

static const fl_rpc_method *find_method(const fl_rpc *r, const grpc_slice *name)
{
    for (const fl_rpc_method *m = r->opts.methods; m && m->name; m++)
        if (!grpc_slice_str_cmp(*name, m->name))
            return m;
    return NULL;
}

static void refuse_unknown(rpc_call *c)
{
    fl_str why = {0};
    const grpc_slice *name = &c->details.method;
    size_t n = GRPC_SLICE_LENGTH(*name);
    fl_str_printf(&why, "no method %.*s here; there are ",
                  (int)(n < 200 ? n : 200),
                  (const char *)GRPC_SLICE_START_PTR(*name));
    for (const fl_rpc_method *m = c->rpc->opts.methods; m && m->name; m++)
        fl_str_printf(&why, "%s, ", m->name);
    fl_str_add(&why, health);
    end_call(c, GRPC_STATUS_UNIMPLEMENTED, why.at);
    fl_str_fini(&why);
}

/* Whether the caller has sent the token. */
static bool shows_token(const rpc_call *c)
{
    bool shows = false;
    for (size_t i = 0; i < c->head.count; i++) {
        if (grpc_slice_str_cmp(c->head.metadata[i].key, FL_RPC_TOKEN))
            continue;
        pthread_mutex_lock(&c->rpc->lock);
        const char *token = c->rpc->opts.token;
        shows = token && !grpc_slice_str_cmp(c->head.metadata[i].value, token);
        pthread_mutex_unlock(&c->rpc->lock);
        break;
    }
    return shows;
}

/* The name of the call's connection. gRPC calls a connection that the listener
 * accepted "fd:12", or with TLS by the address of its peer. It closes the
 * socket after the last of its calls has ended, so the number still belongs to
 * this connection. */
static uint64_t find_connection(rpc_call *c)
{
    const fl_rpc *r = c->rpc;
    char *peer = grpc_call_get_peer(c->grpc);
    int fd = -1;
    if (r->acceptor)
        fd = fl_grpc_acceptor_find(r->acceptor, peer);
    else if (sscanf(peer, "fd:%d", &fd) != 1)
        fd = -1;
    gpr_free(peer);
    return r->listener ? fl_listener_name(r->listener, fd) : 0;
}

static void refuse_one_more(rpc_call *c, const char *which)
{
    fl_str why = {0};
    fl_str_printf(&why, "%s are being served, no more are taken", which);
    end_call(c, GRPC_STATUS_RESOURCE_EXHAUSTED, why.at);
    fl_str_fini(&why);
}

/* Count a call: a stranger's against the limit of its connection, a member's
 * against the limit of the server. So strangers cannot use up the calls of
 * members. */
static bool count_in(rpc_call *c)
{
    fl_rpc *r = c->rpc;
    char which[32];
    int most = r->opts.max_calls ? r->opts.max_calls : CALLS_MOST;
    c->entered = !r->listener || fl_listener_enter(r->listener, c->connection);
    if (!c->entered) {
        refuse_one_more(c, "as many calls as a stranger may have");
        return false;
    }
    if (!c->method) /* a health check is not counted; others are refused */
        return true;
    if (r->listener &&
        fl_listener_standing(r->listener, c->connection) != FL_MEMBER)
        return true;
    pthread_mutex_lock(&r->lock);
    c->counted = r->serving < most;
    r->serving += c->counted;
    pthread_mutex_unlock(&r->lock);
    snprintf(which, sizeof which, "%d calls", most);
    if (!c->counted)
        refuse_one_more(c, which);
    return c->counted;
}

static void await_close(rpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &c->broken;
    start_batch(c, &op, 1, &c->closed);
}

/* Check a new call. False: it was refused. */
static bool admit_call(rpc_call *c)
{
    bool checks = !grpc_slice_str_cmp(c->details.method, health);
    c->method = find_method(c->rpc, &c->details.method);
    c->open = c->method && c->method->open;
    c->connection = find_connection(c);
    if (c->rpc->listener && shows_token(c))
        fl_listener_trust(c->rpc->listener, c->connection);
    if (!count_in(c))
        return false;
    if (!c->method && !checks)
        refuse_unknown(c);
    return c->method || checks;
}

static void begin_serving(rpc_call *c)
{
    if (c->open) {
        send_next(c); /* tells the other side that the call is open */
        c->heard_of = true;
        c->method->heard(c->rpc->opts.self, c->method, c->id, NULL);
    }
    read_next(c);
}

static void arm_server(fl_rpc *r);

/* A request has arrived. It is counted before its end, which ends the counting,
 * can be reported. */
static void on_arrived(void *self, bool ok)
{
    rpc_call *c = self;
    if (ok) {
        arm_server(c->rpc);
        c->came = fl_clock_now(fl_clock_real());
        c->unread = true;
        enter_call(c);
        bool served = admit_call(c);
        await_close(c);
        if (served)
            begin_serving(c);
    }
    release_on_queue(c);
}

static void arm_server(fl_rpc *r)
{
    rpc_call *c = call_new(r, false);
    c->arrived = (queue_tag){on_arrived, c};
    if (grpc_server_request_call(r->server, &c->grpc, &c->details, &c->head,
                                 r->queue, r->queue, &c->arrived))
        release_call(c);
}

/* --- listening --- */

static void on_stopped(void *self, bool ok)
{
    fl_rpc *r = self;
    pthread_mutex_lock(&r->lock);
    r->server_stopped = true;
    pthread_cond_broadcast(&r->quiet);
    pthread_mutex_unlock(&r->lock);
}

static void take_socket(void *self, int fd)
{
    fl_rpc *r = self;
    if (r->acceptor)
        fl_grpc_acceptor_take(r->acceptor, fd);
    else
        grpc_server_add_channel_from_fd(r->server, fd, r->plain);
}

/* The tag has come out of the queue: all earlier events have been reported. */
static void on_settled(void *self, bool ok)
{
    fl_rpc *r = self;
    fl_listener_settled(r->listener);
}

static void settle_queue(void *self)
{
    fl_rpc *r = self;
    ring_bell(r, &r->settled);
}

/* Why a call must end; NULL: it may go on. */
static const char *fault_of(rpc_call *c, int64_t now)
{
    if (fl_listener_standing(c->rpc->listener, c->connection) != FL_MEMBER)
        return "a call of a process that is not a member of the job must end "
               "within 5 s";
    pthread_mutex_lock(&c->rpc->lock);
    const bool late = c->unread && now - c->came > MEMBER_TIME;
    pthread_mutex_unlock(&c->rpc->lock);
    return late ? "the message was not complete within ten minutes" : NULL;
}

static void end_late_call(rpc_call *c, int64_t now)
{
    const char *why = fault_of(c, now);
    if (why)
        grpc_call_cancel_with_status(c->grpc, GRPC_STATUS_DEADLINE_EXCEEDED,
                                     why, NULL);
}

static void end_late_calls(void *self, int64_t now)
{
    fl_rpc *r = self;
    FL_VEC(rpc_call *) old = {0};
    pthread_mutex_lock(&r->lock);
    for (int64_t i = 0; i < r->slots.n; i++) {
        rpc_call *c = r->slots.at[i].call;
        if (!c || c->own || now - c->came <= STRANGER_TIME)
            continue;
        hold_call(c);
        fl_push(&old, c);
    }
    pthread_mutex_unlock(&r->lock);
    for (int64_t i = 0; i < old.n; i++) {
        end_late_call(old.at[i], now);
        release_call(old.at[i]);
    }
    fl_vec_fini(&old);
}

static void start_server(fl_rpc *r)
{
    r->stopped = (queue_tag){on_stopped, r};
    grpc_server_start(r->server);
    for (int i = 0; i < REQUESTS_ASKED; i++)
        arm_server(r);
}

/* Make the server. A path of the file system needs no TLS. */
static fl_err make_server(fl_rpc *r, bool path)
{
    fl_grpc_args args;
    fl_grpc_args_of(&r->opts, &args);
    if (r->opts.tls && !path)
        FL_TRY(fl_grpc_acceptor_new(&args.args, r->opts.tls, &r->server,
                                    &r->acceptor));
    else
        r->server = grpc_server_create(&args.args, NULL);
    grpc_server_register_completion_queue(r->server, r->queue, NULL);
    r->plain = grpc_insecure_server_credentials_create();
    return FL_OK;
}

static void drop_server(fl_rpc *r)
{
    grpc_server_credentials_release(r->plain);
    grpc_server_destroy(r->server);
    fl_grpc_acceptor_free(r->acceptor);
    r->acceptor = NULL;
    r->server = NULL;
}

/* Listen at a unix: path. File permissions decide who may connect. */
static fl_err serve_path(fl_rpc *r, const char *exact, int *port)
{
    FL_TRY(make_server(r, true));
    *port = 0;
    if (!grpc_server_add_http2_port(r->server, exact, r->plain)) {
        drop_server(r);
        return fl_port_why(exact);
    }
    start_server(r);
    return FL_OK;
}

static fl_err serve_port(fl_rpc *r, const char *exact, int *port)
{
    const fl_listener_opts opts = {.shared = r->opts.held,
                                   .open = !r->opts.token,
                                   .take = take_socket,
                                   .tick = end_late_calls,
                                   .settle = settle_queue,
                                   .self = r};
    if (fl_listener_new(&opts, exact, port, &r->listener))
        return fl_port_why(exact);
    r->settled = (queue_tag){on_settled, r};
    const fl_err err = make_server(r, false);
    if (err) {
        fl_listener_free(r->listener);
        r->listener = NULL;
        return err;
    }
    start_server(r);
    return fl_listener_start(r->listener);
}

fl_err fl_rpc_listen(fl_rpc *r, const char *address, int *port)
{
    sigset_t old;
    fl_str exact = {0};
    if (r->server)
        return fl_fail(FL_EINVAL, "rpc: %s: this one listens already", address);
    FL_TRY(fl_port_resolve(address, &exact));
    fl_grpc_signals_off(&old);
    const fl_err err = fl_starts_with(exact.at, "unix:")
                           ? serve_path(r, exact.at, port)
                           : serve_port(r, exact.at, port);
    fl_grpc_signals_on(&old);
    fl_str_fini(&exact);
    return err;
}

fl_err fl_rpc_check(fl_rpc *r)
{
    return r->listener ? fl_listener_check(r->listener) : FL_OK;
}

void fl_rpc_healthy(fl_rpc *r, bool serving)
{
    pthread_mutex_lock(&r->lock);
    r->healthy = serving;
    pthread_mutex_unlock(&r->lock);
}

/* --- answering --- */

void fl_rpc_answer(fl_rpc *r, uint64_t call, fl_packet *p)
{
    rpc_call *c = find_call(r, call);
    if (!c) {
        fl_packet_unref(p);
        return;
    }
    pthread_mutex_lock(&r->lock);
    c->unanswered--;
    pthread_mutex_unlock(&r->lock);
    say_word(c, p, !c->open);
    if (c->open)
        resume_reading(c);
    release_call(c);
}

const char *fl_rpc_caller(fl_rpc *r, uint64_t call, char *buf, size_t size)
{
    rpc_call *c = find_call(r, call);
    snprintf(buf, size, "?");
    if (!c)
        return buf;
    if (r->listener)
        fl_listener_address(r->listener, c->connection, buf, size);
    release_call(c);
    return buf;
}

void fl_rpc_trust(fl_rpc *r, uint64_t call)
{
    rpc_call *c = find_call(r, call);
    if (!c)
        return;
    if (r->listener)
        fl_listener_trust(r->listener, c->connection);
    release_call(c);
}

fl_standing fl_rpc_standing(fl_rpc *r, uint64_t call)
{
    rpc_call *c = find_call(r, call);
    fl_standing s = FL_STRANGER;
    if (!c)
        return s;
    s = r->listener ? fl_listener_standing(r->listener, c->connection)
                    : FL_MEMBER;
    release_call(c);
    return s;
}

void fl_rpc_refuse(fl_rpc *r, uint64_t call, fl_err code, const char *why)
{
    rpc_call *c = find_call(r, call);
    if (!c)
        return;
    end_call(c, status_of(code), why);
    release_call(c);
}

/* --- calling --- */

/* A path of the file system is on this host: its owner says who may come. The
 * name of a host must be in its certificate. */
static grpc_channel_credentials *credentials_for(const fl_rpc *r,
                                                 const char *address)
{
    if (!r->opts.tls || fl_starts_with(address, "unix:"))
        return grpc_insecure_credentials_create();
    const fl_tls_pem *pem = fl_tls_pem_of(r->opts.tls);
    grpc_ssl_pem_key_cert_pair pair = {.private_key = pem->key,
                                       .cert_chain = pem->certificate};
    return grpc_ssl_credentials_create(pem->authority, &pair, NULL, NULL);
}

static grpc_channel *connect_to(const fl_rpc *r, const char *address)
{
    sigset_t old;
    fl_grpc_args args;
    fl_grpc_signals_off(&old);
    grpc_channel_credentials *shown = credentials_for(r, address);
    grpc_channel *c =
        grpc_channel_create(address, shown, fl_grpc_args_of(&r->opts, &args));
    grpc_channel_credentials_release(shown);
    fl_grpc_signals_on(&old);
    return c;
}

fl_rpc_peer *fl_rpc_peer_at(fl_rpc *r, const char *address)
{
    fl_rpc_peer *p = NULL;
    pthread_mutex_lock(&r->lock);
    for (int64_t i = 0; i < r->peers.n && !p; i++)
        if (!strcmp(r->peers.at[i]->address, address))
            p = r->peers.at[i];
    if (!p) {
        p = fl_mem_alloc(sizeof *p);
        p->address = fl_mem_strdup(address);
        p->channel = connect_to(r, address);
        fl_push(&r->peers, p);
    }
    pthread_mutex_unlock(&r->lock);
    return p;
}

static gpr_timespec deadline_in(int64_t timeout)
{
    if (!timeout)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos(timeout, GPR_TIMESPAN));
}

/* Begin an own call under the lock, so that fl_rpc_free either finds the call
 * or has set the state in which no call begins. */
static void dial_peer(rpc_call *c, fl_rpc_peer *to, const char *method,
                      int64_t timeout)
{
    fl_rpc *r = c->rpc;
    grpc_slice name = grpc_slice_from_copied_string(method);
    pthread_mutex_lock(&r->lock);
    c->cancelled = r->ending;
    c->grpc = grpc_channel_create_call(r->ending ? r->nowhere : to->channel,
                                       NULL, GRPC_PROPAGATE_DEFAULTS, r->queue,
                                       name, NULL, deadline_in(timeout), NULL);
    pthread_mutex_unlock(&r->lock);
    grpc_slice_unref(name);
    c->late = timeout;
    enter_call(c);
}

static grpc_op status_op(rpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
    op.data.recv_status_on_client.trailing_metadata = &c->tail;
    op.data.recv_status_on_client.status = &c->status;
    op.data.recv_status_on_client.status_details = &c->why;
    return op;
}

/* Start the batch that receives the headers, the status and, for a request, the
 * answer. */
static void await_end(rpc_call *c)
{
    grpc_op ops[3] = {{.op = GRPC_OP_RECV_INITIAL_METADATA}};
    ops[0].data.recv_initial_metadata.recv_initial_metadata = &c->head;
    ops[1] = status_op(c);
    ops[2] = (grpc_op){.op = GRPC_OP_RECV_MESSAGE};
    ops[2].data.recv_message.recv_message = &c->in;
    start_batch(c, ops, c->open ? 2 : 3, &c->closed);
}

uint64_t fl_rpc_call(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     fl_packet *p, int64_t timeout, fl_rpc_done done)
{
    rpc_call *c = call_new(r, true);
    c->done = done;
    dial_peer(c, to, method, timeout);
    uint64_t id = c->id;
    await_end(c);
    say_word(c, p, true);
    release_call(c);
    return id;
}

uint64_t fl_rpc_open(fl_rpc *r, fl_rpc_peer *to, const char *method,
                     void (*heard)(void *self, uint64_t tag,
                                   const fl_packet *p),
                     fl_rpc_done done)
{
    rpc_call *c = call_new(r, true);
    c->done = done;
    c->heard = heard;
    c->open = true;
    dial_peer(c, to, method, 0);
    uint64_t id = c->id;
    await_end(c);
    send_next(c);
    read_next(c);
    release_call(c);
    return id;
}

void fl_rpc_say(fl_rpc *r, uint64_t call, fl_packet *p)
{
    rpc_call *c = find_call(r, call);
    if (!c) {
        fl_packet_unref(p);
        return;
    }
    say_word(c, p, false);
    release_call(c);
}

static void cancel_call(rpc_call *c)
{
    pthread_mutex_lock(&c->rpc->lock);
    c->cancelled = true;
    pthread_mutex_unlock(&c->rpc->lock);
    grpc_call_cancel(c->grpc, NULL);
}

void fl_rpc_cancel(fl_rpc *r, uint64_t call)
{
    rpc_call *c = find_call(r, call);
    if (!c)
        return;
    cancel_call(c);
    release_call(c);
}

/* --- start and end --- */

/* The token as metadata, in static slices, which need no reference counts. */
static grpc_metadata token_of(const fl_rpc *r)
{
    grpc_metadata m = {0};
    m.key = grpc_slice_from_static_string(FL_RPC_TOKEN);
    m.value = grpc_slice_from_static_string(r->opts.token);
    return m;
}

void fl_rpc_set_token(fl_rpc *r, const char *token)
{
    char *own = fl_mem_strdup(token);
    pthread_mutex_lock(&r->lock);
    fl_mem_free((char *)r->opts.token);
    r->opts.token = own;
    r->token = token_of(r);
    pthread_mutex_unlock(&r->lock);
}

static void open_queue(fl_rpc *r)
{
    gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);
    r->library = fl_grpc_library_new();
    if (r->opts.token)
        r->token = token_of(r);
    r->queue = grpc_completion_queue_create_for_next(NULL);
    r->nowhere = grpc_lame_client_channel_create(NULL, GRPC_STATUS_CANCELLED,
                                                 "the network is being closed");
    r->bell = grpc_channel_create_call(
        r->nowhere, NULL, GRPC_PROPAGATE_DEFAULTS, r->queue,
        grpc_slice_from_static_string("/bell"), NULL, never, NULL);
}

static void close_queue(fl_rpc *r)
{
    grpc_call_unref(r->bell);
    grpc_channel_destroy(r->nowhere);
    grpc_completion_queue_shutdown(r->queue);
    if (r->pool)
        fl_pool_free(r->pool);
    else
        poll_queue(r);
    grpc_completion_queue_destroy(r->queue);
    fl_grpc_library_unref(r->library);
}

static void rpc_free(fl_rpc *r)
{
    close_queue(r);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->quiet);
    for (int i = 0; i < r->spares; i++)
        fl_mem_free(r->spare[i]);
    fl_vec_fini(&r->slots);
    fl_vec_fini(&r->free_slots);
    fl_vec_fini(&r->peers);
    fl_tls_free(r->opts.tls);
    fl_mem_free((char *)r->opts.token);
    fl_mem_free(r);
}

fl_err fl_rpc_new(const fl_rpc_opts *opts, fl_rpc **out)
{
    sigset_t old;
    int threads = opts->threads ? opts->threads : 1;
    fl_rpc *r = fl_mem_alloc(sizeof *r);
    r->opts = *opts;
    r->opts.token = opts->token ? fl_mem_strdup(opts->token) : NULL;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->quiet, NULL);
    fl_grpc_signals_off(&old);
    open_queue(r);
    fl_err e = fl_pool_new("rpc", threads, &r->pool);
    fl_grpc_signals_on(&old);
    if (e) {
        rpc_free(r);
        return e;
    }
    for (int i = 0; i < threads; i++)
        fl_pool_submit(r->pool, &r->polling, poll_queue, r);
    *out = r;
    return FL_OK;
}

static void cancel_own(fl_rpc *r)
{
    FL_VEC(rpc_call *) own = {0};
    pthread_mutex_lock(&r->lock);
    r->ending = true;
    for (int64_t i = 0; i < r->slots.n; i++) {
        rpc_call *c = r->slots.at[i].call;
        if (c && c->own) {
            hold_call(c);
            fl_push(&own, c);
        }
    }
    pthread_mutex_unlock(&r->lock);
    for (int64_t i = 0; i < own.n; i++) {
        cancel_call(own.at[i]);
        release_call(own.at[i]);
    }
    fl_vec_fini(&own);
}

/* Close all connections before waiting for the calls, since lent memory may be
 * in the buffers of the connections. */
static void end_connections(fl_rpc *r)
{
    if (r->server) {
        grpc_server_shutdown_and_notify(r->server, r->queue, &r->stopped);
        grpc_server_cancel_all_calls(r->server);
    }
    for (int64_t i = 0; i < r->peers.n; i++) {
        grpc_channel_destroy(r->peers.at[i]->channel);
        fl_mem_free(r->peers.at[i]->address);
        fl_mem_free(r->peers.at[i]);
    }
}

void fl_rpc_free(fl_rpc *r)
{
    if (!r)
        return;
    cancel_own(r);
    if (r->listener)
        fl_listener_stop(r->listener);
    end_connections(r);
    pthread_mutex_lock(&r->lock);
    while (r->live || (r->server && !r->server_stopped))
        pthread_cond_wait(&r->quiet, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (r->server)
        drop_server(r);
    fl_listener_free(r->listener);
    rpc_free(r);
}
