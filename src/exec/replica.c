/* SPDX-License-Identifier: Apache-2.0 */
/* replica.c - runs a program on several places.
 *
 * While the places run, the caller's thread polls its watch, as plans do
 * between ops. So the poll is always called on the caller's thread. */
#include "exec/replica.h"

#include "base/atomic.h"
#include "exec/join.h"
#include "exec/split.h"

#include <stdio.h>

enum {
    ASK = 50 * 1000 * 1000, /* ns, as in watch.c */
    SENTENCE = 1024,
};

/* One place. Thread: the place's while it runs, otherwise the caller's. */
typedef struct place {
    fl_scope *scope; /* has the persistable variables that the place writes */
    bool owns_scope;
    fl_entropy entropy;
    fl_watch watch;
    fl_plan *plan;
    fl_feed *feeds;     /* its slices of the batch; their LoDs are copies */
    const fl_feed *fed; /* what the run uses: `feeds`, or feeds of the caller */
    fl_fetch *fetches;
    fl_value **state, **crossing; /* values of the names listed in split */
    fl_err err;
    char sentence[SENTENCE];
} place;

struct fl_replicas {
    fl_arena *arena;
    fl_key key;
    fl_grad_scale scale;
    fl_places_split split;
    fl_plan_part each, once;
    int n;
    place *places;
    fl_plan *update; /* runs the part that runs once */
    fl_feed *feeds;  /* of `update` */
    fl_fetch *fetches;
    int n_split;     /* fetches that places compute */
    int n_common;    /* fetches that `update` computes */
    int *source;     /* for each fetch its index at the places, or -1 minus its
                        index at `update` */
    fl_value **lent; /* values in `update` of the names in split.crossing */
    fl_value **values;         /* room for one value of each place */
    const fl_tensor **tensors; /* room for one tensor of each place */
    fl_count stopped;
};

/* --- making --- */

static int stopped(void *self)
{
    return fl_count_get(self) != 0;
}

static void *alloc(fl_replicas *r, int64_t n, size_t size)
{
    return fl_arena_alloc(r->arena, (size_t)(n + 1) * size);
}

/* Each fetch is taken from the part that sets it. */
static void share_fetches(fl_replicas *r, const fl_request *o)
{
    r->source = alloc(r, o->n_fetches, sizeof *r->source);
    r->fetches = alloc(r, o->n_fetches, sizeof *r->fetches);
    for (int i = 0; i < o->n_fetches; i++)
        if (fl_places_split_common(&r->split, o->program, r->key.fetches[i])) {
            r->fetches[r->n_common].name = r->key.fetches[i];
            r->source[i] = -++r->n_common;
        } else {
            r->source[i] = r->n_split++;
        }
}

static void describe_parts(fl_replicas *r, int n)
{
    const fl_places_split *h = &r->split;
    const char **names = alloc(r, h->crossing.n, sizeof *names);
    for (int64_t i = 0; i < h->crossing.n; i++)
        names[i] = h->crossing.at[i].name;
    r->each = (fl_plan_part){.runs = h->each,
                             .n_kept = (int)h->crossing.n,
                             .kept = names,
                             .seed_scale =
                                 r->scale == FL_GRAD_MEAN ? 1 / (float)n : 0};
    r->once = (fl_plan_part){
        .runs = h->once, .n_lent = (int)h->crossing.n, .lent = names};
}

/* Make the scope of a place. The first place writes to the user's scope. */
static void make_scope(fl_replicas *r, place *p, fl_scope *user)
{
    const fl_places_split *h = &r->split;
    p->scope = user;
    if (p != r->places && h->state.n) {
        p->scope = fl_scope_private(user);
        p->owns_scope = true;
        for (int64_t i = 0; i < h->state.n; i++)
            fl_scope_var(p->scope, h->state.at[i]);
    }
}

static void find_values(fl_replicas *r, place *p)
{
    const fl_places_split *h = &r->split;
    p->state = alloc(r, h->state.n, sizeof *p->state);
    for (int64_t i = 0; i < h->state.n; i++)
        p->state[i] = fl_plan_value(p->plan, h->state.at[i]);
    p->crossing = alloc(r, h->crossing.n, sizeof *p->crossing);
    for (int64_t i = 0; i < h->crossing.n; i++)
        p->crossing[i] = fl_plan_value(p->plan, h->crossing.at[i].name);
}

static fl_err make_place(fl_replicas *r, place *p, const fl_exec_env *env,
                         const fl_request *o)
{
    fl_exec_env mine = *env;
    p->entropy = fl_entropy_fake(env->entropy->draw(env->entropy));
    p->watch = (fl_watch){
        .clock = fl_clock_real(), .poll = stopped, .user = &r->stopped};
    mine.entropy = &p->entropy;
    mine.watch = &p->watch;
    make_scope(r, p, o->scope);
    p->feeds = alloc(r, o->n_feeds, sizeof *p->feeds);
    for (int i = 0; i < o->n_feeds; i++)
        p->feeds[i].name = r->key.feeds[i];
    p->fetches = alloc(r, r->n_split, sizeof *p->fetches);
    for (int i = 0; i < o->n_fetches; i++)
        if (r->source[i] >= 0)
            p->fetches[r->source[i]].name = r->key.fetches[i];
    const fl_request part = {o->program, p->scope, o->n_feeds,
                             r->n_split, p->feeds, p->fetches};
    FL_TRY(fl_plan_new(&mine, &part, &r->each, &p->plan));
    find_values(r, p);
    return FL_OK;
}

static fl_err make_update(fl_replicas *r, const fl_exec_env *env,
                          const fl_request *o)
{
    const fl_places_split *h = &r->split;
    const int n_feeds = (int)h->fed.n;
    r->feeds = alloc(r, n_feeds, sizeof *r->feeds);
    for (int i = 0; i < n_feeds; i++)
        r->feeds[i].name = r->key.feeds[h->fed.at[i]];
    const fl_request part = {o->program,  o->scope, n_feeds,
                             r->n_common, r->feeds, r->fetches};
    FL_TRY(fl_plan_new(env, &part, &r->once, &r->update));
    r->lent = alloc(r, h->crossing.n, sizeof *r->lent);
    for (int64_t i = 0; i < h->crossing.n; i++)
        r->lent[i] = fl_plan_value(r->update, h->crossing.at[i].name);
    return FL_OK;
}

static fl_err make_replicas(fl_replicas *r, const fl_exec_env *env,
                            const fl_request *o, int n)
{
    FL_TRY(fl_places_split_init(&r->split, o, r->scale == FL_GRAD_FED));
    share_fetches(r, o);
    describe_parts(r, n);
    r->values = alloc(r, n, sizeof *r->values);
    r->tensors = alloc(r, n, sizeof *r->tensors);
    r->places = alloc(r, n, sizeof *r->places);
    for (; r->n < n; r->n++) {
        const fl_err err = make_place(r, &r->places[r->n], env, o);
        if (err) {
            r->n++;
            return err;
        }
    }
    return make_update(r, env, o);
}

fl_err fl_replicas_new(const fl_exec_env *env, const fl_request *o, int n,
                       fl_grad_scale scale, fl_replicas **out)
{
    fl_replicas *r = fl_mem_alloc(sizeof *r);
    r->arena = fl_arena_new();
    r->key = fl_key_of(o, r->arena);
    r->scale = scale;
    const fl_err err = make_replicas(r, env, o, n);
    if (err) {
        fl_replicas_free(r);
        return err;
    }
    *out = r;
    return FL_OK;
}

static void end_place(fl_replicas *r, place *p)
{
    fl_plan_free(p->plan);
    fl_watch_fini(&p->watch);
    for (int i = 0; i < r->key.n_feeds; i++)
        fl_lod_fini(&p->feeds[i].tensor.lod);
    for (int i = 0; i < r->n_split; i++)
        fl_fetch_fini(&p->fetches[i]);
    if (p->owns_scope)
        fl_scope_free(p->scope);
}

void fl_replicas_free(fl_replicas *r)
{
    if (!r)
        return;
    fl_plan_free(r->update);
    for (int i = 0; i < r->n; i++)
        end_place(r, &r->places[i]);
    for (int i = 0; i < r->n_common; i++)
        fl_fetch_fini(&r->fetches[i]);
    fl_places_split_fini(&r->split);
    fl_arena_free(r->arena);
    fl_mem_free(r);
}

bool fl_replicas_fit(const fl_replicas *r, const fl_request *o, int n,
                     fl_grad_scale scale)
{
    return r->n == n && r->scale == scale && fl_key_fits(&r->key, o) &&
           fl_plan_is_current(r->update) &&
           fl_plan_is_current(r->places[0].plan);
}

const fl_key *fl_replicas_key(const fl_replicas *r)
{
    return &r->key;
}

/* --- running --- */

static void run_place(void *self)
{
    place *p = self;
    p->err = fl_plan_run(p->plan, p->fed, p->fetches);
    if (p->err)
        snprintf(p->sentence, sizeof p->sentence, "%s", fl_errmsg());
}

static fl_err slice_feeds(fl_replicas *r, const fl_feed *feeds, bool apart)
{
    for (int i = 0; i < r->n; i++) {
        place *p = &r->places[i];
        p->fed = apart ? feeds + i * r->key.n_feeds : p->feeds;
        for (int f = 0; !apart && f < r->key.n_feeds; f++)
            FL_TRY(fl_tensor_slice(&p->feeds[f].tensor, &feeds[f].tensor, i,
                                   r->n));
    }
    return FL_OK;
}

static fl_err spread_state(fl_replicas *r)
{
    for (int64_t s = 0; s < r->split.state.n; s++)
        for (int i = 1; i < r->n; i++)
            FL_TRY(fl_value_copy(r->places[i].state[s], r->places[0].state[s]));
    return FL_OK;
}

/* The error of the first place that has one. */
static fl_err failure(fl_replicas *r)
{
    if (stopped(&r->stopped))
        return fl_fail(FL_EINTR, "the run was interrupted");
    for (int i = 0; i < r->n; i++) {
        const place *p = &r->places[i];
        if (p->err)
            return fl_fail_at(fl_fail(p->err, "%s", p->sentence),
                              "place %d of %d", i + 1, r->n);
    }
    return FL_OK;
}

static fl_err run_places(fl_replicas *r, fl_pool *pool, fl_watch *w)
{
    fl_group all = {0};
    fl_count_init(&r->stopped, 0);
    for (int i = 0; i < r->n; i++) {
        place *p = &r->places[i];
        fl_watch_follow(&p->watch, w);
        fl_pool_submit(pool, &all, run_place, p);
    }
    while (fl_pool_wait(pool, &all, ASK))
        if (w && w->poll && !stopped(&r->stopped) && w->poll(w->user))
            fl_count_up(&r->stopped);
    for (int i = 0; w && i < r->n; i++)
        fl_watch_take(w, &r->places[i].watch, 1 + i);
    return failure(r);
}

static fl_err carry(fl_replicas *r)
{
    for (int64_t c = 0; c < r->split.crossing.n; c++) {
        const fl_crossing *x = &r->split.crossing.at[c];
        for (int i = 0; i < r->n; i++)
            r->values[i] = r->places[i].crossing[c];
        const fl_err err =
            fl_values_sum(r->lent[c], x->sum ? r->n : 1, r->values);
        if (err)
            return fl_fail_at(err, "\"%s\" of %d places", x->name, r->n);
    }
    return FL_OK;
}

static fl_err update(fl_replicas *r)
{
    for (int64_t i = 0; i < r->split.fed.n; i++)
        r->feeds[i].tensor = r->places[0].fed[r->split.fed.at[i]].tensor;
    return fl_plan_run(r->update, r->feeds, r->fetches);
}

/* Fetch selected rows. Only the sum over all places can be fetched. */
static fl_err give_rows(fl_fetch *from, bool common, fl_fetch *to)
{
    const fl_rows old = to->rows;
    if (!common)
        return fl_fail(FL_EINVAL, "selected rows can be fetched from several "
                                  "places only as their sum");
    to->rows = from->rows;
    from->rows = old;
    return FL_OK;
}

/* Set a fetch. A value that is common to all places is repeated for each of
 * them, as in Fluid. */
static fl_err give_one(fl_replicas *r, int source, fl_fetch *to)
{
    const bool common = source < 0;
    for (int i = 0; i < r->n; i++) {
        fl_fetch *from =
            common ? &r->fetches[-1 - source] : &r->places[i].fetches[source];
        if (from->kind == FL_SELECTED_ROWS) {
            to->kind = from->kind;
            return give_rows(from, common, to);
        }
        r->tensors[i] = &from->tensor;
    }
    FL_TRY(fl_tensors_join(&to->tensor, r->n, r->tensors));
    to->kind = to->tensor.data ? FL_LOD_TENSOR : 0;
    return FL_OK;
}

static fl_err give_fetches(fl_replicas *r, fl_fetch *fetches)
{
    for (int i = 0; i < r->key.n_fetches; i++) {
        const fl_err err = give_one(r, r->source[i], &fetches[i]);
        if (err)
            return fl_fail_at(err, "fetch \"%s\" of %d places",
                              r->key.fetches[i], r->n);
    }
    return FL_OK;
}

fl_err fl_replicas_run(fl_replicas *r, fl_pool *pool, fl_watch *watch,
                       const fl_request *o, bool apart, fl_fetch *fetches)
{
    FL_TRY(slice_feeds(r, o->feeds, apart));
    FL_TRY(spread_state(r));
    FL_TRY(run_places(r, pool, watch));
    FL_TRY(carry(r));
    FL_TRY(update(r));
    return give_fetches(r, fetches);
}
