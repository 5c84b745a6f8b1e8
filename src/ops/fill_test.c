/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void constant_fills_every_type(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fill_constant",
        .attr = {{"shape", FL_ATTR_LONGS, FL_CASE_INTS(2, 3)},
                 {"value", FL_ATTR_FLOAT, .f = 1.5f}},
        .out =
            {{"Out", {2, 3}, {1.5, 1.5, 1.5, 1.5, 1.5, 1.5}, .dtype = "f32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "fill_constant",
        .attr = {{"shape", FL_ATTR_LONGS, FL_CASE_INTS(2)},
                 {"dtype", FL_ATTR_INT, .i = FL_I64},
                 {"value", FL_ATTR_FLOAT, .f = -7}},
        .out = {{"Out", {2}, {-7, -7}, .dtype = "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "fill_constant",
        .attr = {{"shape", FL_ATTR_LONGS, FL_CASE_INTS(3)},
                 {"dtype", FL_ATTR_INT, .i = FL_BOOL},
                 {"value", FL_ATTR_FLOAT, .f = 1}},
        .out = {{"Out", {3}, {1, 1, 1}, .dtype = "bool"}},
    });
}

static void takes_the_batch_of_another(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fill_constant_batch_size_like",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(2, -1)},
                 {"output_dim_idx", FL_ATTR_INT, .i = 1},
                 {"value", FL_ATTR_FLOAT, .f = 3}},
        .in = {{"Input", {3, 4}}},
        .out = {{"Out", {2, 3}, {3, 3, 3, 3, 3, 3}, .dtype = "f32"}},
    });
    CHECK_STR(fl_infer_text("fill_constant_batch_size_like{shape=[-1,2]} "
                            "Input=f32[-1,8]"),
              "Out=f32[-1,2]");
    CHECK_STR(fl_infer_text("fill_constant_batch_size_like{shape=[-1,2]} "
                            "Input=f32[5,8]/1"),
              "Out=f32[-1,2]");
}

static void counts_sequences_as_the_batch(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fill_constant_batch_size_like",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(-1, 1)},
                 {"dtype", FL_ATTR_INT, .i = FL_I32},
                 {"value", FL_ATTR_FLOAT, .f = 3}},
        .in = {{"Input", {5, 1}, .lod = "0,1,2;0,3,5"}},
        .out = {{"Out", {2, 1}, {3, 3}, .dtype = "i32"}},
    });
}

static void zeros_take_shape_and_type(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fill_zeros_like",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .lod = "0,2"}},
        .out = {{"Out", {2, 2}, {0, 0, 0, 0}, .lod = "0,2"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "fill_zeros_like",
        .in = {{"X", {1, 2}, {1, 2}, .rows = "1", .height = 3}},
        .out = {{"Out", {3, 2}, {0, 0, 0, 0, 0, 0}}},
    });
}

static void say_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("fill_constant{shape=[2,-1]}"), FL_EINVAL,
              "fill_constant: shape [2,-1] has a dimension below 0");
    CHECK_ERR(fl_infer_try("fill_constant{shape=[2],dtype=99}"), FL_EINVAL,
              "fill_constant: dtype is 99, which is not an element type");
    CHECK_ERR(fl_infer_try("fill_constant"), FL_EINVAL,
              "fill_constant: attribute shape is missing");
    CHECK_ERR(fl_infer_try("fill_constant_batch_size_like{shape=[-1],"
                           "output_dim_idx=1} Input=f32[2]"),
              FL_ESHAPE, "output_dim_idx is 1, shape has 1 dims");
    CHECK_ERR(fl_infer_try("fill_constant_batch_size_like{shape=[-1],"
                           "input_dim_idx=1} Input=f32[2]"),
              FL_ESHAPE, "input_dim_idx is 1, Input has 1 dims");
}

static void rows_are_counted_where_asked(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fill_constant_batch_size_like",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(-1, 2)},
                 {"value", FL_ATTR_FLOAT, .f = 1},
                 {"by_rows", FL_ATTR_BOOL, .b = true},
                 {"dtype", FL_ATTR_INT, .i = FL_I64}},
        .in = {{"Input", {3, 2}, {0}, .lod = "0,1,3"}},
        .out = {{"Out", {3, 2}, {1, 1, 1, 1, 1, 1}, "i64"}},
    });
}

/* The variable holds selected rows, and does so afterwards. */
static void fills_selected_rows(const char *type)
{
    static const int64_t shape[] = {3, 2};
    fl_vars v;
    fl_rows *rows;
    fl_vars_init(&v);
    CHECK_OK(fl_value_rows(fl_vars_get(&v, "y"), &rows));
    rows->height = 8;
    fl_desc *d = fl_desc_new(v.arena, type);
    fl_desc_set_out1(d, "Out", "y");
    fl_desc_set_attr(
        d, &(fl_attr){"shape", FL_ATTR_LONGS, .n = 2, .longs = shape});
    CHECK_OK(fl_vars_run(&v, d));
    CHECK_INT(fl_vars_get(&v, "y")->kind, FL_SELECTED_ROWS);
    CHECK_INT(rows->n, 3);
    CHECK_INT(rows->height, 8);
    CHECK_INT(fl_rows_index(rows)[2], 2);
    CHECK_INT(fl_tensor_numel(&rows->value), 6);
    fl_vars_fini(&v);
}

static void selected_rows_are_filled(void)
{
    fills_selected_rows("fill_constant");
    fills_selected_rows("uniform_random");
    fills_selected_rows("gaussian_random");
}

const fl_test fl_tests[] = {
    {"fill_constant fills every type", constant_fills_every_type},
    {"fill_constant_batch_size_like takes the batch of another",
     takes_the_batch_of_another},
    {"fill_constant_batch_size_like counts sequences as the batch",
     counts_sequences_as_the_batch},
    {"fill_zeros_like takes shape and type", zeros_take_shape_and_type},
    {"fills say what is wrong", say_what_is_wrong},
    {"rows are counted where asked", rows_are_counted_where_asked},
    {"selected rows are filled", selected_rows_are_filled},
    {0},
};
