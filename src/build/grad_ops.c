/* SPDX-License-Identifier: Apache-2.0 */
/* grad_ops.c - the gradient ops of a path, last op first.
 *
 * An op either emits its gradient itself (make_grad), or it is derived from its
 * table: inputs as .grad_in says, an output S@GRAD for each input S, the
 * attributes of the op. Gradients that are cut are written as @EMPTY@. An op to
 * which no gradient flows is left out; so is one that produces nothing. */
#include "base/str.h"
#include "build/grad.h"

bool fl_is_grad(const char *name)
{
    return strstr(name, FL_GRAD_SUFFIX) != NULL;
}

bool fl_diff_flows(const fl_diff *d, const char *slot, const char *name)
{
    return fl_is_grad(name) && (fl_ends_with(slot, FL_GRAD_SUFFIX) ||
                                !fl_block_find(d->block, name));
}

bool fl_diff_is_cut(const fl_diff *d, const char *var)
{
    return fl_map_get(&d->cut, fl_grad_name(d->arena, var)) != NULL;
}

void fl_diff_cut(fl_diff *d, const char *var)
{
    fl_map_put(&d->cut, fl_grad_name(d->arena, var), d);
}

/* --- derived from the table --- */

static const char **grad_names(fl_diff *d, const fl_args *of)
{
    const char **name = fl_arena_alloc(d->arena, (size_t)of->n * sizeof *name);
    for (int i = 0; i < of->n; i++)
        name[i] = strcmp(of->name[i], FL_EMPTY)
                      ? fl_grad_name(d->arena, of->name[i])
                      : FL_EMPTY;
    return name;
}

/* `slot` is S or, for an output S of the op, S@GRAD. */
static void derive_in(fl_diff *d, const fl_desc *fwd, const char *slot,
                      fl_desc *g)
{
    const size_t n = strlen(slot) - strlen(FL_GRAD_SUFFIX);
    const fl_args *args;
    if (fl_ends_with(slot, FL_GRAD_SUFFIX)) {
        args =
            fl_desc_out(fwd, fl_arena_printf(d->arena, "%.*s", (int)n, slot));
        if (args)
            fl_desc_set_in(g, slot, args->n, grad_names(d, args));
        return;
    }
    args = fl_desc_in(fwd, slot);
    if (!args)
        args = fl_desc_out(fwd, slot);
    if (args)
        fl_desc_set_in(g, slot, args->n, args->name);
}

static void derive_attrs(const fl_op *op, fl_desc *g)
{
    for (int i = 0; i < op->desc.n_attr; i++) {
        const fl_attr *a = &op->desc.attr[i];
        if (fl_op_attr(op->def, a->name) >= 0 ||
            !strcmp(a->name, "op_namescope"))
            fl_desc_set_attr(g, a);
    }
}

static void derive_grad_op(fl_diff *d, const fl_op *op, fl_grads *out)
{
    const fl_op_def *def = op->def;
    const char *type = def->grad_type;
    if (!type)
        type = fl_arena_printf(d->arena, "%s_grad", def->type);
    fl_desc *g = fl_grad_emit(out, type);
    for (int i = 0; i < FL_SLOTS && def->grad_in[i]; i++)
        derive_in(d, &op->desc, def->grad_in[i], g);
    for (int i = 0; i < FL_SLOTS && def->in[i].name; i++) {
        const fl_args *args = fl_desc_in(&op->desc, def->in[i].name);
        if (args && !(def->in[i].flags & FL_NOGRAD))
            fl_desc_set_out(g, fl_grad_name(d->arena, def->in[i].name), args->n,
                            grad_names(d, args));
    }
    derive_attrs(op, g);
}

/* --- what is kept --- */

static void note_vars(fl_diff *d, const fl_desc *fwd)
{
    fl_names_at it = fl_names_in(fwd);
    for (const char **s; (s = fl_names_next(&it));)
        fl_map_put(&d->var_of, fl_grad_name(d->arena, *s), (void *)*s);
}

static void blank_cut(const fl_diff *d, fl_desc *g)
{
    fl_names_at it = fl_names_out(g);
    for (const char **s; (s = fl_names_next(&it));)
        if (fl_map_get(&d->cut, *s))
            *s = FL_EMPTY;
}

/* Whether a gradient flows into the op, or it needs none. */
static bool is_fed(const fl_diff *d, const fl_desc *g)
{
    fl_names_at it = fl_names_in(g);
    bool needs = false;
    for (const char **s; (s = fl_names_next(&it));) {
        if (!fl_diff_flows(d, fl_names_slot(&it), *s))
            continue;
        if (fl_map_get(&d->made, *s))
            return true;
        needs = true;
    }
    return !needs;
}

static void keep_op(fl_diff *d, fl_desc *g)
{
    fl_names_at it = fl_names_out(g);
    for (const char **s; (s = fl_names_next(&it));)
        if (strcmp(*s, FL_EMPTY))
            fl_map_put(&d->made, *s, g);
    fl_push(&d->ops, g);
}

/* Whether a gradient flows into one of its outputs and one of its inputs needs
 * a gradient. */
static bool is_needed(fl_diff *d, const fl_desc *fwd)
{
    bool fed = false, wanted = false;
    fl_names_at it = fl_names_out(fwd);
    for (const char **s; (s = fl_names_next(&it));)
        fed |= fl_map_get(&d->made, fl_grad_name(d->arena, *s)) != NULL;
    it = fl_names_in(fwd);
    for (const char **s; (s = fl_names_next(&it));)
        wanted |= !fl_diff_is_cut(d, *s);
    return fed && wanted;
}

/* An op without a gradient ends the flow, as in Fluid. An op with a sub-block
 * would need a gradient: to leave it out silently would give wrong numbers. */
static fl_err check_sub_block(fl_diff *d, const fl_op *op)
{
    if (fl_desc_attr(&op->desc, "sub_block") && is_needed(d, &op->desc))
        return fl_fail(FL_EINVAL,
                       "backward: a gradient flows into %s, but there is no "
                       "gradient of its sub-block; set stop_gradient on the "
                       "variables that it reads or writes",
                       op->desc.type);
    return FL_OK;
}

static bool has_grad(const fl_op *op)
{
    return op->def->make_grad || op->def->grad_run;
}

static fl_err make_grads(fl_diff *d, const fl_op *op, fl_grads *g)
{
    if (op->def->make_grad)
        return op->def->make_grad(g);
    derive_grad_op(d, op, g);
    return FL_OK;
}

static fl_err emit_grads(fl_diff *d, const fl_op *op)
{
    fl_grads g = {.fwd = &op->desc, .arena = d->arena};
    fl_err err = has_grad(op) ? make_grads(d, op, &g) : check_sub_block(d, op);
    note_vars(d, &op->desc);
    for (int64_t i = 0; i < g.descs.n && !err; i++) {
        blank_cut(d, g.descs.at[i]);
        if (is_fed(d, g.descs.at[i]))
            keep_op(d, g.descs.at[i]);
    }
    fl_vec_fini(&g.descs);
    return err;
}

fl_err fl_diff_emit(fl_diff *d)
{
    for (int64_t i = d->path.n; i-- > 0;)
        FL_TRY(emit_grads(d, d->path.at[i]));
    return FL_OK;
}

/* --- one op by itself --- */

fl_err fl_op_grads(const fl_op *op, int n_no_grad, const char *const *no_grad,
                   void (*fn)(void *user, const fl_desc *d), void *user)
{
    if (!has_grad(op))
        return fl_fail(FL_EINVAL, "%s has no gradient operator", op->desc.type);
    fl_diff d = {.arena = fl_arena_new(), .block = op->block};
    fl_grads g = {.fwd = &op->desc, .arena = d.arena};
    for (int i = 0; i < n_no_grad; i++)
        fl_diff_cut(&d, no_grad[i]);
    const fl_err err = make_grads(&d, op, &g);
    for (int64_t i = 0; i < g.descs.n && !err; i++) {
        blank_cut(&d, g.descs.at[i]);
        fn(user, g.descs.at[i]);
    }
    fl_vec_fini(&g.descs);
    fl_map_fini(&d.cut);
    fl_arena_free(d.arena);
    return err;
}
