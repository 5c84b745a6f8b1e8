/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - checks the rules between ops, vars and blocks of a program.
 *
 * Programs come from files, from texts and from passes that rewrite them. Later
 * stages rely on each of these rules. An error names the op and the block. */
#include "graph/verify.h"

#include "base/str.h"

enum {
    DEEPEST = 32, /* nested blocks; scripts nest three or four */
};

/* --- blocks --- */

static fl_err verify_tree(const fl_program *p)
{
    if (!p->blocks.n)
        return fl_fail(FL_EINVAL, "program: there is no block");
    for (int64_t i = 0; i < p->blocks.n; i++) {
        const fl_block *b = p->blocks.at[i];
        if (i ? b->parent < 0 || b->parent >= i : b->parent != -1)
            return fl_fail(
                FL_EINVAL, "block %lld: its parent is block %d, expected %s",
                (long long)i, b->parent, i ? "an earlier one" : "none (-1)");
        if (b->forward < -1 || b->forward >= i)
            return fl_fail(FL_EINVAL,
                           "block %lld: its forward block is %d, expected an "
                           "earlier one",
                           (long long)i, b->forward);
        int deep = 0;
        for (const fl_block *up = b; up && deep <= DEEPEST; deep++)
            up = fl_program_block(p, up->parent);
        if (deep > DEEPEST)
            return fl_fail(FL_EINVAL, "block %lld is nested more than %d deep",
                           (long long)i, DEEPEST);
    }
    return FL_OK;
}

static bool lies_below(const fl_block *b, const fl_block *top)
{
    while (b && b != top)
        b = fl_program_block(b->program, b->parent);
    return b;
}

static fl_err claim_block(const fl_op *op, const fl_attr *a, int idx,
                          bool *claimed)
{
    const fl_block *b = op->block;
    const fl_block *sub = fl_program_block(b->program, idx);
    if (!sub)
        return fl_fail(FL_EINVAL,
                       "%s: attribute %s is block %d, but the program has "
                       "%lld blocks",
                       op->desc.type, a->name, idx,
                       (long long)b->program->blocks.n);
    if (sub == b || !lies_below(sub, b))
        return fl_fail(
            FL_EINVAL,
            "%s: attribute %s is block %d, which is not nested in block %d",
            op->desc.type, a->name, idx, b->idx);
    if (claimed[idx])
        return fl_fail(FL_EINVAL,
                       "%s: attribute %s is block %d, which belongs to "
                       "another op",
                       op->desc.type, a->name, idx);
    claimed[idx] = true;
    return FL_OK;
}

static fl_err verify_claims(const fl_program *p, bool *claimed)
{
    for (int64_t i = 0; i < p->blocks.n; i++) {
        const fl_block *b = p->blocks.at[i];
        for (int64_t j = 0; j < b->ops.n; j++) {
            const fl_desc *d = &b->ops.at[j]->desc;
            for (int k = 0; k < d->n_attr; k++)
                for (int n = 0; n < fl_attr_blocks(&d->attr[k]); n++)
                    if (claim_block(b->ops.at[j], &d->attr[k],
                                    fl_attr_block(&d->attr[k], n), claimed))
                        return fl_fail_at(FL_EINVAL, "op %lld in block %d",
                                          (long long)j, b->idx);
        }
    }
    return FL_OK;
}

fl_err fl_verify_blocks(const fl_program *p)
{
    FL_TRY(verify_tree(p));
    bool *claimed = fl_mem_alloc((size_t)p->blocks.n * sizeof *claimed);
    const fl_err err = verify_claims(p, claimed);
    fl_mem_free(claimed);
    return err;
}

/* --- vars --- */

static fl_err verify_var(const fl_var *v)
{
    char shape[FL_SHAPE_TEXT];
    if (!*v->name || !strcmp(v->name, FL_EMPTY))
        return fl_fail(FL_EINVAL, "block %d: a var is called \"%s\"",
                       v->block->idx, v->name);
    if (v->shape.rank < 0 || v->shape.rank > FL_MAX_RANK)
        return fl_fail(FL_EINVAL, "var \"%s\" has %d dimensions", v->name,
                       v->shape.rank);
    if (!v->param)
        return FL_OK;
    if (!v->persistable)
        return fl_fail(FL_EINVAL, "parameter \"%s\" is not persistable",
                       v->name);
    if (!v->shape.rank || fl_shape_numel(&v->shape) < 0)
        return fl_fail(FL_EINVAL,
                       "parameter \"%s\" has the shape %s, expected known "
                       "dimensions",
                       v->name, fl_shape_text(&v->shape, shape));
    return FL_OK;
}

/* --- ops --- */

static fl_err verify_names(const fl_op *op, int64_t at, bool writes)
{
    const fl_desc *d = &op->desc;
    const fl_args *args = writes ? d->out : d->in;
    for (int i = 0; i < (writes ? d->n_out : d->n_in); i++)
        for (int j = 0; j < args[i].n; j++) {
            const char *name = args[i].name[j];
            const int slot = fl_op_slot_in(op->def, args[i].slot);
            if (!strcmp(name, FL_EMPTY)) {
                if (writes || op->def->in[slot].flags & FL_OPTIONAL)
                    continue;
                return fl_fail(
                    FL_EINVAL, "op %lld \"%s\" in block %d lacks its input %s",
                    (long long)at, d->type, op->block->idx, args[i].slot);
            }
            if (!fl_block_find(op->block, name))
                return fl_fail(FL_EINVAL,
                               "op %lld \"%s\" in block %d %s \"%s\", which "
                               "is declared neither there nor in its parents",
                               (long long)at, d->type, op->block->idx,
                               writes ? "writes" : "reads", name);
        }
    return FL_OK;
}

/* If a gradient op has both S and S@GRAD, they must have the same number of
 * names. */
static fl_err verify_grad(const fl_op *op, int64_t at, const fl_args *args,
                          int n)
{
    char slot[64];
    for (int i = 0; i < n; i++) {
        const size_t cut = strlen(args[i].slot) - strlen(FL_GRAD_SUFFIX);
        if (!fl_ends_with(args[i].slot, FL_GRAD_SUFFIX) || cut >= sizeof slot)
            continue;
        memcpy(slot, args[i].slot, cut);
        slot[cut] = 0;
        const fl_args *of = fl_desc_in(&op->desc, slot);
        if (of && of->n && args[i].n && of->n != args[i].n)
            return fl_fail(FL_EINVAL,
                           "op %lld \"%s\" in block %d has %d names in %s, "
                           "but %d in %s",
                           (long long)at, op->desc.type, op->block->idx,
                           args[i].n, args[i].slot, of->n, slot);
    }
    return FL_OK;
}

static fl_err verify_table(const fl_op *op, int64_t at)
{
    if (!op->def || strcmp(op->def->type, op->desc.type))
        return fl_fail(
            FL_EINVAL,
            "op %lld in block %d has the type \"%s\", but the table of another",
            (long long)at, op->block->idx, op->desc.type);
    fl_arena *a = fl_arena_new(); /* the check may convert attributes */
    const fl_err err = fl_desc_check(op->def, fl_desc_dup(a, &op->desc), true);
    fl_arena_free(a);
    return err ? fl_fail_at(err, "op %lld in block %d", (long long)at,
                            op->block->idx)
               : FL_OK;
}

static fl_err verify_op(const fl_op *op, int64_t at)
{
    const fl_desc *d = &op->desc;
    FL_TRY(verify_table(op, at));
    FL_TRY(verify_names(op, at, false));
    FL_TRY(verify_names(op, at, true));
    if (!fl_registry_forward(op->block->program->registry, d->type))
        return FL_OK;
    FL_TRY(verify_grad(op, at, d->in, d->n_in));
    return verify_grad(op, at, d->out, d->n_out);
}

static fl_err verify_block(const fl_block *b)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        FL_TRY(verify_var(e->value));
    for (int64_t i = 0; i < b->ops.n; i++)
        FL_TRY(verify_op(b->ops.at[i], i));
    return FL_OK;
}

/* --- order --- */

/* Whether only ops of the program can give the var a value. */
static bool is_temporary(const fl_block *b, const char *name)
{
    const fl_var *v = fl_block_var(b, name);
    return v && !v->persistable && !v->is_data && v->kind == FL_LOD_TENSOR;
}

static int64_t place_of(const fl_block *b, const fl_op *op)
{
    int64_t i = 0;
    while (b->ops.at[i] != op)
        i++;
    return i;
}

/* A temporary that an op writes must be written before it is read. A temporary
 * that no op writes is a feed: programs from files do not say which vars are
 * data. */
static fl_err verify_order(const fl_block *b, fl_map *written, fl_map *first)
{
    fl_map reads = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < b->ops.n; i++)
        fl_op_add_writes(b->ops.at[i], first);
    for (int64_t i = 0; i < b->ops.n && !err; i++) {
        const fl_op *op = b->ops.at[i];
        fl_op_add_reads(op, &reads);
        for (fl_entry *e = NULL; !err && (e = fl_map_next(&reads, e));) {
            const fl_op *writer = fl_map_get(first, e->key);
            if (writer && writer != op && !fl_map_get(written, e->key) &&
                is_temporary(b, e->key))
                err =
                    fl_fail(FL_EINVAL,
                            "op %lld \"%s\" in block %d reads \"%s\", which "
                            "is first written by op %lld \"%s\"",
                            (long long)i, op->desc.type, b->idx, e->key,
                            (long long)place_of(b, writer), writer->desc.type);
        }
        fl_op_add_writes(op, written);
        fl_map_fini(&reads);
    }
    return err;
}

fl_err fl_program_verify(const fl_program *p)
{
    FL_TRY(fl_verify_blocks(p));
    for (int64_t i = 0; i < p->blocks.n; i++)
        FL_TRY(verify_block(p->blocks.at[i]));
    fl_map written = {0}, first = {0};
    const fl_err err = verify_order(p->blocks.at[0], &written, &first);
    fl_map_fini(&written);
    fl_map_fini(&first);
    return err;
}
