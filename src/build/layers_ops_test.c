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

static fl_var *y8(fl_net *n)
{
    return test_data(n, "y", FL_F32, 1, (int64_t[]){8});
}

/* --- math --- */

static void a_name_is_the_outputs_where_fluid_does_so(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n);
    fl_var *w = TEST_LAYER(n, "create_parameter",
                           {"shape", .n = 2, .ints = (int64_t[]){8, 3}},
                           {"dtype", .i = FL_F32}, {"name", .s = "w"});
    TEST_LAYER(n, "mean", {"x", .var = x}, {"name", .s = "cost"});
    TEST_LAYER(n, "mean", {"x", .var = x});
    TEST_LAYER(n, "scale", {"x", .var = x}, {"scale", .f = 2},
               {"act", .s = "relu"}, {"name", .s = "twice"});
    TEST_LAYER(n, "mul", {"x", .var = x}, {"y", .var = w}, {"name", .s = "p"});
    TEST_LAYER(n, "clip", {"x", .var = x}, {"min", .f = -1}, {"max", .f = 1},
               {"name", .s = "held"});
    TEST_LAYER(n, "clip_by_norm", {"x", .var = x}, {"max_norm", .f = 1});
    TEST_LAYER(n, "matmul", {"x", .var = x}, {"y", .var = w},
               {"name", .s = "q"});
    CHECK_STR(test_main_text(n), "mean(X=x) Out=cost\n"
                                 "mean(X=x) Out=mean_0.tmp_0\n"
                                 "scale(X=x) Out=twice\n"
                                 "relu(X=twice) Out=twice.tmp_0\n"
                                 "mul(X=x Y=w) Out=p\n"
                                 "clip(X=x) Out=held\n"
                                 "clip_by_norm(X=x) Out=clip_by_norm_0.tmp_0\n"
                                 "matmul(X=x Y=w) Out=q.tmp_0");
    CHECK_NEAR(test_attr(n->main, 2, "scale")->f, 2, 0);
    CHECK_NEAR(test_attr(n->main, 5, "min")->f, -1, 0);
    fl_net_free(n);
}

static void elementwise_layers_have_axis_and_act(void)
{
    fl_net *n = begin();
    static const char *const signs[] = {"add", "sub", "mul", "div",
                                        "max", "min", "pow"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        TEST_LAYER(n, fl_arena_printf(n->arena, "elementwise_%s", signs[i]),
                   {"x", .var = x8(n)}, {"y", .var = y8(n)});
    TEST_LAYER(n, "elementwise_add", {"x", .var = x8(n)}, {"y", .var = y8(n)},
               {"axis", .i = 0}, {"act", .s = "tanh"});
    const fl_block *b = fl_program_block(n->main, 0);
    CHECK_INT(b->ops.n, 9);
    CHECK_STR(b->ops.at[6]->desc.type, "elementwise_pow");
    CHECK_STR(fl_desc_out1(&b->ops.at[6]->desc, "Out"),
              "elementwise_pow_0.tmp_0");
    CHECK_INT(test_attr(n->main, 0, "axis")->i, -1);
    CHECK_INT(test_attr(n->main, 7, "axis")->i, 0);
    CHECK_STR(fl_desc_in1(&b->ops.at[8]->desc, "X"), "elementwise_add_1.tmp_0");
    CHECK_STR(fl_desc_out1(&b->ops.at[8]->desc, "Out"),
              "elementwise_add_1.tmp_1");
    fl_net_free(n);
}

static void matmul_maps_its_arguments(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "matmul", {"x", .var = x8(n)}, {"y", .var = y8(n)},
               {"transpose_y", .b = true}, {"alpha", .f = 0.5});
    CHECK(!test_attr(n->main, 0, "transpose_X")->b);
    CHECK(test_attr(n->main, 0, "transpose_Y")->b);
    CHECK_NEAR(test_attr(n->main, 0, "alpha")->f, 0.5, 0);
    fl_net_free(n);
}

static void reductions_without_dim_take_all(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 2, (int64_t[]){4, 5});
    fl_var *all = TEST_LAYER(n, "reduce_sum", {"input", .var = x});
    CHECK_STR(all->name, "reduce_sum_0.tmp_0");
    CHECK(test_attr(n->main, 0, "reduce_all")->b);
    CHECK_INT(test_attr(n->main, 0, "dim")->n, 1);
    CHECK_INT(test_attr(n->main, 0, "dim")->longs[0], 0);
    CHECK_STR(test_shape(n, all), "[1]");
    fl_var *some = TEST_LAYER(n, "reduce_mean", {"input", .var = x},
                              {"dim", .i = -1}, {"keep_dim", .b = true});
    CHECK(!test_attr(n->main, 1, "reduce_all")->b);
    CHECK_STR(test_shape(n, some), "[-1,4,1]");
    some = TEST_LAYER(n, "reduce_max", {"input", .var = x},
                      {"dim", .n = 2, .ints = (int64_t[]){1, 2}});
    CHECK_STR(test_shape(n, some), "[-1]");
    TEST_LAYER(n, "reduce_min", {"input", .var = x});
    TEST_LAYER(n, "reduce_prod", {"input", .var = x});
    fl_net_free(n);
}

static void sums_write_where_told(void)
{
    fl_net *n = begin();
    fl_var *in[] = {x8(n), y8(n)};
    fl_var *out = TEST_LAYER(n, "sum", {"x", .n = 2, .vars = in});
    TEST_LAYER(n, "sums", {"input", .n = 2, .vars = in});
    TEST_LAYER(n, "sums", {"input", .n = 2, .vars = in}, {"out", .var = out});
    TEST_LAYER(n, "_scale", {"x", .var = in[0]}, {"scale", .f = 2},
               {"out", .var = out});
    TEST_LAYER(n, "_scale", {"x", .var = in[0]});
    CHECK_STR(test_main_text(n), "sum(X=x,y) Out=sum_0.tmp_0\n"
                                 "sum(X=x,y) Out=sum_1.tmp_0\n"
                                 "sum(X=x,y) Out=sum_0.tmp_0\n"
                                 "scale(X=x) Out=sum_0.tmp_0\n"
                                 "scale(X=x) Out=scale_1.tmp_0");
    fl_net_free(n);
}

static void comparisons_and_logic_give_bools(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n), *y = y8(n);
    fl_var *lt = TEST_LAYER(n, "less_than", {"x", .var = x}, {"y", .var = y},
                            {"force_cpu", .b = false});
    fl_var *eq = TEST_LAYER(n, "equal", {"x", .var = x}, {"y", .var = y});
    TEST_LAYER(n, "greater_equal", {"x", .var = x}, {"y", .var = y},
               {"cond", .var = eq});
    TEST_LAYER(n, "logical_and", {"x", .var = lt}, {"y", .var = eq},
               {"name", .s = "both"});
    TEST_LAYER(n, "logical_not", {"x", .var = lt}, {"out", .var = eq});
    CHECK_STR(test_main_text(n), "less_than(X=x Y=y) Out=less_than_0.tmp_0\n"
                                 "equal(X=x Y=y) Out=equal_0.tmp_0\n"
                                 "greater_equal(X=x Y=y) Out=equal_0.tmp_0\n"
                                 "logical_and(X=less_than_0.tmp_0 "
                                 "Y=equal_0.tmp_0) Out=both\n"
                                 "logical_not(X=less_than_0.tmp_0) "
                                 "Out=equal_0.tmp_0");
    CHECK_INT(lt->dtype, FL_BOOL);
    CHECK(lt->stop_gradient && eq->stop_gradient);
    CHECK(!test_attr(n->main, 0, "force_cpu")->b);
    fl_net_free(n);
}

/* --- shapes --- */

static void shape_layers_emit_the_second_kind(void)
{
    fl_net *n = begin();
    fl_var *x = test_data(n, "x", FL_F32, 2, (int64_t[]){1, 6});
    fl_var *r = TEST_LAYER(n, "reshape", {"x", .var = x},
                           {"shape", .n = 3, .ints = (int64_t[]){0, 2, 3}},
                           {"act", .s = "relu"});
    TEST_LAYER(n, "transpose", {"x", .var = x},
               {"perm", .n = 3, .ints = (int64_t[]){1, 0, 2}});
    TEST_LAYER(n, "squeeze", {"input", .var = x}, {"axes", .i = 1});
    TEST_LAYER(n, "unsqueeze", {"input", .var = x}, {"axes", .i = 1});
    TEST_LAYER(n, "flatten", {"x", .var = x}, {"axis", .i = 2});
    CHECK_STR(test_main_text(n),
              "reshape2(X=x) Out=reshape2_0.tmp_0 XShape=reshape2_0.tmp_1\n"
              "relu(X=reshape2_0.tmp_0) Out=reshape2_0.tmp_2\n"
              "transpose2(X=x) Out=transpose_0.tmp_0 "
              "XShape=transpose_0.tmp_1\n"
              "squeeze2(X=x) Out=squeeze_0.tmp_0 XShape=squeeze_0.tmp_1\n"
              "unsqueeze2(X=x) Out=unsqueeze_0.tmp_0 "
              "XShape=unsqueeze_0.tmp_1\n"
              "flatten2(X=x) Out=flatten_0.tmp_0 XShape=flatten_0.tmp_1");
    CHECK_STR(test_shape(n, r), "[-1,2,3]");
    CHECK_INT(test_attr(n->main, 2, "axis")->longs[1], 0);
    CHECK_STR(test_shape(n, test_find(n->main, "transpose_0.tmp_0")),
              "[1,-1,6]");
    fl_net_free(n);
}

static void reshape_in_place_writes_its_input(void)
{
    fl_net *n = begin();
    fl_var *x = TEST_LAYER(n, "relu", {"x", .var = x8(n)});
    fl_var *y = TEST_LAYER(n, "reshape", {"x", .var = x},
                           {"shape", .n = 3, .ints = (int64_t[]){-1, 4, 2}},
                           {"inplace", .b = true});
    CHECK(x == y);
    CHECK_STR(test_shape(n, x), "[-1,4,2]");
    fl_net_free(n);
}

static void split_returns_every_part(void)
{
    fl_net *n = begin();
    fl_var *x = x8(n), *part[4] = {0};
    CHECK_INT(
        fl_layer_all(
            n, "split",
            (fl_arg[]){{"input", .var = x}, {"num_or_sections", .i = 4}, {0}},
            4, part),
        4);
    CHECK_STR(part[3]->name, "split_0.tmp_3");
    CHECK_STR(test_shape(n, part[3]), "[-1,2]");
    CHECK_INT(test_attr(n->main, 0, "axis")->i, 1);
    CHECK_INT(test_attr(n->main, 0, "num")->i, 4);
    const int64_t sections[] = {3, 5};
    CHECK_INT(
        fl_layer_all(n, "split",
                     (fl_arg[]){{"input", .var = x},
                                {"num_or_sections", .n = 2, .ints = sections},
                                {"dim", .i = 1},
                                {0}},
                     1, part),
        2);
    CHECK_INT(test_attr(n->main, 1, "num")->i, 0);
    CHECK_STR(test_shape(n, test_find(n->main, "split_1.tmp_1")), "[-1,5]");
    CHECK_ERR(
        fl_layer_get(
            n, "split",
            (fl_arg[]){{"input", .var = x}, {"num_or_sections", .i = 0}, {0}},
            part),
        FL_EINVAL, "split: 0 parts, expected 1 to 4096");
    fl_net_free(n);
}

static void rows_are_joined_and_picked(void)
{
    fl_net *n = begin();
    fl_var *in[] = {x8(n), y8(n)};
    fl_var *ids = test_data(n, "ids", FL_I64, 1, (int64_t[]){1});
    TEST_LAYER(n, "concat", {"input", .n = 2, .vars = in}, {"axis", .i = 1});
    TEST_LAYER(n, "stack", {"x", .n = 2, .vars = in}, {"axis", .i = 1});
    TEST_LAYER(n, "slice", {"input", .var = in[0]}, {"axes", .i = 1},
               {"starts", .i = 2}, {"ends", .i = 5});
    TEST_LAYER(
        n, "gather", {"input", .var = in[0]},
        {"index", .var = test_data(n, "index", FL_I32, 1, (int64_t[]){-1})});
    TEST_LAYER(n, "expand", {"x", .var = in[0]},
               {"expand_times", .n = 2, .ints = (int64_t[]){1, 3}});
    fl_var *hot =
        TEST_LAYER(n, "one_hot", {"input", .var = ids}, {"depth", .i = 10});
    TEST_LAYER(n, "shape", {"input", .var = in[0]});
    CHECK_STR(test_main_text(n), "concat(X=x,y) Out=concat_0.tmp_0\n"
                                 "stack(X=x,y) Y=stack_0.tmp_0\n"
                                 "slice(Input=x) Out=slice_0.tmp_0\n"
                                 "gather(X=x Index=index) Out=gather_0.tmp_0\n"
                                 "expand(X=x) Out=expand_0.tmp_0\n"
                                 "one_hot(X=ids) Out=one_hot_0.tmp_0\n"
                                 "shape(Input=x) Out=shape_0.tmp_0");
    CHECK_STR(test_shape(n, test_find(n->main, "concat_0.tmp_0")), "[-1,16]");
    CHECK_STR(test_shape(n, test_find(n->main, "slice_0.tmp_0")), "[-1,3]");
    CHECK_STR(test_shape(n, test_find(n->main, "expand_0.tmp_0")), "[-1,24]");
    CHECK_STR(test_shape(n, hot), "[-1,10]");
    CHECK(hot->stop_gradient);
    fl_net_free(n);
}

/* --- tensors --- */

static void fills_stop_gradients(void)
{
    fl_net *n = begin();
    const int64_t dim[] = {2, 3}, batch[] = {-1, 3};
    fl_var *a = TEST_LAYER(n, "fill_constant", {"shape", .n = 2, .ints = dim},
                           {"dtype", .i = FL_I64}, {"value", .f = 7});
    TEST_LAYER(n, "zeros", {"shape", .n = 2, .ints = dim},
               {"dtype", .i = FL_F32});
    TEST_LAYER(n, "ones", {"shape", .n = 2, .ints = dim},
               {"dtype", .i = FL_F32});
    fl_var *b =
        TEST_LAYER(n, "fill_constant_batch_size_like", {"input", .var = x8(n)},
                   {"shape", .n = 2, .ints = batch}, {"dtype", .i = FL_F32},
                   {"value", .f = 0.5});
    TEST_LAYER(n, "zeros_like", {"x", .var = x8(n)}, {"out", .var = b});
    CHECK_STR(test_main_text(n), "fill_constant() Out=fill_constant_0.tmp_0\n"
                                 "fill_constant() Out=fill_constant_1.tmp_0\n"
                                 "fill_constant() Out=fill_constant_2.tmp_0\n"
                                 "fill_constant_batch_size_like(Input=x) "
                                 "Out=fill_constant_batch_size_like_0.tmp_0\n"
                                 "fill_zeros_like(X=x) "
                                 "Out=fill_constant_batch_size_like_0.tmp_0");
    CHECK(a->stop_gradient && b->stop_gradient);
    CHECK_INT(a->dtype, FL_I64);
    CHECK_STR(test_shape(n, a), "[2,3]");
    CHECK_NEAR(test_attr(n->main, 2, "value")->f, 1, 0);
    fl_net_free(n);
}

static void assign_takes_variables_and_arrays(void)
{
    fl_net *n = begin();
    const float f[] = {1.5f, 2};
    const int32_t i[] = {3, -4};
    const int64_t l[] = {5, 6};
    const fl_shape two = {1, {2}};
    fl_tensor t = fl_tensor_view(FL_F32, &two, f);
    fl_var *v = TEST_LAYER(n, "assign", {"input", .var = x8(n)});
    TEST_LAYER(n, "assign", {"input", .var = x8(n)}, {"output", .var = v});
    TEST_LAYER(n, "assign", {"input", .n = 1, .tensor = &t});
    t = fl_tensor_view(FL_I32, &two, i);
    TEST_LAYER(n, "assign", {"input", .n = 1, .tensor = &t});
    CHECK_STR(test_main_text(n), "assign(X=x) Out=assign_0.tmp_0\n"
                                 "assign(X=x) Out=assign_0.tmp_0\n"
                                 "assign_value() Out=assign_2.tmp_0\n"
                                 "assign_value() Out=assign_3.tmp_0");
    CHECK_NEAR(test_attr(n->main, 2, "fp32_values")->floats[0], 1.5, 0);
    CHECK_INT(test_attr(n->main, 3, "int32_values")->longs[1], -4);
    t = fl_tensor_view(FL_I64, &two, l);
    CHECK_ERR(fl_layer_get(n, "assign",
                           (fl_arg[]){{"input", .n = 1, .tensor = &t}, {0}},
                           &v),
              FL_EINVAL, "assign: the array is i64, expected f32 or i32");
    fl_net_free(n);
}

static void variables_are_made_by_hand(void)
{
    fl_net *n = begin();
    const fl_init seven = {"constant", .a = 7};
    fl_var *t = TEST_LAYER(n, "create_tensor", {"dtype", .i = FL_F32});
    fl_var *p = TEST_LAYER(n, "create_parameter", {"shape", .i = 3},
                           {"dtype", .i = FL_I64},
                           {"default_initializer", .init = &seven});
    fl_var *b = TEST_LAYER(n, "create_parameter", {"shape", .i = 3},
                           {"dtype", .i = FL_F32}, {"is_bias", .b = true});
    fl_var *g = TEST_LAYER(n, "create_global_var", {"shape", .i = 1},
                           {"value", .f = 0.5}, {"dtype", .i = FL_F32});
    fl_var *lr = TEST_LAYER(n, "create_global_var", {"shape", .i = 1},
                            {"value", .f = 0.5}, {"dtype", .i = FL_F32},
                            {"persistable", .b = true}, {"name", .s = "lr"});
    CHECK_STR(t->name, "create_tensor_0");
    CHECK_STR(p->name, "create_parameter_0.w_0");
    CHECK_STR(b->name, "create_parameter_1.b_0");
    CHECK_STR(g->name, "_generated_var_0");
    CHECK_STR(lr->name, "lr");
    CHECK(p->param && !g->persistable && lr->persistable && g->stop_gradient);
    CHECK_STR(test_startup_text(n), "fill_constant() Out=lr\n"
                                    "fill_constant() Out=_generated_var_0\n"
                                    "fill_constant() "
                                    "Out=create_parameter_1.b_0\n"
                                    "fill_constant() "
                                    "Out=create_parameter_0.w_0");
    fl_net_free(n);
}

static void cast_knows_both_dtypes(void)
{
    fl_net *n = begin();
    fl_var *y =
        TEST_LAYER(n, "cast", {"x", .var = x8(n)}, {"dtype", .i = FL_I64});
    CHECK_STR(y->name, "cast_0.tmp_0");
    CHECK_INT(y->dtype, FL_I64);
    CHECK_INT(test_attr(n->main, 0, "in_dtype")->i, FL_F32);
    CHECK_INT(test_attr(n->main, 0, "out_dtype")->i, FL_I64);
    fl_net_free(n);
}

/* --- sequences --- */

static void sequence_pools_are_upper_case(void)
{
    fl_net *n = begin();
    fl_var *x = TEST_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = 4},
                           {"lod_level", .i = 1});
    fl_var *y = TEST_LAYER(n, "sequence_pool", {"input", .var = x},
                           {"pool_type", .s = "max"});
    TEST_LAYER(n, "sequence_first_step", {"input", .var = x});
    TEST_LAYER(n, "sequence_last_step", {"input", .var = x});
    CHECK_STR(test_main_text(n), "sequence_pool(X=x) Out=sequence_pool_0.tmp_0 "
                                 "MaxIndex=sequence_pool_0.tmp_1\n"
                                 "sequence_pool(X=x) Out=sequence_pool_1.tmp_0 "
                                 "MaxIndex=sequence_pool_1.tmp_1\n"
                                 "sequence_pool(X=x) Out=sequence_pool_2.tmp_0 "
                                 "MaxIndex=sequence_pool_2.tmp_1");
    CHECK_STR(test_attr(n->main, 0, "pooltype")->s, "MAX");
    CHECK_STR(test_attr(n->main, 1, "pooltype")->s, "FIRST");
    CHECK_STR(test_attr(n->main, 2, "pooltype")->s, "LAST");
    CHECK_INT(y->lod_level, 0);
    CHECK(test_find(n->main, "sequence_pool_0.tmp_1")->stop_gradient);
    CHECK(!test_find(n->main, "sequence_pool_1.tmp_1")->stop_gradient);
    fl_net_free(n);
}

/* --- metrics --- */

static void accuracy_is_a_topk_and_a_count(void)
{
    fl_net *n = begin();
    fl_var *label = test_data(n, "label", FL_I64, 1, (int64_t[]){1});
    fl_var *a = TEST_LAYER(n, "accuracy", {"input", .var = x8(n)},
                           {"label", .var = label}, {"k", .i = 5});
    CHECK_STR(test_main_text(n),
              "top_k(X=x) Out=top_k_0.tmp_0 Indices=top_k_0.tmp_1\n"
              "accuracy(Out=top_k_0.tmp_0 Indices=top_k_0.tmp_1 Label=label) "
              "Accuracy=accuracy_0.tmp_0 Correct=accuracy_0.tmp_1 "
              "Total=accuracy_0.tmp_2");
    CHECK_INT(test_attr(n->main, 0, "k")->i, 5);
    CHECK(test_find(n->main, "top_k_0.tmp_0")->stop_gradient);
    CHECK_STR(test_shape(n, a), "[1]");
    fl_net_free(n);
}

static void add_auc(fl_net *n, int64_t steps, fl_var *out[6])
{
    fl_var *p = test_data(n, "p", FL_F32, 1, (int64_t[]){2});
    fl_var *label = test_data(n, "label", FL_I64, 1, (int64_t[]){1});
    CHECK_INT(fl_layer_all(n, "auc",
                           (fl_arg[]){{"input", .var = p},
                                      {"label", .var = label},
                                      {"num_thresholds", .i = 100},
                                      {"slide_steps", .i = steps},
                                      {0}},
                           6, out),
              6);
}

static void auc_counts_twice(void)
{
    fl_net *n = begin();
    fl_var *out[6] = {0};
    add_auc(n, 20, out);
    CHECK_STR(test_main_text(n),
              "auc(Predict=p Label=label StatPos=_generated_var_0 "
              "StatNeg=_generated_var_1) AUC=auc_0.tmp_1 "
              "StatPosOut=_generated_var_0 StatNegOut=_generated_var_1\n"
              "auc(Predict=p Label=label StatPos=_generated_var_2 "
              "StatNeg=_generated_var_3) AUC=auc_0.tmp_0 "
              "StatPosOut=_generated_var_2 StatNegOut=_generated_var_3");
    CHECK_STR(out[0]->name, "auc_0.tmp_0");
    CHECK_STR(out[1]->name, "auc_0.tmp_1");
    CHECK_STR(test_shape(n, out[2]), "[20,101]");
    CHECK_STR(test_shape(n, out[4]), "[1,101]");
    CHECK(out[2]->persistable && out[2]->dtype == FL_I64);
    CHECK_INT(out[0]->dtype, FL_F64);
    CHECK_INT(test_attr(n->main, 0, "slide_steps")->i, 20);
    CHECK_INT(test_attr(n->main, 1, "slide_steps")->i, 0);
    fl_net_free(n);
}

static void auc_without_slide_steps_counts_all_batches(void)
{
    fl_net *n = begin();
    fl_var *out[6] = {0};
    add_auc(n, 0, out);
    CHECK_STR(test_shape(n, out[2]), "[1,101]");
    fl_net_free(n);
}

/* --- control --- */

static void a_counter_goes_in_front_and_is_shared(void)
{
    fl_net *n = begin();
    TEST_LAYER(n, "relu", {"x", .var = x8(n)});
    fl_var *a = TEST_LAYER(n, "autoincreased_step_counter", {"begin", .i = 5},
                           {"step", .i = 2});
    fl_var *b = fl_layer(n, "autoincreased_step_counter", NULL);
    CHECK(a == b && a->persistable && a->stop_gradient);
    CHECK_STR(test_main_text(n), "increment(X=@STEP_COUNTER@) "
                                 "Out=@STEP_COUNTER@\n"
                                 "relu(X=x) Out=relu_0.tmp_0");
    CHECK_NEAR(test_attr(n->main, 0, "step")->f, 2, 0);
    CHECK_NEAR(test_attr(n->startup, 0, "value")->f, 4, 0);
    CHECK_INT(a->dtype, FL_I64);
    fl_net_free(n);
}

static void increment_is_in_place_unless_told(void)
{
    fl_net *n = begin();
    fl_var *x =
        TEST_LAYER(n, "zeros", {"shape", .i = 1}, {"dtype", .i = FL_F32});
    CHECK(TEST_LAYER(n, "increment", {"x", .var = x}, {"value", .f = 2}) == x);
    CHECK_STR(
        TEST_LAYER(n, "increment", {"x", .var = x}, {"in_place", .b = false})
            ->name,
        "increment_1.tmp_0");
    fl_net_free(n);
}

static void values_are_looked_at(void)
{
    fl_net *n = begin();
    fl_var *e = TEST_LAYER(n, "is_empty", {"x", .var = x8(n)});
    TEST_LAYER(n, "isfinite", {"x", .var = x8(n)});
    TEST_LAYER(n, "Print", {"input", .var = x8(n)}, {"message", .s = "x is"},
               {"print_phase", .s = "forward"});
    CHECK_STR(test_main_text(n), "is_empty(X=x) Out=is_empty_0.tmp_0\n"
                                 "isfinite(X=x) Out=isfinite_0.tmp_0\n"
                                 "print(In=x) Out=print_0.tmp_0");
    CHECK(e->stop_gradient);
    CHECK_STR(test_attr(n->main, 2, "message")->s, "x is");
    CHECK_STR(test_attr(n->main, 2, "print_phase")->s, "FORWARD");
    fl_net_free(n);
}

const fl_test fl_tests[] = {
    {"a name is the output's where Fluid does so",
     a_name_is_the_outputs_where_fluid_does_so},
    {"elementwise layers have axis and act",
     elementwise_layers_have_axis_and_act},
    {"matmul maps its arguments", matmul_maps_its_arguments},
    {"reductions without dim take all", reductions_without_dim_take_all},
    {"sums write where told", sums_write_where_told},
    {"comparisons and logic give bools", comparisons_and_logic_give_bools},
    {"shape layers emit the second kind", shape_layers_emit_the_second_kind},
    {"reshape in place writes its input", reshape_in_place_writes_its_input},
    {"split returns every part", split_returns_every_part},
    {"rows are joined and picked", rows_are_joined_and_picked},
    {"fills stop gradients", fills_stop_gradients},
    {"assign takes variables and arrays", assign_takes_variables_and_arrays},
    {"variables are made by hand", variables_are_made_by_hand},
    {"cast knows both dtypes", cast_knows_both_dtypes},
    {"sequence pools are upper case", sequence_pools_are_upper_case},
    {"accuracy is a topk and a count", accuracy_is_a_topk_and_a_count},
    {"auc counts twice", auc_counts_twice},
    {"auc without slide_steps counts all batches",
     auc_without_slide_steps_counts_all_batches},
    {"a counter goes in front and is shared",
     a_counter_goes_in_front_and_is_shared},
    {"increment is in place unless told", increment_is_in_place_unless_told},
    {"values are looked at", values_are_looked_at},
    {0},
};
