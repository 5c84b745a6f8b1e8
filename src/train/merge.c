/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - reports counts to the coordinator, and computes the AUC of the sum.
 */
#include "train/merge.h"

#include "base/log.h"
#include "kernel/auc.h"

#include <math.h>

#define MS INT64_C(1000000)

/* The limit is short during training, because the same thread also prints and
 * polls. */
static const int64_t pause = 2000 * MS, limit = 500 * MS, last = 3000 * MS;

/* --- before training --- */

static const fl_desc *auc_op(const fl_team *t)
{
    const fl_block *b = t->opts->program->blocks.at[0];
    for (int64_t i = 0; t->auc && i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        const fl_args *out = fl_desc_out(d, "AUC");
        if (!strcmp(d->type, "auc") && out && out->n &&
            !strcmp(out->name[0], t->auc))
            return d;
    }
    return NULL;
}

static bool are_counts(const fl_value *v)
{
    return v && v->kind == FL_LOD_TENSOR && v->tensor.data &&
           v->tensor.dtype == FL_I64 && v->tensor.shape.rank == 2;
}

void fl_merge_init(fl_merge *m, const fl_team *t, const fl_exec_env *env,
                   fl_arena *a)
{
    const fl_train_opts *o = t->opts;
    const fl_desc *d = auc_op(t);
    *m = (fl_merge){0};
    if (!d)
        return;
    const fl_attr *curve = fl_desc_attr(d, "curve");
    m->pr = curve && curve->s && !strcmp(curve->s, "PR");
    m->stat[0] = fl_scope_find(o->scope, fl_desc_in1(d, "StatPos"));
    m->stat[1] = fl_scope_find(o->scope, fl_desc_in1(d, "StatNeg"));
    if (!are_counts(m->stat[0]) || !are_counts(m->stat[1]) ||
        !fl_shape_equal(&m->stat[0]->tensor.shape, &m->stat[1]->tensor.shape))
        return;
    m->n = m->stat[0]->tensor.shape.dim[1];
    m->counts = fl_arena_alloc(a, (size_t)(2 * m->n) * sizeof *m->counts);
    m->key = fl_arena_printf(a, "%s %s", o->infer ? "infer" : "train", t->auc);
    m->place = fl_placement_of(o->program->job);
    /* A program for inference may have been made before the training program
     * was transpiled; it still belongs to the job of the process. */
    m->service = m->place || o->infer ? env->service : NULL;
}

/* --- during and after training --- */

/* Read the counts while workers change them: a count that is a little old does
 * no harm. */
static void read_shared_counts(fl_merge *m)
{
    memset(m->counts, 0, (size_t)(2 * m->n) * sizeof *m->counts);
    for (int k = 0; k < 2; k++) {
        const fl_tensor *t = &m->stat[k]->tensor;
        const int64_t *from = t->data;
        int64_t *to = m->counts + k * m->n;
        for (int64_t i = 0; i < fl_tensor_numel(t); i++)
            to[i % m->n] += from[i];
    }
}

/* The AUC of all counts; NAN: no trainer has counted an example yet. */
static double merged_auc(const fl_merge *m)
{
    for (int64_t i = 0; i < 2 * m->n; i++)
        if (m->counts[i])
            return fl_auc_area(m->counts, m->counts + m->n, m->n, m->pr);
    return NAN;
}

void fl_merge_tell(fl_merge *m, int64_t now, bool end)
{
    fl_trainer *t = m->service && (end || now >= m->due)
                        ? fl_service_find_trainer(m->service, m->place)
                        : NULL;
    if (!t)
        return;
    m->due = now + pause;
    m->trainers = 0;
    read_shared_counts(m);
    if (fl_trainer_tally(t, NULL, end ? last : limit, m->key, 2 * m->n,
                         m->counts, &m->trainers))
        FL_DEBUG("the AUC is this trainer's own: %s", fl_errmsg());
    else
        m->auc = merged_auc(m);
}

void fl_merge_show(const fl_merge *m, fl_progress *p)
{
    p->auc_trainers = !isnan(p->auc);
    if (m->trainers > 1) {
        p->auc = m->auc;
        p->auc_trainers = m->trainers;
    }
}
