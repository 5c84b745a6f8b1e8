/* hear.c - what a trainer or another server may ask.
 *
 * Handlers run on threads of the network and never wait for a peer: a request
 * that must wait is parked by the machines. Bytes from outside are checked,
 * never asserted on; and who speaks as another server must prove that it is
 * (pserver_in.h says how). */
#include "pserver/pserver_in.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static void refuse(fl_pserver *p, uint64_t call, fl_err code, const char *fmt,
                   ...) __attribute__((format(printf, 4, 5)));

static void refuse(fl_pserver *p, uint64_t call, fl_err code, const char *fmt,
                   ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    fl_rpc_refuse(p->rpc, call, code, why);
}

/* --- from other servers --- */

/* One-way messages are answered when they are heard. */
static void heard(fl_pserver *p, uint64_t call)
{
    fl_rpc_answer(p->rpc, call,
                  fl_msg_encode(&(fl_msg){.kind = FL_MSG_ACK,
                                          .job = p->job.id,
                                          .server = p->place->server}));
}

static bool proves(fl_pserver *p, int server, const fl_msg *m)
{
    if (m->echo != p->secret)
        return false;
    p->known[server] = m->secret;
    p->strange = 0;
    return true;
}

static void note_left(fl_pserver *p, int rank, const fl_msg *view)
{
    char why[128] = "";
    for (int i = 0; i < view->n_left && !why[0]; i++)
        if (fl_id_same(view->left[i].session, p->told[rank]))
            fl_leave_text(&view->left[i], why, sizeof why);
    fl_pserver_note(p, "trainer %d has left; %d of %d are here%s%s", rank,
                    view->n_member, p->job.trainers, why[0] ? "; " : "", why);
    p->told[rank] = (fl_id){0};
}

/* The coordinator's own log tells more, so this is for the other servers. */
static void note_view(fl_pserver *p, const fl_msg *view)
{
    int at = 0; /* members are in order of their ranks */
    for (int rank = 0; rank < p->job.trainers; rank++) {
        while (at < view->n_member && view->member[at].rank < rank)
            at++;
        const bool is = at < view->n_member && view->member[at].rank == rank;
        const fl_id now = is ? view->member[at].session : (fl_id){0};
        if (fl_id_same(now, p->told[rank]))
            continue;
        if (!fl_id_same(p->told[rank], (fl_id){0}))
            note_left(p, rank, view);
        if (is)
            fl_pserver_note(p, "trainer %d has joined; %d of %d are here", rank,
                            view->n_member, p->job.trainers);
        p->told[rank] = now;
    }
}

/* From the coordinator, in another process. */
static void from_coordinator(fl_pserver *p, const fl_msg *m, int64_t now)
{
    const char *why = "";
    int code = 0;
    const int64_t view = fl_server_view(p->server);
    const bool ended = fl_server_end(p->server, &code, &why);
    fl_server_recv(p->server, (fl_peer){FL_PEER_COORD, 0, 0}, m, now);
    if (m->kind == FL_MSG_VIEW && fl_server_view(p->server) > view)
        note_view(p, m);
    if (!ended && fl_server_end(p->server, &code, &why))
        fl_pserver_note(p, "the job ends with code %d at version %lld: %s",
                        code, (long long)fl_server_version(p->server), why);
}

static void from_server(fl_pserver *p, uint64_t call, const fl_msg *m)
{
    const int64_t now = fl_pserver_now(p);
    const bool state = m->kind == FL_MSG_STATE;
    const int from = state ? m->server : 0, me = p->place->server;
    if (from < 0 || from >= p->job.servers || from == me) {
        refuse(p, call, FL_EINVAL, "%s of server %d: this is server %d of %d",
               fl_msg_name(m->kind), from, me, p->job.servers);
        return;
    }
    heard(p, call);
    const bool proven = proves(p, from, m);
    if (proven && state)
        fl_coord_recv(p->coord, (fl_peer){FL_PEER_SERVER, from, 0}, m, now);
    else if (proven)
        from_coordinator(p, m, now);
    else if (!state)
        fl_pserver_knock(p, m->secret);
}

/* --- counts of trainers --- */

static void on_tally(fl_pserver *p, uint64_t call, const fl_msg *m)
{
    const fl_peer from = {FL_PEER_CALL, 0, call};
    const int rank = fl_coord_admit(p->coord, from, m, fl_pserver_now(p));
    if (rank < 0)
        return;
    fl_msg answer = fl_tallies_hear(p->tallies, rank, m);
    answer.state = p->state;
    fl_pserver_answer(p, from, &answer);
    fl_keeper_parcels.drop(NULL, answer.blob);
}

/* --- by kind --- */

/* Under the lock. */
static void route(fl_pserver *p, uint64_t call, const fl_msg *m)
{
    const int64_t now = fl_pserver_now(p);
    const fl_peer from = {FL_PEER_CALL, 0, call};
    const fl_msg_info *info = fl_msg_info_of(m->kind);
    if (p->closed)
        refuse(p, call, FL_EIO, "the server is ending");
    else if (!fl_id_same(m->job, p->job.id))
        fl_outbox_wrong_job(&p->server_out, from, m, &p->job);
    else if (info->to == FL_PARTY_COORD && !p->coord)
        refuse(p, call, FL_EINVAL,
               "%s: this is server %d, the coordinator is %s: is the list of "
               "servers in the same order everywhere?",
               fl_msg_name(m->kind), p->place->server, p->place->servers[0]);
    else if (m->kind == FL_MSG_TALLY)
        on_tally(p, call, m);
    else if (info->from != FL_PARTY_TRAINER)
        from_server(p, call, m);
    else if (info->to == FL_PARTY_COORD)
        fl_coord_recv(p->coord, from, m, now);
    else
        fl_server_recv(p->server, from, m, now);
}

/* --- methods --- */

static fl_err check_method(const fl_rpc_method *by, fl_msg_kind kind)
{
    const char *method = fl_msg_method(kind);
    if (method && !strcmp(by->name, method))
        return FL_OK;
    return fl_fail(FL_EPROTO, "%s does not come by %s", fl_msg_name(kind),
                   by->name);
}

/* Who knows the job's digest is no stranger. A request of another job is
 * answered with a sentence; an open call ends, or it would be answered word by
 * word. */
static fl_err check_job(fl_pserver *p, const fl_rpc_method *by, uint64_t call,
                        const fl_msg *m)
{
    if (fl_id_same(m->job, p->job.id))
        fl_rpc_trust(p->rpc, call);
    else if (by->open)
        return fl_fail(FL_EPROTO, "%s is of another job", fl_msg_name(m->kind));
    return FL_OK;
}

/* Is it worth a look at every number of its gradients? */
static bool expects(fl_pserver *p, const fl_msg *m)
{
    fl_pserver_lock(p);
    const bool is =
        m->blob.owner && !p->closed && fl_server_expects(p->server, m);
    fl_pserver_unlock(p);
    return is;
}

static void hear(void *self, const fl_rpc_method *by, uint64_t call,
                 const fl_packet *packet)
{
    fl_pserver *p = self;
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    fl_err err = fl_msg_decode(NULL, packet, arena, &m);
    if (!err)
        err = check_method(by, m.kind);
    if (!err)
        err = check_job(p, by, call, &m);
    if (!err)
        FL_DEBUG("%s: round %lld, seq %lld, view %lld, %zu bytes",
                 fl_msg_name(m.kind), (long long)m.round, (long long)m.seq,
                 (long long)m.view, m.blob.size);
    if (!err && m.kind == FL_MSG_PUSH && expects(p, &m))
        fl_parcel_scan(fl_parcel_of(m.blob));
    if (err) {
        char caller[64];
        err = fl_fail_at(err, "from %s",
                         fl_rpc_caller(p->rpc, call, caller, sizeof caller));
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

static void on_session(void *self, const fl_rpc_method *by, uint64_t call,
                       const fl_packet *packet)
{
    fl_pserver *p = self;
    if (packet) {
        hear(p, by, call, packet);
        return;
    }
    fl_pserver_lock(p);
    fl_push(&p->open, call);
    fl_pserver_unlock(p);
}

/* Hosts and processes are named to members, and on the server's own host. */
static void on_why(void *self, const fl_rpc_method *by, uint64_t call,
                   const fl_packet *packet)
{
    fl_pserver *p = self;
    const bool names = fl_rpc_standing(p->rpc, call) != FL_STRANGER;
    fl_str text = {0};
    fl_pserver_lock(p);
    if (!p->closed)
        fl_pserver_waits(p, names, &text);
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

void fl_pserver_applied(void *self, const char *why)
{
    fl_pserver *p = self;
    fl_pserver_lock(p);
    if (!p->closed) {
        fl_server_applied(p->server, why, fl_pserver_now(p));
        fl_pserver_flush(p);
    }
    fl_pserver_unlock(p);
}

void fl_pserver_methods(fl_pserver *p)
{
    const int n = fl_msg_methods(p->method, (fl_rpc_method){.heard = hear},
                                 (fl_rpc_method){
                                     .open = true,
                                     .heard = on_session,
                                 });
    p->method[n] = (fl_rpc_method){FL_METHOD_WHY, false, on_why};
}
