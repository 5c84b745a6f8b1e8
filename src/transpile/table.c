/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - edits a trainer's program for tables that are is_distributed.
 *
 * No trainer has a copy of such a table. The row of an id is on the server
 * id % servers. For each table there are
 *
 *     split_ids -> prefetch -> merge_ids       for its lookups
 *     split_ids -> send                        for its gradient */
#include "transpile/transpile.h"

/* --- finding it --- */

static bool is_flagged(const fl_op *op)
{
    const fl_attr *a = fl_desc_attr(&op->desc, "is_distributed");
    return !strcmp(op->desc.type, "lookup_table") && a && a->b;
}

/* Check that all lookups of the table are is_distributed and in the global
 * block. */
static fl_err check_lookups(const fl_cut *c, const char *table)
{
    for (int64_t i = 0; i < c->main->blocks.n; i++) {
        const fl_ops *ops = &c->main->blocks.at[i]->ops;
        for (int64_t k = 0; k < ops->n; k++) {
            const fl_op *op = ops->at[k];
            if (strcmp(op->desc.type, "lookup_table") ||
                !fl_desc_reads(&op->desc, table) || (!i && is_flagged(op)))
                continue;
            return fl_fail(
                FL_EINVAL, "transpile: a lookup_table of \"%s\" %s", table,
                i ? "is in a sub-block, where is_distributed is not supported"
                  : "lacks is_distributed, which other lookups of this table "
                    "have");
        }
    }
    return FL_OK;
}

fl_share *fl_cut_table(const fl_cut *c, const char *name)
{
    for (int64_t i = 0; i < c->tables.n; i++)
        if (!strcmp(c->tables.at[i]->param->name, name))
            return c->tables.at[i];
    return NULL;
}

/* Move the parameter from the shares, which are split by rows, to the tables.
 */
static fl_err take_table(fl_cut *c, const char *name)
{
    fl_share *t = NULL;
    if (fl_cut_table(c, name))
        return FL_OK;
    FL_TRY(check_lookups(c, name));
    for (int64_t i = 0; i < c->shares.n && !t; i++)
        if (!strcmp(c->shares.at[i]->param->name, name)) {
            t = c->shares.at[i];
            fl_remove(&c->shares, i);
        }
    if (!t)
        return FL_OK; /* no op updates it */
    if (!t->sparse)
        return fl_fail(FL_EINVAL,
                       "transpile: lookups of \"%s\" are is_distributed, so "
                       "they must be is_sparse, too",
                       name);
    fl_push(&c->tables, t);
    return FL_OK;
}

fl_err fl_table_find(fl_cut *c)
{
    const fl_block *b = fl_program_block(c->main, 0);
    for (int64_t i = 0; i < b->ops.n; i++)
        if (is_flagged(b->ops.at[i]))
            FL_TRY(take_table(c, fl_desc_in1(&b->ops.at[i]->desc, "W")));
    return FL_OK;
}

/* --- the trainer --- */

/* The names for a table, one for each server. Those of the first table are
 * Fluid's names; Fluid has only one table. */
static const char **numbered_names(fl_cut *c, const fl_share *t,
                                   const char *way)
{
    const char **at =
        fl_arena_alloc(c->arena, (size_t)c->n_servers * sizeof *at);
    const bool first = t == c->tables.at[0];
    for (int i = 0; i < c->n_servers; i++)
        at[i] = fl_arena_printf(c->arena, "%s%sprefetch_compress_%s_tmp_%d",
                                first ? "" : t->param->name, first ? "" : ".",
                                way, i);
    return at;
}

const char **fl_table_requests(fl_cut *c, const fl_share *t)
{
    return numbered_names(c, t, "in");
}

const char **fl_table_answers(fl_cut *c, const fl_share *t)
{
    return numbered_names(c, t, "out");
}

fl_err fl_table_declare(fl_block *b, int n, const char **names,
                        const fl_var *like)
{
    fl_var v = *like, *out;
    v.param = NULL;
    v.is_data = v.persistable = false;
    v.lod_level = 0;
    for (int i = 0; i < n; i++) {
        v.name = names[i];
        FL_TRY(fl_block_add_var(b, &v, &out));
    }
    return FL_OK;
}

/* The lookups of the table, in the order of the ops. */
typedef struct lookups {
    int n;
    const char **ids, **outs;
    int64_t *padding; /* row that is read as zeros; -1: none */
    bool padded;      /* at least one lookup has a padding row */
} lookups;

/* Insert the three ops that replace all lookups, at the position of the first
 * one. */
static fl_err add_prefetch(fl_cut *c, const fl_share *t, fl_block *b,
                           int64_t at, const lookups *l)
{
    fl_desc *split = fl_cut_desc(c, "split_ids", FL_ROLE_FORWARD);
    fl_desc *fetch = fl_cut_desc(c, "prefetch", FL_ROLE_FORWARD);
    fl_desc *merge = fl_cut_desc(c, "merge_ids", FL_ROLE_FORWARD);
    FL_TRY(fl_table_declare(b, c->n_servers, fl_table_answers(c, t),
                            fl_block_find(b, l->outs[0])));
    fl_desc_set_in(split, "Ids", l->n, l->ids);
    fl_desc_set_out(split, "Out", c->n_servers, fl_table_requests(c, t));
    fl_desc_set_in(fetch, "X", c->n_servers, fl_table_requests(c, t));
    fl_desc_set_out(fetch, "Out", c->n_servers, fl_table_answers(c, t));
    fl_set_strs(fetch, "epmap", c->n_servers, c->servers);
    fl_set_str(fetch, "table_name", t->param->name);
    fl_set_int(fetch, "trainer_id", c->opts.trainer_id);
    fl_desc_set_in(merge, "Ids", l->n, l->ids);
    fl_desc_set_in(merge, "Rows", c->n_servers, fl_table_requests(c, t));
    fl_desc_set_in(merge, "X", c->n_servers, fl_table_answers(c, t));
    fl_desc_set_out(merge, "Out", l->n, l->outs);
    if (l->padded)
        fl_set_ints(merge, "padding_idx", l->n, l->padding);
    FL_TRY(fl_block_insert_op(b, at, split, NULL));
    FL_TRY(fl_block_insert_op(b, at + 1, fetch, NULL));
    return fl_block_insert_op(b, at + 2, merge, NULL);
}

/* Note the lookup, and remove it from the block. */
static void take_lookup(fl_block *b, int64_t at, lookups *l)
{
    const fl_desc *d = &b->ops.at[at]->desc;
    const fl_attr *padding = fl_desc_attr(d, "padding_idx");
    l->padding[l->n] = padding ? padding->i : -1;
    l->padded |= l->padding[l->n] != -1;
    l->ids[l->n] = fl_desc_in1(d, "Ids");
    l->outs[l->n++] = fl_desc_out1(d, "Out");
    fl_block_remove_op(b, at);
}

static fl_err replace_lookups(fl_cut *c, const fl_share *t, fl_block *b)
{
    const size_t size = (size_t)b->ops.n * sizeof(char *);
    lookups l = {
        .ids = fl_arena_alloc(c->arena, size),
        .outs = fl_arena_alloc(c->arena, size),
        .padding =
            fl_arena_alloc(c->arena, (size_t)b->ops.n * sizeof *l.padding),
    };
    int64_t first = -1;
    for (int64_t i = 0; i < b->ops.n;) {
        if (!is_flagged(b->ops.at[i]) ||
            !fl_desc_reads(&b->ops.at[i]->desc, t->param->name)) {
            i++;
            continue;
        }
        first = first < 0 ? i : first;
        take_lookup(b, i, &l);
    }
    for (int i = 0; i < l.n; i++)
        if (fl_cut_last_writer(b, l.ids[i]) >= first)
            return fl_fail(FL_EINVAL,
                           "transpile: the ids \"%s\" are computed after the "
                           "first lookup of \"%s\", but all lookups of a "
                           "distributed table are made at the first one",
                           l.ids[i], t->param->name);
    return add_prefetch(c, t, b, first, &l);
}

const char *fl_table_part(fl_cut *c, const fl_share *t, int trainer, int server)
{
    const char *grad = t->grad->name;
    return c->opts.async
               ? fl_arena_printf(c->arena, "%s.pserver_%d", grad, server)
               : fl_arena_printf(c->arena, "%s.trainer_%d.pserver_%d", grad,
                                 trainer, server);
}

static fl_err send_grad(fl_cut *c, fl_share *t, fl_block *b)
{
    const char **parts =
        fl_arena_alloc(c->arena, (size_t)c->n_servers * sizeof *parts);
    const int64_t at = fl_cut_last_writer(b, t->grad->name) + 1;
    fl_desc *split = fl_cut_desc(c, "split_ids", FL_ROLE_DIST);
    fl_desc *send = fl_cut_desc(c, "send", FL_ROLE_RPC);
    for (int i = 0; i < c->n_servers; i++)
        parts[i] = fl_table_part(c, t, c->opts.trainer_id, i);
    FL_TRY(fl_table_declare(b, c->n_servers, parts, t->grad));
    FL_TRY(fl_cut_token(c, b, &t->token));
    fl_desc_set_in1(split, "Ids", t->grad->name);
    fl_desc_set_out(split, "Out", c->n_servers, parts);
    fl_desc_set_in(send, "X", c->n_servers, parts);
    fl_desc_set_out1(send, "Out", t->token);
    fl_set_strs(send, "epmap", c->n_servers, c->servers);
    fl_set_int(send, "trainer_id", c->opts.trainer_id);
    fl_set_strs(send, "op_role_var", 2,
                (const char *[]){t->param->name, t->grad->name});
    FL_TRY(fl_block_insert_op(b, at, split, NULL));
    return fl_block_insert_op(b, at + 1, send, NULL);
}

fl_err fl_table_edit_trainer(fl_cut *c, fl_share *t, fl_block *b)
{
    FL_TRY(replace_lookups(c, t, b));
    return send_grad(c, t, b);
}

static void remove_writers(fl_block *b, const char *name)
{
    for (int64_t i = b->ops.n; i-- > 0;)
        if (fl_desc_writes(&b->ops.at[i]->desc, name))
            fl_block_remove_op(b, i);
}

/* Whether the variable is a state that the update op keeps for each row. */
static bool is_state(const fl_share *t, const fl_op *update, const char *name)
{
    const fl_var *v = fl_block_var(update->block, name);
    return v && v != t->param && fl_shape_equal(&v->shape, &t->param->shape);
}

/* Remove the ops that initialise states: trainers have none of them. */
static void remove_states(const fl_cut *c, const fl_share *t, fl_block *b)
{
    const fl_op *op = fl_table_update(c, t);
    for (int i = 0; op && i < op->desc.n_out; i++)
        if (is_state(t, op, op->desc.out[i].name[0]))
            remove_writers(b, op->desc.out[i].name[0]);
}

void fl_table_drop_states(const fl_cut *c, const fl_share *t, fl_block *b)
{
    const fl_op *op = fl_table_update(c, t);
    if (!op || fl_table_keeps_rule(op))
        return;
    for (int i = 0; i < op->desc.n_out; i++)
        if (is_state(t, op, op->desc.out[i].name[0]))
            fl_block_remove_var(b, op->desc.out[i].name[0]);
}

fl_err fl_table_edit_startup(fl_cut *c, const fl_share *t, fl_block *b)
{
    const fl_var *w = t->param;
    fl_desc *d = fl_cut_desc(c, "fake_init", FL_ROLE_FORWARD);
    remove_writers(b, w->name);
    remove_states(c, t, b);
    fl_desc_set_out1(d, "Out", w->name);
    fl_set_ints(d, "shape", w->shape.rank, w->shape.dim);
    return fl_block_append_op(b, d, NULL);
}
