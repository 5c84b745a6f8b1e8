/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - channels to the other servers, the secrets that prove them, and
 * what comes from them. */
#include "pserver/peers.h"

#include "base/mem.h"
#include "wire/codec.h"

#include <stdio.h>

enum {
    KNOCK = FL_MSG_NONE /* channel of knocks; others are kinds of messages */
};

typedef struct peer_channel {
    bool busy;       /* a message was sent and is not answered */
    fl_packet *next; /* the newest message that waits; NULL: none waits */
} peer_channel;

typedef struct peer_server {
    fl_rpc_peer *rpc; /* NULL: this server itself */
    uint64_t secret;  /* 0: not known yet */
    peer_channel channel[FL_MSG_KINDS];
} peer_server;

struct fl_peers {
    fl_peers_opts opts;
    fl_arena *arena;     /* of an answer while it is read */
    fl_refusals strange; /* since when a server of another job answers at an
                            endpoint of ours */
    int n;
    peer_server at[];
};

fl_peers *fl_peers_new(const fl_peers_opts *opts)
{
    const fl_placement *place = opts->place;
    const int n = place->n_servers;
    fl_peers *p = fl_mem_alloc(sizeof *p + (size_t)n * sizeof *p->at);
    p->opts = *opts;
    p->arena = fl_arena_new();
    p->n = n;
    for (int i = 0; i < n; i++)
        if (i != place->server)
            p->at[i].rpc = fl_rpc_peer_at(opts->rpc, place->servers[i]);
    return p;
}

void fl_peers_free(fl_peers *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < FL_MSG_KINDS; k++)
            fl_packet_unref(p->at[i].channel[k].next);
    fl_arena_free(p->arena);
    fl_mem_free(p);
}

/* --- what is sent --- */

/* A server of another job answers at an endpoint of ours. Perhaps that job is
 * about to end; if it still answers after a lease, our job fails. */
static void on_other_job(fl_peers *p, int server, const char *about)
{
    const fl_job *job = p->opts.job;
    const int64_t now = fl_clock_now(p->opts.clock);
    char name[96];
    fl_str why = {0};
    const bool first = !p->strange;
    p->strange = first ? now : p->strange;
    fl_str_printf(&why, "%s is of another job than this server: ",
                  fl_job_server(job, server, name, sizeof name));
    fl_job_differs(job, about, &why);
    if (first)
        fl_machines_note(p->opts.machines, "%s", why.at);
    if (now >= p->strange + job->lease)
        fl_machines_fail(p->opts.machines, 1, why.at);
    fl_str_fini(&why);
}

/* The answer to a one-way message only matters if the server is of another job.
 */
static void read_answer(fl_peers *p, int server, const fl_packet *packet)
{
    fl_msg m;
    if (!fl_msg_decode(NULL, packet, p->arena, &m)) {
        if (m.kind == FL_MSG_ERROR && m.about)
            on_other_job(p, server, m.about);
        fl_keeper_parcels.drop(NULL, m.blob);
    }
    fl_arena_reset(p->arena);
}

static void send_packet(fl_peers *p, int server, int channel,
                        fl_packet *packet);

/* The channel of a message that was answered or has failed is free: send the
 * one that waits. */
static void free_channel(fl_peers *p, int server, int channel)
{
    peer_channel *c = &p->at[server].channel[channel];
    fl_packet *next = c->next;
    c->busy = false;
    c->next = NULL;
    if (next)
        send_packet(p, server, channel, next);
}

static void on_answer(void *self, uint64_t tag, const fl_rpc_reply *reply)
{
    fl_peers *p = self;
    const int server = (int)(tag / FL_MSG_KINDS);
    fl_machines_lock(p->opts.machines);
    if (fl_machines_server(p->opts.machines)) {
        free_channel(p, server, (int)(tag % FL_MSG_KINDS));
        if (reply->end == FL_RPC_OK)
            read_answer(p, server, reply->packet);
        else if (reply->end == FL_RPC_REFUSED)
            fl_machines_refused(p->opts.machines, server, reply->no_listener);
    }
    fl_machines_unlock(p->opts.machines);
}

static void send_packet(fl_peers *p, int server, int channel, fl_packet *packet)
{
    const fl_msg_kind kind =
        channel == KNOCK ? FL_MSG_STATE : (fl_msg_kind)channel;
    const uint64_t tag = (uint64_t)(server * FL_MSG_KINDS + channel);
    p->at[server].channel[channel].busy = true;
    fl_rpc_call(p->opts.rpc, p->at[server].rpc, fl_msg_method(kind), packet,
                p->opts.job->call, (fl_rpc_done){on_answer, p, tag});
}

void fl_peers_send(fl_peers *p, int server, const fl_msg *m)
{
    peer_channel *c = &p->at[server].channel[m->kind];
    fl_msg proven = *m;
    proven.secret = p->opts.secret;
    proven.echo = p->at[server].secret;
    fl_packet *packet = fl_msg_encode(&proven);
    if (!c->busy) {
        send_packet(p, server, (int)m->kind, packet);
        return;
    }
    fl_packet_unref(c->next);
    c->next = packet;
}

/* --- what comes --- */

/* Send the secret of this process to the coordinator's endpoint. `secret` is
 * that of the process whose message could not prove it. A knock that is not
 * answered yet is not sent again. */
static void send_knock(fl_peers *p, uint64_t secret)
{
    const fl_peers_opts *o = &p->opts;
    const fl_server *server = fl_machines_server(o->machines);
    if (p->at[0].channel[KNOCK].busy)
        return;
    send_packet(p, 0, KNOCK,
                fl_msg_encode(
                    &(fl_msg){.kind = FL_MSG_STATE,
                              .job = o->job->id,
                              .server = o->place->server,
                              .state = o->state,
                              .generation = fl_machines_generation(o->machines),
                              .expected = fl_server_coordinator(server),
                              .secret = o->secret,
                              .echo = secret}));
}

/* Whether the message carries the secret of this process. If so, the secret of
 * its sender is remembered. */
static bool is_proven(fl_peers *p, int server, const fl_msg *m)
{
    if (m->echo != p->opts.secret)
        return false;
    p->at[server].secret = m->secret;
    p->strange = 0;
    return true;
}

/* A one-way message is answered when it arrives. */
static void acknowledge_call(const fl_peers *p, uint64_t call)
{
    fl_rpc_answer(p->opts.rpc, call,
                  fl_msg_encode(&(fl_msg){.kind = FL_MSG_ACK,
                                          .job = p->opts.job->id,
                                          .server = p->opts.place->server}));
}

/* STATE comes from any server and is for the coordinator. All others come from
 * the coordinator. */
void fl_peers_recv(fl_peers *p, uint64_t call, const fl_msg *m)
{
    const bool state = m->kind == FL_MSG_STATE;
    const int from = state ? m->server : 0, me = p->opts.place->server;
    fl_coord *coord = fl_machines_coord(p->opts.machines);
    const int64_t now = fl_clock_now(p->opts.clock);
    if (from < 0 || from >= p->n || from == me) {
        char why[128];
        snprintf(why, sizeof why, "%s of server %d: this is server %d of %d",
                 fl_msg_name(m->kind), from, me, p->n);
        fl_rpc_refuse(p->opts.rpc, call, FL_EINVAL, why);
        return;
    }
    acknowledge_call(p, call);
    const bool proven = is_proven(p, from, m);
    if (proven && state)
        fl_coord_recv(coord, (fl_peer){FL_PEER_SERVER, from, 0}, m, now);
    else if (proven)
        fl_machines_recv(p->opts.machines, m);
    else if (!state)
        send_knock(p, m->secret);
    else
        fl_coord_greet(coord, from, now); /* it may have lost its state */
}

bool fl_peers_sending(const fl_peers *p, fl_msg_kind kind)
{
    for (int i = 0; i < p->n; i++)
        if (p->at[i].channel[kind].busy)
            return true;
    return false;
}
