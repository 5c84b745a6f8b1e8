/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - a thread that parses ahead, and the batches that it has parsed.
 *
 * The thread fills the entry after the last batch, which only it uses until it
 * increments the count. The reader swaps its tensors with those of the first
 * batch. So memory is reused and nothing is copied. */
#include "data/dataset.h"

static fl_tensor *entry_tensors(const fl_reader *r, int i)
{
    const int columns = r->batch.schema->n_columns;
    return &r->ring.tensors[(size_t)(i % r->ring.size) * (size_t)columns];
}

/* Wait for a free entry and return its index; -1: the reader is being freed. */
static int wait_for_entry(fl_ring *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->n == q->size && !q->stop)
        pthread_cond_wait(&q->change, &q->lock);
    const int i = q->stop ? -1 : (q->first + q->n) % q->size;
    pthread_mutex_unlock(&q->lock);
    return i;
}

static bool publish_batch(fl_reader *r, int i, int64_t rows, fl_err err)
{
    fl_ring *q = &r->ring;
    pthread_mutex_lock(&q->lock);
    q->rows[i] = rows;
    fl_uses_swap(&r->filled, &q->uses[i]);
    q->n += !err && rows;
    q->ended = err || !rows;
    q->err = err;
    if (err)
        q->sentence = fl_mem_strdup(fl_errmsg());
    pthread_cond_broadcast(&q->change);
    const bool go_on = !q->ended;
    pthread_mutex_unlock(&q->lock);
    return go_on;
}

static void run_filler(void *arg)
{
    fl_reader *r = arg;
    bool go_on = true;
    while (go_on) {
        int64_t rows = 0;
        const int i = wait_for_entry(&r->ring);
        if (i < 0)
            return;
        const fl_err err = fl_reader_fill(r, entry_tensors(r, i), &rows);
        go_on = publish_batch(r, i, rows, err);
    }
}

fl_err fl_ring_start(fl_reader *r, int size)
{
    fl_ring *q = &r->ring;
    const size_t columns = (size_t)r->batch.schema->n_columns;
    FL_TRY(fl_pool_new("reader", 1, &q->pool));
    q->size = size;
    q->tensors = fl_mem_alloc((size_t)size * columns * sizeof *q->tensors);
    q->rows = fl_mem_alloc((size_t)size * sizeof *q->rows);
    q->uses = fl_mem_alloc((size_t)size * sizeof *q->uses);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->change, NULL);
    fl_pool_submit(q->pool, &q->group, run_filler, r);
    return FL_OK;
}

void fl_ring_stop(fl_reader *r)
{
    fl_ring *q = &r->ring;
    if (!q->pool)
        return;
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
    fl_pool_free(q->pool); /* waits until its task has ended */
    for (int i = 0; i < q->size * r->batch.schema->n_columns; i++)
        fl_tensor_fini(&q->tensors[i]);
    for (int i = 0; i < q->size; i++)
        fl_vec_fini(&q->uses[i]);
    fl_mem_free(q->uses);
    fl_mem_free(q->tensors);
    fl_mem_free(q->rows);
    fl_mem_free(q->sentence);
    pthread_cond_destroy(&q->change);
    pthread_mutex_destroy(&q->lock);
    q->pool = NULL;
}

static void swap_batch(fl_reader *r, int i, fl_tensor *tensors)
{
    fl_tensor *from = entry_tensors(r, i);
    for (int k = 0; k < r->batch.schema->n_columns; k++) {
        const fl_tensor t = tensors[k];
        tensors[k] = from[k];
        from[k] = t;
    }
}

fl_err fl_ring_next(fl_reader *r, fl_tensor *tensors, int64_t *rows)
{
    fl_ring *q = &r->ring;
    fl_err err = FL_OK;
    const int64_t start = fl_clock_now(fl_clock_real());
    pthread_mutex_lock(&q->lock);
    while (!q->n && !q->ended)
        pthread_cond_wait(&q->change, &q->lock);
    if (q->n) {
        *rows = q->rows[q->first];
        swap_batch(r, q->first, tensors);
        fl_uses_swap(&q->uses[q->first], &r->used);
        q->first = (q->first + 1) % q->size;
        q->n--;
        pthread_cond_broadcast(&q->change);
    } else if (q->err) {
        err = fl_fail(q->err, "%s", q->sentence);
    }
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_lock(&r->lock);
    r->stats.wait_ns += fl_clock_now(fl_clock_real()) - start;
    pthread_mutex_unlock(&r->lock);
    return err;
}
