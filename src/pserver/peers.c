/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - channels to the other servers, and the secrets that prove them. */
#include "pserver/peers.h"

#include "base/mem.h"
#include "wire/codec.h"

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
    int n;
    peer_server at[];
};

fl_peers *fl_peers_new(const fl_peers_opts *opts)
{
    const fl_placement *place = opts->place;
    const int n = place->n_servers;
    fl_peers *p = fl_mem_alloc(sizeof *p + (size_t)n * sizeof *p->at);
    p->opts = *opts;
    p->n = n;
    for (int i = 0; i < n; i++)
        if (i != place->server)
            p->at[i].rpc = fl_rpc_peer_at(opts->rpc, place->servers[i]);
    return p;
}

void fl_peers_free(fl_peers *p)
{
    for (int i = 0; p && i < p->n; i++)
        for (int k = 0; k < FL_MSG_KINDS; k++)
            fl_packet_unref(p->at[i].channel[k].next);
    fl_mem_free(p);
}

static void send_packet(fl_peers *p, int server, int channel, fl_packet *packet)
{
    const fl_msg_kind kind =
        channel == KNOCK ? FL_MSG_STATE : (fl_msg_kind)channel;
    const uint64_t tag = (uint64_t)(server * FL_MSG_KINDS + channel);
    p->at[server].channel[channel].busy = true;
    fl_rpc_call(p->opts.rpc, p->at[server].rpc, fl_msg_method(kind), packet,
                p->opts.limit,
                (fl_rpc_done){p->opts.delivered, p->opts.self, tag});
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

void fl_peers_knock(fl_peers *p, const fl_msg *state)
{
    fl_msg knock = *state;
    knock.secret = p->opts.secret;
    if (!p->at[0].channel[KNOCK].busy)
        send_packet(p, 0, KNOCK, fl_msg_encode(&knock));
}

int fl_peers_delivered(fl_peers *p, uint64_t tag, bool closed)
{
    const int server = (int)(tag / FL_MSG_KINDS),
              channel = (int)(tag % FL_MSG_KINDS);
    peer_channel *c = &p->at[server].channel[channel];
    fl_packet *next = c->next;
    c->busy = false;
    c->next = NULL;
    if (closed)
        fl_packet_unref(next);
    else if (next)
        send_packet(p, server, channel, next);
    return server;
}

bool fl_peers_proves(fl_peers *p, int server, const fl_msg *m)
{
    if (m->echo != p->opts.secret)
        return false;
    p->at[server].secret = m->secret;
    return true;
}

bool fl_peers_sending(const fl_peers *p, fl_msg_kind kind)
{
    for (int i = 0; i < p->n; i++)
        if (p->at[i].channel[kind].busy)
            return true;
    return false;
}
