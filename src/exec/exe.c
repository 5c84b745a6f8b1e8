/* SPDX-License-Identifier: Apache-2.0 */
/* exe.c - the executor: finds the plan of a program, or makes it. */
#include "exec/exe.h"

#include "exec/join.h"
#include "exec/replica.h"

enum {
    PLANS = 32, /* plans that are kept; the least recently used one is freed */
    SETS = 8,   /* sets of places that are kept; the oldest one is freed */
};

/* Thread: one at a time. */
struct fl_exe {
    fl_exec_env env;
    fl_watch watch;
    FL_VEC(fl_plan *) plans; /* most recently used first */
    FL_VEC(fl_replicas *) sets;
    fl_pool *pool; /* threads of places; NULL: none has run yet */
};

fl_exe *fl_exe_make(const fl_exec_env *env)
{
    fl_exe *e = fl_mem_alloc(sizeof *e);
    e->env = *env;
    e->watch = env->watch ? *env->watch : (fl_watch){.clock = fl_clock_real()};
    e->env.watch = e->watch.poll ? &e->watch : NULL;
    return e;
}

static void drop_plans(fl_exe *e)
{
    for (int64_t i = 0; i < e->plans.n; i++)
        fl_plan_free(e->plans.at[i]);
    fl_vec_fini(&e->plans);
    for (int64_t i = 0; i < e->sets.n; i++)
        fl_replicas_free(e->sets.at[i]);
    fl_vec_fini(&e->sets);
}

void fl_exe_free(fl_exe *e)
{
    if (!e)
        return;
    drop_plans(e);
    fl_pool_free(e->pool);
    fl_watch_fini(&e->watch);
    fl_mem_free(e);
}

static void to_front(fl_exe *e, int64_t i)
{
    fl_plan *p = e->plans.at[i];
    for (; i > 0; i--)
        e->plans.at[i] = e->plans.at[i - 1];
    e->plans.at[0] = p;
}

static void drop_stale(fl_exe *e, const fl_program *p)
{
    for (int64_t i = e->plans.n - 1; i >= 0; i--)
        if (fl_key_stale(fl_plan_key(e->plans.at[i]), p) || i >= PLANS - 1) {
            fl_plan_free(e->plans.at[i]);
            fl_remove(&e->plans, i);
        }
}

fl_err fl_exe_plan(fl_exe *e, const fl_request *o, fl_plan **out)
{
    for (int64_t i = 0; i < e->plans.n; i++)
        if (fl_key_fits(fl_plan_key(e->plans.at[i]), o) &&
            fl_plan_is_current(e->plans.at[i])) {
            to_front(e, i);
            *out = e->plans.at[0];
            return FL_OK;
        }
    fl_plan *plan;
    drop_stale(e, o->program);
    FL_TRY(fl_plan_new(&e->env, o, NULL, &plan));
    fl_insert(&e->plans, 0, plan);
    *out = plan;
    return FL_OK;
}

fl_err fl_exe_run(fl_exe *e, const fl_program *p, fl_scope *s, int n_feeds,
                  const fl_feed *feeds, int n_fetches, fl_fetch *fetches)
{
    fl_plan *plan;
    FL_TRY(fl_exe_plan(
        e, &(fl_request){p, s, n_feeds, n_fetches, feeds, fetches}, &plan));
    return fl_plan_run(plan, feeds, fetches);
}

void fl_fetch_fini(fl_fetch *f)
{
    fl_tensor_fini(&f->tensor);
    fl_tensor_fini(&f->rows.index);
    fl_tensor_fini(&f->rows.value);
    *f = (fl_fetch){.name = f->name};
}

/* --- places --- */

static fl_err pool_for(fl_exe *e, int n)
{
    fl_pool *more;
    if (e->pool && fl_pool_size(e->pool) >= n)
        return FL_OK;
    FL_TRY(fl_pool_new("place", n, &more));
    fl_pool_free(e->pool);
    e->pool = more;
    return FL_OK;
}

static void drop_set(fl_exe *e, int64_t i)
{
    fl_replicas_free(e->sets.at[i]);
    fl_remove(&e->sets, i);
}

static fl_err set_for(fl_exe *e, const fl_request *o, int n,
                      fl_grad_scale scale, fl_replicas **out)
{
    for (int64_t i = 0; i < e->sets.n; i++)
        if (fl_replicas_fit(e->sets.at[i], o, n, scale)) {
            *out = e->sets.at[i];
            return FL_OK;
        }
    for (int64_t i = e->sets.n; i-- > 0;)
        if (fl_key_stale(fl_replicas_key(e->sets.at[i]), o->program))
            drop_set(e, i);
    if (e->sets.n == SETS)
        drop_set(e, 0);
    FL_TRY(fl_replicas_new(&e->env, o, n, scale, out));
    fl_push(&e->sets, *out);
    return FL_OK;
}

/* The number of places, but at most as many as the smallest feed has slices. */
static int places_for(const fl_places *places, const fl_request *o)
{
    int64_t n = places->n;
    for (int i = 0; !places->apart && n > 1 && i < o->n_feeds; i++) {
        const int64_t most = fl_tensor_slices(&o->feeds[i].tensor);
        n = most < n ? most : n;
    }
    return (int)n;
}

fl_err fl_exe_run_places(fl_exe *e, const fl_places *places,
                         const fl_program *p, fl_scope *s, int n_feeds,
                         const fl_feed *feeds, int n_fetches, fl_fetch *fetches)
{
    const fl_request o = {p, s, n_feeds, n_fetches, feeds, fetches};
    fl_replicas *set;
    if (places->n < 1)
        return fl_fail(FL_EINVAL, "a run on %d places, expected 1 or more",
                       places->n);
    const int n = places_for(places, &o);
    if (n == 1 && places->scale != FL_GRAD_FED)
        return fl_exe_run(e, p, s, n_feeds, feeds, n_fetches, fetches);
    FL_TRY(pool_for(e, n));
    FL_TRY(set_for(e, &o, n, places->scale, &set));
    return fl_replicas_run(set, e->pool, e->env.watch, &o, places->apart,
                           fetches);
}

/* A plan is compiled with or without a watch, so that all plans are dropped
 * when this changes. */
void fl_exe_profile(fl_exe *e, bool on)
{
    fl_watch *now = on || e->watch.poll ? &e->watch : NULL;
    fl_watch_profile(&e->watch, on);
    if (now == e->env.watch)
        return;
    e->env.watch = now;
    drop_plans(e);
}

int fl_exe_profile_rows(const fl_exe *e, int max, fl_profile_row *out)
{
    return fl_watch_rows(&e->watch, max, out);
}

char *fl_exe_profile_trace(const fl_exe *e)
{
    return fl_watch_trace(&e->watch);
}
