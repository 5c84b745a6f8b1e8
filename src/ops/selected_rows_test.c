/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define ROWS                                                                   \
    {                                                                          \
        "X", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, .rows = "5,1,5,0", .height = 6  \
    }

static void merge_adds_up_equal_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "merge_selected_rows",
        .in = {ROWS},
        .out =
            {{"Out", {3, 2}, {7, 8, 3, 4, 6, 8}, .rows = "0,1,5", .height = 6}},
    });
}

static void get_gives_the_listed_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "get_tensor_from_selected_rows",
        .in = {ROWS},
        .out = {{"Out", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
    });
}

static void split_counts_from_each_start(void)
{
    fl_check_op(&(fl_op_case){
        .type = "split_selected_rows",
        .attr = {{"height_sections", FL_ATTR_LONGS, FL_CASE_INTS(1, 3, 2)}},
        .in = {ROWS},
        .out = {{"Out", {1, 2}, {7, 8}, .rows = "0", .height = 1},
                {"Out", {1, 2}, {3, 4}, .rows = "0", .height = 3},
                {"Out", {2, 2}, {1, 2, 5, 6}, .rows = "1,1", .height = 2}},
    });
}

static void shapes_are_known_before_a_run(void)
{
    CHECK_STR(fl_infer_text("merge_selected_rows X=rows:f32[9,4]"),
              "Out=rows:f32[9,4]");
    CHECK_STR(fl_infer_text("get_tensor_from_selected_rows X=rows:f32[9,4]"),
              "Out=f32[-1,4]");
    CHECK_STR(fl_infer_text("split_selected_rows{height_sections=[5,4]} "
                            "X=rows:f32[9,4]"),
              "Out=rows:f32[5,4] Out=rows:f32[4,4]");
}

static void say_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("merge_selected_rows X=f32[9,4]"), FL_ESHAPE,
              "merge_selected_rows: X is lod_tensor, expected selected_rows");
    CHECK_ERR(fl_infer_try("split_selected_rows{height_sections=[5]} "
                           "X=rows:f32[9,4]"),
              FL_EINVAL, "split_selected_rows: 1 height_sections, 2 outputs");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "split_selected_rows",
                  .attr = {{"height_sections", FL_ATTR_LONGS, FL_CASE_INTS(5)}},
                  .in = {ROWS},
              }),
              FL_EINVAL, "split_selected_rows: row 5, but the sections have 5");
}

const fl_test fl_tests[] = {
    {"merge_selected_rows adds up equal rows", merge_adds_up_equal_rows},
    {"get_tensor_from_selected_rows gives the listed rows",
     get_gives_the_listed_rows},
    {"split_selected_rows counts from each start",
     split_counts_from_each_start},
    {"selected rows' shapes are known before a run",
     shapes_are_known_before_a_run},
    {"selected rows say what is wrong", say_what_is_wrong},
    {0},
};
