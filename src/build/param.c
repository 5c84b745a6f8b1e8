/* SPDX-License-Identifier: Apache-2.0 */
/* param.c - parameters and other variables that outlive a step.
 *
 * They are in the global block of both programs; startup has the op that
 * initialises them. A parameter is identified by its name: a layer that asks
 * for an existing parameter shares it. */
#include "build/net.h"

static fl_err check_shape(const char *name, const fl_shape *shape)
{
    char text[FL_SHAPE_TEXT];
    if (!shape->rank)
        return fl_fail(FL_ESHAPE, "parameter \"%s\" has no dimensions", name);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] <= 0)
            return fl_fail(FL_ESHAPE,
                           "parameter \"%s\" is %s, but every dimension must "
                           "be known and positive",
                           name, fl_shape_text(shape, text));
    return FL_OK;
}

/* The initializer of the attribute, else that of the layer, else Xavier or 0.
 */
static fl_err choose_init(const fl_param_attr *attr, const fl_init *layers,
                          bool bias, const char *name, fl_dtype dtype,
                          const fl_init **out)
{
    static const fl_init weight = {.kind = "xavier"}, zero = {"constant"};
    const fl_init *i = attr->init ? attr->init : layers;
    if (!i && !fl_is_float(dtype))
        return fl_fail(FL_ETYPE,
                       "parameter \"%s\" is %s, but the default initializer "
                       "makes floats: give one, such as Constant(0)",
                       name, fl_dtype_word(dtype));
    *out = i ? i : bias ? &zero : &weight;
    return FL_OK;
}

static fl_err declare_param(fl_net *n, const fl_var *like, fl_var **out)
{
    fl_block *b = fl_program_block(n->main, 0);
    const fl_var *old = fl_block_var(b, like->name);
    if (old && !old->param)
        return fl_fail(FL_EINVAL,
                       "parameter \"%s\": a variable of that name exists and "
                       "is not a parameter",
                       like->name);
    return fl_block_add_var(b, like, out);
}

fl_err fl_net_param(fl_net *n, const fl_param_attr *attr, const char *layer,
                    bool bias, fl_dtype dtype, const fl_shape *shape,
                    const fl_init *init_default, fl_var **out)
{
    static const fl_param_attr plain = {0};
    const fl_init *init = NULL;
    if (!attr)
        attr = &plain;
    if (attr->none)
        return fl_fail(FL_EINVAL, "%s: its %s cannot be left out", layer,
                       bias ? "bias" : "weight");
    const char *name = attr->name;
    if (!name)
        name = fl_names_generate(
            n->names, n->arena,
            fl_arena_printf(n->arena, "%s.%c", layer, bias ? 'b' : 'w'));
    FL_TRY(check_shape(name, shape));
    if (attr->weight_norm)
        return fl_net_weight_norm(n, attr, name, layer, dtype, shape,
                                  init_default, out);
    FL_TRY(choose_init(attr, init_default, bias, name, dtype, &init));
    const fl_param_info info = {
        .trainable = !attr->frozen,
        .learning_rate = attr->learning_rate ? attr->learning_rate : 1,
        .regularizer = attr->regularizer,
        .clip = attr->clip,
        .do_model_average = !attr->no_average,
        .summary = attr->summary,
    };
    const fl_var like = {.name = name,
                         .dtype = dtype,
                         .shape = *shape,
                         .persistable = true,
                         .param = &info};
    FL_TRY(declare_param(n, &like, out));
    return fl_init_emit(init, n, *out);
}

fl_err fl_net_global(fl_net *n, const char *name, fl_dtype dtype,
                     const fl_shape *shape, const fl_init *init, fl_var **out)
{
    const fl_var like = {
        .name = name, .dtype = dtype, .shape = *shape, .persistable = true};
    FL_TRY(fl_block_add_var(fl_program_block(n->main, 0), &like, out));
    return fl_init_emit(init, n, *out);
}
