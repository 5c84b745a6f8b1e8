/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

/* X is [1,1,3,4] with the elements 1 to 12 in some order. */
static fl_op_case a_case(const char *type, int64_t size, int64_t stride,
                         int64_t pad)
{
    static int64_t list[6];
    list[0] = list[1] = size;
    list[2] = list[3] = stride;
    list[4] = list[5] = pad;
    return (fl_op_case){
        .type = "pool2d",
        .attr = {{"pooling_type", FL_ATTR_STRING, .s = type},
                 {"ksize", FL_ATTR_INTS, .n = 2, .longs = list},
                 {"strides", FL_ATTR_INTS, .n = 2, .longs = list + 2},
                 {"paddings", FL_ATTR_INTS, .n = 2, .longs = list + 4}},
        .in = {{"X", {1, 1, 3, 4}, {1, 8, 3, 10, 5, 12, 7, 2, 9, 4, 11, 6}}},
        .grad = {"X"},
    };
}

static void takes_the_largest(void)
{
    fl_op_case c = a_case("max", 2, 1, 0);
    c.out[0] = (fl_case_arg){"Out", {1, 1, 2, 3}, {12, 12, 10, 12, 12, 11}};
    fl_check_op(&c);
    c = a_case("max", 3, 2, 1);
    c.out[0] = (fl_case_arg){"Out", {1, 1, 2, 2}, {12, 12, 12, 12}};
    fl_check_op(&c);
}

static void averages_what_lies_inside(void)
{
    fl_op_case c = a_case("avg", 3, 2, 1);
    c.out[0] = (fl_case_arg){
        "Out", {1, 1, 2, 2}, {26 / 4., 42 / 6., 30 / 4., 42 / 6.}};
    fl_check_op(&c);
    c.attr[4] = (fl_attr){"exclusive", FL_ATTR_BOOL, .b = false};
    c.out[0] = (fl_case_arg){
        "Out", {1, 1, 2, 2}, {26 / 9., 42 / 9., 30 / 9., 42 / 9.}};
    fl_check_op(&c);
}

/* Seventeen windows in a row: whole vectors and a rest; a column and a row
 * that no window covers. */
static void halves_wide_rows(void)
{
    for (int max = 0; max < 2; max++) {
        fl_op_case c = a_case(max ? "max" : "avg", 2, 2, 0);
        c.in[0] = (fl_case_arg){"X", {1, 2, 3, 35}};
        c.out[0] = (fl_case_arg){"Out", {1, 2, 1, 17}};
        for (int i = 0; i < 210; i++)
            c.in[0].value[i] = i * 83 % 211;
        for (int i = 0; i < 34; i++) {
            const double *a = c.in[0].value + i / 17 * 105 + i % 17 * 2;
            double sum = a[0] + a[1] + a[35] + a[36], top = a[0];
            top = a[1] > top ? a[1] : top;
            top = a[35] > top ? a[35] : top;
            c.out[0].value[i] = max ? (a[36] > top ? a[36] : top) : sum / 4;
        }
        fl_check_op(&c);
    }
}

static void rounds_up_if_asked(void)
{
    fl_op_case c = a_case("max", 2, 2, 0);
    c.attr[4] = (fl_attr){"ceil_mode", FL_ATTR_BOOL, .b = true};
    c.out[0] = (fl_case_arg){"Out", {1, 1, 2, 2}, {12, 10, 9, 11}};
    fl_check_op(&c);
    c.attr[0].s = "avg";
    c.out[0] = (fl_case_arg){"Out", {1, 1, 2, 2}, {26 / 4., 22 / 4., 6.5, 8.5}};
    fl_check_op(&c);
    c.attr[5] = (fl_attr){"exclusive", FL_ATTR_BOOL, .b = false};
    c.out[0] =
        (fl_case_arg){"Out", {1, 1, 2, 2}, {26 / 4., 22 / 4., 3.25, 4.25}};
    fl_check_op(&c);
}

static void takes_all_of_a_channel(void)
{
    fl_op_case c = a_case("avg", 1, 1, 0);
    c.attr[4] = (fl_attr){"global_pooling", FL_ATTR_BOOL, .b = true};
    c.out[0] = (fl_case_arg){"Out", {1, 1, 1, 1}, {78 / 12.}};
    fl_check_op(&c);
}

static void adapts_its_windows(void)
{
    fl_op_case c = a_case("avg", 2, 1, 0);
    c.attr[4] = (fl_attr){"adaptive", FL_ATTR_BOOL, .b = true};
    c.out[0] = (fl_case_arg){
        "Out", {1, 1, 2, 2}, {26 / 4., 22 / 4., 30 / 4., 26 / 4.}};
    fl_check_op(&c);
    c.attr[0].s = "max";
    c.out[0] = (fl_case_arg){"Out", {1, 1, 2, 2}, {12, 10, 12, 11}};
    fl_check_op(&c);
}

/* Of equal elements the first in the window gets the gradient. Five windows in
 * a row, with the largest at every place, alone and not. */
static void gives_the_gradient_to_the_first(void)
{
    fl_op_case c = a_case("max", 2, 2, 0);
    c.type = "pool2d_grad";
    c.in[0] = (fl_case_arg){"X", {1, 1, 2, 10}, {7, 7, 3, 7, 3, 3, 3, 3, 3, 7,
                                                 7, 7, 7, 7, 7, 7, 3, 7, 7, 3}};
    c.in[1] = (fl_case_arg){"Out", {1, 1, 1, 5}, {7, 7, 7, 7, 7}};
    c.in[2] = (fl_case_arg){"Out@GRAD", {1, 1, 1, 5}, {1, 2, 3, 4, 5}};
    c.out[0] =
        (fl_case_arg){"X@GRAD", {1, 1, 2, 10}, {1, 0, 0, 2, 0, 0, 0, 0, 0, 5,
                                                0, 0, 0, 0, 3, 0, 0, 4, 0, 0}};
    c.grad[0] = NULL;
    fl_check_op(&c);
    c.attr[4] = (fl_attr){"ceil_mode", FL_ATTR_BOOL, .b = true};
    c.in[0].dim[3] = 9; /* the last window is cut: the other way */
    c.in[0].value[9] = 7;
    c.out[0].dim[3] = 9;
    for (int i = 9; i < 18; i++) {
        c.in[0].value[i] = c.in[0].value[i + 1];
        c.out[0].value[i] = c.out[0].value[i + 1];
    }
    c.out[0].value[8] = 0, c.out[0].value[17] = 5;
    fl_check_op(&c);
}

static void knows_shapes_before_it_runs(void)
{
    CHECK_STR(fl_infer_text("pool2d{pooling_type=\"max\",ksize=[2,2],"
                            "strides=[2,2]} X=f32[-1,3,7,-1]"),
              "Out=f32[-1,3,3,-1]");
    CHECK_STR(fl_infer_text("pool2d{pooling_type=\"avg\",ksize=[2,2],"
                            "global_pooling=true} X=f32[-1,3,-1,-1]"),
              "Out=f32[-1,3,1,1]");
}

static void says_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("pool2d{pooling_type=\"min\",ksize=[2,2]} "
                           "X=f32[-1,3,7,7]"),
              FL_EINVAL,
              "pool2d: pooling_type is \"min\", expected max or avg");
    CHECK_ERR(fl_infer_try("pool2d{pooling_type=\"max\",ksize=[8,8]} "
                           "X=f32[-1,3,7,7]"),
              FL_ESHAPE,
              "pool2d: a window of 8 with padding 0 has no place in X "
              "[-1,3,7,7]");
    CHECK_ERR(fl_infer_try("pool2d{pooling_type=\"max\",ksize=[2]} "
                           "X=f32[-1,3,7,7]"),
              FL_EINVAL, "pool2d: ksize has 1 numbers, expected 2");
    CHECK_ERR(fl_infer_try("pool2d{pooling_type=\"max\",ksize=[2,2],"
                           "paddings=[2,2]} X=f32[-1,3,7,7]"),
              FL_ESHAPE, "pool2d: a window of 2 with padding 2 has no place");
    CHECK_ERR(fl_infer_try("pool2d{pooling_type=\"max\",ksize=[2,2]} "
                           "X=f32[-1,3]"),
              FL_ESHAPE, "pool2d: X is [-1,3], expected 4 dims");
}

const fl_test fl_tests[] = {
    {"pool2d takes the largest", takes_the_largest},
    {"pool2d averages what lies inside", averages_what_lies_inside},
    {"pool2d halves wide rows", halves_wide_rows},
    {"pool2d rounds up if asked", rounds_up_if_asked},
    {"pool2d takes all of a channel", takes_all_of_a_channel},
    {"pool2d adapts its windows", adapts_its_windows},
    {"pool2d gives the gradient to the first of equals",
     gives_the_gradient_to_the_first},
    {"pool2d knows shapes before it runs", knows_shapes_before_it_runs},
    {"pool2d says what is wrong", says_what_is_wrong},
    {0},
};
