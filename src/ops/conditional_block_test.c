/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

/* Notes which block was asked for. */
static fl_err note_block(fl_call *c, int64_t block)
{
    *(int64_t *)c->runner = block;
    return FL_OK;
}

/* The block that ran, or -1. */
static int64_t run(fl_vars *v, bool scalar, int n, const char *const *cond)
{
    int64_t ran = -1;
    fl_desc *d = fl_desc_new(v->arena, "conditional_block");
    fl_desc_set_in(d, "Cond", n, cond);
    fl_desc_set_attr(d, &(fl_attr){"sub_block", FL_ATTR_BLOCK, .i = 3});
    fl_desc_set_attr(
        d, &(fl_attr){"is_scalar_condition", FL_ATTR_BOOL, .b = scalar});
    v->hooks.run_block = note_block;
    v->runner = &ran;
    CHECK_OK(fl_vars_run(v, d));
    return ran;
}

static void set_bool(fl_vars *v, const char *name, bool value)
{
    fl_value *x = fl_vars_get(v, name);
    fl_shape one = {1, {1}};
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, FL_BOOL, &one));
    *(bool *)x->tensor.data = value;
}

static void runs_its_block_when_true(void)
{
    fl_vars v;
    fl_vars_init(&v);
    set_bool(&v, "yes", true);
    set_bool(&v, "no", false);
    CHECK_INT(run(&v, true, 1, (const char *[]){"yes"}), 3);
    CHECK_INT(run(&v, true, 1, (const char *[]){"no"}), -1);
    fl_vars_fini(&v);
    fl_checked("conditional_block", false);
}

static void runs_its_block_when_nothing_is_empty(void)
{
    fl_vars v;
    fl_vars_init(&v);
    fl_vars_set(&v, "some", 2, (float[]){0, 0});
    fl_vars_set(&v, "none", 0, (float[]){0});
    CHECK_INT(run(&v, false, 1, (const char *[]){"some"}), 3);
    CHECK_INT(run(&v, false, 2, (const char *[]){"some", "none"}), -1);
    fl_vars_fini(&v);
}

static void says_what_is_no_condition(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "conditional_block",
                  .attr = {{"sub_block", FL_ATTR_BLOCK, .i = 1},
                           {"is_scalar_condition", FL_ATTR_BOOL, .b = true}},
                  .in = {{"Cond", {2}}},
              }),
              FL_ESHAPE, "conditional_block: Cond is f32[2], expected bool[1]");
}

const fl_test fl_tests[] = {
    {"conditional_block runs its block when true", runs_its_block_when_true},
    {"conditional_block runs its block when nothing is empty",
     runs_its_block_when_nothing_is_empty},
    {"conditional_block says what is no condition", says_what_is_no_condition},
    {0},
};
