/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - makes the program of one server.
 *
 * Block 0 declares all variables and has one op, listen_and_serv. Block 1
 * computes the learning rates, if the program has ops for that. Then there is a
 * block for each slice of a parameter: it adds up and averages the gradients,
 * and then runs the parameter's ops with the role optimize on the slice. Update
 * blocks have the same parent; in Fluid's programs this means that they may run
 * at the same time.
 *
 * The state of a slice (a momentum, a beta power) has the name of the state of
 * the whole parameter. If a dispatcher gives a server several slices of one
 * parameter, the names of the later ones end with the block number. */
#include "base/log.h"
#include "graph/copy.h"
#include "graph/verify.h"
#include "transpile/transpile.h"

/* --- variables --- */

/* Declare a variable like `of`, with the name and shape of `h`. */
static fl_err declare_held(fl_server_cut *s, const fl_var *of, const fl_held *h)
{
    fl_var like = *of, *out;
    if (fl_block_var(s->b, h->name))
        return FL_OK;
    like.name = h->name;
    like.param = NULL;
    like.shape = h->shape;
    if (of->persistable)
        fl_push(&s->held, *h);
    return fl_block_add_var(s->b, &like, &out);
}

fl_err fl_server_declare(fl_server_cut *s, const fl_var *v)
{
    return declare_held(s, v, &(fl_held){v->name, v->name, false, 0, v->shape});
}

/* Declare the rows of a slice, of a variable that has the shape of the
 * parameter. */
static fl_err declare_rows(fl_server_cut *s, const fl_var *of, const char *name,
                           const fl_slice *p)
{
    const fl_shape *whole = &p->of->param->shape;
    const bool cut = p->of->n > 1 && !p->of->common;
    const int64_t offset = p->row * fl_shape_span(whole, 1, whole->rank);
    return declare_held(s, of,
                        &(fl_held){of->name, name, cut, offset, p->shape});
}

static bool is_mine(const fl_server_cut *s, const fl_slice *p)
{
    return p->server == s->at;
}

/* Declare the gradient of a slice: the variables that trainers send, and their
 * sum. */
static fl_err declare_grad(fl_server_cut *s, const fl_slice *p)
{
    fl_cut *c = s->c;
    fl_var like = {.name = p->grad,
                   .kind = p->of->grad->kind,
                   .dtype = p->of->grad->dtype,
                   .shape = p->shape,
                   .persistable = true},
           *v;
    FL_TRY(fl_block_add_var(s->b, &like, &v));
    if (!fl_cut_sums(c))
        fl_push(&s->inputs, v->name);
    like.persistable = false;
    for (int i = 0; fl_cut_sums(c) && i < c->opts.trainers; i++) {
        like.name = fl_arena_printf(c->arena, "%s.trainer_%d", p->grad, i);
        FL_TRY(fl_block_add_var(s->b, &like, &v));
        fl_push(&s->inputs, v->name);
    }
    return FL_OK;
}

/* --- every slice that this server holds, in the order of placement --- */

typedef fl_err (*visit)(fl_server_cut *s, const fl_slice *p);

static fl_err each_slice(fl_server_cut *s, visit f)
{
    for (int64_t i = 0; i < s->c->shares.n; i++) {
        const fl_share *share = s->c->shares.at[s->c->order[i]];
        for (int k = 0; k < share->n; k++)
            if (is_mine(s, &share->slice[k]))
                FL_TRY(f(s, &share->slice[k]));
    }
    return FL_OK;
}

static fl_err declare_param(fl_server_cut *s, const fl_slice *p)
{
    return declare_rows(s, p->of->param, p->param, p);
}

/* --- learning rates --- */

/* Declare the variables that the op and its sub-blocks use and the sub-blocks
 * do not declare. */
static fl_err declare_uses(fl_server_cut *s, const fl_op *op)
{
    fl_map names = {0};
    fl_err err = FL_OK;
    fl_op_add_reads(op, &names);
    fl_op_add_writes(op, &names);
    for (fl_entry *e = NULL; !err && (e = fl_map_next(&names, e));) {
        fl_var *v = NULL;
        err = fl_block_get(op->block, e->key, &v);
        if (!err)
            err = fl_server_declare(s, v);
    }
    fl_map_fini(&names);
    return err;
}

static fl_err add_rates(fl_server_cut *s)
{
    if (!s->c->rates.n)
        return FL_OK;
    fl_block *b = fl_program_add_block(s->p, 0);
    fl_push(&s->updates, b->idx);
    for (int64_t i = 0; i < s->c->rates.n; i++) {
        FL_TRY(declare_uses(s, s->c->rates.at[i]));
        fl_copy_op_deep(b, s->c->rates.at[i]);
    }
    return FL_OK;
}

/* --- updates --- */

fl_block *fl_server_block(fl_server_cut *s, const char *grad)
{
    fl_block *b = fl_program_add_block(s->p, s->parent);
    fl_push(&s->updates, b->idx);
    fl_push(&s->blocks, fl_arena_printf(s->c->arena, "%s:%d", grad, b->idx));
    return b;
}

/* Add ops that compute the mean, or the sum, of the gradients of all trainers.
 */
static fl_err add_mean(fl_server_cut *s, fl_block *b, const fl_slice *p)
{
    fl_cut *c = s->c;
    const int n = c->opts.trainers;
    const char **sent = fl_arena_alloc(c->arena, (size_t)n * sizeof *sent);
    if (!fl_cut_sums(c))
        return FL_OK;
    for (int i = 0; i < n; i++)
        sent[i] = fl_arena_printf(c->arena, "%s.trainer_%d", p->grad, i);
    fl_desc *sum = fl_desc_new(c->arena, "sum");
    fl_desc_set_in(sum, "X", n, sent);
    fl_desc_set_out1(sum, "Out", p->grad);
    FL_TRY(fl_block_append_op(b, sum, NULL));
    if (c->opts.sum_gradients)
        return FL_OK;
    fl_desc *scale = fl_desc_new(c->arena, "scale");
    fl_desc_set_in1(scale, "X", p->grad);
    fl_desc_set_out1(scale, "Out", p->grad);
    fl_set_float(scale, "scale", 1.0 / n);
    return fl_block_append_op(b, scale, NULL);
}

/* Whether the variable is a learning rate, which all parameters share. */
static bool is_rate(const fl_cut *c, const char *name)
{
    for (int64_t i = 0; i < c->updates.n; i++) {
        const char *rate = fl_desc_in1(&c->updates.at[i]->desc, "LearningRate");
        if (rate && !strcmp(rate, name))
            return true;
    }
    return false;
}

/* Whether this server holds an earlier slice of the same parameter. */
static bool is_another(const fl_server_cut *s, const fl_slice *p)
{
    for (const fl_slice *q = p->of->slice; q < p; q++)
        if (is_mine(s, q))
            return true;
    return false;
}

/* Declare a state that is kept between steps and belongs to this parameter
 * only. */
static fl_err local_state(fl_server_cut *s, const fl_slice *p, const fl_var *v,
                          const char **name)
{
    if (is_another(s, p))
        *name = fl_arena_printf(s->c->arena, "%s.block%d", v->name,
                                (int)(p - p->of->slice));
    if (fl_shape_equal(&v->shape, &p->of->param->shape))
        return declare_rows(s, v, *name, p);
    return declare_held(s, v, &(fl_held){v->name, *name, false, 0, v->shape});
}

/* The name that a variable of the main program has in the update block of a
 * slice. Variables that are kept between steps are declared. */
static fl_err local_name(fl_server_cut *s, const fl_slice *p, const char *name,
                         const char **out)
{
    const fl_share *of = p->of;
    const fl_var *v = fl_block_var(fl_program_block(s->c->main, 0), name);
    *out = name;
    if (!strcmp(name, of->param->name))
        *out = p->param;
    else if (!strcmp(name, of->grad->name))
        *out = p->grad;
    else if (v && v->persistable && is_rate(s->c, name))
        return fl_server_declare(s, v);
    else if (v && v->persistable)
        return local_state(s, p, v, out);
    return FL_OK;
}

static fl_err rename_all(fl_server_cut *s, const fl_slice *p, fl_args *args,
                         int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < args[i].n; j++)
            FL_TRY(local_name(s, p, args[i].name[j], &args[i].name[j]));
    return FL_OK;
}

/* Copy the op, and let it work on the slice. Temporaries are declared in the
 * block. */
static fl_err add_op(fl_server_cut *s, fl_block *b, const fl_slice *p,
                     const fl_op *op)
{
    fl_op *copy = fl_copy_op(b, op);
    fl_desc *d = &copy->desc;
    const fl_args *rate = fl_desc_in(d, "LearningRate");
    if (rate) /* declared before the state, as in Fluid */
        FL_TRY(rename_all(s, p, (fl_args *)rate, 1));
    FL_TRY(rename_all(s, p, d->in, d->n_in));
    FL_TRY(rename_all(s, p, d->out, d->n_out));
    const fl_err err = fl_op_infer(copy);
    return err ? fl_fail_at(err, "the update of \"%s\" on server %s", p->param,
                            s->c->servers[s->at])
               : FL_OK;
}

static fl_err add_update(fl_server_cut *s, const fl_slice *p)
{
    const fl_cut *c = s->c;
    fl_block *b = fl_server_block(s, p->grad);
    FL_TRY(add_mean(s, b, p));
    for (int64_t i = 0; i < c->updates.n; i++)
        if (!strcmp(fl_cut_role_var(c->updates.at[i], 0), p->of->param->name))
            FL_TRY(add_op(s, b, p, c->updates.at[i]));
    if (p->of->sparse)
        fl_push(&s->sparse,
                fl_arena_printf(c->arena, "%s:%s", p->grad, p->param));
    return FL_OK;
}

/* --- the program --- */

static fl_err add_listen(fl_server_cut *s)
{
    const fl_cut *c = s->c;
    fl_desc *d = fl_desc_new(c->arena, "listen_and_serv");
    fl_desc_set_in(d, "X", (int)s->inputs.n, s->inputs.at);
    fl_set_str(d, "endpoint", c->servers[s->at]);
    fl_set_int(d, "Fanin", c->opts.trainers);
    fl_set_bool(d, "sync_mode", !c->opts.async);
    fl_desc_set_attr(d, &(fl_attr){"optimize_blocks", FL_ATTR_BLOCKS,
                                   .n = (int)s->updates.n,
                                   .longs = s->updates.at});
    fl_set_strs(d, "grad_to_block_id", (int)s->blocks.n, s->blocks.at);
    fl_set_strs(d, "sparse_grad_to_param", (int)s->sparse.n, s->sparse.at);
    fl_set_strs(d, "prefetch_var_name_to_block_id", (int)s->fetches.n,
                s->fetches.at);
    fl_set_int(d, "checkpint_block_id", s->checkpoint);
    if (c->opts.sum_gradients)
        fl_set_bool(d, "sum_gradients", true);
    return fl_block_append_op(s->b, d, NULL);
}

static fl_err make_program(fl_server_cut *s)
{
    FL_TRY(each_slice(s, declare_param));
    FL_TRY(each_slice(s, declare_grad));
    FL_TRY(add_rates(s));
    s->parent = (int)s->p->blocks.n - 1;
    FL_TRY(each_slice(s, add_update));
    for (int64_t i = 0; i < s->c->tables.n; i++)
        FL_TRY(fl_table_serve(s, s->c->tables.at[i]));
    if (!s->blocks.n)
        FL_WARN("server %s gets no parameter: there are fewer parameters than "
                "servers",
                s->c->servers[s->at]);
    if (!s->updates.n)
        fl_push(&s->updates, fl_program_add_block(s->p, s->parent)->idx);
    return add_listen(s);
}

static void add_kept(fl_cut *c, int at, const fl_held *h)
{
    fl_piece k = {h->origin, h->name, at, h->offset, h->shape};
    if (h->by_id) {
        k.first = FL_BY_ID;
        k.shape = fl_block_var(fl_program_block(c->main, 0), h->origin)->shape;
    }
    fl_push(&c->pieces, k);
}

fl_err fl_cut_make_server(fl_cut *c, int at)
{
    fl_server_cut s = {.c = c, .at = at, .checkpoint = -1};
    s.p = c->server[at] = fl_program_make(c->main->registry);
    s.p->random_seed = c->main->random_seed;
    s.b = fl_program_block(s.p, 0);
    fl_err err = make_program(&s);
    if (!err)
        err = fl_server_start(&s, &c->server_startup[at]);
    for (int64_t i = 0; i < s.held.n; i++)
        add_kept(c, at, &s.held.at[i]);
    fl_vec_fini(&s.held);
    fl_vec_fini(&s.inputs);
    fl_vec_fini(&s.blocks);
    fl_vec_fini(&s.sparse);
    fl_vec_fini(&s.fetches);
    fl_vec_fini(&s.updates);
    return err;
}
