/* SPDX-License-Identifier: Apache-2.0 */
/* layer.c - layers by name. */
#include "build/layer.h"

#include "base/str.h"

static const fl_layer_def *const tables[] = {
    fl_layers_basic,      fl_layers_loss,    fl_layers_math,
    fl_layers_shape,      fl_layers_tensor,  fl_layers_sequence,
    fl_layers_image,      fl_layers_picture, fl_layers_click,
    fl_layers_metric,     fl_layers_control, fl_layers_schedule,
    fl_layers_collective,
};

/* Row i of all tables, counted through, or NULL after the last row. */
static const fl_layer_def *row_at(int i)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const fl_layer_def *def = tables[t]; def->name; def++)
            if (!i--)
                return def;
    return NULL;
}

int fl_layer_count(void)
{
    int n = 0;
    while (row_at(n))
        n++;
    return n;
}

const fl_layer_def *fl_layer_at(int i)
{
    return row_at(i);
}

static const fl_layer_def *find_row(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const fl_layer_def *def = tables[t]; def->name; def++)
            if (!strcmp(def->name, name))
                return def;
    return NULL;
}

static fl_err fail_unknown_layer(const char *name)
{
    fl_near near = {.name = name};
    for (int i = 0; row_at(i); i++)
        fl_near_offer(&near, row_at(i)->name);
    if (near.best)
        return fl_fail(FL_ENOENT, "unknown layer \"%s\"; did you mean \"%s\"?",
                       name, near.best);
    return fl_fail(FL_ENOENT, "unknown layer \"%s\"", name);
}

static fl_err find_layer(fl_net *n, const char *name, const fl_layer_def **out)
{
    const fl_op_def *op = fl_registry_find(n->main->registry, name);
    fl_layer_def of_op;
    *out = find_row(name);
    if (*out)
        return FL_OK;
    if (!op || !fl_layer_of_op(n->arena, op, &of_op))
        return fail_unknown_layer(name);
    *out = fl_arena_dup(n->arena, &of_op, sizeof of_op);
    return FL_OK;
}

/* Fluid names an instance when its layer begins, before it reads anything. */
static const char *instance_name(const fl_emit *e)
{
    const char *given = fl_arg_known(e->def->args, "name")
                            ? fl_arg_str(&e->args, "name")
                            : NULL;
    if (given || (e->def->prefix && !*e->def->prefix))
        return given;
    return fl_names_generate(e->net->names, e->net->arena,
                             e->def->prefix ? e->def->prefix : e->def->name);
}

static fl_err emit_layer(fl_emit *e, const char *name, const fl_arg *args)
{
    FL_TRY(find_layer(e->net, name, &e->def));
    FL_TRY(fl_args_bind(e->net->arena, name, e->def->args, args, &e->args));
    e->name = instance_name(e);
    return e->def->emit ? e->def->emit(e) : fl_emit_op(e);
}

fl_err fl_layer_call(fl_net *n, const char *name, const fl_arg *args, int max,
                     fl_var **outs, int *n_outs)
{
    fl_emit e = {.net = n};
    const fl_err err = emit_layer(&e, name, args);
    for (int i = 0; !err && i < max && i < e.out.n; i++)
        outs[i] = e.out.at[i];
    if (!err && n_outs)
        *n_outs = (int)e.out.n;
    fl_vec_fini(&e.out);
    return err;
}

fl_err fl_layer_get(fl_net *n, const char *name, const fl_arg *args,
                    fl_var **out)
{
    return fl_layer_call(n, name, args, 1, out, NULL);
}

int fl_layer_all(fl_net *n, const char *name, const fl_arg *args, int max,
                 fl_var **outs)
{
    int n_outs = 0;
    if (n->err ||
        fl_net_fail(n, fl_layer_call(n, name, args, max, outs, &n_outs)))
        return -1;
    return n_outs;
}

fl_var *fl_layer(fl_net *n, const char *name, const fl_arg *args)
{
    fl_var *out = NULL;
    return fl_layer_all(n, name, args, 1, &out) < 0 ? NULL : out;
}
