/* SPDX-License-Identifier: Apache-2.0 */
#include "build/layer.h"
#include "build/test_net.h"
#include "check/check.h"

static fl_net *begin(void)
{
    return fl_net_make(fl_check_registry());
}

static fl_var *x8(fl_net *n)
{
    return test_data(n, "x", FL_F32, 1, (int64_t[]){8});
}

/* --- operators on variables --- */

static fl_var *math(fl_net *n, const char *op, fl_var *x, fl_var *y,
                    double number, bool reversed)
{
    fl_var *out = NULL;
    CHECK_OK(fl_var_math(n, op, x, y, number, reversed, &out));
    return out;
}

static void numbers_become_variables(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n);
    fl_var *two = TEST_LAYER(n, "fill_constant", {"shape", .i = 2},
                             {"dtype", .i = FL_F32}, {"value", .f = 2});
    math(n, "+", x, NULL, 2, false);
    math(n, "*", x, NULL, 2, true); /* as x * 2 */
    math(n, "-", x, NULL, 2, true); /* 2 - x: the full shape, by batch */
    math(n, "/", two, NULL, 1, true);
    CHECK_STR(test_main_text(n),
              "fill_constant() Out=fill_constant_0.tmp_0\n"
              "fill_constant() Out=tmp_0\n"
              "elementwise_add(X=x Y=tmp_0) Out=tmp_1\n"
              "fill_constant() Out=tmp_2\n"
              "elementwise_mul(X=x Y=tmp_2) Out=tmp_3\n"
              "fill_constant_batch_size_like(Input=x) Out=tmp_4\n"
              "elementwise_sub(X=tmp_4 Y=x) Out=tmp_5\n"
              "fill_constant() Out=tmp_6\n"
              "elementwise_div(X=tmp_6 Y=fill_constant_0.tmp_0) Out=tmp_7");
    CHECK_STR(test_shape(n, test_find(n->main, "tmp_4")), "[-1,8]");
    CHECK_STR(test_shape(n, test_find(n->main, "tmp_6")), "[2]");
    CHECK(test_find(n->main, "tmp_0")->stop_gradient);
    CHECK_INT(test_attr(n->main, 2, "axis")->i, -1);
    CHECK_INT(test_attr(n->main, 6, "axis")->i, 0);
    fl_net_free(n);
}

static void variables_are_combined(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n), *y = test_data(n, "y", FL_F64, 1, (int64_t[]){8});
    fl_var *lt = math(n, "<", x, x, 0, false);
    math(n, "-", x, y, 0, false);
    CHECK_STR(test_main_text(n), "less_than(X=x Y=x) Out=tmp_0\n"
                                 "cast(X=y) Out=tmp_1\n"
                                 "elementwise_sub(X=x Y=tmp_1) Out=tmp_2");
    CHECK_INT(lt->dtype, FL_BOOL);
    fl_net_free(n);
}

static void unknown_signs_are_refused(void)
{
    fl_net *n = begin();
    fl_var *out = NULL;
    CHECK_ERR(fl_var_math(n, "@", x8(n), NULL, 1, false, &out), FL_EINVAL,
              "there is no operator \"@\" on variables");
    fl_net_free(n);
}

/* --- switch --- */

static void a_switch_chains_its_conditions(void)
{
    fl_net *n = begin();
    const fl_arg one[] = {
        {"shape", .i = 1}, {"dtype", .i = FL_BOOL}, {"value", .f = 1}, {0}};
    fl_var *a = test_layer(n, "fill_constant", one);
    fl_var *b = test_layer(n, "fill_constant", one);
    fl_var *out =
        TEST_LAYER(n, "zeros", {"shape", .i = 1}, {"dtype", .i = FL_F32});
    fl_var *cases[] = {a, b, NULL};
    fl_switch s = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fl_switch_case(n, &s, cases[i]));
        fl_var *local =
            TEST_LAYER(n, "ones", {"shape", .i = 1}, {"dtype", .i = FL_F32});
        TEST_LAYER(n, "assign", {"input", .var = local},
                   {"output", .var = out});
        CHECK_OK(fl_switch_end(n, &s));
        CHECK_INT(n->block, 0);
    }
    CHECK_STR(test_main_text(n),
              "fill_constant() Out=fill_constant_0.tmp_0\n"
              "fill_constant() Out=fill_constant_1.tmp_0\n"
              "fill_constant() Out=fill_constant_2.tmp_0\n"
              "logical_not(X=fill_constant_0.tmp_0) Out=logical_not_0.tmp_0\n"
              "conditional_block(Cond=fill_constant_0.tmp_0 Input=) "
              "Out=fill_constant_2.tmp_0 Scope=_generated_var_0\n"
              "logical_not(X=fill_constant_1.tmp_0) Out=logical_not_1.tmp_0\n"
              "logical_and(X=logical_not_0.tmp_0 Y=logical_not_1.tmp_0) "
              "Out=logical_and_0.tmp_0\n"
              "logical_and(X=logical_not_0.tmp_0 Y=fill_constant_1.tmp_0) "
              "Out=logical_and_1.tmp_0\n"
              "conditional_block(Cond=logical_and_1.tmp_0 Input=) "
              "Out=fill_constant_2.tmp_0 Scope=_generated_var_1\n"
              "conditional_block(Cond=logical_and_0.tmp_0 Input=) "
              "Out=fill_constant_2.tmp_0 Scope=_generated_var_2");
    CHECK_STR(test_ops_text(n, n->main, 2),
              "fill_constant() Out=fill_constant_4.tmp_0\n"
              "assign(X=fill_constant_4.tmp_0) Out=fill_constant_2.tmp_0");
    CHECK_INT(test_attr(n->main, 4, "sub_block")->i, 1);
    CHECK(test_attr(n->main, 4, "is_scalar_condition")->b);
    CHECK_INT(test_find(n->main, "_generated_var_0")->kind, FL_STEP_SCOPES);
    fl_net_free(n);
}

static void a_default_comes_after_a_case(void)
{
    fl_net *n = begin();
    fl_switch s = {0};
    CHECK_ERR(fl_switch_case(n, &s, NULL), FL_EINVAL,
              "switch_0: the default needs a case before it");
    fl_net_free(n);
}

/* --- schedules --- */

/* Op types of the global block, each with role LRSched. */
static const char *types(fl_net *n)
{
    fl_str s = {0};
    const fl_block *b = fl_program_block(n->main, 0);
    for (int64_t i = 0; i < b->ops.n; i++) {
        fl_str_printf(&s, "%s%s", i ? " " : "", b->ops.at[i]->desc.type);
        CHECK_INT(fl_op_role(b->ops.at[i]), FL_ROLE_LR);
    }
    const char *text = fl_arena_strdup(n->arena, s.at ? s.at : "");
    fl_str_fini(&s);
    return text;
}

static const char *decay(fl_net *n, const char *name, bool staircase)
{
    n->role_var[0] = "w";
    fl_var *lr = TEST_LAYER(n, name, {"learning_rate", .f = 0.1},
                            {"decay_steps", .f = 100}, {"decay_rate", .f = 0.5},
                            {"staircase", .b = staircase});
    CHECK_STR(test_shape(n, lr), "[1]");
    CHECK_INT(n->role, FL_ROLE_FORWARD);
    CHECK_STR(n->role_var[0], "w");
    CHECK(!fl_desc_attr(&fl_program_block(n->main, 0)->ops.at[0]->desc,
                        "op_role_var"));
    return types(n);
}

static void exponential_decay_is_fluids(void)
{
    fl_net *n = begin();
    CHECK_STR(decay(n, "exponential_decay", true),
              "increment cast fill_constant elementwise_div floor "
              "fill_constant elementwise_pow fill_constant elementwise_mul");
    CHECK_STR(test_startup_text(n), "fill_constant() Out=@LR_DECAY_COUNTER@");
    CHECK_NEAR(test_attr(n->startup, 0, "value")->f, -1, 0);
    CHECK_STR(fl_desc_in1(&fl_program_block(n->main, 0)->ops.at[6]->desc, "Y"),
              "floor_0.tmp_0");
    fl_net_free(n);
}

static void natural_and_inverse_decay_are_fluids(void)
{
    fl_net *n = begin();
    CHECK_STR(decay(n, "natural_exp_decay", false),
              "increment cast fill_constant elementwise_div fill_constant "
              "elementwise_mul exp fill_constant elementwise_mul");
    CHECK_NEAR(test_attr(n->main, 4, "value")->f, -0.5, 0);
    fl_net_free(n);
    n = begin();
    CHECK_STR(decay(n, "inverse_time_decay", false),
              "increment cast fill_constant elementwise_div fill_constant "
              "elementwise_mul fill_constant elementwise_add fill_constant "
              "elementwise_div");
    fl_net_free(n);
}

static void noam_starts_at_one(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "noam_decay", {"d_model", .f = 512},
               {"warmup_steps", .f = 4000});
    CHECK_STR(types(n), "increment cast fill_constant elementwise_pow "
                        "fill_constant elementwise_mul elementwise_min "
                        "fill_constant elementwise_mul");
    CHECK_NEAR(test_attr(n->startup, 0, "value")->f, 0, 0);
    CHECK_NEAR(test_attr(n->main, 2, "value")->f, -0.5, 0);
    CHECK_NEAR(test_attr(n->main, 4, "value")->f, 3.95284708e-06, 1e-12);
    CHECK_NEAR(test_attr(n->main, 7, "value")->f, 0.0441941738, 1e-9);
    fl_net_free(n);
}

static void polynomial_ends_or_cycles(void)
{
    fl_net *n = begin();
    fl_arg args[] = {{"learning_rate", .f = 0.1},
                     {"decay_steps", .f = 100},
                     {"cycle", .b = false},
                     {0}};
    test_layer(n, "polynomial_decay", args);
    CHECK_STR(types(n), "increment cast fill_constant elementwise_min "
                        "fill_constant elementwise_div fill_constant "
                        "elementwise_sub fill_constant elementwise_pow "
                        "fill_constant elementwise_mul fill_constant "
                        "elementwise_add");
    CHECK_NEAR(test_attr(n->main, 10, "value")->f, 0.0999, 1e-8);
    fl_net_free(n);
    n = begin();
    args[2].b = true;
    test_layer(n, "polynomial_decay", args);
    CHECK_STR(types(n), "increment cast fill_constant elementwise_div ceil "
                        "fill_constant fill_constant equal logical_not "
                        "conditional_block fill_constant elementwise_mul "
                        "elementwise_div fill_constant elementwise_sub "
                        "fill_constant elementwise_pow fill_constant "
                        "elementwise_mul fill_constant elementwise_add");
    fl_net_free(n);
}

static void piecewise_is_a_switch(void)
{
    fl_net *n = begin();
    const double bounds[] = {100, 200}, values[] = {0.1, 0.05, 0.01};
    fl_var *lr = TEST_LAYER(n, "piecewise_decay",
                            {"boundaries", .n = 2, .floats = bounds},
                            {"values", .n = 3, .floats = values});
    CHECK_STR(lr->name, "learning_rate");
    CHECK(lr->persistable);
    CHECK_STR(types(n), "increment cast fill_constant fill_constant less_than "
                        "logical_not conditional_block fill_constant "
                        "fill_constant less_than logical_not logical_and "
                        "logical_and conditional_block fill_constant "
                        "conditional_block");
    CHECK_INT(n->main->blocks.n, 4);
    CHECK_STR(test_ops_text(n, n->main, 1),
              "assign(X=fill_constant_1.tmp_0) Out=learning_rate");
    CHECK_INT(fl_op_role(fl_program_block(n->main, 3)->ops.at[0]), FL_ROLE_LR);
    CHECK_ERR(fl_layer_get(n, "piecewise_decay",
                           (fl_arg[]){{"boundaries", .n = 2, .floats = bounds},
                                      {"values", .n = 2, .floats = values},
                                      {0}},
                           &lr),
              FL_EINVAL,
              "piecewise_decay: 2 boundaries and 2 values, expected one value "
              "more");
    fl_net_free(n);
}

static void cosine_goes_by_epochs(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "cosine_decay", {"learning_rate", .f = 0.1},
               {"step_each_epoch", .f = 10}, {"epochs", .f = 120});
    CHECK_STR(types(n), "increment cast fill_constant elementwise_div floor "
                        "fill_constant elementwise_mul fill_constant "
                        "elementwise_div cos fill_constant elementwise_add "
                        "fill_constant elementwise_mul");
    CHECK_NEAR(test_attr(n->main, 5, "value")->f, 3.14159274, 1e-7);
    CHECK_NEAR(test_attr(n->main, 12, "value")->f, 0.05, 1e-8);
    fl_net_free(n);
}

static void warmup_goes_over_into_another(void)
{
    fl_net *n = begin();
    const double bounds[] = {100}, values[] = {0.1, 0.01};
    fl_var *after = TEST_LAYER(n, "piecewise_decay",
                               {"boundaries", .n = 1, .floats = bounds},
                               {"values", .n = 2, .floats = values});
    const int64_t before = fl_program_block(n->main, 0)->ops.n;
    fl_var *lr = TEST_LAYER(n, "linear_lr_warmup",
                            {"learning_rate", .n = 1, .var = after},
                            {"warmup_steps", .f = 50}, {"start_lr", .f = 0.1},
                            {"end_lr", .f = 0.4});
    CHECK_STR(lr->name, "learning_rate_warmup");
    /* One counter for both: cast, fill, less_than, not, two branches. */
    CHECK_INT(fl_program_block(n->main, 0)->ops.n, before + 6);
    CHECK_STR(test_ops_text(n, n->main, 3),
              "fill_constant() Out=tmp_3\n"
              "elementwise_div(X=cast_1.tmp_0 Y=tmp_3) Out=tmp_4\n"
              "fill_constant() Out=tmp_5\n"
              "elementwise_mul(X=tmp_4 Y=tmp_5) Out=tmp_6\n"
              "fill_constant() Out=tmp_7\n"
              "elementwise_add(X=tmp_6 Y=tmp_7) Out=tmp_8\n"
              "assign(X=tmp_8) Out=learning_rate_warmup");
    CHECK_STR(test_ops_text(n, n->main, 4),
              "assign(X=learning_rate) Out=learning_rate_warmup");
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"numbers become variables", numbers_become_variables},
    {"variables are combined", variables_are_combined},
    {"unknown signs are refused", unknown_signs_are_refused},
    {"a switch chains its conditions", a_switch_chains_its_conditions},
    {"a switch's default comes after a case", a_default_comes_after_a_case},
    {"exponential decay is Fluid's", exponential_decay_is_fluids},
    {"natural and inverse decay are Fluid's",
     natural_and_inverse_decay_are_fluids},
    {"noam decay starts at one", noam_starts_at_one},
    {"polynomial decay ends or cycles", polynomial_ends_or_cycles},
    {"piecewise decay is a switch", piecewise_is_a_switch},
    {"cosine decay goes by epochs", cosine_goes_by_epochs},
    {"warm-up goes over into another schedule", warmup_goes_over_into_another},
    {0},
};
