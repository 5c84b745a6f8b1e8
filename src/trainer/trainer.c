/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c - what a trainer sends to its servers and gets from them.
 *
 * Gradients for a server are collected in a parcel, which is pushed when it is
 * large enough and at the end of the step. Values are pulled with each step, if
 * they were received before, and are asked for otherwise. When a session is
 * lost the gradients that the caller is computing are stale: they are dropped,
 * and the next step only waits for the new session.
 *
 * Easy to get wrong: when a step returns, the network must not read the
 * caller's memory any more, even if calls have failed or were repeated. */
#include "trainer/trainer.h"

#include "base/failpoint.h"
#include "base/flag.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/map.h"
#include "base/progress.h"
#include "wire/codec.h"

#include <stdio.h>
#include <unistd.h>

enum {
    PUSH_BYTES = 1 << 20,  /* a parcel of this size is pushed before the end of
                              the step */
    WHOLE_BYTES = 1 << 30, /* the same where an asynchronous push must be whole:
                              servers that outlive their processes do not keep
                              slices, and a session does not take over those
                              of another */
    SLICE_BYTES = 4 << 20, /* larger tensors and rows are pushed in slices, so
                              that no push keeps a server long */
};

/* A name that is pulled with every step. */
typedef struct wanted {
    const char *name;
    bool taken; /* received by the program since the last pull */
} wanted;

/* What is sent to one server and received from it. */
typedef struct traffic {
    fl_parcel *gathered;   /* gradients that are not pushed yet; or NULL */
    bool open;             /* the last push was not the last of its step */
    FL_VEC(wanted) wanted; /* in the order in which recv first asked for them */
    fl_map position;       /* name -> its position in `wanted`, from 1 */
    size_t wanted_bytes;   /* sum of the sizes of the wanted values */
    bool wanted_changed;   /* the client pulls something else than `wanted` */
    fl_parcel *pulled;     /* values of the last pull, in the order of `wanted`
                              at that time; rows that came along follow */
} traffic;

/* The last request for sums of counts. */
typedef struct tally {
    bool pending;
    fl_err err; /* why it failed */
    char why[256];
    int64_t trainers; /* number of trainers in the sum */
    fl_parcel *sum;   /* NULL: no answer */
} tally;

struct fl_trainer {
    fl_placement *place;
    fl_job job;
    pid_t pid;          /* process that created the trainer */
    fl_fork_mark *mark; /* lost in processes that were forked from it */
    fl_link *link;
    bool left;     /* fl_trainer_leave was called */
    bool prefetch; /* rows may be asked for before they are used */

    /* The lock of the link guards all that follows. */
    fl_arena *arena; /* names in `wanted` */
    fl_lookups *lookups;
    traffic *traffic; /* by server */
    tally tally;
    bool stale;      /* the caller computes on values of a lost session */
    bool stepped;    /* at least one step has ended */
    bool sent;       /* gradients were sent since the last step */
    bool positioned; /* the step has a position in data */
    int64_t dropped; /* steps whose session was lost before they had ended */
    int64_t passes;  /* over data, that were begun */
};

/* --- callbacks of the link --- */

static void replace_parcel(fl_parcel **slot, fl_parcel *by)
{
    fl_parcel_unref(*slot);
    *slot = by;
}

/* A pull brings all values of a version. */
static void on_values(void *self, int server, const fl_msg *m)
{
    fl_trainer *t = self;
    traffic *f = &t->traffic[server];
    fl_parcel *came = fl_parcel_of(m->blob);
    came = came ? fl_parcel_ref(came) : fl_parcel_new();
    if (fl_lookups_answer(t->lookups, server, m->tag, came) ||
        fl_client_now(fl_link_client(t->link)) != FL_CLIENT_PULLING) {
        fl_parcel_unref(came);
        return;
    }
    replace_parcel(&f->pulled, came);
    fl_lookups_pulled(t->lookups, server, m->round, came);
    for (int64_t i = 0; i < f->wanted.n; i++)
        f->wanted.at[i].taken = false;
}

static void on_fenced(void *self)
{
    fl_trainer *t = self;
    t->stale = true;
    fl_lookups_lose(t->lookups);
}

/* --- checks, and the way in and out --- */

static bool is_forked(const fl_trainer *t)
{
    return fl_fork_mark_is_lost(t->mark);
}

fl_err fl_trainer_check_process(const fl_trainer *t)
{
    if (!is_forked(t))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "process %ld was forked from the trainer, process %ld: only "
                   "the parent can talk to its servers; run local programs "
                   "here, or fork before the trainer's first run",
                   (long)getpid(), (long)t->pid);
}

static fl_err check_server(const fl_trainer *t, const char *name, int server)
{
    if (server >= 0 && server < t->job.servers)
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: there is no server %d, the job has %d", name,
                   server, t->job.servers);
}

/* Connect, take the lock, and wait until the client is ready. A failure leaves
 * the lock free. */
static fl_err enter_link(fl_trainer *t, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(t));
    if (t->left)
        return fl_fail(FL_EINVAL,
                       "this trainer has left its job (exe.close() was "
                       "called): it sends and receives no more; tests and "
                       "saves that need servers come before that");
    FL_TRY(fl_link_connect(t->link, by));
    fl_link_lock(t->link);
    const fl_err err = fl_link_wait_ready(t->link, by);
    if (err)
        fl_link_unlock(t->link);
    return err;
}

/* Release the lock. Returns err, so that a function can end with this call. */
static fl_err exit_link(fl_trainer *t, fl_err err)
{
    fl_link_unlock(t->link);
    return err;
}

/* --- gradients --- */

static fl_parcel *gathered_of(traffic *f)
{
    if (!f->gathered)
        f->gathered = fl_parcel_new();
    return f->gathered;
}

static fl_err push_gathered(fl_trainer *t, traffic *f, bool last)
{
    const fl_blob blob = fl_parcel_blob(gathered_of(f));
    const fl_err err =
        fl_client_push(fl_link_client(t->link), (int)(f - t->traffic), blob,
                       last, fl_link_now());
    fl_keeper_parcels.drop(NULL, blob);
    replace_parcel(&f->gathered, NULL);
    f->open = !last;
    fl_link_flush(t->link);
    return err;
}

/* The parcel for the next gradient. A full parcel is pushed only now, when more
 * gradients follow: otherwise it is the last push of the step, and no empty
 * push is needed after it. */
static fl_err open_parcel(fl_trainer *t, traffic *f, fl_parcel **out)
{
    const size_t size = f->gathered ? f->gathered->size : 0;
    if (size >= PUSH_BYTES || size >= t->job.max_values)
        FL_TRY(push_gathered(t, f, false));
    *out = gathered_of(f);
    return FL_OK;
}

/* Make the last push of a step, even an empty one: the server waits for it. */
static fl_err push_last(fl_trainer *t, traffic *f)
{
    return f->gathered || f->open ? push_gathered(t, f, true) : FL_OK;
}

static fl_err gather_tensor(fl_trainer *t, traffic *f, const char *name,
                            const fl_tensor *x)
{
    const int64_t n = fl_tensor_numel(x);
    const bool whole =
        t->job.async && (t->job.durability != FL_MEMORY || t->positioned);
    const int64_t most =
        (whole ? WHOLE_BYTES : SLICE_BYTES) / (int64_t)fl_dtype_size(x->dtype);
    fl_parcel *to;
    if (n <= most) {
        FL_TRY(open_parcel(t, f, &to));
        fl_parcel_add(to, name, x);
        return FL_OK;
    }
    for (int64_t first = 0; first < n; first += most) {
        FL_TRY(open_parcel(t, f, &to));
        fl_parcel_add_slice(to, name, x, first,
                            n - first < most ? n - first : most);
    }
    return FL_OK;
}

/* Add rows to parcels, in several parts if they are many. The server keeps the
 * order in which they are sent. */
static fl_err gather_rows(fl_trainer *t, traffic *f, const char *name,
                          const fl_rows *r)
{
    const size_t row = (size_t)fl_rows_width(r) * fl_dtype_size(r->value.dtype);
    const size_t bytes =
        t->job.max_values < SLICE_BYTES ? t->job.max_values : SLICE_BYTES;
    const int64_t fit = (int64_t)(bytes / (row + sizeof(int64_t)));
    const int64_t most = fit > 0 ? fit : 1;
    fl_parcel *to;
    for (int64_t first = 0; first < r->n; first += most) {
        fl_rows some = *r;
        some.n = r->n - first < most ? r->n - first : most;
        some.index.data = fl_rows_index(r) + first;
        some.value.data = (char *)r->value.data + (size_t)first * row;
        FL_TRY(open_parcel(t, f, &to));
        fl_parcel_add_rows(to, name, &some);
    }
    return FL_OK;
}

static fl_err gather_value(fl_trainer *t, traffic *f, const char *name,
                           const fl_value *v)
{
    return v->kind == FL_SELECTED_ROWS ? gather_rows(t, f, name, &v->rows)
                                       : gather_tensor(t, f, name, &v->tensor);
}

static void drop_gathered(fl_trainer *t)
{
    for (int i = 0; i < t->job.servers; i++) {
        replace_parcel(&t->traffic[i].gathered, NULL);
        t->traffic[i].open = false;
    }
}

/* A run that fails may free memory that the network still reads. So *own shares
 * counted memory, and copies memory that is borrowed. */
static fl_err share_memory(const fl_value *v, fl_value *own)
{
    if (v->kind == FL_SELECTED_ROWS) {
        own->rows.height = v->rows.height;
        own->rows.n = v->rows.n;
        FL_TRY(fl_tensor_ref(&own->rows.index, &v->rows.index));
        FL_TRY(fl_tensor_ref(&own->rows.value, &v->rows.value));
    } else {
        FL_TRY(fl_tensor_ref(&own->tensor, &v->tensor));
    }
    own->kind = v->kind;
    return FL_OK;
}

fl_err fl_trainer_send(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, const fl_value *v)
{
    fl_value own = {0};
    FL_TRY(fl_trainer_check_process(t));
    FL_TRY(check_server(t, name, server));
    if (fl_value_is_empty(v))
        return FL_OK; /* nothing to send: the last push says so */
    fl_err err = share_memory(v, &own);
    if (!err)
        err = enter_link(t, by);
    if (!err) {
        t->sent = true;
        if (!t->stale)
            err = gather_value(t, &t->traffic[server], name, &own);
        err = exit_link(t, err);
    }
    fl_value_fini(&own);
    return err;
}

/* --- steps --- */

/* Tell the client what to pull with this step. */
static void tell_wanted(fl_trainer *t, traffic *f, bool with_rows)
{
    const int server = (int)(f - t->traffic);
    fl_parcel *names = fl_parcel_new();
    for (int64_t i = 0; i < f->wanted.n; i++)
        fl_parcel_want(names, f->wanted.at[i].name, -1, NULL);
    if (with_rows)
        fl_lookups_add_to_pull(t->lookups, server, names);
    f->wanted_changed = names->n > f->wanted.n;
    const fl_blob blob = fl_parcel_blob(names);
    fl_client_want(fl_link_client(t->link), server, blob);
    fl_keeper_parcels.drop(NULL, blob);
    fl_parcel_unref(names);
}

/* Whether rows are to come with the pull of this step, and fit. */
static bool may_pull_rows(const fl_trainer *t)
{
    bool some = false;
    for (int i = 0; i < t->job.servers; i++) {
        const size_t bytes = fl_lookups_pull_bytes(t->lookups, i);
        if (bytes > t->job.max_values - t->traffic[i].wanted_bytes)
            return false;
        some |= bytes > 0;
    }
    return some;
}

static fl_err begin_step(fl_trainer *t)
{
    const bool with_rows = may_pull_rows(t);
    fl_failpoint_hit("step.begin");
    for (int i = 0; i < t->job.servers; i++) {
        traffic *f = &t->traffic[i];
        if (f->wanted_changed || with_rows)
            tell_wanted(t, f, with_rows);
        FL_TRY(push_last(t, f));
        fl_failpoint_hit("step.push");
    }
    if (with_rows)
        fl_lookups_pull_begins(t->lookups,
                               fl_client_round(fl_link_client(t->link)) + 1);
    const fl_err err = fl_client_step(fl_link_client(t->link), fl_link_now());
    fl_link_flush(t->link);
    fl_failpoint_hit("step.sent");
    return err;
}

/* A session may be lost at any time, also while pushes end here: so what the
 * step has met is taken note of as soon as the client is ready. */
static fl_err run_step(fl_trainer *t, const fl_watch *by)
{
    const bool pushes = !t->stale, positioned = t->positioned;
    if (pushes)
        FL_TRY(begin_step(t));
    drop_gathered(t);
    t->sent = t->positioned = false; /* other threads may send meanwhile */
    FL_TRY(fl_link_wait_ready(t->link, by));
    t->dropped += t->stale;
    if (t->stale && !positioned) /* else it is made again if it must */
        FL_WARN("the gradients of this step may not be in the model, since the "
                "trainer's session was lost");
    t->stale = false;
    t->stepped = true;
    FL_TRY(fl_link_end_pushes(t->link, by));
    if (pushes)
        fl_progress_step();
    fl_failpoint_hit("step.end");
    return FL_OK;
}

/* In an asynchronous job, which has no barriers, the first request for values
 * ends the step. */
static fl_err step_if_sent(fl_trainer *t, const fl_watch *by)
{
    return t->job.async && t->sent ? run_step(t, by) : FL_OK;
}

fl_err fl_trainer_step(fl_trainer *t, const fl_watch *by)
{
    FL_TRY(enter_link(t, by));
    return exit_link(t, run_step(t, by));
}

fl_err fl_trainer_flush(fl_trainer *t, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(t));
    if (!t->job.async || !t->sent)
        return FL_OK;
    FL_TRY(enter_link(t, by));
    return exit_link(t, step_if_sent(t, by));
}

/* --- pushes beside steps --- */

/* Wait for the ACKs of all pushes, as long as the session lives. */
typedef struct acks {
    const fl_link *link;
    int64_t fences; /* sessions lost when the wait began */
} acks;

static bool is_acknowledged(const void *of)
{
    const acks *a = of;
    return fl_link_fences(a->link) != a->fences ||
           !fl_client_pushes(fl_link_client(a->link));
}

static fl_err push_gradients(fl_trainer *t, const fl_watch *by, int n,
                             const fl_gradient *gradients, bool *lost)
{
    const acks wait = {t->link, fl_link_fences(t->link)};
    t->stale = false; /* the caller decides whether gradients are stale */
    for (int i = 0; i < n; i++) {
        const fl_gradient *g = &gradients[i];
        if (!fl_value_is_empty(g->value))
            FL_TRY(gather_value(t, &t->traffic[g->server], g->name, g->value));
    }
    for (int i = 0; i < t->job.servers; i++) {
        FL_TRY(push_last(t, &t->traffic[i]));
        fl_failpoint_hit("push.sent");
    }
    FL_TRY(fl_link_wait(t->link, is_acknowledged, &wait, by, 0));
    *lost |= fl_link_fences(t->link) != wait.fences;
    return fl_link_end_pushes(t->link, by);
}

/* Let the step count whose pushes are applied, unless its session was lost. */
static fl_err commit_step(fl_trainer *t, const fl_watch *by, const acks *wait)
{
    fl_failpoint_hit("push.applied");
    if (fl_link_fences(t->link) != wait->fences)
        return FL_OK;
    FL_TRY(fl_client_commit(fl_link_client(t->link), fl_link_now()));
    fl_link_flush(t->link);
    fl_failpoint_hit("push.commit");
    return fl_link_wait(t->link, is_acknowledged, wait, by, 0);
}

/* Push gradients as a step that has a position. *counts: the step counts, which
 * only the coordinator knows if a session was lost. */
static fl_err push_step(fl_trainer *t, const fl_watch *by, int n,
                        const fl_gradient *gradients, const char *position,
                        bool *counts)
{
    fl_client *client = fl_link_client(t->link);
    const acks wait = {t->link, fl_link_fences(t->link)};
    const int64_t before = fl_client_steps(client);
    bool lost = false;
    FL_TRY(fl_client_position(client, position));
    t->positioned = true;
    const fl_err err = push_gradients(t, by, n, gradients, &lost);
    t->positioned = false;
    FL_TRY(err);
    FL_TRY(commit_step(t, by, &wait));
    FL_TRY(fl_link_wait_ready(t->link, by));
    *counts = fl_client_steps(client) > before;
    fl_failpoint_hit("push.end");
    return FL_OK;
}

/* As enter_link, for pushes beside steps. What an interrupted push has sent is
 * answered first. */
static fl_err enter_push(fl_trainer *t, const fl_watch *by, int n,
                         const fl_gradient *gradients)
{
    for (int i = 0; i < n; i++)
        FL_TRY(check_server(t, gradients[i].name, gradients[i].server));
    FL_TRY(enter_link(t, by));
    const acks wait = {t->link, fl_link_fences(t->link)};
    fl_err err = fl_link_wait(t->link, is_acknowledged, &wait, by, 0);
    if (!err)
        err = fl_link_wait_ready(t->link, by);
    if (!err)
        err = fl_client_position(fl_link_client(t->link), NULL);
    return err ? exit_link(t, err) : FL_OK;
}

fl_err fl_trainer_push(fl_trainer *t, const fl_watch *by, int n,
                       const fl_gradient *gradients, bool *lost)
{
    FL_TRY(enter_push(t, by, n, gradients));
    const fl_err err = push_gradients(t, by, n, gradients, lost);
    if (err)
        drop_gathered(t);
    return exit_link(t, err);
}

fl_err fl_trainer_push_at(fl_trainer *t, const fl_watch *by, int n,
                          const fl_gradient *gradients, const char *position)
{
    bool counts = false;
    int tries = 0;
    fl_err err = FL_OK;
    FL_TRY(enter_push(t, by, n, gradients));
    for (; !counts && !err; tries++)
        err = push_step(t, by, n, gradients, position, &counts);
    if (err)
        drop_gathered(t);
    err = exit_link(t, err);
    if (tries > 1)
        FL_WARN("the gradients were pushed again, since their session was "
                "lost; servers that had them have not applied them twice");
    return err;
}

/* --- values --- */

fl_err fl_trainer_lookup(fl_trainer *t, const fl_watch *by, int n,
                         const fl_lookup *lookups)
{
    for (int i = 0; i < n; i++)
        FL_TRY(check_server(t, lookups[i].table, lookups[i].server));
    FL_TRY(enter_link(t, by));
    fl_err err = step_if_sent(t, by);
    if (!err)
        err = fl_lookups_run(t->lookups, by, n, lookups);
    return exit_link(t, err);
}

/* Only jobs whose trainers do not wait for each other may use rows of a step
 * earlier. In synchronous ones the rows come with the values of the next step,
 * so that they are of its round. */
uint64_t fl_trainer_ask(fl_trainer *t, int n, const fl_lookup *lookups)
{
    uint64_t ticket = 0;
    if (!t->prefetch || is_forked(t) || t->left)
        return 0;
    fl_link_lock(t->link);
    if (fl_link_is_connected(t->link) && !t->sent &&
        fl_client_now(fl_link_client(t->link)) == FL_CLIENT_READY)
        ticket = t->job.async ? fl_lookups_ask(t->lookups, n, lookups)
                              : fl_lookups_ask_by_pull(t->lookups, n, lookups);
    fl_link_unlock(t->link);
    return ticket;
}

fl_err fl_trainer_answer(fl_trainer *t, const fl_watch *by, uint64_t ticket,
                         int n, const fl_lookup *lookups)
{
    fl_err err = FL_OK;
    FL_TRY(enter_link(t, by));
    if (!fl_lookups_wait(t->lookups, by, ticket, &err))
        err = fl_lookups_run(t->lookups, by, n, lookups);
    return exit_link(t, err);
}

/* Pull this name with every step from now on, unless it does not fit into the
 * message with the others. */
static void add_wanted(fl_trainer *t, traffic *f, const char *name,
                       size_t bytes)
{
    if (bytes > t->job.max_values - f->wanted_bytes)
        return;
    const char *own = fl_arena_strdup(t->arena, name);
    fl_push(&f->wanted, (wanted){.name = own, .taken = true});
    fl_map_put(&f->position, own, (void *)(uintptr_t)f->wanted.n);
    f->wanted_bytes += bytes;
    f->wanted_changed = true;
}

/* The value of the last pull, or NULL if there is none or it was taken before.
 */
static const fl_item *take_pulled(const traffic *f, const char *name)
{
    const int64_t at = (int64_t)(uintptr_t)fl_map_get(&f->position, name);
    if (!at || !f->pulled || at > f->pulled->n || f->wanted.at[at - 1].taken)
        return NULL;
    f->wanted.at[at - 1].taken = true;
    const fl_item *item = &f->pulled->item[at - 1];
    return strcmp(item->name, name) ? NULL : item;
}

/* Get the item of the last pull and a reference to its parcel. If there is
 * none, ask the server: then the item is NULL and l->out has the value. */
static fl_err take_value(fl_trainer *t, const fl_watch *by, const fl_lookup *l,
                         fl_received *pulled)
{
    traffic *f = &t->traffic[l->server];
    FL_TRY(step_if_sent(t, by));
    pulled->item = take_pulled(f, l->table);
    if (pulled->item) {
        pulled->parcel = fl_parcel_ref(f->pulled);
        return FL_OK;
    }
    FL_TRY(fl_lookups_run(t->lookups, by, 1, l));
    if (t->stepped && !fl_map_get(&f->position, l->table))
        add_wanted(t, f, l->table, fl_tensor_bytes(l->out));
    return FL_OK;
}

fl_err fl_trainer_take(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, fl_received *pulled, fl_tensor *out)
{
    const fl_lookup whole = {
        .server = server, .table = name, .n = -1, .out = out};
    *pulled = (fl_received){0};
    FL_TRY(check_server(t, name, server));
    FL_TRY(enter_link(t, by));
    return exit_link(t, take_value(t, by, &whole, pulled));
}

fl_err fl_trainer_recv(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, fl_tensor *out)
{
    fl_received pulled;
    FL_TRY(fl_trainer_take(t, by, server, name, &pulled, out));
    const fl_err err = pulled.item ? fl_item_tensor(pulled.item, out) : FL_OK;
    fl_parcel_unref(pulled.parcel);
    return err;
}

/* --- positions in data --- */

fl_err fl_trainer_begin_pass(fl_trainer *t, const fl_watch *by, int64_t *pass,
                             fl_str *position)
{
    FL_TRY(enter_link(t, by));
    const char *text = fl_client_granted_position(fl_link_client(t->link));
    *pass = t->passes++;
    fl_str_add(position, text ? text : "");
    return exit_link(t, FL_OK);
}

fl_err fl_trainer_position(fl_trainer *t, const fl_watch *by,
                           const char *position)
{
    FL_TRY(enter_link(t, by));
    t->positioned = true;
    return exit_link(t, fl_client_position(fl_link_client(t->link), position));
}

void fl_trainer_count_steps(fl_trainer *t, int64_t *counted, int64_t *dropped)
{
    fl_link_lock(t->link);
    *counted = fl_client_steps(fl_link_client(t->link));
    *dropped = t->dropped;
    fl_link_unlock(t->link);
}

/* --- counts of all trainers ---
 *
 * These requests do not go through the client, since training does not depend
 * on them: a request is never repeated, and the caller does not wait for a late
 * answer. A call may last longer than its caller waits; no other call is made
 * before it has ended. */

static fl_err decode_sum(const char *from, const fl_rpc_reply *reply,
                         fl_arena *arena, fl_msg *m)
{
    if (reply->end ==
        FL_RPC_LATE) /* the call timed out before the caller's wait */
        return fl_fail(
            FL_ETIMEOUT,
            "%s has not answered a request for counts (TALLY) in time", from);
    if (reply->end != FL_RPC_OK)
        return fl_fail(FL_EIO, "%s: %s", from, reply->text);
    FL_TRY(fl_msg_decode(from, reply->packet, arena, m));
    if (m->kind != FL_MSG_VALUES)
        return fl_fail(FL_EPROTO, "%s answers %s: %s", from,
                       fl_msg_name(m->kind), m->text ? m->text : "");
    return FL_OK;
}

static void on_sum(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    fl_trainer *t = self;
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    const fl_err err = decode_sum(t->place->servers[0], reply, arena, &m);
    fl_parcel *came = fl_parcel_of(m.blob);
    fl_link_lock(t->link);
    tally *y = &t->tally;
    y->pending = false;
    y->err = err;
    snprintf(y->why, sizeof y->why, "%s", err ? fl_errmsg() : "");
    y->trainers = m.count;
    replace_parcel(&y->sum, came ? fl_parcel_ref(came) : NULL);
    fl_link_wake(t->link);
    fl_link_unlock(t->link);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_free(arena);
}

/* The counts are copied: the call may outlive the caller's wait. */
static fl_err send_counts(fl_trainer *t, const char *name, int64_t n,
                          const int64_t *counts, int64_t limit)
{
    const fl_shape shape = fl_shape_of(1, &n);
    fl_tensor copy = {0};
    FL_TRY(fl_tensor_resize(&copy, FL_I64, &shape));
    memcpy(copy.data, counts, fl_tensor_bytes(&copy));
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, name, &copy);
    fl_tensor_fini(&copy);
    const fl_blob blob = fl_parcel_blob(p);
    t->tally.pending = true;
    fl_link_call_coordinator(t->link, FL_MSG_TALLY, blob, limit,
                             (fl_rpc_done){on_sum, t, 0});
    fl_keeper_parcels.drop(NULL, blob);
    fl_parcel_unref(p);
    return FL_OK;
}

static bool has_tally(const void *trainer)
{
    return !((const fl_trainer *)trainer)->tally.pending;
}

static fl_err copy_sum(const fl_trainer *t, const char *name, int64_t n,
                       int64_t *counts, int *trainers)
{
    const tally *y = &t->tally;
    if (y->err)
        return fl_fail(y->err, "%s", y->why);
    const fl_item *item = y->sum ? fl_parcel_find(y->sum, name) : NULL;
    if (!item || item->kind != FL_LOD_TENSOR || item->dtype != FL_I64 ||
        fl_shape_numel(&item->shape) != n || y->trainers < 1 ||
        y->trainers > t->job.trainers)
        return fl_fail(FL_EPROTO,
                       "%s has not sent the %lld counts of \"%s\" of 1 to %d "
                       "trainers",
                       t->place->servers[0], (long long)n, name,
                       t->job.trainers);
    fl_bytes_copy(item->data, 0, counts, (size_t)n * sizeof *counts);
    *trainers = (int)y->trainers;
    return FL_OK;
}

static fl_err sum_counts(fl_trainer *t, const fl_watch *by, int64_t limit,
                         const char *name, int64_t n, int64_t *counts,
                         int *trainers)
{
    if (!fl_link_has_session(t->link))
        return fl_fail(FL_EIO, "the coordinator %s is not connected",
                       t->place->servers[0]);
    if (t->tally.pending)
        return fl_fail(
            FL_ETIMEOUT,
            "%s has not answered the last request for counts (TALLY) yet",
            t->place->servers[0]);
    FL_TRY(send_counts(t, name, n, counts, limit));
    FL_TRY(fl_link_wait(t->link, has_tally, t, by, fl_link_now() + limit));
    return copy_sum(t, name, n, counts, trainers);
}

fl_err fl_trainer_tally(fl_trainer *t, const fl_watch *by, int64_t limit,
                        const char *name, int64_t n, int64_t *counts,
                        int *trainers)
{
    if (n < 1 || n > FL_TALLY_MOST)
        return fl_fail(FL_EINVAL, "tally \"%s\": %lld counts, expected 1 to %d",
                       name, (long long)n, FL_TALLY_MOST);
    FL_TRY(fl_trainer_check_process(t));
    fl_link_lock(t->link);
    return exit_link(t, sum_counts(t, by, limit, name, n, counts, trainers));
}

/* --- beginning and end --- */

/* A copy without place->program, which only saving needs. */
static fl_placement *dup_placement(const fl_placement *place)
{
    fl_placement like = *place;
    like.origin = NULL;
    like.origin_size = 0;
    return fl_placement_new(&like);
}

fl_err fl_trainer_new(const fl_placement *place, const fl_job *limits,
                      fl_trainer **out)
{
    fl_job own = limits ? *limits : (fl_job){0};
    FL_TRY(fl_job_limits(&own));
    const fl_job job = fl_placement_job(place, &own);
    FL_TRY(fl_job_check(&job));
    bool prefetch = true;
    FL_TRY(fl_flag_bool("FLUID_PREFETCH", &prefetch));
    fl_trainer *t = fl_mem_alloc(sizeof *t);
    t->place = dup_placement(place);
    t->job =
        fl_placement_job(t->place, &own); /* its texts belong to t->place */
    if (!t->job.max_values)
        t->job.max_values = FL_VALUES_MOST;
    t->pid = getpid();
    t->mark = fl_fork_mark_new();
    t->prefetch = prefetch && !place->half_async;
    t->arena = fl_arena_new();
    t->traffic = fl_mem_alloc((size_t)job.servers * sizeof *t->traffic);
    t->link = fl_link_new(t->place, &t->job,
                          &(fl_link_events){t, on_values, on_fenced});
    t->lookups = fl_lookups_new(t->link, t->place, &t->job);
    *out = t;
    return FL_OK;
}

static void end_traffic(traffic *f)
{
    fl_parcel_unref(f->gathered);
    fl_parcel_unref(f->pulled);
    fl_vec_fini(&f->wanted);
    fl_map_fini(&f->position);
}

void fl_trainer_free(fl_trainer *t)
{
    if (!t || is_forked(t))
        return;
    fl_link_free(t->link);
    fl_lookups_free(t->lookups);
    for (int i = 0; i < t->job.servers; i++)
        end_traffic(&t->traffic[i]);
    fl_mem_free(t->traffic);
    fl_parcel_unref(t->tally.sum);
    fl_handle_unref(&t->place->handle);
    fl_arena_free(t->arena);
    fl_fork_mark_free(t->mark);
    fl_mem_free(t);
}

fl_err fl_trainer_leave(fl_trainer *t, const fl_watch *by, int code,
                        const char *why, int64_t limit)
{
    if (is_forked(t) || t->left)
        return FL_OK;
    t->left = true;
    fl_link_lock(t->link);
    if (!fl_link_is_connected(t->link))
        return exit_link(t, FL_OK);
    drop_gathered(t);
    FL_TRY(exit_link(t, fl_link_leave(t->link, by, code, why, limit)));
    if (!code)
        fl_progress_reach(FL_REACHED_COMPLETION);
    return FL_OK;
}

bool fl_trainer_is_at(const fl_trainer *t, const fl_placement *place)
{
    const fl_placement *own = t->place;
    bool same = own->digest[0] == place->digest[0] &&
                own->digest[1] == place->digest[1] &&
                own->trainer_id == place->trainer_id &&
                own->n_servers == place->n_servers;
    for (int i = 0; same && i < own->n_servers; i++)
        same = !strcmp(own->servers[i], place->servers[i]);
    return same;
}

const fl_placement *fl_trainer_placement(const fl_trainer *t)
{
    return t->place;
}
