/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void copies_a_tensor_with_its_sequences(void)
{
    fl_check_op(&(fl_op_case){
        .type = "assign",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .lod = "0,2"}},
        .out = {{"Out", {2, 2}, {1, 2, 3, 4}, .lod = "0,2"}},
        .grad = {"X"},
    });
    fl_check_op(&(fl_op_case){
        .type = "assign",
        .in = {{"X", {2}, {1, 0}, .dtype = "bool"}},
        .out = {{"Out", {2}, {1, 0}, .dtype = "bool", .same = "X"}},
    });
}

static void copies_selected_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "assign",
        .in = {{"X", {2, 2}, {1, 2, 3, 4}, .rows = "5,1", .height = 7}},
        .out = {{"Out", {2, 2}, {1, 2, 3, 4}, .rows = "5,1", .height = 7}},
    });
}

static void copies_an_array(void)
{
    fl_vars v;
    fl_vars_init(&v);
    fl_value *x = fl_vars_get(&v, "x"), *y = fl_vars_get(&v, "y");
    fl_tensor *three = fl_vars_set(&v, "three", 1, (float[]){3});
    fl_desc *d = fl_desc_new(v.arena, "assign");
    x->kind = FL_LOD_TENSOR_ARRAY;
    fl_push(&x->array, (fl_tensor){0});
    CHECK_OK(fl_tensor_copy(&x->array.at[0], three));
    fl_desc_set_in1(d, "X", "x");
    fl_desc_set_out1(d, "Out", "y");
    CHECK_OK(fl_vars_run(&v, d));
    CHECK_INT(y->kind, FL_LOD_TENSOR_ARRAY);
    CHECK_INT(y->array.n, 1);
    CHECK_NEAR(*(float *)y->array.at[0].data, 3, 0);
    CHECK(y->array.at[0].data != x->array.at[0].data);
    fl_vars_fini(&v);
}

const fl_test fl_tests[] = {
    {"assign copies a tensor with its sequences",
     copies_a_tensor_with_its_sequences},
    {"assign copies selected rows", copies_selected_rows},
    {"assign copies an array", copies_an_array},
    {0},
};
