/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate.c - several gradients of one variable become their sum.
 *
 * A variable that n ops read has n gradients. The outputs of the writers are
 * renamed to g@RENAME@0, g@RENAME@1, ..., and a sum op computes g right before
 * the first op that reads it, or at the end. If another op writes g after that
 * reader, the output of the sum is renamed in turn and becomes a part of the
 * next sum. */
#include "build/grad.h"

/* One gradient and the ops that have written it so far. */
typedef struct parts {
    const char *grad;
    FL_VEC(const char *) name; /* with one part: the gradient itself */
    int64_t first;             /* index of the op that wrote it first */
    int renames;
} parts;

typedef struct sum {
    fl_desc *d;
    int64_t at; /* in front of this op */
} sum;

typedef struct gathering {
    fl_diff *d;
    fl_map of; /* gradient -> parts, in order of appearance */
    FL_VEC(sum) sums;
} gathering;

static parts *parts_of(gathering *g, const char *grad)
{
    parts *p = fl_map_get(&g->of, grad);
    if (!p) {
        p = fl_arena_alloc(g->d->arena, sizeof *p);
        p->grad = grad;
        fl_map_put(&g->of, grad, p);
    }
    return p;
}

static const char *new_name(gathering *g, parts *p)
{
    return fl_arena_printf(g->d->arena, "%s@RENAME@%d", p->grad, p->renames++);
}

static void add_sum(gathering *g, parts *p, int64_t at)
{
    fl_desc *d = fl_desc_new(g->d->arena, "sum");
    fl_desc_set_in(d, "X", (int)p->name.n, p->name.at);
    fl_desc_set_out1(d, "Out", p->grad);
    fl_push(&g->sums, (sum){d, at});
    p->name.n = 0;
    fl_push(&p->name, p->grad);
}

static void read_inputs(gathering *g, const fl_desc *op, int64_t at)
{
    fl_names_at it = fl_names_in(op);
    for (const char **s; (s = fl_names_next(&it));) {
        if (!fl_is_grad(*s))
            continue;
        parts *p = parts_of(g, *s);
        if (p->name.n > 1)
            add_sum(g, p, at);
    }
}

static void rename_both(fl_desc *d, const char *from, const char *to)
{
    fl_desc_rename_in(d, from, to);
    fl_desc_rename_out(d, from, to);
}

/* Rename the output of the first writer, also in the ops that have read it
 * since: the ops from the writer to `at`, and the outputs of op `at` before
 * `end`. */
static void rename_first(gathering *g, parts *p, int64_t at, const char **end)
{
    const char *name = new_name(g, p);
    for (int64_t i = p->first; i < at; i++)
        rename_both(g->d->ops.at[i], p->grad, name);
    for (int64_t i = 0; i < g->sums.n; i++)
        rename_both(g->sums.at[i].d, p->grad, name);
    fl_names_at it = fl_names_out(g->d->ops.at[at]);
    for (const char **s; (s = fl_names_next(&it)) && s != end;)
        if (!strcmp(*s, p->grad))
            *s = name;
    p->name.at[0] = name;
}

static void write_output(gathering *g, int64_t at, const char **out)
{
    parts *p = parts_of(g, *out);
    if (!p->name.n) {
        p->first = at;
        fl_push(&p->name, *out);
        return;
    }
    if (p->name.n == 1)
        rename_first(g, p, at, out);
    *out = new_name(g, p);
    fl_push(&p->name, *out);
}

static bool reads_name(const fl_desc *op, const char *name)
{
    fl_names_at it = fl_names_in(op);
    for (const char **s; (s = fl_names_next(&it));)
        if (!strcmp(*s, name))
            return true;
    return false;
}

static void write_outputs(gathering *g, const fl_desc *op, int64_t at)
{
    fl_names_at it = fl_names_out(op);
    for (const char **s; (s = fl_names_next(&it));)
        if (fl_is_grad(*s) && !reads_name(op, *s)) /* else: in place */
            write_output(g, at, s);
}

static void append_sums(gathering *g)
{
    const int64_t n = g->d->ops.n;
    for (fl_entry *e = NULL; (e = fl_map_next(&g->of, e));) {
        parts *p = e->value;
        if (p->name.n > 1)
            add_sum(g, p, n);
        fl_vec_fini(&p->name);
    }
    for (int64_t i = g->sums.n; i-- > 0;)
        fl_insert(&g->d->ops, g->sums.at[i].at, g->sums.at[i].d);
    fl_vec_fini(&g->sums);
    fl_map_fini(&g->of);
}

void fl_diff_accumulate(fl_diff *d)
{
    gathering g = {.d = d};
    for (int64_t i = 0; i < d->ops.n; i++) {
        read_inputs(&g, d->ops.at[i], i);
        write_outputs(&g, d->ops.at[i], i);
    }
    append_sums(&g);
}
