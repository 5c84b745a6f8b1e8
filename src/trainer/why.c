/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - ask a server who waits for whom. */
#include "base/endpoint.h"
#include "base/mem.h"
#include "cluster/ports.h"
#include "cluster/tls.h"
#include "net/rpc.h"
#include "wire/codec.h"

#include <pthread.h>
#include <stdio.h>

#define LIMIT (5 * FL_SEC) /* a running server answers at once */

typedef struct question {
    const char *address;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool answered;
    fl_err err;
    char *text;
    char why[512];
} question;

static fl_err decode_answer(question *q, const fl_rpc_reply *reply)
{
    const char *text = "";
    if (reply->end == FL_RPC_DENIED)
        return fl_fail(FL_EIO, "the server at %s answers: %s", q->address,
                       reply->text);
    if (reply->end != FL_RPC_OK)
        return fl_fail(reply->end == FL_RPC_LATE ? FL_ETIMEOUT : FL_EIO,
                       "the server at %s %s", q->address,
                       reply->end == FL_RPC_LATE ? "has not answered within 5 s"
                                                 : "has closed the connection");
    fl_arena *arena = fl_arena_new();
    const fl_err err = fl_why_decode(q->address, reply->packet, arena, &text);
    if (!err)
        q->text = fl_mem_strdup(text);
    fl_arena_free(arena);
    return err;
}

static void on_answer(void *self, uint64_t tag, const fl_rpc_reply *reply)
{
    question *q = self;
    const fl_err err = decode_answer(q, reply);
    pthread_mutex_lock(&q->lock);
    q->err = err;
    snprintf(q->why, sizeof q->why, "%s", err ? fl_errmsg() : "");
    q->answered = true;
    pthread_cond_signal(&q->done);
    pthread_mutex_unlock(&q->lock);
}

fl_err fl_why(const char *address, char **text)
{
    question q = {.address = address};
    fl_rpc *rpc;
    FL_TRY(fl_endpoint_check(address, "endpoint "));
    FL_TRY(
        fl_ports_ask(address)); /* its error message is clearer than gRPC's */
    fl_tls *tls;
    FL_TRY(fl_job_tls_read(&tls));
    FL_TRY(fl_rpc_new(&(fl_rpc_opts){.tls = tls}, &rpc));
    pthread_mutex_init(&q.lock, NULL);
    pthread_cond_init(&q.done, NULL);
    fl_rpc_call(rpc, fl_rpc_peer_at(rpc, address), FL_METHOD_WHY,
                fl_packet_new(), LIMIT, (fl_rpc_done){on_answer, &q, 0});
    pthread_mutex_lock(&q.lock);
    while (!q.answered) /* the call ends after LIMIT at the latest */
        pthread_cond_wait(&q.done, &q.lock);
    pthread_mutex_unlock(&q.lock);
    fl_rpc_free(rpc);
    pthread_cond_destroy(&q.done);
    pthread_mutex_destroy(&q.lock);
    if (q.err)
        return fl_fail(q.err, "%s", q.why);
    *text = q.text;
    return FL_OK;
}
