/* link.c - the network and the ticker around a trainer's machine.
 *
 *     outbox --encode--> call --reply--> decode --lock--> machine --> outbox
 *
 * A request that the machine repeats goes on a new call, while the old one may
 * yet be answered (PARKED: a sign of life). RENEW goes on the open call, one a
 * session. The ticker renews leases while the caller computes.
 *
 * Easy to get wrong: a request that was answered may still have an older call
 * under way, which reads the memory that was lent. */
#include "trainer/trainer_in.h"

#include "base/log.h"
#include "wire/codec.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TICK (250 * FL_MS)

int64_t fl_link_now(void)
{
    return fl_clock_now(fl_clock_real());
}

void fl_link_lock(fl_trainer *t)
{
    pthread_mutex_lock(&t->lock);
}

void fl_link_unlock(fl_trainer *t)
{
    char *notes = t->notes.n ? fl_str_take(&t->notes) : NULL;
    pthread_mutex_unlock(&t->lock);
    if (!notes)
        return;
    for (char *line = notes, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        FL_WARN("%s", line);
    }
    fl_mem_free(notes);
}

static void sleep_on(fl_trainer *t, pthread_cond_t *c, int64_t ns)
{
    const int64_t end = fl_link_now() + ns;
    const struct timespec at = {end / FL_SEC, end % FL_SEC};
    pthread_cond_timedwait(c, &t->lock, &at);
}

void fl_link_rest(fl_trainer *t, int64_t ns)
{
    sleep_on(t, &t->moved, ns);
}

/* --- calls that are under way --- */

static int64_t find_live(const fl_trainer *t, uint64_t id)
{
    int64_t i = t->live.n - 1;
    while (i >= 0 && t->live.at[i].id != id)
        i--;
    return i;
}

static bool asked_again(const fl_trainer *t, uint64_t tag)
{
    for (int64_t i = 0; i < t->live.n; i++)
        if (t->live.at[i].tag == tag)
            return true;
    return false;
}

bool fl_link_lends(const fl_trainer *t)
{
    for (int64_t i = 0; i < t->live.n; i++)
        if (t->live.at[i].kind == FL_MSG_PUSH)
            return true;
    return false;
}

void fl_link_cancel_pushes(fl_trainer *t)
{
    for (int64_t i = 0; i < t->live.n; i++)
        if (t->live.at[i].kind == FL_MSG_PUSH)
            fl_rpc_cancel(t->rpc, t->live.at[i].call);
}

/* --- what comes --- */

/* After every event, under the lock. */
static void moved(fl_trainer *t)
{
    fl_link_flush(t);
    pthread_cond_broadcast(&t->moved);
}

static void hear(fl_trainer *t, fl_peer from, const fl_msg *m)
{
    fl_client_recv(t->client, from, m, fl_link_now());
}

/* A status in place of an answer. What can never succeed is an ERROR; of all
 * else the machine makes the call again. */
static void denied(fl_trainer *t, const fl_live *c, fl_err code,
                   const char *text)
{
    const bool never = code == FL_EPROTO || code == FL_EINVAL ||
                       code == FL_ENOENT || code == FL_ESHAPE;
    if (!never) {
        fl_client_broken(t->client, c->tag, fl_link_now());
        return;
    }
    hear(t, c->to,
         &(fl_msg){.kind = FL_MSG_ERROR,
                   .job = t->job.id,
                   .tag = c->tag,
                   .code = (int)code,
                   .text = text});
}

static void note_trouble(fl_trainer *t, const fl_live *c, fl_rpc_end end)
{
    const int i = c->to.kind == FL_PEER_COORD ? 0 : c->to.index;
    const char *what = end == FL_RPC_REFUSED  ? "refuses connections"
                       : end == FL_RPC_BROKEN ? "has broken the connection"
                                              : NULL;
    if (what)
        snprintf(t->trouble, sizeof t->trouble, "%s %s", t->line[i].address,
                 what);
}

static void settle(fl_trainer *t, const fl_live *c, const fl_rpc_reply *reply,
                   fl_err bad, const fl_msg *m)
{
    note_trouble(t, c, reply->end);
    if (reply->no_listener)
        fl_client_refused(t->client, c->to, fl_link_now());
    if (reply->end == FL_RPC_OK && !bad)
        hear(t, c->to, m);
    else if (reply->end == FL_RPC_OK)
        denied(t, c, bad, fl_errmsg());
    else if (reply->end == FL_RPC_DENIED)
        denied(t, c, reply->code, reply->text);
    else if (!asked_again(t, c->tag))
        fl_client_broken(t->client, c->tag, fl_link_now());
}

static void on_reply(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    fl_connection *l = self;
    fl_trainer *t = l->trainer;
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    fl_err bad = FL_OK;
    if (reply->end == FL_RPC_OK)
        bad = fl_msg_decode(l->address, reply->packet, arena, &m);
    fl_link_lock(t);
    const int64_t i = find_live(t, id);
    const fl_live call = t->live.at[i];
    fl_remove(&t->live, i);
    if (!t->ending)
        settle(t, &call, reply, bad, &m);
    moved(t);
    fl_link_unlock(t);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_free(arena);
}

/* --- why --- */

static void on_why(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    fl_connection *l = self;
    fl_trainer *t = l->trainer;
    fl_arena *arena = fl_arena_new();
    const char *rows = "";
    fl_str line = {0};
    if (reply->end == FL_RPC_OK &&
        !fl_why_decode(l->address, reply->packet, arena, &rows))
        fl_waits_join(rows, "coordinator waits", &line);
    fl_link_lock(t);
    t->curious = false;
    if (line.n)
        fl_str_printf(&t->notes, "%s\n", line.at);
    fl_link_unlock(t);
    fl_str_fini(&line);
    fl_arena_free(arena);
}

void fl_link_ask_why(fl_trainer *t)
{
    fl_connection *first = &t->line[0];
    if (t->curious)
        return;
    t->curious = true;
    fl_rpc_call(t->rpc, first->peer, FL_METHOD_WHY, fl_packet_new(),
                t->job.call, (fl_rpc_done){on_why, first, 0});
}

/* --- the open call --- */

static void on_word(void *self, uint64_t id, const fl_packet *p)
{
    fl_connection *l = self;
    fl_trainer *t = l->trainer;
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    const fl_err bad = fl_msg_decode(l->address, p, arena, &m);
    fl_link_lock(t);
    if (!bad && id == t->open.id && !t->ending)
        hear(t, t->open.to, &m);
    moved(t);
    fl_link_unlock(t);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_free(arena);
}

static void on_hangup(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    fl_trainer *t = ((fl_connection *)self)->trainer;
    fl_link_lock(t);
    if (id == t->open.id) {
        t->open.id = 0;
        if (!t->ending)
            fl_client_broken(t->client, 0, fl_link_now());
    }
    moved(t);
    fl_link_unlock(t);
}

/* Its end is how the coordinator learns at once that this process died: so
 * each session has its own. */
static void renew(fl_trainer *t, const fl_letter *l)
{
    fl_connection *first = &t->line[0];
    if (t->open.id && !fl_id_same(t->open_session, l->msg.session)) {
        fl_rpc_cancel(t->rpc, t->open.call);
        t->open.id = 0;
    }
    if (!t->open.id) {
        t->open = (fl_live){.id = ++t->ids, .to = l->to, .kind = FL_MSG_RENEW};
        t->open_session = l->msg.session;
        t->open.call =
            fl_rpc_open(t->rpc, first->peer, fl_msg_method(FL_MSG_RENEW),
                        on_word, (fl_rpc_done){on_hangup, first, t->open.id});
    }
    fl_rpc_say(t->rpc, t->open.call, fl_msg_encode(&l->msg));
}

/* --- what goes --- */

static void call(fl_trainer *t, const fl_letter *l)
{
    fl_connection *line =
        &t->line[l->to.kind == FL_PEER_COORD ? 0 : l->to.index];
    fl_live c = {
        .id = ++t->ids, .to = l->to, .kind = l->msg.kind, .tag = l->msg.tag};
    c.call = fl_rpc_call(t->rpc, line->peer, fl_msg_method(l->msg.kind),
                         fl_msg_encode(&l->msg), t->job.reach,
                         (fl_rpc_done){on_reply, line, c.id});
    fl_push(&t->live, c);
}

void fl_link_flush(fl_trainer *t)
{
    for (int64_t i = 0; i < t->out.out.n && !t->ending; i++) {
        const fl_letter *l = &t->out.out.at[i];
        if (l->msg.kind == FL_MSG_RENEW)
            renew(t, l);
        else
            call(t, l);
    }
    for (int64_t i = 0; i < t->out.note.n; i++)
        fl_str_printf(&t->notes, "%s\n", t->out.note.at[i]);
    fl_outbox_clear(&t->out);
}

/* --- time --- */

static void tick(void *self)
{
    fl_trainer *t = self;
    fl_link_lock(t);
    while (!t->ending) {
        sleep_on(t, &t->wake, TICK);
        if (!t->ending)
            fl_client_tick(t->client, fl_link_now());
        moved(t);
        fl_link_unlock(t); /* writes notes */
        fl_link_lock(t);
    }
    fl_link_unlock(t);
}

/* --- the whole --- */

static void start_machine(fl_trainer *t)
{
    char host[64] = "?", who[96];
    gethostname(host, sizeof host - 1);
    snprintf(who, sizeof who, "%s:%ld", host, (long)t->pid);
    t->client = fl_client_new(&t->job, &t->app, t->place->trainer_id, who,
                              &t->entropy, &t->out);
    for (int i = 0; i < t->job.servers; i++)
        t->line[i].peer = fl_rpc_peer_at(t->rpc, t->line[i].address);
    fl_link_lock(t);
    fl_client_start(t->client, fl_link_now());
    moved(t);
    fl_link_unlock(t);
}

fl_err fl_link_open(fl_trainer *t)
{
    char token[FL_JOB_TOKEN];
    FL_TRY(fl_pool_new("trainer", 1, &t->pool));
    const fl_err err = fl_rpc_new(
        &(fl_rpc_opts){.token = fl_job_token(&t->job, token)}, &t->rpc);
    if (err) {
        fl_pool_free(t->pool);
        t->pool = NULL;
        return err;
    }
    start_machine(t);
    fl_pool_submit(t->pool, &t->ticker, tick, t);
    return FL_OK;
}

void fl_link_close(fl_trainer *t)
{
    fl_link_lock(t);
    t->ending = true;
    pthread_cond_broadcast(&t->wake);
    fl_link_unlock(t);
    fl_pool_free(t->pool);
    fl_rpc_free(t->rpc);
    fl_client_free(t->client);
}
