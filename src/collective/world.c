/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - finds worlds by their endpoints, by name and by ring.
 *
 * Easy to get wrong: a wait of the backend runs on the caller's thread, where
 * it may poll the caller's watch, or on the reducer's thread, where it must
 * not. */
#include "collective/world.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/pool.h"
#include "cluster/key.h"
#include "cluster/tls.h"
#include "collective/agree.h"
#include "net/address.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A program that all ranks have agreed on. */
typedef struct agreed {
    uint64_t uid, version;
} agreed;

struct fl_world {
    fl_count refs;
    int ranks, rank;
    char **endpoints;
    fl_backend backend; /* self NULL: the world has ended */
    fl_reducer *reducer;
    fl_tls *tls;  /* of the connections; NULL: plain text */
    fl_watch *by; /* watch of a call that the reducer does not make; or NULL */
    FL_VEC(agreed) agreed;
    FL_VEC(char *) texts; /* texts of the programs that ranks agreed on */
};

typedef struct name {
    char *id;
    fl_world *world;
} name;

typedef struct ring {
    int64_t number;
    fl_world *world;
} ring;

struct fl_worlds {
    pthread_mutex_t lock;
    FL_VEC(fl_world *) all;
    FL_VEC(name) names;
    FL_VEC(ring) rings;
    fl_job_key *key; /* NULL: not read yet */
};

/* --- one world ------------------------------------------------------------ */

fl_world *fl_world_ref(fl_world *w)
{
    fl_count_up(&w->refs);
    return w;
}

void fl_world_unref(fl_world *w)
{
    if (!w || fl_count_down(&w->refs))
        return;
    fl_reducer_free(w->reducer);
    if (w->backend.self)
        w->backend.free(w->backend.self);
    fl_tls_free(w->tls);
    for (int i = 0; i < w->ranks; i++)
        fl_mem_free(w->endpoints[i]);
    for (int64_t i = 0; i < w->texts.n; i++)
        fl_mem_free(w->texts.at[i]);
    fl_mem_free(w->endpoints);
    fl_vec_fini(&w->texts);
    fl_vec_fini(&w->agreed);
    fl_mem_free(w);
}

int fl_world_rank(const fl_world *w)
{
    return w->rank;
}

int fl_world_ranks(const fl_world *w)
{
    return w->ranks;
}

static bool watch_stops(void *user)
{
    const fl_watch *by = user;
    return by && by->poll && by->poll(by->user);
}

static bool stop_wait(void *user)
{
    const fl_world *w = user;
    return w->by ? watch_stops(w->by)
                 : w->reducer && fl_reducer_stops(w->reducer);
}

static void tell_late(void *user, const char *sentence)
{
    (void)user;
    FL_WARN("%s", sentence);
}

static fl_err check_alive(const fl_world *w)
{
    return w->backend.self
               ? FL_OK
               : fl_fail(FL_EINVAL,
                         "rank %d has left its job: no more calls can be made",
                         w->rank);
}

fl_err fl_world_reduce(fl_world *w, const fl_reduction *x)
{
    FL_TRY(check_alive(w));
    return fl_reducer_add(w->reducer, x);
}

fl_err fl_world_wait(fl_world *w, fl_watch *by)
{
    FL_TRY(check_alive(w));
    const int64_t start = fl_clock_now(fl_clock_real());
    const fl_err err = fl_reducer_wait(w->reducer, watch_stops, by);
    fl_watch_waited(by, fl_clock_now(fl_clock_real()) - start);
    return err;
}

void fl_world_abandon(fl_world *w)
{
    if (!w->backend.self)
        return;
    fl_reducer_stop(w->reducer);
    w->backend.fail(w->backend.self, "it stopped in the middle of a step");
}

/* --- calls ---------------------------------------------------------------- */

/* Begin a call that waits for its result. Values that were added before are
 * reduced first, so that calls are made in the order of the program. */
static fl_err begin_call(fl_world *w, const char *var, fl_watch *by)
{
    FL_TRY(fl_world_wait(w, by));
    w->by = by;
    w->backend.about(
        w->backend.self,
        &(fl_mesh_subject){.var = var, .steps = fl_reducer_steps(w->reducer)});
    return FL_OK;
}

static fl_err end_call(fl_world *w, fl_err err)
{
    w->by = NULL;
    return err;
}

fl_err fl_world_broadcast(fl_world *w, const char *var, int64_t root, void *x,
                          size_t size, fl_watch *by)
{
    if (root < 0 || root >= w->ranks)
        return fl_fail(FL_EINVAL,
                       "broadcast: root is rank %lld, expected 0 to %d",
                       (long long)root, w->ranks - 1);
    FL_TRY(begin_call(w, var, by));
    return end_call(w,
                    w->backend.broadcast(w->backend.self, (int)root, x, size));
}

fl_err fl_world_all_gather(fl_world *w, const char *var, void *x,
                           const size_t *at, fl_watch *by)
{
    FL_TRY(begin_call(w, var, by));
    return end_call(w, w->backend.all_gather(w->backend.self, x, at));
}

fl_err fl_world_reduce_scatter(fl_world *w, const char *var, fl_dtype type,
                               void *x, int64_t n, fl_watch *by)
{
    FL_TRY(begin_call(w, var, by));
    return end_call(w, w->backend.reduce_scatter(w->backend.self, FL_REDUCE_SUM,
                                                 type, x, n));
}

static bool is_agreed(const fl_world *w, const fl_program *p)
{
    for (int64_t i = w->agreed.n; i-- > 0;)
        if (w->agreed.at[i].uid == p->uid &&
            w->agreed.at[i].version == p->version)
            return true;
    return false;
}

static bool is_known(const fl_world *w, const char *text)
{
    for (int64_t i = 0; i < w->texts.n; i++)
        if (!strcmp(w->texts.at[i], text))
            return true;
    return false;
}

fl_err fl_world_agree(fl_world *w, const fl_program *p, fl_watch *by)
{
    if (is_agreed(w, p))
        return FL_OK;
    char *text = fl_agree_text(p);
    const bool known = is_known(w, text);
    fl_err err = known ? FL_OK : begin_call(w, NULL, by);
    if (!err && !known)
        err = end_call(w, fl_agree(&w->backend, w->ranks, w->rank, text));
    if (!err)
        fl_push(&w->agreed, (agreed){p->uid, p->version});
    if (!err && !known)
        fl_push(&w->texts, text);
    else
        fl_mem_free(text);
    return err;
}

/* --- join ----------------------------------------------------------------- */

/* 1 s to about 34 years, in ns. */
static int64_t limit_ns(double seconds)
{
    const double most = 1 << 30;
    return (int64_t)((seconds < 1      ? 1
                      : seconds < most ? seconds
                                       : most) *
                     (double)FL_SEC);
}

static fl_err read_options(fl_mesh_opts *o, int *overlap)
{
    double start = 600, silence = 1800; /* seconds */
    bool on = false;
    const char *text = fl_flag_text("FLUID_OVERLAP");
    FL_TRY(fl_flag_number("FLUID_START", &start));
    FL_TRY(fl_flag_number("FLUID_COLLECTIVE_TIMEOUT", &silence));
    FL_TRY(fl_flag_bool("FLUID_OVERLAP", &on));
    FL_TRY(fl_flag_bool("FLUID_PORT_HELD", &o->held));
    *overlap = text && *text ? on : -1;
    o->join_timeout = limit_ns(start);
    o->timeout = limit_ns(silence);
    return FL_OK;
}

/* Warn if other hosts can reach this rank and there is no job key and no TLS.
 */
static void warn_without_key(const char *endpoint)
{
    fl_address at[FL_ADDRESSES];
    char text[FL_ADDRESS_TEXT];
    int n;
    if (fl_address_find(endpoint, at, &n))
        return;
    fl_address_text(&at[0], text);
    if (!fl_address_loopback(text))
        FL_WARN("%s is not a loopback address: gradients travel as plain text, "
                "and whoever reaches the port may join; set FLUID_JOB_KEY_FILE "
                "on all ranks to keep strangers out, or use TLS "
                "(docs/clusters.md)",
                endpoint);
}

static fl_err join_world(fl_world *w, const fl_job_key *key, fl_watch *by)
{
    fl_mesh_opts o = {.endpoints = (const char *const *)w->endpoints,
                      .world = w->ranks,
                      .rank = w->rank,
                      .key = key->bytes,
                      .key_size = key->size,
                      .poll = stop_wait,
                      .late = tell_late,
                      .user = w};
    int overlap;
    FL_TRY(read_options(&o, &overlap));
    FL_TRY(fl_job_tls_read(&w->tls));
    o.tls = w->tls;
    const char *backend = fl_flag_text("FLUID_COLLECTIVE");
    const bool own = !backend || !strcmp(backend, "ring");
    if (own && !key->size && !w->tls)
        warn_without_key(w->endpoints[w->rank]);
    w->by = by;
    FL_TRY(own ? fl_backend_ring(&o, &w->backend)
               : fl_backend_plugin(backend, &o, &w->backend));
    w->by = NULL;
    w->reducer =
        fl_reducer_new(&w->backend, w->ranks, w->rank,
                       overlap < 0 ? fl_cores() > w->backend.local : overlap);
    return FL_OK;
}

static fl_world *new_world(int ranks, const char *const *endpoints, int rank)
{
    fl_world *w = fl_mem_alloc(sizeof *w);
    fl_count_init(&w->refs, 1);
    w->ranks = ranks;
    w->rank = rank;
    w->endpoints = fl_mem_alloc((size_t)ranks * sizeof *w->endpoints);
    for (int i = 0; i < ranks; i++)
        w->endpoints[i] = fl_mem_strdup(endpoints[i]);
    return w;
}

static bool is_world(const fl_world *w, int ranks, const char *const *endpoints,
                     int rank)
{
    if (w->ranks != ranks || w->rank != rank || !w->backend.self)
        return false;
    for (int i = 0; i < ranks; i++)
        if (strcmp(w->endpoints[i], endpoints[i]))
            return false;
    return true;
}

static fl_world *find_world(const fl_worlds *w, int ranks,
                            const char *const *endpoints, int rank)
{
    for (int64_t i = 0; i < w->all.n; i++)
        if (is_world(w->all.at[i], ranks, endpoints, rank))
            return w->all.at[i];
    return NULL;
}

static void set_name(fl_worlds *w, const char *id, fl_world *world)
{
    for (int64_t i = 0; i < w->names.n; i++)
        if (!strcmp(w->names.at[i].id, id)) {
            w->names.at[i].world = world;
            return;
        }
    fl_push(&w->names, (name){fl_mem_strdup(id), world});
}

static fl_err new_joined(int ranks, const char *const *endpoints, int rank,
                         const fl_job_key *key, fl_watch *by, fl_world **out)
{
    fl_world *w = new_world(ranks, endpoints, rank);
    const fl_err err = join_world(w, key, by);
    if (err) {
        const fl_sentence why = fl_sentence_keep();
        fl_world_unref(w);
        fl_sentence_restore(&why);
        return err;
    }
    *out = w;
    return FL_OK;
}

/* Get the key, which is read only once, since a descriptor cannot be read
 * again.
 */
static fl_err get_key(fl_worlds *w, const fl_job_key **out)
{
    fl_err err = FL_OK;
    pthread_mutex_lock(&w->lock);
    if (!w->key) {
        fl_job_key *key = fl_mem_alloc(sizeof *key);
        err = fl_job_key_read(key);
        if (err)
            fl_mem_free(key);
        else
            w->key = key;
    }
    *out = w->key;
    pthread_mutex_unlock(&w->lock);
    return err;
}

/* The lock is not held while the ranks meet. */
fl_err fl_worlds_join(fl_worlds *w, const char *id, int ranks,
                      const char *const *endpoints, int rank,
                      const fl_program *p, fl_watch *by)
{
    pthread_mutex_lock(&w->lock);
    fl_world *world = find_world(w, ranks, endpoints, rank);
    pthread_mutex_unlock(&w->lock);
    const bool is_new = !world;
    const fl_job_key *key;
    FL_TRY(get_key(w, &key));
    if (is_new)
        FL_TRY(new_joined(ranks, endpoints, rank, key, by, &world));
    pthread_mutex_lock(&w->lock);
    if (is_new)
        fl_push(&w->all, world);
    set_name(w, id, world);
    pthread_mutex_unlock(&w->lock);
    return fl_world_agree(world, p, by);
}

static fl_err name_world(fl_worlds *w, int64_t number, const char *id,
                         int64_t ranks, int64_t rank)
{
    fl_world *world = NULL;
    for (int64_t i = 0; i < w->names.n; i++)
        if (!strcmp(w->names.at[i].id, id))
            world = w->names.at[i].world;
    if (!world)
        return fl_fail(FL_ENOENT,
                       "ring %lld: no ranks were joined as \"%s\": "
                       "c_gen_nccl_id comes first",
                       (long long)number, id);
    if (ranks && (world->ranks != ranks || world->rank != rank))
        return fl_fail(FL_EINVAL,
                       "ring %lld is rank %lld of %lld, but \"%s\" was joined "
                       "as rank %d of %d",
                       (long long)number, (long long)rank, (long long)ranks, id,
                       world->rank, world->ranks);
    for (int64_t i = 0; i < w->rings.n; i++)
        if (w->rings.at[i].number == number) {
            w->rings.at[i].world = world;
            return FL_OK;
        }
    fl_push(&w->rings, (ring){number, world});
    return FL_OK;
}

fl_err fl_worlds_name(fl_worlds *w, int64_t number, const char *id,
                      int64_t ranks, int64_t rank)
{
    pthread_mutex_lock(&w->lock);
    const fl_err err = name_world(w, number, id, ranks, rank);
    pthread_mutex_unlock(&w->lock);
    return err;
}

fl_err fl_worlds_find(fl_worlds *w, int64_t number, fl_world **out)
{
    fl_world *found = NULL;
    pthread_mutex_lock(&w->lock);
    for (int64_t i = 0; i < w->rings.n; i++)
        if (w->rings.at[i].number == number)
            found = fl_world_ref(w->rings.at[i].world);
    pthread_mutex_unlock(&w->lock);
    if (!found)
        return fl_fail(FL_ENOENT,
                       "ring %lld has no ranks yet: run the startup program "
                       "first, which connects them",
                       (long long)number);
    *out = found;
    return FL_OK;
}

/* --- all worlds ----------------------------------------------------------- */

fl_worlds *fl_worlds_new(void)
{
    fl_worlds *w = fl_mem_alloc(sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

static void leave_world(fl_world *w, int code, const char *why)
{
    if (!w->backend.self)
        return;
    fl_reducer_stop(w->reducer);
    if (code)
        w->backend.fail(w->backend.self, why ? why : "");
    w->backend.free(w->backend.self);
    w->backend.self = NULL;
}

void fl_worlds_leave(fl_worlds *w, int code, const char *why)
{
    pthread_mutex_lock(&w->lock);
    for (int64_t i = 0; i < w->all.n; i++)
        leave_world(w->all.at[i], code, why);
    pthread_mutex_unlock(&w->lock);
}

void fl_worlds_free(fl_worlds *w)
{
    if (!w)
        return;
    fl_worlds_leave(w, 0, NULL);
    for (int64_t i = 0; i < w->all.n; i++)
        fl_world_unref(w->all.at[i]);
    for (int64_t i = 0; i < w->names.n; i++)
        fl_mem_free(w->names.at[i].id);
    fl_vec_fini(&w->all);
    fl_vec_fini(&w->names);
    fl_vec_fini(&w->rings);
    fl_mem_free(w->key);
    pthread_mutex_destroy(&w->lock);
    fl_mem_free(w);
}
