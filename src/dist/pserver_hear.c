/* pserver_hear.c - what a trainer or another server may ask.
 *
 * Handlers run on threads of the network and never wait for a peer: a request
 * that must wait is parked by the machines. Bytes from outside are checked,
 * never asserted on. */
#include "dist/pserver_in.h"

#include <stdio.h>

static const char *const somebody = "a call";

/* --- by kind --- */

static bool for_coordinator(fl_msg_kind kind)
{
    return kind == FL_MSG_JOIN || kind == FL_MSG_BARRIER ||
           kind == FL_MSG_COMPLETE || kind == FL_MSG_FAILED;
}

static bool from_coordinator(fl_msg_kind kind)
{
    return kind == FL_MSG_VIEW || kind == FL_MSG_CLOSE || kind == FL_MSG_END;
}

/* One-way messages are answered when they are heard. */
static void heard(fl_pserver *p, uint64_t call)
{
    fl_rpc_answer(p->rpc, call,
                  fl_msg_encode(&(fl_msg){.kind = FL_MSG_ACK,
                                          .job = p->job.id,
                                          .server = p->place->server}));
}

static void not_here(fl_pserver *p, uint64_t call, const fl_msg *m)
{
    char why[512];
    snprintf(why, sizeof why, "%s: this is server %d, the coordinator is %s",
             fl_msg_name(m->kind), p->place->server, p->place->servers[0]);
    fl_rpc_refuse(p->rpc, call, FL_EINVAL, why);
}

/* Under the lock. */
static void route(fl_pserver *p, uint64_t call, const fl_msg *m)
{
    const int64_t now = fl_pserver_now(p);
    const fl_peer from = {FL_PEER_CALL, 0, call};
    const bool asks_coordinator = for_coordinator(m->kind) ||
                                  m->kind == FL_MSG_STATE ||
                                  m->kind == FL_MSG_RENEW;
    if (p->closed) {
        fl_rpc_refuse(p->rpc, call, FL_EIO, "the server is ending");
    } else if (asks_coordinator && !p->coord) {
        not_here(p, call, m);
    } else if (m->kind == FL_MSG_STATE) {
        heard(p, call);
        fl_coord_recv(p->coord, (fl_peer){FL_PEER_SERVER, m->server, 0}, m,
                      now);
    } else if (asks_coordinator) {
        fl_coord_recv(p->coord, from, m, now);
    } else if (from_coordinator(m->kind)) {
        heard(p, call);
        fl_server_recv(p->server, (fl_peer){FL_PEER_COORD, 0, 0}, m, now);
    } else {
        fl_server_recv(p->server, from, m, now);
    }
}

/* --- methods --- */

static void hear(fl_pserver *p, uint64_t call, const fl_packet *packet,
                 bool open)
{
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    fl_err err = fl_msg_decode(somebody, packet, arena, &m);
    if (!err && open != (m.kind == FL_MSG_RENEW))
        err = fl_fail(FL_EPROTO, "%s does not come on %s call",
                      fl_msg_name(m.kind), open ? "an open" : "such a");
    fl_parcel *grads = fl_parcel_of(m.blob);
    if (!err && grads && m.kind == FL_MSG_PUSH)
        fl_parcel_scan(grads);
    if (err) {
        fl_rpc_refuse(p->rpc, call, err, fl_errmsg());
    } else {
        fl_pserver_lock(p);
        route(p, call, &m);
        fl_pserver_flush(p);
        fl_pserver_unlock(p);
    }
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_free(arena);
}

static void on_request(void *self, uint64_t call, const fl_packet *packet)
{
    hear(self, call, packet, false);
}

static void on_session(void *self, uint64_t call, const fl_packet *packet)
{
    fl_pserver *p = self;
    if (packet) {
        hear(p, call, packet, true);
        return;
    }
    fl_pserver_lock(p);
    fl_push(&p->open, call);
    fl_pserver_unlock(p);
}

static void on_why(void *self, uint64_t call, const fl_packet *packet)
{
    fl_pserver *p = self;
    fl_str text = {0};
    fl_pserver_lock(p);
    if (!p->closed)
        fl_pserver_waits(p, &text);
    fl_pserver_unlock(p);
    fl_rpc_answer(p->rpc, call, fl_why_encode(text.at ? text.at : ""));
    fl_str_fini(&text);
}

void fl_pserver_hangup(void *self, uint64_t call)
{
    fl_pserver *p = self;
    fl_pserver_lock(p);
    for (int64_t i = p->open.n - 1; i >= 0; i--)
        if (p->open.at[i] == call)
            fl_remove(&p->open, i);
    if (!p->closed) {
        if (p->coord)
            fl_coord_hangup(p->coord, call, fl_pserver_now(p));
        fl_server_hangup(p->server, call);
        fl_pserver_flush(p);
    }
    fl_pserver_unlock(p);
}

void fl_pserver_applied(void *self, int shard, const char *why)
{
    fl_pserver *p = self;
    fl_pserver_lock(p);
    if (!p->closed) {
        fl_server_applied(p->server, shard, why, fl_pserver_now(p));
        fl_pserver_flush(p);
    }
    fl_pserver_unlock(p);
}

const fl_rpc_method fl_pserver_methods[] = {
    {"/fluid.Coordinator/Join", false, on_request},
    {"/fluid.Coordinator/Barrier", false, on_request},
    {"/fluid.Coordinator/Complete", false, on_request},
    {"/fluid.Coordinator/Fail", false, on_request},
    {FL_METHOD_SESSION, true, on_session},
    {"/fluid.Coordinator/Report", false, on_request},
    {"/fluid.Server/Push", false, on_request},
    {"/fluid.Server/Pull", false, on_request},
    {"/fluid.Server/Tell", false, on_request},
    {FL_METHOD_WHY, false, on_why},
    {0},
};
