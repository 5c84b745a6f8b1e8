/* tell.c - what the machines leave in their outboxes goes out.
 *
 * Between the two machines of server 0 letters go by hand; either may answer
 * the other at once, so both boxes are read until neither grows. */
#include "pserver/pserver_in.h"

#define VERSION_LINES (60 * FL_SEC)

static bool is_open(const fl_pserver *p, uint64_t call)
{
    for (int64_t i = 0; i < p->open.n; i++)
        if (p->open.at[i] == call)
            return true;
    return false;
}

void fl_pserver_answer(void *self, fl_peer to, const fl_msg *m)
{
    fl_pserver *p = self;
    fl_rpc_answer(p->rpc, to.call, fl_msg_encode(m));
}

/* --- to other servers --- */

/* Channel 0, FL_MSG_NONE, is for the STATE that knocks. */
enum {
    KNOCK = FL_MSG_NONE
};

static void said(void *self, uint64_t tag, const fl_rpc_reply *reply);

static void send(fl_pserver *p, int server, int channel, fl_packet *packet)
{
    const fl_msg_kind kind = channel ? (fl_msg_kind)channel : FL_MSG_STATE;
    const uint64_t tag = (uint64_t)(server * FL_MSG_KINDS + channel);
    p->channel[server][channel].busy = true;
    fl_rpc_call(p->rpc, p->peer[server], fl_msg_method(kind), packet,
                p->job.call, (fl_rpc_done){said, p, tag});
}

/* Another server is of another job: perhaps of one that is just ending there.
 * If it stays so for a lease, this one cannot begin. */
static void meet_stranger(fl_pserver *p, int server, const fl_msg *m)
{
    const int64_t now = fl_pserver_now(p);
    char name[96];
    fl_str why = {0};
    const bool first = !p->strange;
    p->strange = first ? now : p->strange;
    fl_str_printf(&why, "%s is of another job than this server: ",
                  fl_job_server(&p->job, server, name, sizeof name));
    fl_job_differs(&p->job, m->about, &why);
    if (first)
        fl_outbox_note(&p->server_out, "%s", why.at);
    if (now >= p->strange + p->job.lease && p->coord)
        fl_coord_end(p->coord, 1, why.at, now);
    else if (now >= p->strange + p->job.lease)
        fl_server_quit(p->server, why.at, now);
    fl_str_fini(&why);
}

static void hear_answer(fl_pserver *p, int server, const fl_packet *packet)
{
    fl_arena *arena = fl_arena_new();
    fl_msg m;
    if (!fl_msg_decode(NULL, packet, arena, &m)) {
        if (m.kind == FL_MSG_ERROR && m.about)
            meet_stranger(p, server, &m);
        fl_keeper_parcels.drop(NULL, m.blob);
    }
    fl_arena_free(arena);
}

static void said(void *self, uint64_t tag, const fl_rpc_reply *reply)
{
    fl_pserver *p = self;
    const int server = (int)(tag / FL_MSG_KINDS),
              channel = (int)(tag % FL_MSG_KINDS);
    fl_pserver_lock(p);
    fl_channel *l = &p->channel[server][channel];
    fl_packet *next = l->next;
    l->busy = false;
    l->next = NULL;
    if (p->closed) {
        fl_packet_unref(next);
    } else {
        if (reply->end == FL_RPC_OK)
            hear_answer(p, server, reply->packet);
        if (reply->end == FL_RPC_REFUSED && p->coord)
            fl_coord_refused(p->coord, server, reply->no_listener,
                             fl_pserver_now(p));
        else if (reply->no_listener && !server)
            fl_server_refused(p->server, fl_pserver_now(p));
        if (next)
            send(p, server, channel, next);
        fl_pserver_flush(p);
    }
    fl_pserver_unlock(p);
}

static void post(fl_pserver *p, int server, const fl_msg *m)
{
    const int channel = (int)m->kind;
    fl_channel *l = &p->channel[server][channel];
    fl_msg proven = *m;
    proven.secret = p->secret;
    proven.echo = p->known[server];
    fl_packet *packet = fl_msg_encode(&proven);
    if (!l->busy) {
        send(p, server, channel, packet);
        return;
    }
    fl_packet_unref(l->next); /* the machines say again what matters */
    l->next = packet;
}

void fl_pserver_knock(fl_pserver *p, uint64_t number)
{
    const fl_msg m = {.kind = FL_MSG_STATE,
                      .job = p->job.id,
                      .server = p->place->server,
                      .secret = p->secret,
                      .state = p->state,
                      .echo = number};
    if (!p->channel[0][KNOCK].busy)
        send(p, 0, KNOCK, fl_msg_encode(&m));
}

void fl_pserver_drop_channels(fl_pserver *p)
{
    for (int i = 0; i < p->job.servers; i++)
        for (int k = 0; k < FL_MSG_KINDS; k++)
            fl_packet_unref(p->channel[i][k].next);
    fl_mem_free(p->channel);
}

/* --- letters --- */

static void deliver(fl_pserver *p, const fl_letter *l)
{
    const int64_t now = fl_pserver_now(p);
    const int me = p->place->server;
    if (l->to.kind == FL_PEER_CALL && is_open(p, l->to.call))
        fl_rpc_say(p->rpc, l->to.call, fl_msg_encode(&l->msg));
    else if (l->to.kind == FL_PEER_CALL)
        fl_pserver_answer(p, l->to, &l->msg);
    else if (l->to.kind == FL_PEER_COORD && p->coord)
        fl_coord_recv(p->coord, (fl_peer){FL_PEER_SERVER, me, 0}, &l->msg, now);
    else if (l->to.kind == FL_PEER_COORD)
        post(p, 0, &l->msg);
    else if (l->to.index == me)
        fl_server_recv(p->server, (fl_peer){FL_PEER_COORD, 0, 0}, &l->msg, now);
    else
        post(p, l->to.index, &l->msg);
}

/* Letters of a box from *done on. */
static void deliver_all(fl_pserver *p, fl_outbox *box, int64_t *done)
{
    while (*done < box->out.n) {
        const fl_letter l = box->out.at[(*done)++];
        deliver(p, &l);
    }
}

static void note_all(fl_pserver *p, const fl_outbox *box)
{
    for (int64_t i = 0; i < box->note.n; i++)
        fl_pserver_note(p, "%s", box->note.at[i]);
}

/* The first version, and then a line a minute. */
static void note_version(fl_pserver *p)
{
    const int64_t version = fl_server_version(p->server);
    const int64_t more = version - p->told_version;
    if (!more)
        return;
    const int64_t now = fl_pserver_now(p), since = now - p->told_at;
    if (!p->told_version)
        fl_pserver_note(p, "version %lld: the job trains", (long long)version);
    else if (since >= VERSION_LINES)
        fl_pserver_note(p, "version %lld, %.3g a second", (long long)version,
                        (double)more * (double)FL_SEC / (double)since);
    else
        return;
    p->told_version = version;
    p->told_at = now;
}

void fl_pserver_flush(fl_pserver *p)
{
    int64_t from_coord = 0, from_server = 0;
    while (from_coord < p->coord_out.out.n ||
           from_server < p->server_out.out.n) {
        deliver_all(p, &p->coord_out, &from_coord);
        deliver_all(p, &p->server_out, &from_server);
    }
    note_all(p, &p->coord_out);
    note_all(p, &p->server_out);
    note_version(p);
    fl_outbox_clear(&p->coord_out);
    fl_outbox_clear(&p->server_out);
}
