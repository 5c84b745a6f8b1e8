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

#include <string.h>

enum {
    /* Bytes. Copying such a tensor into a bucket and back costs about as much
     * as the latency of a call of its own. */
    ALONE = 64 << 10,
    BUCKET = 256 << 10,
};

#define ASK (100 * FL_MS)

typedef struct batch {
    fl_reducer *of;
    fl_reduce how;
    fl_dtype type;
    size_t bytes; /* of the tensors so far */
    FL_VEC(fl_reduction) values;
} batch;

/* Thread: batches that were submitted are the thread's until the group is
 * empty; so are flat, err, sentence and the backend. */
struct fl_reducer {
    fl_backend *backend;
    int ranks, rank;
    bool overlap, direct;
    fl_pool *pool; /* one thread; NULL: not needed yet */
    fl_group group;
    fl_count stopped;
    FL_VEC(batch *) batches; /* of this step, in the order of the calls */
    int64_t submitted;       /* of those, given to the thread or made */
    batch *open;             /* the bucket that is being filled; or NULL */
    FL_VEC(batch *) spare;   /* for the next batches */
    int64_t steps;
    char *flat; /* where the tensors of a bucket, or rows, lie in one piece */
    size_t flat_size;
    fl_err err;
    fl_sentence sentence;
};

bool fl_reducer_stopped(const fl_reducer *r)
{
    return fl_count_get(&r->stopped) != 0;
}

bool fl_reducer_direct(const fl_reducer *r)
{
    return r->direct;
}

/* --- one call ------------------------------------------------------------- */

static void set_subject(fl_reducer *r, const batch *b)
{
    r->backend->about(r->backend->self,
                      &(fl_mesh_subject){.var = b->values.at[0].var,
                                         .others = (int)b->values.n - 1,
                                         .steps = r->steps});
}

static void reserve_flat(fl_reducer *r, size_t size)
{
    if (size <= r->flat_size)
        return;
    fl_mem_free(r->flat);
    r->flat = fl_mem_alloc(size);
    r->flat_size = size;
}

static fl_err reduce_tensor(fl_reducer *r, const batch *b)
{
    fl_tensor *t = &b->values.at[0].value->tensor;
    return r->backend->all_reduce(r->backend->self, b->how, b->type, t->data,
                                  fl_tensor_numel(t));
}

static fl_err reduce_bucket(fl_reducer *r, const batch *b)
{
    size_t at = 0;
    reserve_flat(r, b->bytes);
    for (int64_t i = 0; i < b->values.n; i++) {
        const fl_tensor *t = &b->values.at[i].value->tensor;
        if (fl_tensor_bytes(t))
            memcpy(r->flat + at, t->data, fl_tensor_bytes(t));
        at += fl_tensor_bytes(t);
    }
    FL_TRY(r->backend->all_reduce(r->backend->self, b->how, b->type, r->flat,
                                  (int64_t)(at / fl_dtype_size(b->type))));
    at = 0;
    for (int64_t i = 0; i < b->values.n; i++) {
        fl_tensor *t = &b->values.at[i].value->tensor;
        if (fl_tensor_bytes(t))
            memcpy(t->data, r->flat + at, fl_tensor_bytes(t));
        at += fl_tensor_bytes(t);
    }
    return FL_OK;
}

/* The rows of a rank, as all ranks learn of them. */
typedef struct rows_head {
    int64_t n, height, width, dtype;
} rows_head;

static fl_err check_rows(const fl_reducer *r, const char *var,
                         const rows_head *all)
{
    const rows_head *mine = &all[r->rank];
    for (int i = 0; i < r->ranks; i++)
        if (all[i].height != mine->height || all[i].width != mine->width ||
            all[i].dtype != mine->dtype || all[i].n < 0 ||
            all[i].n > (INT64_C(1) << 40) / (8 + 8 * (mine->width + 1)))
            return fl_fail(FL_ESHAPE,
                           "\"%s\": rank %d has %lld rows of %lld numbers of "
                           "[%lld, ..], rank %d has rows of %lld of [%lld, "
                           "..]: all ranks must have the same shape and type",
                           var, i, (long long)all[i].n, (long long)all[i].width,
                           (long long)all[i].height, r->rank,
                           (long long)mine->width, (long long)mine->height);
    return FL_OK;
}

/* Each rank's part of the flat memory is its indices, then its rows. */
static void lay_out_rows(const fl_reducer *r, const rows_head *all,
                         size_t row_bytes, size_t *at)
{
    at[0] = 0;
    for (int i = 0; i < r->ranks; i++)
        at[i + 1] = at[i] + (size_t)all[i].n * (sizeof(int64_t) + row_bytes);
}

static fl_err gather_rows(fl_reducer *r, const batch *b)
{
    fl_rows *rows = &b->values.at[0].value->rows;
    const fl_dtype type = rows->value.dtype;
    const size_t row_bytes = (size_t)fl_rows_width(rows) * fl_dtype_size(type);
    fl_shape shape = rows->value.shape;
    rows_head all[FL_MESH_WORLD];
    size_t at[FL_MESH_WORLD + 1];
    int64_t total = 0;
    for (int i = 0; i <= r->ranks; i++)
        at[i] = (size_t)i * sizeof *all;
    all[r->rank] =
        (rows_head){rows->n, rows->height, fl_rows_width(rows), type};
    FL_TRY(r->backend->all_gather(r->backend->self, all, at));
    const fl_err wrong = check_rows(r, b->values.at[0].var, all);
    if (wrong) {
        const fl_sentence why = fl_sentence_keep();
        r->backend->fail(r->backend->self, why.text);
        return wrong;
    }
    lay_out_rows(r, all, row_bytes, at);
    reserve_flat(r, at[r->ranks]);
    char *mine = r->flat + at[r->rank];
    const size_t n = (size_t)rows->n;
    if (n) {
        memcpy(mine, rows->index.data, n * sizeof(int64_t));
        memcpy(mine + n * sizeof(int64_t), rows->value.data, n * row_bytes);
    }
    FL_TRY(r->backend->all_gather(r->backend->self, r->flat, at));
    for (int i = 0; i < r->ranks; i++)
        total += all[i].n;
    shape.dim[0] = rows->height;
    FL_TRY(fl_rows_resize(rows, type, &shape, total));
    char *index = rows->index.data, *value = rows->value.data;
    for (int i = 0; i < r->ranks; i++) {
        const size_t k = (size_t)all[i].n;
        if (!k)
            continue;
        memcpy(index, r->flat + at[i], k * sizeof(int64_t));
        memcpy(value, r->flat + at[i] + k * sizeof(int64_t), k * row_bytes);
        index += k * sizeof(int64_t);
        value += k * row_bytes;
    }
    return FL_OK;
}

static void run_batch(void *arg)
{
    batch *b = arg;
    fl_reducer *r = b->of;
    if (r->err || (!r->direct && fl_reducer_stopped(r)))
        return; /* the first failure is final */
    set_subject(r, b);
    r->err = b->values.at[0].value->kind == FL_SELECTED_ROWS ? gather_rows(r, b)
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
    return b;
}

static void add_value(batch *b, const fl_reduction *x, size_t bytes)
{
    b->bytes += bytes;
    fl_push(&b->values, *x);
}

/* The order of the calls is that in which batches are closed. */
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
        add_value(r->batches.at[r->batches.n - 1], x, bytes);
        return;
    }
    if (r->open && (r->open->how != x->how || r->open->type != t->dtype ||
                    r->open->bytes + bytes > BUCKET))
        close_bucket(r);
    if (!r->open)
        r->open = take_batch(r, x, t->dtype);
    add_value(r->open, x, bytes);
}

static fl_err add_rows(fl_reducer *r, const fl_reduction *x)
{
    if (x->how != FL_REDUCE_SUM)
        return fl_fail(FL_EINVAL,
                       "\"%s\" is selected rows, of which only sums are made",
                       x->var);
    fl_push(&r->batches, take_batch(r, x, x->value->rows.value.dtype));
    add_value(r->batches.at[r->batches.n - 1], x, 0);
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
            *b->values.at[k].pending = false;
        fl_push(&r->spare, b);
    }
    r->steps += r->batches.n > 0;
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
    if (fl_reducer_stopped(r) && !r->err) {
        r->backend->fail(r->backend->self, "its run was interrupted");
        r->err = fl_fail(FL_EINTR, "the run was interrupted");
        r->sentence = fl_sentence_keep();
    }
    r->direct = true; /* the thread is idle: what is left is made here */
    while (r->submitted < r->batches.n)
        run_batch(r->batches.at[r->submitted++]);
    r->direct = false;
    end_step(r);
    if (r->err)
        fl_sentence_restore(&r->sentence);
    return r->err;
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
