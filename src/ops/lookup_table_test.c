/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void takes_rows_and_keeps_sequences(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lookup_table",
        .in = {{"W", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}},
               {"Ids", {4, 1}, {3, 0, 3, 1}, .dtype = "i64", .lod = "0,1,4"}},
        .out = {{"Out", {4, 2}, {7, 8, 1, 2, 7, 8, 3, 4}, .lod = "0,1,4"}},
        .grad = {"W"},
    });
}

static void makes_zeros_of_the_padding_id(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lookup_table",
        .attr = {{"padding_idx", FL_ATTR_LONG, .i = 1}},
        .in = {{"W", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Ids", {1, 3, 1}, {0, 1, 2}, .dtype = "i64"}},
        .out = {{"Out", {1, 3, 2}, {1, 2, 0, 0, 5, 6}}},
        .grad = {"W"},
    });
}

static void sparse_gradient_agrees_with_differences(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lookup_table",
        .attr = {{"is_sparse", FL_ATTR_BOOL, .b = true}},
        .in = {{"W", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Ids", {3, 1}, {2, 0, 2}, .dtype = "i64"}},
        .out = {{"Out", {3, 2}, {5, 6, 1, 2, 5, 6}}},
        .grad = {"W"},
    });
}

static void sparse_gradient_is_the_ids_and_their_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lookup_table_grad",
        .attr = {{"is_sparse", FL_ATTR_BOOL, .b = true},
                 {"padding_idx", FL_ATTR_LONG, .i = 2}},
        .in = {{"W", {3, 1}},
               {"Ids", {3, 1}, {2, 0, 2}, .dtype = "i64"},
               {"Out@GRAD", {3, 1}, {1, 2, 3}}},
        .out = {{"W@GRAD", {3, 1}, {1, 2, 3}, .rows = "2,0,2", .height = 3}},
    });
}

static void takes_rows_of_every_width(void)
{
    const int64_t width[] = {1, 3, 8, 10, 16, 17};
    for (int k = 0; k < 6; k++) {
        int64_t d = width[k];
        fl_op_case c = {
            .type = "lookup_table",
            .in = {{"W", {3, d}}, {"Ids", {2, 1}, {2, 1}, .dtype = "i64"}},
            .out = {{"Out", {2, d}}},
            .grad = {"W"},
        };
        for (int64_t j = 0; j < 3 * d; j++)
            c.in[0].value[j] = (double)j;
        for (int64_t j = 0; j < d; j++) {
            c.out[0].value[j] = (double)(2 * d + j);
            c.out[0].value[d + j] = (double)(d + j);
        }
        fl_check_op(&c);
    }
}

static void takes_more_ids_than_it_asks_for_ahead(void)
{
    fl_op_case c = {
        .type = "lookup_table",
        .in = {{"W", {5, 1}, {10, 11, 12, 13, 14}},
               {"Ids", {60, 1}, .dtype = "i64"}},
        .out = {{"Out", {60, 1}}},
        .grad = {"W"},
    };
    for (int i = 0; i < 60; i++) {
        c.in[1].value[i] = i * 7 % 5;
        c.out[0].value[i] = 10 + i * 7 % 5;
    }
    fl_check_op(&c);
}

static void knows_shapes_before_it_runs(void)
{
    CHECK_STR(fl_infer_text("lookup_table W=f32[100,8] Ids=i64[-1,1]/1"),
              "Out=f32[-1,8]/1");
    CHECK_STR(fl_infer_text("lookup_table_grad{is_sparse=true} W=f32[100,8] "
                            "Ids=i64[-1,1] Out@GRAD=f32[-1,8]"),
              "W@GRAD=rows:f32[100,8]");
    CHECK_STR(fl_infer_text("lookup_table_grad W=f32[100,8] Ids=i64[-1,1] "
                            "Out@GRAD=f32[-1,8]"),
              "W@GRAD=f32[100,8]");
}

static void says_which_id_is_outside(void)
{
    const double wrong[] = {4, -1, 9e18};
    const char *text[] = {
        "lookup_table: id 4 is outside the table of 4 rows",
        "lookup_table: id -1 is outside the table of 4 rows",
        "lookup_table: id 9000000000000000000 is outside the table of 4 rows",
    };
    for (int i = 0; i < 3; i++)
        CHECK_ERR(fl_check_try(&(fl_op_case){
                      .type = "lookup_table",
                      .in = {{"W", {4, 2}},
                             {"Ids", {2, 1}, {3, wrong[i]}, .dtype = "i64"}},
                  }),
                  FL_EINVAL, text[i]);
}

static void says_which_shape_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("lookup_table W=f32[9,8] Ids=i64[-1,2]"), FL_ESHAPE,
              "lookup_table: Ids is [-1,2], expected [.., 1]");
    CHECK_ERR(fl_infer_try("lookup_table W=f32[9,8] Ids=f32[-1,1]"), FL_ESHAPE,
              "lookup_table: Ids is f32, expected i64");
    CHECK_ERR(fl_infer_try("lookup_table W=i32[9,8] Ids=i64[-1,1]"), FL_ESHAPE,
              "lookup_table: W is i32, expected f32 or f64");
}

static void rows_of_a_table_are_found_by_id(void)
{
    fl_check_op(&(fl_op_case){
        .type = "lookup_table",
        .attr = {{"padding_idx", FL_ATTR_LONG, .i = 1}},
        .in = {{"W", {3, 2}, {1, 2, 3, 4, 5, 6}, .rows = "7,2,9", .height = 10},
               {"Ids", {4, 1}, {9, 7, 1, 9}, "i64"}},
        .out = {{"Out", {4, 2}, {5, 6, 1, 2, 0, 0, 5, 6}}},
    });
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "lookup_table",
                  .in = {{"W", {1, 1}, {1}, .rows = "7", .height = 10},
                         {"Ids", {1, 1}, {3}, "i64"}},
                  .want = {"Out"},
              }),
              FL_EINVAL, "lookup_table: W has no row 3");
    CHECK_ERR(fl_infer_try("lookup_table_grad W=rows:f32[9,2] Ids=i64[3,1] "
                           "Out@GRAD=f32[3,2]"),
              FL_ESHAPE,
              "lookup_table_grad: W is selected_rows, expected a tensor");
}

const fl_test fl_tests[] = {
    {"lookup_table takes rows and keeps sequences",
     takes_rows_and_keeps_sequences},
    {"lookup_table makes zeros of the padding id",
     makes_zeros_of_the_padding_id},
    {"lookup_table's sparse gradient agrees with differences",
     sparse_gradient_agrees_with_differences},
    {"lookup_table's sparse gradient is the ids and their rows",
     sparse_gradient_is_the_ids_and_their_rows},
    {"lookup_table takes rows of every width", takes_rows_of_every_width},
    {"lookup_table takes more ids than it asks for ahead",
     takes_more_ids_than_it_asks_for_ahead},
    {"lookup_table knows shapes before it runs", knows_shapes_before_it_runs},
    {"lookup_table says which id is outside", says_which_id_is_outside},
    {"lookup_table says which shape is wrong", says_which_shape_is_wrong},
    {"rows of a table are found by id", rows_of_a_table_are_found_by_id},
    {0},
};
