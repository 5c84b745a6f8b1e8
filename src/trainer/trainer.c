/* trainer.c - what a trainer tells the servers.
 *
 * Gradients for a server gather in a parcel, which is pushed when it is large
 * enough and at the step. Values come with the step (what was received before)
 * or are asked for. When a session is lost, what the caller has computed is of
 * no use any more: it is stale until the next step, which then only waits for
 * the new session.
 *
 * Easy to get wrong: memory that was lent must be free again when a step
 * returns, whatever became of the calls that carried it. */
#include "trainer/trainer_in.h"

#include "base/log.h"
#include "wire/codec.h"

#include <stdio.h>
#include <unistd.h>

enum {
    PUSH_BYTES = 1 << 20,  /* gathered for one push; less waits for the step */
    SLICE_BYTES = 4 << 20, /* of a large tensor; several are under way */
};

/* --- what the machine tells, under the lock --- */

static void replace(fl_parcel **slot, fl_parcel *by)
{
    fl_parcel_unref(*slot);
    *slot = by;
}

/* A pull's values are all of a version; answers to questions come while the
 * trainer is ready. */
static void on_values(void *self, int server, const fl_msg *m)
{
    fl_trainer *t = self;
    fl_connection *l = &t->line[server];
    fl_parcel *came = fl_parcel_of(m->blob);
    came = came ? fl_parcel_ref(came) : fl_parcel_new();
    if (fl_client_now(t->client) != FL_CLIENT_PULLING) {
        fl_talks_hear(t, server, m->tag, came);
        fl_parcel_unref(came);
        return;
    }
    replace(&l->pulled, came);
    for (int64_t i = 0; i < l->wanted.n; i++)
        l->wanted.at[i].taken = false;
}

static void on_ready(void *self, int rank, int64_t round)
{
}

static void on_fenced(void *self, const char *why)
{
    fl_trainer *t = self;
    t->fences++;
    t->stale = true;
    fl_talks_lose(t);
}

static void on_over(void *self, int code, const char *why)
{
    fl_trainer *t = self;
    t->over = true;
    t->code = code;
    snprintf(t->why, sizeof t->why, "%s", why);
}

/* --- beginning and end --- */

static void init_threads(fl_trainer *t)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&t->door, NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->moved, &monotonic);
    pthread_cond_init(&t->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Its own: without the program, which only saving needs. */
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
    fl_trainer *t = fl_mem_alloc(sizeof *t);
    *t = (fl_trainer){.job = job, .arena = fl_arena_new(), .pid = getpid()};
    t->place = dup_placement(place);
    t->job = fl_placement_job(t->place, &own); /* whose texts live as long */
    for (int i = 0; i < t->place->n_pieces; i++)
        fl_map_put(&t->pieces, t->place->pieces[i].name,
                   (fl_piece *)&t->place->pieces[i]);
    t->entropy = fl_entropy_real();
    t->app =
        (fl_app){t, fl_keeper_parcels, on_values, on_ready, on_fenced, on_over};
    t->line = fl_mem_alloc((size_t)job.servers * sizeof *t->line);
    for (int i = 0; i < job.servers; i++) {
        t->line[i].trainer = t;
        t->line[i].address = t->place->servers[i];
    }
    fl_outbox_init(&t->out);
    init_threads(t);
    *out = t;
    return FL_OK;
}

static void free_line(fl_connection *l)
{
    fl_parcel_unref(l->parcel);
    fl_parcel_unref(l->pulled);
    fl_vec_fini(&l->wanted);
    fl_map_fini(&l->place);
}

static bool is_forked(const fl_trainer *t)
{
    return t->pid != getpid();
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

void fl_trainer_free(fl_trainer *t)
{
    if (!t || is_forked(t))
        return;
    if (t->rpc)
        fl_link_close(t);
    for (int i = 0; i < t->job.servers; i++)
        free_line(&t->line[i]);
    fl_parcel_unref(t->tallying.sum);
    fl_map_fini(&t->pieces);
    fl_vec_fini(&t->live);
    fl_str_fini(&t->notes);
    fl_outbox_fini(&t->out);
    fl_mem_free(t->line);
    pthread_cond_destroy(&t->moved);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->door);
    fl_handle_unref(&t->place->handle);
    fl_arena_free(t->arena);
    fl_mem_free(t);
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

const fl_placement *fl_trainer_place(const fl_trainer *t)
{
    return t->place;
}

/* --- ready for the caller --- */

size_t fl_trainer_most(const fl_trainer *t)
{
    return t->job.max_values ? t->job.max_values : FL_VALUES_MOST;
}

bool fl_trainer_is_ready(const fl_trainer *t, const void *unused)
{
    return fl_client_now(t->client) == FL_CLIENT_READY;
}

static fl_err connect_once(fl_trainer *t, const fl_watch *by)
{
    fl_err err = FL_OK;
    pthread_mutex_lock(&t->door);
    if (!t->rpc)
        err = fl_trainer_connect(t, by);
    if (!err && !t->rpc)
        err = fl_link_open(t);
    pthread_mutex_unlock(&t->door);
    return err;
}

fl_err fl_trainer_enter(fl_trainer *t, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(t));
    if (t->left)
        return fl_fail(FL_EINVAL,
                       "this trainer has left its job (exe.close() was "
                       "called): it sends and receives no more; tests and "
                       "saves that need servers come before that");
    FL_TRY(connect_once(t, by));
    fl_link_lock(t);
    const fl_err err = fl_trainer_wait(t, fl_trainer_is_ready, NULL, by, 0);
    if (err)
        fl_link_unlock(t);
    return err;
}

fl_err fl_trainer_exit(fl_trainer *t, fl_err err)
{
    fl_link_unlock(t);
    return err;
}

fl_err fl_trainer_check_server(const fl_trainer *t, const char *name,
                               int server)
{
    if (server >= 0 && server < t->job.servers)
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: server %d, the job has %d", name, server,
                   t->job.servers);
}

/* --- gradients --- */

static fl_parcel *parcel_of(fl_connection *l)
{
    if (!l->parcel)
        l->parcel = fl_parcel_new();
    return l->parcel;
}

static fl_err push(fl_trainer *t, fl_connection *l, bool last)
{
    const fl_blob blob = fl_parcel_blob(parcel_of(l));
    const fl_err err = fl_client_push(t->client, (int)(l - t->line), blob, last,
                                      fl_link_now());
    fl_keeper_parcels.drop(NULL, blob);
    replace(&l->parcel, NULL);
    l->open = !last;
    fl_link_flush(t);
    return err;
}

static fl_err push_if_large(fl_trainer *t, fl_connection *l)
{
    const size_t size = l->parcel->size;
    return size >= PUSH_BYTES || size >= fl_trainer_most(t) ? push(t, l, false)
                                                            : FL_OK;
}

/* An empty one, if all has gone: the server waits for the last. */
static fl_err push_last(fl_trainer *t, fl_connection *l)
{
    return l->parcel || l->open ? push(t, l, true) : FL_OK;
}

static fl_err put_tensor(fl_trainer *t, fl_connection *l, const char *name,
                         const fl_tensor *x)
{
    const int64_t n = fl_tensor_numel(x);
    const int64_t most = SLICE_BYTES / (int64_t)fl_dtype_size(x->dtype);
    if (n <= most) {
        fl_parcel_add(parcel_of(l), name, x);
        return push_if_large(t, l);
    }
    for (int64_t first = 0; first < n; first += most) {
        fl_parcel_add_slice(parcel_of(l), name, x, first,
                            n - first < most ? n - first : most);
        FL_TRY(push_if_large(t, l));
    }
    return FL_OK;
}

/* Rows that no message can carry together are cut; the server gathers a
 * participant's rows in the order in which they were sent. */
static fl_err put_rows(fl_trainer *t, fl_connection *l, const char *name,
                       const fl_rows *r)
{
    const size_t row = (size_t)fl_rows_width(r) * fl_dtype_size(r->value.dtype);
    const int64_t fit = (int64_t)(fl_trainer_most(t) / (row + sizeof(int64_t)));
    const int64_t most = fit > 0 ? fit : 1;
    for (int64_t first = 0; first < r->n; first += most) {
        fl_rows some = *r;
        some.n = r->n - first < most ? r->n - first : most;
        some.index.data = fl_rows_index(r) + first;
        some.value.data = (char *)r->value.data + (size_t)first * row;
        fl_parcel_add_rows(parcel_of(l), name, &some);
        FL_TRY(push_if_large(t, l));
    }
    return FL_OK;
}

static fl_err put(fl_trainer *t, fl_connection *l, const char *name,
                  const fl_value *v)
{
    return v->kind == FL_SELECTED_ROWS ? put_rows(t, l, name, &v->rows)
                                       : put_tensor(t, l, name, &v->tensor);
}

/* Borrowed memory may go when a run fails, before the network let go of it. */
static fl_err own_memory(const fl_value *v, fl_value *own)
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

static bool is_nothing(const fl_value *v)
{
    return v->kind == FL_SELECTED_ROWS
               ? !v->rows.n
               : v->kind != FL_LOD_TENSOR || !v->tensor.data;
}

fl_err fl_trainer_send(fl_trainer *t, const fl_watch *by, int server,
                       const char *name, const fl_value *v)
{
    fl_value own = {0};
    FL_TRY(fl_trainer_check_process(t));
    FL_TRY(fl_trainer_check_server(t, name, server));
    if (is_nothing(v))
        return FL_OK; /* the barrier says it all */
    fl_err err = own_memory(v, &own);
    if (!err)
        err = fl_trainer_enter(t, by);
    if (!err) {
        t->sent = true;
        if (!t->stale)
            err = put(t, &t->line[server], name, &own);
        err = fl_trainer_exit(t, err);
    }
    fl_value_fini(&own);
    return err;
}

/* --- steps --- */

static void tell_wanted(fl_trainer *t, fl_connection *l)
{
    fl_parcel *names = fl_parcel_new();
    for (int64_t i = 0; i < l->wanted.n; i++)
        fl_parcel_want(names, l->wanted.at[i].name, -1, NULL);
    const fl_blob blob = fl_parcel_blob(names);
    fl_client_want(t->client, (int)(l - t->line), blob);
    fl_keeper_parcels.drop(NULL, blob);
    fl_parcel_unref(names);
    l->learned = false;
}

static fl_err begin_step(fl_trainer *t)
{
    for (int i = 0; i < t->job.servers; i++) {
        fl_connection *l = &t->line[i];
        if (l->learned)
            tell_wanted(t, l);
        FL_TRY(push_last(t, l));
    }
    const fl_err err = fl_client_step(t->client, fl_link_now());
    fl_link_flush(t);
    return err;
}

static void drop_gathered(fl_trainer *t)
{
    for (int i = 0; i < t->job.servers; i++) {
        replace(&t->line[i].parcel, NULL);
        t->line[i].open = false;
    }
}

static bool lends_nothing(const fl_trainer *t, const void *unused)
{
    return !fl_link_lends(t);
}

/* Calls that nobody needs an answer of are ended: those that were made again
 * and answered then, and those of a session that was lost. */
static fl_err take_back(fl_trainer *t, const fl_watch *by)
{
    fl_link_cancel_pushes(t);
    return fl_trainer_wait(t, lends_nothing, NULL, by, 0);
}

static fl_err step(fl_trainer *t, const fl_watch *by)
{
    if (!t->stale)
        FL_TRY(begin_step(t));
    drop_gathered(t);
    t->sent = false; /* other threads may send while this one waits */
    FL_TRY(fl_trainer_wait(t, fl_trainer_is_ready, NULL, by, 0));
    FL_TRY(take_back(t, by));
    t->stale = false;
    t->stepped = true;
    return FL_OK;
}

fl_err fl_trainer_step(fl_trainer *t, const fl_watch *by)
{
    FL_TRY(fl_trainer_enter(t, by));
    return fl_trainer_exit(t, step(t, by));
}

fl_err fl_trainer_step_if_sent(fl_trainer *t, const fl_watch *by)
{
    return t->job.async && t->sent ? step(t, by) : FL_OK;
}

fl_err fl_trainer_flush(fl_trainer *t, const fl_watch *by)
{
    FL_TRY(fl_trainer_check_process(t));
    if (!t->job.async || !t->sent)
        return FL_OK;
    FL_TRY(fl_trainer_enter(t, by));
    return fl_trainer_exit(t, fl_trainer_step_if_sent(t, by));
}

/* --- pushes beside steps --- */

static bool is_settled(const fl_trainer *t, const void *fences)
{
    return t->fences != *(const int64_t *)fences ||
           !fl_client_pushes(t->client);
}

static fl_err push_rest(fl_trainer *t, bool last)
{
    for (int i = 0; i < t->job.servers; i++) {
        fl_connection *l = &t->line[i];
        if (last)
            FL_TRY(push_last(t, l));
        else if (l->parcel)
            FL_TRY(push(t, l, false));
    }
    return FL_OK;
}

static fl_err part(fl_trainer *t, const fl_watch *by, int n,
                   const fl_parting *partings, bool last, bool *lost)
{
    const int64_t fences = t->fences;
    t->stale = false; /* the caller knows how old its gradients are */
    for (int i = 0; i < n; i++)
        if (!is_nothing(partings[i].value))
            FL_TRY(put(t, &t->line[partings[i].server], partings[i].name,
                       partings[i].value));
    FL_TRY(push_rest(t, last));
    FL_TRY(fl_trainer_wait(t, is_settled, &fences, by, 0));
    *lost |= t->fences != fences;
    return take_back(t, by);
}

fl_err fl_trainer_push(fl_trainer *t, const fl_watch *by, int n,
                       const fl_parting *partings, bool last, bool *lost)
{
    for (int i = 0; i < n; i++)
        FL_TRY(
            fl_trainer_check_server(t, partings[i].name, partings[i].server));
    FL_TRY(fl_trainer_enter(t, by));
    const fl_err err = part(t, by, n, partings, last, lost);
    if (err)
        drop_gathered(t);
    return fl_trainer_exit(t, err);
}

/* --- the end --- */

static bool is_over(const fl_trainer *t, const void *unused)
{
    return t->over;
}

fl_err fl_trainer_leave(fl_trainer *t, const fl_watch *by, int code,
                        const char *why, int64_t limit)
{
    if (is_forked(t) || t->left)
        return FL_OK;
    t->left = true;
    if (!t->rpc)
        return FL_OK;
    fl_link_lock(t);
    drop_gathered(t);
    const bool was_over = t->over; /* then its sentence has been told */
    const int64_t now = fl_link_now();
    fl_client_leave(t->client, code, why, now);
    fl_link_flush(t);
    fl_err err = fl_trainer_wait(t, is_over, NULL, by, limit ? now + limit : 0);
    if (!err && !code && !was_over && t->code)
        err = fl_trainer_failed(t);
    return fl_trainer_exit(t, err);
}
