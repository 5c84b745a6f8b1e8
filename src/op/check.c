/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - compares a desc with the table of its operator. */
#include "op/op.h"

#include <string.h>

bool fl_attr_common(const char *name)
{
    static const char *const common[] = {
        "op_role", "op_role_var", "op_namescope", "op_callstack",
        /* attributes for other hardware: kept and written back, but not read */
        "use_mkldnn", "use_cudnn", "use_quantizer", "mkldnn_data_type",
        "exhaustive_search", "workspace_size_MB", "is_test", "data_format",
        "data_layout", "fuse_relu", "fuse_residual_connection",
        "fuse_relu_before_depthwise_conv", "Scale_in", "Scale_out",
        "Scale_weights", "Scale_in_eltwise", "force_fp32_output", "op_device",
        "with_quant_attr"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (!strcmp(name, common[i]))
            return true;
    return false;
}

static fl_err check_side(const fl_op_def *def, const char *side,
                         const fl_slot *slots, const fl_args *args, int n)
{
    for (int i = 0; i < n; i++) {
        int s = 0;
        while (s < FL_SLOTS && slots[s].name &&
               strcmp(slots[s].name, args[i].slot))
            s++;
        if (s == FL_SLOTS || !slots[s].name)
            return fl_fail(FL_EINVAL, "%s: the operator has no %s %s",
                           def->type, side, args[i].slot);
        if (args[i].n > 1 && !(slots[s].flags & FL_MANY))
            return fl_fail(FL_EINVAL, "%s: %s %s has %d names, expected one",
                           def->type, side, args[i].slot, args[i].n);
    }
    return FL_OK;
}

static bool has_names(const fl_args *args)
{
    for (int i = 0; args && i < args->n; i++)
        if (strcmp(args->name[i], FL_EMPTY))
            return true;
    return false;
}

/* Check that every required slot has a name. */
static fl_err
check_present(const fl_op_def *def, const char *side, const fl_slot *slots,
              const fl_args *(*args_of)(const fl_desc *, const char *),
              const fl_desc *d)
{
    for (int s = 0; s < FL_SLOTS && slots[s].name; s++)
        if (!(slots[s].flags & FL_OPTIONAL) &&
            !has_names(args_of(d, slots[s].name)))
            return fl_fail(FL_EINVAL, "%s: %s %s is missing", def->type, side,
                           slots[s].name);
    return FL_OK;
}

/* Refuse a data layout if the operator has no attribute for it, unless it is
 * the default layout. */
static fl_err check_layout(const fl_op_def *def, const fl_attr *a)
{
    if (strcmp(a->name, "data_format") && strcmp(a->name, "data_layout"))
        return FL_OK;
    if (a->type == FL_ATTR_STRING &&
        (!strcmp(a->s, "NCHW") || !strcmp(a->s, "AnyLayout")))
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: %s is %s%s%s, expected NCHW or AnyLayout",
                   def->type, a->name, a->type == FL_ATTR_STRING ? "\"" : "",
                   a->type == FL_ATTR_STRING ? a->s
                                             : fl_attr_type_name(a->type),
                   a->type == FL_ATTR_STRING ? "\"" : "");
}

static fl_err check_attrs(const fl_op_def *def, fl_desc *d, bool lenient)
{
    for (int i = 0; i < d->n_attr; i++) {
        int spec = fl_op_attr(def, d->attr[i].name);
        if (spec >= 0)
            FL_TRY(fl_attr_convert(d->arena, def->type, &def->attr[spec],
                                   &d->attr[i], &d->attr[i]));
        else if (!lenient && !fl_attr_common(d->attr[i].name))
            return fl_fail(FL_EINVAL, "%s: the operator has no attribute %s",
                           def->type, d->attr[i].name);
        else
            FL_TRY(check_layout(def, &d->attr[i]));
    }
    for (int i = 0; i < FL_ATTRS && def->attr[i].name; i++)
        if (def->attr[i].required && !fl_desc_attr(d, def->attr[i].name))
            return fl_fail(FL_EINVAL, "%s: attribute %s is missing", def->type,
                           def->attr[i].name);
    return FL_OK;
}

fl_err fl_desc_check(const fl_op_def *def, fl_desc *d, bool lenient)
{
    FL_TRY(check_side(def, "input", def->in, d->in, d->n_in));
    FL_TRY(check_side(def, "output", def->out, d->out, d->n_out));
    FL_TRY(check_present(def, "input", def->in, fl_desc_in, d));
    FL_TRY(check_attrs(def, d, lenient));
    return check_present(def, "output", def->out, fl_desc_out, d);
}

fl_err fl_desc_attrs(const fl_op_def *def, const fl_desc *d, fl_arena *a,
                     const fl_attr **out)
{
    fl_attr *attr = fl_arena_alloc(a, sizeof def->attr);
    for (int i = 0; i < FL_ATTRS && def->attr[i].name; i++) {
        const fl_attr *given = fl_desc_attr(d, def->attr[i].name);
        attr[i] = def->attr[i];
        if (given)
            FL_TRY(
                fl_attr_convert(a, def->type, &def->attr[i], given, &attr[i]));
    }
    *out = attr;
    return FL_OK;
}
