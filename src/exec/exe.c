/* exe.c - the executor: finds the plan of a program, or makes it. */
#include "exec/exe.h"

#include "base/vec.h"

enum {
    PLANS = 32 /* kept at most; the one used longest ago goes */
};

/* Thread: one at a time. */
struct fl_exe {
    fl_exec_env env;
    fl_watch watch;
    FL_VEC(fl_plan *) plans; /* the one used last first */
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
}

void fl_exe_free(fl_exe *e)
{
    if (!e)
        return;
    drop_plans(e);
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
        if (fl_plan_stale(e->plans.at[i], p) || i >= PLANS - 1) {
            fl_plan_free(e->plans.at[i]);
            fl_remove(&e->plans, i);
        }
}

fl_err fl_exe_plan(fl_exe *e, const fl_program *p, fl_scope *s, int n_feeds,
                   const fl_feed *feeds, int n_fetches, const fl_fetch *fetches,
                   fl_plan **out)
{
    for (int64_t i = 0; i < e->plans.n; i++)
        if (fl_plan_fits(e->plans.at[i], p, s, n_feeds, feeds, n_fetches,
                         fetches)) {
            to_front(e, i);
            *out = e->plans.at[0];
            return FL_OK;
        }
    fl_plan *plan;
    drop_stale(e, p);
    FL_TRY(
        fl_plan_new(&e->env, p, s, n_feeds, feeds, n_fetches, fetches, &plan));
    fl_insert(&e->plans, 0, plan);
    *out = plan;
    return FL_OK;
}

fl_err fl_exe_run(fl_exe *e, const fl_program *p, fl_scope *s, int n_feeds,
                  const fl_feed *feeds, int n_fetches, fl_fetch *fetches)
{
    fl_plan *plan;
    FL_TRY(fl_exe_plan(e, p, s, n_feeds, feeds, n_fetches, fetches, &plan));
    return fl_plan_run(plan, feeds, fetches);
}

void fl_fetch_fini(fl_fetch *f)
{
    fl_tensor_fini(&f->tensor);
    fl_tensor_fini(&f->rows.index);
    fl_tensor_fini(&f->rows.value);
    *f = (fl_fetch){.name = f->name};
}

/* Plans know at their making whether they are watched: new ones are needed
 * where that changes. */
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
