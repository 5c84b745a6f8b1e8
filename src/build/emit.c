/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - appends the operator of a layer's row to the program. */
#include "build/layer.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what functions of layers share --- */

void fl_emit_return(fl_emit *e, fl_var *v)
{
    fl_push(&e->out, v);
}

fl_err fl_emit_tmp(fl_emit *e, fl_dtype dtype, fl_var **out)
{
    return fl_net_tmp(e->net, e->name, dtype, out);
}

fl_err fl_emit_stopped(fl_emit *e, fl_dtype dtype, fl_var **out)
{
    FL_TRY(fl_emit_tmp(e, dtype, out));
    (*out)->stop_gradient = true;
    return FL_OK;
}

fl_err fl_emit_pair(const fl_emit *e, const char *name, int64_t out[2])
{
    const fl_arg *a = fl_arg_get(&e->args, name);
    if (a->n < 0 || a->n > 2)
        return fl_fail(FL_EINVAL, "%s: %s has %d numbers, expected 1 or 2",
                       e->args.what, name, a->n < 0 ? 0 : a->n);
    out[0] = a->n ? a->ints[0] : a->i;
    out[1] = a->n ? a->ints[a->n - 1] : a->i;
    return FL_OK;
}

fl_err fl_emit_act(fl_emit *e, fl_var **v)
{
    const char *act = fl_arg_str(&e->args, "act");
    fl_var *y = NULL;
    if (!act)
        return FL_OK;
    FL_TRY(fl_emit_tmp(e, (*v)->dtype, &y));
    fl_desc *d = fl_net_desc(e->net, act);
    fl_set_in(d, "X", *v);
    fl_set_out(d, "Out", y);
    FL_TRY(fl_net_append(e->net, d));
    *v = y;
    return FL_OK;
}

fl_err fl_emit_bias(fl_emit *e, int from, int to, fl_var **v)
{
    const fl_arg *attr = fl_arg_get(&e->args, "bias_attr");
    if (attr && attr->attr->none)
        return FL_OK;
    const fl_shape shape = fl_shape_of(to - from, (*v)->shape.dim + from);
    fl_var *b = NULL, *out = NULL;
    FL_TRY(fl_net_param(e->net, attr ? attr->attr : NULL, e->name, true,
                        (*v)->dtype, &shape, NULL, &b));
    FL_TRY(fl_emit_tmp(e, (*v)->dtype, &out));
    fl_desc *d = fl_net_desc(e->net, "elementwise_add");
    fl_set_in(d, "X", *v);
    fl_set_in(d, "Y", b);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "axis", from);
    FL_TRY(fl_net_append(e->net, d));
    *v = out;
    return FL_OK;
}

/* --- a layer that is one operator --- */

static bool is_input(const fl_layer_def *def, const char *arg)
{
    for (int i = 0; i < FL_LAYER_SLOTS && def->in[i].slot; i++)
        if (!strcmp(def->in[i].arg, arg))
            return true;
    return false;
}

/* The attribute that an argument sets, or NULL. */
static const char *attr_of(const fl_layer_def *def, const char *arg)
{
    if (is_input(def, arg) || !strcmp(arg, "name") || !strcmp(arg, "act") ||
        (def->into && !strcmp(arg, def->into)))
        return NULL;
    for (int i = 0; i < FL_LAYER_SLOTS && def->map[i].arg; i++)
        if (!strcmp(def->map[i].arg, arg))
            return def->map[i].attr;
    return arg;
}

static const float *as_floats(fl_arena *a, const fl_arg *v)
{
    float *f = fl_arena_alloc(a, (size_t)v->n * sizeof *f);
    for (int i = 0; i < v->n; i++)
        f[i] = (float)v->floats[i];
    return f;
}

static void set_attr(fl_desc *d, const char *name, fl_arg_type type,
                     const fl_arg *v)
{
    switch (type) {
    case FL_ARG_INT:
    case FL_ARG_DTYPE:
        fl_set_int(d, name, v->i);
        break;
    case FL_ARG_FLOAT:
        fl_set_float(d, name, v->f);
        break;
    case FL_ARG_BOOL:
        fl_set_bool(d, name, v->b);
        break;
    case FL_ARG_STR:
        fl_set_str(d, name, v->s);
        break;
    case FL_ARG_INTS:
        fl_set_ints(d, name, v->n, v->ints);
        break;
    case FL_ARG_FLOATS:
        fl_desc_set_attr(d, &(fl_attr){name, FL_ATTR_FLOATS, .n = v->n,
                                       .floats = as_floats(d->arena, v)});
        break;
    default: /* no operator has an attribute of another type */
        break;
    }
}

static void set_attrs(const fl_emit *e, fl_desc *d)
{
    const fl_arg_def *args = e->args.def;
    for (int i = 0; i < FL_ARGS && args[i].name; i++) {
        const char *attr = attr_of(e->def, args[i].name);
        if (attr && e->args.given[i])
            set_attr(d, attr, args[i].type, &e->args.value[i]);
    }
}

/* The initial dtype of temporaries. The operator's shape rule may change it. */
static fl_dtype set_inputs(const fl_emit *e, fl_desc *d)
{
    fl_dtype dtype = FL_F32;
    for (int i = FL_LAYER_SLOTS; i-- > 0;) {
        const char *arg = e->def->in[i].arg;
        const fl_arg *v = arg ? fl_arg_get(&e->args, arg) : NULL;
        if (v)
            dtype = v->n ? v->vars[0]->dtype : v->var->dtype;
    }
    for (int i = 0; i < FL_LAYER_SLOTS && e->def->in[i].slot; i++) {
        const fl_arg *v = fl_arg_get(&e->args, e->def->in[i].arg);
        if (v && v->n)
            fl_set_ins(d, e->def->in[i].slot, v->n, v->vars);
        else if (v)
            fl_set_in(d, e->def->in[i].slot, v->var);
    }
    return dtype;
}

static fl_err make_out(fl_emit *e, int i, fl_dtype dtype, fl_var **out)
{
    const char *into = i ? NULL : e->def->into;
    const char *name =
        fl_arg_known(e->args.def, "name") ? fl_arg_str(&e->args, "name") : NULL;
    if (into && fl_arg_given(&e->args, into)) {
        *out = fl_arg_var(&e->args, into);
        return FL_OK;
    }
    if (!i && e->def->names_out && name)
        return fl_block_add_var(fl_net_block(e->net),
                                &(fl_var){.name = name, .dtype = dtype}, out);
    return fl_emit_tmp(e, dtype, out);
}

/* Names are generated in the order of the row; the desc lists outputs in the
 * order of the operator. */
static void set_outputs(const fl_emit *e, const fl_op_def *op,
                        fl_var *const *out, fl_desc *d)
{
    for (int k = 0; k < FL_SLOTS && op->out[k].name; k++)
        for (int i = 0; i < FL_LAYER_SLOTS && e->def->out[i].slot; i++)
            if (!strcmp(e->def->out[i].slot, op->out[k].name))
                fl_set_out(d, op->out[k].name, out[i]);
}

fl_err fl_emit_op(fl_emit *e)
{
    const fl_layer_def *def = e->def;
    const fl_op_def *op = NULL;
    fl_var *out[FL_LAYER_SLOTS] = {0};
    FL_TRY(fl_registry_get(e->net->main->registry, def->op, &op));
    fl_desc *d = fl_net_desc(e->net, def->op);
    const fl_dtype dtype = set_inputs(e, d);
    for (int i = 0; i < FL_LAYER_SLOTS && def->out[i].slot; i++) {
        FL_TRY(make_out(e, i, dtype, &out[i]));
        if (def->out[i].flags & FL_STOP)
            out[i]->stop_gradient = true;
    }
    set_outputs(e, op, out, d);
    set_attrs(e, d);
    FL_TRY(fl_net_append(e->net, d));
    if (fl_arg_known(e->args.def, "act"))
        FL_TRY(fl_emit_act(e, &out[0]));
    for (int i = 0; i < FL_LAYER_SLOTS && def->out[i].slot; i++)
        if (!(def->out[i].flags & FL_HIDDEN))
            fl_emit_return(e, out[i]);
    return FL_OK;
}

/* --- an operator as a layer --- */

/* The shortest text that reads back as the same float: 0.02, not 0.0199999996.
 */
static const char *float_text(fl_arena *a, float f)
{
    char text[32];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*g", digits, (double)f);
    while (strtof(text, NULL) != f && digits++ < 9);
    return fl_arena_strdup(a, text);
}

static bool default_of(fl_arena *a, const fl_attr *attr, fl_arg_def *out)
{
    out->name = attr->name;
    switch (attr->type) {
    case FL_ATTR_INT:
    case FL_ATTR_LONG:
        out->type = FL_ARG_INT;
        out->value = fl_arena_printf(a, "%lld", (long long)attr->i);
        break;
    case FL_ATTR_FLOAT:
        out->type = FL_ARG_FLOAT;
        out->value = float_text(a, attr->f);
        break;
    case FL_ATTR_BOOL:
        out->type = FL_ARG_BOOL;
        out->value = attr->b ? "True" : "False";
        break;
    case FL_ATTR_STRING:
        out->type = FL_ARG_STR;
        out->value = fl_arena_printf(a, "'%s'", attr->s ? attr->s : "");
        break;
    case FL_ATTR_INTS:
    case FL_ATTR_LONGS:
        out->type = FL_ARG_INTS;
        out->value = "None"; /* keep the default of the operator */
        break;
    case FL_ATTR_FLOATS:
        out->type = FL_ARG_FLOATS;
        out->value = "None";
        break;
    default:
        return false;
    }
    if (attr->required)
        out->value = NULL;
    return true;
}

static bool only_slot(const fl_slot *slots, const char *name)
{
    return slots[0].name && !strcmp(slots[0].name, name) &&
           !(slots[0].flags & (FL_MANY | FL_OPTIONAL)) && !slots[1].name;
}

bool fl_layer_of_op(fl_arena *a, const fl_op_def *op, fl_layer_def *out)
{
    const unsigned other =
        FL_OP_HIDDEN | FL_OP_LOCAL | FL_OP_NO_INFER | FL_OP_RANKS;
    if (op->flags & other || !only_slot(op->in, "X") ||
        !only_slot(op->out, "Out"))
        return false;
    *out = (fl_layer_def){
        .name = op->type,
        .op = op->type,
        .doc = fl_op_layer_doc(op->type),
        .args = {{"x", FL_ARG_VAR}},
        .in = {{"X", "x"}},
        .out = {{"Out"}},
    };
    int n = 1;
    for (int i = 0; i < FL_ATTRS && op->attr[i].name; i++)
        if (n == FL_ARGS - 2 || !default_of(a, &op->attr[i], &out->args[n++]))
            return false;
    out->args[n] = (fl_arg_def){"name", FL_ARG_STR, "None"};
    return true;
}
