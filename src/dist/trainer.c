/* trainer.c - what send, recv and the lookups ask of the servers.
 *
 * Gradients for a server gather in a parcel, which is pushed when it is large
 * enough and at the step. Values come with the step (what was received before)
 * or are asked for. When a session is lost, what the caller has computed is of
 * no use any more: it is stale until the next step, which then only waits for
 * the new session.
 *
 * Easy to get wrong: memory that was lent must be free again when a step
 * returns, whatever became of the calls that carried it. */
#include "dist/trainer_in.h"

#include "base/log.h"

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
 * trainer is ready, and to the newest question only. */
static void on_values(void *self, int server, const fl_msg *m)
{
    fl_trainer *t = self;
    fl_line *l = &t->line[server];
    fl_parcel *came = fl_parcel_of(m->blob);
    const bool pulled = fl_client_now(t->client) == FL_CLIENT_PULLING;
    if (!pulled && m->tag != l->asking)
        return;
    came = came ? fl_parcel_ref(came) : fl_parcel_new();
    if (!pulled) {
        l->asking = 0;
        replace(&l->answer, came);
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
    for (int i = 0; i < t->job.servers; i++)
        t->line[i].asking = 0;
}

static void on_over(void *self, int code, const char *why)
{
    fl_trainer *t = self;
    t->over = true;
    t->code = code;
    snprintf(t->why, sizeof t->why, "%s", why);
}

/* --- beginning and end --- */

static fl_place copy_place(fl_arena *a, const fl_place *from)
{
    fl_place p = *from;
    const char **servers =
        fl_arena_alloc(a, (size_t)from->n_servers * sizeof *servers);
    for (int i = 0; i < from->n_servers; i++)
        servers[i] = fl_arena_strdup(a, from->servers[i]);
    p.servers = servers;
    return p;
}

static void init_threads(fl_trainer *t)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->moved, &monotonic);
    pthread_cond_init(&t->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

fl_err fl_trainer_new(const fl_place *place, const fl_job *limits,
                      fl_watch *watch, fl_trainer **out)
{
    fl_job own = limits ? *limits : (fl_job){0};
    FL_TRY(fl_job_limits(&own));
    const fl_job job = fl_job_of(place, &own);
    FL_TRY(fl_job_check(&job));
    fl_trainer *t = fl_mem_alloc(sizeof *t);
    *t = (fl_trainer){.job = job, .arena = fl_arena_new(), .watch = watch};
    t->place = copy_place(t->arena, place);
    t->entropy = fl_entropy_real();
    t->app =
        (fl_app){t, fl_keeper_parcels, on_values, on_ready, on_fenced, on_over};
    t->line = fl_mem_alloc((size_t)job.servers * sizeof *t->line);
    for (int i = 0; i < job.servers; i++) {
        t->line[i].trainer = t;
        t->line[i].address = t->place.servers[i];
    }
    fl_outbox_init(&t->out);
    init_threads(t);
    *out = t;
    return FL_OK;
}

static void free_line(fl_line *l)
{
    fl_parcel_unref(l->parcel);
    fl_parcel_unref(l->pulled);
    fl_parcel_unref(l->question);
    fl_parcel_unref(l->answer);
    fl_vec_fini(&l->wanted);
    fl_map_fini(&l->place);
}

/* A child of the process that joined has no threads and no business here. */
static bool is_a_child(const fl_trainer *t)
{
    return t->rpc && t->pid != getpid();
}

void fl_trainer_free(fl_trainer *t)
{
    if (!t || is_a_child(t))
        return;
    if (t->rpc)
        fl_link_close(t);
    for (int i = 0; i < t->job.servers; i++)
        free_line(&t->line[i]);
    fl_vec_fini(&t->live);
    fl_str_fini(&t->notes);
    fl_outbox_fini(&t->out);
    fl_mem_free(t->line);
    pthread_cond_destroy(&t->moved);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    fl_arena_free(t->arena);
    fl_mem_free(t);
}

void fl_trainer_watch(fl_trainer *t, fl_watch *watch)
{
    t->watch = watch;
}

bool fl_trainer_is_at(const fl_trainer *t, const fl_place *place)
{
    const fl_place *own = &t->place;
    bool same = own->digest[0] == place->digest[0] &&
                own->digest[1] == place->digest[1] &&
                own->trainer_id == place->trainer_id &&
                own->n_servers == place->n_servers;
    for (int i = 0; same && i < own->n_servers; i++)
        same = !strcmp(own->servers[i], place->servers[i]);
    return same;
}

/* --- ready for the caller --- */

static bool is_ready(const fl_trainer *t)
{
    return fl_client_now(t->client) == FL_CLIENT_READY;
}

/* Connected, not under the lock; then locked, joined and at a step. A failure
 * leaves it unlocked. */
static fl_err enter(fl_trainer *t)
{
    if (t->left)
        return fl_fail(FL_EINVAL,
                       "this trainer has left its job (exe.close() was "
                       "called): it sends and receives no more");
    if (!t->rpc) {
        FL_TRY(fl_trainer_connect(t));
        FL_TRY(fl_link_open(t));
    }
    fl_link_lock(t);
    const fl_err err = fl_trainer_wait(t, is_ready, 0);
    if (err)
        fl_link_unlock(t);
    return err;
}

static fl_err leave(fl_trainer *t, fl_err err)
{
    fl_link_unlock(t);
    return err;
}

static fl_err check_server(const fl_trainer *t, const char *name, int server)
{
    if (server >= 0 && server < t->job.servers)
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: server %d, the job has %d", name, server,
                   t->job.servers);
}

/* --- gradients --- */

static fl_err push(fl_trainer *t, fl_line *l, bool last)
{
    const fl_blob blob = fl_parcel_blob(l->parcel);
    const fl_err err = fl_client_push(t->client, (int)(l - t->line), 0, blob,
                                      last, fl_link_now());
    fl_keeper_parcels.drop(NULL, blob);
    replace(&l->parcel, NULL);
    fl_link_flush(t);
    return err;
}

static fl_err push_if_large(fl_trainer *t, fl_line *l)
{
    return l->parcel->size >= PUSH_BYTES ? push(t, l, false) : FL_OK;
}

static fl_parcel *parcel_of(fl_line *l)
{
    if (!l->parcel)
        l->parcel = fl_parcel_new();
    return l->parcel;
}

static fl_err put_tensor(fl_trainer *t, fl_line *l, const char *name,
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

static fl_err put(fl_trainer *t, fl_line *l, const char *name,
                  const fl_value *v)
{
    t->sent = true;
    if (t->stale)
        return FL_OK;
    if (v->kind != FL_SELECTED_ROWS)
        return put_tensor(t, l, name, &v->tensor);
    fl_parcel_add_rows(parcel_of(l), name, &v->rows);
    return push_if_large(t, l);
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

fl_err fl_trainer_send(fl_trainer *t, int server, const char *name,
                       const fl_value *v)
{
    const bool rows = v->kind == FL_SELECTED_ROWS;
    fl_value own = {0};
    FL_TRY(check_server(t, name, server));
    if (rows ? !v->rows.n : v->kind != FL_LOD_TENSOR || !v->tensor.data)
        return FL_OK; /* nothing was computed: the barrier says it all */
    fl_err err = own_memory(v, &own);
    if (!err)
        err = enter(t);
    if (!err)
        err = leave(t, put(t, &t->line[server], name, &own));
    fl_value_fini(&own);
    return err;
}

/* --- steps --- */

static void tell_wanted(fl_trainer *t, fl_line *l)
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
        fl_line *l = &t->line[i];
        if (l->learned)
            tell_wanted(t, l);
        if (l->parcel)
            FL_TRY(push(t, l, true));
    }
    const fl_err err = fl_client_step(t->client, fl_link_now());
    fl_link_flush(t);
    return err;
}

static void drop_gathered(fl_trainer *t)
{
    for (int i = 0; i < t->job.servers; i++)
        replace(&t->line[i].parcel, NULL);
}

static bool lends_nothing(const fl_trainer *t)
{
    return !fl_link_lends(t);
}

/* Calls that nobody needs an answer of are ended: those that were made again
 * and answered then, and those of a session that was lost. */
static fl_err take_back(fl_trainer *t)
{
    fl_link_cancel_pushes(t);
    return fl_trainer_wait(t, lends_nothing, 0);
}

static fl_err step(fl_trainer *t)
{
    if (!t->stale)
        FL_TRY(begin_step(t));
    drop_gathered(t);
    FL_TRY(fl_trainer_wait(t, is_ready, 0));
    FL_TRY(take_back(t));
    t->stale = t->sent = false;
    t->stepped = true;
    return FL_OK;
}

fl_err fl_trainer_step(fl_trainer *t)
{
    FL_TRY(enter(t));
    return leave(t, step(t));
}

/* Without barriers the first one who asks for values ends the step. */
static fl_err step_if_sent(fl_trainer *t)
{
    return t->job.async && t->sent ? step(t) : FL_OK;
}

fl_err fl_trainer_flush(fl_trainer *t)
{
    if (!t->job.async || !t->sent)
        return FL_OK;
    FL_TRY(enter(t));
    return leave(t, step_if_sent(t));
}

/* --- values --- */

static void drop_talk(fl_trainer *t)
{
    for (int i = 0; i < t->job.servers; i++) {
        replace(&t->line[i].question, NULL);
        replace(&t->line[i].answer, NULL);
        t->line[i].asking = 0;
    }
}

static bool all_answered(const fl_trainer *t)
{
    for (int i = 0; i < t->job.servers; i++)
        if (t->line[i].asking)
            return false;
    return true;
}

static fl_err ask_once(fl_trainer *t)
{
    FL_TRY(fl_trainer_wait(t, is_ready, 0));
    for (int i = 0; i < t->job.servers; i++) {
        fl_line *l = &t->line[i];
        if (!l->question)
            continue;
        const fl_blob blob = fl_parcel_blob(l->question);
        const fl_err err = fl_client_ask(t->client, i, blob, fl_link_now());
        fl_keeper_parcels.drop(NULL, blob);
        FL_TRY(err);
        l->asking = fl_client_tag(t->client);
    }
    fl_link_flush(t);
    return fl_trainer_wait(t, all_answered, 0);
}

/* Every server that has a question gets it, all at once; a lost session asks
 * again in the next, and answers are of one session then. */
static fl_err ask(fl_trainer *t)
{
    int64_t fences;
    do {
        fences = t->fences;
        FL_TRY(ask_once(t));
    } while (fences != t->fences);
    return FL_OK;
}

static void learn(fl_trainer *t, fl_line *l, const char *name)
{
    const char *own = fl_arena_strdup(t->arena, name);
    fl_push(&l->wanted, (fl_wanted){.name = own, .taken = true});
    fl_map_put(&l->place, own, (void *)(uintptr_t)l->wanted.n);
    l->learned = true;
}

/* What the last step brought, once. NULL: nothing. */
static const fl_item *find_pulled(const fl_line *l, const char *name)
{
    const int64_t place = (int64_t)(uintptr_t)fl_map_get(&l->place, name);
    if (!place || !l->pulled || place > l->pulled->n ||
        l->wanted.at[place - 1].taken)
        return NULL;
    l->wanted.at[place - 1].taken = true;
    const fl_item *item = &l->pulled->item[place - 1];
    return strcmp(item->name, name) ? NULL : item;
}

/* Own: *parcel, which holds the item. */
static fl_err get(fl_trainer *t, fl_line *l, const char *name,
                  fl_parcel **parcel, const fl_item **item)
{
    FL_TRY(step_if_sent(t));
    *item = find_pulled(l, name);
    if (*item) {
        *parcel = fl_parcel_ref(l->pulled);
        return FL_OK;
    }
    l->question = fl_parcel_new();
    fl_parcel_want(l->question, name, -1, NULL);
    FL_TRY(ask(t));
    *item = fl_parcel_find(l->answer, name);
    if (!*item)
        return fl_fail(FL_EPROTO, "%s has sent no \"%s\" when asked for it",
                       l->address, name);
    *parcel = fl_parcel_ref(l->answer);
    if (t->stepped && !fl_map_get(&l->place, name))
        learn(t, l, name);
    return FL_OK;
}

fl_err fl_trainer_recv(fl_trainer *t, int server, const char *name,
                       fl_tensor *out)
{
    fl_parcel *parcel = NULL;
    const fl_item *item = NULL;
    FL_TRY(check_server(t, name, server));
    FL_TRY(enter(t));
    fl_err err = get(t, &t->line[server], name, &parcel, &item);
    drop_talk(t);
    err = leave(t, err);
    if (!err)
        err = fl_item_tensor(item, out);
    fl_parcel_unref(parcel);
    return err;
}

/* The answers stand in the order of the questions. */
static fl_err hand_out(fl_trainer *t, int n, const fl_lookup *lookups)
{
    int *next = fl_mem_alloc((size_t)t->job.servers * sizeof *next);
    fl_err err = FL_OK;
    for (int i = 0; i < n && !err; i++) {
        const fl_lookup *k = &lookups[i];
        const fl_parcel *p = t->line[k->server].answer;
        const int at = next[k->server]++;
        const fl_item *item = p && at < p->n ? &p->item[at] : NULL;
        const bool fits = item && !strcmp(item->name, k->table) &&
                          item->shape.rank &&
                          (k->n < 0 || item->shape.dim[0] == k->n);
        err = fits ? fl_item_tensor(item, k->out)
                   : fl_fail(FL_EPROTO,
                             "%s has not sent the %lld rows of \"%s\" that it "
                             "was asked for",
                             t->line[k->server].address, (long long)k->n,
                             k->table);
    }
    fl_mem_free(next);
    return err;
}

static fl_err look_up(fl_trainer *t, int n, const fl_lookup *lookups)
{
    FL_TRY(step_if_sent(t));
    for (int i = 0; i < n; i++) {
        fl_line *l = &t->line[lookups[i].server];
        if (!l->question)
            l->question = fl_parcel_new();
        fl_parcel_want(l->question, lookups[i].table, lookups[i].n,
                       lookups[i].rows);
    }
    return ask(t);
}

fl_err fl_trainer_lookup(fl_trainer *t, int n, const fl_lookup *lookups)
{
    for (int i = 0; i < n; i++)
        FL_TRY(check_server(t, lookups[i].table, lookups[i].server));
    FL_TRY(enter(t));
    fl_err err = leave(t, look_up(t, n, lookups));
    if (!err)
        err = hand_out(t, n, lookups);
    fl_link_lock(t);
    drop_talk(t);
    return leave(t, err);
}

/* --- the end --- */

static bool is_over(const fl_trainer *t)
{
    return t->over;
}

fl_err fl_trainer_leave(fl_trainer *t, int code, const char *why, int64_t limit)
{
    if (t->left || is_a_child(t))
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
    fl_err err = fl_trainer_wait(t, is_over, limit ? now + limit : 0);
    if (!err && !code && !was_over && t->code)
        err = fl_trainer_failed(t);
    return leave(t, err);
}
