/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c - makes the programs of a trainer.
 *
 * The order is that of Fluid: a send after the last writer of each gradient; at
 * the end a send_barrier, a recv for each parameter, a fetch_barrier, and the
 * ops that concatenate slices. Synchronous trainers have both barriers. With
 * half_async there is only send_barrier, where the threads of a trainer wait
 * for each other. Other asynchronous trainers have no barriers, and a recv
 * follows the send of its gradient. The ops of the optimiser are removed. */
#include "transpile/transpile.h"

/* --- gradients are sent --- */

static void rename_role_var(fl_block *b, const char *from, const char *to)
{
    for (int64_t i = 0; i < b->ops.n; i++) {
        fl_desc *d = &b->ops.at[i]->desc;
        const fl_attr *a = fl_desc_attr(d, "op_role_var");
        for (int k = 0; a && a->type == FL_ATTR_STRINGS && k < a->n; k++) {
            if (strcmp(a->strings[k], from))
                continue;
            fl_attr copy = fl_attr_dup(d->arena, a);
            ((const char **)copy.strings)[k] = to;
            fl_desc_set_attr(d, &copy);
        }
    }
}

static bool is_cut(const fl_share *s)
{
    return s->n > 1 && !s->common;
}

/* Append the number of the trainer to the name of a gradient that is sent
 * whole. */
static fl_err rename_grad(fl_block *b, const fl_share *s)
{
    const char *from = s->grad->name, *to = s->slice[0].sent;
    if (is_cut(s) || !strcmp(from, to))
        return FL_OK;
    FL_TRY(fl_block_rename_var(b, from, to));
    rename_role_var(b, from, to);
    return FL_OK;
}

static const char *whole_grad(const fl_share *s)
{
    return is_cut(s) ? s->grad->name : s->slice[0].sent;
}

static fl_err declare_slices(fl_block *b, const fl_share *s, bool grads)
{
    const fl_var *of = grads ? s->grad : s->param;
    for (int i = 0; s->n > 1 && i < s->n; i++) {
        const fl_slice *p = &s->slice[i];
        fl_var *v;
        FL_TRY(fl_block_add_var(b,
                                &(fl_var){.name = grads ? p->sent : p->param,
                                          .kind = of->kind,
                                          .dtype = of->dtype,
                                          .shape = p->shape},
                                &v));
    }
    return FL_OK;
}

static fl_err add_split(fl_cut *c, fl_block *b, int64_t at, const fl_share *s)
{
    fl_desc *d = fl_cut_desc(
        c, s->sparse ? "split_selected_rows" : "split_byref", FL_ROLE_DIST);
    fl_desc_set_in1(d, "X", s->grad->name);
    fl_desc_set_out(d, "Out", s->n, fl_share_texts(c, s, FL_SLICE_SENT));
    fl_set_ints(d, s->sparse ? "height_sections" : "sections", s->n,
                fl_share_rows(c, s));
    FL_TRY(declare_slices(b, s, true));
    return fl_block_insert_op(b, at, d, NULL);
}

static fl_err add_send(fl_cut *c, fl_block *b, fl_share *s)
{
    const char *grad = whole_grad(s);
    const bool later = c->opts.runtime_split_send_recv;
    int64_t at = fl_cut_last_writer(b, grad) + 1;
    if (!at)
        return fl_fail(FL_EINVAL,
                       "transpile: no op writes \"%s\", the gradient of \"%s\"",
                       s->grad->name, s->param->name);
    if (is_cut(s) && !later)
        FL_TRY(add_split(c, b, at++, s));
    FL_TRY(fl_cut_token(c, b, &s->token));
    fl_desc *d = fl_cut_desc(c, "send", FL_ROLE_RPC);
    if (later)
        fl_desc_set_in1(d, "X", grad);
    else
        fl_desc_set_in(d, "X", s->n, fl_share_texts(c, s, FL_SLICE_SENT));
    fl_desc_set_out1(d, "Out", s->token);
    fl_set_strs(d, "epmap", s->n, fl_share_texts(c, s, FL_SLICE_SERVER));
    fl_set_int(d, "trainer_id", c->opts.trainer_id);
    if (later) {
        fl_set_ints(d, "sections", s->n, fl_share_rows(c, s));
        fl_set_strs(d, "send_varnames", s->n,
                    fl_share_texts(c, s, FL_SLICE_SENT));
    }
    fl_set_strs(d, "op_role_var", 2, (const char *[]){s->param->name, grad});
    return fl_block_insert_op(b, at, d, NULL);
}

/* --- lookups ask the servers --- */

static int64_t padding_of(const fl_op *op)
{
    const fl_attr *a = fl_desc_attr(&op->desc, "padding_idx");
    return a ? a->i : -1;
}

static bool is_lookup(const fl_op *op, const fl_share *s)
{
    return !strcmp(op->desc.type, "lookup_table") &&
           fl_desc_reads(&op->desc, s->param->name);
}

typedef FL_VEC(int64_t) places;

/* The position at which one op can replace all these lookups: after the last
 * writer of their ids and before the first reader of their outputs. -1: there
 * is none. */
static int64_t common_place(const fl_block *b, const places *ops)
{
    int64_t at = ops->at[0];
    for (int64_t i = 0; i < ops->n; i++) {
        const fl_desc *d = &b->ops.at[ops->at[i]]->desc;
        const int64_t w = fl_cut_last_writer(b, fl_desc_in1(d, "Ids"));
        at = w >= at ? w + 1 : at;
    }
    for (int64_t k = ops->at[0]; k < at; k++)
        for (int64_t i = 0; i < ops->n; i++) {
            const fl_desc *d = &b->ops.at[ops->at[i]]->desc;
            if (fl_desc_reads(&b->ops.at[k]->desc, fl_desc_out1(d, "Out")))
                return -1;
        }
    return at;
}

/* Replace the lookups at these positions by one op at `at`. */
static fl_err join_lookups(fl_cut *c, fl_block *b, const fl_share *s,
                           const places *ops, int64_t at)
{
    const size_t size = (size_t)ops->n * sizeof(char *);
    const char **ids = fl_arena_alloc(c->arena, size);
    const char **outs = fl_arena_alloc(c->arena, size);
    fl_desc *d = fl_cut_desc(c, "distributed_lookup_table", FL_ROLE_FORWARD);
    fl_set_int(d, "padding_idx", padding_of(b->ops.at[ops->at[0]]));
    for (int64_t i = 0; i < ops->n; i++) {
        const fl_desc *lookup = &b->ops.at[ops->at[i]]->desc;
        ids[i] = fl_desc_in1(lookup, "Ids");
        outs[i] = fl_desc_out1(lookup, "Out");
    }
    fl_desc_set_in(d, "Ids", (int)ops->n, ids);
    fl_desc_set_in1(d, "W", s->param->name);
    fl_desc_set_out(d, "Outputs", (int)ops->n, outs);
    fl_set_strs(d, "table_names", s->n, fl_share_texts(c, s, FL_SLICE_PARAM));
    fl_set_ints(d, "height_sections", s->n, fl_share_rows(c, s));
    fl_set_strs(d, "endpoints", s->n, fl_share_texts(c, s, FL_SLICE_SERVER));
    fl_set_int(d, "trainer_id", c->opts.trainer_id);
    for (int64_t i = ops->n; i-- > 0;) {
        fl_block_remove_op(b, ops->at[i]);
        at -= ops->at[i] < at;
    }
    return fl_block_insert_op(b, at, d, NULL);
}

/* Find the first lookup that is left, and all others with the same padding row.
 */
static void find_lookups(const fl_block *b, const fl_share *s, places *ops)
{
    ops->n = 0;
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_op *op = b->ops.at[i];
        if (is_lookup(op, s) &&
            (!ops->n || padding_of(b->ops.at[ops->at[0]]) == padding_of(op)))
            fl_push(ops, i);
    }
}

static fl_err replace_lookups(fl_cut *c, fl_block *b, const fl_share *s)
{
    places ops = {0};
    fl_err err = FL_OK;
    for (find_lookups(b, s, &ops); ops.n && !err; find_lookups(b, s, &ops)) {
        int64_t at = common_place(b, &ops);
        if (at < 0) { /* the ids of one lookup depend on another lookup */
            ops.n = 1;
            at = ops.at[0];
        }
        err = join_lookups(c, b, s, &ops, at);
    }
    fl_vec_fini(&ops);
    return err;
}

/* --- parameters are received --- */

/* Add a recv of the slices, or of the whole parameter if recv itself joins the
 * slices. */
static fl_err add_recv(fl_cut *c, fl_block *b, const fl_share *s,
                       const char *after, bool later)
{
    fl_desc *d = fl_cut_desc(c, "recv", FL_ROLE_RPC);
    if (after)
        fl_desc_set_in1(d, "X", after);
    if (later) {
        fl_desc_set_out1(d, "Out", s->param->name);
        fl_set_strs(d, "recv_varnames", s->n,
                    fl_share_texts(c, s, FL_SLICE_PARAM));
    } else {
        FL_TRY(declare_slices(b, s, false));
        fl_desc_set_out(d, "Out", s->n, fl_share_texts(c, s, FL_SLICE_PARAM));
    }
    fl_set_strs(d, "epmap", s->n, fl_share_texts(c, s, FL_SLICE_SERVER));
    fl_set_int(d, "trainer_id", c->opts.trainer_id);
    if (after)
        fl_set_strs(d, "op_role_var", 2,
                    (const char *[]){s->param->name, whole_grad(s)});
    return fl_block_append_op(b, d, NULL);
}

static fl_err add_concat(fl_cut *c, fl_block *b, const fl_share *s)
{
    fl_desc *d = fl_cut_desc(c, "concat", FL_ROLE_DIST);
    if (s->n == 1)
        return FL_OK;
    fl_desc_set_in(d, "X", s->n, fl_share_texts(c, s, FL_SLICE_PARAM));
    fl_desc_set_out1(d, "Out", s->param->name);
    fl_set_int(d, "axis", 0);
    return fl_block_append_op(b, d, NULL);
}

static fl_desc *new_barrier(fl_cut *c, const char *type)
{
    fl_desc *d = fl_cut_desc(c, type, FL_ROLE_RPC);
    fl_set_strs(d, "endpoints", c->n_servers, c->servers);
    fl_set_int(d, "trainer_id", c->opts.trainer_id);
    return d;
}

/* Add a barrier after the sends. The recvs read *token, so that they come after
 * it. */
static fl_err add_send_barrier(fl_cut *c, fl_block *b, const char **token)
{
    fl_desc *d = new_barrier(c, "send_barrier");
    FL_VEC(const char *) sent = {0};
    for (int64_t i = 0; i < c->shares.n; i++)
        fl_push(&sent, c->shares.at[c->order[i]]->token);
    for (int64_t i = 0; i < c->tables.n; i++)
        fl_push(&sent, c->tables.at[i]->token);
    fl_desc_set_in(d, "X", (int)sent.n, sent.at);
    fl_vec_fini(&sent);
    FL_TRY(fl_cut_token(c, b, token));
    fl_desc_set_out1(d, "Out", *token);
    if (c->opts.half_async)
        fl_set_bool(d, "half_async", true);
    return fl_block_append_op(b, d, NULL);
}

/* Add a barrier that reads and writes every variable that was received. */
static fl_err add_fetch_barrier(fl_cut *c, fl_block *b)
{
    fl_desc *d = new_barrier(c, "fetch_barrier");
    FL_VEC(const char *) got = {0};
    for (int64_t i = 0; i < c->shares.n; i++) {
        const fl_share *s = c->shares.at[i];
        if (s->remote || s->common)
            continue;
        if (c->opts.runtime_split_send_recv)
            fl_push(&got, s->param->name);
        for (int k = 0; !c->opts.runtime_split_send_recv && k < s->n; k++)
            fl_push(&got, s->slice[k].param);
    }
    fl_desc_set_out(d, "Out", (int)got.n, got.at);
    fl_vec_fini(&got);
    return fl_block_append_op(b, d, NULL);
}

static fl_err add_recvs(fl_cut *c, fl_block *b)
{
    const bool later = c->opts.runtime_split_send_recv;
    const char *token = NULL;
    if (!c->opts.async || c->opts.half_async)
        FL_TRY(add_send_barrier(c, b, &token));
    for (int64_t i = 0; i < c->shares.n; i++) {
        const fl_share *s = c->shares.at[i];
        if (s->remote)
            FL_TRY(replace_lookups(c, b, s));
        else if (!s->common)
            FL_TRY(add_recv(c, b, s, token ? token : s->token, later));
    }
    if (!c->opts.async)
        FL_TRY(add_fetch_barrier(c, b));
    for (int64_t i = 0; i < c->shares.n; i++)
        if (!c->shares.at[i]->remote && !c->shares.at[i]->common && !later)
            FL_TRY(add_concat(c, b, c->shares.at[i]));
    return FL_OK;
}

/* --- the programs --- */

static fl_err keep_joint(fl_block *b)
{
    const fl_attr role = {"op_role", FL_ATTR_INT, .i = FL_ROLE_BACKWARD};
    for (int64_t i = 0; i < b->ops.n; i++)
        if (fl_cut_is_joint(b->ops.at[i]))
            FL_TRY(fl_op_set_attr(b->ops.at[i], &role));
    return FL_OK;
}

static void remove_updates(fl_block *b)
{
    for (int64_t i = b->ops.n; i-- > 0;)
        if (fl_op_role(b->ops.at[i]) == FL_ROLE_OPTIMIZE ||
            fl_cut_is_rate_op(b->ops.at[i]))
            fl_block_remove_op(b, i);
}

fl_err fl_cut_make_trainer(fl_cut *c)
{
    c->trainer = fl_program_clone(c->main, false);
    fl_block *b = fl_program_block(c->trainer, 0);
    FL_TRY(keep_joint(b));
    for (int64_t i = 0; i < c->shares.n; i++)
        FL_TRY(rename_grad(b, c->shares.at[i]));
    for (int64_t i = 0; i < c->shares.n; i++)
        FL_TRY(add_send(c, b, c->shares.at[c->order[i]]));
    for (int64_t i = 0; i < c->tables.n; i++)
        FL_TRY(fl_table_edit_trainer(c, c->tables.at[i], b));
    FL_TRY(add_recvs(c, b));
    remove_updates(b);
    for (int64_t i = 0; i < c->tables.n; i++)
        fl_table_drop_states(c, c->tables.at[i], b);
    return FL_OK;
}

/* Trainers receive their initial parameters from the servers. */
fl_err fl_cut_make_trainer_startup(fl_cut *c)
{
    c->trainer_startup = fl_program_clone(c->startup, false);
    fl_block *b = fl_program_block(c->trainer_startup, 0);
    const char *token;
    for (int64_t i = 0; i < c->shares.n; i++) {
        const char *name = c->shares.at[i]->param->name;
        if (c->shares.at[i]->common)
            continue;
        if (!fl_block_var(b, name))
            return fl_fail(FL_ENOENT,
                           "transpile: the startup program has no \"%s\"; is "
                           "it the one that was made with the program?",
                           name);
        FL_TRY(add_recv(c, b, c->shares.at[i], NULL, false));
    }
    fl_desc *d = new_barrier(c, "fetch_barrier");
    FL_TRY(fl_cut_token(c, b, &token));
    fl_desc_set_out1(d, "Out", token);
    FL_TRY(fl_block_append_op(b, d, NULL));
    for (int64_t i = 0; i < c->shares.n; i++)
        if (!c->shares.at[i]->common)
            FL_TRY(add_concat(c, b, c->shares.at[i]));
    for (int64_t i = 0; i < c->tables.n; i++)
        FL_TRY(fl_table_edit_startup(c, c->tables.at[i], b));
    return FL_OK;
}

/* --- what trainers have no copy of --- */

static bool is_read(const fl_program *p, const char *name)
{
    for (int64_t i = 0; i < p->blocks.n; i++)
        for (int64_t k = 0; k < p->blocks.at[i]->ops.n; k++)
            if (fl_desc_reads(&p->blocks.at[i]->ops.at[k]->desc, name))
                return true;
    return false;
}

/* Whether the variable is a state that an update op keeps for each row, and no
 * other op reads it. */
static bool is_state(const fl_cut *c, const fl_share *s, const fl_var *v)
{
    return v && v != s->param && v->persistable &&
           fl_shape_equal(&v->shape, &s->param->shape) &&
           fl_cut_only_start(c, v->name) && !is_read(c->trainer, v->name);
}

static void add_states(fl_cut *c, const fl_share *s, const fl_op *op)
{
    for (int i = 0; i < op->desc.n_out; i++)
        for (int j = 0; j < op->desc.out[i].n; j++) {
            const fl_var *v = fl_block_var(op->block, op->desc.out[i].name[j]);
            if (is_state(c, s, v))
                fl_push(&c->absent, v->name);
        }
}

/* Find the variables that trainers have no copy of. The programs still have the
 * ops that initialise and receive a table, as in Fluid; plans leave them out.
 * If the startup program uses the table in another way, trainers receive it at
 * startup. */
void fl_cut_find_absent(fl_cut *c)
{
    for (int64_t i = 0; i < c->shares.n; i++) {
        const fl_share *s = c->shares.at[i];
        if (!s->remote || !fl_cut_only_start(c, s->param->name))
            continue;
        fl_push(&c->absent, s->param->name);
        for (int k = 0; s->n > 1 && k < s->n; k++)
            fl_push(&c->absent, s->slice[k].param);
        for (int64_t k = 0; k < c->updates.n; k++)
            if (!strcmp(fl_cut_role_var(c->updates.at[k], 0), s->param->name))
                add_states(c, s, c->updates.at[k]);
    }
    for (int64_t i = 0; i < c->tables.n; i++)
        fl_push(&c->absent, c->tables.at[i]->param->name);
}
