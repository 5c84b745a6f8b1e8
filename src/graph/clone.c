/* SPDX-License-Identifier: Apache-2.0 */
/* clone.c - an independent copy of a program. */
#include "graph/copy.h"

#include "graph/verify.h"

fl_program *fl_copy_settings(const fl_program *p)
{
    fl_program *q = fl_program_make(p->registry);
    q->random_seed = p->random_seed;
    q->had_version = p->had_version;
    q->had_version_number = p->had_version_number;
    q->file_version = p->file_version;
    fl_program_set_job(q, p->job);
    return q;
}

fl_var *fl_copy_var(fl_block *to, const fl_var *v)
{
    fl_arena *a = to->program->arena;
    fl_var *w = fl_arena_dup(a, v, sizeof *v);
    w->name = fl_arena_strdup(a, v->name);
    w->block = to;
    if (v->param)
        w->param = fl_param_info_dup(a, v->param);
    w->error_clip = fl_clip_dup(a, v->error_clip);
    fl_map_put(&to->vars, w->name, w);
    return w;
}

fl_op *fl_copy_op(fl_block *to, const fl_op *op)
{
    fl_arena *a = to->program->arena;
    fl_op *w = fl_arena_dup(a, op, sizeof *op);
    w->desc = *fl_desc_dup(a, &op->desc);
    w->block = to;
    fl_push(&to->ops, w);
    return w;
}

/* Copy block `idx` of the op's program as a child of `parent`. Returns the new
 * index. */
static int copy_sub_block(const fl_op *op, int64_t idx, const fl_block *parent)
{
    const fl_block *from = fl_program_block(op->block->program, (int)idx);
    fl_block *to = fl_program_add_block(parent->program, parent->idx);
    for (fl_entry *e = NULL; (e = fl_map_next(&from->vars, e));)
        fl_copy_var(to, e->value);
    for (int64_t i = 0; i < from->ops.n; i++)
        fl_copy_op_deep(to, from->ops.at[i]);
    return to->idx;
}

fl_op *fl_copy_op_deep(fl_block *to, const fl_op *op)
{
    fl_op *copy = fl_copy_op(to, op);
    for (int i = 0; i < copy->desc.n_attr; i++) {
        fl_attr *a = &copy->desc.attr[i];
        if (a->type == FL_ATTR_BLOCK)
            a->i = copy_sub_block(op, a->i, to);
    }
    return copy;
}

/* Copy the declarations of `names`; names that are not declared are skipped. */
static void copy_used(fl_block *to, const fl_block *from, const fl_map *names)
{
    for (fl_entry *e = NULL; (e = fl_map_next(names, e));) {
        const fl_var *v = fl_block_find(from, e->key);
        if (v && !fl_block_var(to, v->name))
            fl_copy_var(to, v)->persistable =
                v->persistable || v->block->idx == 0;
    }
}

fl_program *fl_copy_ops(const fl_block *from, int64_t first)
{
    fl_program *p = fl_copy_settings(from->program);
    fl_block *to = fl_program_block(p, 0);
    fl_map names = {0};
    for (int64_t i = first; i < from->ops.n; i++) {
        fl_op_add_reads(from->ops.at[i], &names);
        fl_op_add_writes(from->ops.at[i], &names);
        fl_copy_op_deep(to, from->ops.at[i]);
    }
    copy_used(to, from, &names);
    fl_map_fini(&names);
    return p;
}

static void copy_block(fl_block *to, const fl_block *b)
{
    to->parent = b->parent;
    to->forward = b->forward;
    to->had_forward = b->had_forward;
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        fl_copy_var(to, e->value);
    for (int64_t i = 0; i < b->ops.n; i++)
        fl_copy_op(to, b->ops.at[i]);
}

/* Set is_test, so that dropout and similar ops behave as in inference. */
static void set_test(fl_program *p)
{
    for (int64_t i = 0; i < p->blocks.n; i++)
        for (int64_t j = 0; j < p->blocks.at[i]->ops.n; j++) {
            fl_desc *d = &p->blocks.at[i]->ops.at[j]->desc;
            const fl_attr *is_test = fl_desc_attr(d, "is_test");
            if (is_test && is_test->type == FL_ATTR_BOOL)
                fl_desc_set_attr(d, &(fl_attr){.name = "is_test",
                                               .type = FL_ATTR_BOOL,
                                               .b = true});
        }
}

fl_program *fl_program_clone(const fl_program *p, bool for_test)
{
    fl_program *q = fl_copy_settings(p);
    for (int64_t i = 0; i < p->blocks.n; i++) {
        if (i)
            fl_program_add_block(q, p->blocks.at[i]->parent);
        copy_block(q->blocks.at[i], p->blocks.at[i]);
    }
    if (for_test)
        set_test(q);
    return q;
}
