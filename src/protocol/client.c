/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - a trainer's requests and what their answers mean.
 *
 * Easy to get wrong: an answer counts only while its request is pending. A late
 * FENCED to a request that was answered before says nothing about the session
 * that the trainer has now. */
#include "protocol/client.h"
#include "protocol/plant.h"
#include "protocol/window.h"

#include <stdio.h>

enum {
    REASON_MAX = 1024, /* bytes of a sentence; it may name a path */
    WHO_MAX = 64,      /* bytes of host:pid */
    PEER_MAX = 128     /* bytes of a peer's name in a sentence */
};

/* A request that is not answered yet. */
typedef struct request {
    fl_peer to;
    fl_msg msg;           /* its blob is kept until the request is answered */
    bool sent;            /* false: a push that waits for room in the window */
    int64_t first;        /* when it was first sent */
    int64_t next;         /* when it is sent again */
    int tries;            /* how often its call broke */
    char why[REASON_MAX]; /* it is parked, and why; "": not known */
} request;

/* The pushes to one server. */
typedef struct push_series {
    int64_t seq;     /* number of the last push of this session */
    int64_t parts;   /* pushes of this round */
    bool closed;     /* the last push of this round has been made */
    fl_window acked; /* numbers that were acknowledged */
} push_series;

struct fl_client {
    const fl_job *job;
    const fl_app *app;
    fl_entropy *entropy;
    fl_outbox *out;
    char who[WHO_MAX]; /* host:pid */
    fl_client_state state;
    bool leave; /* the trainer is leaving the job */
    bool ended; /* others have ended the job, or a server is lost */
    bool done;  /* an earlier process of this trainer has completed */
    int code;   /* exit code to leave with; 0: it completes */
    char reason[REASON_MAX]; /* why it leaves, if code is not 0 */
    fl_id session;
    bool explicit_id; /* `claim` was given by a user or launcher */
    int claim;        /* the rank to ask for, or FL_ANY_ID */
    int rank;         /* -1: none yet */
    int64_t g;        /* first view with the session; 0: not granted yet */
    int64_t round;
    int64_t pulled; /* sync: the highest version pulled, in any session */
    int64_t steps;  /* steps of this rank that have a position and count */
    char *granted; /* position of the last of them at the last GRANT, or NULL */
    char *position; /* of the step that is being made, or NULL */
    uint64_t tag;   /* tag of the newest request */
    uint64_t echo;  /* number of the newest PROBE */
    int64_t renew_at, ticked;
    FL_VEC(request) pending;
    push_series *pushes;  /* by server */
    fl_blob *want;        /* what to pull at every step, by server */
    int64_t *heard;       /* when each server last answered; [servers]: the
                             coordinator */
    uint64_t *seen;       /* state id of each server process */
    int64_t *incarnation; /* newest incarnation of each server process */
    fl_refusals
        *refused; /* since when each server process refuses connections */
};

/* --- requests --- */

static void drop_blob(fl_client *c, fl_blob b)
{
    c->app->keep.drop(c->app->keep.self, b);
}

static void remove_request(fl_client *c, int64_t i)
{
    drop_blob(c, c->pending.at[i].msg.blob);
    fl_remove(&c->pending, i);
}

static void drop_requests(fl_client *c)
{
    while (c->pending.n)
        remove_request(c, c->pending.n - 1);
}

static fl_peer to_coordinator(void)
{
    return (fl_peer){FL_PEER_COORD, 0, 0};
}

static fl_peer to_server(int index)
{
    return (fl_peer){FL_PEER_SERVER, index, 0};
}

/* The server whose process the peer runs in; the coordinator is in server 0. */
static int process_of(fl_peer p)
{
    return p.kind == FL_PEER_COORD ? 0 : p.index;
}

static bool same_peer(fl_peer a, fl_peer b)
{
    return a.kind == b.kind && (a.kind == FL_PEER_COORD || a.index == b.index);
}

static void name_peer(const fl_client *c, fl_peer p, char *buf, size_t size)
{
    if (p.kind == FL_PEER_COORD)
        snprintf(buf, size, "the coordinator%s%s%s",
                 c->job->endpoints ? " (" : "",
                 c->job->endpoints ? c->job->endpoints[0] : "",
                 c->job->endpoints ? ")" : "");
    else
        fl_job_server(c->job, p.index, buf, size);
}

static int64_t heard_from(const fl_client *c, fl_peer p)
{
    return c->heard[p.kind == FL_PEER_COORD ? c->job->servers : p.index];
}

static push_series *pushes_to(const fl_client *c, fl_peer to)
{
    return &c->pushes[to.index];
}

/* A push is sent only when its number fits into the server's window. */
static bool may_send(const fl_client *c, const request *r)
{
    return r->msg.kind != FL_MSG_PUSH ||
           fl_window_fits(&pushes_to(c, r->to)->acked, r->msg.seq);
}

static void send_request(fl_client *c, request *r, int64_t now)
{
    if (!may_send(c, r))
        return;
    if (!r->sent)
        r->first = now;
    r->sent = true;
    r->next = now + c->job->call;
    fl_outbox_send(c->out, r->to, r->msg);
}

static void send_unsent(fl_client *c, int64_t now)
{
    for (int64_t i = 0; i < c->pending.n; i++)
        if (!c->pending.at[i].sent)
            send_request(c, &c->pending.at[i], now);
}

/* Add what this process has learned in all its sessions: the version it pulled
 * last and the state ids of the servers. The message borrows the client's
 * array, so that a repeat of the message carries the newest ids. */
static void add_memory(const fl_client *c, fl_msg *m)
{
    m->round = c->pulled;
    m->seen = c->seen;
    for (int j = 0; j < c->job->servers; j++)
        if (c->seen[j])
            m->n_seen = j + 1;
}

static void add_request(fl_client *c, fl_peer to, fl_msg m, int64_t now)
{
    m.job = c->job->id;
    m.session = c->session;
    m.tag = ++c->tag;
    m.g = c->g;
    if (fl_msg_carries(m.kind, "seen"))
        add_memory(c, &m);
    m.blob = c->app->keep.keep(c->app->keep.self, m.blob);
    fl_push(&c->pending, (request){.to = to, .msg = m, .first = now});
    send_request(c, &c->pending.at[c->pending.n - 1], now);
}

static void send_renew(fl_client *c, int64_t now)
{
    c->renew_at =
        now + c->job->lease / 5; /* four renewals in a row may be lost */
    fl_msg m = {.kind = FL_MSG_RENEW,
                .job = c->job->id,
                .session = c->session,
                .g = c->g,
                .echo = c->echo};
    add_memory(c, &m);
    fl_outbox_send(c->out, to_coordinator(), m);
}

/* --- steps --- */

static void set_text(char **text, const char *to)
{
    fl_mem_free(*text);
    *text = to && *to ? fl_mem_strdup(to) : NULL;
}

static void begin_join(fl_client *c, int64_t now)
{
    drop_requests(c);
    set_text(&c->position, NULL);
    memset(c->pushes, 0, (size_t)c->job->servers * sizeof *c->pushes);
    c->state = FL_CLIENT_JOINING;
    c->session =
        (fl_id){c->entropy->draw(c->entropy), c->entropy->draw(c->entropy)};
    c->g = 0;
    c->echo = 0;
    add_request(c, to_coordinator(),
                (fl_msg){.kind = FL_MSG_JOIN,
                         .rank = c->claim,
                         .explicit_id = c->explicit_id,
                         .text = c->who},
                now);
}

static void begin_pull(fl_client *c, int64_t now)
{
    c->state = FL_CLIENT_PULLING;
    for (int j = 0; j < c->job->servers; j++) {
        c->pushes[j].parts = 0;
        c->pushes[j].closed = false;
        add_request(c, to_server(j),
                    (fl_msg){.kind = FL_MSG_PULL,
                             .round = c->round,
                             .blob = c->want[j]},
                    now);
    }
}

/* Say that servers have all pushes of the step, and the step's position. */
static void send_barrier(fl_client *c, int64_t now)
{
    add_request(c, to_coordinator(),
                (fl_msg){.kind = FL_MSG_BARRIER,
                         .round = c->round,
                         .step = c->position ? c->steps + 1 : 0,
                         .position = c->position},
                now);
}

/* The coordinator has counted the step, if it has a position. */
static void end_step(fl_client *c)
{
    c->steps += c->position != NULL;
    set_text(&c->position, NULL);
}

static void say_goodbye(fl_client *c, int64_t now)
{
    drop_requests(c);
    c->state = FL_CLIENT_LEAVING;
    add_request(c, to_coordinator(),
                (fl_msg){.kind = c->code ? FL_MSG_FAILED : FL_MSG_COMPLETE,
                         .code = c->code,
                         .text = c->code ? c->reason : NULL},
                now);
}

static void finish_client(fl_client *c, int code, const char *why)
{
    drop_requests(c);
    c->state = FL_CLIENT_OVER;
    c->app->over(c->app->self, code, why);
}

/* When no request is pending any more, begin the next phase of the step. */
static void go_on_if_answered(fl_client *c, int64_t now)
{
    if (c->pending.n)
        return;
    if (c->state == FL_CLIENT_PULLING) {
        c->state = FL_CLIENT_READY;
        end_step(c);
        c->app->ready(c->app->self, c->rank, c->round);
    } else if (c->state == FL_CLIENT_PUSHING) {
        if (!c->job->async || c->position)
            send_barrier(c, now);
        c->round += !c->job->async;
        begin_pull(c, now); /* the server answers when the round is closed */
    }
}

static fl_err need_ready(const fl_client *c, const char *what)
{
    if (c->state == FL_CLIENT_READY)
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: the trainer is not at a step", what);
}

static void add_push(fl_client *c, int server_index, fl_blob grads, bool last,
                     int64_t now)
{
    push_series *l = &c->pushes[server_index];
    const bool positioned = c->job->async && c->position;
    l->parts++;
    l->closed = last;
    add_request(c, to_server(server_index),
                (fl_msg){.kind = FL_MSG_PUSH,
                         .seq = ++l->seq,
                         .round = c->round,
                         .count = last ? l->parts : 0,
                         .step = positioned ? c->steps + 1 : 0,
                         .part = positioned ? l->parts : 0,
                         .blob = grads},
                now);
}

/* Leave the job because of an error, in any state: tell the coordinator, then
 * be over. Only the first error is kept. */
static void fail_client(fl_client *c, const char *why, int64_t now)
{
    if (c->leave && c->code)
        return;
    c->leave = true;
    c->code = 1;
    snprintf(c->reason, sizeof c->reason, "%s", why);
    say_goodbye(c, now);
}

/* --- answers --- */

/* Whether a version is older than one that this process has pulled. A server
 * never goes back unless it has lost its state. */
static bool is_behind(const fl_client *c, int64_t round)
{
    return !c->job->async && round < c->pulled && !FL_PLANTED(QUIET);
}

static void on_grant(fl_client *c, const fl_msg *m, int64_t now)
{
    if (!fl_id_same(m->session, c->session))
        return;
    if (!c->explicit_id && c->rank < 0)
        fl_outbox_note(c->out,
                       "this is trainer %d of %d: ids are given in "
                       "order of arrival",
                       m->rank, c->job->trainers);
    c->rank = c->claim = m->rank;
    c->g = m->g;
    c->round = m->round;
    c->steps = m->step;
    set_text(&c->granted, m->position);
    if (is_behind(c, m->round)) {
        char why[REASON_MAX];
        snprintf(why, sizeof why,
                 "the coordinator offers round %lld to a trainer that has "
                 "pulled version %lld: the servers have lost their parameters",
                 (long long)m->round, (long long)c->pulled);
        fail_client(c, why, now);
        return;
    }
    send_renew(c, now); /* opens the call whose end shows our death */
    if (c->leave)
        say_goodbye(c, now);
    else
        begin_pull(c, now);
}

static void on_fenced(fl_client *c, const fl_msg *m, int64_t now)
{
    const char *why = m->text ? m->text : "lost";
    fl_outbox_note(c->out,
                   "trainer %d has lost its session: %s; it joins again",
                   c->rank, why);
    c->app->fenced(c->app->self, why);
    begin_join(c, now);
}

static void on_other_job(fl_client *c, fl_peer from, const fl_msg *m)
{
    char name[PEER_MAX];
    fl_str why = {0};
    name_peer(c, from, name, sizeof name);
    fl_str_printf(&why, "%s is of another job than this trainer: ", name);
    fl_job_differs(c->job, m->about, &why);
    finish_client(c, 1, why.at);
    fl_str_fini(&why);
}

/* ERROR: the request can never succeed, so the trainer fails. */
static void on_error(fl_client *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const char *why = m->text ? m->text : "refused";
    const bool member = c->g > 0 && c->state != FL_CLIENT_LEAVING;
    c->done = m->code == FL_EDONE;
    if (m->about)
        on_other_job(c, from, m);
    else if (member)
        fl_client_leave(c, 1, why, now);
    else
        finish_client(c, 1, why);
}

/* Act on an answer whose request has been removed from the pending ones. */
static void act_on_answer(fl_client *c, fl_peer from, const fl_msg *m,
                          int64_t now)
{
    switch (m->kind) {
    case FL_MSG_GRANT:
        on_grant(c, m, now);
        break;
    case FL_MSG_VALUES:
        if (!c->job->async && m->round > c->pulled)
            c->pulled = m->round;
        c->app->values(c->app->self, from.index, m);
        break;
    case FL_MSG_FENCED:
        on_fenced(c, m, now);
        return;
    case FL_MSG_ERROR:
        on_error(c, from, m, now);
        return;
    case FL_MSG_ACK:
        if (c->state == FL_CLIENT_LEAVING) {
            finish_client(c, c->code, c->reason);
            return;
        }
        break;
    default:
        break;
    }
    go_on_if_answered(c, now);
}

/* Whether m is a final answer to r. */
static bool ends_request(const fl_client *c, const request *r, const fl_msg *m)
{
    if (m->kind == FL_MSG_FENCED || m->kind == FL_MSG_ERROR)
        return true;
    if (m->kind != fl_msg_info_of(r->msg.kind)->answer)
        return false;
    const bool other_version = m->round != r->msg.round && !c->job->async;
    return m->kind != FL_MSG_VALUES || !other_version;
}

static void on_answer(fl_client *c, fl_peer from, const fl_msg *m, int64_t i,
                      int64_t now)
{
    const request *r = &c->pending.at[i];
    const fl_msg_kind asked = r->msg.kind;
    if (!ends_request(c, r, m))
        return;
    if (asked == FL_MSG_PUSH) {
        fl_window *acked = &pushes_to(c, r->to)->acked;
        if (!fl_window_seen(acked, r->msg.seq))
            fl_window_mark(acked, r->msg.seq);
    }
    remove_request(c, i);
    if (asked == FL_MSG_PUSH)
        send_unsent(c, now);
    if (asked == FL_MSG_BARRIER && m->kind == FL_MSG_ACK &&
        c->state == FL_CLIENT_READY)
        end_step(c);
    act_on_answer(c, from, m, now);
}

/* A message on the open call concerns the session, not a request. */
static void on_open_call(fl_client *c, const fl_msg *m, int64_t now)
{
    const bool member = c->g > 0 && fl_id_same(m->session, c->session) &&
                        c->state != FL_CLIENT_OVER;
    if (!member)
        return;
    if (m->kind == FL_MSG_PROBE) {
        if (m->echo > c->echo)
            c->echo = m->echo;
        if (m->text)
            fl_outbox_note(c->out, "%s", m->text);
        send_renew(c, now);
    } else if (m->kind == FL_MSG_FENCED && c->state != FL_CLIENT_LEAVING) {
        on_fenced(c, m, now);
    }
}

/* END with code 0 is an error for a trainer that has not completed. */
static void on_end(fl_client *c, const fl_msg *m)
{
    const char *why = m->text ? m->text : "it was ended";
    const bool complete = c->leave && !c->code;
    char text[REASON_MAX];
    if (c->leave && c->code) {
        finish_client(c, c->code, c->reason); /* the first error is kept */
        return;
    }
    c->ended = true;
    if (m->code || complete) {
        finish_client(c, m->code, why);
        return;
    }
    snprintf(text, sizeof text, "the job has ended %s this trainer: %s",
             c->state == FL_CLIENT_JOINING ? "before it could take in"
                                           : "without",
             why);
    finish_client(c, 1, text);
}

/* Send pending requests to this server, or to the coordinator in its process,
 * again at the next tick. */
static void hasten_requests(fl_client *c, int server_index, int64_t now)
{
    for (int64_t i = 0; i < c->pending.n; i++) {
        request *r = &c->pending.at[i];
        if (process_of(r->to) == server_index && r->sent)
            r->next = now;
    }
}

/* This process meets a job that others have begun: its user, who has perhaps
 * started all anew, must not take it for a new one. */
static void note_kept(fl_client *c, const fl_msg *m)
{
    char name[PEER_MAX];
    if (m->state.incarnation > 1)
        fl_outbox_note(c->out,
                       "%s goes on with the parameters that an earlier process "
                       "of it held; to begin with start values, first end all "
                       "servers by Ctrl-C or SIGTERM",
                       fl_job_server(c->job, 0, name, sizeof name));
}

static bool has_seen_any(const fl_client *c)
{
    for (int j = 0; j < c->job->servers; j++)
        if (c->seen[j])
            return true;
    return false;
}

/* The job went back to a snapshot. What this process has computed since is not
 * in the model, and it cannot go back in its data by itself. */
static void fail_rewound(fl_client *c, int64_t now)
{
    char why[REASON_MAX];
    snprintf(
        why, sizeof why,
        "rewound: the servers went back to a snapshot, because one of them "
        "had lost its parameters; start this trainer again, and it continues "
        "where the snapshot was taken");
    fl_outbox_note(c->out, "%s", why);
    fail_client(c, why, now);
}

/* Check whether the server that answers has been started again. If it has kept
 * its state, pending requests are sent again. If it has lost its state, the
 * trainer fails, and the result is true: this process has used the old state
 * and may be the only one that knows of it. */
static bool on_restart(fl_client *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const int j = process_of(from);
    char name[PEER_MAX], why[REASON_MAX], version[48] = "";
    if (!m->state.id)
        return false;
    if (m->generation > c->out->generation && has_seen_any(c)) {
        fail_rewound(c, now);
        return true;
    }
    if (m->generation < c->out->generation)
        return true; /* of the time before the job went back */
    c->out->generation = m->generation;
    if (fl_job_lost(c->seen[j], m->state.id)) {
        if (!c->job->async)
            snprintf(version, sizeof version, "; this trainer had version %lld",
                     (long long)c->pulled);
        snprintf(why, sizeof why,
                 "%s was started again and has lost its parameters%s",
                 fl_job_server(c->job, j, name, sizeof name), version);
        fail_client(c, why, now);
        return true;
    }
    if (!c->seen[j] && !j)
        note_kept(c, m);
    if (c->seen[j] && m->state.incarnation > c->incarnation[j])
        hasten_requests(c, j, now);
    c->seen[j] = m->state.id;
    if (m->state.incarnation > c->incarnation[j])
        c->incarnation[j] = m->state.incarnation;
    return false;
}

/* --- time --- */

/* The pause before a retry: 200 ms, 400 ms .. at most 3 s, less a random part
 * of up to a quarter, so that trainers do not return to a server all at once.
 */
static int64_t back_off(fl_client *c, int tries)
{
    const int64_t longest = 3 * FL_SEC;
    int64_t pause = tries < 5 ? 200 * FL_MS << tries : longest;
    if (pause > longest)
        pause = longest;
    return pause - (int64_t)(c->entropy->draw(c->entropy) % 256) * pause / 1024;
}

/* A request whose peer has been silent for job->reach; NULL: there is none. */
static const request *find_unanswered(const fl_client *c, int64_t now)
{
    for (int64_t i = 0; i < c->pending.n; i++) {
        const request *r = &c->pending.at[i];
        if (r->sent && now >= r->first + c->job->reach &&
            now >= heard_from(c, r->to) + c->job->reach)
            return r;
    }
    return NULL;
}

/* Leave the job because a peer is lost. The coordinator is told, unless it runs
 * in the process of that peer. */
static void give_up_peer(fl_client *c, fl_peer on, const char *why, int64_t now)
{
    if (c->state == FL_CLIENT_LEAVING && c->code)
        finish_client(c, c->code, c->reason); /* the first error is kept */
    else {
        c->ended = true;
        if (!process_of(on) || c->state == FL_CLIENT_LEAVING)
            finish_client(c, 1, why);
        else
            fl_client_leave(c, 1, why, now);
    }
}

static void give_up_silent(fl_client *c, const request *r, int64_t now)
{
    char name[PEER_MAX], why[REASON_MAX];
    name_peer(c, r->to, name, sizeof name);
    snprintf(why, sizeof why, "%s has not answered %s for %.0f s", name,
             fl_msg_name(r->msg.kind), (double)c->job->reach / (double)FL_SEC);
    give_up_peer(c, r->to, why, now);
}

/* --- the machine --- */

fl_client *fl_client_new(const fl_job *job, const fl_app *app, int id,
                         const char *who, fl_entropy *entropy, fl_outbox *out)
{
    fl_client *c = fl_mem_alloc(sizeof *c);
    const size_t n = (size_t)job->servers;
    c->job = job;
    c->app = app;
    c->explicit_id = id != FL_ANY_ID;
    c->claim = id;
    c->rank = -1;
    c->entropy = entropy;
    c->out = out;
    c->pushes = fl_mem_alloc(n * sizeof *c->pushes);
    c->want = fl_mem_alloc(n * sizeof *c->want);
    c->heard = fl_mem_alloc((n + 1) * sizeof *c->heard);
    c->seen = fl_mem_alloc(n * sizeof *c->seen);
    c->incarnation = fl_mem_alloc(n * sizeof *c->incarnation);
    c->refused = fl_mem_alloc(n * sizeof *c->refused);
    snprintf(c->who, sizeof c->who, "%s", who);
    return c;
}

void fl_client_free(fl_client *c)
{
    if (!c)
        return;
    drop_requests(c);
    for (int j = 0; j < c->job->servers; j++)
        drop_blob(c, c->want[j]);
    fl_vec_fini(&c->pending);
    fl_mem_free(c->granted);
    fl_mem_free(c->position);
    fl_mem_free(c->pushes);
    fl_mem_free(c->want);
    fl_mem_free(c->heard);
    fl_mem_free(c->seen);
    fl_mem_free(c->incarnation);
    fl_mem_free(c->refused);
    fl_mem_free(c);
}

void fl_client_want(fl_client *c, int server, fl_blob names)
{
    drop_blob(c, c->want[server]);
    c->want[server] = c->app->keep.keep(c->app->keep.self, names);
}

void fl_client_start(fl_client *c, int64_t now)
{
    for (int j = 0; j <= c->job->servers; j++)
        c->heard[j] = now;
    c->ticked = now;
    begin_join(c, now);
}

static bool is_pending(const fl_client *c, fl_msg_kind kind)
{
    for (int64_t i = 0; i < c->pending.n; i++)
        if (c->pending.at[i].msg.kind == kind)
            return true;
    return false;
}

fl_err fl_client_position(fl_client *c, const char *position)
{
    FL_TRY(need_ready(c, "position"));
    if (is_pending(c, FL_MSG_BARRIER)) /* which borrows the old position */
        return fl_fail(FL_EINVAL,
                       "position: the step before this one does not count yet");
    if (position && strlen(position) >= FL_POSITION_MOST)
        return fl_fail(FL_EINVAL,
                       "position: it has %zu bytes, expected at most %d",
                       strlen(position), FL_POSITION_MOST - 1);
    set_text(&c->position, position);
    return FL_OK;
}

int64_t fl_client_steps(const fl_client *c)
{
    return c->steps;
}

const char *fl_client_granted_position(const fl_client *c)
{
    return c->granted;
}

fl_err fl_client_push(fl_client *c, int server_index, fl_blob grads, bool last,
                      int64_t now)
{
    FL_TRY(need_ready(c, "push"));
    if (server_index < 0 || server_index >= c->job->servers)
        return fl_fail(FL_EINVAL, "push: there is no server %d, the job has %d",
                       server_index, c->job->servers);
    push_series *l = &c->pushes[server_index];
    if (l->closed && c->job->async) {
        l->closed = false;
        l->parts = 0;
    }
    if (l->closed || l->parts + 1 >= c->job->max_parts)
        return fl_fail(FL_EINVAL,
                       "push: it comes after the last one of its step, or is "
                       "one of more than %d",
                       c->job->max_parts);
    add_push(c, server_index, grads, last, now);
    return FL_OK;
}

bool fl_client_pushes(const fl_client *c)
{
    return is_pending(c, FL_MSG_PUSH) || is_pending(c, FL_MSG_BARRIER);
}

fl_err fl_client_commit(fl_client *c, int64_t now)
{
    FL_TRY(need_ready(c, "commit"));
    if (!c->job->async || !c->position || fl_client_pushes(c))
        return fl_fail(
            FL_EINVAL,
            "commit: the step must be asynchronous, have a position, "
            "and all its pushes must be acknowledged");
    send_barrier(c, now);
    return FL_OK;
}

fl_err fl_client_ask(fl_client *c, int server_index, fl_blob names, int64_t now)
{
    FL_TRY(need_ready(c, "ask"));
    if (server_index < 0 || server_index >= c->job->servers)
        return fl_fail(FL_EINVAL, "ask: there is no server %d, the job has %d",
                       server_index, c->job->servers);
    add_request(c, to_server(server_index),
                (fl_msg){.kind = FL_MSG_PULL, .round = c->round, .blob = names},
                now);
    return FL_OK;
}

fl_err fl_client_step(fl_client *c, int64_t now)
{
    FL_TRY(need_ready(c, "step"));
    c->state = FL_CLIENT_PUSHING;
    for (int j = 0; j < c->job->servers && !c->job->async; j++)
        if (!c->pushes[j].closed)
            add_push(c, j, (fl_blob){0}, true, now);
    go_on_if_answered(c, now);
    return FL_OK;
}

void fl_client_leave(fl_client *c, int code, const char *why, int64_t now)
{
    if (c->leave || c->state == FL_CLIENT_OVER)
        return;
    c->leave = true;
    c->code = code;
    snprintf(c->reason, sizeof c->reason, "%s", why ? why : "");
    if (c->state == FL_CLIENT_IDLE)
        finish_client(c, code, c->reason);
    else if (c->state != FL_CLIENT_JOINING || code)
        say_goodbye(c,
                    now); /* else COMPLETE is sent when the JOIN is granted */
}

void fl_client_recv(fl_client *c, fl_peer from, const fl_msg *m, int64_t now)
{
    const bool known = from.kind == FL_PEER_COORD ||
                       (from.kind == FL_PEER_SERVER && from.index >= 0 &&
                        from.index < c->job->servers);
    if (!known || c->state == FL_CLIENT_IDLE || c->state == FL_CLIENT_OVER)
        return;
    if (!fl_id_same(m->job, c->job->id) && m->kind != FL_MSG_ERROR)
        return;
    c->heard[from.kind == FL_PEER_COORD ? c->job->servers : from.index] = now;
    c->refused[process_of(from)] = 0;
    const bool failed = c->leave && c->code; /* waits for the ACK of FAILED */
    if (!failed && fl_id_same(m->job, c->job->id) &&
        !(m->kind == FL_MSG_END && m->code) && on_restart(c, from, m, now))
        return;
    if (m->kind == FL_MSG_END) {
        on_end(c, m);
        return;
    }
    if (!m->tag) {
        on_open_call(c, m, now);
        return;
    }
    for (int64_t i = 0; i < c->pending.n; i++) {
        request *r = &c->pending.at[i];
        if (r->msg.tag != m->tag || !same_peer(r->to, from))
            continue;
        if (m->kind == FL_MSG_PARKED) {
            snprintf(r->why, sizeof r->why, "%s", m->text ? m->text : "");
            r->why[strcspn(r->why, "\n")] = 0;
        }
        if (m->kind == FL_MSG_PARKED && r->msg.kind == FL_MSG_JOIN)
            fl_outbox_note(c->out, "waiting to join: %s",
                           m->text ? m->text : "parked");
        on_answer(c, from, m, i, now);
        return;
    }
}

void fl_client_broken(fl_client *c, uint64_t tag, int64_t now)
{
    if (!tag && c->g && c->renew_at > now + 200 * FL_MS)
        c->renew_at = now + 200 * FL_MS;
    for (int64_t i = 0; i < c->pending.n; i++) {
        request *r = &c->pending.at[i];
        if (r->msg.tag == tag && tag)
            r->next = now + back_off(c, r->tries++);
    }
}

void fl_client_refused(fl_client *c, fl_peer by, int64_t now)
{
    const int j = process_of(by);
    char name[PEER_MAX], text[FL_GONE_TEXT], why[REASON_MAX];
    if (c->state == FL_CLIENT_IDLE || c->state == FL_CLIENT_OVER || !c->seen[j])
        return;
    if (!fl_job_gone(c->job, &c->refused[j], now))
        return;
    if (c->leave && c->code && j)
        return; /* only the coordinator's ACK of FAILED is awaited */
    snprintf(why, sizeof why, "%s %s",
             fl_job_server(c->job, j, name, sizeof name),
             fl_job_gone_text(c->job, text));
    give_up_peer(c, by, why, now);
}

void fl_client_tick(fl_client *c, int64_t now)
{
    if (c->state == FL_CLIENT_IDLE || c->state == FL_CLIENT_OVER)
        return;
    if (now - c->ticked > c->job->lease / 3) /* this process was stopped */
        for (int j = 0; j <= c->job->servers; j++)
            c->heard[j] += now - c->ticked;
    c->ticked = now;
    const request *lost = find_unanswered(c, now);
    if (lost) {
        give_up_silent(c, lost, now);
        return;
    }
    if (c->g && now >= c->renew_at)
        send_renew(c, now);
    for (int64_t i = 0; i < c->pending.n; i++)
        if (c->pending.at[i].sent && now >= c->pending.at[i].next)
            send_request(c, &c->pending.at[i], now);
}

void fl_client_waits(const fl_client *c, int64_t now, fl_str *rows)
{
    char whom[PEER_MAX], what[64 + REASON_MAX];
    for (int64_t i = 0; i < c->pending.n; i++) {
        const request *r = &c->pending.at[i];
        name_peer(c, r->to, whom, sizeof whom);
        const bool of_round = r->msg.kind == FL_MSG_PUSH ||
                              r->msg.kind == FL_MSG_PULL ||
                              r->msg.kind == FL_MSG_BARRIER;
        const int n =
            snprintf(what, sizeof what,
                     of_round ? "answer to %s (round %lld)" : "answer to %s",
                     fl_msg_name(r->msg.kind), (long long)r->msg.round);
        if (*r->why)
            snprintf(what + n, sizeof what - (size_t)n, ": %s", r->why);
        fl_wait_row(rows, c->who, whom, what, now - r->first,
                    heard_from(c, r->to) + c->job->reach - now);
    }
}

fl_client_state fl_client_now(const fl_client *c)
{
    return c->state;
}

fl_id fl_client_session(const fl_client *c)
{
    return c->session;
}

fl_err fl_client_error(const fl_client *c)
{
    return c->ended ? FL_EENDED : c->done ? FL_EDONE : FL_EIO;
}

int fl_client_rank(const fl_client *c)
{
    return c->rank;
}

int64_t fl_client_round(const fl_client *c)
{
    return c->round;
}

uint64_t fl_client_tag(const fl_client *c)
{
    return c->tag;
}
