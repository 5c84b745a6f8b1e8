/* SPDX-License-Identifier: Apache-2.0 */
/* prune.c - the part of a program that some variables depend on.
 *
 * The global block is walked backwards: an op is kept if it, or an op of its
 * sub-blocks, writes a name that is needed; then all names that it reads are
 * needed. Sub-blocks of kept ops are kept whole; blocks get new numbers. */
#include "graph/copy.h"
#include "graph/verify.h"

typedef struct pruner {
    const fl_program *p;
    fl_map needed;    /* set of names that are needed */
    bool *op;         /* for each op of the global block: it is kept */
    bool *block;      /* for each block: it is kept */
    int *number;      /* for each kept block: its number in the new program */
    FL_VEC(int) todo; /* kept blocks whose relatives are to be kept, too */
} pruner;

static bool writes_needed(const pruner *x, const fl_op *op)
{
    fl_map writes = {0};
    bool needed = false;
    fl_op_add_writes(op, &writes);
    for (fl_entry *e = NULL; !needed && (e = fl_map_next(&writes, e));)
        needed = fl_map_get(&x->needed, e->key);
    fl_map_fini(&writes);
    return needed;
}

static fl_err need_targets(pruner *x, int n, const char *const *targets)
{
    const fl_block *b = x->p->blocks.at[0];
    fl_map written = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < b->ops.n; i++)
        fl_op_add_writes(b->ops.at[i], &written);
    for (int i = 0; i < n && !err; i++) {
        const fl_var *v = fl_block_var(b, targets[i]);
        if (!v)
            err = fl_fail(FL_ENOENT, "prune: there is no variable \"%s\"",
                          targets[i]);
        else if (!fl_map_get(&written, v->name) && !v->persistable &&
                 !v->is_data)
            err = fl_fail(FL_ENOENT, "prune: no op produces \"%s\"", v->name);
        else
            fl_map_put(&x->needed, v->name, (void *)v);
    }
    fl_map_fini(&written);
    return err;
}

static void choose_ops(pruner *x)
{
    const fl_block *b = x->p->blocks.at[0];
    for (int64_t i = b->ops.n - 1; i >= 0; i--) {
        x->op[i] = writes_needed(x, b->ops.at[i]);
        if (x->op[i])
            fl_op_add_reads(b->ops.at[i], &x->needed);
    }
}

static void keep_block(pruner *x, int idx)
{
    if (idx < 0 || x->block[idx])
        return;
    x->block[idx] = true;
    fl_push(&x->todo, idx);
}

static void keep_sub_blocks(pruner *x, const fl_op *op)
{
    for (int i = 0; i < op->desc.n_attr; i++)
        for (int j = 0; j < fl_attr_blocks(&op->desc.attr[i]); j++)
            keep_block(x, fl_attr_block(&op->desc.attr[i], j));
}

/* Keep a block together with its parent, its forward block and its sub-blocks.
 */
static void choose_blocks(pruner *x)
{
    keep_block(x, 0);
    while (x->todo.n) {
        const fl_block *b = x->p->blocks.at[x->todo.at[--x->todo.n]];
        keep_block(x, b->parent);
        keep_block(x, b->forward);
        for (int64_t j = 0; j < b->ops.n; j++)
            if (b->idx || x->op[j])
                keep_sub_blocks(x, b->ops.at[j]);
    }
    for (int64_t i = 0, n = 0; i < x->p->blocks.n; i++)
        x->number[i] = x->block[i] ? (int)n++ : -1;
}

static void renumber_blocks(const pruner *x, fl_desc *d)
{
    for (int i = 0; i < d->n_attr; i++) {
        fl_attr *a = &d->attr[i]; /* in the copy */
        if (a->type == FL_ATTR_BLOCK)
            a->i = x->number[a->i];
        int64_t *list = a->type == FL_ATTR_BLOCKS ? (int64_t *)a->longs : NULL;
        for (int j = 0; list && j < a->n; j++)
            list[j] = x->number[list[j]];
    }
}

static void copy_ops(const pruner *x, fl_block *to, const fl_block *b)
{
    for (int64_t i = 0; i < b->ops.n; i++)
        if (b->idx || x->op[i])
            renumber_blocks(x, &fl_copy_op(to, b->ops.at[i])->desc);
}

static void copy_vars(fl_block *to, const fl_block *b, const fl_map *used)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        if (b->idx || fl_map_get(used, e->key))
            fl_copy_var(to, e->value);
}

static fl_program *copy_chosen(pruner *x)
{
    fl_program *q = fl_copy_settings(x->p);
    const fl_block *global = x->p->blocks.at[0];
    for (int64_t i = 0; i < global->ops.n; i++)
        if (x->op[i]) /* from here on `needed` has all names that kept ops use
                       */
            fl_op_add_writes(global->ops.at[i], &x->needed);
    for (int64_t i = 0; i < x->p->blocks.n; i++) {
        const fl_block *b = x->p->blocks.at[i];
        if (!x->block[i])
            continue;
        fl_block *to =
            i ? fl_program_add_block(q, x->number[b->parent]) : q->blocks.at[0];
        to->forward = b->forward < 0 ? -1 : x->number[b->forward];
        to->had_forward = b->had_forward;
        copy_vars(to, b, &x->needed);
        copy_ops(x, to, b);
    }
    return q;
}

fl_err fl_program_prune(const fl_program *p, int n, const char *const *targets,
                        fl_program **out)
{
    FL_TRY(fl_verify_blocks(p));
    const size_t blocks = (size_t)p->blocks.n;
    fl_arena *a = fl_arena_new();
    pruner x = {.p = p};
    x.op = fl_arena_alloc(a, (size_t)p->blocks.at[0]->ops.n * sizeof *x.op);
    x.block = fl_arena_alloc(a, blocks * sizeof *x.block);
    x.number = fl_arena_alloc(a, blocks * sizeof *x.number);
    const fl_err err = need_targets(&x, n, targets);
    if (!err) {
        choose_ops(&x);
        choose_blocks(&x);
        *out = copy_chosen(&x);
    }
    fl_map_fini(&x.needed);
    fl_vec_fini(&x.todo);
    fl_arena_free(a);
    return err;
}
