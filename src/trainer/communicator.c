/* communicator.c - the sender, the receiver, and who waits for them.
 *
 *     put --> filling --swap--> away --push--> servers --pull--> here --> take
 *
 * Pushes and pulls that somebody waits for have numbers: a flush wants the next
 * push, and then the next pull. */
#include "trainer/communicator_in.h"

#include "base/flag.h"
#include "base/log.h"
#include "base/str.h"

#include <stdio.h>
#include <time.h>

#define REST  (200 * FL_MS) /* Ctrl-C is heard within it */
#define STALL (5 * FL_SEC)  /* waits that take so long are told */

static int64_t now(void)
{
    return fl_clock_now(fl_clock_real());
}

static void rest(pthread_cond_t *on, pthread_mutex_t *lock, int64_t until)
{
    const struct timespec at = {until / FL_SEC, until % FL_SEC};
    pthread_cond_timedwait(on, lock, &at);
}

/* --- failure --- */

/* The first one is everybody's. */
static void fail(fl_communicator *c, fl_err err)
{
    pthread_mutex_lock(&c->lock);
    if (!c->err && !c->ending) {
        c->err = err;
        snprintf(c->why, sizeof c->why, "%s", fl_errmsg());
    }
    pthread_cond_broadcast(&c->send);
    pthread_cond_broadcast(&c->receive);
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->n_out; i++) {
        fl_outflow *f = &c->out[i];
        pthread_mutex_lock(&f->lock);
        f->closed = true;
        pthread_cond_broadcast(&f->room);
        pthread_mutex_unlock(&f->lock);
    }
}

/* Under the lock. */
static fl_err failed(const fl_communicator *c)
{
    if (c->err)
        return fl_fail(c->err, "%s", c->why);
    return c->ending ? fl_fail(FL_EINVAL, "the communicator has been stopped")
                     : FL_OK;
}

/* --- waits of others --- */

typedef struct wait {
    const fl_watch *by;
    int64_t began, said;
} wait;

static wait begin_wait(const fl_watch *by)
{
    const int64_t t = now();
    return (wait){by, t, t};
}

/* Under the lock, which it leaves meanwhile. */
static void rest_once(const wait *w, pthread_cond_t *on, pthread_mutex_t *lock)
{
    const int64_t since = now();
    rest(on, lock, since + REST);
    fl_watch_waited(w->by, now() - since);
}

/* Between rests, without a lock. */
static fl_err look_around(wait *w, const char *for_what)
{
    const int64_t t = now();
    if (t - w->said >= STALL) {
        w->said = t;
        FL_INFO("the trainer waits for its communicator: %s, %.1f s", for_what,
                (double)(t - w->began) / (double)FL_SEC);
    }
    if (w->by && w->by->poll && w->by->poll(w->by->user))
        return fl_fail(FL_EINTR,
                       "the wait for the communicator was interrupted");
    return FL_OK;
}

/* Until *count has reached n; under the lock, which it may leave. */
static fl_err wait_until(fl_communicator *c, const int64_t *count, int64_t n,
                         const fl_watch *by, const char *for_what)
{
    wait w = begin_wait(by);
    while (*count < n) {
        FL_TRY(failed(c));
        rest_once(&w, &c->moved, &c->lock);
        if (*count >= n)
            break;
        pthread_mutex_unlock(&c->lock);
        const fl_err err = look_around(&w, for_what);
        pthread_mutex_lock(&c->lock);
        FL_TRY(err);
    }
    return FL_OK;
}

/* --- gradients in --- */

static fl_err unknown(const fl_map *all, const char *kind, const char *name)
{
    fl_near near = {.name = name};
    for (fl_entry *e = NULL; (e = fl_map_next(all, e));)
        fl_near_offer(&near, e->key);
    return fl_fail(FL_ENOENT,
                   "communicator: \"%s\" is no %s of the program that it was "
                   "started with%s%s%s",
                   name, kind, near.best ? "; the nearest is \"" : "",
                   near.best ? near.best : "", near.best ? "\"" : "");
}

/* Under the flow's lock, which it may leave. */
static fl_err wait_for_room(fl_communicator *c, fl_outflow *f,
                            const fl_watch *by)
{
    wait w = begin_wait(by);
    char what[256];
    snprintf(what, sizeof what, "room for gradient \"%s\", of which %lld wait",
             f->name, (long long)c->limit);
    while (f->filling.n >= c->limit && !c->half && !f->closed) {
        rest_once(&w, &f->room, &f->lock);
        if (f->filling.n < c->limit || f->closed)
            break;
        pthread_mutex_unlock(&f->lock);
        const fl_err err = look_around(&w, what);
        pthread_mutex_lock(&f->lock);
        FL_TRY(err);
    }
    return FL_OK;
}

/* The heap has n now: somebody may have to know. */
static fl_err tell_sender(fl_communicator *c, int64_t n)
{
    pthread_mutex_lock(&c->lock);
    const fl_err err = failed(c);
    c->touched = now();
    if (n > c->most) {
        c->most = n;
        if (n == 1 || n >= c->limit)
            pthread_cond_signal(&c->send);
    }
    pthread_mutex_unlock(&c->lock);
    return err;
}

fl_err fl_communicator_put(fl_communicator *c, const char *grad,
                           const fl_value *v, const fl_watch *by)
{
    fl_outflow *f = fl_map_get(&c->grads, grad);
    FL_TRY(fl_trainer_check_process(c->trainer));
    if (!f)
        return unknown(&c->grads, "gradient", grad);
    if (fl_value_is_empty(v))
        return FL_OK;
    pthread_mutex_lock(&f->lock);
    fl_err err = f->filling.n < c->limit ? FL_OK : wait_for_room(c, f, by);
    const bool closed = f->closed;
    if (!err && !closed)
        err = fl_heap_add(&f->filling, f->name, v);
    const int64_t n = f->filling.n;
    pthread_mutex_unlock(&f->lock);
    return err ? err : tell_sender(c, n);
}

/* --- the sender --- */

/* All that has gathered goes away; how many batches that is. */
static int64_t take_all(fl_communicator *c)
{
    int64_t most = 0;
    for (int i = 0; i < c->n_out; i++) {
        fl_outflow *f = &c->out[i];
        pthread_mutex_lock(&f->lock);
        const fl_heap empty = f->away;
        f->away = f->filling;
        f->filling = empty;
        pthread_cond_broadcast(&f->room);
        pthread_mutex_unlock(&f->lock);
        if (f->away.n > most)
            most = f->away.n;
    }
    return most;
}

/* Piece by piece: workers look rows up between them. What a lost session has
 * not applied is dropped. */
static fl_err push(fl_communicator *c, bool *lost)
{
    c->partings.n = 0;
    fl_arena_reset(c->round);
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].away.n)
            FL_TRY(fl_outflow_part(c, &c->out[i]));
    if (!c->partings.n || c->fake)
        return FL_OK;
    for (int64_t i = 0; i < c->partings.n && !*lost; i++)
        FL_TRY(fl_trainer_push(c->trainer, &c->watch, 1, &c->partings.at[i],
                               i + 1 == c->partings.n, lost));
    return FL_OK;
}

/* What follows of n batches that were pushed; under the lock. */
static void pushed(fl_communicator *c, int64_t n, bool lost, int64_t number)
{
    c->done.batches += lost ? 0 : n;
    c->done.lost += lost ? n : 0;
    c->done.pushes += n > 0;
    c->unseen = lost ? c->enough : c->unseen + n;
    c->push_done = number;
    pthread_cond_broadcast(&c->moved);
    if (c->unseen >= c->enough)
        pthread_cond_signal(&c->receive);
}

static fl_err send_all(fl_communicator *c)
{
    bool lost = false;
    pthread_mutex_lock(&c->lock);
    const int64_t number = c->push_wanted;
    c->most = 0;
    pthread_mutex_unlock(&c->lock);
    const int64_t n = take_all(c);
    const fl_err err = push(c, &lost);
    for (int i = 0; i < c->n_out; i++)
        c->out[i].away.n = 0;
    if (err)
        return err;
    if (lost)
        FL_WARN("the gradients of %lld batches went with the session that was "
                "lost",
                (long long)n);
    pthread_mutex_lock(&c->lock);
    pushed(c, n, lost, number);
    pthread_mutex_unlock(&c->lock);
    return FL_OK;
}

/* --- the receiver --- */

static fl_err pull(fl_communicator *c)
{
    c->lookups.n = 0;
    for (int i = 0; i < c->n_in; i++)
        for (int k = 0; k < c->in[i].n; k++)
            fl_push(&c->lookups, (fl_lookup){.server = c->in[i].from[k].server,
                                             .table = c->in[i].from[k].name,
                                             .n = -1,
                                             .out = &c->in[i].coming[k]});
    if (c->lookups.n && !c->fake)
        FL_TRY(fl_trainer_lookup(c->trainer, &c->watch, (int)c->lookups.n,
                                 c->lookups.at));
    for (int i = 0; i < c->n_in && !c->fake; i++) {
        fl_inflow *f = &c->in[i];
        pthread_mutex_lock(&f->lock);
        fl_tensor *old = f->here;
        f->here = f->coming;
        f->coming = old;
        f->pulls++;
        pthread_mutex_unlock(&f->lock);
    }
    return FL_OK;
}

static fl_err receive_all(fl_communicator *c)
{
    pthread_mutex_lock(&c->lock);
    const int64_t number = c->pull_wanted;
    c->unseen = 0;
    pthread_mutex_unlock(&c->lock);
    FL_TRY(pull(c));
    pthread_mutex_lock(&c->lock);
    c->pull_done = number;
    c->done.pulls++;
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
    return FL_OK;
}

/* --- their threads --- */

static bool all_arrived(const fl_communicator *c)
{
    return c->arrived && c->arrived >= c->workers;
}

/* Under the lock. */
static bool pull_is_due(const fl_communicator *c)
{
    return c->pull_wanted > c->pull_done || c->unseen >= c->enough;
}

static bool push_is_due(const fl_communicator *c)
{
    if (c->push_wanted > c->push_done)
        return true;
    if (c->half)
        return all_arrived(c);
    return c->most >= c->limit || (c->most && now() >= c->touched + c->linger);
}

static bool sender_is_due(const fl_communicator *c)
{
    return push_is_due(c) || (!c->pulls_apart && pull_is_due(c));
}

/* False: it ends. */
static bool sleep_until_due(fl_communicator *c, bool sender)
{
    pthread_mutex_lock(&c->lock);
    pthread_cond_t *on = sender ? &c->send : &c->receive;
    while (!c->ending && !c->err &&
           !(sender ? sender_is_due(c) : pull_is_due(c))) {
        if (sender && c->most && !c->half)
            rest(on, &c->lock, c->touched + c->linger);
        else
            pthread_cond_wait(on, &c->lock);
    }
    const bool go_on = !c->ending && !c->err;
    pthread_mutex_unlock(&c->lock);
    return go_on;
}

/* Those who met see what all of them have computed. */
static void release(fl_communicator *c, bool met)
{
    pthread_mutex_lock(&c->lock);
    if (met) {
        c->arrived = 0;
        c->meeting++;
        pthread_cond_broadcast(&c->moved);
    }
    pthread_mutex_unlock(&c->lock);
}

static fl_err send_round(fl_communicator *c)
{
    pthread_mutex_lock(&c->lock);
    const bool push_due = push_is_due(c), met = c->half && all_arrived(c);
    pthread_mutex_unlock(&c->lock);
    if (push_due)
        FL_TRY(send_all(c));
    pthread_mutex_lock(&c->lock);
    const bool pull_due = !c->pulls_apart && (met || pull_is_due(c));
    pthread_mutex_unlock(&c->lock);
    if (pull_due)
        FL_TRY(receive_all(c));
    release(c, met);
    return FL_OK;
}

static void run_sender(void *self)
{
    fl_communicator *c = self;
    while (sleep_until_due(c, true)) {
        const fl_err err = send_round(c);
        if (err)
            fail(c, err);
    }
}

static void run_receiver(void *self)
{
    fl_communicator *c = self;
    while (sleep_until_due(c, false)) {
        const fl_err err = receive_all(c);
        if (err)
            fail(c, err);
    }
}

/* --- parameters out --- */

static fl_err misfit(const fl_inflow *f)
{
    return fl_fail(FL_ESHAPE,
                   "communicator: parameter \"%s\" came with another shape "
                   "than it has here",
                   f->name);
}

static bool fits(const fl_inflow *f, const fl_tensor *out)
{
    size_t bytes = 0;
    for (int i = 0; i < f->n; i++) {
        if (f->here[i].dtype != out->dtype)
            return false;
        bytes += fl_tensor_bytes(&f->here[i]);
    }
    return bytes == fl_tensor_bytes(out);
}

/* Workers compute with it meanwhile, on purpose. The thread sanitizer knows
 * this function by its name. */
static void write_shared_parameter(const fl_inflow *f, fl_tensor *out)
{
    char *to = out->data;
    for (int i = 0; i < f->n; i++) {
        const size_t bytes = fl_tensor_bytes(&f->here[i]);
        if (bytes)
            memcpy(to, f->here[i].data, bytes);
        to += bytes;
    }
}

static fl_err take(fl_inflow *f, fl_tensor *out)
{
    if (!f->pulls || (f->taken == f->pulls && f->taker == out->data))
        return FL_OK;
    if (!out->data || !fits(f, out))
        return misfit(f);
    write_shared_parameter(f, out);
    f->taken = f->pulls;
    f->taker = out->data;
    return FL_OK;
}

fl_err fl_communicator_take(fl_communicator *c, const char *param,
                            fl_tensor *out)
{
    fl_inflow *f = fl_map_get(&c->params, param);
    FL_TRY(fl_trainer_check_process(c->trainer));
    if (!f)
        return unknown(&c->params, "parameter", param);
    pthread_mutex_lock(&f->lock);
    const fl_err err = take(f, out);
    pthread_mutex_unlock(&f->lock);
    return err;
}

fl_err fl_communicator_fill(fl_communicator *c, fl_scope *s)
{
    for (int i = 0; i < c->n_in; i++) {
        fl_value *v = fl_scope_find(s, c->in[i].name);
        if (v && v->kind == FL_LOD_TENSOR && v->tensor.data)
            FL_TRY(fl_communicator_take(c, c->in[i].name, &v->tensor));
    }
    return FL_OK;
}

/* --- those who meet, those who flush --- */

fl_err fl_communicator_meet(fl_communicator *c, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(c->trainer));
    pthread_mutex_lock(&c->lock);
    const int64_t next = c->meeting + 1;
    c->arrived++;
    if (all_arrived(c))
        pthread_cond_signal(&c->send);
    const fl_err err = wait_until(c, &c->meeting, next, by,
                                  "the other threads, and the servers");
    if (err && c->meeting < next)
        c->arrived--;
    pthread_mutex_unlock(&c->lock);
    return err;
}

void fl_communicator_workers(fl_communicator *c, int more)
{
    if (fl_trainer_check_process(c->trainer))
        return; /* the first put says why */
    pthread_mutex_lock(&c->lock);
    c->workers += more;
    if (all_arrived(c))
        pthread_cond_signal(&c->send);
    pthread_mutex_unlock(&c->lock);
}

static fl_err flush(fl_communicator *c, const fl_watch *by)
{
    const int64_t push_number = ++c->push_wanted;
    pthread_cond_signal(&c->send);
    FL_TRY(wait_until(c, &c->push_done, push_number, by,
                      "all gradients to be sent"));
    const int64_t pull_number = ++c->pull_wanted;
    pthread_cond_signal(c->pulls_apart ? &c->receive : &c->send);
    return wait_until(c, &c->pull_done, pull_number, by,
                      "parameters to be received");
}

fl_err fl_communicator_flush(fl_communicator *c, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(c->trainer));
    pthread_mutex_lock(&c->lock);
    const fl_err err = flush(c, by);
    pthread_mutex_unlock(&c->lock);
    return err;
}

fl_communicated fl_communicator_done(fl_communicator *c)
{
    pthread_mutex_lock(&c->lock);
    const fl_communicated done = c->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}

/* --- its life --- */

static int64_t at_least_one(double x)
{
    return x < 1 ? 1 : x < 1 << 30 ? (int64_t)x : 1 << 30;
}

/* One sum takes the place of Fluid's queue of gradients, so what may wait is
 * the smaller of what may be queued and what may be merged. Both eights are 20
 * in Fluid, which costs quality (docs/why.md). The network has threads of its
 * own: thread_pool_size is read and has no effect. */
static fl_err read_flags(fl_communicator *c)
{
    bool apart = true, fake = false;
    double queue = 20, merge = 8, before_recv = 8, times = 5, threads = 5;
    FL_TRY(fl_flag_bool("FLAGS_communicator_independent_recv_thread", &apart));
    FL_TRY(fl_flag_bool("FLAGS_communicator_fake_rpc", &fake));
    FL_TRY(fl_flag_number("FLAGS_communicator_send_queue_size", &queue));
    FL_TRY(fl_flag_number("FLAGS_communicator_max_merge_var_num", &merge));
    FL_TRY(fl_flag_number("FLAGS_communicator_min_send_grad_num_before_recv",
                          &before_recv));
    FL_TRY(fl_flag_number("FLAGS_communicator_send_wait_times", &times));
    FL_TRY(fl_flag_number("FLAGS_communicator_thread_pool_size", &threads));
    c->limit = at_least_one(queue < merge ? queue : merge);
    c->enough = at_least_one(before_recv);
    c->linger = (times < 1 << 20 ? (int64_t)times : 1 << 20) * 10 * FL_MS;
    c->pulls_apart = apart && !c->half;
    c->fake = fake;
    if (fake)
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

static void init(fl_communicator *c)
{
    c->arena = fl_arena_new();
    c->round = fl_arena_new();
    c->watch =
        (fl_watch){.clock = fl_clock_real(), .poll = is_ending, .user = c};
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&c->monotonic);
    pthread_condattr_setclock(&c->monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->send, &c->monotonic);
    pthread_cond_init(&c->receive, &c->monotonic);
    pthread_cond_init(&c->moved, &c->monotonic);
}

static fl_err start(fl_communicator *c, const fl_program *p)
{
    FL_TRY(fl_comm_make(c, p));
    FL_TRY(read_flags(c));
    FL_TRY(fl_pool_new("communicator", 1 + c->pulls_apart, &c->pool));
    fl_pool_submit(c->pool, &c->group, run_sender, c);
    if (c->pulls_apart)
        fl_pool_submit(c->pool, &c->group, run_receiver, c);
    return FL_OK;
}

fl_err fl_communicator_new(fl_trainer *t, const fl_program *p,
                           fl_communicator **out)
{
    fl_communicator *c = fl_mem_alloc(sizeof *c);
    c->trainer = t;
    init(c);
    const fl_err err = start(c, p);
    if (err) {
        fl_communicator_free(c);
        return err;
    }
    *out = c;
    return FL_OK;
}

void fl_communicator_free(fl_communicator *c)
{
    if (!c || fl_trainer_check_process(c->trainer))
        return;
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_broadcast(&c->send);
    pthread_cond_broadcast(&c->receive);
    pthread_mutex_unlock(&c->lock);
    fl_pool_free(c->pool);
    fl_comm_unmake(c);
    fl_vec_fini(&c->partings);
    fl_vec_fini(&c->lookups);
    fl_watch_fini(&c->watch);
    pthread_cond_destroy(&c->send);
    pthread_cond_destroy(&c->receive);
    pthread_cond_destroy(&c->moved);
    pthread_condattr_destroy(&c->monotonic);
    pthread_mutex_destroy(&c->lock);
    fl_arena_free(c->round);
    fl_arena_free(c->arena);
    fl_mem_free(c);
}
