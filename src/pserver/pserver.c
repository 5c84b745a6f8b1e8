/* SPDX-License-Identifier: Apache-2.0 */
/* pserver.c - a server process: gives incoming messages to the state machines,
 * and sends what the machines want to have sent.
 *
 * Handlers run on threads of the network and never wait for a peer: a request
 * that must wait is parked by the machines. Bytes from outside are checked,
 * never asserted on. */
#include "pserver/pserver.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "cluster/ports.h"
#include "cluster/tls.h"
#include "net/port.h"
#include "net/rpc.h"
#include "pserver/bare.h"
#include "pserver/machines.h"
#include "pserver/peers.h"
#include "pserver/shard.h"
#include "pserver/tally.h"
#include "wire/codec.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define TICK         (250 * FL_MS)
#define POLL         (50 * FL_MS)       /* between two checks for a signal */
#define WAITING_MOST ((size_t)64 << 20) /* bytes that wait for a base */

enum {
    CALLS = 128 /* requests of one trainer at most: 64 pushes and others */
};

/* A push that waits for a new base of the journal. */
typedef struct waiting_push {
    const fl_rpc_method *by;
    uint64_t call;
    fl_packet *packet; /* own */
} waiting_push;

typedef struct pserver {
    const fl_pserver_opts *opts;
    const fl_program *program;
    const fl_op *op; /* the listen_and_serv op of `program` */
    fl_scope *scope;
    const fl_placement *place;
    fl_bare *bare; /* how a bare server gets its job */
    bool resuming; /* the job comes from the state, which must be there */
    bool bringing; /* a trainer has brought the job, which has not begun: if it
                      is refused, nothing of it stays */
    const fl_clock *clock;
    fl_job job;
    fl_rpc *rpc;
    fl_rpc_method method[FL_MSG_KINDS + 2]; /* also Why and the end mark */
    fl_shard *shard;
    fl_snapshots snapshots;
    fl_signals *signals;
    char address[128]; /* where the server listens */
    int port;          /* port of `address`; 0: it does not listen yet */
    fl_state state;    /* drawn when the state begins */
    fl_arena *arena;   /* of a message that comes: the network's thread alone */

    fl_machines *machines; /* their lock guards the rest: */
    bool over;             /* the job has ended, whatever its result */
    int64_t room_warned;   /* when the log said that a push has no room */
    fl_tallies *tallies;   /* NULL: this is not server 0 */
    FL_VEC(waiting_push) waiting; /* in order */
    size_t waiting_bytes;         /* of their packets */
    fl_peers *peers;              /* the other servers of the job */
} pserver;

static int64_t now_of(const pserver *p)
{
    return fl_clock_now(p->clock);
}

/* --- waits --- */

static int count_lines(const fl_str *s)
{
    int n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->at[i] == '\n';
    return n;
}

/* Under the lock: add to `text` who waits for whom. Without `names`, for
 * strangers, only how many wait. */
static void add_waits(pserver *p, bool names, fl_str *text)
{
    const fl_server *server = fl_machines_server(p->machines);
    const fl_coord *coord = fl_machines_coord(p->machines);
    fl_str rows = {0};
    if (!server) {
        fl_str_printf(text,
                      "server at %s waits for trainer 0 of %d, which brings "
                      "the program\n",
                      p->address, p->opts->trainers);
        return;
    }
    fl_machines_waits(p->machines, &rows);
    fl_shard_waits(p->shard, &rows);
    fl_str_printf(text, "server %d of %d at %s: version %lld, view %lld",
                  p->place->server, p->job.servers, p->address,
                  (long long)fl_server_version(server),
                  (long long)fl_server_view(server));
    if (coord)
        fl_str_printf(text, ", %d of %d trainers are complete",
                      fl_coord_done(coord), p->job.trainers);
    fl_str_add(text, ", ");
    fl_shard_about(p->shard, names, text);
    if (names || !rows.n)
        fl_str_printf(text, "\n%s", rows.n ? rows.at : "nobody waits\n");
    else
        fl_str_printf(text,
                      "\nwaits: %d; ask on the server's own host to see them\n",
                      count_lines(&rows));
    fl_str_fini(&rows);
}

/* --- sending --- */

/* Answer a call. Thread: any; the lock is not needed. */
static void answer_call(void *self, fl_peer to, const fl_msg *m)
{
    pserver *p = self;
    fl_rpc_answer(p->rpc, to.call, fl_msg_encode(m));
}

/* Answer a call. One that is parked is told if the reason is a lack of room. */
static void answer_waiting(pserver *p, const fl_envelope *e)
{
    char text[1024];
    fl_msg m = e->msg;
    if (m.kind == FL_MSG_PARKED && fl_shard_check_owners(p->shard)) {
        snprintf(text, sizeof text, "%s: %s", m.text ? m.text : "",
                 fl_errmsg());
        m.text = text;
    }
    answer_call(p, e->to, &m);
}

static void send_message(void *self, const fl_envelope *e)
{
    pserver *p = self;
    if (e->to.kind == FL_PEER_CALL)
        answer_waiting(p, e);
    else
        fl_peers_send(p->peers, e->to.kind == FL_PEER_COORD ? 0 : e->to.index,
                      &e->msg);
}

/* fl_machines_opts.send: at once, or when the journal is on disk. */
static void send_durable(void *self, const fl_envelope *e)
{
    pserver *p = self;
    if (!fl_shard_hold(p->shard, e))
        send_message(p, e);
}

/* Records up to `number` are on disk. Thread: the journal's. */
static void on_durable(void *self, uint64_t number)
{
    pserver *p = self;
    fl_machines_lock(p->machines);
    if (fl_machines_server(p->machines))
        fl_shard_release(p->shard, number, send_message, p);
    fl_machines_unlock(p->machines);
}

/* --- receiving --- */

__attribute__((format(printf, 4, 5))) static void
refuse_call(pserver *p, uint64_t call, fl_err code, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    fl_rpc_refuse(p->rpc, call, code, why);
}

/* --- counts of trainers --- */

static void on_tally(pserver *p, uint64_t call, const fl_msg *m)
{
    const fl_peer from = {FL_PEER_CALL, 0, call};
    const int rank =
        fl_coord_admit(fl_machines_coord(p->machines), from, m, now_of(p));
    if (rank < 0)
        return;
    fl_msg answer = fl_tallies_report(p->tallies, rank, m);
    answer.state = p->state;
    answer.generation = fl_machines_generation(p->machines);
    answer_call(p, from, &answer);
    fl_keeper_parcels.drop(NULL, answer.blob);
}

/* --- a job for a bare server --- */

static void answer_setup(void *self, uint64_t call, const fl_msg *m)
{
    pserver *p = self;
    fl_msg answer = *m;
    answer.state = p->state;
    answer_call(p, (fl_peer){FL_PEER_CALL, 0, call}, &answer);
}

static void on_setup(pserver *p, uint64_t call, const fl_msg *m)
{
    char address[64];
    const fl_server *server = fl_machines_server(p->machines);
    const int64_t now = now_of(p);
    if (server) {
        fl_bare_refuse(p->bare, call, m, &p->job, server, now);
        return;
    }
    fl_rpc_trust(p->rpc, call); /* a bare server has no other way to know */
    fl_bare_add(p->bare, call, m,
                fl_rpc_caller(p->rpc, call, address, sizeof address), now);
}

/* --- no room --- */

/* Under the lock: whether the log is to say that there is no room. It does not
 * say so for every request. */
static bool is_warning_due(pserver *p)
{
    const int64_t now = now_of(p);
    const bool due = !p->room_warned || now >= p->room_warned + p->job.stall;
    if (due)
        p->room_warned = now;
    return due;
}

/* There is no room for what a request needs, and fl_errmsg says where: the
 * trainer is told, and repeats the request. */
static void park_call(pserver *p, uint64_t call, const fl_msg *m)
{
    answer_call(p, (fl_peer){FL_PEER_CALL, 0, call},
                &(fl_msg){.kind = FL_MSG_PARKED,
                          .job = p->job.id,
                          .session = m->session,
                          .tag = m->tag,
                          .server = p->place->server,
                          .state = p->state,
                          .generation = fl_machines_generation(p->machines),
                          .text = fl_errmsg()});
}

/* Under the lock: whether there is room for what a request adds to the images
 * of the machines. If not, it is parked. */
static bool has_image_room(pserver *p, uint64_t call, const fl_msg *m)
{
    const bool adds = m->kind == FL_MSG_JOIN || m->kind == FL_MSG_BARRIER;
    if (!adds || !fl_shard_reserve(p->shard, m))
        return true;
    if (is_warning_due(p))
        fl_machines_note(p->machines, "a %s waits: %s; pulls are answered",
                         fl_msg_name(m->kind), fl_errmsg());
    park_call(p, call, m);
    return false;
}

/* --- dispatch by kind --- */

/* Under the lock: hand a message to the machine that it is for. */
static void route_message(pserver *p, uint64_t call, const fl_msg *m)
{
    const int64_t now = now_of(p);
    const fl_peer from = {FL_PEER_CALL, 0, call};
    const fl_msg_info *info = fl_msg_info_of(m->kind);
    fl_server *server = fl_machines_server(p->machines);
    fl_coord *coord = fl_machines_coord(p->machines);
    if (info->from == FL_PARTY_TRAINER && fl_id_same(m->job, p->job.id))
        fl_bare_hear(p->bare);
    if (fl_machines_closed(p->machines))
        refuse_call(p, call, FL_EIO, "the server is ending");
    else if (m->kind == FL_MSG_SETUP)
        on_setup(p, call, m);
    else if (!server)
        refuse_call(p, call, FL_EIO, "%s: this server has no program yet",
                    fl_msg_name(m->kind));
    else if (!fl_id_same(m->job, p->job.id))
        fl_server_recv(server, from, m, now); /* answers with ERROR */
    else if (info->to == FL_PARTY_COORD && !coord)
        refuse_call(
            p, call, FL_EINVAL,
            "%s: this is server %d, the coordinator is %s: is the list of "
            "servers in the same order everywhere?",
            fl_msg_name(m->kind), p->place->server, p->place->servers[0]);
    else if (m->kind == FL_MSG_TALLY)
        on_tally(p, call, m);
    else if (info->from != FL_PARTY_TRAINER)
        fl_peers_recv(p->peers, call, m);
    else if (info->to != FL_PARTY_COORD)
        fl_server_recv(server, from, m, now);
    else if (has_image_room(p, call, m))
        fl_coord_recv(coord, from, m, now);
}

/* --- methods --- */

static fl_err check_method(const fl_rpc_method *by, fl_msg_kind kind)
{
    const char *method = fl_msg_method(kind);
    if (method && !strcmp(by->name, method))
        return FL_OK;
    if (fl_msg_streams(kind) && !strcmp(by->name, FL_METHOD_STREAM))
        return FL_OK;
    return fl_fail(FL_EPROTO, "%s is not a request of %s", fl_msg_name(kind),
                   by->name);
}

/* The job of a bare server is not known from the start. */
static bool is_own_job(pserver *p, const fl_msg *m)
{
    const bool bare = !p->opts->program;
    if (bare)
        fl_machines_lock(p->machines);
    const bool is = fl_id_same(m->job, p->job.id);
    if (bare)
        fl_machines_unlock(p->machines);
    return is;
}

/* Check the job digest that the caller shows. With the right one the caller is
 * no stranger. A request of another job is answered with ERROR later; an open
 * call is refused here, since it would get an ERROR for every message. */
static fl_err check_job(pserver *p, const fl_rpc_method *by, uint64_t call,
                        const fl_msg *m)
{
    if (is_own_job(p, m))
        fl_rpc_trust(p->rpc, call);
    else if (by->open)
        return fl_fail(FL_EPROTO, "%s is of another job", fl_msg_name(m->kind));
    return FL_OK;
}

/* Say why a push or round waits, but not for each of them. */
static void warn_of_room(pserver *p, bool round, const char *why)
{
    fl_machines_lock(p->machines);
    const bool due = is_warning_due(p);
    fl_machines_unlock(p->machines);
    if (due && round)
        FL_WARN("a round waits: %s", why);
    else if (due)
        FL_WARN("a push waits: %s; pulls are answered", why);
}

/* fl_pstore_opts.full. Nobody waits if the job has failed. */
static bool on_full(void *self, const char *why)
{
    pserver *p = self;
    fl_machines_lock(p->machines);
    const bool failed = fl_machines_server(p->machines) &&
                        fl_machines_result(p->machines) != FL_OK;
    fl_machines_unlock(p->machines);
    if (!failed)
        warn_of_room(p, !p->job.async, why);
    return !failed;
}

/* What the server does with a push before the machine gets it. */
typedef enum push_fate {
    PUSH_UNUSED, /* nothing: the machine will refuse it */
    PUSH_WAITS,  /* keeps it until there is a new base of the journal */
    PUSH_PARKED, /* tells the trainer why it has no room; the trainer repeats */
    PUSH_TAKEN,  /* copies it to where it is kept, and looks for NaN */
} push_fate;

/* Under the lock: keep a push for take_waiting. False: too many wait. */
static bool add_waiting(pserver *p, const fl_rpc_method *by, uint64_t call,
                        const fl_packet *packet)
{
    const size_t bytes = fl_packet_size(packet);
    if (p->waiting_bytes + bytes > WAITING_MOST)
        return false;
    fl_packet *own = fl_packet_ref((fl_packet *)packet);
    fl_push(&p->waiting, ((waiting_push){by, call, own}));
    p->waiting_bytes += bytes;
    return true;
}

/* PUSH_PARKED: fl_errmsg says why. */
static push_fate decide_push(pserver *p, const fl_rpc_method *by, uint64_t call,
                             const fl_packet *packet, const fl_msg *m)
{
    push_fate fate = PUSH_TAKEN;
    fl_machines_lock(p->machines);
    const fl_server *server = fl_machines_server(p->machines);
    if (!server || !fl_server_expects(server, m))
        fate = PUSH_UNUSED;
    else if (fl_shard_check_owners(p->shard))
        fate = PUSH_PARKED;
    else if (fl_shard_rebasing(p->shard) && add_waiting(p, by, call, packet))
        fate = PUSH_WAITS;
    else if (fl_shard_check_room(p->shard, fl_packet_size(packet)))
        fate = PUSH_PARKED;
    fl_machines_unlock(p->machines);
    return fate;
}

/* Make a push ready for the machine. False: the machine does not get it now. */
static bool take_push(pserver *p, const fl_rpc_method *by, uint64_t call,
                      const fl_packet *packet, fl_arena *arena, fl_msg *m)
{
    const fl_msg from = {.session = m->session, .tag = m->tag};
    const push_fate fate = decide_push(p, by, call, packet, m);
    if (fate == PUSH_UNUSED || fate == PUSH_WAITS)
        return fate == PUSH_UNUSED;
    if (fate == PUSH_TAKEN && !fl_shard_stage(p->shard, packet, arena, m)) {
        if (m->blob.owner)
            fl_parcel_scan(fl_parcel_of(m->blob));
        return true;
    }
    warn_of_room(p, false, fl_errmsg());
    park_call(p, call, &from);
    return false;
}

static void read_message(pserver *p, const fl_rpc_method *by, uint64_t call,
                         const fl_packet *packet, fl_arena *arena)
{
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
    if (err) {
        char caller[64];
        err = fl_fail_at(err, "from %s",
                         fl_rpc_caller(p->rpc, call, caller, sizeof caller));
        fl_rpc_refuse(p->rpc, call, err, fl_errmsg());
    } else if (m.kind != FL_MSG_PUSH ||
               take_push(p, by, call, packet, arena, &m)) {
        fl_machines_lock(p->machines);
        route_message(p, call, &m);
        fl_machines_unlock(p->machines);
    }
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_reset(arena);
}

static void on_message(void *self, const fl_rpc_method *by, uint64_t call,
                       const fl_packet *packet)
{
    pserver *p = self;
    read_message(p, by, call, packet, p->arena);
}

static void on_session(void *self, const fl_rpc_method *by, uint64_t call,
                       const fl_packet *packet)
{
    pserver *p = self;
    if (packet) {
        on_message(p, by, call, packet);
        return;
    }
    fl_machines_lock(p->machines);
    fl_machines_opened(p->machines, call);
    fl_machines_unlock(p->machines);
}

/* Requests of one trainer. */
static void on_stream(void *self, const fl_rpc_method *by, uint64_t call,
                      const fl_packet *packet)
{
    if (packet)
        on_message(self, by, call, packet);
}

/* Answer `paddle why`. Only members and callers on this host see the names of
 * hosts and processes. */
static void on_why(void *self, const fl_rpc_method *by, uint64_t call,
                   const fl_packet *packet)
{
    pserver *p = self;
    const bool names = fl_rpc_standing(p->rpc, call) != FL_STRANGER;
    fl_str text = {0};
    fl_machines_lock(p->machines);
    if (!fl_machines_closed(p->machines))
        add_waits(p, names, &text);
    fl_machines_unlock(p->machines);
    fl_rpc_answer(p->rpc, call, fl_why_encode(text.at ? text.at : ""));
    fl_str_fini(&text);
}

static void on_hangup(void *self, uint64_t call)
{
    pserver *p = self;
    fl_machines_lock(p->machines);
    fl_machines_hangup(p->machines, call);
    fl_machines_unlock(p->machines);
}

/* --- callbacks of the store --- */

/* A round or push was applied. Thread: an owner's. */
static void on_applied(void *self, const char *why)
{
    pserver *p = self;
    fl_machines_lock(p->machines);
    fl_server *server = fl_machines_server(p->machines);
    fl_shard_applied(p->shard);
    if (server)
        fl_server_applied(server, why, now_of(p));
    fl_machines_unlock(p->machines);
}

/* A snapshot was written. Thread: the store's. */
static void on_written(void *self, int64_t number, const char *why)
{
    pserver *p = self;
    if (why)
        FL_WARN("snapshot %lld is not written: %s", (long long)number, why);
    fl_machines_lock(p->machines);
    fl_server *server = fl_machines_server(p->machines);
    if (server && !why)
        fl_server_written(server, number, now_of(p));
    fl_machines_unlock(p->machines);
}

/* --- beginning --- */

/* Make the table of RPC methods: those of src/protocol/list.h, and Why. */
static void set_methods(pserver *p)
{
    const int n = fl_msg_methods(
        p->method, (fl_rpc_method){.heard = on_message},
        (fl_rpc_method){.open = true, .heard = on_session},
        (fl_rpc_method){.open = true, .most = CALLS, .heard = on_stream});
    p->method[n] = (fl_rpc_method){.name = FL_METHOD_WHY, .heard = on_why};
}

static fl_err check_place(const fl_placement *place)
{
    if (!place || place->server < 0 || place->server >= place->n_servers)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: the program is not a server's part of "
                       "a job; run the one that get_pserver_program returns");
    return FL_OK;
}

/* The signal that asks this process to end; 0: none. If the caller (Python)
 * handles Ctrl-C itself, its poll reports it. */
static int find_end_signal(void *self)
{
    const pserver *p = self;
    const fl_watch *w = p->opts->env->watch;
    const int number = fl_signals_ends(p->signals);
    return number ? number : w && w->poll && w->poll(w->user) ? SIGINT : 0;
}

static const char *own_endpoint(const pserver *p)
{
    return p->opts->address ? p->opts->address
                            : p->place->servers[p->place->server];
}

/* Whether another process answers as a server at the address of this one. */
static bool is_endpoint_served(void *self)
{
    const pserver *p = self;
    return !p->port && !fl_ports_ask(own_endpoint(p));
}

/* fl_machines_job.save */
static void save_images(void *self, const void *server, size_t n_server,
                        const void *coord, size_t n_coord)
{
    pserver *p = self;
    fl_shard_save(p->shard, server, n_server, coord, n_coord);
}

/* The machines begin where the snapshot was taken. A state that is kept is
 * complete only with their images. */
static fl_err rewind_machines(pserver *p, fl_server *server, fl_coord *coord)
{
    if (coord)
        fl_snapshots_enter(&p->snapshots, p->state.id);
    FL_TRY(fl_snapshots_rewind(&p->snapshots, server, coord));
    fl_machines_save(p->machines);
    fl_failpoint_hit("rewind.image");
    return FL_OK;
}

static fl_err make_machines(pserver *p)
{
    const int64_t now = now_of(p);
    fl_server *server;
    fl_coord *coord;
    p->state = fl_shard_state(p->shard);
    fl_machines_begin(
        p->machines,
        &(fl_machines_job){
            .job = &p->job,
            .server = p->place->server,
            .state = p->state,
            .generation = p->snapshots.restore ? p->snapshots.generation : 0,
            .store = fl_shard_ops(p->shard),
            .save = fl_shard_keeps(p->shard) ? save_images : NULL},
        &server, &coord);
    if (coord)
        p->tallies = fl_tallies_new(p->job.trainers);
    if (p->snapshots.restore)
        FL_TRY(rewind_machines(p, server, coord));
    FL_TRY(fl_shard_restore(p->shard, server, coord, now));
    if (coord)
        FL_TRY(fl_snapshots_begin(&p->snapshots, coord, now));
    return fl_shard_begin(p->shard, server);
}

/* Each peer needs a file descriptor; a large job has more peers than the usual
 * limit. */
static void raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* may fail: the old limit stays */
}

/* One network thread is enough to read at the speed of a socket. Two would hand
 * the polling to each other at every message, which takes a tenth of the
 * server's CPU time. */
static fl_err make_network(pserver *p)
{
    const int trainers = p->place ? p->job.trainers : p->opts->trainers;
    fl_entropy *e = p->opts->env->entropy;
    char token[FL_JOB_TOKEN];
    bool held = false; /* the launcher holds the port: launch/ports.c */
    fl_tls *tls;
    raise_file_limit();
    FL_TRY(fl_flag_bool("FLUID_PORT_HELD", &held));
    set_methods(p);
    FL_TRY(fl_job_tls_read(&tls));
    if (!p->place) /* nobody knows the token until there is a job */
        p->job.id = (fl_id){e->draw(e), e->draw(e)};
    return fl_rpc_new(&(fl_rpc_opts){.methods = p->method,
                                     .held = held,
                                     .self = p,
                                     .hangup = on_hangup,
                                     .tls = tls,
                                     .token = fl_job_token(&p->job, token),
                                     .max_calls = 1024 + CALLS * trainers},
                      &p->rpc);
}

static void connect_peers(pserver *p)
{
    fl_entropy *e = p->opts->env->entropy;
    p->peers = fl_peers_new(&(fl_peers_opts){.rpc = p->rpc,
                                             .machines = p->machines,
                                             .place = p->place,
                                             .job = &p->job,
                                             .state = fl_shard_state(p->shard),
                                             .secret = e->draw(e) | 1,
                                             .clock = p->clock});
}

static void log_job(const pserver *p)
{
    char token[FL_JOB_TOKEN];
    FL_INFO("job %s: server %d of %d, %d trainers, %s",
            fl_job_token(&p->job, token), p->place->server, p->job.servers,
            p->job.trainers, p->job.async ? "asynchronous" : "synchronous");
}

static fl_err start_listening(pserver *p)
{
    char exact[FL_ADDRESS_TEXT];
    FL_TRY(fl_ports_resolve(own_endpoint(p),
                            &(fl_wait_opts){.poll = find_end_signal, .user = p},
                            NULL, exact));
    FL_TRY(fl_rpc_listen(p->rpc, exact, &p->port));
    snprintf(p->address, sizeof p->address, "%.*s:%d",
             (int)(strrchr(exact, ':') - exact), exact, p->port);
    fl_rpc_healthy(p->rpc, true);
    FL_INFO("Server listening on %s", p->address);
    if (!fl_address_loopback(p->address) && !fl_job_has_tls())
        FL_WARN("%s is not a loopback address: parameters and gradients "
                "travel as plain text; see docs/clusters.md for TLS",
                p->address);
    return FL_OK;
}

/* --- serving --- */

static void sleep_for(int64_t ns)
{
    const struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL); /* a signal ends the sleep */
}

/* Whether no END is on its way to another server. */
static bool is_end_delivered(const pserver *p)
{
    return !fl_peers_sending(p->peers, FL_MSG_END) && !fl_shard_holds(p->shard);
}

static void tick_machines(pserver *p)
{
    fl_machines_lock(p->machines);
    fl_machines_tick(p->machines);
    fl_machines_unlock(p->machines);
}

/* End because of a signal or the poll. The other processes are told why, which
 * takes a second at most. Err: `err`, unless the job was complete. */
static fl_err end_early(pserver *p, fl_err err, const char *by)
{
    char server[160], why[512];
    fl_job_server(&p->job, p->place->server, server, sizeof server);
    snprintf(why, sizeof why, "%s %s", server, by);
    FL_INFO("%s", why);
    fl_machines_lock(p->machines);
    const bool complete = fl_machines_complete(p->machines);
    fl_machines_fail(p->machines, (int)err, why);
    fl_machines_unlock(p->machines);
    for (int i = 0; i < 4; i++) {
        sleep_for(TICK);
        tick_machines(p);
    }
    return complete ? FL_OK : fl_fail(err, "%s; the job was not complete", why);
}

static void print_waits(pserver *p)
{
    fl_str text = {0};
    fl_machines_lock(p->machines);
    add_waits(p, true, &text);
    fl_machines_unlock(p->machines);
    FL_WARN("%s", text.at);
    fl_str_fini(&text);
}

/* Whether the job is over; *err is then its result. */
static bool check_over(pserver *p, fl_err *err)
{
    fl_machines_lock(p->machines);
    const bool done = fl_machines_over(p->machines, is_end_delivered(p));
    if (done)
        *err = fl_machines_result(p->machines);
    fl_machines_unlock(p->machines);
    return done;
}

/* Whether the server can go on. Err: EIO. */
static fl_err check_shard(pserver *p)
{
    fl_machines_lock(p->machines);
    const fl_err err = fl_shard_check_saved(p->shard);
    fl_machines_unlock(p->machines);
    return err ? err : fl_shard_tick(p->shard, now_of(p));
}

/* Whether the job of the state makes way: another one came, or it has failed
 * (err) because none of its trainers came back. */
static bool is_given_up(pserver *p, fl_err err)
{
    fl_machines_lock(p->machines);
    if (err && err != FL_EINTR && fl_bare_give_up(p->bare))
        fl_machines_note(p->machines, "%s; this server waits for another job",
                         fl_errmsg());
    const bool is = fl_bare_gave_up(p->bare);
    fl_machines_unlock(p->machines);
    return is;
}

/* Read the pushes that have waited for a new base. Thread: the caller's. */
static void take_waiting(pserver *p)
{
    FL_VEC(waiting_push) ready = {0};
    fl_machines_lock(p->machines);
    if (!fl_shard_rebasing(p->shard)) {
        ready.at = p->waiting.at;
        ready.n = p->waiting.n;
        memset(&p->waiting, 0, sizeof p->waiting);
        p->waiting_bytes = 0;
    }
    fl_machines_unlock(p->machines);
    fl_arena *arena = ready.n ? fl_arena_new() : NULL;
    for (int64_t i = 0; i < ready.n; i++) {
        const waiting_push *w = &ready.at[i];
        read_message(p, w->by, w->call, w->packet, arena);
        fl_packet_unref(w->packet);
    }
    fl_arena_free(arena);
    fl_vec_fini(&ready);
}

/* Make a new base of the journal if one is due. */
static void renew_base(pserver *p)
{
    bool copied;
    fl_machines_lock(p->machines);
    if (fl_shard_renew(p->shard, &copied))
        fl_machines_note(p->machines,
                         "the journal grows on, since no new copy of the state "
                         "could be made: %s",
                         fl_errmsg());
    fl_machines_unlock(p->machines);
    take_waiting(p);
    if (copied && fl_shard_commit(p->shard))
        FL_WARN("the journal grows on, since no new copy of the state could be "
                "made: %s",
                fl_errmsg());
}

/* Commit a snapshot that all servers have written. */
static void commit_snapshot(pserver *p)
{
    fl_coord_moment of;
    fl_str image = {0};
    fl_machines_lock(p->machines);
    fl_coord *coord = fl_machines_coord(p->machines);
    const bool due = coord && fl_coord_written(coord, &of);
    if (due)
        fl_str_bytes(&image, of.image, of.n);
    fl_machines_unlock(p->machines);
    if (!due)
        return;
    of.image = image.at;
    const int64_t oldest =
        fl_snapshots_commit(&p->snapshots, &of, &p->job, p->state.id);
    fl_machines_lock(p->machines);
    fl_coord_committed(coord, of.number, oldest);
    fl_machines_unlock(p->machines);
    fl_str_fini(&image);
}

/* Whether the job goes back to a snapshot, which is then open. */
static bool goes_back(pserver *p)
{
    fl_snapshots *s = &p->snapshots;
    fl_machines_lock(p->machines);
    fl_server *server = fl_machines_server(p->machines);
    fl_coord *coord = fl_machines_coord(p->machines);
    const bool is = fl_snapshots_goes_back(s, server, coord);
    fl_machines_unlock(p->machines);
    if (!is)
        return false;
    if (!fl_snapshots_open_back(s, p->place, &p->job))
        return true;
    FL_WARN("snapshot %lld cannot be restored: %s", (long long)s->back,
            fl_errmsg());
    fl_machines_lock(p->machines);
    fl_snapshots_cannot_go_back(s, server, coord, now_of(p));
    fl_machines_unlock(p->machines);
    return false;
}

static fl_err serve_job(pserver *p)
{
    fl_err err = FL_OK;
    for (int i = 0; !check_over(p, &err); i++, sleep_for(POLL)) {
        if (i % (int)(TICK / POLL) == 0)
            tick_machines(p);
        if (fl_signals_asks(p->signals))
            print_waits(p);
        renew_base(p);
        if (check_shard(p))
            return end_early(p, FL_EIO, fl_errmsg());
        const int number = find_end_signal(p);
        if (number)
            return end_early(p, FL_EINTR,
                             number == SIGTERM ? "was ended by SIGTERM"
                                               : "was ended by SIGINT");
        if (fl_rpc_check(p->rpc))
            return end_early(p, FL_EIO, fl_errmsg());
        commit_snapshot(p);
        if (goes_back(p))
            break;
        if (is_given_up(p, FL_OK))
            break;
    }
    return err;
}

/* --- the job --- */

static void free_machines(pserver *p)
{
    fl_machines_end(p->machines);
    fl_tallies_free(p->tallies);
    p->tallies = NULL;
}

static void forget_job(pserver *p)
{
    fl_peers_free(p->peers);
    p->peers = NULL;
    p->place = NULL;
}

/* The job cannot begin. The network stays: a bare server waits for another job.
 * A state that an earlier process has left stays, too. Returns `err`. */
static fl_err undo_job(pserver *p, fl_err err)
{
    const fl_sentence why = fl_sentence_keep();
    fl_shard_undo(p->shard);
    p->shard = NULL;
    forget_job(p);
    fl_snapshots_fini(&p->snapshots);
    fl_snapshots_unlock(&p->snapshots);
    fl_sentence_restore(&why);
    return err;
}

static fl_err read_limits(const pserver *p, fl_job *limits)
{
    const char *level = p->opts->durability;
    *limits = p->opts->limits;
    FL_TRY(fl_job_limits(limits));
    if (level && *level)
        FL_TRY(fl_job_level(limits, "--durability", level));
    return FL_OK;
}

static fl_err open_shard(pserver *p)
{
    fl_packet *setup = fl_bare_encode(p->bare);
    const fl_err err =
        fl_shard_open(&(fl_shard_opts){.env = p->opts->env,
                                       .program = p->program,
                                       .op = p->op,
                                       .scope = p->scope,
                                       .place = p->place,
                                       .job = &p->job,
                                       .snapshots = &p->snapshots,
                                       .name = fl_bare_state_name(p->bare),
                                       .setup = setup,
                                       .existing = p->resuming,
                                       .brought = p->bringing,
                                       .poll = find_end_signal,
                                       .serves = is_endpoint_served,
                                       .self = p,
                                       .applied = on_applied,
                                       .full = on_full,
                                       .answer = answer_call,
                                       .written = on_written,
                                       .durable = on_durable},
                      &p->shard);
    fl_packet_unref(setup);
    return err;
}

static fl_err prepare_job(pserver *p, const fl_program *program,
                          const fl_op *op, fl_scope *scope)
{
    fl_job limits;
    p->program = program;
    p->op = op;
    p->scope = scope;
    p->place = fl_placement_of(program->job);
    FL_TRY(check_place(p->place));
    FL_TRY(read_limits(p, &limits));
    fl_job job = fl_placement_job(p->place, &limits);
    FL_TRY(fl_job_check(&job));
    FL_TRY(fl_snapshots_read(&p->snapshots, p->opts->env->disk, p->place));
    fl_machines_lock(p->machines);
    p->job = job;
    fl_machines_unlock(p->machines);
    return open_shard(p);
}

/* Make what serves the job. Requests are answered from the end of this function
 * on. */
static fl_err begin_job(pserver *p, const fl_program *program, const fl_op *op,
                        fl_scope *scope)
{
    char token[FL_JOB_TOKEN];
    fl_err err = prepare_job(p, program, op, scope);
    if (!err && !p->rpc)
        err = make_network(p);
    if (err)
        return undo_job(p, err);
    fl_rpc_set_token(p->rpc, fl_job_token(&p->job, token));
    connect_peers(p);
    err = make_machines(p);
    if (err) {
        free_machines(p);
        return undo_job(p, err);
    }
    fl_machines_open(p->machines);
    return FL_OK;
}

/* --- a job for a bare server: the caller's thread --- */

static fl_err begin_brought(void *self, const fl_arrival *job, const char *who,
                            bool kept)
{
    pserver *p = self;
    if (kept)
        FL_INFO("%s has brought the program, which the state has kept", who);
    p->resuming = kept;
    p->bringing = !kept;
    const fl_err err = begin_job(p, fl_arrival_program(job), fl_arrival_op(job),
                                 fl_arrival_scope(job));
    p->resuming = p->bringing = false;
    FL_TRY(err);
    if (!kept)
        FL_INFO("%s has brought the program", who);
    log_job(p);
    if (p->opts->busy)
        p->opts->busy(p->opts->user, true);
    return FL_OK;
}

/* *stopped: the server was told to end before a job came. */
static fl_err await_job(pserver *p, bool *stopped)
{
    while (!fl_machines_server(p->machines)) {
        *stopped = find_end_signal(p);
        if (*stopped)
            return FL_OK;
        FL_TRY(fl_rpc_check(p->rpc));
        if (fl_signals_asks(p->signals))
            print_waits(p);
        if (!fl_bare_take(p->bare))
            sleep_for(POLL / 5);
    }
    return FL_OK;
}

static fl_err resume_job(pserver *p)
{
    fl_job limits;
    FL_TRY(read_limits(p, &limits));
    return fl_bare_resume(p->bare, p->opts->address, &limits, p->clock);
}

static void init_pserver(pserver *p, const fl_pserver_opts *opts)
{
    p->opts = opts;
    p->clock = fl_clock_real();
    p->arena = fl_arena_new();
    p->machines = fl_machines_new(&(fl_machines_opts){
        .clock = p->clock, .send = send_durable, .self = p});
    p->bare = fl_bare_new(&(fl_bare_opts){.env = opts->env,
                                          .trainers = opts->trainers,
                                          .keep = opts->keep,
                                          .machines = p->machines,
                                          .self = p,
                                          .answer = answer_setup,
                                          .begin = begin_brought});
}

/* --- the end --- */

/* The machines are closed first, so that neither the store nor the network
 * reaches them while the other one is freed. `remove`: as in fl_shard_close. */
static void end_job(pserver *p, bool remove)
{
    fl_machines_close(p->machines);
    for (int64_t i = 0; i < p->waiting.n; i++)
        fl_packet_unref(p->waiting.at[i].packet);
    fl_vec_fini(&p->waiting);
    p->waiting_bytes = 0;
    if (p->shard)
        fl_shard_stop(p->shard);
    fl_rpc_free(p->rpc);
    p->rpc = NULL;
    if (p->port)
        fl_port_file_remove();
    free_machines(p);
    if (p->shard)
        fl_shard_close(p->shard, remove);
    p->shard = NULL;
    forget_job(p);
}

static void fini_pserver(pserver *p)
{
    end_job(p, p->over);
    fl_snapshots_fini(&p->snapshots);
    fl_snapshots_unlock(&p->snapshots);
    fl_bare_free(p->bare);
    fl_machines_free(p->machines);
    fl_arena_free(p->arena);
}

/* --- going back --- */

static int64_t version_of(pserver *p)
{
    fl_machines_lock(p->machines);
    const int64_t version = fl_server_version(fl_machines_server(p->machines));
    fl_machines_unlock(p->machines);
    return version;
}

/* Begin anew with a snapshot, in the same process: what the server held is not
 * needed any more. */
static fl_err go_back(pserver *p)
{
    const int64_t before = version_of(p);
    if (!p->place->server)
        fl_snapshots_leave(&p->snapshots, &p->job);
    end_job(p, true);
    fl_failpoint_hit("rewind.begin");
    p->snapshots.anew = false;
    FL_TRY(begin_job(p, p->program, p->op, p->scope));
    fl_snapshots_log_lost(&p->snapshots, p->job.async, before, version_of(p));
    FL_TRY(start_listening(p));
    if (fl_port_file_write(p->port))
        FL_WARN("%s", fl_errmsg());
    p->snapshots.back = 0;
    return FL_OK;
}

static fl_err serve_all(pserver *p)
{
    fl_err err = serve_job(p);
    while (!err && p->snapshots.back) {
        err = go_back(p);
        if (!err)
            err = serve_job(p);
    }
    return err;
}

static fl_err run_pserver(pserver *p)
{
    const fl_pserver_opts *o = p->opts;
    bool stopped = false;
    if (o->program)
        FL_TRY(begin_job(p, o->program, o->op, o->scope));
    else
        FL_TRY(make_network(p));
    if (!o->program)
        FL_TRY(resume_job(p));
    FL_TRY(start_listening(p));
    if (fl_port_file_write(p->port))
        FL_WARN("%s", fl_errmsg()); /* only old scripts read the file */
    if (o->program)
        log_job(p);
    else
        FL_TRY(await_job(p, &stopped));
    if (stopped)
        return FL_OK;
    const fl_err err = serve_all(p);
    p->over = true;
    if (!err && !fl_bare_gave_up(p->bare))
        fl_progress_reach(FL_REACHED_COMPLETION);
    if (is_given_up(p, err) && o->busy)
        o->busy(o->user, false);
    return fl_bare_gave_up(p->bare) ? FL_OK : err;
}

/* *again: the server has given up its job for another one. */
static fl_err serve_once(const fl_pserver_opts *opts, bool *again)
{
    pserver p = {0};
    fl_signals signals;
    char why[1024]; /* fini_pserver may overwrite fl_errmsg */
    init_pserver(&p, opts);
    p.signals = &signals;
    fl_signals_begin(&signals);
    const fl_err err = run_pserver(&p);
    snprintf(why, sizeof why, "%s", fl_errmsg());
    fl_signals_end(&signals);
    *again = fl_bare_gave_up(p.bare);
    fini_pserver(&p);
    return err ? fl_fail(err, "%s", why) : FL_OK;
}

fl_err fl_pserve(const fl_pserver_opts *opts)
{
    bool again = false;
    do
        FL_TRY(serve_once(opts, &again));
    while (again);
    return FL_OK;
}
