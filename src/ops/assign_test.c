#include "op/frame.h"
#include "ops/check.h"

#include <string.h>

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

static fl_value *find(void *self, const char *name)
{
    return (fl_value *)self + (*name == 'o');
}

static void copies_an_array(void)
{
    fl_value v[2] = {{.kind = FL_LOD_TENSOR_ARRAY}};
    fl_shape one = {1, {1}};
    const fl_op_def *def;
    fl_arena *a = fl_arena_new();
    fl_desc *d = fl_desc_new(a, "assign");
    fl_frame f;
    float three = 3;
    fl_push(&v[0].array, (fl_tensor){0});
    fl_tensor lent = fl_tensor_view(FL_F32, &one, &three);
    CHECK_OK(fl_tensor_copy(&v[0].array.at[0], &lent));
    fl_desc_set_in1(d, "X", "in");
    fl_desc_set_out1(d, "Out", "out");
    CHECK_OK(fl_registry_get(fl_check_registry(), "assign", &def));
    CHECK_OK(fl_frame_init(&f, a, def, d, NULL, NULL, find, v));
    CHECK_OK(fl_frame_prepare(&f));
    CHECK_OK(fl_frame_run(&f));
    CHECK_INT(v[1].kind, FL_LOD_TENSOR_ARRAY);
    CHECK_INT(v[1].array.n, 1);
    CHECK_NEAR(*(float *)v[1].array.at[0].data, 3, 0);
    CHECK(v[1].array.at[0].data != v[0].array.at[0].data);
    fl_frame_fini(&f);
    fl_value_fini(&v[0]);
    fl_value_fini(&v[1]);
    fl_arena_free(a);
}

const fl_test fl_tests[] = {
    {"assign copies a tensor with its sequences",
     copies_a_tensor_with_its_sequences},
    {"assign copies selected rows", copies_selected_rows},
    {"assign copies an array", copies_an_array},
    {0},
};
