/* SPDX-License-Identifier: Apache-2.0 */
/* reducer.c - buckets, and the thread that reduces them.
 *
 * A batch is one call: a bucket of small tensors, one large tensor, or selected
 * rows. A bucket is closed when it is full, when a tensor of another type or
 * for another reduction comes, and at the wait. Batches are kept for the next
 * step with their memory. */
#include "collective/reducer.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/progress.h"
#include "net/plant.h"

#include <string.h>

enum {
    /* Bytes. For a larger tensor, copying into a bucket and back takes longer
     * than the latency of a call of its own. */
    ALONE = 64 << 10,
    BUCKET = 256 << 10,
};

#define ASK (100 * FL_MS)

/* The part of a value that the thread uses. The value itself belongs to the
 * caller, which may read its shape while the thread works. */
typedef struct entry {
    fl_reduction x;
    char *data; /* elements of the tensor */
    size_t bytes;
} entry;

/* What a rank tells all others about its selected rows. */
typedef struct rows_head {
    int64_t n, height, width, dtype;
} rows_head;

typedef struct batch {
    fl_reducer *of;
    fl_reduce how;
    fl_dtype type;
    size_t bytes; /* bytes of the tensors so far */
    FL_VEC(entry) values;
    bool gathers;        /* the batch has one value, selected rows */
    const int64_t *rows; /* their indices, of this rank; data are the rows */
    rows_head *heads;    /* [ranks]; NULL: not allocated yet */
    size_t *at;          /* [ranks + 1]: where the part of each rank begins */
    char *flat;          /* the rows of all ranks */
    size_t flat_size;
} batch;

/* Thread: submitted batches, flat, err, sentence and the backend belong to the
 * reducer's thread until the group is empty; the rest belongs to the caller. */
struct fl_reducer {
    fl_backend *backend;
    int ranks, rank;
    bool overlap;
    bool direct;               /* the caller itself makes the calls now */
    fl_interrupt *interrupted; /* direct: whether the caller stops; or NULL */
    void *user;
    fl_pool *pool; /* one thread; NULL: not needed yet */
    fl_group group;
    fl_count stopped;
    FL_VEC(batch *) batches; /* of this step, in the order of the calls */
    int64_t submitted;       /* batches that were given to the thread or made */
    batch *open;             /* the bucket that is being filled; or NULL */
    FL_VEC(batch *) spare;   /* batches to use again */
    int64_t steps;
    char *flat; /* contiguous copy of the tensors of a bucket */
    size_t flat_size;
    fl_err err;
    fl_sentence sentence;
};

static bool is_stopped(const fl_reducer *r)
{
    return fl_count_get(&r->stopped) != 0;
}

bool fl_reducer_stops(const fl_reducer *r)
{
    return r->direct ? r->interrupted && r->interrupted(r->user)
                     : is_stopped(r);
}

/* --- one call ------------------------------------------------------------- */

static void set_subject(fl_reducer *r, const batch *b)
{
    r->backend->about(r->backend->self,
                      &(fl_mesh_subject){.var = b->values.at[0].x.var,
                                         .others = (int)b->values.n - 1,
                                         .steps = r->steps});
}

static void reserve_bytes(char **at, size_t *have, size_t size)
{
    if (size <= *have)
        return;
    fl_mem_free(*at);
    *at = fl_mem_alloc(size);
    *have = size;
}

static fl_err reduce_tensor(fl_reducer *r, const batch *b)
{
    return r->backend->all_reduce(r->backend->self, b->how, b->type,
                                  b->values.at[0].data,
                                  (int64_t)(b->bytes / fl_dtype_size(b->type)));
}

static fl_err reduce_bucket(fl_reducer *r, const batch *b)
{
    reserve_bytes(&r->flat, &r->flat_size, b->bytes);
    char *at = r->flat;
    for (int64_t i = 0; i < b->values.n; at += b->values.at[i++].bytes)
        if (b->values.at[i].bytes)
            memcpy(at, b->values.at[i].data, b->values.at[i].bytes);
    FL_TRY(
        r->backend->all_reduce(r->backend->self, b->how, b->type, r->flat,
                               (int64_t)(b->bytes / fl_dtype_size(b->type))));
    at = r->flat;
    for (int64_t i = 0; i < b->values.n; at += b->values.at[i++].bytes)
        if (b->values.at[i].bytes)
            memcpy(b->values.at[i].data, at, b->values.at[i].bytes);
    return FL_OK;
}

/* --- selected rows -------------------------------------------------------- */

static fl_err check_rows(const fl_reducer *r, const batch *b)
{
    const rows_head *mine = &b->heads[r->rank];
    for (int i = 0; i < r->ranks; i++) {
        const rows_head *other = &b->heads[i];
        if (other->height == mine->height && other->width == mine->width &&
            other->dtype == mine->dtype && other->n >= 0 &&
            other->n <= (INT64_C(1) << 40) / (8 + 8 * (mine->width + 1)))
            continue;
        return fl_fail(FL_ESHAPE,
                       "\"%s\": rank %d has %lld selected rows of %s[%lld, "
                       "%lld], rank %d has rows of %s[%lld, %lld]: all ranks "
                       "must have the same shape and type",
                       b->values.at[0].x.var, i, (long long)other->n,
                       fl_dtype_name((fl_dtype)other->dtype),
                       (long long)other->height, (long long)other->width,
                       r->rank, fl_dtype_name((fl_dtype)mine->dtype),
                       (long long)mine->height, (long long)mine->width);
    }
    return FL_OK;
}

static size_t row_bytes(const batch *b, const rows_head *h)
{
    return (size_t)h->width * fl_dtype_size(b->type);
}

/* Gather the heads of all ranks, then their rows. The part of a rank in the
 * flat memory is its indices, followed by its rows. */
static fl_err gather_rows(fl_reducer *r, batch *b)
{
    const rows_head mine = b->heads[r->rank];
    const size_t n = (size_t)mine.n, width = row_bytes(b, &mine);
    for (int i = 0; i <= r->ranks; i++)
        b->at[i] = (size_t)i * sizeof mine;
    FL_TRY(r->backend->all_gather(r->backend->self, b->heads, b->at));
    const fl_err wrong = check_rows(r, b);
    if (wrong) {
        const fl_sentence why = fl_sentence_keep();
        r->backend->fail(r->backend->self, why.text);
        fl_sentence_restore(&why);
        return wrong;
    }
    b->at[0] = 0;
    for (int i = 0; i < r->ranks; i++)
        b->at[i + 1] =
            b->at[i] + (size_t)b->heads[i].n * (sizeof(int64_t) + width);
    reserve_bytes(&b->flat, &b->flat_size, b->at[r->ranks]);
    if (n) {
        char *part = b->flat + b->at[r->rank];
        memcpy(part, b->rows, n * sizeof(int64_t));
        memcpy(part + n * sizeof(int64_t), b->values.at[0].data, n * width);
    }
    return r->backend->all_gather(r->backend->self, b->flat, b->at);
}

/* Copy the rows of all ranks to the value, after the thread has finished. */
static fl_err spread_rows(const fl_reducer *r, const batch *b)
{
    fl_rows *rows = &b->values.at[0].x.value->rows;
    const size_t width = row_bytes(b, &b->heads[r->rank]);
    fl_shape shape = rows->value.shape;
    int64_t total = 0;
    for (int i = 0; i < r->ranks; i++)
        total += b->heads[i].n;
    shape.dim[0] = rows->height;
    FL_TRY(fl_rows_resize(rows, b->type, &shape, total));
    char *index = rows->index.data, *value = rows->value.data;
    for (int i = 0; i < r->ranks; i++) {
        const size_t n = (size_t)b->heads[i].n;
        if (!n)
            continue;
        memcpy(index, b->flat + b->at[i], n * sizeof(int64_t));
        memcpy(value, b->flat + b->at[i] + n * sizeof(int64_t), n * width);
        index += n * sizeof(int64_t);
        value += n * width;
    }
    return FL_OK;
}

static void run_batch(void *arg)
{
    batch *b = arg;
    fl_reducer *r = b->of;
    if (r->err || (!r->direct && is_stopped(r)))
        return; /* after an error no more calls are made */
    set_subject(r, b);
    r->err = b->gathers         ? gather_rows(r, b)
             : b->values.n == 1 ? reduce_tensor(r, b)
                                : reduce_bucket(r, b);
    if (r->err)
        r->sentence = fl_sentence_keep();
}

/* --- batches -------------------------------------------------------------- */

static batch *take_batch(fl_reducer *r, const fl_reduction *x, fl_dtype type)
{
    batch *b = r->spare.n ? r->spare.at[--r->spare.n] : fl_mem_alloc(sizeof *b);
    b->of = r;
    b->how = x->how;
    b->type = type;
    b->bytes = 0;
    b->values.n = 0;
    b->gathers = false;
    return b;
}

static void add_value(batch *b, const fl_reduction *x, void *data, size_t bytes)
{
    b->bytes += bytes;
    fl_push(&b->values, (entry){*x, data, bytes});
}

/* Close the open bucket. Calls are made in the order in which batches are
 * closed. */
static void close_bucket(fl_reducer *r)
{
    if (r->open)
        fl_push(&r->batches, r->open);
    r->open = NULL;
}

static fl_err submit_batches(fl_reducer *r)
{
    if (!r->overlap || r->submitted == r->batches.n)
        return FL_OK;
    if (!r->pool)
        FL_TRY(fl_pool_new("reduce", 1, &r->pool));
    while (r->submitted < r->batches.n)
        fl_pool_submit(r->pool, &r->group, run_batch,
                       r->batches.at[r->submitted++]);
    return FL_OK;
}

static void add_tensor(fl_reducer *r, const fl_reduction *x)
{
    const fl_tensor *t = &x->value->tensor;
    const size_t bytes = fl_tensor_bytes(t);
    if (bytes >= ALONE) {
        fl_push(&r->batches, take_batch(r, x, t->dtype));
        add_value(r->batches.at[r->batches.n - 1], x, t->data, bytes);
        return;
    }
    const size_t most = FL_PLANTED(BUCKETS) && r->rank % 2 ? ALONE : BUCKET;
    if (r->open && (r->open->how != x->how || r->open->type != t->dtype ||
                    r->open->bytes + bytes > most))
        close_bucket(r);
    if (!r->open)
        r->open = take_batch(r, x, t->dtype);
    add_value(r->open, x, t->data, bytes);
}

static fl_err add_rows(fl_reducer *r, const fl_reduction *x)
{
    if (x->how != FL_REDUCE_SUM)
        return fl_fail(FL_EINVAL,
                       "\"%s\" is selected rows, of which only sums are made",
                       x->var);
    const fl_rows *rows = &x->value->rows;
    batch *b = take_batch(r, x, rows->value.dtype);
    if (!b->heads) {
        b->heads = fl_mem_alloc((size_t)r->ranks * sizeof *b->heads);
        b->at = fl_mem_alloc(((size_t)r->ranks + 1) * sizeof *b->at);
    }
    b->gathers = true;
    b->rows = rows->index.data;
    b->heads[r->rank] = (rows_head){rows->n, rows->height, fl_rows_width(rows),
                                    rows->value.dtype};
    add_value(b, x, rows->value.data, 0);
    fl_push(&r->batches, b);
    return FL_OK;
}

fl_err fl_reducer_add(fl_reducer *r, const fl_reduction *x)
{
    if (x->value->kind == FL_SELECTED_ROWS)
        FL_TRY(add_rows(r, x));
    else
        add_tensor(r, x);
    *x->pending = true;
    return submit_batches(r);
}

/* --- the wait ------------------------------------------------------------- */

static void end_step(fl_reducer *r)
{
    for (int64_t i = 0; i < r->batches.n; i++) {
        batch *b = r->batches.at[i];
        for (int64_t k = 0; k < b->values.n; k++)
            *b->values.at[k].x.pending = false;
        fl_push(&r->spare, b);
    }
    r->steps += r->batches.n > 0;
    if (r->batches.n)
        fl_progress_step();
    r->batches.n = r->submitted = 0;
}

void fl_reducer_stop(fl_reducer *r)
{
    fl_count_set(&r->stopped, 1);
    while (r->pool && fl_pool_wait(r->pool, &r->group, ASK))
        continue;
    close_bucket(r);
    end_step(r);
}

fl_err fl_reducer_wait(fl_reducer *r, fl_interrupt *interrupted, void *user)
{
    close_bucket(r);
    while (r->pool && fl_pool_wait(r->pool, &r->group, ASK))
        if (interrupted && interrupted(user))
            fl_count_set(&r->stopped, 1);
    if (is_stopped(r) && !r->err) {
        r->backend->fail(r->backend->self, "its run was interrupted");
        r->err = fl_fail(FL_EINTR, "the run was interrupted");
        r->sentence = fl_sentence_keep();
    }
    r->direct = true; /* the thread is idle: make the remaining calls here */
    r->interrupted = interrupted;
    r->user = user;
    while (r->submitted < r->batches.n)
        run_batch(r->batches.at[r->submitted++]);
    r->direct = false;
    fl_err err = r->err;
    for (int64_t i = 0; i < r->batches.n && !err; i++)
        if (r->batches.at[i]->gathers)
            err = spread_rows(r, r->batches.at[i]);
    end_step(r);
    if (r->err)
        fl_sentence_restore(&r->sentence);
    return err;
}

/* --- making --------------------------------------------------------------- */

fl_reducer *fl_reducer_new(fl_backend *b, int ranks, int rank, bool overlap)
{
    fl_reducer *r = fl_mem_alloc(sizeof *r);
    r->backend = b;
    r->ranks = ranks;
    r->rank = rank;
    r->overlap = overlap;
    fl_count_init(&r->stopped, 0);
    return r;
}

void fl_reducer_free(fl_reducer *r)
{
    if (!r)
        return;
    fl_reducer_stop(r);
    fl_pool_free(r->pool);
    for (int64_t i = 0; i < r->spare.n; i++) {
        fl_vec_fini(&r->spare.at[i]->values);
        fl_mem_free(r->spare.at[i]->heads);
        fl_mem_free(r->spare.at[i]->at);
        fl_mem_free(r->spare.at[i]->flat);
        fl_mem_free(r->spare.at[i]);
    }
    fl_vec_fini(&r->batches);
    fl_vec_fini(&r->spare);
    fl_mem_free(r->flat);
    fl_mem_free(r);
}

int64_t fl_reducer_steps(const fl_reducer *r)
{
    return r->steps;
}
