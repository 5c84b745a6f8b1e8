/* SPDX-License-Identifier: Apache-2.0 */
/* op_insert.c - inserts, changes and removes the ops of a block.
 *
 * A new op is checked against its table, and the shapes of its outputs are
 * inferred, in an arena of their own. The program is changed only when nothing
 * can fail any more. */
#include "graph/verify.h"

/* --- inference --- */

/* The metas of an op and, for each output, its var (NULL: the var does not
 * exist yet). The meta of an output that is not given is NULL, too. */
typedef struct frame {
    fl_infer x;
    fl_meta **meta[FL_SLOTS];
    fl_var **var[FL_SLOTS];
} frame;

static bool absent(const char *name)
{
    return !strcmp(name, FL_EMPTY);
}

static fl_meta *meta_of(fl_arena *a, const fl_var *v)
{
    fl_meta *m = fl_arena_alloc(a, sizeof *m);
    if (v)
        *m = (fl_meta){v->kind, v->dtype, v->shape, v->lod_level, NULL};
    else
        *m = (fl_meta){.kind = FL_LOD_TENSOR, .dtype = FL_F32};
    return m;
}

static fl_err gather_in(const fl_block *b, const fl_args *args, const char *op,
                        bool optional, fl_arena *a, const fl_meta *const **out)
{
    const fl_meta **m = fl_arena_alloc(a, (size_t)args->n * sizeof *m);
    for (int i = 0; i < args->n; i++) {
        if (absent(args->name[i]) && optional)
            continue;
        if (absent(args->name[i]))
            return fl_fail(FL_EINVAL, "%s: input %s is missing", op,
                           args->slot);
        const fl_var *v = fl_block_find(b, args->name[i]);
        if (!v)
            return fl_fail(FL_ENOENT,
                           "%s: input %s is \"%s\", but block %d has no such "
                           "variable, nor do its parents",
                           op, args->slot, args->name[i], b->idx);
        m[i] = meta_of(a, v);
    }
    *out = m;
    return FL_OK;
}

static void gather_out(const fl_block *b, const fl_args *args, fl_arena *a,
                       frame *f, int k)
{
    f->meta[k] = fl_arena_alloc(a, (size_t)args->n * sizeof *f->meta[k]);
    f->var[k] = fl_arena_alloc(a, (size_t)args->n * sizeof *f->var[k]);
    for (int i = 0; i < args->n; i++) {
        if (absent(args->name[i]))
            continue;
        f->var[k][i] = fl_block_find(b, args->name[i]);
        f->meta[k][i] = meta_of(a, f->var[k][i]);
    }
    f->x.out[k] = f->meta[k];
    f->x.n_out[k] = args->n;
}

static fl_err gather_metas(const fl_block *b, const fl_op_def *def,
                           const fl_desc *d, fl_arena *a, frame *f)
{
    *f = (frame){.x.def = def};
    FL_TRY(fl_desc_attrs(def, d, a, &f->x.attr));
    for (int k = 0; k < FL_SLOTS && def->in[k].name; k++) {
        const fl_args *args = fl_desc_in(d, def->in[k].name);
        if (!args)
            continue;
        FL_TRY(gather_in(b, args, d->type, def->in[k].flags & FL_OPTIONAL, a,
                         &f->x.in[k]));
        f->x.n_in[k] = args->n;
    }
    for (int k = 0; k < FL_SLOTS && def->out[k].name; k++) {
        const fl_args *args = fl_desc_out(d, def->out[k].name);
        if (args)
            gather_out(b, args, a, f, k);
    }
    return FL_OK;
}

/* Whether the declared shape of a var must not change, as of parameters and fed
 * data. */
static bool declared(const fl_var *v)
{
    return v && (v->param || v->is_data);
}

static bool contradicts(const fl_var *v, const fl_meta *m)
{
    if (v->kind != m->kind || v->dtype != m->dtype ||
        v->shape.rank != m->shape.rank)
        return true;
    for (int i = 0; i < m->shape.rank; i++) {
        const int64_t is = v->shape.dim[i], becomes = m->shape.dim[i];
        if (is != becomes && is >= 0 && becomes >= 0)
            return true;
    }
    return false;
}

static fl_err check_declared(const frame *f)
{
    for (int k = 0; k < FL_SLOTS; k++)
        for (int i = 0; i < f->x.n_out[k]; i++) {
            const fl_var *v = f->var[k][i];
            const fl_meta *m = f->meta[k][i];
            char is[FL_SHAPE_TEXT], becomes[FL_SHAPE_TEXT];
            if (declared(v) && contradicts(v, m))
                return fl_fail(FL_ESHAPE,
                               "%s: output %s would make \"%s\" a %s %s%s, "
                               "but it is declared as %s %s%s",
                               f->x.def->type, f->x.def->out[k].name, v->name,
                               fl_kind_name(m->kind), fl_dtype_name(m->dtype),
                               fl_shape_text(&m->shape, becomes),
                               fl_kind_name(v->kind), fl_dtype_name(v->dtype),
                               fl_shape_text(&v->shape, is));
        }
    return FL_OK;
}

static fl_err infer_op(const fl_block *b, const fl_op_def *def,
                       const fl_desc *d, fl_arena *a, frame *f)
{
    FL_TRY(gather_metas(b, def, d, a, f));
    if (def->flags & FL_OP_NO_INFER || !def->infer)
        return FL_OK;
    FL_TRY(fl_infer_run(&f->x));
    return check_declared(f);
}

static void write_meta(fl_var *v, const fl_meta *m)
{
    if (declared(v))
        return;
    v->kind = m->kind;
    v->dtype = m->dtype;
    v->shape = m->shape;
    v->lod_level = m->lod_level;
}

/* Store the inferred shapes. Outputs that have no var get one. */
static fl_err commit_metas(fl_block *b, const fl_desc *d, const frame *f)
{
    for (int k = 0; k < FL_SLOTS; k++)
        for (int i = 0; i < f->x.n_out[k]; i++) {
            const fl_meta *m = f->meta[k][i];
            if (!m)
                continue;
            const fl_args *args = fl_desc_out(d, f->x.def->out[k].name);
            fl_var *v = fl_block_find(b, args->name[i]);
            if (!v)
                FL_TRY(fl_block_add_var(
                    b, &(fl_var){.name = args->name[i], .dtype = m->dtype},
                    &v));
            write_meta(v, m);
        }
    b->program->version++;
    return FL_OK;
}

/* --- inserting --- */

static fl_err check_names(const fl_desc *d, const fl_args *args, int n,
                          const char *side)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < args[i].n; j++)
            if (!args[i].name[j] || !*args[i].name[j])
                return fl_fail(FL_EINVAL, "%s: %s %s holds an empty name",
                               d->type, side, args[i].slot);
    return FL_OK;
}

static fl_err check_blocks(const fl_program *p, const fl_desc *d)
{
    for (int i = 0; i < d->n_attr; i++)
        for (int j = 0; j < fl_attr_blocks(&d->attr[i]); j++) {
            const int idx = fl_attr_block(&d->attr[i], j);
            if (!fl_program_block(p, idx))
                return fl_fail(FL_EINVAL,
                               "%s: attribute %s is block %d, but the program "
                               "has %lld blocks",
                               d->type, d->attr[i].name, idx,
                               (long long)p->blocks.n);
        }
    return FL_OK;
}

/* Add the defaults of attributes that were not given, so that the op has all
 * attributes of its table, as in Fluid. */
static void add_defaults(const fl_op_def *def, fl_desc *d)
{
    for (int i = 0; i < FL_ATTRS && def->attr[i].name; i++)
        if (!def->attr[i].required && !def->attr[i].ours &&
            !fl_desc_attr(d, def->attr[i].name))
            fl_desc_set_attr(d, &def->attr[i]);
}

static fl_err insert_op(fl_block *b, int64_t at, const fl_desc *desc,
                        fl_arena *a, fl_op **out)
{
    fl_program *p = b->program;
    const fl_op_def *def;
    frame f;
    if (at < -1 || at > b->ops.n)
        return fl_fail(
            FL_EINVAL,
            "%s: it cannot be inserted at %lld: block %d has %lld ops",
            desc->type, (long long)at, b->idx, (long long)b->ops.n);
    FL_TRY(fl_registry_get(p->registry, desc->type, &def));
    if (def->flags & FL_OP_HIDDEN)
        return fl_fail(
            FL_EINVAL,
            "%s: only plans make this op, a program cannot contain it",
            desc->type);
    FL_TRY(check_names(desc, desc->in, desc->n_in, "input"));
    FL_TRY(check_names(desc, desc->out, desc->n_out, "output"));
    fl_desc *d = fl_desc_dup(a, desc);
    FL_TRY(fl_desc_check(def, d, false));
    FL_TRY(check_blocks(p, d));
    add_defaults(def, d);
    FL_TRY(infer_op(b, def, d, a, &f));
    FL_TRY(commit_metas(b, d, &f));
    fl_op *op = fl_arena_alloc(p->arena, sizeof *op);
    op->desc = *fl_desc_dup(p->arena, d);
    op->def = def;
    op->block = b;
    if (at < 0)
        at = b->ops.n;
    fl_insert(&b->ops, at, op);
    if (out)
        *out = op;
    return FL_OK;
}

fl_err fl_block_insert_op(fl_block *b, int64_t at, const fl_desc *desc,
                          fl_op **out)
{
    fl_arena *a = fl_arena_new();
    const fl_err err = insert_op(b, at, desc, a, out);
    fl_arena_free(a);
    return err;
}

fl_err fl_block_append_op(fl_block *b, const fl_desc *desc, fl_op **out)
{
    return fl_block_insert_op(b, -1, desc, out);
}

/* --- changing and removing --- */

void fl_block_remove_op(fl_block *b, int64_t at)
{
    fl_remove(&b->ops, at);
    b->program->version++;
}

fl_err fl_op_set_attr(fl_op *op, const fl_attr *value)
{
    fl_arena *a = op->block->program->arena;
    const int k = fl_op_attr(op->def, value->name);
    fl_attr set = *value;
    if (k >= 0)
        FL_TRY(
            fl_attr_convert(a, op->desc.type, &op->def->attr[k], value, &set));
    else if (!fl_attr_common(value->name) &&
             !fl_desc_attr(&op->desc, value->name))
        return fl_fail(FL_EINVAL, "%s: the operator has no attribute %s",
                       op->desc.type, value->name);
    fl_desc_set_attr(&op->desc, &set);
    op->block->program->version++;
    return FL_OK;
}

void fl_op_rename_in(fl_op *op, const char *from, const char *to)
{
    if (fl_desc_rename_in(&op->desc, from, to))
        op->block->program->version++;
}

void fl_op_rename_out(fl_op *op, const char *from, const char *to)
{
    if (fl_desc_rename_out(&op->desc, from, to))
        op->block->program->version++;
}

fl_err fl_op_infer(fl_op *op)
{
    fl_arena *a = fl_arena_new();
    frame f;
    fl_err err = infer_op(op->block, op->def, &op->desc, a, &f);
    if (!err)
        err = commit_metas(op->block, &op->desc, &f);
    fl_arena_free(a);
    return err;
}

int fl_op_role(const fl_op *op)
{
    const fl_attr *role = fl_desc_attr(&op->desc, "op_role");
    return role && role->type == FL_ATTR_INT ? (int)role->i : FL_ROLE_FORWARD;
}
