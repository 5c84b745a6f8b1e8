/* SPDX-License-Identifier: Apache-2.0 */
/* pushes.c - the checks of a push, and the ranges of slices that have come. */
#include "pserver/pushes.h"

#include "base/str.h"
#include "wire/codec.h"

enum {
    ROWS = 512,          /* row numbers that are checked at a time */
    RANGES_MOST = 65536, /* slices of a gradient of one session at most */
};

/* Elements first .. end of a gradient. */
typedef struct range {
    int64_t first, end;
} range;

/* What a session has sent of a gradient that comes in slices. */
typedef struct arrived {
    int rank;
    fl_id session;
    FL_VEC(range) range; /* in order; none overlaps another */
    int64_t n;           /* elements in all ranges */
} arrived;

/* What has come of one gradient, by rank. */
typedef FL_VEC(arrived) arrived_list;

struct fl_pushes {
    fl_pushes_opts opts;
    int64_t not_finite; /* pushes that were refused for it */
    arrived_list at[];  /* by number of the update */
};

fl_pushes *fl_pushes_new(const fl_pushes_opts *opts)
{
    fl_pushes *p =
        fl_mem_alloc(sizeof *p + (size_t)opts->updates * sizeof *p->at);
    p->opts = *opts;
    return p;
}

void fl_pushes_free(fl_pushes *p)
{
    for (int i = 0; p && i < p->opts.updates; i++) {
        for (int64_t k = 0; k < p->at[i].n; k++)
            fl_vec_fini(&p->at[i].at[k].range);
        fl_vec_fini(&p->at[i]);
    }
    fl_mem_free(p);
}

int64_t fl_pushes_not_finite(const fl_pushes *p)
{
    return p->not_finite;
}

static fl_update *find_update(const fl_pushes *p, const fl_item *item)
{
    return fl_map_get(p->opts.gradients, item->name);
}

/* --- an item --- */

static fl_err no_gradient(const fl_pushes *p, const char *name)
{
    fl_near near = {.name = name};
    for (fl_entry *e = NULL; (e = fl_map_next(p->opts.gradients, e));)
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

/* Whether the item is a slice, that is, some elements of the gradient. */
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
        return FL_OK; /* a table has a row for every number */
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

static fl_err check_item(const fl_pushes *p, const fl_item *item)
{
    const fl_update *u = find_update(p, item);
    if (!u)
        return no_gradient(p, item->name);
    if (item->kind != u->grad->kind || item->dtype != u->grad->dtype)
        return wrong_shape(u, item);
    if (item->kind == FL_SELECTED_ROWS)
        return check_rows(u, item);
    return is_whole(u, item) || is_slice(u->grad, item) ? FL_OK
                                                        : wrong_shape(u, item);
}

static fl_err check_finite(fl_pushes *p, const fl_parcel *of)
{
    if (!of->not_finite || p->opts.allow_nan)
        return FL_OK;
    p->not_finite++;
    return fl_fail(FL_EINVAL,
                   "push: gradient \"%s\" is not finite at element %lld; "
                   "FLUID_ALLOW_NAN=1 lets such gradients through",
                   of->not_finite, (long long)of->not_finite_at);
}

/* --- each element of a slice comes once --- */

static arrived *arrived_of(fl_pushes *p, const fl_update *u,
                           const fl_staged *by)
{
    arrived_list *list = &p->at[u->number];
    arrived *a = NULL;
    for (int64_t i = 0; i < list->n && !a; i++)
        if (list->at[i].rank == by->rank)
            a = &list->at[i];
    if (!a) {
        fl_push(list, (arrived){.rank = by->rank});
        a = &list->at[list->n - 1];
    }
    if (!fl_id_same(a->session, by->session)) {
        a->session = by->session; /* slices of an older session are dropped */
        a->range.n = a->n = 0;
    }
    return a;
}

/* The index of the first range that ends after the element. */
static int64_t find_range(const arrived *a, int64_t element)
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

static fl_err came_before(const fl_update *u, const arrived *a,
                          const range *old, const range *new)
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

static fl_err add_slice(const fl_update *u, arrived *a, const fl_item *item)
{
    const int64_t n = fl_shape_numel(&item->shape);
    const range new = {item->first, item->first + n};
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

static void remove_slice(const fl_update *u, arrived *a, const fl_item *item)
{
    if (is_whole(u, item))
        return;
    fl_remove(&a->range, find_range(a, item->first));
    a->n -= fl_shape_numel(&item->shape);
}

/* Record all slices of a push, or none of them if one is refused. When a
 * gradient is complete its record is cleared, since the next slices are those
 * of another step. */
static fl_err add_slices(fl_pushes *p, const fl_staged *by, const fl_parcel *of)
{
    fl_err err = FL_OK;
    int n = 0;
    for (; n < of->n && !err; n++) {
        const fl_item *item = &of->item[n];
        const fl_update *u = find_update(p, item);
        if (item->kind != FL_SELECTED_ROWS)
            err = add_slice(u, arrived_of(p, u, by), item);
    }
    for (int i = 0; i < n - (err != FL_OK); i++) {
        const fl_item *item = &of->item[i];
        const fl_update *u = find_update(p, item);
        if (item->kind == FL_SELECTED_ROWS)
            continue;
        arrived *a = arrived_of(p, u, by);
        if (err)
            remove_slice(u, a, item);
        else if (a->n == fl_shape_numel(&u->grad->shape))
            a->range.n = a->n = 0;
    }
    return err;
}

/* Slices are put together in memory that ends with the process. So a session
 * that began before this process may not go on with slices: some of them may be
 * lost. */
static fl_err check_earlier(const fl_pushes *p, const fl_staged *by,
                            const fl_parcel *of)
{
    if (of->n >= FL_UNDO_UPDATES)
        return fl_fail(FL_EINVAL,
                       "push: it has %d gradients, expected at most %d", of->n,
                       FL_UNDO_UPDATES - 1);
    if (!fl_kept_is_earlier(p->opts.kept, by->session))
        return FL_OK;
    for (int i = 0; i < of->n; i++) {
        const fl_item *item = &of->item[i];
        if (item->kind != FL_SELECTED_ROWS &&
            !is_whole(find_update(p, item), item))
            return fl_fail(FL_EINVAL,
                           "push: gradient \"%s\" comes in slices, and this "
                           "server was started again since the session began: "
                           "earlier slices are lost; join with a new session",
                           item->name);
    }
    return FL_OK;
}

/* --- the push --- */

fl_err fl_pushes_check(fl_pushes *p, const fl_staged *by)
{
    const fl_parcel *of = fl_parcel_of(by->part[0]);
    if (!of)
        return FL_OK;
    for (int i = 0; i < of->n; i++)
        FL_TRY(check_item(p, &of->item[i]));
    FL_TRY(check_finite(p, of));
    if (p->opts.kept)
        FL_TRY(check_earlier(p, by, of));
    return add_slices(p, by, of);
}
