/* SPDX-License-Identifier: Apache-2.0 */
/* wire SECONDS [copy] - bytes a second between two processes over net/rpc.h,
 * one core each: pushes and pulls of 1 and 16 MB, 4 in flight. One line of
 * JSON; CPU is that of both, in seconds a gigabyte. With "copy" what was pulled
 * is brought together in one place, too. Over TLS where FLUID_TLS_CERT and its
 * like are set. */
#include "bench.h"

#include "base/vec.h"
#include "cluster/tls.h"
#include "net/rpc.h"

#include <pthread.h>

enum {
    FLIGHT = 4,
    LARGEST = 16 << 20
};

static char *tensor(void)
{
    char *at = fl_mem_try(LARGEST);
    must(at, "no memory");
    memset(at, 1, LARGEST);
    return at;
}

/* --- the server --- */

typedef struct server {
    fl_rpc *rpc;
    char *memory;
} server;

/* A request begins with how many bytes are wanted. */
static void heard(void *self, const fl_rpc_method *by, uint64_t call,
                  const fl_packet *p)
{
    server *s = self;
    size_t want;
    fl_packet *answer = fl_packet_new();
    fl_bytes_copy((fl_bytes){p, 0, sizeof want}, 0, &want, sizeof want);
    fl_packet_copy(answer, &want, sizeof want);
    fl_packet_lend(answer, s->memory, want, NULL, NULL);
    fl_rpc_answer(s->rpc, call, answer);
}

static const fl_rpc_method methods[] = {{"/fluid.Bench/Move", false, heard},
                                        {0}};

/* Until the standard input ends; the port is printed. */
static int serve(void)
{
    int port;
    char end;
    server s = {.memory = tensor()};
    pin(1);
    fl_rpc_opts opts = {.methods = methods, .self = &s};
    must(!fl_job_tls_read(&opts.tls), fl_errmsg());
    must(!fl_rpc_new(&opts, &s.rpc), "server");
    must(!fl_rpc_listen(s.rpc, "127.0.0.1:0", &port), "listen");
    printf("%d\n", port);
    fflush(stdout);
    while (read(0, &end, 1) > 0)
        continue;
    fl_rpc_free(s.rpc);
    fl_mem_free(s.memory);
    return 0;
}

/* --- the client --- */

typedef struct client {
    fl_rpc *rpc;
    fl_rpc_peer *peer;
    bool copy;
    char *source[FLIGHT], *into[FLIGHT];
    size_t push, pull;
    uint64_t seen; /* so that the bytes are looked at */

    pthread_mutex_t lock;
    pthread_cond_t quiet;
    int64_t left; /* calls to be made */
    int flying;
} client;

static void move(client *c, uint64_t slot);

static void take(client *c, uint64_t slot, const fl_packet *p)
{
    fl_bytes b = {p, sizeof(size_t), c->pull};
    fl_span s;
    must(fl_packet_size(p) == b.at + b.size, "an answer of another size");
    if (c->copy)
        fl_bytes_copy(b, 0, c->into[slot], b.size);
    for (size_t cursor = 0; fl_bytes_next(b, &cursor, &s);)
        c->seen += (uint64_t)((const char *)s.at)[s.size - 1];
}

static void done(void *self, uint64_t slot, const fl_rpc_reply *reply)
{
    client *c = self;
    if (reply->end != FL_RPC_OK) {
        fprintf(stderr, "wire: %s\n", reply->text);
        exit(1);
    }
    take(c, slot, reply->packet);
    pthread_mutex_lock(&c->lock);
    bool more = c->left > 0;
    c->left -= more;
    if (!more && !--c->flying)
        pthread_cond_signal(&c->quiet);
    pthread_mutex_unlock(&c->lock);
    if (more)
        move(c, slot);
}

static void move(client *c, uint64_t slot)
{
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, &c->pull, sizeof c->pull);
    fl_packet_lend(p, c->source[slot], c->push, NULL, NULL);
    fl_rpc_call(c->rpc, c->peer, methods[0].name, p, 0,
                (fl_rpc_done){done, c, slot});
}

static void run_calls(void *self, int64_t calls)
{
    client *c = self;
    c->left = calls - FLIGHT;
    c->flying = FLIGHT;
    for (uint64_t i = 0; i < FLIGHT; i++)
        move(c, i);
    pthread_mutex_lock(&c->lock);
    while (c->flying)
        pthread_cond_wait(&c->quiet, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void measure_all(client *c, clockid_t other, double length)
{
    for (int i = 0; i < 4; i++) {
        const char *way = i % 2 ? "pull" : "push";
        const size_t size = i < 2 ? 1 << 20 : LARGEST;
        c->push = i % 2 ? 0 : size;
        c->pull = i % 2 ? size : 0;
        const rate r = best_rate(run_calls, c, 2 * FLIGHT, (double)size * 1e-9,
                                 other, length / 4);
        printf("%s\"%s_%zuM\": %.3f, \"%s_%zuM_cpu\": %.4f", i ? ", " : "{",
               way, size >> 20, r.speed, way, size >> 20, r.cpu);
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    int port = 0;
    char address[32];
    client c = {.copy = argc > 2};
    if (argc > 1 && !strcmp(argv[1], "serve"))
        return serve();
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.quiet, NULL);
    child other = start((const char *[]){"wire", "serve", NULL});
    must(fscanf(other.out, "%d", &port) == 1, "no port");
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    pin(0);
    for (int i = 0; i < FLIGHT; i++) {
        c.source[i] = tensor();
        c.into[i] = tensor();
    }
    fl_rpc_opts opts = {0};
    must(!fl_job_tls_read(&opts.tls), fl_errmsg());
    must(!fl_rpc_new(&opts, &c.rpc), "client");
    c.peer = fl_rpc_peer_at(c.rpc, address);
    measure_all(&c, other.cpu, argc > 1 ? atof(argv[1]) : 4);
    fl_rpc_free(c.rpc);
    stop(&other);
    for (int i = 0; i < FLIGHT; i++) {
        fl_mem_free(c.source[i]);
        fl_mem_free(c.into[i]);
    }
    return 0;
}
