/* SPDX-License-Identifier: Apache-2.0 */
/* backward.c - adds the gradient of a loss to a program.
 *
 * grad.h describes the steps. This file runs them and adds the rest: the
 * gradient of the loss itself, zeros for gradients that were cut off but are
 * read, error clips, and new names where an earlier backward has used a name.
 * Then the ops are appended to the block, and the op that computes the
 * gradient of a parameter is marked with op_role_var. */
#include "build/grad.h"
#include "build/stamp.h"

static void diff_init(fl_diff *d, fl_block *b, const fl_backward_opts *opts)
{
    *d = (fl_diff){.arena = fl_arena_new(), .block = b};
    for (int i = 0; opts && i < opts->n_no_grad; i++)
        fl_diff_cut(d, opts->no_grad[i]);
    for (int i = 0; opts && i < opts->n_params; i++)
        fl_map_put(&d->asked, opts->params[i], d);
}

static void diff_fini(fl_diff *d)
{
    fl_map_fini(&d->asked);
    fl_map_fini(&d->cut);
    fl_map_fini(&d->var_of);
    fl_map_fini(&d->grad_of);
    fl_map_fini(&d->made);
    fl_vec_fini(&d->path);
    fl_vec_fini(&d->ops);
    fl_arena_free(d->arena);
}

/* --- the list of ops, finished --- */

static bool is_idle(const fl_desc *op)
{
    fl_names_at it = fl_names_out(op);
    for (const char **s; (s = fl_names_next(&it));)
        if (strcmp(*s, FL_EMPTY))
            return false;
    return true;
}

static void drop_idle(fl_diff *d)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d->ops.n; i++)
        if (!is_idle(d->ops.at[i]))
            d->ops.at[n++] = d->ops.at[i];
    d->ops.n = n;
}

static void note_written(const fl_diff *d, fl_map *written)
{
    for (int64_t i = 0; i < d->ops.n; i++) {
        fl_names_at it = fl_names_out(d->ops.at[i]);
        for (const char **s; (s = fl_names_next(&it));)
            fl_map_put(written, *s, written);
    }
}

/* x_0@GRAD -> x_0 */
static const char *strip_grad(fl_arena *a, const char *grad)
{
    const char *end = strstr(grad, FL_GRAD_SUFFIX);
    return fl_arena_printf(a, "%.*s", (int)(end - grad), grad);
}

static void fill_one(fl_diff *d, int64_t at, const char *grad)
{
    fl_desc *zeros = fl_desc_new(d->arena, "fill_zeros_like");
    fl_desc_set_in1(zeros, "X", strip_grad(d->arena, grad));
    fl_desc_set_out1(zeros, "Out", grad);
    fl_insert(&d->ops, at, zeros);
}

/* `given` has the gradients that the caller gave. */
static void fill_missing(fl_diff *d, const fl_map *given)
{
    fl_map written = {0};
    note_written(d, &written);
    for (int64_t i = 0; i < d->ops.n; i++) {
        fl_names_at it = fl_names_in(d->ops.at[i]);
        for (const char **s; (s = fl_names_next(&it));) {
            if (!fl_diff_flows(d, fl_names_slot(&it), *s) ||
                fl_map_get(&written, *s) || fl_map_get(given, *s))
                continue;
            fl_map_put(&written, *s, d);
            fill_one(d, i++, *s);
        }
    }
    fl_map_fini(&written);
}

static fl_err clip_one(fl_diff *d, const fl_var *v, const char *grad,
                       int64_t at)
{
    const fl_clip *c = v->error_clip;
    if (strcmp(c->kind, "value"))
        return fl_fail(FL_EINVAL,
                       "error clip of \"%s\" is \"%s\", expected \"value\"",
                       v->name, c->kind);
    fl_desc *clip = fl_desc_new(d->arena, "clip");
    fl_desc_set_in1(clip, "X", grad);
    fl_desc_set_out1(clip, "Out", grad);
    fl_desc_set_attr(clip, &(fl_attr){"min", FL_ATTR_FLOAT, .f = c->min});
    fl_desc_set_attr(clip, &(fl_attr){"max", FL_ATTR_FLOAT, .f = c->max});
    fl_insert(&d->ops, at, clip);
    return FL_OK;
}

/* Insert error clips. A gradient is clipped right after it is complete. */
static fl_err clip_errors(fl_diff *d)
{
    for (int64_t i = 0; i < d->ops.n; i++) {
        const fl_desc *op = d->ops.at[i];
        fl_names_at it = fl_names_out(op);
        for (const char **s; (s = fl_names_next(&it));) {
            const char *name = fl_map_get(&d->var_of, *s);
            const fl_var *v = name ? fl_block_find(d->block, name) : NULL;
            if (v && v->error_clip)
                FL_TRY(clip_one(d, v, *s, ++i));
        }
    }
    return FL_OK;
}

/* Replace names that an earlier backward has used by new ones. `to` maps old
 * names to new names; names that it already maps are replaced, too. */
static void rename_taken(fl_diff *d, fl_net *n, fl_map *to)
{
    for (int64_t i = 0; i < d->ops.n; i++) {
        fl_names_at it = fl_names_in(d->ops.at[i]);
        for (const char **s; (s = fl_names_next(&it));)
            if (fl_map_get(to, *s))
                *s = fl_map_get(to, *s);
        it = fl_names_out(d->ops.at[i]);
        for (const char **s; (s = fl_names_next(&it));)
            if (fl_is_grad(*s) && fl_block_var(d->block, *s)) {
                const char *fresh = fl_names_generate(n->names, d->arena, *s);
                fl_map_put(to, *s, (void *)fresh);
                *s = fresh;
            }
    }
    for (fl_entry *e = NULL; (e = fl_map_next(to, e));) {
        void *var = fl_map_get(&d->var_of, e->key);
        if (!var)
            continue;
        fl_map_remove(&d->var_of, e->key);
        fl_map_put(&d->var_of, e->value, var);
    }
}

/* A gradient that the caller gave is complete: no op may add to it. */
static fl_err check_given(const fl_diff *d, const fl_map *given)
{
    fl_map written = {0};
    const char *twice = NULL;
    note_written(d, &written);
    for (fl_entry *e = NULL; (e = fl_map_next(given, e));)
        if (fl_map_get(&written, e->key))
            twice = e->key;
    fl_map_fini(&written);
    if (twice)
        return fl_fail(FL_EINVAL,
                       "gradients: \"%s\" cannot be given, because another "
                       "target is computed from its target and would add to "
                       "this gradient",
                       twice);
    return FL_OK;
}

/* Record which gradient belongs to which variable. */
static void note_grads(fl_diff *d)
{
    for (int64_t i = 0; i < d->ops.n; i++) {
        fl_names_at it = fl_names_out(d->ops.at[i]);
        for (const char **s; (s = fl_names_next(&it));) {
            const char *var = fl_map_get(&d->var_of, *s);
            if (var)
                fl_map_put(&d->grad_of, var, (void *)*s);
        }
    }
}

static fl_err complete_grads(fl_diff *d, fl_net *n, fl_map *given)
{
    FL_TRY(fl_diff_emit(d));
    FL_TRY(check_given(d, given));
    fl_diff_accumulate(d);
    drop_idle(d);
    fill_missing(d, given);
    FL_TRY(clip_errors(d));
    rename_taken(d, n, given);
    note_grads(d);
    return FL_OK;
}

/* --- into the block --- */

/* After a failure, remove all ops and variables of the incomplete gradient. All
 * of its variables are new (see rename_taken). */
static void take_back(fl_diff *d, int64_t start)
{
    fl_block *b = d->block;
    while (b->ops.n > start) {
        fl_names_at it = fl_names_out(&b->ops.at[b->ops.n - 1]->desc);
        for (const char **s; (s = fl_names_next(&it));)
            if (fl_is_grad(*s))
                fl_block_remove_var(b, *s);
        fl_block_remove_op(b, b->ops.n - 1);
    }
}

static fl_err append_all(fl_diff *d, fl_net *n)
{
    const int64_t start = d->block->ops.n;
    fl_err err = FL_OK;
    for (int64_t i = 0; i < d->ops.n && !err; i++)
        err = fl_net_append(n, d->ops.at[i]);
    if (err)
        take_back(d, start);
    return err;
}

/* A gradient op has the name scope of its forward op. */
static fl_err append_grad_op(fl_diff *d, fl_net *n)
{
    const fl_stamp old = fl_stamp_set(
        n, (fl_stamp){.role = FL_ROLE_BACKWARD, .block = d->block->idx});
    const fl_err err = append_all(d, n);
    fl_stamp_set(n, old);
    return err;
}

static fl_var *grad_of(const fl_diff *d, const char *var)
{
    const char *name = fl_map_get(&d->grad_of, var);
    return name ? fl_block_find(d->block, name) : NULL;
}

static fl_op *last_writer(const fl_block *b, const char *name)
{
    for (int64_t i = b->ops.n; i-- > 0;) {
        fl_names_at it = fl_names_out(&b->ops.at[i]->desc);
        for (const char **s; (s = fl_names_next(&it));)
            if (!strcmp(*s, name))
                return b->ops.at[i];
    }
    return NULL;
}

/* Put [param, grad] in front of the op_role_var of the op that computes the
 * gradient of a parameter. */
static fl_err mark_param(const fl_diff *d, const fl_param_grad *pg)
{
    fl_op *op = last_writer(d->block, pg->grad->name);
    const fl_attr *old = fl_desc_attr(&op->desc, "op_role_var");
    const int n = old ? old->n : 0;
    const char **pair =
        fl_arena_alloc(d->arena, (size_t)(n + 2) * sizeof *pair);
    pair[0] = pg->param->name;
    pair[1] = pg->grad->name;
    for (int i = 0; i < n; i++)
        pair[2 + i] = old->strings[i];
    return fl_op_set_attr(op, &(fl_attr){"op_role_var", FL_ATTR_STRINGS,
                                         .n = n + 2, .strings = pair});
}

static fl_err take_param(const fl_diff *d, fl_var *param, fl_param_grads *out)
{
    const fl_param_grad pg = {param, grad_of(d, param->name)};
    if (!pg.grad)
        return FL_OK;
    if (out)
        fl_push(out, pg);
    return mark_param(d, &pg);
}

/* The parameters that the caller named, or all that are trained, in the order
 * of their creation. */
static fl_err take_params(const fl_diff *d, const fl_net *n,
                          const fl_backward_opts *opts, fl_param_grads *out)
{
    const fl_block *global = fl_program_block(n->main, 0);
    for (int i = 0; opts && i < opts->n_params; i++) {
        fl_var *v;
        FL_TRY(fl_block_get(global, opts->params[i], &v));
        FL_TRY(take_param(d, v, out));
    }
    if (opts && opts->n_params)
        return FL_OK;
    for (fl_entry *e = NULL; (e = fl_map_next(&global->vars, e));) {
        fl_var *v = e->value;
        if (v->param && v->param->trainable)
            FL_TRY(take_param(d, v, out));
    }
    return FL_OK;
}

/* --- from a loss --- */

static fl_err check_loss(const fl_var *loss, fl_op **writer)
{
    char s[FL_SHAPE_TEXT];
    if (fl_shape_numel(&loss->shape) != 1)
        return fl_fail(FL_ESHAPE,
                       "backward: the loss \"%s\" is %s, expected one element; "
                       "take its mean first",
                       loss->name, fl_shape_text(&loss->shape, s));
    *writer = last_writer(loss->block, loss->name);
    if (!*writer)
        return fl_fail(FL_EINVAL, "backward: no op writes the loss \"%s\"",
                       loss->name);
    return FL_OK;
}

static void set_role(fl_desc *d, int role)
{
    fl_desc_set_attr(d, &(fl_attr){"op_role", FL_ATTR_INT, .i = role});
}

static void seed_with(fl_diff *d, fl_desc *op, const fl_var *target)
{
    const char *grad = fl_grad_name(d->arena, target->name);
    fl_desc_set_attr(op, &(fl_attr){"value", FL_ATTR_FLOAT, .f = 1});
    fl_desc_set_attr(op, &(fl_attr){"dtype", FL_ATTR_INT, .i = target->dtype});
    fl_desc_set_out1(op, "Out", grad);
    fl_map_put(&d->made, grad, op);
    fl_push(&d->ops, op);
}

static void seed_loss(fl_diff *d, const fl_var *loss)
{
    static const int64_t one[] = {1};
    fl_desc *op = fl_desc_new(d->arena, "fill_constant");
    fl_desc_set_attr(op,
                     &(fl_attr){"shape", FL_ATTR_LONGS, .n = 1, .longs = one});
    set_role(op, FL_ROLE_BACKWARD | FL_ROLE_LOSS);
    seed_with(d, op, loss);
}

static fl_err check_params(const fl_net *n, const fl_backward_opts *opts)
{
    fl_var *v;
    for (int i = 0; opts && i < opts->n_params; i++)
        FL_TRY(fl_block_get(fl_program_block(n->main, 0), opts->params[i], &v));
    return FL_OK;
}

static fl_err run_backward(fl_diff *d, fl_net *n, fl_var *loss, fl_op *writer,
                           const fl_backward_opts *opts, fl_param_grads *out)
{
    fl_map none = {0};
    seed_loss(d, loss);
    fl_diff_find_path(d, 1, &loss, 0, NULL);
    fl_err err = complete_grads(d, n, &none);
    fl_map_fini(&none);
    FL_TRY(err);
    FL_TRY(append_grad_op(d, n));
    FL_TRY(fl_op_set_attr(
        writer, &(fl_attr){"op_role", FL_ATTR_INT, .i = FL_ROLE_LOSS}));
    return take_params(d, n, opts, out);
}

fl_err fl_backward(fl_net *n, fl_var *loss, const fl_backward_opts *opts,
                   fl_param_grads *out)
{
    fl_diff d;
    fl_op *writer;
    FL_TRY(check_loss(loss, &writer));
    FL_TRY(check_params(n, opts));
    diff_init(&d, loss->block, opts);
    const fl_err err = run_backward(&d, n, loss, writer, opts, out);
    diff_fini(&d);
    return err;
}

/* --- from any targets --- */

static fl_err check_target(const fl_var *first, const fl_var *target,
                           const fl_var *grad)
{
    char s[FL_SHAPE_TEXT], t[FL_SHAPE_TEXT];
    if (target->block != first->block)
        return fl_fail(FL_EINVAL,
                       "gradients: target \"%s\" is in block %d, \"%s\" in "
                       "block %d, expected one block",
                       first->name, first->block->idx, target->name,
                       target->block->idx);
    if (grad && !fl_shape_equal(&grad->shape, &target->shape))
        return fl_fail(FL_ESHAPE,
                       "gradients: target \"%s\" is %s, its gradient \"%s\" "
                       "is %s",
                       target->name, fl_shape_text(&target->shape, s),
                       grad->name, fl_shape_text(&grad->shape, t));
    return FL_OK;
}

static void seed_ones(fl_diff *d, const fl_var *target)
{
    fl_desc *op = fl_desc_new(d->arena, "fill_constant_batch_size_like");
    fl_desc_set_in1(op, "Input", target->name);
    fl_desc_set_attr(op, &(fl_attr){"by_rows", FL_ATTR_BOOL, .b = true});
    fl_desc_set_attr(op,
                     &(fl_attr){"shape", FL_ATTR_INTS, .n = target->shape.rank,
                                .longs = target->shape.dim});
    seed_with(d, op, target);
}

/* A gradient that the caller gave keeps its name: `given` maps to it. */
static fl_err seed_targets(fl_diff *d, int n, fl_var *const *targets,
                           fl_var *const *grads, fl_map *given)
{
    for (int i = 0; i < n; i++) {
        const fl_var *grad = grads ? grads[i] : NULL;
        FL_TRY(check_target(targets[0], targets[i], grad));
        if (!grad) {
            seed_ones(d, targets[i]);
            continue;
        }
        const char *name = fl_grad_name(d->arena, targets[i]->name);
        fl_map_put(&d->made, name, d);
        fl_map_put(given, name, (void *)grad->name);
    }
    return FL_OK;
}

static fl_err check_vars(const char *what, int n, fl_var *const *vars)
{
    if (n < 1)
        return fl_fail(FL_EINVAL, "gradients: %s is empty", what);
    for (int i = 0; i < n; i++)
        if (!vars[i])
            return fl_fail(FL_EINVAL, "gradients: %s has a NULL at index %d",
                           what, i);
    return FL_OK;
}

fl_err fl_gradients(fl_net *n, int n_targets, fl_var *const *targets,
                    fl_var *const *target_grads, int n_inputs,
                    fl_var *const *inputs, const fl_backward_opts *opts,
                    fl_var **grads)
{
    FL_TRY(check_vars("targets", n_targets, targets));
    FL_TRY(check_vars("inputs", n_inputs, inputs));
    fl_diff d;
    fl_map given = {0};
    diff_init(&d, targets[0]->block, opts);
    for (int i = 0; i < n_inputs; i++)
        fl_map_put(&d.asked, inputs[i]->name, &d);
    fl_err err = seed_targets(&d, n_targets, targets, target_grads, &given);
    if (!err) {
        fl_diff_find_path(&d, n_targets, targets, n_inputs, inputs);
        err = complete_grads(&d, n, &given);
    }
    if (!err)
        err = append_grad_op(&d, n);
    for (int i = 0; i < n_inputs && !err; i++)
        grads[i] = grad_of(&d, inputs[i]->name);
    fl_map_fini(&given);
    diff_fini(&d);
    return err;
}
