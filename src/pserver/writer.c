/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c - takes snapshots through the threads of the owners.
 *
 * Easy to get wrong: a call that serves the thread may come after the task that
 * leaves, so it does not use what belongs to one snapshot. */
#include "pserver/writer.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"

#include <pthread.h>

/* A snapshot that is being taken. */
typedef struct taking {
    fl_writer *writer;
    fl_capture *capture;
    fl_snapshot_index index;
    int left; /* owners that have not left it; under the writer's lock */
} taking;

/* The part of one owner in it. */
typedef struct owner_task {
    taking *of;
    int owner;
} owner_task;

struct fl_writer {
    fl_writer_opts opts;
    fl_pool *pool;
    fl_group group;
    fl_capture **of; /* by owner. Thread: the owner's */
    pthread_mutex_t lock;
    fl_capture *capture; /* of the snapshot that is being written, or NULL */
    int64_t number;      /* of this snapshot */
};

static void submit_tasks(taking *t, void (*fn)(void *arg))
{
    const fl_writer_opts *o = &t->writer->opts;
    for (int i = 0, n = o->owners; i < n; i++) {
        owner_task *x = fl_mem_alloc(sizeof *x);
        *x = (owner_task){t, i};
        o->submit(o->store, i, fn, x);
    }
}

/* The owner does not need the capture any more. */
static void run_leave_task(void *arg)
{
    owner_task *x = arg;
    taking *t = x->of;
    fl_writer *w = t->writer;
    w->of[x->owner] = NULL;
    pthread_mutex_lock(&w->lock);
    const bool last = !--t->left;
    if (last)
        w->capture = NULL;
    pthread_mutex_unlock(&w->lock);
    fl_mem_free(x);
    if (!last)
        return;
    fl_capture_free(t->capture);
    fl_snapshot_index_fini(&t->index);
    fl_mem_free(t);
}

/* A call to an owner to serve the thread. */
typedef struct serve_call {
    fl_writer *writer;
    int owner;
} serve_call;

static void run_serve_call(void *arg)
{
    serve_call *x = arg;
    fl_capture *c = x->writer->of[x->owner];
    if (c)
        fl_capture_serve(c, x->owner);
    fl_mem_free(x);
}

static void poke_owner(void *user, int owner)
{
    taking *t = user;
    const fl_writer_opts *o = &t->writer->opts;
    serve_call *x = fl_mem_alloc(sizeof *x);
    *x = (serve_call){t->writer, owner};
    o->serve(o->store, owner, run_serve_call, x);
}

static fl_err write_part(taking *t)
{
    const fl_writer_opts *o = &t->writer->opts;
    fl_stage to;
    if (!o->server)
        fl_snapshot_clear(o->disk, o->base, t->index.number);
    fl_err err = fl_snapshot_begin(&to, o->disk, o->base, &t->index);
    if (!err)
        err = fl_capture_write(t->capture, &to, &t->index, poke_owner, t);
    if (!err)
        err = fl_snapshot_end(&to, &t->index);
    fl_stage_fini(&to);
    if (!err)
        fl_snapshot_tidy(o->disk, o->base, o->server, t->index.number);
    return err;
}

/* Thread: the writer's. */
static void run_write_task(void *arg)
{
    taking *t = arg;
    const fl_writer_opts *o = &t->writer->opts;
    const fl_err err = write_part(t);
    (void)fl_capture_stop(t->capture);
    if (o->written)
        o->written(o->self, t->index.number, err ? fl_errmsg() : NULL);
    submit_tasks(t, run_leave_task);
}

static void run_enter_task(void *arg)
{
    owner_task *x = arg;
    taking *t = x->of;
    fl_writer *w = t->writer;
    w->of[x->owner] = t->capture;
    if (fl_capture_enter(t->capture, x->owner))
        fl_pool_submit(w->pool, &w->group, run_write_task, t);
    fl_mem_free(x);
}

/* --- public functions --- */

fl_err fl_writer_new(const fl_writer_opts *opts, fl_writer **out)
{
    fl_writer *w = fl_mem_alloc(sizeof *w);
    w->opts = *opts;
    w->of = fl_mem_alloc((size_t)opts->owners * sizeof *w->of);
    pthread_mutex_init(&w->lock, NULL);
    const fl_err err = fl_pool_new("snapshot", 1, &w->pool);
    if (err) {
        fl_writer_free(w);
        return err;
    }
    *out = w;
    return FL_OK;
}

void fl_writer_free(fl_writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    if (w->capture)
        (void)fl_capture_stop(w->capture);
    pthread_mutex_unlock(&w->lock);
    w->opts.settle(w->opts.store); /* tasks that enter wake the thread */
    fl_pool_free(w->pool);
    w->opts.settle(w->opts.store); /* tasks that leave use the writer */
    pthread_mutex_destroy(&w->lock);
    fl_mem_free(w->of);
    fl_mem_free(w);
}

bool fl_writer_busy(fl_writer *w)
{
    pthread_mutex_lock(&w->lock);
    const bool busy = w->capture != NULL;
    pthread_mutex_unlock(&w->lock);
    return busy;
}

void fl_writer_begin(fl_writer *w, fl_capture *of, const fl_moment *at)
{
    taking *t = fl_mem_alloc(sizeof *t);
    *t = (taking){.writer = w, .capture = of, .left = w->opts.owners};
    t->index = (fl_snapshot_index){.server = w->opts.server,
                                   .servers = w->opts.servers,
                                   .number = at->number,
                                   .version = at->version};
    fl_str_bytes(&t->index.image, at->image, at->n);
    pthread_mutex_lock(&w->lock);
    w->capture = of;
    w->number = at->number;
    pthread_mutex_unlock(&w->lock);
    submit_tasks(t, run_enter_task);
}

void fl_writer_lacks_room(fl_writer *w, int owner)
{
    if (w->of[owner])
        return; /* the owner serves the thread while it waits */
    pthread_mutex_lock(&w->lock);
    const int64_t number = w->number;
    const bool stops = w->capture && fl_capture_stop(w->capture);
    pthread_mutex_unlock(&w->lock);
    if (stops)
        FL_WARN("snapshot %lld is given up: an owner thread has to take part "
                "in it, and waits for room in the state",
                (long long)number);
}

void fl_writer_waits(fl_writer *w, fl_str *rows)
{
    pthread_mutex_lock(&w->lock);
    const int waiting = w->capture ? fl_capture_waiting(w->capture) : 0;
    const long long number = w->number;
    pthread_mutex_unlock(&w->lock);
    if (waiting)
        fl_str_printf(rows,
                      "owner threads that wait for snapshot %lld: %d; the "
                      "limit of copied values is reached, and they go on when "
                      "the disk has some of them\n",
                      number, waiting);
}

fl_capture *fl_writer_capture(const fl_writer *w, int owner)
{
    return w ? w->of[owner] : NULL;
}
