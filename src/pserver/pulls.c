/* SPDX-License-Identifier: Apache-2.0 */
/* pulls.c - pulls as tasks of owners: sizes are checked, values are read, and
 * the owner that finishes last sends the answer.
 *
 * Easy to get wrong: once the last task is submitted, the pull may be answered
 * and freed. */
#include "pserver/pulls.h"

#include "base/map.h"
#include "wire/codec.h"

#include <pthread.h>
#include <stdio.h>

enum {
    AHEAD = 16,            /* rows between prefetch and copy */
    FEW_BYTES = 256 << 10, /* of rows that the caller of a pull reads itself */
    SHARED_LEAST = 16 << 10, /* bytes of a kept tensor; pulls copy smaller ones
                              */
};

/* A variable that may be pulled. Thread: its owner; name and owner: any. */
typedef struct pullable {
    const char *name;
    int owner; /* number of the owner */
    fl_value *value;
    fl_table *table; /* NULL: the variable is a tensor */
    int state;       /* table: index of a state, or FL_TABLE_VALUE */
    /* Kept: */
    fl_kept *kept;          /* NULL: its memory is never shared */
    fl_tensor copy;         /* what pulls share if it is not the value */
    int64_t copied;         /* *changes when the copy was made; -1: there is
                               none */
    const int64_t *changes; /* how often the value was written; NULL: the
                               variable is not kept */
} pullable;

struct fl_pulls {
    fl_pulls_opts opts;
    fl_arena *arena;
    fl_map pullables;     /* by name */
    pthread_mutex_t lock; /* of the fields of `reading` that say so */
};

fl_pulls *fl_pulls_new(const fl_pulls_opts *opts)
{
    fl_pulls *p = fl_mem_alloc(sizeof *p);
    p->opts = *opts;
    p->arena = fl_arena_new();
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void fl_pulls_free(fl_pulls *p)
{
    if (!p)
        return;
    for (fl_entry *e = NULL; (e = fl_map_next(&p->pullables, e));)
        fl_tensor_fini(&((pullable *)e->value)->copy);
    fl_map_fini(&p->pullables);
    pthread_mutex_destroy(&p->lock);
    fl_arena_free(p->arena);
    fl_mem_free(p);
}

void fl_pulls_add(fl_pulls *p, const char *name, fl_value *v)
{
    pullable *k = fl_arena_alloc(p->arena, sizeof *k);
    *k = (pullable){.name = name, .value = v};
    fl_map_put(&p->pullables, name, k);
}

int fl_pulls_owner(const fl_pulls *p, const char *name)
{
    const pullable *k = fl_map_get(&p->pullables, name);
    return k ? k->owner : -1;
}

void fl_pulls_assign(fl_pulls *p, const char *name, int owner)
{
    pullable *k = fl_map_get(&p->pullables, name);
    k->owner = owner;
}

void fl_pulls_in_rows(fl_pulls *p, const char *name, fl_table *t, int state)
{
    pullable *k = fl_map_get(&p->pullables, name);
    k->table = t;
    k->state = state;
}

void fl_pulls_keep(fl_pulls *p, const char *name, const int64_t *changes,
                   fl_kept *kept)
{
    pullable *k = fl_map_get(&p->pullables, name);
    k->changes = changes;
    k->copied = -1;
    k->kept = kept;
}

/* A pull that the owners answer together. */
typedef struct reading {
    fl_pulls *pulls;
    fl_peer to;
    fl_msg reply;     /* all pointers except the blob are NULL */
    fl_parcel *want;  /* NULL: the pull names nothing */
    bool lost;        /* the pull names a variable that is unknown */
    pullable **of;    /* variable of each item; not set if lost */
    fl_tensor *value; /* value of each item; its owner sets it */
    /* under the lock of `pulls`: */
    int left;      /* owners that have not finished */
    size_t bytes;  /* size of the answer that the owners have counted so far */
    fl_err err;    /* the first error */
    char why[512]; /* message of err */
} reading;

/* The part of one owner in a pull. */
typedef struct read_task {
    reading *of;
    int owner; /* number of the owner */
} read_task;

/* --- on the owner's thread --- */

static fl_err no_row(const pullable *k, int64_t row, int64_t rows)
{
    return fl_fail(FL_EINVAL, "pull: \"%s\" has no row %lld, it has %lld",
                   k->name, (long long)row, (long long)rows);
}

static fl_err read_rows(const pullable *k, const fl_tensor *t, int64_t n,
                        const int64_t *row, fl_tensor *out)
{
    const int64_t width = fl_shape_span(&t->shape, 1, t->shape.rank);
    const size_t bytes = (size_t)width * fl_dtype_size(t->dtype);
    fl_shape shape = t->shape;
    if (shape.rank < 1)
        return fl_fail(FL_EINVAL, "pull: \"%s\" has no rows", k->name);
    shape.dim[0] = n;
    FL_TRY(fl_tensor_resize(out, t->dtype, &shape));
    const char *from = t->data;
    char *to = out->data;
    for (int64_t i = 0; i < n; i++)
        if (row[i] < 0 || row[i] >= t->shape.dim[0])
            return no_row(k, row[i], t->shape.dim[0]);
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) { /* a row may lie on two cache lines */
            const char *soon = from + (size_t)row[i + AHEAD] * bytes;
            __builtin_prefetch(soon);
            __builtin_prefetch(soon + bytes - 1);
        }
        memcpy(to + (size_t)i * bytes, from + (size_t)row[i] * bytes, bytes);
    }
    return FL_OK;
}

static fl_err read_some(const pullable *k, const fl_item *item, fl_tensor *out)
{
    const int64_t n = item->shape.dim[0];
    int64_t *row = fl_mem_try((size_t)(n + 1) * sizeof *row);
    if (!row)
        return fl_fail(FL_ENOMEM, "pull: no memory for %lld rows of \"%s\"",
                       (long long)n, k->name);
    fl_bytes_copy(item->rows, 0, row, (size_t)n * sizeof *row);
    const fl_err err = k->table ? fl_table_read(k->table, k->state, n, row, out)
                                : read_rows(k, &k->value->tensor, n, row, out);
    fl_mem_free(row);
    return err;
}

/* List ids of a table in the table's order, from the first one, or after the id
 * that the item names. */
static fl_err read_ids(const pullable *k, const fl_item *item, fl_tensor *out)
{
    fl_table_cursor from = {0};
    fl_tensor rows = {0};
    int64_t after;
    char text[FL_SHAPE_TEXT];
    if (!k->table)
        return fl_fail(
            FL_EINVAL,
            "pull: \"%s\" is not a table, so its ids cannot be listed",
            k->name);
    if (item->shape.rank != 1 || item->shape.dim[0] > 1)
        return fl_fail(FL_EINVAL,
                       "pull: a request for the ids of \"%s\" has dim %s, "
                       "expected [0], or [1] to start after a row",
                       k->name, fl_shape_text(&item->shape, text));
    if (item->shape.dim[0]) {
        fl_bytes_copy(item->rows, 0, &after, sizeof after);
        from.next = fl_table_order(fl_table_key_of(k->table), after) + 1;
        from.done = !from.next;
    }
    const fl_err err = fl_table_scan(k->table, &from, item->height, out, &rows);
    fl_tensor_fini(&rows);
    return err;
}

static fl_err check_range(const pullable *k, const fl_item *item)
{
    const int64_t all = fl_tensor_numel(&k->value->tensor);
    const int64_t n = item->shape.dim[0];
    if (!k->table && item->first <= all && n <= all - item->first)
        return FL_OK;
    return fl_fail(
        FL_EINVAL,
        "pull: elements %lld to %lld of \"%s\" are asked for, which "
        "%s",
        (long long)item->first, (long long)(item->first + n - 1), k->name,
        k->table ? "is a table: it is asked for by rows" : "has fewer");
}

/* A pull of a large kept tensor shares its memory where that is possible. Else
 * the first pull after a change makes a copy. */
static fl_err share_kept(pullable *k, fl_tensor *out)
{
    const fl_tensor *t = &k->value->tensor;
    if (fl_tensor_bytes(t) >= SHARED_LEAST && k->kept &&
        fl_kept_may_share(k->kept, k->value))
        return fl_tensor_ref(out, t);
    if (k->copied != *k->changes)
        FL_TRY(fl_tensor_copy(&k->copy, &k->value->tensor));
    k->copied = *k->changes;
    return fl_tensor_ref(out, &k->copy);
}

/* Read one item of a pull. For a range of a variable *out shares the whole
 * variable; the answer then contains only the range. */
static fl_err read_one(pullable *k, const fl_item *item, fl_tensor *out)
{
    const fl_value *v = k->value;
    const bool range = fl_item_is_range(item);
    const bool some = item->shape.rank > 0 && !range;
    if (!k->table && (v->kind != FL_LOD_TENSOR || !v->tensor.data))
        return fl_fail(FL_ENOENT,
                       "pull: \"%s\" has no value on this server yet", k->name);
    if (item->height)
        return read_ids(k, item, out);
    if (range)
        FL_TRY(check_range(k, item));
    if (some)
        return read_some(k, item, out);
    if (k->table)
        return fl_fail(FL_EINVAL,
                       "pull: \"%s\" is a table: it is asked for by rows",
                       k->name);
    return k->changes ? share_kept(k, out) : fl_tensor_ref(out, &v->tensor);
}

/* How many ids an item can list at most. */
static size_t most_ids(const pullable *k, const fl_item *item)
{
    const int64_t rows = fl_table_rows(k->table);
    return (size_t)(item->height < rows ? item->height : rows);
}

/* An upper bound of the bytes that an item adds to the answer. It matters
 * because a small request can name a wide row many times. */
static size_t bytes_for(const pullable *k, const fl_item *item)
{
    const fl_tensor *t = &k->value->tensor;
    const bool some = item->shape.rank > 0;
    const int64_t n = some ? item->shape.dim[0] : 1;
    if (k->table && item->height)
        return most_ids(k, item) * ((size_t)fl_table_span(k->table) + 1) *
               sizeof(double);
    if (fl_item_is_range(item)) /* a range that is too long is refused later */
        return k->table || n > fl_tensor_numel(t)
                   ? 0
                   : (size_t)n * fl_dtype_size(t->dtype);
    if (k->table)
        return (size_t)n * (size_t)fl_table_width(k->table) * sizeof(double);
    return (size_t)n * fl_dtype_size(t->dtype) *
           (size_t)fl_shape_span(&t->shape, some, t->shape.rank);
}

/* Check the size of the answer before memory is allocated for it. The sum
 * cannot overflow, since the request has 8 bytes for each row that it names. */
static fl_err check_size(reading *r, int index)
{
    const size_t own = r->pulls->opts.max_answer;
    const size_t most = own ? own : FL_VALUES_MOST;
    pthread_mutex_lock(&r->pulls->lock);
    for (int i = 0; i < r->want->n && r->bytes <= most; i++)
        if (r->of[i]->owner == index)
            r->bytes += bytes_for(r->of[i], &r->want->item[i]);
    const bool fits = r->bytes <= most;
    pthread_mutex_unlock(&r->pulls->lock);
    if (fits)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "pull: the answer would have more than %zu bytes; ask for "
                   "fewer rows or variables at once",
                   most);
}

static fl_err read_own(reading *r, int index)
{
    if (!r->want || r->lost)
        return FL_OK;
    FL_TRY(check_size(r, index));
    for (int i = 0; i < r->want->n; i++)
        if (r->of[i]->owner == index)
            FL_TRY(read_one(r->of[i], &r->want->item[i], &r->value[i]));
    return FL_OK;
}

/* --- sending the answer --- */

static void free_reading(reading *r)
{
    for (int i = 0; r->want && i < r->want->n; i++)
        fl_tensor_fini(&r->value[i]);
    fl_parcel_unref(r->want);
    fl_mem_free(r);
}

static void send_answer(reading *r)
{
    const fl_pulls_opts *o = &r->pulls->opts;
    if (r->err) {
        r->reply.kind = FL_MSG_ERROR;
        r->reply.code = (int)r->err;
        r->reply.text = r->why;
        o->answer(o->self, r->to, &r->reply);
        return;
    }
    fl_parcel *p = fl_parcel_new();
    for (int i = 0; r->want && i < r->want->n; i++) {
        const fl_item *item = &r->want->item[i];
        if (fl_item_is_range(item))
            fl_parcel_add_slice(p, item->name, &r->value[i], item->first,
                                item->shape.dim[0]);
        else
            fl_parcel_add(p, item->name, &r->value[i]);
    }
    r->reply.blob = fl_parcel_blob(p);
    o->answer(o->self, r->to, &r->reply);
    fl_keeper_parcels.drop(NULL, r->reply.blob);
    fl_parcel_unref(p);
}

static void note_failure(reading *r, fl_err err)
{
    if (!err || r->err)
        return;
    r->err = err;
    snprintf(r->why, sizeof r->why, "%s", fl_errmsg());
}

static void run_read_task(void *arg)
{
    read_task *p = arg;
    reading *r = p->of;
    const fl_err err = read_own(r, p->owner);
    pthread_mutex_lock(&r->pulls->lock);
    note_failure(r, err);
    const bool last = !--r->left;
    pthread_mutex_unlock(&r->pulls->lock);
    if (!last)
        return;
    send_answer(r);
    free_reading(r);
}

/* --- a pull arrives --- */

static fl_err find_pullables(const fl_pulls *p, reading *r)
{
    for (int i = 0; r->want && i < r->want->n; i++) {
        const char *name = r->want->item[i].name;
        fl_near near = {.name = name};
        r->of[i] = fl_map_get(&p->pullables, name);
        if (r->of[i])
            continue;
        for (fl_entry *e = NULL; (e = fl_map_next(&p->pullables, e));)
            fl_near_offer(&near, e->key);
        return fl_fail(FL_ENOENT,
                       "pull: there is no variable \"%s\" on this server%s%s%s",
                       name, near.best ? "; the nearest is \"" : "",
                       near.best ? near.best : "", near.best ? "\"" : "");
    }
    return FL_OK;
}

/* Whether this owner takes part in the pull. The first owner always does, so
 * that even a pull of no variable is answered after the rounds before it. */
static bool has_part(const reading *r, int index)
{
    for (int i = 0; r->want && !r->lost && i < r->want->n; i++)
        if (r->of[i]->owner == index)
            return true;
    return index == 0;
}

/* Whether the pull asks for a few rows and nothing else. */
static bool is_small(const reading *r)
{
    size_t bytes = 0;
    bool small = true;
    for (int i = 0; small && !r->lost && r->want && i < r->want->n; i++) {
        const fl_item *item = &r->want->item[i];
        const bool rows =
            item->shape.rank && !item->height && !fl_item_is_range(item);
        bytes += rows ? bytes_for(r->of[i], item) : 0;
        small = rows && bytes <= FEW_BYTES;
    }
    return small;
}

/* One allocation: the arrays are behind it. */
static reading *new_reading(int n, int owners, read_task **tasks)
{
    reading *r;
    r = fl_mem_alloc(sizeof *r + (size_t)owners * sizeof **tasks +
                     (size_t)n * (sizeof *r->value + sizeof *r->of));
    r->value = (fl_tensor *)(r + 1);
    r->of = (pullable **)(r->value + n);
    *tasks = (read_task *)(r->of + n);
    return r;
}

void fl_pulls_read(fl_pulls *p, fl_blob names, fl_peer to, const fl_msg *reply,
                   bool idle)
{
    const fl_pulls_opts *o = &p->opts;
    fl_parcel *want = fl_parcel_of(names);
    read_task *parts;
    reading *r = new_reading(want ? want->n : 0, o->owners, &parts);
    r->pulls = p;
    r->to = to;
    r->reply = *reply;
    r->want = want ? fl_parcel_ref(want) : NULL;
    note_failure(r, find_pullables(p, r));
    r->lost = r->err != FL_OK;
    for (int i = 0; i < o->owners; i++)
        if (has_part(r, i))
            parts[r->left++] = (read_task){r, i};
    const bool here = idle && is_small(r);
    for (int i = 0, n = r->left; i < n;
         i++) { /* do not read r here: the last owner may have freed it */
        if (here)
            run_read_task(&parts[i]);
        else
            o->submit(o->store, parts[i].owner, run_read_task, &parts[i]);
    }
}
