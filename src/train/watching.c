/* SPDX-License-Identifier: Apache-2.0 */
/* watching.c - finds loss and AUC, and adds up the results of workers. */
#include "train/watching.h"

#include <math.h>
#include <strings.h>

#define SEC INT64_C(1000000000)

/* --- names --- */

static bool has_word(const char *text, const char *word)
{
    return text && strcasestr(text, word);
}

/* The first fetch whose label or name contains the word. */
static const char *fetch_called(const fl_train_opts *o, const char *word)
{
    for (int i = 0; i < o->n_fetches; i++)
        if ((o->labels && has_word(o->labels[i], word)) ||
            has_word(o->fetches[i], word))
            return o->fetches[i];
    return NULL;
}

/* The loss. Backward starts at LOSS@GRAD, which an op with the role LOSS sets.
 */
static const char *loss_of(const fl_train_opts *o, fl_arena *a)
{
    const fl_block *b = o->program->blocks.at[0];
    const char *fetched = fetch_called(o, "loss");
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        if (fl_op_role(b->ops.at[i]) != (FL_ROLE_BACKWARD | FL_ROLE_LOSS) ||
            !d->n_out || !d->out[0].n ||
            !fl_ends_with(d->out[0].name[0], FL_GRAD_SUFFIX))
            continue;
        const char *grad = d->out[0].name[0];
        return fl_arena_printf(
            a, "%.*s", (int)(strlen(grad) - strlen(FL_GRAD_SUFFIX)), grad);
    }
    return fetched ? fetched : fetch_called(o, "cost");
}

/* The AUC over all batches, which is the second op of the layer. */
static const char *auc_of(const fl_train_opts *o)
{
    const fl_block *b = o->program->blocks.at[0];
    const char *name = fetch_called(o, "auc");
    for (int64_t i = b->ops.n; !name && i-- > 0;) {
        const fl_args *out = fl_desc_out(&b->ops.at[i]->desc, "AUC");
        if (out && out->n)
            name = out->name[0];
    }
    return name;
}

void fl_watched_init(fl_team *t, fl_arena *a)
{
    const fl_train_opts *o = t->opts;
    const fl_block *b = o->program->blocks.at[0];
    bool *runs = fl_arena_alloc(a, (size_t)(b->ops.n + 1) * sizeof *runs);
    const char **kept =
        fl_arena_alloc(a, (size_t)(o->n_fetches + 2) * sizeof *kept);
    int n = 0;
    for (int64_t i = 0; i < b->ops.n; i++)
        runs[i] = true;
    for (int i = 0; i < o->n_fetches; i++)
        kept[n++] = o->fetches[i];
    t->loss = loss_of(o, a);
    t->auc = auc_of(o);
    if (t->loss)
        kept[n++] = t->loss;
    if (t->auc)
        kept[n++] = t->auc;
    t->part = (fl_plan_part){.runs = runs, .n_kept = n, .kept = kept};
}

/* --- numbers --- */

static double time_share(int64_t part, const fl_tally *t)
{
    const int64_t all = t->reading + t->computing + t->waiting;
    return all ? (double)part / (double)all : 0;
}

/* At the end of an interval: compute its rate and loss. */
static void end_interval(fl_late *l, int64_t now, const fl_tally *sum)
{
    if (now > l->ns)
        l->rate = (double)(sum->examples - l->examples) * (double)SEC /
                  (double)(now - l->ns);
    l->ns = now;
    l->examples = sum->examples;
    if (sum->losses)
        l->loss = sum->loss / (double)sum->losses;
    l->known |= sum->losses > 0;
    l->all_loss += sum->loss;
    l->all_losses += sum->losses;
}

fl_progress fl_watched_look(fl_late *l, int n, fl_worker *workers, int64_t now,
                            bool end)
{
    const bool take = end || now - l->ns >= SEC || !l->examples;
    fl_tally sum = {.auc = NAN};
    for (int i = 0; i < n; i++) {
        const fl_tally t = fl_worker_look(&workers[i], take);
        sum.examples += t.examples;
        sum.batches += t.batches;
        sum.reading += t.reading;
        sum.computing += t.computing;
        sum.waiting += t.waiting;
        sum.loss += t.loss;
        sum.losses += t.losses;
        if (!i)
            sum.auc = t.auc;
    }
    if (take)
        end_interval(l, now, &sum);
    const double seconds = (double)now / (double)SEC;
    return (fl_progress){
        .threads = n,
        .examples = sum.examples,
        .batches = sum.batches,
        .seconds = seconds,
        .rate = !end  ? l->rate
                : now ? (double)sum.examples / seconds
                      : 0,
        .fraction = NAN,
        .eta = NAN,
        .loss = !l->known ? NAN
                : end     ? l->all_loss / (double)l->all_losses
                          : l->loss,
        .auc = sum.auc,
        .reading = time_share(sum.reading, &sum),
        .computing = time_share(sum.computing, &sum),
        .waiting = time_share(sum.waiting, &sum),
    };
}

/* If a file has grown, so that done > all, the fraction is not known. */
void fl_watched_fraction(fl_progress *p, int64_t done, int64_t all)
{
    if (all <= 0 || done > all)
        return;
    p->fraction = (double)done / (double)all;
    if (done)
        p->eta = p->seconds * (1 - p->fraction) / p->fraction;
}
