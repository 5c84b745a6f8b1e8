/* store_make.c - from a server's program to updates, owners and plans.
 *
 * The transpiler puts `sum` over the trainers' gradients and `scale` by their
 * number at the head of a block. Who takes part differs from round to round,
 * so these two are left out and the store makes the mean itself. The rest of a
 * block becomes a program of its own, and that a plan.
 *
 * Easy to get wrong: what a learning-rate block leaves in a variable of the
 * global block is read by the updates, persistable or not. */
#include "pserver/store_in.h"

#include "graph/copy.h"
#include "graph/verify.h"

#include <stdio.h>
#include <stdlib.h>

static const fl_block *global(const fl_pstore *s)
{
    return fl_program_block(s->opts.program, 0);
}

static const fl_attr *attr_of(const fl_pstore *s, const char *name)
{
    return fl_desc_attr(&s->opts.op->desc, name);
}

/* --- updates --- */

/* The gradient that grad_to_block_id ("grad:block") has for a block. */
static const char *grad_of(const fl_pstore *s, int64_t block)
{
    const fl_attr *a = attr_of(s, "grad_to_block_id");
    for (int i = 0; a && i < a->n; i++) {
        const char *colon = strrchr(a->strings[i], ':');
        if (colon && strtol(colon + 1, NULL, 10) == block) {
            const int n = (int)(colon - a->strings[i]);
            return fl_arena_printf(s->arena, "%.*s", n, a->strings[i]);
        }
    }
    return NULL;
}

static bool in_place(const fl_desc *d, const char *type, const char *name)
{
    const char *x = fl_desc_in1(d, "X"), *out = fl_desc_out1(d, "Out");
    return !strcmp(d->type, type) && x && out && !strcmp(x, name) &&
           !strcmp(out, name);
}

/* Past the sum and its scale; the names that are summed go to the update. */
static void skip_mean(fl_pstore *s, fl_update *u)
{
    const fl_ops *ops = &u->block->ops;
    const fl_desc *sum = ops->n ? &ops->at[0]->desc : NULL;
    const char *out = sum ? fl_desc_out1(sum, "Out") : NULL;
    fl_map_put(&s->gradients, u->grad->name, u);
    if (!out || strcmp(sum->type, "sum") || strcmp(out, u->grad->name))
        return;
    const fl_args *x = fl_desc_in(sum, "X");
    for (int i = 0; x && i < x->n; i++)
        if (!strcmp(x->name[i], out))
            return; /* it adds to the gradient: decay */
    for (int i = 0; x && i < x->n; i++)
        fl_map_put(&s->gradients, x->name[i], u);
    u->first = 1;
    if (ops->n > 1 && in_place(&ops->at[1]->desc, "scale", out))
        u->first = 2;
}

static fl_err check_grad(const fl_var *g)
{
    char text[FL_SHAPE_TEXT];
    if (g->dtype != FL_F32 && g->dtype != FL_F64)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: gradient \"%s\" is %s, expected "
                       "float32 or float64",
                       g->name, fl_dtype_word(g->dtype));
    if (fl_shape_numel(&g->shape) < 0 || g->shape.rank < 1)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: gradient \"%s\" is %s: its shape must "
                       "be known",
                       g->name, fl_shape_text(&g->shape, text));
    return FL_OK;
}

static fl_err add_update(fl_pstore *s, const fl_block *b, const char *grad)
{
    fl_var *v;
    FL_TRY(fl_block_get(b, grad, &v));
    FL_TRY(check_grad(v));
    fl_update *u = fl_arena_alloc(s->arena, sizeof *u);
    u->grad = v;
    u->block = b;
    fl_push(&s->updates, u);
    skip_mean(s, u);
    u->program = fl_copy_ops(b, u->first);
    return FL_OK;
}

static fl_err add_blocks(fl_pstore *s)
{
    const fl_attr *a = attr_of(s, "optimize_blocks");
    for (int i = 0; a && i < a->n; i++) {
        const fl_block *b = fl_program_block(s->opts.program, (int)a->longs[i]);
        const char *grad = b ? grad_of(s, b->idx) : NULL;
        if (!b || !b->idx)
            return fl_fail(FL_EINVAL,
                           "listen_and_serv: optimize_blocks has %lld, which "
                           "is no block of updates",
                           (long long)a->longs[i]);
        if (grad)
            FL_TRY(add_update(s, b, grad));
        else if (b->ops.n)
            fl_push(&s->rate_blocks, b);
    }
    for (int64_t i = 0; i < s->rate_blocks.n; i++)
        for (int64_t k = 0; k < s->rate_blocks.at[i]->ops.n; k++)
            fl_op_add_writes(s->rate_blocks.at[i]->ops.at[k], &s->rated);
    return FL_OK;
}

/* --- owners --- */

/* Each block to the owner with the least so far. */
static void deal(fl_pstore *s)
{
    int64_t *load = fl_arena_alloc(s->arena, (size_t)s->owners * sizeof *load);
    for (int64_t i = 0; i < s->updates.n; i++) {
        fl_update *u = s->updates.at[i];
        for (int k = 1; k < s->owners; k++)
            if (load[k] < load[u->owner])
                u->owner = k;
        load[u->owner] += 1 + fl_shape_numel(&u->grad->shape);
        fl_push(&s->owner[u->owner].updates, u);
    }
}

/* The value of a variable for one owner's plans. Gradients and what only a
 * step needs are the owner's own, and so is what the learning-rate block
 * writes, except that the first owner has the user's. */
static fl_err bind(fl_owner *o, const char *name)
{
    fl_pstore *s = o->store;
    const fl_var *v = fl_block_var(global(s), name);
    if (!v)
        return FL_OK; /* a temporary */
    if (!v->persistable || fl_map_get(&s->gradients, name)) {
        fl_scope_var(o->scope, name);
        return FL_OK;
    }
    const fl_value *from = fl_scope_find(o->scope, name);
    if (from && o->index && fl_map_get(&s->rated, name) &&
        from == fl_scope_find(s->opts.scope, name))
        return fl_value_copy(fl_scope_var(o->scope, name), from);
    return FL_OK;
}

/* What the scope must hold before the first update. */
static fl_err check_started(const fl_owner *o, const fl_op *op)
{
    fl_map reads = {0};
    fl_err err = FL_OK;
    fl_op_add_reads(op, &reads);
    for (fl_entry *e = NULL; !err && (e = fl_map_next(&reads, e));) {
        const fl_var *v = fl_block_var(global(o->store), e->key);
        const fl_value *x = fl_scope_find(o->scope, e->key);
        if (v && v->kind == FL_LOD_TENSOR && v->persistable &&
            !fl_map_get(&o->store->gradients, e->key) &&
            (!x || !x->kind || !x->tensor.data))
            err = fl_fail(FL_ENOENT,
                          "listen_and_serv: \"%s\" holds nothing yet: run the "
                          "server's startup program first",
                          e->key);
    }
    fl_map_fini(&reads);
    return err;
}

/* Bind what a program names, compile it, list what it writes. */
static fl_err compile(fl_owner *o, const fl_program *p, fl_plan **plan,
                      fl_values *writes)
{
    const fl_block *b = fl_program_block(p, 0);
    fl_map names = {0};
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        FL_TRY(bind(o, e->key));
    for (int64_t i = 0; i < b->ops.n; i++)
        FL_TRY(check_started(o, b->ops.at[i]));
    const fl_request order = {.program = p, .scope = o->scope};
    FL_TRY(fl_plan_new(&o->store->env, &order, NULL, plan));
    for (int64_t i = 0; i < b->ops.n; i++)
        fl_op_add_writes(b->ops.at[i], &names);
    for (fl_entry *e = NULL; (e = fl_map_next(&names, e));) {
        const fl_var *v = fl_block_var(b, e->key);
        if (v && v->persistable)
            fl_push(writes, fl_scope_find(o->scope, e->key));
    }
    fl_map_fini(&names);
    return FL_OK;
}

static fl_err compile_rates(fl_owner *o)
{
    fl_pstore *s = o->store;
    for (int64_t i = 0; i < s->rate_blocks.n; i++) {
        fl_push(&o->rates, (fl_rates){0});
        fl_rates *r = &o->rates.at[i];
        r->program = fl_copy_ops(s->rate_blocks.at[i], 0);
        FL_TRY(compile(o, r->program, &r->plan, &r->writes));
    }
    return FL_OK;
}

static fl_err compile_update(fl_owner *o, fl_update *u)
{
    FL_TRY(fl_update_make_table(o, u));
    fl_update_take_rule(o, u);
    FL_TRY(compile(o, u->program, &u->plan, &u->writes));
    FL_TRY(fl_update_bind_rule(o, u));
    u->mean = fl_scope_var(o->scope, u->grad->name);
    for (int64_t i = 0; i < u->writes.n; i++)
        u->spoils |= u->writes.at[i] == u->mean;
    return FL_OK;
}

static fl_err start_owner(fl_owner *o)
{
    o->scope = fl_scope_child(o->store->opts.scope);
    o->due = true;
    FL_TRY(compile_rates(o));
    for (int64_t i = 0; i < o->updates.n; i++) {
        const fl_err err = compile_update(o, o->updates.at[i]);
        if (err)
            return fl_fail_at(err, "update by \"%s\"",
                              o->updates.at[i]->grad->name);
    }
    return fl_pool_new("owner", 1, &o->pool);
}

/* --- what may be pulled --- */

static void keep_all(fl_pstore *s)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&global(s)->vars, e));) {
        const fl_var *v = e->value;
        fl_value *value = fl_scope_find(s->opts.scope, v->name);
        if (!v->persistable || !value || fl_map_get(&s->gradients, v->name))
            continue;
        fl_ware *k = fl_arena_alloc(s->arena, sizeof *k);
        *k = (fl_ware){.name = v->name, .value = value};
        fl_map_put(&s->kept, v->name, k);
    }
}

/* What an update reads or writes is its owner's, but for the rates. */
static void keep_for(fl_pstore *s, const fl_update *u)
{
    const fl_block *b = fl_program_block(u->program, 0);
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
        fl_ware *k = fl_map_get(&s->kept, e->key);
        if (k && !fl_map_get(&s->rated, e->key))
            k->owner = u->owner;
        if (k && u->table && fl_update_in_rows(u, k->name, &k->state))
            k->table = u->table;
    }
}

fl_err fl_pstore_make(fl_pstore *s)
{
    const fl_attr *dc = attr_of(s, "dc_asgd");
    if (dc && dc->b)
        return fl_fail(FL_EINVAL, "listen_and_serv: dc_asgd is not there yet");
    FL_TRY(add_blocks(s));
    deal(s);
    for (int i = 0; i < s->owners; i++)
        FL_TRY(start_owner(&s->owner[i]));
    keep_all(s);
    for (int64_t i = 0; i < s->updates.n; i++)
        keep_for(s, s->updates.at[i]);
    return FL_OK;
}

fl_err fl_pstore_claim(fl_value *const *at, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (at[i]->kind == FL_LOD_TENSOR && at[i]->tensor.buf)
            FL_TRY(fl_tensor_unique(&at[i]->tensor));
    return FL_OK;
}
