/* store.c - pushes are checked, rounds go through the owners' threads.
 *
 * A round is a task for every owner; whoever finishes last reports it. Rounds
 * and pushes are reported in the order in which they were given, since the
 * machine tells them apart by that alone: an owner reports before it begins its
 * next task, and no later round is complete without that owner. */
#include "pserver/store_in.h"

#include <stdio.h>

enum {
    ROWS = 512,         /* numbers of rows that are looked at together */
    RANGES_MOST = 65536 /* slices of a gradient that wait for the others */
};

/* --- would this push do? --- */

static fl_err unknown(const fl_pstore *s, const char *name)
{
    fl_near near = {.name = name};
    for (fl_entry *e = NULL; (e = fl_map_next(&s->gradients, e));)
        fl_near_offer(&near, e->key);
    return fl_fail(FL_ENOENT,
                   "push: there is no gradient \"%s\" on this server%s%s%s",
                   name, near.best ? "; the nearest is \"" : "",
                   near.best ? near.best : "", near.best ? "\"" : "");
}

static fl_err wrong_shape(const fl_update *u, const fl_item *item)
{
    const fl_var *g = u->grad;
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    return fl_fail(FL_ESHAPE,
                   "push: gradient \"%s\" is %s%s%s, expected %s%s%s",
                   item->name, item->kind == FL_SELECTED_ROWS ? "rows of " : "",
                   fl_dtype_word(item->dtype), fl_shape_text(&item->shape, got),
                   g->kind == FL_SELECTED_ROWS ? "rows of " : "",
                   fl_dtype_word(g->dtype), fl_shape_text(&g->shape, want));
}

static bool is_whole(const fl_update *u, const fl_item *item)
{
    return !item->first && fl_shape_equal(&item->shape, &u->grad->shape);
}

/* A slice is a list of some of the elements. */
static bool is_slice(const fl_var *g, const fl_item *item)
{
    const int64_t numel = fl_shape_numel(&g->shape);
    const int64_t n = item->shape.rank == 1 ? item->shape.dim[0] : 0;
    return n > 0 && n < numel && item->first >= 0 && item->first <= numel - n;
}

static fl_err wrong_row(const fl_item *item, int64_t row, int64_t rows)
{
    return fl_fail(FL_EINVAL,
                   "push: gradient \"%s\" has row %lld, there are %lld",
                   item->name, (long long)row, (long long)rows);
}

static fl_err check_rows(const fl_update *u, const fl_item *item)
{
    const fl_shape *want = &u->grad->shape;
    fl_shape whole = item->shape;
    whole.dim[0] = want->dim[0];
    if (item->shape.rank < 1 || !fl_shape_equal(&whole, want))
        return wrong_shape(u, item);
    if (u->table)
        return FL_OK; /* any number is a row of it */
    int64_t row[ROWS];
    for (int64_t at = 0, n; at < item->shape.dim[0]; at += n) {
        n = item->shape.dim[0] - at < ROWS ? item->shape.dim[0] - at : ROWS;
        fl_bytes_copy(item->rows, (size_t)at * sizeof *row, row,
                      (size_t)n * sizeof *row);
        for (int64_t i = 0; i < n; i++)
            if (row[i] < 0 || row[i] >= want->dim[0])
                return wrong_row(item, row[i], want->dim[0]);
    }
    return FL_OK;
}

static fl_err check_item(const fl_pstore *s, const fl_item *item)
{
    const fl_update *u = fl_map_get(&s->gradients, item->name);
    if (!u)
        return unknown(s, item->name);
    if (item->kind != u->grad->kind || item->dtype != u->grad->dtype)
        return wrong_shape(u, item);
    if (item->kind == FL_SELECTED_ROWS)
        return check_rows(u, item);
    return is_whole(u, item) || is_slice(u->grad, item) ? FL_OK
                                                        : wrong_shape(u, item);
}

static fl_err check_finite(fl_pstore *s, const fl_parcel *p)
{
    if (!p->not_finite || s->opts.allow_nan)
        return FL_OK;
    s->refused++;
    return fl_fail(FL_EINVAL,
                   "push: gradient \"%s\" is not finite at element %lld; "
                   "FLUID_ALLOW_NAN=1 lets such gradients through",
                   p->not_finite, (long long)p->not_finite_at);
}

/* --- slices: each element comes once --- */

static fl_arrived *arrived_of(fl_update *u, const fl_staged *by)
{
    fl_arrived *a = NULL;
    for (int64_t i = 0; i < u->arrived.n && !a; i++)
        if (u->arrived.at[i].rank == by->rank)
            a = &u->arrived.at[i];
    if (!a) {
        fl_push(&u->arrived, (fl_arrived){.rank = by->rank});
        a = &u->arrived.at[u->arrived.n - 1];
    }
    if (!fl_id_same(a->session, by->session)) {
        a->session = by->session; /* what another one left is worth nothing */
        a->range.n = a->n = 0;
    }
    return a;
}

/* The first range that ends behind that element. */
static int64_t find_range(const fl_arrived *a, int64_t element)
{
    int64_t from = 0, to = a->range.n;
    while (from < to) {
        const int64_t at = from + (to - from) / 2;
        if (a->range.at[at].end > element)
            to = at;
        else
            from = at + 1;
    }
    return from;
}

static fl_err came_before(const fl_update *u, const fl_arrived *a,
                          const fl_range *old, const fl_range *new)
{
    const int64_t all = fl_shape_numel(&u->grad->shape);
    return fl_fail(FL_EPROTO,
                   "push: elements %lld to %lld of gradient \"%s\" came after "
                   "elements %lld to %lld, while %lld of %lld were missing",
                   (long long)new->first, (long long)new->end - 1,
                   u->grad->name, (long long)old->first,
                   (long long)old->end - 1, (long long)(all - a->n),
                   (long long)all);
}

static fl_err add_slice(fl_update *u, fl_arrived *a, const fl_item *item)
{
    const int64_t n = fl_shape_numel(&item->shape);
    const fl_range new = {item->first, item->first + n};
    const int64_t at = find_range(a, new.first);
    if (at < a->range.n && a->range.at[at].first < new.end)
        return came_before(u, a, &a->range.at[at], &new);
    if (is_whole(u, item))
        return FL_OK;
    if (a->range.n == RANGES_MOST)
        return fl_fail(FL_EPROTO,
                       "push: gradient \"%s\" comes in more than %d slices",
                       u->grad->name, RANGES_MOST);
    fl_insert(&a->range, at, new);
    a->n += n;
    return FL_OK;
}

static void remove_slice(const fl_update *u, fl_arrived *a, const fl_item *item)
{
    if (is_whole(u, item))
        return;
    fl_remove(&a->range, find_range(a, item->first));
    a->n -= fl_shape_numel(&item->shape);
}

/* All slices of a push, or none of them if one is refused. Those of a gradient
 * that is complete are forgotten: the next ones are of another step. */
static fl_err add_slices(fl_pstore *s, const fl_staged *by, const fl_parcel *p)
{
    fl_err err = FL_OK;
    int n = 0;
    for (; n < p->n && !err; n++) {
        const fl_item *item = &p->item[n];
        fl_update *u = fl_map_get(&s->gradients, item->name);
        if (item->kind != FL_SELECTED_ROWS)
            err = add_slice(u, arrived_of(u, by), item);
    }
    for (int i = 0; i < n - (err != FL_OK); i++) {
        const fl_item *item = &p->item[i];
        fl_update *u = fl_map_get(&s->gradients, item->name);
        if (item->kind == FL_SELECTED_ROWS)
            continue;
        fl_arrived *a = arrived_of(u, by);
        if (err)
            remove_slice(u, a, item);
        else if (a->n == fl_shape_numel(&u->grad->shape))
            a->range.n = a->n = 0;
    }
    return err;
}

static fl_err check(void *self, const fl_staged *by)
{
    fl_pstore *s = self;
    const fl_parcel *p = fl_parcel_of(by->part[0]);
    if (!p)
        return FL_OK;
    for (int i = 0; i < p->n; i++)
        FL_TRY(check_item(s, &p->item[i]));
    FL_TRY(check_finite(s, p));
    return add_slices(s, by, p);
}

/* --- updates --- */

static fl_err run_update(fl_update *u)
{
    if (u->table && !u->sum.n)
        return FL_OK;
    FL_TRY(fl_pstore_claim(u->writes.at, u->writes.n));
    if (u->table)
        FL_TRY(fl_update_run_table(u));
    else if (u->ruled.op)
        FL_TRY(fl_update_run_rule(u));
    const fl_err err = fl_plan_run(u->plan, NULL, NULL);
    fl_update_drop(u);
    return err;
}

static fl_err run_rates(fl_owner *o)
{
    for (int64_t i = 0; i < o->rates.n; i++) {
        fl_rates *r = &o->rates.at[i];
        FL_TRY(fl_pstore_claim(r->writes.at, r->writes.n));
        const fl_err err = fl_plan_run(r->plan, NULL, NULL);
        if (err)
            return fl_fail_at(err, "learning rates");
    }
    return FL_OK;
}

/* The round's items to the owner's updates, by rank and number. */
static void deal_items(const fl_owner *o, const fl_applying *a)
{
    for (int64_t i = 0; i < o->updates.n; i++)
        o->updates.at[i]->given.n = 0;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < a->by[i].n; k++) {
            const fl_parcel *p = fl_parcel_of(a->by[i].part[k]);
            for (int j = 0; p && j < p->n; j++) {
                fl_update *u =
                    fl_map_get(&o->store->gradients, p->item[j].name);
                if (u && u->owner == o->index)
                    fl_push(&u->given, (fl_given){i, &p->item[j]});
            }
        }
}

static fl_err apply_round(fl_owner *o, const fl_applying *a)
{
    FL_TRY(run_rates(o));
    deal_items(o, a);
    for (int64_t i = 0; i < o->updates.n; i++) {
        fl_update *u = o->updates.at[i];
        bool some;
        fl_err err = fl_update_mean(u, a->n, &some);
        if (!err && some)
            err = run_update(u);
        if (err)
            return fl_fail_at(err, "update by \"%s\"", u->grad->name);
    }
    return FL_OK;
}

static fl_err apply_item(fl_owner *o, const fl_staged *by, const fl_item *item)
{
    fl_update *u = fl_map_get(&o->store->gradients, item->name);
    bool some;
    if (!u || u->owner != o->index)
        return FL_OK;
    fl_err err = fl_update_take(u, by, item, &some);
    if (!err && some)
        err = run_update(u);
    return err ? fl_fail_at(err, "update by \"%s\"", u->grad->name) : FL_OK;
}

/* Asynchronous: the rates move on once for every step of any trainer, between
 * its last push and whatever comes next. */
static fl_err apply_push(fl_owner *o, const fl_staged *by)
{
    if (o->due)
        FL_TRY(run_rates(o));
    o->due = by->last;
    for (int k = 0; k < by->n; k++) {
        const fl_parcel *p = fl_parcel_of(by->part[k]);
        for (int i = 0; p && i < p->n; i++)
            FL_TRY(apply_item(o, by, &p->item[i]));
    }
    return FL_OK;
}

/* --- rounds through the threads --- */

typedef struct share {
    fl_owner *owner;
    fl_applying *of;
} share;

static void free_applying(fl_applying *a)
{
    for (int i = 0; i < a->n; i++)
        fl_mem_free((void *)a->by[i].part);
    fl_mem_free(a->by);
    fl_mem_free(a);
}

static void finish_share(fl_applying *a, fl_err err)
{
    fl_pstore *s = a->store;
    pthread_mutex_lock(&s->lock);
    if (err && !a->why[0])
        snprintf(a->why, sizeof a->why, "%s", fl_errmsg());
    const bool last = !--a->left;
    if (last)
        fl_remove(&s->applying, 0); /* the oldest: see above */
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    s->opts.applied(s->opts.self, a->why[0] ? a->why : NULL);
    free_applying(a);
}

static void run_share(void *arg)
{
    share *t = arg;
    fl_applying *a = t->of;
    finish_share(a, t->owner->store->async ? apply_push(t->owner, a->by)
                                           : apply_round(t->owner, a));
    fl_mem_free(t);
}

static void apply(void *self, int64_t round, const fl_staged *by, int n)
{
    fl_pstore *s = self;
    fl_applying *a = fl_mem_alloc(sizeof *a);
    a->store = s;
    a->n = n;
    a->left = s->owners;
    a->by = fl_mem_alloc((size_t)(n + 1) * sizeof *a->by);
    for (int i = 0; i < n; i++) {
        const size_t size = (size_t)by[i].n * sizeof *by[i].part;
        a->by[i] = by[i];
        a->by[i].part = fl_mem_alloc(size + 1);
        if (size)
            memcpy((void *)a->by[i].part, by[i].part, size);
    }
    pthread_mutex_lock(&s->lock);
    fl_push(&s->applying, a);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->owners; i++) {
        share *t = fl_mem_alloc(sizeof *t);
        *t = (share){&s->owner[i], a};
        fl_pool_submit(t->owner->pool, &t->owner->group, run_share, t);
    }
}

/* --- its life --- */

fl_err fl_pstore_new(const fl_pstore_opts *opts, fl_pstore **out)
{
    fl_pstore *s = fl_mem_alloc(sizeof *s);
    const fl_attr *sync = fl_desc_attr(&opts->op->desc, "sync_mode");
    s->opts = *opts;
    s->env = *opts->env;
    s->env.watch = NULL; /* it belongs to the caller's thread */
    s->env.service = NULL;
    s->env.no_fuse = true; /* the same bits whatever the plan */
    s->async = sync && !sync->b;
    s->tables.limit = opts->table_bytes;
    s->face = (fl_store){s, fl_keeper_parcels, check, apply, fl_pstore_read};
    s->arena = fl_arena_new();
    pthread_mutex_init(&s->lock, NULL);
    s->owners = opts->owners > 0 ? opts->owners : 1;
    if (s->owners > FL_OWNERS_MAX)
        s->owners = FL_OWNERS_MAX;
    s->owner = fl_mem_alloc((size_t)s->owners * sizeof *s->owner);
    for (int i = 0; i < s->owners; i++)
        s->owner[i] = (fl_owner){.store = s, .index = i};
    const fl_err err = fl_pstore_make(s);
    if (err) {
        fl_pstore_free(s);
        return err;
    }
    *out = s;
    return FL_OK;
}

static void free_update(fl_update *u)
{
    fl_plan_free(u->plan);
    fl_program_free(u->program);
    fl_table_free(u->table);
    fl_rows *rows[] = {&u->own, &u->all, &u->sum};
    for (int i = 0; i < 3; i++) {
        fl_tensor_fini(&rows[i]->index);
        fl_tensor_fini(&rows[i]->value);
    }
    for (int64_t i = 0; i < u->slices.n; i++)
        fl_tensor_fini(&u->slices.at[i].tensor);
    fl_vec_fini(&u->slices);
    for (int64_t i = 0; i < u->arrived.n; i++)
        fl_vec_fini(&u->arrived.at[i].range);
    fl_vec_fini(&u->arrived);
    fl_vec_fini(&u->given);
    fl_vec_fini(&u->reader);
    fl_vec_fini(&u->writes);
}

static void free_owner(fl_owner *o)
{
    for (int64_t i = 0; i < o->rates.n; i++) {
        fl_plan_free(o->rates.at[i].plan);
        fl_program_free(o->rates.at[i].program);
        fl_vec_fini(&o->rates.at[i].writes);
    }
    fl_vec_fini(&o->rates);
    fl_vec_fini(&o->updates);
}

void fl_pstore_free(fl_pstore *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->owners; i++)
        fl_pool_free(s->owner[i].pool);
    for (int64_t i = 0; i < s->updates.n; i++)
        free_update(s->updates.at[i]);
    for (int i = 0; i < s->owners; i++)
        free_owner(&s->owner[i]);
    fl_mem_free(s->owner);
    fl_vec_fini(&s->updates);
    fl_vec_fini(&s->rate_blocks);
    fl_vec_fini(&s->applying);
    fl_map_fini(&s->gradients);
    fl_map_fini(&s->kept);
    fl_map_fini(&s->rated);
    pthread_mutex_destroy(&s->lock);
    fl_arena_free(s->arena);
    fl_mem_free(s);
}

const fl_store *fl_pstore_face(const fl_pstore *s)
{
    return &s->face;
}

void fl_pstore_waits(fl_pstore *s, fl_str *rows)
{
    pthread_mutex_lock(&s->lock);
    const long long n = s->applying.n;
    pthread_mutex_unlock(&s->lock);
    if (n)
        fl_str_printf(rows,
                      "the server waits for its %d owner threads: %lld "
                      "%s to be applied\n",
                      s->owners, n, s->async ? "pushes" : "rounds");
    if (s->refused)
        fl_str_printf(rows,
                      "%lld pushes with gradients that are not finite "
                      "were refused\n",
                      (long long)s->refused);
}
