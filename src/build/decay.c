/* SPDX-License-Identifier: Apache-2.0 */
/* decay.c - regularizers, which add a term to a gradient.
 *
 *     l2   scale(param)                     -> term
 *     l1   sign(param) -> term, scale(term) -> term
 *          sum(grad, term)                  -> grad
 *
 * A gradient of selected rows becomes dense with it, under a name of its own:
 * every row of the parameter decays. */
#include "build/layer.h"
#include "build/optimizer.h"
#include "build/stamp.h"

static fl_err emit_term(fl_net *n, const char *op, const fl_var *x,
                        const fl_var *out, const float *scale)
{
    fl_desc *d = fl_net_desc(n, op);
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    if (scale)
        fl_set_float(d, "scale", (double)*scale);
    return fl_net_append(n, d);
}

static fl_err make_term(fl_net *n, const fl_regularizer *r, const fl_var *param,
                        fl_var **term)
{
    const char *kind = r->kind ? r->kind : "";
    const bool l1 = !strcmp(kind, "l1");
    if (!l1 && strcmp(kind, "l2"))
        return fl_fail(FL_EINVAL,
                       "regularizer of \"%s\" is \"%s\", expected \"l1\" or "
                       "\"l2\"",
                       param->name, kind);
    const fl_var like = {
        .name = fl_names_generate(n->names, n->arena, "_generated_var"),
        .dtype = param->dtype,
        .shape = param->shape,
    };
    FL_TRY(fl_block_add_var(fl_net_block(n), &like, term));
    if (l1)
        FL_TRY(emit_term(n, "sign", param, *term, NULL));
    return emit_term(n, "scale", l1 ? *term : param, *term, &r->coeff);
}

/* The variable that receives grad + term. */
static fl_err sum_var(fl_net *n, const fl_param_grad *pg, fl_var **out)
{
    *out = pg->grad;
    if (pg->grad->kind != FL_SELECTED_ROWS)
        return FL_OK;
    fl_var like = {.name =
                       fl_arena_printf(n->arena, "%s@NEWGRAD@", pg->grad->name),
                   .dtype = pg->param->dtype,
                   .shape = pg->param->shape,
                   .lod_level = pg->param->lod_level};
    return fl_block_add_var(fl_net_block(n), &like, out);
}

static fl_err decay_grad(fl_net *n, const fl_regularizer *r, fl_param_grad *pg)
{
    fl_var *term = NULL, *out;
    if (r->emit)
        FL_TRY(r->emit(r, n, pg->param, pg->grad, &term));
    else
        FL_TRY(make_term(n, r, pg->param, &term));
    if (!term)
        return FL_OK;
    FL_TRY(sum_var(n, pg, &out));
    fl_desc *d = fl_net_desc(n, "sum");
    fl_set_ins(d, "X", 2, (fl_var *[]){pg->grad, term});
    fl_set_out(d, "Out", out);
    FL_TRY(fl_net_append(n, d));
    pg->grad = out;
    return FL_OK;
}

fl_err fl_decay_grads(fl_net *n, const fl_regularizer *other,
                      fl_param_grads *pgs)
{
    for (int64_t i = 0; i < pgs->n; i++) {
        fl_param_grad *pg = &pgs->at[i];
        const fl_param_info *info = pg->param->param;
        const fl_regularizer *r =
            info && info->regularizer ? info->regularizer : other;
        if (!r || !pg->grad)
            continue;
        const fl_stamp old = fl_stamp_optimize(n, pg, "/regularization/");
        const fl_err err = decay_grad(n, r, pg);
        fl_stamp_set(n, old);
        FL_TRY(err);
    }
    return FL_OK;
}
