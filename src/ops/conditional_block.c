/* SPDX-License-Identifier: Apache-2.0 */
/* conditional_block  runs sub_block once if the condition holds: Cond is true
 *                    (is_scalar_condition), or no Cond is empty
 *
 * Input and Out list the variables that the block reads and writes. Scope is
 * Fluid's and stays empty. */
#include "op/op.h"

static fl_err holds(const fl_call *c, bool *yes)
{
    bool scalar = fl_attr_bool(c, "is_scalar_condition");
    char text[FL_SHAPE_TEXT];
    *yes = true;
    for (int i = 0; i < fl_in_count(c, "Cond"); i++) {
        const fl_tensor *t = fl_in_at(c, "Cond", i);
        if (!t || !t->data)
            return fl_fail(FL_ENOENT,
                           "conditional_block: Cond %d holds nothing yet", i);
        if (!scalar) {
            *yes &= fl_tensor_numel(t) > 0;
            continue;
        }
        if (t->dtype != FL_BOOL || fl_tensor_numel(t) != 1)
            return fl_fail(
                FL_ESHAPE, "conditional_block: Cond is %s%s, expected bool[1]",
                fl_dtype_name(t->dtype), fl_shape_text(&t->shape, text));
        *yes &= *(const bool *)t->data;
    }
    return FL_OK;
}

static fl_err conditional_block(fl_call *c)
{
    bool yes;
    FL_TRY(holds(c, &yes));
    if (!yes)
        return FL_OK;
    if (!c->hooks || !c->hooks->run_block)
        return fl_fail(FL_EINVAL,
                       "conditional_block: sub-blocks can run only in a plan");
    return c->hooks->run_block(c, fl_attr_i64(c, "sub_block"));
}

const fl_op_def fl_op_conditional_block = {
    .type = "conditional_block",
    .in = {{"Cond", FL_MANY | FL_NOGRAD}, {"Input", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL}, {"Scope", FL_OPTIONAL}},
    .attr =
        {
            {"sub_block", FL_ATTR_BLOCK, .required = true},
            {"is_scalar_condition", FL_ATTR_BOOL, .b = false},
        },
    .flags = FL_OP_NO_INFER | FL_OP_DYNAMIC,
    .infer = fl_infer_none,
    .run = conditional_block,
};
