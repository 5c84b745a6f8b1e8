/* SPDX-License-Identifier: Apache-2.0 */
/* table_serve.c - tables that are is_distributed, in a server's program.
 *
 *     sum, sgd or another rule   updates the table
 *     lookup_sparse_table        answers a prefetch; it says how new rows start
 *     save                       saves a checkpoint
 *
 * An update rule that changes rows whose gradient is 0 would have to visit all
 * rows of a table in every step. As in Fluid, sgd is used in its place. */
#include "base/log.h"
#include "graph/copy.h"
#include "kernel/rule.h"
#include "transpile/transpile.h"

const fl_op *fl_table_update(const fl_cut *c, const fl_share *t)
{
    for (int64_t i = 0; i < c->updates.n; i++) {
        const char *param = fl_desc_in1(&c->updates.at[i]->desc, "Param");
        if (param && !strcmp(param, t->param->name))
            return c->updates.at[i];
    }
    return NULL;
}

bool fl_table_keeps_rule(const fl_op *op)
{
    const fl_rule *rule = op->def->rule;
    const fl_attr *lazy = fl_desc_attr(&op->desc, "lazy_mode");
    return rule && !rule->whole && (!rule->decays || (lazy && lazy->b));
}

/* The shape of the table on one server: how many rows it is likely to hold.
 * Rows are created on first use and keep their ids. */
static fl_shape share_shape(const fl_cut *c, const fl_share *t)
{
    fl_shape shape = t->param->shape;
    const int64_t rows = shape.dim[0];
    shape.dim[0] = rows / c->n_servers + (rows % c->n_servers != 0);
    return shape;
}

/* Declare the table, or a state that is stored in its rows. */
static fl_err declare_by_id(fl_server_cut *s, const fl_share *t,
                            const fl_var *of)
{
    fl_var like = *of, *v;
    if (fl_block_var(s->b, of->name))
        return FL_OK;
    like.param = NULL;
    like.kind = FL_SELECTED_ROWS;
    like.shape = share_shape(s->c, t);
    fl_push(&s->held, (fl_held){like.name, like.name, false, 0, like.shape,
                                .by_id = true});
    return fl_block_add_var(s->b, &like, &v);
}

/* Declare the gradients that trainers send; in a synchronous job add the op
 * that sums them. */
static fl_err add_gradient(fl_server_cut *s, const fl_share *t,
                           fl_block **block, const char **merged)
{
    fl_cut *c = s->c;
    const int n = c->opts.async ? 1 : c->opts.trainers;
    const char **parts = fl_arena_alloc(c->arena, (size_t)n * sizeof *parts);
    fl_var like = *t->grad;
    like.shape = share_shape(c, t);
    for (int i = 0; i < n; i++) {
        parts[i] = fl_table_part(c, t, i, s->at);
        fl_push(&s->inputs, parts[i]);
    }
    FL_TRY(fl_table_declare(s->b, n, parts, &like));
    *merged = c->opts.async ? parts[0] : like.name;
    *block = fl_server_block(s, *merged);
    if (c->opts.async)
        return FL_OK;
    FL_TRY(fl_table_declare(s->b, 1, merged, &like));
    fl_desc *d = fl_desc_new(c->arena, "sum");
    fl_desc_set_in(d, "X", n, parts);
    fl_desc_set_out1(d, "Out", *merged);
    return fl_block_append_op(*block, d, NULL);
}

/* Copy an op of the update. The state that it keeps for each row is stored in
 * the rows. */
static fl_err add_rule_op(fl_server_cut *s, const fl_share *t, fl_block *b,
                          const fl_op *op, const char *merged)
{
    const fl_desc *d = &op->desc;
    for (int i = 0; i < d->n_in; i++)
        for (int j = 0; j < d->in[i].n; j++) {
            const fl_var *v = fl_block_var(op->block, d->in[i].name[j]);
            if (!v || !v->persistable || v == t->param)
                continue;
            FL_TRY(fl_shape_equal(&v->shape, &t->param->shape)
                       ? declare_by_id(s, t, v)
                       : fl_server_declare(s, v));
        }
    fl_op *copy = fl_copy_op(b, op); /* shape rules do not know tables */
    fl_op_rename_in(copy, t->grad->name, merged);
    return FL_OK;
}

/* Copy the op that updates the table, and the ops of the update that use
 * neither the table nor its gradient (the beta powers of adam). */
static fl_err add_rule(fl_server_cut *s, const fl_share *t, fl_block *b,
                       const char *merged)
{
    const fl_op *update = fl_table_update(s->c, t);
    for (int64_t i = 0; i < s->c->updates.n; i++) {
        const fl_op *op = s->c->updates.at[i];
        const char *of = fl_cut_role_var(op, 0);
        if (!of || strcmp(of, t->param->name) ||
            (op != update && (fl_desc_reads(&op->desc, t->grad->name) ||
                              fl_desc_reads(&op->desc, t->param->name))))
            continue;
        FL_TRY(add_rule_op(s, t, b, op, merged));
    }
    return FL_OK;
}

static fl_err add_sgd(fl_server_cut *s, const fl_share *t, fl_block *b,
                      const char *merged, const char *rate)
{
    fl_var *v;
    FL_TRY(fl_block_get(fl_program_block(s->c->main, 0), rate, &v));
    FL_TRY(fl_server_declare(s, v));
    fl_desc *d = fl_desc_new(s->c->arena, "sgd");
    fl_desc_set_in1(d, "Param", t->param->name);
    fl_desc_set_in1(d, "LearningRate", rate);
    fl_desc_set_in1(d, "Grad", merged);
    fl_desc_set_out1(d, "ParamOut", t->param->name);
    fl_op op = {.desc = *d};
    FL_TRY(fl_registry_get(s->p->registry, "sgd", &op.def));
    fl_copy_op(b,
               &op); /* not checked: its shape rule knows tensors, not tables */
    return FL_OK;
}

static fl_err add_update(fl_server_cut *s, const fl_share *t, fl_block **block)
{
    const fl_op *update = fl_table_update(s->c, t);
    const char *rate =
        update ? fl_desc_in1(&update->desc, "LearningRate") : NULL;
    const char *merged;
    if (!rate)
        return fl_fail(FL_EINVAL,
                       "transpile: no optimiser with a learning rate updates "
                       "the distributed table \"%s\"",
                       t->param->name);
    FL_TRY(add_gradient(s, t, block, &merged));
    if (fl_table_keeps_rule(update))
        return add_rule(s, t, *block, merged);
    if (!s->at)
        FL_WARN("the distributed table \"%s\" is updated by sgd, not by %s, "
                "which changes rows without a gradient as well",
                t->param->name, update->desc.type);
    return add_sgd(s, t, *block, merged, rate);
}

/* --- how rows start --- */

/* Write the attributes of the op that initialises a variable to attributes of
 * lookup_sparse_table. */
static void describe_start(const fl_cut *c, const char *name, fl_desc *d)
{
    static const struct {
        const char *type, *a, *b;
    } kinds[] = {
        {"fill_constant", "value", NULL},
        {"uniform_random", "min", "max"},
        {"gaussian_random", "mean", "std"},
        {"truncated_gaussian_random", "mean", "std"},
    };
    const fl_op *op = fl_cut_only_start(c, name);
    for (size_t i = 0; op && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(op->desc.type, kinds[i].type))
            continue;
        const fl_attr *a = fl_desc_attr(&op->desc, kinds[i].a);
        const fl_attr *b =
            kinds[i].b ? fl_desc_attr(&op->desc, kinds[i].b) : NULL;
        const fl_attr *seed = fl_desc_attr(&op->desc, "seed");
        fl_set_str(d, "start", kinds[i].type);
        fl_set_float(d, "start_a", a ? a->f : 0);
        fl_set_float(d, "start_b", b ? b->f : 0);
        fl_set_int(d, "start_seed", seed ? seed->i : 0);
    }
}

static fl_err add_lookup(fl_server_cut *s, const fl_share *t,
                         const fl_block *update)
{
    fl_cut *c = s->c;
    const char *ids = fl_table_requests(c, t)[s->at],
               *out = fl_table_answers(c, t)[s->at];
    const fl_block *trainer = fl_program_block(c->trainer, 0);
    fl_block *b = fl_program_add_block(s->p, update->idx);
    fl_desc *d = fl_desc_new(c->arena, "lookup_sparse_table");
    FL_TRY(fl_table_declare(s->b, 1, &ids, fl_block_var(trainer, ids)));
    FL_TRY(fl_table_declare(s->b, 1, &out, fl_block_var(trainer, out)));
    fl_desc_set_in1(d, "W", t->param->name);
    fl_desc_set_in1(d, "Ids", ids);
    fl_desc_set_out1(d, "Out", out);
    describe_start(c, t->param->name, d);
    fl_push(&s->fetches, fl_arena_printf(c->arena, "%s:%d", ids, b->idx));
    return fl_block_append_op(b, d, NULL);
}

static fl_err add_save(fl_server_cut *s, const fl_share *t,
                       const fl_block *update)
{
    fl_desc *d = fl_desc_new(s->c->arena, "save");
    fl_var *v;
    if (!fl_block_var(s->b, "kLookupTablePath"))
        FL_TRY(fl_block_add_var(s->b,
                                &(fl_var){.name = "kLookupTablePath",
                                          .kind = FL_RAW,
                                          .persistable = true},
                                &v));
    fl_block *b = fl_program_add_block(s->p, update->idx);
    fl_desc_set_in1(d, "X", t->param->name);
    fl_set_str(d, "file_path",
               "none"); /* unused: the request names the folder */
    if (s->checkpoint < 0)
        s->checkpoint = b->idx;
    return fl_block_append_op(b, d, NULL);
}

fl_err fl_table_serve(fl_server_cut *s, const fl_share *t)
{
    fl_block *update = NULL;
    FL_TRY(declare_by_id(s, t, t->param));
    FL_TRY(add_update(s, t, &update));
    FL_TRY(add_lookup(s, t, update));
    return add_save(s, t, update);
}
