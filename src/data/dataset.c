/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.c - the settings of a dataset, and loading it into memory. */
#include "data/dataset.h"

#include "base/crc.h"
#include "base/log.h"
#include "base/random.h"

enum {
    BATCH = 32, /* Fluid's default */
    MAX_BATCH = 1 << 24,
    MAX_THREADS = 1024,
};

fl_dataset *fl_dataset_new(void)
{
    fl_dataset *d = fl_mem_alloc(sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void fl_dataset_free(fl_dataset *d)
{
    if (!d)
        return;
    fl_dataset_release(d);
    fl_arena_free(d->arena);
    pthread_mutex_destroy(&d->lock);
    fl_mem_free(d);
}

/* --- settings --- */

static fl_err check_idle(fl_dataset *d, const char *what)
{
    pthread_mutex_lock(&d->lock);
    const int open = d->open;
    pthread_mutex_unlock(&d->lock);
    if (d->pool)
        return fl_fail(FL_EINVAL, "%s: the dataset is still being loaded",
                       what);
    if (open)
        return fl_fail(FL_EINVAL, "%s: the dataset has %d open readers", what,
                       open);
    return FL_OK;
}

static fl_err check_numbers(const fl_dataset_opts *o)
{
    if (o->batch < 0 || o->batch > MAX_BATCH)
        return fl_fail(FL_EINVAL, "batch size %lld, expected 1 to %d",
                       (long long)o->batch, MAX_BATCH);
    if (o->threads < 0 || o->threads > MAX_THREADS)
        return fl_fail(FL_EINVAL, "%d threads, expected 1 to %d", o->threads,
                       MAX_THREADS);
    if (o->n_files < 0 || o->bad_lines < 0)
        return fl_fail(FL_EINVAL,
                       "a dataset cannot have %d files or allow %lld bad "
                       "lines, expected 0 or more of both",
                       o->n_files, (long long)o->bad_lines);
    return FL_OK;
}

static bool same_slots(const fl_schema *a, const fl_schema *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = !strcmp(a->slot[i].name, b->slot[i].name) &&
               a->slot[i].dtype == b->slot[i].dtype &&
               a->slot[i].width == b->slot[i].width &&
               a->slot[i].column == b->slot[i].column;
    return same;
}

/* Choose the format of the lines: criteo if it was set, or if the pipe command
 * only converts Criteo lines; that command is then not started. */
static fl_err choose_format(const fl_dataset_opts *o, const fl_schema *s,
                            fl_criteo_format *criteo, bool *native)
{
    fl_criteo how;
    char name[FL_HASH_NAME];
    const bool asked = o->criteo;
    if (asked)
        how = *o->criteo;
    *native = asked || (o->pipe && fl_criteo_command(o->pipe, &how, name));
    if (!*native)
        return FL_OK;
    FL_TRY(fl_criteo_init(criteo, &how));
    return fl_criteo_check(s);
}

static fl_err set_opts(fl_dataset *d, const fl_dataset_opts *o, fl_arena *a)
{
    fl_schema schema;
    fl_criteo_format criteo;
    bool native;
    FL_TRY(fl_schema_init(&schema, o->n_slots, o->slots, a));
    FL_TRY(choose_format(o, &schema, &criteo, &native));
    if (d->loaded && !same_slots(&schema, &d->schema))
        return fl_fail(FL_EINVAL, "the examples in memory have other slots: "
                                  "release them first (release_memory)");
    const char **files = fl_arena_alloc(a, (size_t)o->n_files * sizeof *files);
    for (int i = 0; i < o->n_files; i++)
        files[i] = fl_arena_strdup(a, o->files[i]);
    d->schema = schema;
    if (native)
        d->criteo = criteo;
    d->format = native ? &d->criteo.format : &fl_multislot;
    d->n_files = o->n_files;
    d->files = files;
    const bool own_pipe = o->pipe && (!native || o->criteo);
    d->pipe = own_pipe ? fl_arena_strdup(a, o->pipe) : NULL;
    d->batch = o->batch ? o->batch : BATCH;
    d->threads = o->threads ? o->threads : 1;
    d->bad_lines = o->bad_lines;
    return FL_OK;
}

fl_err fl_dataset_set(fl_dataset *d, const fl_dataset_opts *opts)
{
    FL_TRY(check_idle(d, "set"));
    FL_TRY(check_numbers(opts));
    fl_arena *a = fl_arena_new(), *gone = a;
    const fl_err err = set_opts(d, opts, a);
    if (!err) {
        gone = d->arena;
        d->arena = a;
    }
    fl_arena_free(gone);
    return err;
}

uint32_t fl_dataset_digest(const fl_dataset *d)
{
    const int64_t number[] = {d->batch, d->loaded, d->n_records, d->shuffles};
    uint32_t crc = fl_crc32c(0, number, sizeof number);
    for (int i = 0; i < d->n_files; i++)
        crc = fl_crc32c(crc, d->files[i], strlen(d->files[i]) + 1);
    return d->pipe ? fl_crc32c(crc, d->pipe, strlen(d->pipe)) : crc;
}

int64_t fl_dataset_parts(const fl_dataset *d)
{
    return d->loaded ? (d->n_records + d->batch - 1) / d->batch : d->n_files;
}

int fl_dataset_width(const fl_dataset *d)
{
    const int64_t parts = fl_dataset_parts(d);
    return parts < d->threads ? (int)parts : d->threads;
}

/* --- memory --- */

/* Runs on one thread of a load: reads file after file, each into its own
 * records. */
static void load_files(void *arg)
{
    fl_loading *l = arg;
    fl_reader *r = l->reader;
    fl_tensor *tensors =
        fl_mem_alloc((size_t)l->dataset->schema.n_columns * sizeof *tensors);
    int64_t rows = 1;
    while (rows && !l->err) {
        l->err = fl_reader_next(r, tensors, &rows);
        if (!l->err && rows)
            l->err = fl_records_add(&l->dataset->loads[r->file], &r->batch);
    }
    if (l->err) {
        l->sentence = fl_mem_strdup(fl_errmsg());
        for (int i = 0; i < l->dataset->n_loading;
             i++) /* one file failed, so cancel the other threads */
            fl_reader_cancel(l->dataset->loading[i].reader);
    }
    for (int i = 0; i < l->dataset->schema.n_columns; i++)
        fl_tensor_fini(&tensors[i]);
    fl_mem_free(tensors);
}

/* End a load, whether it succeeded or not. */
static void end_load(fl_dataset *d)
{
    fl_pool_free(d->pool);
    d->pool = NULL;
    for (int i = 0; i < d->n_loading; i++) {
        fl_reader_free(d->loading[i].reader);
        fl_mem_free(d->loading[i].sentence);
    }
    fl_mem_free(d->loading);
    d->loading = NULL;
    d->n_loading = 0;
}

static void drop_memory(fl_dataset *d)
{
    for (int i = 0; i < d->n_loads; i++)
        fl_records_fini(&d->loads[i]);
    fl_mem_free(d->loads);
    fl_mem_free(d->records);
    d->loads = NULL;
    d->records = NULL;
    d->n_loads = 0;
    d->n_records = 0;
    d->shuffles = 0;
    d->loaded = false;
}

void fl_dataset_release(fl_dataset *d)
{
    for (int i = 0; i < d->n_loading; i++)
        fl_reader_cancel(d->loading[i].reader);
    if (d->pool)
        end_load(d);
    drop_memory(d);
}

int64_t fl_dataset_size(const fl_dataset *d)
{
    return d->n_records;
}

bool fl_dataset_loaded(const fl_dataset *d)
{
    return d->loaded;
}

static fl_err start_load(fl_dataset *d, int n)
{
    fl_pass *p;
    FL_TRY(fl_pool_new("load", n, &d->pool));
    d->loads = fl_mem_alloc((size_t)d->n_files * sizeof *d->loads);
    d->n_loads = d->n_files;
    d->loading = fl_mem_alloc((size_t)n * sizeof *d->loading);
    FL_TRY(fl_pass_new(d, &p));
    fl_err err = FL_OK;
    for (int i = 0; i < n && !err; i++) {
        fl_loading *l = &d->loading[i];
        l->dataset = d;
        err = fl_reader_new(p, NULL, &l->reader);
        if (err)
            break;
        l->reader->by_file = true;
        d->n_loading++;
    }
    fl_pass_unref(p);
    for (int i = 0; i < n && !err; i++)
        fl_pool_submit(d->pool, &d->group, load_files, &d->loading[i]);
    return err;
}

fl_err fl_dataset_load(fl_dataset *d)
{
    FL_TRY(check_idle(d, "load"));
    if (!d->format)
        return fl_fail(
            FL_EINVAL,
            "the dataset cannot be loaded: set its slots and files first");
    drop_memory(d);
    d->loaded = !d->n_files; /* a trainer may have no files, see fl_train */
    const fl_err err = d->loaded ? FL_OK : start_load(d, fl_dataset_width(d));
    if (err)
        fl_dataset_release(d);
    return err;
}

/* List all records in the order of files. */
static fl_err list_records(fl_dataset *d)
{
    int64_t n = 0;
    for (int i = 0; i < d->n_loads; i++)
        n += d->loads[i].at.n;
    d->records = fl_mem_try((size_t)n * sizeof *d->records);
    if (!d->records)
        return fl_fail(FL_ENOMEM, "no memory for a list of %lld examples",
                       (long long)n);
    for (int i = 0; i < d->n_loads; i++) {
        fl_records *r = &d->loads[i];
        if (r->at.n)
            memcpy(d->records + d->n_records, r->at.at,
                   (size_t)r->at.n * sizeof *r->at.at);
        d->n_records += r->at.n;
        fl_vec_fini(&r->at);
    }
    return FL_OK;
}

/* Warn if bad lines were skipped. */
static void tell_bad_lines(const fl_dataset *d)
{
    fl_reader *any = d->loading[0].reader; /* all readers share the count */
    const int64_t n = fl_reader_look(any).bad_lines;
    if (n)
        FL_WARN(
            "%lld bad lines were skipped (the limit is %lld); the first: %s",
            (long long)n, (long long)d->bad_lines, fl_reader_bad_line(any, 0));
}

fl_err fl_dataset_wait(fl_dataset *d, int64_t timeout)
{
    fl_err err = FL_OK;
    if (!d->pool)
        return d->loaded ? FL_OK
                         : fl_fail(FL_EINVAL,
                                   "the dataset is not being loaded: start to "
                                   "load it first (preload_into_memory)");
    FL_TRY(fl_pool_wait(d->pool, &d->group, timeout));
    for (int i = 0; i < d->n_loading; i++) {
        const fl_loading *l = &d->loading[i];
        if (l->err &&
            (!err || err == FL_EINTR)) /* an error that caused the cancellation
                                          wins over EINTR */
            err = fl_fail(l->err, "%s", l->sentence);
    }
    if (!err)
        tell_bad_lines(d);
    end_load(d);
    if (!err)
        err = list_records(d);
    d->loaded = !err;
    if (err)
        drop_memory(d);
    return err;
}

/* A random number below n: the high half of a product. The probabilities differ
 * by less than n / 2^64. */
static uint64_t draw_below(fl_entropy *e, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)e->draw(e) * n) >> 64);
}

fl_err fl_dataset_shuffle(fl_dataset *d, uint64_t seed)
{
    FL_TRY(check_idle(d, "shuffle"));
    if (!d->loaded)
        return fl_fail(
            FL_EINVAL,
            "the dataset cannot be shuffled: load it first (load_into_memory)");
    fl_entropy e = fl_entropy_fake(seed);
    d->shuffles = fl_crc32c(d->shuffles, &seed, sizeof seed);
    for (int64_t i = d->n_records - 1; i > 0; i--) {
        const uint64_t j = draw_below(&e, (uint64_t)i + 1);
        const char *r = d->records[i];
        d->records[i] = d->records[j];
        d->records[j] = r;
    }
    return FL_OK;
}
