/* SPDX-License-Identifier: Apache-2.0 */
/* communicator.c - the sender, the receiver, and the threads that wait for
 * them.
 *
 *     put --> filling --swap--> sending --push--> servers
 *     servers --pull--> arriving --swap--> current --copy--> take
 *
 * The sender swaps the full buffer `filling` with the empty buffer `sending`,
 * so that workers can add gradients while it pushes. Pulled values stay in the
 * packets that brought them until a worker copies them into its parameters.
 * Pushes and pulls are numbered, so that a flush can wait for the next push and
 * then for the next pull.
 *
 * No thread holds two of the locks. */
#include "trainer/communicator.h"

#include "base/flag.h"
#include "base/log.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/str.h"
#include "graph/program.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define PAUSE (200 * FL_MS) /* between two checks for Ctrl-C during a wait */
#define STALL (5 * FL_SEC)  /* a longer wait is logged */

/* The rows of a variable that one server holds. */
typedef struct piece {
    const char *name; /* on the server */
    int server;
    int64_t rows; /* < 0: the whole variable */
} piece;

/* A gradient that the program sends. */
typedef struct send_var {
    const char *name;
    int n;
    piece *pieces;

    /* The sender's alone. */
    fl_gathered sending; /* what is being pushed */
    fl_rows merged;      /* rows of `sending`, equal ones added up */
    fl_value whole;      /* view of the whole gradient, if it has one piece */
    fl_value *cut;       /* by piece: view of a tensor, or of `merged` */

    pthread_mutex_t lock;
    pthread_cond_t has_room; /* `filling` was emptied, or `closed` is set */
    fl_gathered filling;     /* what workers have added since the last push */
    bool grouped;            /* it is sent when its group is complete */
    bool full;               /* `filling` is part of a complete group */
    bool closed;             /* the communicator has failed */
} send_var;

/* A parameter that the program receives. */
typedef struct recv_var {
    const char *name;
    int n;
    piece *pieces;
    fl_received_list *arriving; /* by piece; the receiver's alone */

    pthread_mutex_t lock;
    fl_received_list *current; /* values of the last pull, by piece */
    int64_t pulls;             /* how often `current` was replaced */
    int64_t copied;            /* number of the pull that was copied last */
    const void *copied_to;     /* memory that it was copied to */
} recv_var;

struct fl_communicator {
    fl_trainer *trainer;
    fl_arena *arena;
    bool half_async;
    bool discard;       /* gradients are not sent: for measurements */
    bool has_receiver;  /* a separate thread pulls; otherwise the sender does */
    int64_t most;       /* batches that one push may carry */
    int64_t patience;   /* ns to wait for more batches before a push */
    int64_t pull_after; /* batches that are pushed before a pull */
    int n_sends, n_recvs;
    send_var *sends;
    recv_var *recvs;
    fl_map grads;                 /* name -> send_var */
    fl_map params;                /* name -> recv_var */
    FL_VEC(fl_gradient) outgoing; /* what one push sends; the sender's */
    FL_VEC(fl_lookup) lookups;    /* what one pull asks for; the receiver's */
    fl_watch watch;               /* ends waits of sender and receiver */
    pthread_condattr_t monotonic;
    fl_pool *pool;
    fl_group threads;

    pthread_mutex_t lock;
    pthread_cond_t send_due;    /* wakes the sender */
    pthread_cond_t receive_due; /* wakes the receiver */
    pthread_cond_t progress;    /* a push, a pull or a barrier has ended */
    bool ending;
    int64_t gathered;               /* the largest n of all `filling` */
    bool grouped;                   /* gradients are sent in groups */
    bool ungrouped;                 /* some were there before the first group */
    char *position;                 /* of the complete group that waits to be
                                       sent; NULL: none does */
    int64_t groups_taken;           /* complete groups that were taken to be
                                       sent */
    int64_t last_put;               /* time of the last gradient, ns */
    int64_t push_wanted, push_done; /* push that a flush waits for; last push */
    int64_t pull_wanted, pull_done; /* pull that a flush waits for; last pull */
    int64_t unseen;   /* batches that were pushed since the last pull */
    int workers;      /* workers that take part in barriers */
    int arrived;      /* workers that wait at the barrier */
    int64_t barriers; /* barriers that were passed */
    fl_communicator_stats stats;
    fl_err err; /* the first error */
    char why[512];
};

static int64_t clock_now(void)
{
    return fl_clock_now(fl_clock_real());
}

static void sleep_until(pthread_cond_t *on, pthread_mutex_t *lock,
                        int64_t until)
{
    const struct timespec at = {until / FL_SEC, until % FL_SEC};
    pthread_cond_timedwait(on, lock, &at);
}

/* --- failure --- */

/* Keep the first error, and end all waits with it. */
static void set_failed(fl_communicator *c, fl_err err)
{
    pthread_mutex_lock(&c->lock);
    if (!c->err && !c->ending) {
        c->err = err;
        snprintf(c->why, sizeof c->why, "%s", fl_errmsg());
    }
    pthread_cond_broadcast(&c->send_due);
    pthread_cond_broadcast(&c->receive_due);
    pthread_cond_broadcast(&c->progress);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->n_sends; i++) {
        send_var *v = &c->sends[i];
        pthread_mutex_lock(&v->lock);
        v->closed = true;
        pthread_cond_broadcast(&v->has_room);
        pthread_mutex_unlock(&v->lock);
    }
}

/* The first error, if there is one. The caller holds the lock. */
static fl_err check_failed(const fl_communicator *c)
{
    if (c->err)
        return fl_fail(c->err, "%s", c->why);
    return c->ending ? fl_fail(FL_EINVAL, "the communicator has been stopped")
                     : FL_OK;
}

/* --- waits of workers --- */

typedef struct wait {
    const fl_watch *by;
    int64_t began, logged;
} wait;

static wait begin_wait(const fl_watch *by)
{
    const int64_t t = clock_now();
    return (wait){by, t, t};
}

/* The caller holds the lock, which is released during the sleep. */
static void sleep_once(const wait *w, pthread_cond_t *on, pthread_mutex_t *lock)
{
    const int64_t since = clock_now();
    sleep_until(on, lock, since + PAUSE);
    fl_watch_waited(w->by, clock_now() - since);
}

/* Log a long wait, and poll the watch. The caller holds no lock. */
static fl_err poll_watch(wait *w, const char *for_what)
{
    const int64_t t = clock_now();
    if (t - w->logged >= STALL) {
        w->logged = t;
        FL_INFO("the trainer waits for its communicator: %s, %.1f s", for_what,
                (double)(t - w->began) / (double)FL_SEC);
    }
    if (w->by && w->by->poll && w->by->poll(w->by->user))
        return fl_fail(FL_EINTR,
                       "the wait for the communicator was interrupted");
    return FL_OK;
}

/* Wait until *count has reached n. The caller holds the lock, which is released
 * during the wait. */
static fl_err wait_for_count(fl_communicator *c, const int64_t *count,
                             int64_t n, const fl_watch *by,
                             const char *for_what)
{
    wait w = begin_wait(by);
    while (*count < n) {
        FL_TRY(check_failed(c));
        sleep_once(&w, &c->progress, &c->lock);
        if (*count >= n)
            break;
        pthread_mutex_unlock(&c->lock);
        const fl_err err = poll_watch(&w, for_what);
        pthread_mutex_lock(&c->lock);
        FL_TRY(err);
    }
    return FL_OK;
}

/* --- gradients from workers --- */

static fl_err fail_unknown(const fl_map *all, const char *kind,
                           const char *name)
{
    fl_near near = {.name = name};
    for (fl_entry *e = NULL; (e = fl_map_next(all, e));)
        fl_near_offer(&near, e->key);
    return fl_fail(FL_ENOENT,
                   "communicator: \"%s\" is not a %s of the program that it "
                   "was started with%s%s%s",
                   name, kind, near.best ? "; the nearest is \"" : "",
                   near.best ? near.best : "", near.best ? "\"" : "");
}

/* Whether no gradient can be added to v now. A group has as many as its batches
 * make. */
static bool is_full(const fl_communicator *c, const send_var *v)
{
    return v->full ||
           (v->filling.n >= c->most && !v->grouped && !c->half_async);
}

/* Wait until v has room for a gradient. The caller holds the lock of v, which
 * is released during the wait. */
static fl_err wait_for_room(fl_communicator *c, send_var *v, const fl_watch *by)
{
    wait w = begin_wait(by);
    char what[256];
    snprintf(what, sizeof what,
             "room for gradient \"%s\" (%lld batches wait to be sent)", v->name,
             (long long)c->most);
    while (is_full(c, v) && !v->closed) {
        sleep_once(&w, &v->has_room, &v->lock);
        if (!is_full(c, v) || v->closed)
            break;
        pthread_mutex_unlock(&v->lock);
        const fl_err err = poll_watch(&w, what);
        pthread_mutex_lock(&v->lock);
        FL_TRY(err);
    }
    return FL_OK;
}

/* A variable now has n gradients that wait to be sent. While there were none,
 * the sender sleeps without a limit. Workers may come in another order than
 * they added theirs, so the first one has any n. */
static fl_err wake_sender(fl_communicator *c, int64_t n)
{
    pthread_mutex_lock(&c->lock);
    const fl_err err = check_failed(c);
    c->last_put = clock_now();
    if (n > c->gathered && !c->grouped) {
        if (!c->gathered || n >= c->most)
            pthread_cond_signal(&c->send_due);
        c->gathered = n;
    }
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* Add a gradient: v, or if that is NULL the one that x makes. */
static fl_err add_gradient(fl_communicator *c, const char *grad,
                           const fl_value *v, const fl_addend *x,
                           const fl_watch *by)
{
    send_var *to = fl_map_get(&c->grads, grad);
    FL_TRY(fl_trainer_check_process(c->trainer));
    if (!to)
        return fail_unknown(&c->grads, "gradient", grad);
    pthread_mutex_lock(&to->lock);
    fl_err err = is_full(c, to) ? wait_for_room(c, to, by) : FL_OK;
    const bool closed = to->closed;
    if (!err && !closed)
        err = v ? fl_gathered_add(&to->filling, to->name, v)
                : fl_gathered_make(&to->filling, to->name, x);
    const int64_t n = to->filling.n;
    pthread_mutex_unlock(&to->lock);
    return err ? err : wake_sender(c, n);
}

fl_err fl_communicator_put(fl_communicator *c, const char *grad,
                           const fl_value *v, const fl_watch *by)
{
    return fl_value_is_empty(v) ? FL_OK : add_gradient(c, grad, v, NULL, by);
}

fl_err fl_communicator_make(fl_communicator *c, const char *grad,
                            const fl_addend *x, const fl_watch *by)
{
    return add_gradient(c, grad, NULL, x, by);
}

/* --- the sender: from gathered gradients to pieces --- */

static void add_outgoing(fl_communicator *c, const piece *to, const fl_value *v)
{
    fl_push(&c->outgoing, (fl_gradient){to->server, to->name, v});
}

/* A view of the rows of r from number *at on that are below start + height, as
 * their server numbers them: from 0. The rows are in ascending order, and those
 * of the view are numbered anew where they are. */
static fl_value view_rows(const fl_rows *r, int64_t *at, int64_t start,
                          int64_t height)
{
    fl_value v = {.kind = FL_SELECTED_ROWS, .rows = *r};
    int64_t *index = fl_rows_index(r) + *at, n = 0;
    const size_t row = (size_t)fl_rows_width(r) * fl_dtype_size(r->value.dtype);
    while (*at + n < r->n && index[n] < start + height)
        index[n++] -= start;
    v.rows.height = height;
    v.rows.index.data = index;
    v.rows.value.data = (char *)r->value.data + (size_t)*at * row;
    v.rows.n = v.rows.index.shape.dim[0] = v.rows.value.shape.dim[0] = n;
    *at += n;
    return v;
}

static fl_err cut_pieces(fl_communicator *c, send_var *v, const fl_value *whole)
{
    int64_t start = 0, at = 0;
    for (int i = 0; i < v->n; i++) {
        const int64_t rows = v->pieces[i].rows;
        if (whole->kind == FL_SELECTED_ROWS)
            v->cut[i] = view_rows(&whole->rows, &at, start, rows);
        else
            FL_TRY(fl_value_slice(&v->cut[i], whole, start, rows));
        add_outgoing(c, &v->pieces[i], &v->cut[i]);
        start += rows;
    }
    const int64_t height = whole->kind == FL_SELECTED_ROWS
                               ? whole->rows.height
                               : whole->tensor.shape.dim[0];
    if (height != start)
        return fl_fail(FL_ESHAPE,
                       "communicator: the sections of gradient \"%s\" have "
                       "%lld rows in all, the gradient has %lld",
                       v->name, (long long)start, (long long)height);
    return FL_OK;
}

static fl_err add_gathered(fl_communicator *c, send_var *v)
{
    fl_value whole = v->sending.value;
    if (whole.kind == FL_SELECTED_ROWS) {
        FL_TRY(fl_rows_merge(&v->merged, &v->sending.value.rows));
        whole.rows = v->merged;
    }
    if (v->pieces[0].rows >= 0)
        return cut_pieces(c, v, &whole);
    v->whole = whole;
    add_outgoing(c, &v->pieces[0], &v->whole);
    return FL_OK;
}

/* --- the sender: pushes --- */

/* Swap `filling` with the empty `sending` of every variable. Returns how many
 * batches are about to be sent. */
static int64_t take_gathered(fl_communicator *c)
{
    int64_t most = 0;
    for (int i = 0; i < c->n_sends; i++) {
        send_var *v = &c->sends[i];
        pthread_mutex_lock(&v->lock);
        const fl_gathered empty = v->sending;
        v->sending = v->filling;
        v->filling = empty;
        v->full = false;
        pthread_cond_broadcast(&v->has_room);
        pthread_mutex_unlock(&v->lock);
        if (v->sending.n > most)
            most = v->sending.n;
    }
    return most;
}

/* Push the gradients of all variables together, so that each server gets as few
 * pushes as possible. position: of their group, or NULL. */
static fl_err push_gathered(fl_communicator *c, const char *position,
                            bool *lost)
{
    c->outgoing.n = 0;
    for (int i = 0; i < c->n_sends; i++)
        if (c->sends[i].sending.n)
            FL_TRY(add_gathered(c, &c->sends[i]));
    if (position)
        return fl_trainer_push_at(c->trainer, &c->watch, (int)c->outgoing.n,
                                  c->outgoing.at, position);
    if (!c->outgoing.n || c->discard)
        return FL_OK;
    return fl_trainer_push(c->trainer, &c->watch, (int)c->outgoing.n,
                           c->outgoing.at, lost);
}

/* n batches were pushed or lost; with the lock held. */
static void end_push(fl_communicator *c, int64_t n, bool lost, int64_t number)
{
    c->stats.batches += lost ? 0 : n;
    c->stats.lost += lost ? n : 0;
    c->stats.pushes += n > 0;
    c->unseen = lost ? c->pull_after : c->unseen + n;
    c->push_done = number;
    pthread_cond_broadcast(&c->progress);
    if (c->unseen >= c->pull_after)
        pthread_cond_signal(&c->receive_due);
}

/* Take what is to be pushed: all that has gathered, or a complete group and
 * *position, which the caller frees. Returns the number of batches. */
static int64_t take_due(fl_communicator *c, char **position)
{
    pthread_mutex_lock(&c->lock);
    *position = c->position;
    const bool waits = c->grouped && !c->position && !c->ungrouped;
    pthread_mutex_unlock(&c->lock);
    if (waits)
        return 0;
    const int64_t n = take_gathered(c);
    pthread_mutex_lock(&c->lock);
    c->groups_taken += *position != NULL;
    c->position = NULL;
    c->ungrouped = false;
    pthread_cond_broadcast(&c->progress);
    pthread_mutex_unlock(&c->lock);
    return n;
}

static fl_err run_push(fl_communicator *c)
{
    bool lost = false;
    char *position;
    pthread_mutex_lock(&c->lock);
    const int64_t number = c->push_wanted;
    c->gathered = 0;
    pthread_mutex_unlock(&c->lock);
    const int64_t n = take_due(c, &position);
    const fl_err err = push_gathered(c, position, &lost);
    fl_mem_free(position);
    for (int i = 0; i < c->n_sends; i++)
        c->sends[i].sending.n = 0;
    if (err)
        return err;
    if (lost)
        FL_WARN("the session was lost, and with it the gradients of %lld "
                "batches that were not applied yet",
                (long long)n);
    pthread_mutex_lock(&c->lock);
    end_push(c, n, lost, number);
    pthread_mutex_unlock(&c->lock);
    return FL_OK;
}

/* --- the receiver --- */

static fl_err pull_parameters(fl_communicator *c)
{
    c->lookups.n = 0;
    for (int i = 0; i < c->n_recvs; i++) {
        recv_var *v = &c->recvs[i];
        for (int k = 0; k < v->n; k++)
            fl_push(&c->lookups, (fl_lookup){.server = v->pieces[k].server,
                                             .table = v->pieces[k].name,
                                             .n = -1,
                                             .kept = &v->arriving[k]});
    }
    if (c->lookups.n && !c->discard)
        FL_TRY(fl_trainer_lookup(c->trainer, &c->watch, (int)c->lookups.n,
                                 c->lookups.at));
    for (int i = 0; i < c->n_recvs && !c->discard; i++) {
        recv_var *v = &c->recvs[i];
        pthread_mutex_lock(&v->lock);
        fl_received_list *old = v->current;
        v->current = v->arriving;
        v->arriving = old;
        v->pulls++;
        pthread_mutex_unlock(&v->lock);
        for (int k = 0; k < v->n; k++)
            fl_received_clear(&old[k]);
    }
    return FL_OK;
}

static fl_err run_pull(fl_communicator *c)
{
    pthread_mutex_lock(&c->lock);
    const int64_t number = c->pull_wanted;
    c->unseen = 0;
    pthread_mutex_unlock(&c->lock);
    FL_TRY(pull_parameters(c));
    pthread_mutex_lock(&c->lock);
    c->pull_done = number;
    c->stats.pulls++;
    pthread_cond_broadcast(&c->progress);
    pthread_mutex_unlock(&c->lock);
    return FL_OK;
}

/* --- the threads of both --- */

static bool all_arrived(const fl_communicator *c)
{
    return c->arrived && c->arrived >= c->workers;
}

static bool pull_is_due(const fl_communicator *c)
{
    return c->pull_wanted > c->pull_done || c->unseen >= c->pull_after;
}

static bool push_is_due(const fl_communicator *c)
{
    if (c->push_wanted > c->push_done || c->position)
        return true;
    if (c->half_async)
        return all_arrived(c);
    return c->gathered >= c->most ||
           (c->gathered && clock_now() >= c->last_put + c->patience);
}

static bool sender_is_due(const fl_communicator *c)
{
    return push_is_due(c) || (!c->has_receiver && pull_is_due(c));
}

/* Returns false when the thread must end. */
static bool sleep_until_due(fl_communicator *c, bool sender)
{
    pthread_mutex_lock(&c->lock);
    pthread_cond_t *on = sender ? &c->send_due : &c->receive_due;
    while (!c->ending && !c->err &&
           !(sender ? sender_is_due(c) : pull_is_due(c))) {
        if (sender && c->gathered && !c->half_async)
            sleep_until(on, &c->lock, c->last_put + c->patience);
        else
            pthread_cond_wait(on, &c->lock);
    }
    const bool go_on = !c->ending && !c->err;
    pthread_mutex_unlock(&c->lock);
    return go_on;
}

/* Let the workers at the barrier go on, after the pull. */
static void open_barrier(fl_communicator *c)
{
    pthread_mutex_lock(&c->lock);
    c->arrived = 0;
    c->barriers++;
    pthread_cond_broadcast(&c->progress);
    pthread_mutex_unlock(&c->lock);
}

/* Push and pull, as far as each is due. */
static fl_err exchange_once(fl_communicator *c)
{
    pthread_mutex_lock(&c->lock);
    const bool push_due = push_is_due(c);
    const bool at_barrier = c->half_async && all_arrived(c);
    pthread_mutex_unlock(&c->lock);
    if (push_due)
        FL_TRY(run_push(c));
    pthread_mutex_lock(&c->lock);
    const bool pull_due = !c->has_receiver && (at_barrier || pull_is_due(c));
    pthread_mutex_unlock(&c->lock);
    if (pull_due)
        FL_TRY(run_pull(c));
    if (at_barrier)
        open_barrier(c);
    return FL_OK;
}

static void run_sender(void *self)
{
    fl_communicator *c = self;
    while (sleep_until_due(c, true)) {
        const fl_err err = exchange_once(c);
        if (err)
            set_failed(c, err);
    }
}

static void run_receiver(void *self)
{
    fl_communicator *c = self;
    while (sleep_until_due(c, false)) {
        const fl_err err = run_pull(c);
        if (err)
            set_failed(c, err);
    }
}

/* --- parameters to workers --- */

static fl_err fail_shape(const recv_var *v)
{
    return fl_fail(FL_ESHAPE,
                   "communicator: parameter \"%s\" came with another shape "
                   "than it has here",
                   v->name);
}

static bool fits_into(const recv_var *v, const fl_tensor *out)
{
    size_t bytes = 0;
    for (int i = 0; i < v->n; i++)
        for (int64_t k = 0; k < v->current[i].n; k++) {
            const fl_item *item = v->current[i].at[k].item;
            if (item->dtype != out->dtype)
                return false;
            bytes += item->data.size;
        }
    return bytes == fl_tensor_bytes(out);
}

/* Copy a parameter while workers may read it, which asynchronous training
 * allows. The thread sanitizer's suppressions name this function. */
static void write_shared_parameter(const recv_var *v, fl_tensor *out)
{
    char *to = out->data;
    for (int i = 0; i < v->n; i++)
        for (int64_t k = 0; k < v->current[i].n; k++) {
            const fl_bytes b = v->current[i].at[k].item->data;
            fl_bytes_copy(b, 0, to, b.size);
            to += b.size;
        }
}

static fl_err copy_if_newer(recv_var *v, fl_tensor *out)
{
    if (!v->pulls || (v->copied == v->pulls && v->copied_to == out->data))
        return FL_OK;
    if (!out->data || !fits_into(v, out))
        return fail_shape(v);
    write_shared_parameter(v, out);
    v->copied = v->pulls;
    v->copied_to = out->data;
    return FL_OK;
}

fl_err fl_communicator_take(fl_communicator *c, const char *param,
                            fl_tensor *out)
{
    recv_var *v = fl_map_get(&c->params, param);
    FL_TRY(fl_trainer_check_process(c->trainer));
    if (!v)
        return fail_unknown(&c->params, "parameter", param);
    pthread_mutex_lock(&v->lock);
    const fl_err err = copy_if_newer(v, out);
    pthread_mutex_unlock(&v->lock);
    return err;
}

fl_err fl_communicator_fill(fl_communicator *c, fl_scope *s)
{
    for (int i = 0; i < c->n_recvs; i++) {
        fl_value *v = fl_scope_find(s, c->recvs[i].name);
        if (v && v->kind == FL_LOD_TENSOR && v->tensor.data)
            FL_TRY(fl_communicator_take(c, c->recvs[i].name, &v->tensor));
    }
    return FL_OK;
}

/* --- barriers and flushes --- */

fl_err fl_communicator_barrier(fl_communicator *c, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(c->trainer));
    pthread_mutex_lock(&c->lock);
    const int64_t next = c->barriers + 1;
    c->arrived++;
    if (all_arrived(c))
        pthread_cond_signal(&c->send_due);
    const fl_err err =
        wait_for_count(c, &c->barriers, next, by,
                       "the other threads and the servers to end the step");
    if (err && c->barriers < next)
        c->arrived--;
    pthread_mutex_unlock(&c->lock);
    return err;
}

void fl_communicator_add_workers(fl_communicator *c, int n)
{
    if (fl_trainer_check_process(c->trainer))
        return; /* fl_communicator_put reports why */
    pthread_mutex_lock(&c->lock);
    c->workers += n;
    if (all_arrived(c))
        pthread_cond_signal(&c->send_due);
    pthread_mutex_unlock(&c->lock);
}

/* Wait until all is applied that has gathered. The caller holds the lock. */
static fl_err push_all(fl_communicator *c, const fl_watch *by)
{
    const int64_t push_number = ++c->push_wanted;
    pthread_cond_signal(&c->send_due);
    return wait_for_count(c, &c->push_done, push_number, by,
                          "all gradients to be sent");
}

static fl_err flush_gathered(fl_communicator *c, const fl_watch *by)
{
    FL_TRY(push_all(c, by));
    const int64_t pull_number = ++c->pull_wanted;
    pthread_cond_signal(c->has_receiver ? &c->receive_due : &c->send_due);
    return wait_for_count(c, &c->pull_done, pull_number, by,
                          "parameters to be received");
}

fl_err fl_communicator_flush(fl_communicator *c, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(c->trainer));
    pthread_mutex_lock(&c->lock);
    const fl_err err = flush_gathered(c, by);
    pthread_mutex_unlock(&c->lock);
    return err;
}

/* --- groups --- */

int64_t fl_communicator_group(const fl_communicator *c)
{
    return c->half_async || c->discard ? 0 : c->most;
}

/* Gradients that are in no group are dropped when groups end. */
static void set_grouped(fl_communicator *c, bool grouped)
{
    for (int i = 0; i < c->n_sends; i++) {
        send_var *v = &c->sends[i];
        pthread_mutex_lock(&v->lock);
        v->grouped = grouped;
        if (!grouped && !v->full)
            v->filling.n = 0;
        pthread_mutex_unlock(&v->lock);
    }
}

/* No push that has begun before may take a part of the first group. */
fl_err fl_communicator_begin_groups(fl_communicator *c, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(c->trainer));
    pthread_mutex_lock(&c->lock);
    c->grouped = c->ungrouped = true;
    const fl_err err = push_all(c, by);
    c->grouped = !err;
    pthread_mutex_unlock(&c->lock);
    if (!err)
        set_grouped(c, true);
    return err;
}

/* The gradients of all variables are a group. Nobody adds one now. */
static void close_group(fl_communicator *c, const char *position)
{
    for (int i = 0; i < c->n_sends; i++) {
        send_var *v = &c->sends[i];
        pthread_mutex_lock(&v->lock);
        v->full = true;
        pthread_mutex_unlock(&v->lock);
    }
    pthread_mutex_lock(&c->lock);
    c->position = fl_mem_strdup(position);
    pthread_cond_signal(&c->send_due);
    pthread_mutex_unlock(&c->lock);
}

fl_err fl_communicator_end_group(fl_communicator *c, const char *position,
                                 const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(c->trainer));
    pthread_mutex_lock(&c->lock);
    fl_err err = check_failed(c);
    if (!err)
        err = wait_for_count(c, &c->groups_taken,
                             c->groups_taken + (c->position != NULL), by,
                             "the gradients of the last group to be sent");
    pthread_mutex_unlock(&c->lock);
    if (!err)
        close_group(c, position);
    return err;
}

void fl_communicator_end_groups(fl_communicator *c)
{
    if (fl_trainer_check_process(c->trainer))
        return; /* fl_communicator_put reports why */
    set_grouped(c, false);
    pthread_mutex_lock(&c->lock);
    c->grouped = false;
    pthread_mutex_unlock(&c->lock);
}

fl_communicator_stats fl_communicator_get_stats(fl_communicator *c)
{
    pthread_mutex_lock(&c->lock);
    const fl_communicator_stats stats = c->stats;
    pthread_mutex_unlock(&c->lock);
    return stats;
}

/* --- what the program sends and receives ---
 *
 *     send   X and its pieces (send_varnames, sections, epmap); or several X,
 *            each of them a piece
 *     recv   Out and its pieces (recv_varnames, epmap); it has X, the tokens of
 *            the sends before it. A recv without X is a startup program's. */

typedef struct maker {
    fl_communicator *c;
    const fl_placement *place;
    FL_VEC(send_var) sends;
    FL_VEC(recv_var) recvs;
} maker;

static fl_err find_server(const maker *m, const char *endpoint, int *server)
{
    for (int i = 0; i < m->place->n_servers; i++)
        if (!strcmp(m->place->servers[i], endpoint)) {
            *server = i;
            return FL_OK;
        }
    return fl_fail(FL_EINVAL,
                   "communicator: \"%s\" is not among the job's %d servers",
                   endpoint, m->place->n_servers);
}

static int attr_length(const fl_attr *a)
{
    return a ? a->n : 0;
}

/* n pieces with these names, on the servers of epmap from `first` on. rows
 * NULL: each piece is a whole variable. */
static fl_err make_pieces(maker *m, const fl_op *op, int first, int n,
                          const char *const *names, const int64_t *rows,
                          piece **out)
{
    const fl_attr *to = fl_desc_attr(&op->desc, "epmap");
    fl_arena *a = m->c->arena;
    if (attr_length(to) < first + n)
        return fl_fail(FL_EINVAL,
                       "communicator: a %s has %d servers for %d pieces",
                       op->desc.type, attr_length(to), first + n);
    *out = fl_arena_alloc(a, (size_t)(n + 1) * sizeof **out);
    for (int i = 0; i < n; i++) {
        piece *p = &(*out)[i];
        p->name = fl_arena_strdup(a, names[i]);
        p->rows = rows ? rows[i] : -1;
        FL_TRY(find_server(m, to->strings[first + i], &p->server));
    }
    return FL_OK;
}

static fl_err add_send_var(maker *m, const fl_op *op, const char *name,
                           int first, int n, const char *const *names,
                           const int64_t *rows)
{
    send_var v = {.name = fl_arena_strdup(m->c->arena, name), .n = n};
    if (n < 1)
        return fl_fail(FL_EINVAL, "communicator: \"%s\" has no pieces", name);
    FL_TRY(make_pieces(m, op, first, n, names, rows, &v.pieces));
    v.cut = fl_arena_alloc(m->c->arena, (size_t)n * sizeof *v.cut);
    fl_push(&m->sends, v);
    return FL_OK;
}

static fl_err read_send(maker *m, const fl_op *op)
{
    const fl_args *x = fl_desc_in(&op->desc, "X");
    const fl_attr *names = fl_desc_attr(&op->desc, "send_varnames");
    const fl_attr *rows = fl_desc_attr(&op->desc, "sections");
    if (attr_length(names) &&
        (!x || x->n != 1 || attr_length(rows) != names->n))
        return fl_fail(FL_EINVAL,
                       "communicator: a send has %d sections and %d "
                       "send_varnames for %d X",
                       attr_length(rows), names->n, x ? x->n : 0);
    if (attr_length(names))
        return add_send_var(m, op, x->name[0], 0, names->n, names->strings,
                            rows->longs);
    for (int i = 0; x && i < x->n; i++)
        FL_TRY(add_send_var(m, op, x->name[i], i, 1, &x->name[i], NULL));
    return FL_OK;
}

static fl_err read_recv(maker *m, const fl_op *op)
{
    const fl_args *x = fl_desc_in(&op->desc, "X");
    const fl_args *out = fl_desc_out(&op->desc, "Out");
    const fl_attr *names = fl_desc_attr(&op->desc, "recv_varnames");
    if (!x || !x->n || !out || !out->n)
        return FL_OK;
    if (out->n != 1)
        return fl_fail(FL_EINVAL,
                       "communicator: a recv leaves the pieces \"%s\".. to be "
                       "joined by another op; transpile with "
                       "runtime_split_send_recv",
                       out->name[0]);
    const int n = attr_length(names) ? names->n : 1;
    recv_var v = {.name = fl_arena_strdup(m->c->arena, out->name[0]), .n = n};
    const size_t size = (size_t)n * sizeof *v.current;
    FL_TRY(make_pieces(m, op, 0, n,
                       attr_length(names) ? names->strings : out->name, NULL,
                       &v.pieces));
    v.current = fl_arena_alloc(m->c->arena, size);
    v.arriving = fl_arena_alloc(m->c->arena, size);
    fl_push(&m->recvs, v);
    return FL_OK;
}

static fl_err read_ops(maker *m, const fl_program *p)
{
    const fl_block *b = p->blocks.at[0];
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_op *op = b->ops.at[i];
        if (!strcmp(op->desc.type, "send"))
            FL_TRY(read_send(m, op));
        else if (!strcmp(op->desc.type, "recv"))
            FL_TRY(read_recv(m, op));
    }
    if (m->sends.n)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "communicator: the program sends no gradient; start it "
                   "with what get_trainer_program gave, or "
                   "fleet.main_program");
}

static fl_err check_place(const fl_placement *place)
{
    if (!place || place->server >= 0)
        return fl_fail(
            FL_EINVAL,
            "communicator: the program is not a trainer's part of a job; start "
            "it with the one that get_trainer_program returns");
    if (!place->async)
        return fl_fail(FL_EINVAL,
                       "communicator: trainers of this job meet after every "
                       "step (sync_mode); there is nothing to gather");
    return FL_OK;
}

static fl_err read_program(fl_communicator *c, const fl_program *p)
{
    maker m = {.c = c, .place = fl_placement_of(p->job)};
    FL_TRY(check_place(m.place));
    c->half_async = m.place->half_async;
    const fl_err err = read_ops(&m, p);
    c->sends = m.sends.at;
    c->recvs = m.recvs.at;
    c->n_sends = (int)m.sends.n;
    c->n_recvs = (int)m.recvs.n;
    for (int i = 0; i < c->n_sends; i++) {
        send_var *v = &c->sends[i];
        pthread_mutex_init(&v->lock, NULL);
        pthread_cond_init(&v->has_room, &c->monotonic);
        fl_map_put(&c->grads, v->name, v);
    }
    for (int i = 0; i < c->n_recvs; i++) {
        pthread_mutex_init(&c->recvs[i].lock, NULL);
        fl_map_put(&c->params, c->recvs[i].name, &c->recvs[i]);
    }
    return err;
}

/* --- beginning and end --- */

static int64_t at_least_one(double x)
{
    return x < 1 ? 1 : x < 1 << 30 ? (int64_t)x : 1 << 30;
}

/* Fluid has a queue of gradients where this communicator has one sum, so `most`
 * is the smaller of the queue's size and the number that Fluid merges. Both
 * defaults of 8 are 20 in Fluid, which costs quality (docs/why.md). The network
 * has threads of its own: thread_pool_size is read and has no effect. */
static fl_err read_flags(fl_communicator *c)
{
    bool receiver = true, discard = false;
    double queue = 20, merge = 8, before_recv = 8, times = 5, threads = 5;
    FL_TRY(
        fl_flag_bool("FLAGS_communicator_independent_recv_thread", &receiver));
    FL_TRY(fl_flag_bool("FLAGS_communicator_fake_rpc", &discard));
    FL_TRY(fl_flag_number("FLAGS_communicator_send_queue_size", &queue));
    FL_TRY(fl_flag_number("FLAGS_communicator_max_merge_var_num", &merge));
    FL_TRY(fl_flag_number("FLAGS_communicator_min_send_grad_num_before_recv",
                          &before_recv));
    FL_TRY(fl_flag_number("FLAGS_communicator_send_wait_times", &times));
    FL_TRY(fl_flag_number("FLAGS_communicator_thread_pool_size", &threads));
    c->most = at_least_one(queue < merge ? queue : merge);
    c->pull_after = at_least_one(before_recv);
    c->patience = (times < 1 << 20 ? (int64_t)times : 1 << 20) * 10 * FL_MS;
    c->has_receiver = receiver && !c->half_async;
    c->discard = discard;
    if (discard)
        FL_WARN("FLAGS_communicator_fake_rpc: gradients are thrown away");
    return FL_OK;
}

static int is_ending(void *self)
{
    fl_communicator *c = self;
    pthread_mutex_lock(&c->lock);
    const bool ending = c->ending;
    pthread_mutex_unlock(&c->lock);
    return ending;
}

static void init_communicator(fl_communicator *c, fl_trainer *t)
{
    c->trainer = t;
    c->arena = fl_arena_new();
    c->watch =
        (fl_watch){.clock = fl_clock_real(), .poll = is_ending, .user = c};
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&c->monotonic);
    pthread_condattr_setclock(&c->monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->send_due, &c->monotonic);
    pthread_cond_init(&c->receive_due, &c->monotonic);
    pthread_cond_init(&c->progress, &c->monotonic);
}

static fl_err start_threads(fl_communicator *c, const fl_program *p)
{
    FL_TRY(read_program(c, p));
    FL_TRY(read_flags(c));
    FL_TRY(fl_pool_new("communicator", 1 + c->has_receiver, &c->pool));
    fl_pool_submit(c->pool, &c->threads, run_sender, c);
    if (c->has_receiver)
        fl_pool_submit(c->pool, &c->threads, run_receiver, c);
    return FL_OK;
}

fl_err fl_communicator_new(fl_trainer *t, const fl_program *p,
                           fl_communicator **out)
{
    fl_communicator *c = fl_mem_alloc(sizeof *c);
    init_communicator(c, t);
    const fl_err err = start_threads(c, p);
    if (err) {
        fl_communicator_free(c);
        return err;
    }
    *out = c;
    return FL_OK;
}

static void end_send_var(send_var *v)
{
    fl_gathered_fini(&v->filling);
    fl_gathered_fini(&v->sending);
    fl_tensor_fini(&v->merged.index);
    fl_tensor_fini(&v->merged.value);
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->has_room);
}

static void end_recv_var(recv_var *v)
{
    for (int i = 0; i < v->n; i++) {
        fl_received_clear(&v->current[i]);
        fl_received_clear(&v->arriving[i]);
        fl_vec_fini(&v->current[i]);
        fl_vec_fini(&v->arriving[i]);
    }
    pthread_mutex_destroy(&v->lock);
}

static void end_vars(fl_communicator *c)
{
    for (int i = 0; i < c->n_sends; i++)
        end_send_var(&c->sends[i]);
    for (int i = 0; i < c->n_recvs; i++)
        end_recv_var(&c->recvs[i]);
    fl_mem_free(c->sends);
    fl_mem_free(c->recvs);
    fl_map_fini(&c->grads);
    fl_map_fini(&c->params);
}

void fl_communicator_free(fl_communicator *c)
{
    if (!c || fl_trainer_check_process(c->trainer))
        return;
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_broadcast(&c->send_due);
    pthread_cond_broadcast(&c->receive_due);
    pthread_mutex_unlock(&c->lock);
    fl_pool_free(c->pool);
    end_vars(c);
    fl_mem_free(c->position);
    fl_vec_fini(&c->outgoing);
    fl_vec_fini(&c->lookups);
    fl_watch_fini(&c->watch);
    pthread_cond_destroy(&c->send_due);
    pthread_cond_destroy(&c->receive_due);
    pthread_cond_destroy(&c->progress);
    pthread_condattr_destroy(&c->monotonic);
    pthread_mutex_destroy(&c->lock);
    fl_arena_free(c->arena);
    fl_mem_free(c);
}
