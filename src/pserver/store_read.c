/* store_read.c - answers to pulls.
 *
 * A pull is a task for every owner of something that it asks for, behind what
 * that owner has to apply first; whoever finishes last sends the answer. Whole
 * tensors are shared, not copied: the owner makes itself a copy before it
 * writes to one that is still on its way. */
#include "pserver/store_in.h"

#include <stdio.h>

enum {
    AHEAD = 16 /* rows that are on their way from memory */
};

typedef struct reading {
    fl_pstore *store;
    fl_peer to;
    fl_msg reply; /* without pointers but the blob */
    fl_parcel *want;
    bool lost;            /* something that is not here was asked for */
    const fl_ware **kept; /* of each item, unless lost */
    fl_tensor *value;     /* of each item, filled by its owner */
    /* under the store's lock: */
    int left;     /* owners */
    size_t bytes; /* of the answer, as far as they have counted */
    fl_err err;
    char why[512];
} reading;

typedef struct part {
    reading *of;
    int owner;
} part;

/* --- on the owner's thread --- */

static fl_err no_row(const fl_ware *k, int64_t row, int64_t rows)
{
    return fl_fail(FL_EINVAL, "pull: \"%s\" has no row %lld, it has %lld",
                   k->name, (long long)row, (long long)rows);
}

static fl_err read_rows(const fl_ware *k, const fl_tensor *t, int64_t n,
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
        if (i + AHEAD < n) { /* a row may lie on two lines */
            const char *soon = from + (size_t)row[i + AHEAD] * bytes;
            __builtin_prefetch(soon);
            __builtin_prefetch(soon + bytes - 1);
        }
        memcpy(to + (size_t)i * bytes, from + (size_t)row[i] * bytes, bytes);
    }
    return FL_OK;
}

static fl_err read_some(const fl_ware *k, const fl_item *item, fl_tensor *out)
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

/* Which rows there are, from the one behind that which was named. */
static fl_err read_ids(const fl_ware *k, const fl_item *item, fl_tensor *out)
{
    fl_table_cursor from = {0};
    fl_tensor rows = {0};
    int64_t after;
    if (!k->table)
        return fl_fail(FL_EINVAL,
                       "pull: \"%s\" is no table: it does not list its rows",
                       k->name);
    if (item->shape.rank != 1 || item->shape.dim[0] > 1)
        return fl_fail(FL_EINVAL,
                       "pull: ids of \"%s\" are asked for behind one row or "
                       "none",
                       k->name);
    if (item->shape.dim[0]) {
        fl_bytes_copy(item->rows, 0, &after, sizeof after);
        from.next = fl_table_order(fl_table_key_of(k->table), after) + 1;
        from.done = !from.next;
    }
    const fl_err err = fl_table_scan(k->table, &from, item->height, out, &rows);
    fl_tensor_fini(&rows);
    return err;
}

static fl_err check_range(const fl_ware *k, const fl_item *item)
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

/* Of a range the whole variable, whose memory is shared: the answer cuts it. */
static fl_err read_one(const fl_ware *k, const fl_item *item, fl_tensor *out)
{
    const fl_value *v = k->value;
    const bool range = fl_item_is_range(item);
    const bool some = item->shape.rank > 0 && !range;
    if (!k->table && (v->kind != FL_LOD_TENSOR || !v->tensor.data))
        return fl_fail(FL_ENOENT, "pull: \"%s\" holds nothing", k->name);
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
    return fl_tensor_ref(out, &v->tensor);
}

/* How many, at most. */
static size_t ids_of(const fl_ware *k, const fl_item *item)
{
    const int64_t rows = fl_table_rows(k->table);
    return (size_t)(item->height < rows ? item->height : rows);
}

/* What a wish would take: few bytes can name a wide row many times. */
static size_t bytes_of(const fl_ware *k, const fl_item *item)
{
    const fl_tensor *t = &k->value->tensor;
    const bool some = item->shape.rank > 0;
    const int64_t n = some ? item->shape.dim[0] : 1;
    if (k->table && item->height)
        return ids_of(k, item) * ((size_t)fl_table_span(k->table) + 1) *
               sizeof(double);
    if (fl_item_is_range(item)) /* one that is too long is refused later */
        return k->table || n > fl_tensor_numel(t)
                   ? 0
                   : (size_t)n * fl_dtype_size(t->dtype);
    if (k->table)
        return (size_t)n * (size_t)fl_table_width(k->table) * sizeof(double);
    return (size_t)n * fl_dtype_size(t->dtype) *
           (size_t)fl_shape_span(&t->shape, some, t->shape.rank);
}

/* Before memory is taken for it. No size overflows: rows that are named came
 * with 8 bytes each. */
static fl_err check_size(reading *r, int owner)
{
    const size_t own = r->store->opts.max_answer;
    const size_t most = own ? own : FL_VALUES_MOST;
    pthread_mutex_lock(&r->store->lock);
    for (int i = 0; i < r->want->n && r->bytes <= most; i++)
        if (r->kept[i]->owner == owner)
            r->bytes += bytes_of(r->kept[i], &r->want->item[i]);
    const bool fits = r->bytes <= most;
    pthread_mutex_unlock(&r->store->lock);
    if (fits)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "pull: the answer would have more than %zu bytes; ask for "
                   "fewer rows or variables at once",
                   most);
}

static fl_err read_part(reading *r, int owner)
{
    if (!r->want || r->lost)
        return FL_OK;
    FL_TRY(check_size(r, owner));
    for (int i = 0; i < r->want->n; i++)
        if (r->kept[i]->owner == owner)
            FL_TRY(read_one(r->kept[i], &r->want->item[i], &r->value[i]));
    return FL_OK;
}

/* --- the answer --- */

static void free_reading(reading *r)
{
    for (int i = 0; r->want && i < r->want->n; i++)
        fl_tensor_fini(&r->value[i]);
    fl_parcel_unref(r->want);
    fl_mem_free(r->kept);
    fl_mem_free(r->value);
    fl_mem_free(r);
}

static void answer(reading *r)
{
    const fl_pstore_opts *o = &r->store->opts;
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

static void failed(reading *r, fl_err err)
{
    if (!err || r->err)
        return;
    r->err = err;
    snprintf(r->why, sizeof r->why, "%s", fl_errmsg());
}

static void run_part(void *arg)
{
    part *p = arg;
    reading *r = p->of;
    const fl_err err = read_part(r, p->owner);
    pthread_mutex_lock(&r->store->lock);
    failed(r, err);
    const bool last = !--r->left;
    pthread_mutex_unlock(&r->store->lock);
    fl_mem_free(p);
    if (!last)
        return;
    answer(r);
    free_reading(r);
}

/* --- a pull comes --- */

static fl_err find_all(fl_pstore *s, reading *r)
{
    const int n = r->want ? r->want->n : 0;
    r->kept = fl_mem_alloc((size_t)(n + 1) * sizeof *r->kept);
    r->value = fl_mem_alloc((size_t)(n + 1) * sizeof *r->value);
    for (int i = 0; i < n; i++) {
        const char *name = r->want->item[i].name;
        fl_near near = {.name = name};
        r->kept[i] = fl_map_get(&s->kept, name);
        if (r->kept[i])
            continue;
        for (fl_entry *e = NULL; (e = fl_map_next(&s->kept, e));)
            fl_near_offer(&near, e->key);
        return fl_fail(FL_ENOENT,
                       "pull: there is no variable \"%s\" on this server%s%s%s",
                       name, near.best ? "; the nearest is \"" : "",
                       near.best ? near.best : "", near.best ? "\"" : "");
    }
    return FL_OK;
}

/* Who has a part in it; at least the first owner, so that an answer comes
 * behind what was there before. */
static bool concerns(const reading *r, int owner)
{
    for (int i = 0; r->want && !r->lost && i < r->want->n; i++)
        if (r->kept[i]->owner == owner)
            return true;
    return owner == 0;
}

void fl_pstore_read(void *self, fl_blob names, fl_peer to, const fl_msg *reply)
{
    fl_pstore *s = self;
    fl_parcel *want = fl_parcel_of(names);
    reading *r = fl_mem_alloc(sizeof *r);
    r->store = s;
    r->to = to;
    r->reply = *reply;
    r->want = want ? fl_parcel_ref(want) : NULL;
    failed(r, find_all(s, r));
    r->lost = r->err != FL_OK;
    part *parts[FL_OWNERS_MAX];
    for (int i = 0; i < s->owners; i++) {
        if (!concerns(r, i))
            continue;
        parts[r->left] = fl_mem_alloc(sizeof(part));
        *parts[r->left++] = (part){r, i};
    }
    for (int i = 0, n = r->left; i < n; i++) { /* then r may be gone */
        fl_owner *o = &s->owner[parts[i]->owner];
        fl_pool_submit(o->pool, &o->group, run_part, parts[i]);
    }
}
