#include "ops/check.h"

static void puts_a_frame_around(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pad",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(1, 0, 0, 2)},
                 {"pad_value", FL_ATTR_FLOAT, .f = 9}},
        .in = {{"X", {2, 2}, {1, 2, 3, 4}}},
        .out = {{"Out", {3, 4}, {9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9}}},
        .grad = {"X"},
    });
}

static void keeps_sequences_whose_rows_stay(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pad",
        .attr = {{"paddings", FL_ATTR_INTS, FL_CASE_INTS(0, 0, 1, 0)}},
        .in = {{"X", {2, 1}, {1, 2}, .lod = "0,1,2"}},
        .out = {{"Out", {2, 2}, {0, 1, 0, 2}, .lod = "0,1,2"}},
        .grad = {"X"},
    });
}

static void says_what_is_wrong(void)
{
    CHECK_STR(fl_infer_text("pad{paddings=[0,0,1,2]} X=f32[-1,8]"),
              "Out=f32[-1,11]");
    CHECK_ERR(fl_infer_try("pad{paddings=[0,0]} X=f32[-1,8]"), FL_EINVAL,
              "pad: 2 paddings for X with 2 dims");
    CHECK_ERR(fl_infer_try("pad{paddings=[0,0,-1,0]} X=f32[-1,8]"), FL_EINVAL,
              "pad: paddings has -1");
}

const fl_test fl_tests[] = {
    {"pad puts a frame around", puts_a_frame_around},
    {"pad keeps sequences whose rows stay", keeps_sequences_whose_rows_stay},
    {"pad says what is wrong", says_what_is_wrong},
    {0},
};
