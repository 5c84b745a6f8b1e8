/* SPDX-License-Identifier: Apache-2.0 */
/* clip.c - limits gradients before they are used.
 *
 *     value        clip(grad)
 *     norm         clip_by_norm(grad)
 *     global_norm  one norm for a group of parameters: square and reduce_sum of
 *                  each gradient; sum, sqrt, and max / elementwise_max(max,
 *                  norm); each gradient times that
 *
 * Two passes, as in Fluid: the first sees every gradient, the second replaces
 * them. (Fluid's second pass uses the last parameter's clip for all; here each
 * has its own.) */
#include "build/layer.h"
#include "build/optimizer.h"
#include "build/stamp.h"

#define SCOPE "/gradient_clip/"

/* Parameters that share a norm. */
typedef struct group {
    const char *name;
    float max;
    fl_var *limit; /* the variable that holds clip_norm */
    FL_VEC(fl_var *) squares;
    fl_var *scale; /* the scale; created for the first gradient that needs it */
} group;

typedef FL_VEC(group) groups;

/* A layer of one input. */
static fl_err emit1(fl_net *n, const char *layer, fl_var *x, fl_var **out)
{
    return fl_layer_get(n, layer, (fl_arg[]){{"x", .var = x}, {0}}, out);
}

static fl_err emit2(fl_net *n, const char *layer, fl_var *x, fl_var *y,
                    fl_var **out)
{
    return fl_layer_get(n, layer,
                        (fl_arg[]){{"x", .var = x}, {"y", .var = y}, {0}}, out);
}

/* --- global norm --- */

static const char *group_name(const fl_clip *c)
{
    return c->group ? c->group : "default_group";
}

static group *find_group(const groups *g, const char *name)
{
    for (int64_t i = 0; i < g->n; i++)
        if (!strcmp(g->at[i].name, name))
            return &g->at[i];
    return NULL;
}

static fl_err make_group(fl_net *n, const fl_clip *c, fl_dtype dtype,
                         groups *all, group **out)
{
    const fl_arg args[] = {
        {"shape", .i = 1},
        {"dtype", .i = dtype},
        {"value", .f = (double)c->max},
        {0},
    };
    group g = {.name = group_name(c), .max = c->max};
    FL_TRY(fl_layer_get(n, "fill_constant", args, &g.limit));
    fl_push(all, g);
    *out = &all->at[all->n - 1];
    return FL_OK;
}

/* Add the sum of squares of a gradient to its group. */
static fl_err join_group(fl_net *n, const fl_clip *c, fl_var *grad, groups *all)
{
    group *g = find_group(all, group_name(c));
    if (!g)
        FL_TRY(make_group(n, c, grad->dtype, all, &g));
    if (g->max != c->max)
        return fl_fail(FL_EINVAL,
                       "clip by global norm: group \"%s\" has clip_norm %g and "
                       "%g, expected one for all",
                       g->name, (double)g->max, (double)c->max);
    if (grad->kind == FL_SELECTED_ROWS) {
        FL_TRY(emit1(n, "merge_selected_rows", grad, &grad));
        FL_TRY(emit1(n, "get_tensor_from_selected_rows", grad, &grad));
    }
    fl_var *square, *sum;
    FL_TRY(emit1(n, "square", grad, &square));
    FL_TRY(fl_layer_get(n, "reduce_sum",
                        (fl_arg[]){{"input", .var = square}, {0}}, &sum));
    fl_push(&g->squares, sum);
    return FL_OK;
}

static fl_err make_scale(fl_net *n, group *g)
{
    const fl_arg squares[] = {
        {"input", .n = (int)g->squares.n, .vars = g->squares.at}, {0}};
    fl_var *sum, *norm, *larger;
    FL_TRY(fl_layer_get(n, "sums", squares, &sum));
    FL_TRY(emit1(n, "sqrt", sum, &norm));
    FL_TRY(emit2(n, "elementwise_max", g->limit, norm, &larger));
    return emit2(n, "elementwise_div", g->limit, larger, &g->scale);
}

/* --- the two passes --- */

static const fl_clip *clip_of(const fl_param_grad *pg)
{
    return pg->grad && pg->param->param ? pg->param->param->clip : NULL;
}

static bool is_global(const fl_clip *c)
{
    return c->kind && !strcmp(c->kind, "global_norm");
}

static fl_err enter_group(fl_net *n, const fl_param_grad *pg, groups *all)
{
    const fl_clip *c = clip_of(pg);
    return is_global(c) ? join_group(n, c, pg->grad, all) : FL_OK;
}

static fl_err replace_grad(fl_net *n, fl_param_grad *pg, groups *all)
{
    const fl_clip *c = clip_of(pg);
    const fl_arg grad = {"x", .var = pg->grad};
    if (is_global(c)) {
        group *g = find_group(all, group_name(c));
        if (!g->scale)
            FL_TRY(make_scale(n, g));
        return emit2(n, "elementwise_mul", pg->grad, g->scale, &pg->grad);
    }
    if (c->kind && !strcmp(c->kind, "value"))
        return fl_layer_get(n, "clip",
                            (fl_arg[]){grad,
                                       {"min", .f = (double)c->min},
                                       {"max", .f = (double)c->max},
                                       {0}},
                            &pg->grad);
    if (c->kind && !strcmp(c->kind, "norm"))
        return fl_layer_get(
            n, "clip_by_norm",
            (fl_arg[]){grad, {"max_norm", .f = (double)c->max}, {0}},
            &pg->grad);
    return fl_fail(FL_EINVAL,
                   "gradient clip of \"%s\" is \"%s\", expected \"value\", "
                   "\"norm\" or \"global_norm\"",
                   pg->param->name, c->kind ? c->kind : "");
}

static fl_err clip_all(fl_net *n, fl_param_grads *pgs, groups *all)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < pgs->n; i++) {
            fl_param_grad *pg = &pgs->at[i];
            if (!clip_of(pg))
                continue;
            const fl_stamp old = fl_stamp_optimize(n, pg, SCOPE);
            const fl_err err =
                pass ? replace_grad(n, pg, all) : enter_group(n, pg, all);
            fl_stamp_set(n, old);
            FL_TRY(err);
        }
    return FL_OK;
}

fl_err fl_clip_grads(fl_net *n, fl_param_grads *pgs)
{
    groups all = {0};
    const fl_err err = clip_all(n, pgs, &all);
    for (int64_t i = 0; i < all.n; i++)
        fl_vec_fini(&all.at[i].squares);
    fl_vec_fini(&all);
    return err;
}

/* --- set for parameters --- */

static void set_clip(fl_var *v, const fl_clip *clip)
{
    fl_arena *a = v->block->program->arena;
    fl_param_info *info = fl_param_info_dup(a, v->param);
    info->clip = fl_clip_dup(a, clip);
    v->param = info;
    fl_var_touch(v);
}

fl_err fl_net_set_clip(fl_net *n, const fl_clip *clip, int n_params,
                       const char *const *params)
{
    fl_block *b = fl_program_block(n->main, 0);
    for (int i = 0; i < n_params; i++) {
        fl_var *v;
        FL_TRY(fl_block_get(b, params[i], &v));
        if (!v->param)
            return fl_fail(FL_EINVAL,
                           "gradient clip: \"%s\" is not a parameter",
                           params[i]);
        set_clip(v, clip);
    }
    for (fl_entry *e = NULL; !n_params && (e = fl_map_next(&b->vars, e));)
        if (((fl_var *)e->value)->param)
            set_clip(e->value, clip);
    return FL_OK;
}
