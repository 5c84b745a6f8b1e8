/* SPDX-License-Identifier: Apache-2.0 */
#include "build/test_net.h"
#include "check/check.h"

static fl_net *begin(void)
{
    return fl_net_make(fl_check_registry());
}

/* --- names and ops --- */

static void names_count_by_key(void)
{
    fl_arena *a = fl_arena_new();
    fl_names *n = fl_names_new(NULL), *m = fl_names_new("net/");
    CHECK_STR(fl_names_generate(n, a, "fc"), "fc_0");
    CHECK_STR(fl_names_generate(n, a, "fc"), "fc_1");
    CHECK_STR(fl_names_generate(n, a, "fc_0.w"), "fc_0.w_0");
    CHECK_STR(fl_names_generate(m, a, "fc"), "net/fc_0");
    fl_names_free(n);
    fl_names_free(m);
    fl_names_free(NULL);
    fl_arena_free(a);
}

static fl_desc *scale_op(fl_net *n, const char *in, const char *out)
{
    fl_desc *d = fl_net_desc(n, "scale");
    fl_desc_set_in1(d, "X", in);
    fl_desc_set_out1(d, "Out", out);
    return d;
}

static void ops_are_stamped(void)
{
    fl_net *n = begin();
    fl_var *x = NULL;
    CHECK_OK(fl_net_tmp(n, "x_0", FL_F32, &x));
    CHECK_STR(x->name, "x_0.tmp_0");
    CHECK_OK(fl_net_append(n, scale_op(n, x->name, "a")));
    CHECK_INT(test_attr(n->main, -1, "op_role")->i, FL_ROLE_FORWARD);
    CHECK_STR(test_attr(n->main, -1, "op_namescope")->s, "/");
    n->role = FL_ROLE_OPTIMIZE;
    n->scope = "/optimizer/";
    n->role_var[0] = "w";
    n->role_var[1] = "w@GRAD";
    CHECK_OK(fl_net_insert(n, 0, scale_op(n, x->name, "b")));
    CHECK_INT(test_attr(n->main, 0, "op_role")->i, FL_ROLE_OPTIMIZE);
    CHECK_STR(test_attr(n->main, 0, "op_namescope")->s, "/optimizer/");
    CHECK_INT(test_attr(n->main, 0, "op_role_var")->n, 2);
    CHECK_STR(test_attr(n->main, 0, "op_role_var")->strings[1], "w@GRAD");
    fl_desc *d = scale_op(n, x->name, "c");
    fl_desc_set_attr(d, &(fl_attr){"op_role", FL_ATTR_INT, .i = 18});
    CHECK_OK(fl_net_append(n, d));
    CHECK_INT(test_attr(n->main, -1, "op_role")->i, 18);
    fl_net_free(n);
}

static void the_first_failure_stays(void)
{
    fl_net *n = begin();
    CHECK_OK(fl_net_error(n));
    CHECK_INT(fl_net_fail(n, fl_fail(FL_ESHAPE, "first")), FL_ESHAPE);
    CHECK_INT(fl_net_fail(n, fl_fail(FL_EIO, "second")), FL_EIO);
    CHECK_ERR(fl_net_error(n), FL_ESHAPE, "first");
    fl_net_free(n);
}

static void a_net_over_programs_leaves_them(void)
{
    fl_net *n = begin(), *over = fl_net_over(n->main, n->startup, n->names);
    fl_var *v = NULL;
    CHECK_OK(fl_net_tmp(over, "fc_0", FL_F32, &v));
    fl_net_free(over);
    fl_net_free(NULL);
    CHECK_STR(v->name, "fc_0.tmp_0");
    CHECK_OK(fl_net_tmp(n, "fc_0", FL_F32, &v));
    CHECK_STR(v->name, "fc_0.tmp_1");
    fl_net_free(n);
}

/* --- parameters --- */

static fl_err param(fl_net *n, const fl_param_attr *attr, bool bias,
                    fl_dtype dtype, fl_var **out)
{
    const fl_shape w = {2, {13, 4}}, b = {1, {4}};
    return fl_net_param(n, attr, "fc_0", bias, dtype, bias ? &b : &w, NULL,
                        out);
}

static void weights_and_biases_have_defaults(void)
{
    fl_net *n = begin();
    fl_var *w = NULL, *b = NULL;
    n->startup->random_seed = 90;
    n->role = FL_ROLE_OPTIMIZE;
    CHECK_OK(param(n, NULL, false, FL_F32, &w));
    CHECK_OK(param(n, NULL, true, FL_F32, &b));
    CHECK_STR(test_startup_text(n), "fill_constant() Out=fc_0.b_0\n"
                                    "uniform_random() Out=fc_0.w_0");
    CHECK_STR(test_main_text(n), "");
    CHECK_STR(w->name, "fc_0.w_0");
    CHECK_STR(b->name, "fc_0.b_0");
    CHECK(w->persistable && w->param->trainable && w->param->do_model_average);
    CHECK_NEAR(w->param->learning_rate, 1, 0);
    CHECK(w->block->program == n->main);
    const fl_var *started = test_find(n->startup, "fc_0.w_0");
    CHECK(started->persistable && started->param);
    CHECK_NEAR(test_attr(n->startup, 1, "max")->f, 0.594088531, 1e-7);
    CHECK_NEAR(test_attr(n->startup, 1, "min")->f, -0.594088531, 1e-7);
    CHECK_INT(test_attr(n->startup, 1, "seed")->i, 90);
    CHECK_INT(test_attr(n->startup, 1, "op_role")->i, FL_ROLE_FORWARD);
    CHECK_NEAR(test_attr(n->startup, 0, "value")->f, 0, 0);
    fl_net_free(n);
}

static void an_attribute_says_how_a_parameter_is(void)
{
    fl_net *n = begin();
    fl_var *w = NULL;
    char name[] = "emb";
    fl_regularizer l2 = {"l2", .coeff = 0.5f};
    fl_clip clip = {"norm", .max = 3};
    fl_init normal = {"normal", .a = 1, .b = 2, .seed = 7};
    CHECK_OK(param(n,
                   &(fl_param_attr){.name = name,
                                    .init = &normal,
                                    .learning_rate = 0.25f,
                                    .frozen = true,
                                    .no_average = true,
                                    .regularizer = &l2,
                                    .clip = &clip},
                   false, FL_F32, &w));
    memset(name, 0, sizeof name);
    l2.coeff = 0;
    clip.max = 0;
    CHECK_STR(test_startup_text(n), "gaussian_random() Out=emb");
    CHECK_NEAR(test_attr(n->startup, 0, "mean")->f, 1, 0);
    CHECK_NEAR(test_attr(n->startup, 0, "std")->f, 2, 0);
    CHECK_INT(test_attr(n->startup, 0, "seed")->i, 7);
    CHECK_NEAR(w->param->learning_rate, 0.25, 0);
    CHECK(!w->param->trainable && !w->param->do_model_average);
    CHECK_NEAR(w->param->regularizer->coeff, 0.5, 0);
    CHECK_NEAR(w->param->clip->max, 3, 0);
    fl_net_free(n);
}

static void a_name_shares_a_parameter(void)
{
    fl_net *n = begin();
    fl_var *a = NULL, *b = NULL;
    const fl_param_attr shared = {.name = "emb"};
    CHECK_OK(param(n, &shared, false, FL_F32, &a));
    CHECK_OK(param(n, &shared, false, FL_F32, &b));
    CHECK(a == b);
    CHECK_STR(test_startup_text(n), "uniform_random() Out=emb");
    CHECK_ERR(param(n, &shared, true, FL_F32, &b), FL_EINVAL,
              "var \"emb\" is f32[13,4], not f32[4]");
    fl_net_free(n);
}

static void a_normalised_weight_is_made_where_it_is_used(void)
{
    fl_net *n = begin();
    fl_var *w = NULL, *again = NULL;
    const fl_param_attr attr = {
        .name = "w", .weight_norm = true, .weight_norm_dim = 1};
    CHECK_OK(param(n, &attr, false, FL_F32, &w));
    CHECK(!w->param && !w->persistable);
    CHECK_STR(test_shape(n, w), "[13,4]");
    CHECK_STR(test_shape(n, test_find(n->main, "w_v")), "[13,4]");
    CHECK_STR(test_shape(n, test_find(n->main, "w_g")), "[1,4]");
    CHECK_STR(test_startup_text(n),
              "uniform_random() Out=w_v\n"
              "abs(X=w_v) Out=fc_0.weight_norm_abs_0\n"
              "pow(X=fc_0.weight_norm_abs_0) Out=fc_0.weight_norm_pow_0\n"
              "reduce_sum(X=fc_0.weight_norm_pow_0) "
              "Out=fc_0.weight_norm_sum_0\n"
              "pow(X=fc_0.weight_norm_sum_0) Out=w_g");
    const int64_t ops = fl_net_block(n)->ops.n;
    CHECK_OK(param(n, &attr, false, FL_F32, &again));
    CHECK(again != w);
    CHECK_INT(fl_net_block(n)->ops.n, 2 * ops);
    CHECK_INT(fl_program_block(n->startup, 0)->ops.n, 5);
    fl_net_free(n);
}

static void a_bad_parameter_is_refused(void)
{
    fl_net *n = begin();
    fl_var *v = NULL;
    const fl_shape unknown = {2, {-1, 4}}, none = {0}, one = {1, {1}};
    CHECK_ERR(param(n, NULL, false, FL_I64, &v), FL_ETYPE,
              "parameter \"fc_0.w_0\" is int64, but the default initializer "
              "makes floats: give one, such as Constant(0)");
    CHECK_ERR(fl_net_param(n, NULL, "fc_1", false, FL_F32, &unknown, NULL, &v),
              FL_ESHAPE, "parameter \"fc_1.w_0\" is [-1,4], but every");
    CHECK_ERR(fl_net_param(n, NULL, "fc_1", false, FL_F32, &none, NULL, &v),
              FL_ESHAPE, "parameter \"fc_1.w_1\" has no dimensions");
    CHECK_ERR(param(n, &(fl_param_attr){.none = true}, false, FL_F32, &v),
              FL_EINVAL, "fc_0: its weight cannot be left out");
    CHECK_ERR(param(n, &(fl_param_attr){.init = &(fl_init){"magic"}}, false,
                    FL_F32, &v),
              FL_EINVAL,
              "initialiser of \"fc_0.w_1\": there is no kind \"magic\"");
    CHECK_OK(fl_net_global(n, "lr", FL_F32, &one, &(fl_init){"constant"}, &v));
    CHECK_ERR(param(n, &(fl_param_attr){.name = "lr"}, false, FL_F32, &v),
              FL_EINVAL, "parameter \"lr\": a variable of that name exists");
    fl_net_free(n);
}

static void a_global_starts_in_startup(void)
{
    fl_net *n = begin();
    fl_var *v = NULL, *again = NULL;
    const fl_init half = {"constant", .a = 0.5};
    const fl_shape one = {1, {1}};
    CHECK_OK(fl_net_global(n, "learning_rate_0", FL_F32, &one, &half, &v));
    CHECK_OK(fl_net_global(n, "learning_rate_0", FL_F32, &one, &half, &again));
    CHECK(v == again && v->persistable && !v->param);
    CHECK(test_find(n->startup, "learning_rate_0")->persistable);
    CHECK_STR(test_startup_text(n), "fill_constant() Out=learning_rate_0");
    CHECK_NEAR(test_attr(n->startup, 0, "value")->f, 0.5, 0);
    fl_net_free(n);
}

/* --- initialisers --- */

static fl_err start(fl_net *n, const char *name, const fl_init *i, fl_dtype t,
                    fl_shape shape)
{
    fl_var *v = NULL;
    return fl_net_global(n, name, t, &shape, i, &v);
}

static double bound(fl_net *n, const fl_init *i, fl_shape shape,
                    const char *attr)
{
    const char *name = fl_names_generate(n->names, n->arena, "v");
    CHECK_OK(start(n, name, i, FL_F32, shape));
    return test_attr(n->startup, 0, attr)->f;
}

static void fans_follow_the_shape(void)
{
    fl_net *n = begin();
    const fl_shape filter = {4, {8, 3, 5, 5}}, flat = {1, {12}};
    const fl_init xavier = {"xavier"}, msra = {"msra"};
    CHECK_NEAR(bound(n, &xavier, filter, "max"), 0.147709789, 1e-7);
    CHECK_NEAR(bound(n, &xavier, flat, "max"), 0.5, 0);
    CHECK_NEAR(bound(n, &msra, filter, "max"), 0.282842712, 1e-7);
    CHECK_NEAR(bound(n, &(fl_init){"msra", .gaussian = true}, filter, "std"),
               0.163299316, 1e-7);
    CHECK_NEAR(
        bound(n, &(fl_init){"xavier", .fan_in = 4, .fan_out = 2}, flat, "max"),
        1, 0);
    fl_net_free(n);
}

static void bilinear_weights_interpolate(void)
{
    fl_net *n = begin();
    const fl_init bilinear = {"bilinear"};
    CHECK_OK(start(n, "v", &bilinear, FL_F32, (fl_shape){4, {1, 1, 4, 4}}));
    const fl_attr *w = test_attr(n->startup, 0, "fp32_values");
    CHECK_INT(w->n, 16);
    CHECK_NEAR(w->floats[0], 0.0625, 0);
    CHECK_NEAR(w->floats[1], 0.1875, 0);
    CHECK_NEAR(w->floats[5], 0.5625, 0);
    CHECK_ERR(start(n, "u", &bilinear, FL_F32, (fl_shape){2, {4, 4}}),
              FL_ESHAPE, "\"u\": shape is [4,4], expected four dimensions");
    fl_net_free(n);
}

static void an_array_becomes_values(void)
{
    fl_net *n = begin();
    const double at[] = {1.5, 2, -3};
    const fl_shape three = {1, {3}};
    const fl_tensor t = fl_tensor_view(FL_F64, &three, at);
    const fl_init array = {"array", .array = &t};
    CHECK_OK(start(n, "f", &array, FL_F32, three));
    CHECK_NEAR(test_attr(n->startup, 0, "fp32_values")->floats[2], -3, 0);
    CHECK_INT(test_attr(n->startup, 0, "dtype")->i, FL_F32);
    CHECK_OK(start(n, "l", &array, FL_I64, three));
    CHECK_STR(test_startup_text(n),
              "assign_value() Out=numpy_array_init.tmp_0\n"
              "assign_value() Out=f\n"
              "cast(X=numpy_array_init.tmp_0) Out=l");
    CHECK_INT(test_attr(n->startup, 0, "int32_values")->longs[1], 2);
    CHECK_INT(test_attr(n->startup, -1, "out_dtype")->i, FL_I64);
    CHECK_ERR(start(n, "g", &array, FL_F32, (fl_shape){1, {4}}), FL_ESHAPE,
              "of \"g\": the array is [3], the variable [4]");
    CHECK_ERR(start(n, "h", &(fl_init){"array"}, FL_F32, three), FL_EINVAL,
              "of \"h\": no array is given");
    const fl_shape huge = {1, {1 << 21}};
    const fl_tensor lie = fl_tensor_view(FL_F32, &huge, at);
    CHECK_ERR(start(n, "i", &(fl_init){"array", .array = &lie}, FL_F32, huge),
              FL_EINVAL,
              "i: 2097152 values, but a program can hold at most 1048576");
    fl_net_free(n);
}

static void half_floats_are_cast(void)
{
    fl_net *n = begin();
    const fl_init uniform = {"uniform", .a = -2, .b = 2};
    CHECK_OK(start(n, "w", &uniform, FL_F16, (fl_shape){1, {3}}));
    CHECK_STR(test_startup_text(n), "uniform_random() "
                                    "Out=uniform_random.tmp_0\n"
                                    "cast(X=uniform_random.tmp_0) Out=w");
    CHECK_INT(test_find(n->startup, "w")->dtype, FL_F16);
    CHECK(!test_find(n->startup, "uniform_random.tmp_0")->persistable);
    fl_net_free(n);
}

static fl_err own_emit(const fl_init *self, fl_net *n, fl_var *v)
{
    CHECK(v->block->program == n->startup);
    *(int *)self->user += 1;
    fl_desc *d = scale_op(n, v->name, v->name);
    return fl_net_start(n, -1, d);
}

static void an_initialiser_of_ones_own(void)
{
    fl_net *n = begin();
    int calls = 0;
    const fl_init own = {.emit = own_emit, .user = &calls};
    CHECK_OK(start(n, "w", &own, FL_F32, (fl_shape){1, {3}}));
    CHECK_INT(calls, 1);
    CHECK_STR(test_startup_text(n), "scale(X=w) Out=w");
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"names count by key", names_count_by_key},
    {"ops are stamped with role and scope", ops_are_stamped},
    {"the first failure of a net stays", the_first_failure_stays},
    {"a net over programs leaves them", a_net_over_programs_leaves_them},
    {"weights and biases have defaults", weights_and_biases_have_defaults},
    {"an attribute says how a parameter is",
     an_attribute_says_how_a_parameter_is},
    {"a name shares a parameter", a_name_shares_a_parameter},
    {"a normalised weight is made where it is used",
     a_normalised_weight_is_made_where_it_is_used},
    {"a bad parameter is refused", a_bad_parameter_is_refused},
    {"a global starts in startup", a_global_starts_in_startup},
    {"fans follow the shape", fans_follow_the_shape},
    {"bilinear weights interpolate", bilinear_weights_interpolate},
    {"an array becomes values", an_array_becomes_values},
    {"half floats are cast", half_floats_are_cast},
    {"an initialiser of one's own emits", an_initialiser_of_ones_own},
    {0},
};
