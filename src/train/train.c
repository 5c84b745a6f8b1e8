/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - starts workers and serves the user while they train. */
#include "train/train.h"

#include "base/flag.h"
#include "base/log.h"
#include "base/pool.h"
#include "train/merge.h"
#include "train/status.h"
#include "train/watching.h"
#include "train/worker.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEC INT64_C(1000000000)

enum {
    ASK = 50 * 1000 * 1000, /* ns between two polls */
    PERIOD = 100,           /* default of print_period, as in Fluid */
    AHEAD = 4, /* batches that are parsed in advance, if a core is free */
    MAX_THREADS = 1024,
};

typedef struct training {
    const fl_train_opts *opts;
    fl_arena *arena;
    fl_team team;
    int n;
    fl_reader **readers;
    fl_worker *workers;
    bool cancelled; /* the readers are cancelled */
    int64_t bytes;  /* size of all files; 0: not known */
    int64_t began;
    fl_status status;
    int64_t progress_due;
    fl_late late;
    fl_merge merge;
    fl_positions positions;
} training;

static int ends_now(void *self)
{
    const training *t = self;
    return t->opts->poll && t->opts->poll(t->opts->user) == FL_END_NOW;
}

/* --- before training --- */

static fl_err check_opts(const fl_train_opts *o)
{
    if (!o->program || !o->scope || !o->dataset)
        return fl_fail(FL_EINVAL, "training: no %s was given",
                       !o->program ? "program"
                       : !o->scope ? "scope"
                                   : "dataset");
    if (o->threads < 0 || o->threads > MAX_THREADS)
        return fl_fail(FL_EINVAL,
                       "training: %d threads were asked for, expected 1 to %d",
                       o->threads, MAX_THREADS);
    if (o->period < 0)
        return fl_fail(FL_EINVAL,
                       "print_period is %lld batches, expected 0 or more",
                       (long long)o->period);
    for (int i = 0; i < o->n_fetches; i++)
        if (!fl_block_var(o->program->blocks.at[0], o->fetches[i]))
            return fl_fail(FL_ENOENT,
                           "fetch \"%s\": the program has no such variable",
                           o->fetches[i]);
    return FL_OK;
}

/* The number of threads, at most as many as have files to read. */
static int width_of(const fl_train_opts *o)
{
    const fl_dataset *d = o->dataset;
    const int64_t wanted = o->threads ? o->threads : d->threads;
    const int64_t parts = fl_dataset_parts(d);
    const int64_t n = wanted < parts ? wanted : parts;
    if (n && n < wanted && o->epoch <= 1)
        FL_INFO("of %lld threads only %lld have work: there are %lld %s",
                (long long)wanted, (long long)n, (long long)parts,
                d->loaded ? "batches" : "files");
    return n < 1 ? 1 : (int)n;
}

/* Use one thread if another process may have to repeat an asynchronous step:
 * several threads would not take the same batches again. */
static void keep_order(training *t)
{
    const bool in_order =
        t->positions.trainer && fl_placement_of(t->opts->program->job)->async;
    if (t->n <= 1 || !in_order)
        return;
    FL_INFO("one thread of %d trains: each example is used once, even if this "
            "process is started again; a communicator (fleet.init_worker) lets "
            "all of them train",
            t->n);
    t->n = 1;
}

/* Refuse several threads in a collective program: they would make its calls in
 * an order that differs between ranks. */
static fl_err check_ranks(const fl_program *p, int threads)
{
    const fl_ops *ops = &p->blocks.at[0]->ops;
    for (int64_t i = 0; i < ops->n && threads > 1; i++)
        if (ops->at[i]->def->flags & FL_OP_RANKS)
            return fl_fail(FL_EINVAL,
                           "%d threads train a program of ranks without "
                           "servers (op %lld \"%s\"), expected 1: set thread=1 "
                           "and start more ranks",
                           threads, (long long)i, ops->at[i]->desc.type);
    return FL_OK;
}

/* Whether this trainer has no files, because there are fewer files than
 * trainers. It joins the job, for which the others wait, and takes no step. A
 * test program that was not transpiled may run on a trainer, too. */
static bool has_no_share(const fl_exec_env *env, const fl_train_opts *o)
{
    const fl_dataset *d = o->dataset;
    const bool tests =
        o->infer && env->service && fl_service_find_trainer(env->service, NULL);
    return (o->program->job || tests) && !d->n_files && !d->n_records;
}

/* The size of all files; 0: not known, because they are compressed, in memory
 * or read by a command. */
static int64_t bytes_of(const fl_dataset *d)
{
    int64_t sum = 0;
    struct stat st;
    for (int i = 0; i < d->n_files; i++) {
        if (fl_ends_with(d->files[i], ".gz") || stat(d->files[i], &st))
            return 0;
        sum += st.st_size;
    }
    return !d->loaded && fl_source_is_plain(d->pipe) ? sum : 0;
}

static void warn_of_updates(const fl_program *p)
{
    const fl_block *b = p->blocks.at[0];
    for (int64_t i = 0; i < b->ops.n; i++)
        if (fl_op_role(b->ops.at[i]) & FL_ROLE_OPTIMIZE) {
            FL_WARN("infer_from_dataset runs a program that updates "
                    "parameters (op %lld \"%s\"): take a clone for test made "
                    "before minimize()",
                    (long long)i, b->ops.at[i]->desc.type);
            return;
        }
}

static void init_team(training *t)
{
    const fl_train_opts *o = t->opts;
    fl_team *team = &t->team;
    team->opts = o;
    team->period = o->period ? o->period : PERIOD;
    team->in_turn = o->program->job && !team->communicator && t->n > 1;
    team->positions = t->positions.trainer ? &t->positions : NULL;
    pthread_mutex_init(&team->turn, NULL);
    pthread_mutex_init(&team->lock, NULL);
    fl_count_init(&team->wish, FL_GO_ON);
    fl_texts_init(&team->texts);
    fl_common_init(&team->common, o->program);
    fl_watched_init(team, t->arena);
}

static void fini_team(fl_team *team)
{
    fl_common_fini(&team->common);
    fl_texts_fini(&team->texts);
    pthread_mutex_destroy(&team->lock);
    pthread_mutex_destroy(&team->turn);
    fl_mem_free(team->sentence);
}

static fl_err begin_training(training *t, const fl_exec_env *env)
{
    const fl_train_opts *o = t->opts;
    fl_status_mode mode;
    const int ahead = !o->dataset->loaded && t->n < fl_cores() ? AHEAD : 0;
    FL_TRY(
        fl_status_mode_of(o->status ? o->status : fl_flag_text("FLUID_STATUS"),
                          isatty(STDERR_FILENO), &mode));
    fl_status_init(&t->status, mode, STDERR_FILENO);
    FL_TRY(fl_common_settle(&t->team.common, o->scope));
    t->workers = fl_arena_alloc(t->arena, (size_t)t->n * sizeof *t->workers);
    fl_reader **readers =
        fl_arena_alloc(t->arena, (size_t)t->n * sizeof *readers);
    FL_TRY(fl_dataset_open_at(o->dataset, t->n, &(fl_reader_opts){ahead},
                              &t->positions.position, readers));
    t->readers = readers;
    for (int i = 0; i < t->n; i++)
        FL_TRY(fl_worker_init(&t->workers[i], &t->team, i, env, t->readers[i]));
    t->bytes = bytes_of(o->dataset);
    fl_merge_init(&t->merge, &t->team, env, t->arena);
    return FL_OK;
}

static void end_training(training *t)
{
    for (int i = 0; t->workers && i < t->n; i++)
        fl_worker_fini(&t->workers[i]);
    for (int i = 0; t->readers && i < t->n; i++)
        fl_reader_free(t->readers[i]);
    fini_team(&t->team);
    fl_positions_fini(&t->positions);
    fl_arena_free(t->arena);
}

/* --- during training --- */

static void put_stderr(training *t, const fl_str *text)
{
    if (!text->n)
        return;
    fl_status_clear(&t->status);
    if (write(STDERR_FILENO, text->at, text->n) < 0)
        return; /* no times were measured */
}

static void hand_over(training *t)
{
    const fl_train_opts *o = t->opts;
    fl_str print, debug;
    fl_texts_take(&t->team.texts, &print, &debug);
    put_stderr(t, &debug);
    if (print.n && o->print) {
        fl_status_clear(&t->status);
        if (o->print(o->user, print.at))
            fl_team_wish(&t->team, FL_END_NOW);
    }
    fl_str_fini(&print);
    fl_str_fini(&debug);
}

static fl_progress read_progress(training *t, int64_t now, bool done)
{
    fl_progress p = fl_watched_look(&t->late, t->n, t->workers, now, done);
    const fl_dataset *d = t->opts->dataset;
    p.epoch = t->opts->epoch;
    p.done = done;
    p.stopped = fl_team_wished(&t->team) == FL_END_STEP;
    int64_t bytes = 0;
    for (int i = 0; i < t->n; i++) {
        const fl_reader_stats s = fl_reader_look(t->readers[i]);
        bytes += s.bytes;
        p.bad_lines = s.bad_lines; /* of all readers */
    }
    fl_merge_show(&t->merge, &p);
    fl_watched_fraction(&p, d->loaded ? p.examples : bytes,
                        d->loaded ? d->n_records : t->bytes);
    return p;
}

static void show_progress(training *t)
{
    const int64_t now = fl_clock_now(fl_clock_real()) - t->began;
    const bool due = fl_status_due(&t->status, now);
    const bool call = t->opts->progress && now >= t->progress_due;
    if (!due && !call)
        return;
    fl_merge_tell(&t->merge, now, false);
    const fl_progress p = read_progress(t, now, false);
    if (due)
        fl_status_show(&t->status, &p, now);
    if (call) {
        t->progress_due = now + SEC;
        t->opts->progress(t->opts->user, &p);
    }
}

/* Act on a wish to end. Readers that wait for a command are cancelled. */
static void heed_wish(training *t)
{
    const fl_train_wish wish = fl_team_wished(&t->team);
    if (wish == FL_END_NOW)
        fl_texts_close(&t->team.texts);
    if (!wish || t->cancelled)
        return;
    t->cancelled = true;
    for (int i = 0; i < t->n; i++)
        fl_reader_cancel(t->readers[i]);
}

static void wait_for_workers(training *t, fl_pool *pool, fl_group *group)
{
    const fl_train_opts *o = t->opts;
    while (fl_pool_wait(pool, group, ASK)) {
        const int wish = o->poll ? o->poll(o->user) : 0;
        if (wish)
            fl_team_wish(&t->team,
                         wish == FL_END_STEP ? FL_END_STEP : FL_END_NOW);
        hand_over(t);
        heed_wish(t);
        show_progress(t);
    }
    hand_over(t);
}

/* --- after training --- */

static void tell_bad_lines(const training *t, const fl_progress *p)
{
    if (p->bad_lines)
        FL_WARN("%lld bad lines were skipped; the first: %s",
                (long long)p->bad_lines, fl_reader_bad_line(t->readers[0], 0));
}

/* Warn if nothing was read: empty files, or a command without output, are no
 * error. */
static void tell_nothing_read(const training *t, const fl_progress *p)
{
    const fl_dataset *d = t->opts->dataset;
    if (!p->examples && !p->stopped)
        FL_WARN("%d files gave no example%s", d->n_files,
                fl_source_is_plain(d->pipe)
                    ? ""
                    : ": the pipe command wrote nothing");
}

static fl_err training_outcome(training *t, fl_progress *out)
{
    const int64_t now = fl_clock_now(fl_clock_real()) - t->began;
    const fl_team *team = &t->team;
    const bool well = !team->err && fl_team_wished(team) != FL_END_NOW;
    if (well)
        fl_merge_tell(&t->merge, now, true);
    const fl_progress p = read_progress(t, now, true);
    if (out)
        *out = p;
    if (well)
        fl_status_show(&t->status, &p, now);
    else
        fl_status_clear(&t->status);
    if (well && t->opts->progress)
        t->opts->progress(t->opts->user, &p);
    if (well)
        tell_nothing_read(t, &p);
    tell_bad_lines(t, &p);
    if (team->err)
        return fl_fail(team->err, "%s", team->sentence);
    return well ? FL_OK
                : fl_fail(FL_EINTR,
                          "training was interrupted after %lld "
                          "examples",
                          (long long)p.examples);
}

/* Flush the communicator, so that servers have all gradients and this process
 * has the resulting parameters. */
static fl_err flush_communicator(training *t, const fl_exec_env *env)
{
    const fl_train_opts *o = t->opts;
    const bool well =
        !t->team.err && fl_team_wished(&t->team) != FL_END_NOW && !o->infer;
    const fl_watch by = {.poll = ends_now, .user = t};
    if (!well || !t->team.communicator)
        return FL_OK;
    FL_TRY(fl_positions_end(&t->positions, &by));
    return fl_service_flush(env->service, fl_placement_of(o->program->job),
                            o->scope, &by);
}

static fl_err run_training(training *t, const fl_exec_env *env,
                           fl_progress *out)
{
    fl_pool *pool;
    fl_group group = {0};
    FL_TRY(begin_training(t, env));
    FL_TRY(fl_pool_new("train", t->n, &pool));
    t->began = fl_clock_now(fl_clock_real());
    t->progress_due = SEC;
    if (t->team.communicator)
        fl_communicator_add_workers(t->team.communicator, t->n);
    for (int i = 0; i < t->n; i++)
        fl_pool_submit(pool, &group, fl_worker_run, &t->workers[i]);
    wait_for_workers(t, pool, &group);
    fl_pool_free(pool);
    FL_TRY(flush_communicator(t, env));
    return training_outcome(t, out);
}

fl_err fl_train_run(const fl_exec_env *env, const fl_train_opts *opts,
                    fl_progress *out)
{
    training t = {.opts = opts};
    if (out)
        *out =
            (fl_progress){.fraction = NAN, .eta = NAN, .loss = NAN, .auc = NAN};
    FL_TRY(check_opts(opts));
    if (opts->infer)
        warn_of_updates(opts->program);
    if (has_no_share(env, opts)) {
        FL_WARN("this trainer has no files: it takes no step in this pass");
        return FL_OK;
    }
    t.n = width_of(opts);
    const fl_err lost =
        fl_positions_init(&t.positions, env, opts, t.n,
                          &(fl_watch){.poll = ends_now, .user = &t});
    if (lost || t.positions.passed) {
        fl_positions_fini(&t.positions);
        return lost;
    }
    keep_order(&t);
    FL_TRY(check_ranks(opts->program, t.n));
    t.arena = fl_arena_new();
    if (env->service)
        t.team.communicator = fl_service_communicator(
            env->service, fl_placement_of(opts->program->job));
    init_team(&t);
    const fl_err err = run_training(&t, env, out);
    end_training(&t);
    return err;
}
