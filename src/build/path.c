/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - finds the ops between inputs and targets.
 *
 * A variable has no gradient if the user has said so (stop_gradient, the no-
 * grad list, a parameter that is not trained), if it holds no real numbers, or
 * if no target depends on it. */
#include "build/grad.h"

static void put_name(fl_map *set, const char *name)
{
    fl_map_put(set, name, set);
}

static bool some_in(fl_names_at it, const fl_map *set)
{
    for (const char **s; (s = fl_names_next(&it));)
        if (fl_map_get(set, *s))
            return true;
    return false;
}

/* Add the names that may have a gradient to the set. */
static void put_open(const fl_diff *d, fl_names_at it, fl_map *set)
{
    for (const char **s; (s = fl_names_next(&it));)
        if (!fl_diff_is_cut(d, *s))
            put_name(set, *s);
}

static bool is_real(const fl_var *v)
{
    if (v->kind != FL_LOD_TENSOR && v->kind != FL_SELECTED_ROWS)
        return true; /* arrays and other types: their members decide */
    return v->dtype == FL_F16 || v->dtype == FL_F32 || v->dtype == FL_F64;
}

static bool is_frozen(const fl_diff *d, const fl_var *v)
{
    return v->param && !v->param->trainable && !fl_map_get(&d->asked, v->name);
}

static void cut_stopped(fl_diff *d)
{
    for (const fl_block *b = d->block; b;
         b = fl_program_block(b->program, b->parent))
        for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
            const fl_var *v = e->value;
            if (v->stop_gradient || !is_real(v) || is_frozen(d, v))
                fl_diff_cut(d, v->name);
        }
}

/* Go forward from the inputs. used[i] is set if op i depends on them. */
static void reach_forward(const fl_diff *d, fl_map *reached, bool *used)
{
    for (int64_t i = 0; i < d->block->ops.n; i++) {
        const fl_desc *op = &d->block->ops.at[i]->desc;
        used[i] = some_in(fl_names_in(op), reached);
        if (used[i])
            put_open(d, fl_names_out(op), reached);
    }
}

/* Go backward from the targets: keep the ops that lead to them. */
static void reach_backward(const fl_diff *d, fl_map *reached, bool *used)
{
    for (int64_t i = d->block->ops.n; i-- > 0;) {
        const fl_desc *op = &d->block->ops.at[i]->desc;
        if (some_in(fl_names_out(op), reached))
            put_open(d, fl_names_in(op), reached);
        else
            used[i] = false;
    }
}

static bool names_contain(fl_names_at it, const char *name)
{
    for (const char **s; (s = fl_names_next(&it));)
        if (!strcmp(*s, name))
            return true;
    return false;
}

static bool has_sub_block(const fl_desc *op)
{
    return fl_desc_attr(op, "sub_block") != NULL;
}

/* Outputs of the path that no target depends on get no gradient. Ops with a
 * sub-block are skipped, because it is not known here which variables the
 * sub-block uses. */
static void cut_dead_ends(fl_diff *d, fl_map *reached)
{
    for (int64_t i = d->path.n; i-- > 0;) {
        const fl_desc *op = &d->path.at[i]->desc;
        fl_names_at it = fl_names_out(op);
        for (const char **s; !has_sub_block(op) && (s = fl_names_next(&it));)
            if (!fl_map_get(reached, *s) && !names_contain(fl_names_in(op), *s))
                fl_diff_cut(d, *s);
        put_open(d, fl_names_in(op), reached);
    }
}

static void put_vars(fl_map *set, int n, fl_var *const *vars)
{
    for (int i = 0; i < n; i++)
        put_name(set, vars[i]->name);
}

void fl_diff_find_path(fl_diff *d, int n_targets, fl_var *const *targets,
                       int n_inputs, fl_var *const *inputs)
{
    const fl_ops *ops = &d->block->ops;
    bool *used = fl_arena_alloc(d->arena, (size_t)ops->n * sizeof *used);
    fl_map from = {0}, to = {0}, live = {0};
    cut_stopped(d);
    put_vars(&from, n_inputs, inputs);
    put_vars(&to, n_targets, targets);
    put_vars(&live, n_targets, targets);
    memset(used, true, (size_t)ops->n * sizeof *used);
    if (n_inputs)
        reach_forward(d, &from, used);
    reach_backward(d, &to, used);
    for (int64_t i = 0; i < ops->n; i++)
        if (used[i])
            fl_push(&d->path, ops->at[i]);
    cut_dead_ends(d, &live);
    fl_map_fini(&from);
    fl_map_fini(&to);
    fl_map_fini(&live);
}
