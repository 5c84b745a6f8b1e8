/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c - appends the ops that minimise a loss.
 *
 * The order of ops is Fluid's: gradients are sorted by the names of their
 * parameters, clipped and decayed; then come accumulators, the learning rate,
 * an update for each parameter, and last the ops that multiply powers.
 *
 * Parameters that are summaries of data (of data_norm) are not optimised: the
 * contribution of a batch is added by an sgd op whose rate is -1, so that
 * servers need no special case. */
#include "build/optimizer.h"

#include "build/layer.h"
#include "build/stamp.h"

#include <stdlib.h>

struct fl_optimizer {
    fl_net *net;
    fl_arena *arena;
    const fl_optimizer_def *def;
    fl_bound args;
    const char *name;                  /* part of variable names; or NULL */
    const fl_regularizer *regularizer; /* the default; or NULL */
    fl_var *rate;                      /* created with the first update */
    fl_dtype dtype;           /* dtype of the learning rate: that of the loss */
    fl_map accumulators;      /* "kind of param" -> fl_var */
    fl_optimizer_hooks hooks; /* from the table, or the user's */
};

/* The arguments of an optimiser that the user has written. */
static const fl_optimizer_def custom = {
    .cls = "Optimizer",
    .args = {{"learning_rate", FL_ARG_FLOAT_OR_VAR},
             {"regularization", FL_ARG_REGULARIZER, "None"},
             {"name", FL_ARG_STR, "None"}},
};

/* --- life --- */

static const fl_regularizer *keep_regularizer(fl_optimizer *o)
{
    const fl_arg *given = fl_arg_get(&o->args, "regularization");
    if (!given)
        return NULL;
    fl_regularizer *r = fl_arena_dup(o->arena, given->regularizer, sizeof *r);
    if (r->kind)
        r->kind = fl_arena_strdup(o->arena, r->kind);
    return r;
}

static fl_err make_optimizer(fl_net *n, const fl_optimizer_def *def,
                             const fl_arg *args, fl_optimizer **out)
{
    fl_optimizer *o = fl_mem_alloc(sizeof *o);
    *o = (fl_optimizer){.net = n, .arena = fl_arena_new(), .def = def};
    o->dtype = FL_F32;
    const fl_err err =
        fl_args_bind(o->arena, def->cls, def->args, args, &o->args);
    if (err) {
        fl_optimizer_free(o);
        return err;
    }
    if (fl_arg_given(&o->args, "name"))
        o->name = fl_arena_strdup(o->arena, fl_arg_str(&o->args, "name"));
    o->regularizer = keep_regularizer(o);
    const fl_arg *rate = fl_arg_get(&o->args, "learning_rate");
    if (rate->n)
        o->rate = rate->var;
    *out = o;
    return FL_OK;
}

void fl_optimizer_free(fl_optimizer *o)
{
    if (!o)
        return;
    fl_map_fini(&o->accumulators);
    fl_arena_free(o->arena);
    fl_mem_free(o);
}

/* --- learning rates --- */

static fl_err make_rate(fl_optimizer *o)
{
    fl_net *n = o->net;
    const fl_shape one = {1, {1}};
    const fl_init start = {"constant",
                           .a = fl_arg_float(&o->args, "learning_rate")};
    if (o->rate)
        return FL_OK;
    const char *name = fl_names_generate(n->names, n->arena, "learning_rate");
    return fl_net_global(n, name, o->dtype, &one, &start, &o->rate);
}

fl_err fl_optimizer_rate(fl_optimizer *o, const fl_var *param, fl_var **out)
{
    if (!param) {
        *out = o->rate;
        return FL_OK;
    }
    FL_TRY(make_rate(o));
    const float factor = param->param ? param->param->learning_rate : 1;
    if (factor == 1) {
        *out = o->rate;
        return FL_OK;
    }
    const fl_stamp old = fl_stamp_set(
        o->net, (fl_stamp){.role = FL_ROLE_OPTIMIZE | FL_ROLE_LR,
                           .scope = "/optimizer/scale_with_param_lr/"});
    const fl_err err =
        fl_var_math(o->net, "*", o->rate, NULL, (double)factor, false, out);
    fl_stamp_set(o->net, old);
    return err;
}

/* --- accumulators --- */

#define KEY_OF " of " /* between kind and parameter; kinds have no blank */

static const char *accumulator_key(const fl_optimizer *o, const char *kind,
                                   const fl_var *param)
{
    return fl_arena_printf(o->arena, "%s" KEY_OF "%s", kind, param->name);
}

fl_var *fl_optimizer_get(const fl_optimizer *o, const char *kind,
                         const fl_var *param)
{
    return fl_map_get(&o->accumulators, accumulator_key(o, kind, param));
}

void fl_optimizer_each(const fl_optimizer *o,
                       void (*fn)(void *user, const char *kind,
                                  const char *param, fl_var *v),
                       void *user)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&o->accumulators, e));) {
        const char *of = strstr(e->key, KEY_OF);
        const char *kind =
            fl_arena_printf(o->arena, "%.*s", (int)(of - e->key), e->key);
        fn(user, kind, of + strlen(KEY_OF), e->value);
    }
}

fl_err fl_optimizer_accumulator(fl_optimizer *o, const char *kind,
                                const fl_var *param, double start,
                                const fl_shape *shape, fl_var **out)
{
    fl_net *n = o->net;
    const fl_init init = {"constant", .a = start};
    if (fl_optimizer_get(o, kind, param))
        return fl_fail(FL_EINVAL,
                       "%s: parameter \"%s\" already has a %s; use another "
                       "optimizer for each call of minimize",
                       o->def->cls, param->name, kind);
    const char *full =
        o->name ? fl_arena_printf(o->arena, "%s_%s", o->name, kind) : kind;
    const char *name = fl_names_generate(
        n->names, n->arena,
        fl_arena_printf(n->arena, "%s_%s", param->name, full));
    fl_var *v;
    FL_TRY(fl_net_global(n, name, param->dtype, shape ? shape : &param->shape,
                         &init, &v));
    fl_map_put(&o->accumulators, accumulator_key(o, kind, param), v);
    if (out)
        *out = v;
    return FL_OK;
}

static fl_err add_accumulators(fl_optimizer *o, const fl_var *param)
{
    static const fl_shape one = {1, {1}};
    const fl_accumulator_def *a = o->def->accumulators;
    for (; a->kind; a++) {
        const double start = a->start ? fl_arg_float(&o->args, a->start) : 0;
        FL_TRY(fl_optimizer_accumulator(o, a->kind, param, start,
                                        a->power ? &one : NULL, NULL));
    }
    return FL_OK;
}

static fl_err make_accumulators(void *user, fl_optimizer *o,
                                const fl_param_grads *pgs)
{
    for (int64_t i = 0; i < pgs->n; i++)
        FL_TRY(add_accumulators(o, pgs->at[i].param));
    return FL_OK;
}

/* --- updates --- */

static bool is_bool(const fl_optimizer *o, const char *arg)
{
    const fl_arg_def *a = o->def->args;
    while (strcmp(a->name, arg))
        a++;
    return a->type == FL_ARG_BOOL;
}

static void set_attrs(const fl_optimizer *o, fl_desc *d)
{
    for (int i = 0; o->def->attrs[i].name; i++) {
        const char *name = o->def->attrs[i].name;
        const char *arg = o->def->attrs[i].arg ? o->def->attrs[i].arg : name;
        if (is_bool(o, arg))
            fl_set_bool(d, name, fl_arg_bool(&o->args, arg));
        else
            fl_set_float(d, name, fl_arg_float(&o->args, arg));
    }
}

/* The accumulator for a slot of the op. */
static const fl_var *slot_var(const fl_optimizer *o, const fl_var *param,
                              const char *slot)
{
    const fl_accumulator_def *a = o->def->accumulators;
    for (; a->kind; a++)
        if (!strcmp(a->in, slot) || (a->out && !strcmp(a->out, slot)))
            return fl_optimizer_get(o, a->kind, param);
    return NULL;
}

/* Slots are in the order of the op's table. */
static fl_err set_slots(fl_optimizer *o, const fl_op_def *op,
                        const fl_param_grad *pg, fl_desc *d)
{
    for (int i = 0; i < FL_SLOTS && op->in[i].name; i++) {
        const char *slot = op->in[i].name;
        const fl_var *v = slot_var(o, pg->param, slot);
        fl_var *rate;
        if (!strcmp(slot, "LearningRate")) {
            FL_TRY(fl_optimizer_rate(o, pg->param, &rate));
            v = rate;
        } else if (!v) {
            v = strcmp(slot, "Grad") ? pg->param : pg->grad;
        }
        fl_set_in(d, slot, v);
    }
    for (int i = 0; i < FL_SLOTS && op->out[i].name; i++) {
        const fl_var *v = slot_var(o, pg->param, op->out[i].name);
        fl_set_out(d, op->out[i].name, v ? v : pg->param);
    }
    return FL_OK;
}

static fl_err emit_update(void *user, fl_optimizer *o, const fl_param_grad *pg)
{
    const fl_op_def *op;
    FL_TRY(fl_registry_get(o->net->main->registry, o->def->op, &op));
    fl_desc *d = fl_net_desc(o->net, o->def->op);
    FL_TRY(set_slots(o, op, pg, d));
    set_attrs(o, d);
    return fl_net_append(o->net, d);
}

static fl_err emit_powers(void *user, fl_optimizer *o, const fl_param_grad *pg)
{
    const fl_accumulator_def *a = o->def->accumulators;
    for (; a->kind; a++) {
        if (!a->power)
            continue;
        const fl_var *v = fl_optimizer_get(o, a->kind, pg->param);
        fl_desc *d = fl_net_desc(o->net, "scale");
        fl_set_in(d, "X", v);
        fl_set_out(d, "Out", v);
        fl_set_float(d, "scale", fl_arg_float(&o->args, a->start));
        FL_TRY(fl_net_append(o->net, d));
    }
    return FL_OK;
}

static bool is_updated(const fl_param_grad *pg)
{
    return pg->grad && (!pg->param->param || pg->param->param->trainable);
}

/* One kind of op for every parameter that is updated. */
static fl_err emit_each(fl_optimizer *o, const fl_param_grads *pgs,
                        fl_err (*emit)(void *, fl_optimizer *,
                                       const fl_param_grad *))
{
    for (int64_t i = 0; i < pgs->n; i++) {
        if (!is_updated(&pgs->at[i]))
            continue;
        const fl_stamp old =
            fl_stamp_optimize(o->net, &pgs->at[i], "/optimizer/");
        const fl_err err = emit(o->hooks.user, o, &pgs->at[i]);
        fl_stamp_set(o->net, old);
        FL_TRY(err);
    }
    return FL_OK;
}

static fl_err emit_all_powers(void *user, fl_optimizer *o,
                              const fl_param_grads *pgs)
{
    return emit_each(o, pgs, emit_powers);
}

/* The row of the table, as hooks. */
static const fl_optimizer_hooks by_table = {make_accumulators, emit_update,
                                            emit_all_powers, NULL};

fl_err fl_optimizer_new(fl_net *n, const char *name, const fl_arg *args,
                        fl_optimizer **out)
{
    const fl_optimizer_def *def;
    FL_TRY(fl_optimizer_find(name, &def));
    FL_TRY(make_optimizer(n, def, args, out));
    (*out)->hooks = by_table;
    return FL_OK;
}

fl_err fl_optimizer_custom(fl_net *n, const fl_optimizer_hooks *hooks,
                           const fl_arg *args, fl_optimizer **out)
{
    FL_TRY(make_optimizer(n, &custom, args, out));
    (*out)->hooks = *hooks;
    return FL_OK;
}

fl_optimizer_hooks fl_optimizer_hook(fl_optimizer *o,
                                     const fl_optimizer_hooks *mine)
{
    const fl_optimizer_hooks old = o->hooks;
    o->hooks = *mine;
    return old;
}

static fl_err begin_update(fl_optimizer *o, const fl_param_grads *pgs)
{
    fl_param_grads updated = {0};
    for (int64_t i = 0; i < pgs->n; i++)
        if (is_updated(&pgs->at[i]))
            fl_push(&updated, pgs->at[i]);
    const fl_err err = o->hooks.begin(o->hooks.user, o, &updated);
    fl_vec_fini(&updated);
    return err;
}

/* The ops that it appends belong to the update of all parameters. */
static fl_err finish_update(fl_optimizer *o, const fl_param_grads *pgs)
{
    const fl_stamp old = fl_stamp_set(
        o->net, (fl_stamp){.role = FL_ROLE_OPTIMIZE, .scope = "/optimizer/"});
    const fl_err err = o->hooks.finish(o->hooks.user, o, pgs);
    fl_stamp_set(o->net, old);
    return err;
}

static fl_err update_all(fl_optimizer *o, const fl_param_grads *pgs,
                         fl_ops *ops)
{
    const fl_block *b = fl_program_block(o->net->main, 0);
    const int64_t start = b->ops.n;
    if (o->hooks.begin)
        FL_TRY(begin_update(o, pgs));
    FL_TRY(make_rate(o));
    FL_TRY(emit_each(o, pgs, o->hooks.update));
    if (o->hooks.finish)
        FL_TRY(finish_update(o, pgs));
    for (int64_t i = start; ops && i < b->ops.n; i++)
        fl_push(ops, b->ops.at[i]);
    return FL_OK;
}

/* --- summaries --- */

static bool is_summary(const fl_param_grad *pg)
{
    return is_updated(pg) && pg->param->param && pg->param->param->summary;
}

static fl_err add_to_summary(fl_net *n, const fl_var *rate,
                             const fl_param_grad *pg)
{
    fl_desc *d = fl_net_desc(n, "sgd");
    fl_set_in(d, "Param", pg->param);
    fl_set_in(d, "LearningRate", rate);
    fl_set_in(d, "Grad", pg->grad);
    fl_set_out(d, "ParamOut", pg->param);
    return fl_net_append(n, d);
}

static fl_err add_to_summaries(fl_net *n, const fl_param_grads *summaries,
                               fl_ops *ops)
{
    const fl_block *b = fl_program_block(n->main, 0);
    const fl_shape one = {1, {1}};
    const fl_init minus = {"constant", .a = -1};
    const int64_t start = b->ops.n;
    fl_var *rate;
    if (!summaries->n)
        return FL_OK;
    FL_TRY(fl_net_global(n,
                         fl_names_generate(n->names, n->arena, "summary_rate"),
                         summaries->at[0].param->dtype, &one, &minus, &rate));
    for (int64_t i = 0; i < summaries->n; i++) {
        const fl_stamp old =
            fl_stamp_optimize(n, &summaries->at[i], "/optimizer/");
        const fl_err err = add_to_summary(n, rate, &summaries->at[i]);
        fl_stamp_set(n, old);
        FL_TRY(err);
    }
    for (int64_t i = start; ops && i < b->ops.n; i++)
        fl_push(ops, b->ops.at[i]);
    return FL_OK;
}

/* --- all of it --- */

static int by_name(const void *a, const void *b)
{
    const fl_param_grad *x = a, *y = b;
    return strcmp(x->param->name, y->param->name);
}

fl_err fl_optimizer_apply_gradients(fl_optimizer *o, const fl_param_grads *pgs,
                                    fl_ops *ops)
{
    fl_param_grads sorted = {0}, summaries = {0};
    for (int64_t i = 0; i < pgs->n; i++)
        if (is_summary(&pgs->at[i]))
            fl_push(&summaries, pgs->at[i]);
        else
            fl_push(&sorted, pgs->at[i]);
    if (sorted.n)
        qsort(sorted.at, (size_t)sorted.n, sizeof *sorted.at, by_name);
    fl_err err = fl_clip_grads(o->net, &sorted);
    if (!err)
        err = fl_decay_grads(o->net, o->regularizer, &sorted);
    if (!err)
        err = update_all(o, &sorted, ops);
    if (!err)
        err = add_to_summaries(o->net, &summaries, ops);
    fl_vec_fini(&sorted);
    fl_vec_fini(&summaries);
    return err;
}

fl_err fl_optimizer_backward(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts, fl_param_grads *out)
{
    o->dtype = loss->dtype;
    return fl_backward(o->net, loss, opts, out);
}

fl_err fl_optimizer_minimize(fl_optimizer *o, fl_var *loss,
                             const fl_backward_opts *opts, fl_param_grads *out,
                             fl_ops *ops)
{
    fl_param_grads pgs = {0};
    fl_err err = fl_optimizer_backward(o, loss, opts, &pgs);
    if (!err && !pgs.n)
        err = fl_fail(FL_EINVAL,
                      "%s: the loss \"%s\" depends on no parameter that is "
                      "trained",
                      o->def->cls, loss->name);
    if (!err)
        err = fl_optimizer_apply_gradients(o, &pgs, ops);
    for (int64_t i = 0; out && !err && i < pgs.n; i++)
        fl_push(out, pgs.at[i]);
    fl_vec_fini(&pgs);
    return err;
}
