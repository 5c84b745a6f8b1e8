/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - the variables of a block.
 *
 * A name is looked up in its block, then in the block of which this one is the
 * gradient, and then in the same way in the parent blocks. Removed and renamed
 * vars keep their memory until the program is freed, so that borrowed pointers
 * stay valid. */
#include "graph/program.h"

fl_var *fl_block_var(const fl_block *b, const char *name)
{
    return fl_map_get(&b->vars, name);
}

fl_var *fl_block_find(const fl_block *b, const char *name)
{
    for (; b; b = fl_program_block(b->program, b->parent)) {
        const fl_block *forward = fl_program_block(b->program, b->forward);
        fl_var *v = fl_block_var(b, name);
        if (!v && forward)
            v = fl_block_var(forward, name);
        if (v)
            return v;
    }
    return NULL;
}

fl_err fl_block_get(const fl_block *b, const char *name, fl_var **out)
{
    fl_var *v = fl_block_find(b, name);
    if (!v)
        return fl_fail(FL_ENOENT, "block %d: there is no variable \"%s\"",
                       b->idx, name);
    *out = v;
    return FL_OK;
}

static fl_err check_same(const fl_var *old, const fl_var *like, fl_kind kind)
{
    if (old->kind != kind)
        return fl_fail(FL_EINVAL, "var \"%s\" is a %s, not a %s", old->name,
                       fl_kind_name(old->kind), fl_kind_name(kind));
    if (old->dtype != like->dtype ||
        !fl_shape_equal(&old->shape, &like->shape)) {
        char is[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
        return fl_fail(
            FL_EINVAL, "var \"%s\" is %s%s, not %s%s", old->name,
            fl_dtype_name(old->dtype), fl_shape_text(&old->shape, is),
            fl_dtype_name(like->dtype), fl_shape_text(&like->shape, want));
    }
    if (old->lod_level != like->lod_level)
        return fl_fail(FL_EINVAL, "var \"%s\" has %d LoD levels, not %d",
                       old->name, old->lod_level, like->lod_level);
    if (old->persistable != like->persistable)
        return fl_fail(FL_EINVAL, "var \"%s\" is %spersistable", old->name,
                       old->persistable ? "" : "not ");
    return FL_OK;
}

fl_clip *fl_clip_dup(fl_arena *a, const fl_clip *from)
{
    if (!from)
        return NULL;
    fl_clip *to = fl_arena_dup(a, from, sizeof *from);
    to->kind = from->kind ? fl_arena_strdup(a, from->kind) : NULL;
    to->group = from->group ? fl_arena_strdup(a, from->group) : NULL;
    return to;
}

fl_param_info *fl_param_info_dup(fl_arena *a, const fl_param_info *from)
{
    fl_param_info *to = fl_arena_dup(a, from, sizeof *from);
    to->clip = fl_clip_dup(a, from->clip);
    if (from->regularizer) {
        fl_regularizer *r = fl_arena_dup(a, from->regularizer, sizeof *r);
        r->kind = r->kind ? fl_arena_strdup(a, r->kind) : NULL;
        to->regularizer = r;
    }
    return to;
}

fl_err fl_block_add_var(fl_block *b, const fl_var *like, fl_var **out)
{
    if (!like->name || !*like->name)
        return fl_fail(FL_EINVAL, "block %d: a variable without a name",
                       b->idx);
    const fl_kind kind = like->kind ? like->kind : FL_LOD_TENSOR;
    fl_var *v = fl_block_var(b, like->name);
    if (v) {
        FL_TRY(check_same(v, like, kind));
        *out = v;
        return FL_OK;
    }
    fl_arena *a = b->program->arena;
    v = fl_arena_dup(a, like, sizeof *like);
    v->name = fl_arena_strdup(a, like->name);
    v->kind = kind;
    v->block = b;
    /* Fluid writes all optional fields of a new var. The decoder sets these
     * flags again. */
    v->had_lod_level = v->had_persistable = v->had_tensor = true;
    if (like->param)
        v->param = fl_param_info_dup(a, like->param);
    v->error_clip = fl_clip_dup(a, like->error_clip);
    fl_map_put(&b->vars, v->name, v);
    b->program->version++;
    *out = v;
    return FL_OK;
}

bool fl_block_remove_var(fl_block *b, const char *name)
{
    if (!fl_map_remove(&b->vars, name))
        return false;
    b->program->version++;
    return true;
}

/* Whether `name` in block `at` refers to the var of block `owner`. */
static bool refers_to(const fl_block *at, const char *name,
                      const fl_block *owner)
{
    for (; at; at = fl_program_block(at->program, at->parent)) {
        if (at == owner)
            return true;
        if (fl_block_var(at, name))
            return false;
    }
    return false;
}

static void rename_in_ops(fl_block *b, const char *from, const char *to)
{
    for (int64_t i = 0; i < b->ops.n; i++) {
        fl_desc_rename_in(&b->ops.at[i]->desc, from, to);
        fl_desc_rename_out(&b->ops.at[i]->desc, from, to);
    }
}

fl_err fl_block_rename_var(fl_block *b, const char *from, const char *to)
{
    fl_var *v = fl_block_var(b, from);
    if (!v)
        return fl_fail(FL_ENOENT, "block %d: there is no variable \"%s\"",
                       b->idx, from);
    if (!strcmp(from, to))
        return FL_OK;
    if (!*to || fl_block_var(b, to))
        return fl_fail(FL_EINVAL,
                       "block %d: \"%s\" cannot be renamed to \"%s\": %s",
                       b->idx, from, to,
                       *to ? "a variable has this name" : "the name is empty");
    fl_program *p = b->program;
    const char *old = v->name; /* `from` may be a name that changes below */
    for (int64_t i = 0; i < p->blocks.n; i++)
        if (refers_to(p->blocks.at[i], old, b))
            rename_in_ops(p->blocks.at[i], old, to);
    fl_map_remove(&b->vars, old);
    v->name = fl_arena_strdup(p->arena, to);
    fl_map_put(&b->vars, v->name, v);
    p->version++;
    return FL_OK;
}

void fl_var_touch(fl_var *v)
{
    v->block->program->version++;
}
