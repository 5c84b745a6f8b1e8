/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - what front ends read of programs, and the fields that they may set.
 */
#include "graph/program.h"

uint64_t fl_program_version(const fl_program *p)
{
    return p->version;
}

int64_t fl_program_seed(const fl_program *p)
{
    return p->random_seed;
}

void fl_program_set_seed(fl_program *p, int64_t seed)
{
    p->random_seed = seed;
    p->version++;
}

/* --- blocks --- */

fl_block_info fl_block_look(const fl_block *b)
{
    return (fl_block_info){
        .program = b->program,
        .idx = b->idx,
        .parent = b->parent,
        .forward = b->forward,
        .n_ops = b->ops.n,
        .n_vars = b->vars.live,
    };
}

void fl_block_set_forward(fl_block *b, int forward)
{
    b->forward = forward;
    b->program->version++;
}

int64_t fl_block_vars(const fl_block *b, int64_t max, fl_var **out)
{
    int64_t n = 0;
    for (fl_entry *e = NULL; n < max && (e = fl_map_next(&b->vars, e));)
        out[n++] = e->value;
    return b->vars.live;
}

fl_op *fl_block_op(const fl_block *b, int64_t i)
{
    return i >= 0 && i < b->ops.n ? b->ops.at[i] : NULL;
}

/* --- variables --- */

fl_var_info fl_var_look(const fl_var *v)
{
    return (fl_var_info){
        .name = v->name,
        .block = v->block,
        .kind = v->kind,
        .dtype = v->dtype,
        .shape = v->shape,
        .lod_level = v->lod_level,
        .persistable = v->persistable,
        .stop_gradient = v->stop_gradient,
        .is_data = v->is_data,
        .param = v->param,
        .error_clip = v->error_clip,
    };
}

static fl_var from_info(const fl_var_info *i)
{
    return (fl_var){
        .name = i->name,
        .kind = i->kind ? i->kind : FL_LOD_TENSOR,
        .dtype = i->dtype,
        .shape = i->shape,
        .lod_level = i->lod_level,
        .persistable = i->persistable,
        .stop_gradient = i->stop_gradient,
        .is_data = i->is_data,
        .param = i->param,
        .error_clip = i->error_clip,
    };
}

fl_err fl_block_declare(fl_block *b, const fl_var_info *like, fl_var **out)
{
    const fl_var v = from_info(like);
    return fl_block_add_var(b, &v, out);
}

void fl_var_set(fl_var *v, const fl_var_info *to)
{
    fl_arena *a = v->block->program->arena;
    fl_var set = from_info(to);
    set.name = v->name;
    set.block = v->block;
    set.had_lod_level = v->had_lod_level;
    set.had_persistable = v->had_persistable;
    set.had_tensor = v->had_tensor;
    if (to->param && to->param != v->param)
        set.param = fl_param_info_dup(a, to->param);
    if (to->error_clip != v->error_clip)
        set.error_clip = fl_clip_dup(a, to->error_clip);
    *v = set;
    fl_var_touch(v);
}

/* --- operators --- */

const fl_desc *fl_op_look(const fl_op *op)
{
    return &op->desc;
}

fl_block *fl_op_block(const fl_op *op)
{
    return op->block;
}

int64_t fl_op_index(const fl_op *op)
{
    for (int64_t i = 0; i < op->block->ops.n; i++)
        if (op->block->ops.at[i] == op)
            return i;
    return -1;
}

bool fl_op_remove_attr(fl_op *op, const char *name)
{
    if (!fl_desc_remove_attr(&op->desc, name))
        return false;
    op->block->program->version++;
    return true;
}
