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

/* --- the tables --- */

static void every_row_has_a_doc_and_good_defaults(void)
{
    fl_arena *a = fl_arena_new();
    const fl_layer_def *def;
    for (int i = 0; i < fl_layer_count(); i++) {
        def = fl_layer_at(i);
        CHECK(def->doc && strlen(def->doc) > 5);
        CHECK(def->emit || def->op);
        fl_arg_def args[FL_ARGS] = {{0}};
        for (int k = 0; k < FL_ARGS && def->args[k].name; k++) {
            args[k] = def->args[k];
            if (!args[k].value)
                args[k].value = "None";
        }
        fl_bound b; /* reads every default; an assertion tells a bad one */
        CHECK_OK(fl_args_bind(a, def->name, args, NULL, &b));
    }
    CHECK(!fl_layer_at(fl_layer_count()));
    fl_arena_free(a);
}

static void no_name_stands_twice(void)
{
    for (int i = 0; i < fl_layer_count(); i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(fl_layer_at(i)->name, fl_layer_at(j)->name) != 0);
}

static bool is_input(const fl_layer_def *def, const char *arg)
{
    for (int i = 0; i < FL_LAYER_SLOTS && def->in[i].slot; i++)
        if (!strcmp(def->in[i].arg, arg))
            return true;
    return def->into && !strcmp(def->into, arg);
}

static const char *attr_of(const fl_layer_def *def, const char *arg)
{
    for (int i = 0; i < FL_LAYER_SLOTS && def->map[i].arg; i++)
        if (!strcmp(def->map[i].arg, arg))
            return def->map[i].attr;
    return strcmp(arg, "name") && strcmp(arg, "act") ? arg : NULL;
}

static void check_row(const fl_layer_def *def, const fl_op_def *op)
{
    for (int i = 0; i < FL_LAYER_SLOTS && def->in[i].slot; i++) {
        CHECK(fl_op_slot_in(op, def->in[i].slot) >= 0);
        CHECK(fl_arg_known(def->args, def->in[i].arg));
    }
    for (int i = 0; i < FL_LAYER_SLOTS && def->out[i].slot; i++)
        CHECK(fl_op_slot_out(op, def->out[i].slot) >= 0);
    for (int i = 0; i < FL_ARGS && def->args[i].name; i++) {
        const char *attr = attr_of(def, def->args[i].name);
        if (is_input(def, def->args[i].name) || !attr)
            continue;
        if (fl_op_attr(op, attr) < 0)
            print_error("layer %s: op %s has no attribute %s\n", def->name,
                        op->type, attr);
        CHECK(fl_op_attr(op, attr) >= 0);
    }
}

static void rows_agree_with_their_operators(void)
{
    for (int i = 0; i < fl_layer_count(); i++) {
        const fl_layer_def *def = fl_layer_at(i);
        const fl_op_def *op = NULL;
        if (!def->op)
            continue;
        CHECK_OK(fl_registry_get(fl_check_registry(), def->op, &op));
        check_row(def, op);
    }
}

static void fit_a_line_is_fluids(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 1, (int64_t[]){13});
    fl_var *y = test_data(n, "y", FL_F32, 1, (int64_t[]){1});
    fl_var *p = TEST_LAYER(n, "fc", {"input", .var = x}, {"size", .i = 1});
    fl_var *cost = TEST_LAYER(n, "square_error_cost", {"input", .var = p},
                              {"label", .var = y});
    TEST_LAYER(n, "mean", {"x", .var = cost});
    char *main = fl_program_text(n->main), *start = fl_program_text(n->startup);
    CHECK_STR(
        main,
        "block 0\n"
        "  data x: f32[-1,13]\n"
        "  data y: f32[-1,1]\n"
        "  param fc_0.w_0: f32[13,1]\n"
        "  var fc_0.tmp_0: f32[-1,1]\n"
        "  param fc_0.b_0: f32[1]\n"
        "  var fc_0.tmp_1: f32[-1,1]\n"
        "  var square_error_cost_0.tmp_0: f32[-1,1]\n"
        "  var square_error_cost_0.tmp_1: f32[-1,1]\n"
        "  var mean_0.tmp_0: f32[1]\n"
        "  mul(X=x, Y=fc_0.w_0) -> Out=fc_0.tmp_0 "
        "{x_num_col_dims=1, y_num_col_dims=1, op_role=0, op_namescope=\"/\"}\n"
        "  elementwise_add(X=fc_0.tmp_0, Y=fc_0.b_0) -> Out=fc_0.tmp_1 "
        "{axis=1, op_role=0, op_namescope=\"/\"}\n"
        "  elementwise_sub(X=fc_0.tmp_1, Y=y) -> "
        "Out=square_error_cost_0.tmp_0 {op_role=0, op_namescope=\"/\", "
        "axis=-1}\n"
        "  square(X=square_error_cost_0.tmp_0) -> "
        "Out=square_error_cost_0.tmp_1 {op_role=0, op_namescope=\"/\"}\n"
        "  mean(X=square_error_cost_0.tmp_1) -> Out=mean_0.tmp_0 "
        "{op_role=0, op_namescope=\"/\"}\n");
    CHECK_STR(
        start,
        "block 0\n"
        "  param fc_0.w_0: f32[13,1]\n"
        "  param fc_0.b_0: f32[1]\n"
        "  fill_constant() -> Out=fc_0.b_0 {shape=[1l], value=0.0, dtype=5, "
        "op_role=0, op_namescope=\"/\", force_cpu=false}\n"
        "  uniform_random() -> Out=fc_0.w_0 {seed=0, shape=[13l, 1l], "
        "min=-0.65465367, max=0.65465367, dtype=5, op_role=0, "
        "op_namescope=\"/\"}\n");
    fl_mem_free(main);
    fl_mem_free(start);
    fl_net_free(n);
}

/* --- calls --- */

static void an_operator_is_a_layer(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "leaky_relu", {"x", .var = x8(n)}, {"alpha", .f = 0.5});
    TEST_LAYER(n, "relu", {"x", .var = x8(n)}, {"name", .s = "act"});
    CHECK_STR(test_main_text(n), "leaky_relu(X=x) Out=leaky_relu_0.tmp_0\n"
                                 "relu(X=x) Out=act.tmp_0");
    CHECK_NEAR(test_attr(n->main, 0, "alpha")->f, 0.5, 0);
    CHECK_STR(test_shape(n, test_find(n->main, "act.tmp_0")), "[-1,8]");
    fl_net_free(n);
}

static void an_operators_attributes_are_arguments(void)
{
    fl_arena *a = fl_arena_new();
    fl_layer_def def;
    const fl_registry *r = fl_check_registry();
    CHECK(fl_layer_of_op(a, fl_registry_find(r, "stanh"), &def));
    CHECK_STR(def.name, "stanh");
    CHECK_STR(def.args[0].name, "x");
    CHECK(!def.args[0].value);
    CHECK_STR(def.args[1].name, "scale_a");
    CHECK_STR(def.args[2].name, "scale_b");
    CHECK_STR(def.args[2].value, "1.7159");
    CHECK_STR(def.args[3].name, "name");
    CHECK_STR(def.args[3].value, "None");
    CHECK(!fl_layer_of_op(a, fl_registry_find(r, "elementwise_add"), &def));
    CHECK(!fl_layer_of_op(a, fl_registry_find(r, "concat"), &def));
    fl_arena_free(a);
}

static void a_failure_stays_and_stops_the_rest(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n);
    CHECK(!fl_layer(n, "fcc", NULL));
    CHECK_ERR(fl_net_error(n), FL_ENOENT,
              "unknown layer \"fcc\"; did you mean \"fc\"?");
    CHECK(!fl_layer(n, "relu", (fl_arg[]){{"x", .var = x}, {0}}));
    CHECK_INT(
        fl_layer_all(n, "relu", (fl_arg[]){{"x", .var = x}, {0}}, 0, NULL), -1);
    CHECK_STR(test_main_text(n), "");
    CHECK_ERR(fl_net_error(n), FL_ENOENT, "unknown layer \"fcc\"");
    fl_net_free(n);
}

static void errors_name_the_layer(void)
{
    fl_net *n = begin();
    fl_var *v = NULL, *x = x8(n);
    CHECK_ERR(fl_layer_get(n, "relu", NULL, &v), FL_EINVAL,
              "relu: argument \"x\" is missing (variable)");
    CHECK_ERR(
        fl_layer_get(n, "mean", (fl_arg[]){{"x", .var = x}, {"axis"}, {0}}, &v),
        FL_EINVAL, "mean: unknown argument \"axis\"");
    CHECK_ERR(fl_layer_get(n, "fc",
                           (fl_arg[]){{"input", .var = x},
                                      {"size", .i = 2},
                                      {"act", .s = "relo"},
                                      {0}},
                           &v),
              FL_ENOENT, "unknown op \"relo\"; did you mean \"relu\"?");
    CHECK_ERR(fl_layer_get(n, "elementwise_add",
                           (fl_arg[]){{"x", .var = x},
                                      {"y", .var = test_data(n, "y", FL_F32, 1,
                                                             (int64_t[]){7})},
                                      {0}},
                           &v),
              FL_ESHAPE, "elementwise_add: ");
    CHECK_OK(fl_net_error(n)); /* calls of this kind leave the net alone */
    fl_net_free(n);
}

static void the_role_is_on_every_op(void)
{
    fl_net *n = begin();
    n->role = FL_ROLE_OPTIMIZE;
    TEST_LAYER(n, "fc", {"input", .var = x8(n)}, {"size", .i = 1});
    CHECK_INT(test_attr(n->main, 0, "op_role")->i, FL_ROLE_OPTIMIZE);
    CHECK_INT(test_attr(n->main, 1, "op_role")->i, FL_ROLE_OPTIMIZE);
    CHECK_INT(test_attr(n->startup, 0, "op_role")->i, FL_ROLE_FORWARD);
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"every layer has a doc and good defaults",
     every_row_has_a_doc_and_good_defaults},
    {"no layer stands twice", no_name_stands_twice},
    {"rows agree with their operators", rows_agree_with_their_operators},
    {"fit a line is Fluid's", fit_a_line_is_fluids},
    {"an operator is a layer", an_operator_is_a_layer},
    {"an operator's attributes are arguments",
     an_operators_attributes_are_arguments},
    {"a failure stays and stops the rest", a_failure_stays_and_stops_the_rest},
    {"errors name the layer", errors_name_the_layer},
    {"the role is on every op", the_role_is_on_every_op},
    {0},
};
