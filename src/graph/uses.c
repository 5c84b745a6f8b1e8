/* SPDX-License-Identifier: Apache-2.0 */
/* uses.c - the names that an op and its sub-blocks read and write. */
#include "graph/verify.h"

int fl_attr_blocks(const fl_attr *a)
{
    if (a->type == FL_ATTR_BLOCK)
        return 1;
    return a->type == FL_ATTR_BLOCKS ? a->n : 0;
}

int fl_attr_block(const fl_attr *a, int i)
{
    return (int)(a->type == FL_ATTR_BLOCK ? a->i : a->longs[i]);
}

/* Whether `name` in block `at` refers to a var of a block nested in `top`. */
static bool is_inner(const fl_block *at, const fl_block *top, const char *name)
{
    for (; at && at != top; at = fl_program_block(at->program, at->parent))
        if (fl_block_var(at, name))
            return true;
    return false;
}

static void add_names(const fl_op *owner, const fl_op *op, bool writes,
                      fl_map *names)
{
    const fl_args *args = writes ? op->desc.out : op->desc.in;
    const int n = writes ? op->desc.n_out : op->desc.n_in;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < args[i].n; j++) {
            const char *name = args[i].name[j];
            if (strcmp(name, FL_EMPTY) && !fl_map_get(names, name) &&
                !is_inner(op->block, owner->block, name))
                fl_map_put(names, name, (void *)owner);
        }
}

static void add_all(const fl_op *owner, const fl_op *op, bool writes,
                    fl_map *names)
{
    add_names(owner, op, writes, names);
    for (int i = 0; i < op->desc.n_attr; i++) {
        const fl_attr *a = &op->desc.attr[i];
        for (int j = 0; j < fl_attr_blocks(a); j++) {
            const fl_block *sub =
                fl_program_block(op->block->program, fl_attr_block(a, j));
            for (int64_t k = 0; k < sub->ops.n; k++)
                add_all(owner, sub->ops.at[k], writes, names);
        }
    }
}

void fl_op_add_reads(const fl_op *op, fl_map *names)
{
    add_all(op, op, false, names);
}

void fl_op_add_writes(const fl_op *op, fl_map *names)
{
    add_all(op, op, true, names);
}
