/* grpc_call.c - a call of either side: bytes in, bytes out, one end.
 *
 * Of what is sent one batch is in flight at a time, whoever adds to it. Easy to
 * get wrong: a slice that gRPC lets go may be the last of a packet, on any
 * thread and deep in gRPC; so nothing but counting happens there. */
#include "net/grpc_in.h"

#include "base/utf8.h"

#include <grpc/byte_buffer_reader.h>

enum {
    LEND_LEAST = 1024 /* bytes; below, a copy costs less than a loan */
};

static const struct {
    fl_err err;
    grpc_status_code status;
} statuses[] = {
    /* Where several fit, the first does. UNAVAILABLE and CANCELLED are left
     * out: gRPC itself tells with them of a connection's end. */
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

grpc_status_code fl_grpc_status_of(fl_err e)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].err == e)
            return statuses[i].status;
    return GRPC_STATUS_INTERNAL;
}

fl_err fl_grpc_err_of(grpc_status_code s)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == s)
            return statuses[i].err;
    return FL_EIO;
}

/* --- its end --- */

/* gRPC has one status for both: nobody could be reached, and somebody is gone.
 * Only its sentence tells them apart. */
static bool was_reached(const fl_grpc_call *c)
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

/* What a call ended with, as its maker sees it. */
static fl_rpc_end end_of(const fl_grpc_call *c)
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

static fl_err code_of(const fl_grpc_call *c, fl_rpc_end end)
{
    switch (end) {
    case FL_RPC_OK:
        return FL_OK;
    case FL_RPC_LATE:
        return FL_ETIMEOUT;
    case FL_RPC_CANCELLED:
        return FL_EINTR;
    case FL_RPC_DENIED:
        return c->status ? fl_grpc_err_of(c->status) : FL_EPROTO;
    default:
        return FL_EIO;
    }
}

static void tell_done(fl_grpc_call *c)
{
    fl_rpc_end end = end_of(c);
    fl_str why = {0}, text = {0};
    fl_str_bytes(&why, GRPC_SLICE_START_PTR(c->why), GRPC_SLICE_LENGTH(c->why));
    fl_utf8_escape(&text, why.at); /* the peer's words */
    fl_str_fini(&why);
    if (end == FL_RPC_DENIED && !c->status)
        fl_str_add(&text, "the peer answered without a message");
    fl_packet *p = NULL;
    if (end == FL_RPC_OK && c->in) {
        p = fl_grpc_unpack(c->rpc, c->in);
        c->in = NULL;
    }
    fl_rpc_reply reply = {end, code_of(c, end), text.at, p};
    reply.no_listener =
        end == FL_RPC_REFUSED && strstr(text.at, "Connection refused");
    c->done.run(c->done.self, c->done.tag, &reply);
    fl_packet_unref(p);
    fl_str_fini(&text);
}

static void call_free(fl_grpc_call *c)
{
    for (int64_t i = c->said; i < c->words.n; i++)
        fl_packet_unref(c->words.at[i]);
    fl_vec_fini(&c->words);
    fl_str_fini(&c->end_why);
    grpc_byte_buffer_destroy(c->in);
    grpc_byte_buffer_destroy(c->out);
    grpc_metadata_array_destroy(&c->head);
    grpc_metadata_array_destroy(&c->tail);
    grpc_call_details_destroy(&c->details);
    grpc_slice_unref(c->why);
    fl_mem_free(c);
}

static void finish(void *self, bool ok)
{
    fl_grpc_call *c = self;
    fl_rpc *r = c->rpc;
    if (c->own)
        tell_done(c);
    else
        fl_grpc_hangup(c);
    call_free(c);
    pthread_mutex_lock(&r->lock);
    if (!--r->live)
        pthread_cond_broadcast(&r->quiet);
    pthread_mutex_unlock(&r->lock);
}

static void unwind(void *self, bool ok)
{
    fl_grpc_call *c = self;
    if (c->grpc)
        grpc_call_unref(c->grpc);
    if (!fl_count_down(&c->lent))
        finish(c, true);
}

void fl_grpc_hold(fl_grpc_call *c)
{
    fl_count_up(&c->holds);
}

void fl_grpc_release(fl_grpc_call *c)
{
    if (!fl_count_down(&c->holds))
        unwind(c, true);
}

void fl_grpc_let_be(fl_grpc_call *c)
{
    if (!fl_count_down(&c->holds))
        fl_grpc_ring(c->rpc, &c->unwound);
}

/* --- bytes in --- */

/* What a packet that came keeps. */
typedef struct receipt {
    grpc_byte_buffer *bytes;
    fl_grpc_library *library;
} receipt;

static void receipt_drop(void *owner)
{
    receipt *t = owner;
    grpc_byte_buffer_destroy(t->bytes);
    fl_grpc_library_unref(t->library);
    fl_mem_free(t);
}

fl_packet *fl_grpc_unpack(fl_rpc *r, grpc_byte_buffer *b)
{
    grpc_byte_buffer_reader reader;
    grpc_slice *s;
    fl_packet *p = fl_packet_new();
    receipt *t = fl_mem_alloc(sizeof *t);
    *t = (receipt){b, r->library};
    fl_count_up(&r->library->users);
    fl_packet_lend(p, NULL, 0, receipt_drop, t);
    if (!grpc_byte_buffer_reader_init(&reader, b))
        return p;
    while (grpc_byte_buffer_reader_peek(&reader, &s))
        fl_packet_lend(p, GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s), NULL,
                       NULL);
    grpc_byte_buffer_reader_destroy(&reader);
    return p;
}

void fl_grpc_start(fl_grpc_call *c, const grpc_op *ops, int n, fl_grpc_tag *tag)
{
    fl_grpc_hold(c);
    if (grpc_call_start_batch(c->grpc, ops, (size_t)n, tag, NULL))
        fl_grpc_ring(c->rpc, tag);
}

void fl_grpc_listen_on(fl_grpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &c->in;
    fl_grpc_start(c, &op, 1, &c->read);
}

static void on_read(void *self, bool ok)
{
    fl_grpc_call *c = self;
    grpc_byte_buffer *b = c->in;
    c->in = NULL;
    if (!c->own) {
        fl_grpc_serve_word(c, b);
    } else if (b) {
        fl_packet *p = fl_grpc_unpack(c->rpc, b);
        c->heard(c->done.self, c->done.tag, p);
        fl_packet_unref(p);
        fl_grpc_listen_on(c);
    }
    fl_grpc_release(c);
}

static void on_closed(void *self, bool ok)
{
    fl_grpc_call *c = self;
    fl_grpc_retire(c);
    fl_grpc_release(c);
}

/* --- bytes out --- */

/* A packet in gRPC's hands. */
typedef struct freight {
    fl_packet *packet;
    fl_grpc_call *call;
    fl_count slices;
} freight;

static void slice_drop(void *user)
{
    freight *f = user;
    fl_grpc_call *c = f->call;
    if (fl_count_down(&f->slices))
        return;
    fl_packet_unref(f->packet);
    fl_mem_free(f);
    if (!fl_count_down(&c->lent))
        fl_grpc_ring(c->rpc, &c->finished);
}

static grpc_slice slice_of(freight *f, fl_span s)
{
    if (s.size < LEND_LEAST)
        return grpc_slice_from_copied_buffer(s.at, s.size);
    fl_count_up(&f->slices);
    return grpc_slice_new_with_user_data((void *)s.at, s.size, slice_drop, f);
}

/* Takes p. */
static grpc_byte_buffer *pack(fl_grpc_call *c, fl_packet *p)
{
    const fl_span *spans;
    int n = fl_packet_spans(p, &spans);
    grpc_slice *slices = fl_mem_alloc((size_t)n * sizeof *slices);
    freight *f = fl_mem_alloc(sizeof *f);
    *f = (freight){p, c};
    fl_count_init(&f->slices, 1);
    fl_count_up(&c->lent);
    for (int i = 0; i < n; i++)
        slices[i] = slice_of(f, spans[i]);
    grpc_byte_buffer *b = grpc_raw_byte_buffer_create(slices, (size_t)n);
    for (int i = 0; i < n; i++)
        grpc_slice_unref(slices[i]);
    fl_mem_free(slices);
    slice_drop(f);
    return b;
}

/* What is sent next. */
typedef struct sending {
    bool head, end;
    fl_packet *word;
} sending;

static bool next_sending(fl_grpc_call *c, sending *out)
{
    pthread_mutex_lock(&c->rpc->lock);
    bool more = c->said < c->words.n;
    bool go = !c->writing && !c->mute &&
              (!c->greeted || more || (c->ended && !c->end_sent));
    if (go) {
        *out = (sending){.head = !c->greeted};
        if (more)
            out->word = c->words.at[c->said++];
        if (c->said == c->words.n)
            c->said = c->words.n = 0;
        out->end = c->ended && !c->words.n;
        c->end_sent = out->end;
        c->writing = c->greeted = true;
    }
    pthread_mutex_unlock(&c->rpc->lock);
    return go;
}

static grpc_op head_op(fl_grpc_call *c)
{
    grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    if (c->own && c->rpc->opts.token) {
        op.data.send_initial_metadata.count = 1;
        op.data.send_initial_metadata.metadata = &c->rpc->token;
    }
    return op;
}

static grpc_op end_op(fl_grpc_call *c, grpc_slice *why)
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

void fl_grpc_pump(fl_grpc_call *c)
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
        c->out = pack(c, s.word);
        ops[n] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
        ops[n++].data.send_message.send_message = c->out;
    }
    if (s.end)
        ops[n++] = end_op(c, &why);
    fl_grpc_start(c, ops, n, &c->wrote);
    grpc_slice_unref(why);
}

static void on_wrote(void *self, bool ok)
{
    fl_grpc_call *c = self;
    grpc_byte_buffer_destroy(c->out);
    c->out = NULL;
    pthread_mutex_lock(&c->rpc->lock);
    c->writing = false;
    c->mute |= !ok;
    const bool resume = c->paused && c->words.n - c->said < FL_GRPC_WAITING;
    c->paused &= !resume;
    pthread_mutex_unlock(&c->rpc->lock);
    fl_grpc_pump(c);
    if (resume)
        fl_grpc_listen_on(c);
    fl_grpc_release(c);
}

static bool add_word(fl_grpc_call *c, fl_packet *p, bool last)
{
    pthread_mutex_lock(&c->rpc->lock);
    bool ok = !c->ended && !c->mute;
    const bool full = ok && c->words.n - c->said >= FL_GRPC_MOST;
    if (full) /* the other side does not read */
        ok = false, c->mute = true;
    if (ok && p)
        fl_push(&c->words, p);
    c->ended |= last;
    pthread_mutex_unlock(&c->rpc->lock);
    if (full)
        grpc_call_cancel(c->grpc, NULL);
    return ok;
}

bool fl_grpc_say(fl_grpc_call *c, fl_packet *p, bool last)
{
    bool ok = add_word(c, p, last);
    if (ok)
        fl_grpc_pump(c);
    else
        fl_packet_unref(p);
    return ok;
}

void fl_grpc_end(fl_grpc_call *c, grpc_status_code status, const char *why)
{
    pthread_mutex_lock(&c->rpc->lock);
    if (!c->ended) {
        c->end_status = status;
        fl_str_bytes(&c->end_why, why, strnlen(why, FL_GRPC_WHY));
        c->ended = true;
    }
    pthread_mutex_unlock(&c->rpc->lock);
    fl_grpc_pump(c);
}

fl_grpc_call *fl_grpc_call_new(fl_rpc *r, bool own)
{
    fl_grpc_call *c = fl_mem_alloc(sizeof *c);
    c->rpc = r;
    c->own = own;
    c->connection = -1;
    fl_count_init(&c->holds, 1);
    fl_count_init(&c->lent, 1);
    c->read = (fl_grpc_tag){on_read, c};
    c->wrote = (fl_grpc_tag){on_wrote, c};
    c->closed = (fl_grpc_tag){on_closed, c};
    c->unwound = (fl_grpc_tag){unwind, c};
    c->finished = (fl_grpc_tag){finish, c};
    grpc_metadata_array_init(&c->head);
    grpc_metadata_array_init(&c->tail);
    grpc_call_details_init(&c->details);
    c->why = grpc_empty_slice();
    c->status = GRPC_STATUS_UNKNOWN;
    pthread_mutex_lock(&r->lock);
    r->live++;
    pthread_mutex_unlock(&r->lock);
    return c;
}
