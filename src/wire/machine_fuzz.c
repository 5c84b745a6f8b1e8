/* SPDX-License-Identifier: Apache-2.0 */
/* machine_fuzz.c - sends messages made of the fuzzer's bytes to the three state
 * machines, with ticks, broken calls and events of store and application in
 * between.
 *
 *     input  := mode event*
 *     event  := who what size bytes      one byte each, then `size` bytes
 *
 * Messages are decoded by the codec. Values that random bytes would never match
 * are replaced: the job's digest, and the sessions, of which there are few. */
#include "protocol/client.h"
#include "protocol/coord.h"
#include "protocol/server.h"
#include "wire/codec.h"
#include "wire/test_packet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    SESSIONS = 3,
    CALLS = 8,
};

typedef struct world {
    fl_job job;
    int64_t now;
    fl_store store;
    fl_app app;
    fl_entropy entropy;
    fl_server *server;
    fl_coord *coord;
    fl_client *client;
    fl_outbox server_out, coord_out, client_out;
    int applying; /* tasks that the store has not finished */
} world;

/* --- a store and an application that accept everything --- */

static fl_err check_push(void *self, const fl_staged *by)
{
    return FL_OK;
}

static void apply(void *self, int64_t round, const fl_staged *by, int n)
{
    ((world *)self)->applying++;
}

static void read_values(void *self, fl_blob names, fl_peer to,
                        const fl_msg *reply)
{
    fl_outbox_send(&((world *)self)->server_out, to, *reply);
}

static void on_values(void *self, int server, const fl_msg *m)
{
}

static void on_ready(void *self, int rank, int64_t round)
{
}

static void on_fenced(void *self, const char *why)
{
}

static void on_over(void *self, int code, const char *why)
{
    if (!why)
        abort(); /* the reason is never NULL */
}

static void open_world(world *w, uint8_t mode)
{
    *w = (world){.now = FL_SEC};
    w->job = fl_job_defaults((fl_job){.id = {1, 2},
                                      .servers = 1 + (mode >> 1) % 2,
                                      .trainers = 1 + (mode >> 2) % 3,
                                      .async = mode % 2,
                                      .max_staged = 1 << 20});
    w->store = (fl_store){w, fl_keeper_parcels, check_push, apply, read_values};
    w->app =
        (fl_app){w, fl_keeper_parcels, on_values, on_ready, on_fenced, on_over};
    w->entropy = fl_entropy_fake(mode);
    fl_outbox_init(&w->server_out);
    fl_outbox_init(&w->coord_out);
    fl_outbox_init(&w->client_out);
    w->server = fl_server_new(&w->job, 0, (fl_state){7, 1}, &w->store,
                              &w->server_out, w->now);
    w->coord = fl_coord_new(&w->job, (fl_state){7, 1}, &w->coord_out, w->now);
    w->client = fl_client_new(&w->job, &w->app, mode & 32 ? FL_ANY_ID : 0,
                              "fuzz:1", &w->entropy, &w->client_out);
    fl_client_start(w->client, w->now);
}

static void close_world(world *w)
{
    fl_client_free(w->client);
    fl_coord_free(w->coord);
    fl_server_free(w->server);
    fl_outbox_fini(&w->server_out);
    fl_outbox_fini(&w->coord_out);
    fl_outbox_fini(&w->client_out);
}

/* --- messages --- */

static fl_id session_of(const world *w, fl_id any)
{
    const uint64_t n = any.lo % (SESSIONS + 1);
    return n ? (fl_id){n, n} : fl_client_session(w->client);
}

/* Give a message to one of the machines, from a call, a server or the
 * coordinator. */
static void hear(world *w, uint8_t who, fl_msg *m)
{
    const fl_peer call = {FL_PEER_CALL, 0, 1 + who / 16 % CALLS};
    const fl_peer server = {FL_PEER_SERVER, who / 16 % w->job.servers, 0};
    const fl_peer coord = {FL_PEER_COORD, 0, 0};
    if (who & 8)
        m->job = w->job.id;
    m->session = session_of(w, m->session);
    if (m->tag % 2) /* the answer to the client's newest request */
        m->tag = fl_client_tag(w->client);
    switch (who % 6) {
    case 0:
        fl_server_recv(w->server, call, m, w->now);
        break;
    case 1:
        fl_server_recv(w->server, coord, m, w->now);
        break;
    case 2:
        fl_coord_recv(w->coord, call, m, w->now);
        break;
    case 3:
        fl_coord_recv(w->coord, server, m, w->now);
        break;
    case 4:
        fl_client_recv(w->client, server, m, w->now);
        break;
    default:
        fl_client_recv(w->client, coord, m, w->now);
    }
}

static void hear_bytes(world *w, uint8_t who, const uint8_t *bytes, size_t n)
{
    fl_arena *a = fl_arena_new();
    fl_packet *p = test_cut(bytes, n, 32);
    fl_msg m;
    if (!fl_msg_decode("fuzz", p, a, &m)) {
        hear(w, who, &m);
        fl_keeper_parcels.drop(NULL, m.blob);
    }
    fl_packet_unref(p);
    fl_arena_free(a);
}

/* Make a message of any kind, with one byte of input for each field that the
 * kind carries. The fuzzer finds interesting values sooner than through the
 * codec. */
static void hear_fields(world *w, uint8_t who, const uint8_t *bytes, size_t n)
{
    fl_msg m = {.tag = 1};
    if (!n)
        return;
    m.kind = (fl_msg_kind)(bytes[0] % FL_MSG_KINDS);
    for (const fl_msg_field *f = fl_msg_fields + 1; f->name && --n; f++) {
        const int number = (int8_t) * ++bytes;
        if (!fl_msg_carries(m.kind, f->name))
            continue;
        if (f->type == FL_FIELD_INT)
            memcpy((char *)&m + f->at, &number, sizeof number);
        else if (f->type == FL_FIELD_WORD)
            memcpy((char *)&m + f->at, &(int64_t){number}, sizeof(int64_t));
        else if (f->type == FL_FIELD_BOOL)
            memcpy((char *)&m + f->at, &(bool){number}, sizeof(bool));
    }
    hear(w, who, &m);
}

/* --- other events --- */

static void pass_time(world *w, uint8_t how_long)
{
    w->now += how_long * (FL_SEC / 8);
    fl_server_tick(w->server, w->now);
    fl_coord_tick(w->coord, w->now);
    fl_client_tick(w->client, w->now);
}

static void break_call(world *w, uint8_t call)
{
    fl_server_hangup(w->server, 1 + call % CALLS);
    fl_coord_hangup(w->coord, 1 + call % CALLS, w->now);
    fl_client_broken(w->client, call % 2 ? fl_client_tag(w->client) : 0,
                     w->now);
    fl_client_refused(w->client, (fl_peer){FL_PEER_COORD, 0, 0}, w->now);
    fl_coord_refused(w->coord, call % w->job.servers, call & 16, w->now);
    if (call & 32)
        fl_server_refused(w->server, w->now);
}

static void finish_task(world *w, uint8_t how)
{
    if (!w->applying)
        return;
    w->applying--;
    fl_server_applied(w->server, how > 250 ? "full" : NULL, w->now);
}

static void work(world *w, uint8_t how)
{
    const int server = how % w->job.servers;
    fl_err err = FL_OK;
    if (how < 200)
        err = fl_client_push(w->client, server, (fl_blob){0}, how & 8, w->now);
    else if (how < 210)
        err = fl_client_ask(w->client, server, (fl_blob){0}, w->now);
    else if (how < 252)
        err = fl_client_step(w->client, w->now);
    else
        fl_client_leave(w->client, how % 2, "work", w->now);
    (void)err; /* EINVAL if the client is not ready */
}

static void list_waits(world *w)
{
    fl_str rows = {0};
    fl_server_waits(w->server, w->now, &rows);
    fl_coord_waits(w->coord, w->now, &rows);
    fl_client_waits(w->client, w->now, &rows);
    fl_str_fini(&rows);
}

/* A machine that goes on from an image makes the same image. */
static void check_server_image(world *w)
{
    fl_str first = {0}, again = {0};
    fl_outbox out;
    fl_outbox_init(&out);
    fl_server *other =
        fl_server_new(&w->job, 0, (fl_state){7, 2}, &w->store, &out, w->now);
    fl_server_image(w->server, &first);
    if (fl_server_restore(other, first.at, first.n, w->now))
        abort();
    fl_server_image(other, &again);
    if (first.n != again.n || memcmp(first.at, again.at, first.n))
        abort();
    fl_server_free(other);
    fl_outbox_fini(&out);
    fl_str_fini(&first);
    fl_str_fini(&again);
}

static void check_coord_image(world *w)
{
    fl_str first = {0}, again = {0};
    fl_outbox out;
    fl_outbox_init(&out);
    fl_coord *other = fl_coord_new(&w->job, (fl_state){7, 2}, &out, w->now);
    fl_coord_image(w->coord, &first);
    if (fl_coord_restore(other, first.at, first.n, w->now))
        abort();
    fl_coord_image(other, &again);
    if (first.n != again.n || memcmp(first.at, again.at, first.n))
        abort();
    fl_coord_free(other);
    fl_outbox_fini(&out);
    fl_str_fini(&first);
    fl_str_fini(&again);
}

static void check_bounds(const world *w)
{
    if (fl_server_parked(w->server) > w->job.max_parked ||
        fl_coord_parked(w->coord) > w->job.max_parked ||
        fl_server_bytes(w->server) > w->job.max_staged)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world w;
    if (!size)
        return 0;
    open_world(&w, data[0]);
    for (size_t at = 1; at + 3 <= size;) {
        const uint8_t who = data[at], what = data[at + 1];
        const size_t left = size - at - 3;
        const size_t n = data[at + 2] < left ? data[at + 2] : left;
        if (what < 96)
            hear_bytes(&w, who, data + at + 3, n);
        else if (what < 128)
            hear_fields(&w, who, data + at + 3, n);
        else if (what < 160)
            pass_time(&w, who);
        else if (what < 170)
            break_call(&w, who);
        else if (what < 200)
            finish_task(&w, who);
        else if (what < 250)
            work(&w, who);
        else
            list_waits(&w);
        check_bounds(&w);
        if (what % 16 == 0) { /* costs more */
            check_server_image(&w);
            check_coord_image(&w);
        }
        fl_server_flush(w.server);
        fl_outbox_clear(&w.server_out);
        fl_outbox_clear(&w.coord_out);
        fl_outbox_clear(&w.client_out);
        at += 3 + n;
    }
    close_world(&w);
    return 0;
}
