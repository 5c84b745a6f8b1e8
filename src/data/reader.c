/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - the next batch, from files or from memory. */
#include "data/dataset.h"

#include "base/log.h"

enum {
    TOLD = 16 /* bad lines whose error messages are kept */
};

/* --- a pass --- */

fl_err fl_pass_new(fl_dataset *d, fl_pass **out)
{
    fl_pass *p = fl_mem_alloc(sizeof *p);
    p->dataset = d;
    fl_count_init(&p->refs, 1);
    fl_count_init(&p->next, 0);
    pthread_mutex_init(&p->lock, NULL);
    *out = p;
    return FL_OK;
}

void fl_pass_unref(fl_pass *p)
{
    if (fl_count_down(&p->refs))
        return;
    for (int64_t i = 0; i < p->told.n; i++)
        fl_mem_free(p->told.at[i]);
    fl_vec_fini(&p->told);
    fl_position_fini(&p->from);
    pthread_mutex_destroy(&p->lock);
    fl_mem_free(p);
}

/* Count the bad line of the last error message. Err: EPROTO if there are more
 * than allowed. */
static fl_err count_bad_line(fl_pass *p)
{
    const int64_t most = p->dataset->bad_lines;
    pthread_mutex_lock(&p->lock);
    const int64_t n = ++p->bad_lines;
    if (p->told.n < TOLD && n <= most)
        fl_push(&p->told, fl_mem_strdup(fl_errmsg()));
    pthread_mutex_unlock(&p->lock);
    if (n <= most)
        FL_DEBUG("line %lld of %lld that may be skipped: %s", (long long)n,
                 (long long)most, fl_errmsg());
    else if (most)
        return fl_fail_at(FL_EPROTO,
                          "bad lines that were skipped before it: %lld, "
                          "which is the limit",
                          (long long)most);
    return n <= most ? FL_OK : FL_EPROTO;
}

/* --- from files --- */

/* Take the next part of the pass. Returns how much of it was used before. */
static fl_used next_part(fl_pass *p)
{
    fl_used use;
    do
        use = fl_position_find(&p->from, fl_count_next(&p->next) - 1);
    while (use.bytes == FL_USED_ALL);
    return use;
}

/* Open the next file of the pass. If none is left, file is -1. */
static fl_err next_file(fl_reader *r)
{
    fl_source *s;
    const fl_dataset *d = r->pass->dataset;
    const fl_used use = next_part(r->pass);
    r->file = use.part < d->n_files ? (int)use.part : -1;
    if (r->file < 0)
        return FL_OK;
    FL_TRY(fl_source_open(d->files[r->file], d->pipe, &r->cancel, &s));
    fl_text_take(&r->text, s);
    return fl_text_skip(&r->text, use.bytes, use.lines);
}

static fl_err skip_used(fl_reader *r, const fl_line *l, const fl_flaw *f)
{
    fl_batch_drop_row(&r->batch);
    fl_flaw_fail(f, fl_source_name(r->text.source), r->text.number, l);
    return count_bad_line(r->pass);
}

/* Read rows of the open file until the batch is full or the file ends. */
static fl_err read_rows(fl_reader *r, bool *more)
{
    const fl_format *format = r->pass->dataset->format;
    fl_batch *b = &r->batch;
    fl_flaw flaw;
    fl_line line;
    while (b->rows < b->room) {
        FL_TRY(fl_text_next(&r->text, &line, more));
        if (!*more)
            return FL_OK;
        const fl_err err = format->row(format, &line, b, &flaw);
        if (!err)
            fl_batch_keep_row(b);
        else if (err == FL_EPROTO)
            FL_TRY(skip_used(r, &line, &flaw));
        else
            return err;
    }
    return FL_OK;
}

static void end_file(fl_reader *r)
{
    fl_text_take(&r->text, NULL);
    fl_push(&r->filled, (fl_used){.part = r->file, .bytes = FL_USED_ALL});
}

static fl_err fill_from_files(fl_reader *r)
{
    fl_batch *b = &r->batch;
    while (b->rows < b->room) {
        bool more = true;
        if (!r->text.source)
            FL_TRY(next_file(r));
        if (!r->text.source)
            return FL_OK;
        FL_TRY(read_rows(r, &more));
        if (!more)
            end_file(r);
        if (!more && r->by_file && b->rows)
            return FL_OK;
    }
    return FL_OK;
}

/* --- from memory --- */

static fl_err fill_from_memory(fl_reader *r)
{
    const fl_dataset *d = r->pass->dataset;
    const int64_t part = next_part(r->pass).part;
    const int64_t from = part * d->batch;
    const int64_t left = d->n_records - from;
    const int64_t n = left < d->batch ? left : d->batch;
    for (int64_t i = 0; i < n; i++) {
        if (i + 1 < n)
            __builtin_prefetch(d->records[from + i + 1]);
        FL_TRY(fl_record_get(d->records[from + i], &r->batch));
    }
    fl_push(&r->filled, (fl_used){.part = part, .bytes = FL_USED_ALL});
    return FL_OK;
}

/* --- batches --- */

static void count_time(fl_reader *r, int64_t ns)
{
    fl_reader_stats *s = &r->stats;
    pthread_mutex_lock(&r->lock);
    s->examples += r->batch.rows;
    s->batches += r->batch.rows > 0;
    s->bytes = r->text.bytes;
    s->parse_ns += ns - (r->text.read_ns - s->read_ns);
    s->read_ns = r->text.read_ns;
    pthread_mutex_unlock(&r->lock);
}

fl_err fl_reader_fill(fl_reader *r, fl_tensor *tensors, int64_t *rows)
{
    const fl_dataset *d = r->pass->dataset;
    const int64_t start = fl_clock_now(fl_clock_real());
    r->filled.n = 0;
    FL_TRY(fl_batch_begin(&r->batch, tensors, d->batch));
    const fl_err err = d->loaded ? fill_from_memory(r) : fill_from_files(r);
    if (err) {
        fl_text_take(&r->text, NULL); /* ends the pipe command */
        return err;
    }
    if (r->text.source)
        fl_push(&r->filled, (fl_used){.part = r->file,
                                      .bytes = fl_text_offset(&r->text),
                                      .lines = r->text.number});
    fl_batch_end(&r->batch);
    *rows = r->batch.rows;
    count_time(r, fl_clock_now(fl_clock_real()) - start);
    return FL_OK;
}

fl_err fl_reader_next(fl_reader *r, fl_tensor *tensors, int64_t *rows)
{
    *rows = 0;
    if (r->err)
        return fl_fail(r->err, "%s", r->sentence);
    if (fl_cancelled(&r->cancel))
        return fl_fail(FL_EINTR, "reading was cancelled");
    if (r->ring.pool) {
        r->err = fl_ring_next(r, tensors, rows);
    } else {
        r->err = fl_reader_fill(r, tensors, rows);
        fl_uses_swap(&r->filled, &r->used);
    }
    if (r->err) /* a reader that failed fails again */
        r->sentence = fl_mem_strdup(fl_errmsg());
    return r->err;
}

/* --- the reader --- */

fl_err fl_reader_new(fl_pass *p, const fl_reader_opts *opts, fl_reader **out)
{
    fl_reader *r = fl_mem_alloc(sizeof *r);
    fl_err err = fl_cancel_init(&r->cancel);
    if (err) {
        fl_mem_free(r);
        return err;
    }
    fl_count_up(&p->refs);
    r->pass = p;
    r->file = -1;
    r->text.split = p->dataset->format->split;
    pthread_mutex_init(&r->lock, NULL);
    fl_batch_init(&r->batch, &p->dataset->schema);
    if (opts && opts->ahead > 0)
        err = fl_ring_start(r, opts->ahead);
    pthread_mutex_lock(&p->dataset->lock);
    p->dataset->open++;
    pthread_mutex_unlock(&p->dataset->lock);
    if (err)
        fl_reader_free(r);
    else
        *out = r;
    return err;
}

void fl_reader_free(fl_reader *r)
{
    if (!r)
        return;
    fl_dataset *d = r->pass->dataset;
    fl_reader_cancel(r);
    fl_ring_stop(r);
    fl_text_fini(&r->text);
    fl_vec_fini(&r->filled);
    fl_vec_fini(&r->used);
    fl_batch_fini(&r->batch);
    fl_cancel_fini(&r->cancel);
    pthread_mutex_destroy(&r->lock);
    fl_pass_unref(r->pass);
    fl_mem_free(r->sentence);
    fl_mem_free(r);
    pthread_mutex_lock(&d->lock);
    d->open--;
    pthread_mutex_unlock(&d->lock);
}

const fl_uses *fl_reader_used(const fl_reader *r)
{
    return &r->used;
}

void fl_reader_cancel(fl_reader *r)
{
    fl_cancel_now(&r->cancel);
}

fl_reader_stats fl_reader_look(fl_reader *r)
{
    pthread_mutex_lock(&r->pass->lock);
    const int64_t bad = r->pass->bad_lines;
    pthread_mutex_unlock(&r->pass->lock);
    pthread_mutex_lock(&r->lock);
    fl_reader_stats s = r->stats;
    pthread_mutex_unlock(&r->lock);
    const int64_t most = r->pass->dataset->bad_lines;
    s.bad_lines = bad < most ? bad : most;
    return s;
}

const char *fl_reader_bad_line(fl_reader *r, int i)
{
    fl_pass *p = r->pass;
    pthread_mutex_lock(&p->lock);
    const char *told = i >= 0 && i < p->told.n ? p->told.at[i] : NULL;
    pthread_mutex_unlock(&p->lock);
    return told;
}

fl_err fl_dataset_open(fl_dataset *d, int n, const fl_reader_opts *opts,
                       fl_reader **readers)
{
    return fl_dataset_open_at(d, n, opts, NULL, readers);
}

fl_err fl_dataset_open_at(fl_dataset *d, int n, const fl_reader_opts *opts,
                          const fl_position *from, fl_reader **readers)
{
    fl_pass *p;
    fl_err err = FL_OK;
    int made = 0;
    if (!d->format)
        return fl_fail(
            FL_EINVAL,
            "the dataset cannot be read: set its slots and files first");
    if (d->pool)
        return fl_fail(FL_EINVAL,
                       "the dataset cannot be read while it is being loaded");
    if (n < 1)
        return fl_fail(FL_EINVAL, "%d readers, at least 1 is needed", n);
    if (!d->n_records && !d->n_files)
        return fl_fail(FL_EINVAL, "the list of files is empty: nothing to "
                                  "read (set_filelist)");
    FL_TRY(fl_pass_new(d, &p));
    if (from)
        fl_position_copy(&p->from, from);
    for (; made < n && !err; made += !err)
        err = fl_reader_new(p, opts, &readers[made]);
    while (err && made)
        fl_reader_free(readers[--made]);
    fl_pass_unref(p);
    return err;
}
