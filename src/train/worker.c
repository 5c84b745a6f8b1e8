/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - reads batches and runs a step on each.
 *
 * In asynchronous jobs the next batch is read before a step, so that servers
 * can be asked for its rows while the step computes.
 *
 * Easy to get wrong: during a step the plan uses the tensors of the reader, so
 * the next batch must be read into others, or after the step. */
#include "train/worker.h"

#include "train/dump.h"

#include <math.h>

enum {
    DEBUG_BATCHES = 100,
    DEBUG_ROWS = 20, /* op types in a report, the most expensive ones */
};

/* --- the team --- */

fl_train_wish fl_team_wished(const fl_team *t)
{
    return (fl_train_wish)fl_count_get(&t->wish);
}

/* FL_END_NOW is the strongest wish, although its number is smaller. */
void fl_team_wish(fl_team *t, fl_train_wish wish)
{
    pthread_mutex_lock(&t->lock);
    const fl_train_wish now = fl_team_wished(t);
    if (wish && (!now || (now == FL_END_STEP && wish == FL_END_NOW)))
        fl_count_set(&t->wish, wish);
    pthread_mutex_unlock(&t->lock);
}

static int ends_now(void *team)
{
    return fl_team_wished(team) == FL_END_NOW;
}

/* Keep the first error, and end all workers. Errors that this causes are
 * ignored. */
static void keep_error(fl_team *t, fl_err err)
{
    if (err == FL_EINTR && fl_team_wished(t))
        return;
    pthread_mutex_lock(&t->lock);
    if (!t->err) {
        t->err = err;
        t->sentence = fl_mem_strdup(fl_errmsg());
    }
    pthread_mutex_unlock(&t->lock);
    fl_team_wish(t, FL_END_NOW);
}

/* --- making --- */

/* Choose the columns to feed. Columns that the program does not use are read
 * but not fed. */
static void choose_feeds(fl_worker *w, const fl_schema *schema)
{
    const fl_block *b = w->team->opts->program->blocks.at[0];
    const size_t n = (size_t)schema->n_columns;
    w->n_columns = schema->n_columns;
    w->tensors = fl_mem_alloc((n + 1) * sizeof *w->tensors);
    w->next = fl_mem_alloc((n + 1) * sizeof *w->next);
    w->feeds = fl_mem_alloc((n + 1) * sizeof *w->feeds);
    w->column = fl_mem_alloc((n + 1) * sizeof *w->column);
    for (int i = 0; i < schema->n; i++) {
        const int column = schema->slot[i].column;
        if (column < 0 || !fl_block_var(b, schema->slot[i].name))
            continue;
        w->column[w->n_feeds] = column;
        w->feeds[w->n_feeds++].name = schema->slot[i].name;
    }
}

fl_err fl_worker_init(fl_worker *w, fl_team *team, int index,
                      const fl_exec_env *env, fl_reader *reader)
{
    const fl_train_opts *o = team->opts;
    fl_exec_env mine = *env;
    *w = (fl_worker){.team = team, .index = index, .reader = reader};
    pthread_mutex_init(&w->lock, NULL);
    w->tally.auc = NAN;
    w->entropy = fl_entropy_fake(env->entropy->draw(env->entropy));
    w->watch = (fl_watch){.clock = fl_clock_real(),
                          .poll = ends_now,
                          .user = team,
                          .waited = &w->waited};
    if (o->debug && !index)
        fl_watch_profile(&w->watch, true);
    mine.entropy = &w->entropy;
    mine.watch = &w->watch;
    choose_feeds(w, &o->dataset->schema);
    if (index)
        w->scope = fl_common_scope(&team->common, o->scope);
    FL_TRY(fl_plan_new(&mine,
                       &(fl_request){.program = o->program,
                                     .scope = w->scope ? w->scope : o->scope,
                                     .n_feeds = w->n_feeds,
                                     .feeds = w->feeds},
                       &team->part, &w->plan));
    const fl_placement *place = fl_placement_of(o->program->job);
    w->looks_ahead =
        place && !place->half_async && fl_plan_looks_ahead(w->plan);
    return FL_OK;
}

void fl_worker_fini(fl_worker *w)
{
    if (!w->team)
        return;
    fl_plan_free(w->plan);
    fl_scope_free(w->scope);
    fl_watch_fini(&w->watch);
    for (int i = 0; i < w->n_columns; i++) {
        fl_tensor_fini(&w->tensors[i]);
        fl_tensor_fini(&w->next[i]);
    }
    fl_vec_fini(&w->used);
    fl_vec_fini(&w->next_used);
    fl_mem_free(w->tensors);
    fl_mem_free(w->next);
    fl_mem_free(w->feeds);
    fl_mem_free(w->column);
    pthread_mutex_destroy(&w->lock);
}

/* --- a step --- */

/* Run a step. Threads read and write shared parameters without locks, on
 * purpose. The thread sanitizer's suppressions name this function. */
static fl_err step_on_shared_parameters(void *self)
{
    fl_worker *w = self;
    return fl_plan_run(w->plan, w->feeds, NULL);
}

static void feed_batch(fl_worker *w, const fl_tensor *tensors)
{
    for (int i = 0; i < w->n_feeds; i++)
        w->feeds[i].tensor = tensors[w->column[i]];
}

static fl_err run_step(fl_worker *w, fl_tally *t)
{
    fl_team *team = w->team;
    const int64_t start = fl_clock_now(w->watch.clock), waited = w->waited;
    int64_t mine = start;
    feed_batch(w, w->tensors);
    if (team->in_turn) {
        pthread_mutex_lock(&team->turn);
        mine = fl_clock_now(w->watch.clock);
    }
    const fl_err err =
        team->positions
            ? fl_positions_step(team->positions, &w->watch, &w->used,
                                step_on_shared_parameters, w)
            : step_on_shared_parameters(w);
    if (team->in_turn)
        pthread_mutex_unlock(&team->turn);
    const int64_t blocked = w->waited - waited; /* wait for servers */
    t->waiting += mine - start + blocked;
    t->computing += fl_clock_now(w->watch.clock) - mine - blocked;
    return err;
}

/* --- output --- */

static double number(fl_worker *w, const char *name)
{
    return name ? fl_first_number(fl_plan_value(w->plan, name)) : NAN;
}

static void count_step(fl_worker *w, const fl_tally *t)
{
    const double loss = number(w, w->team->loss);
    pthread_mutex_lock(&w->lock);
    w->tally.examples += t->examples;
    w->tally.batches++;
    w->tally.reading += t->reading;
    w->tally.computing += t->computing;
    w->tally.waiting += t->waiting;
    if (!isnan(loss)) {
        w->tally.loss += loss;
        w->tally.losses++;
    }
    if (w->team->auc)
        w->tally.auc = number(w, w->team->auc);
    pthread_mutex_unlock(&w->lock);
}

fl_tally fl_worker_look(fl_worker *w, bool take)
{
    pthread_mutex_lock(&w->lock);
    const fl_tally t = w->tally;
    if (take) {
        w->tally.loss = 0;
        w->tally.losses = 0;
    }
    pthread_mutex_unlock(&w->lock);
    return t;
}

static void print_fetches(fl_worker *w)
{
    const fl_train_opts *o = w->team->opts;
    fl_str text = {0};
    for (int i = 0; i < o->n_fetches; i++)
        fl_dump(&text, o->labels ? o->labels[i] : o->fetches[i], o->fetches[i],
                fl_plan_value(w->plan, o->fetches[i]));
    fl_texts_put(&w->team->texts, &text, false);
}

/* Print the times of operators since the last report. */
static void print_times(fl_worker *w)
{
    fl_profile_row row[DEBUG_ROWS];
    const int all = fl_watch_rows(&w->watch, DEBUG_ROWS, row);
    const int n = all < DEBUG_ROWS ? all : DEBUG_ROWS;
    const fl_tally t = w->tally; /* only this thread writes it */
    const int64_t now = fl_clock_now(w->watch.clock);
    const double batches = (double)(t.batches - w->told.batches);
    const double ns = (double)(now - w->debugged);
    fl_str text = {0};
    fl_str_printf(&text,
                  "train: thread 0, batch %lld: %.0f examples/s, %.1f%% of the "
                  "time in reading, us a batch in operators:\n",
                  (long long)t.batches,
                  (double)(t.examples - w->told.examples) * 1e9 / ns,
                  100 * (double)(t.reading - w->told.reading) / ns);
    for (int i = 0; i < n; i++)
        fl_str_printf(&text, "    %-28s %10.1f in %g calls\n", row[i].type,
                      (double)row[i].total / 1e3 / batches,
                      (double)row[i].calls / batches);
    fl_texts_put(&w->team->texts, &text, true);
    fl_watch_profile(&w->watch, true);
    w->told = t;
    w->debugged = fl_clock_now(w->watch.clock);
}

static void tell_counts(fl_worker *w)
{
    const fl_train_opts *o = w->team->opts;
    if (w->index)
        return;
    if (o->n_fetches && w->tally.batches % w->team->period == 0)
        print_fetches(w);
    if (o->debug && w->tally.batches % DEBUG_BATCHES == 0)
        print_times(w);
}

/* --- the thread --- */

/* Get a batch: the one that was read ahead, or the reader's next one. */
static fl_err take_batch(fl_worker *w, int64_t *examples)
{
    fl_tensor *was = w->tensors;
    if (!w->n_next) {
        FL_TRY(fl_reader_next(w->reader, w->tensors, examples));
        fl_uses_copy(&w->used, fl_reader_used(w->reader));
        return FL_OK;
    }
    fl_uses_swap(&w->used, &w->next_used);
    w->tensors = w->next;
    w->next = was;
    *examples = w->n_next;
    w->n_next = 0;
    return FL_OK;
}

/* Read the next batch, and tell the plan of it. An error is not reported here:
 * this batch is good, and the reader fails again when the next one is taken. */
static void read_ahead(fl_worker *w)
{
    if (fl_reader_next(w->reader, w->next, &w->n_next) || !w->n_next)
        return;
    fl_uses_copy(&w->next_used, fl_reader_used(w->reader));
    feed_batch(w, w->next);
    fl_plan_look_ahead(w->plan, w->feeds);
}

static fl_err one_batch(fl_worker *w, bool *more)
{
    fl_tally t = {0};
    const int64_t start = fl_clock_now(w->watch.clock);
    FL_TRY(take_batch(w, &t.examples));
    if (t.examples && w->looks_ahead)
        read_ahead(w);
    t.reading = fl_clock_now(w->watch.clock) - start;
    *more = t.examples > 0;
    if (!*more)
        return FL_OK;
    FL_TRY(run_step(w, &t));
    count_step(w, &t);
    tell_counts(w);
    return FL_OK;
}

void fl_worker_run(void *self)
{
    fl_worker *w = self;
    bool more = true;
    w->debugged = fl_clock_now(w->watch.clock);
    while (more && !fl_team_wished(w->team)) {
        const fl_err err = one_batch(w, &more);
        if (err) {
            keep_error(w->team, err);
            more = false;
        }
    }
    if (w->team->communicator)
        fl_communicator_add_workers(w->team->communicator, -1);
}
