/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define PICTURE                                                                \
    {                                                                          \
        0.8, 0.1, 0.4, 0.5, 0.9, 0.7, 0.9, 0.9, 0.8, 0.9, 0.1, 0.2, 0.2, 0.5,  \
            0.3, 0.4, 0.9, 0.7, 0.8, 0.4, 0.0, 0.2, 0.4, 0.7                   \
    }

/* The example of Fluid's documents. */
static void chooses_one_of_each_row_and_column(void)
{
    fl_check_op(&(fl_op_case){
        .type = "similarity_focus",
        .attr = {{"axis", FL_ATTR_INT, .i = 1},
                 {"indexes", FL_ATTR_INTS, FL_CASE_INTS(0)}},
        .in = {{"X", {2, 3, 2, 2}, PICTURE}},
        .out = {{"Out", {2, 3, 2, 2}, {1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1,
                                       0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0}}},
    });
}

/* Row 0: [.8 .4], [.9 .9], [.8 .1]: the first .9, then .4 of column 1. */
static void adds_up_what_several_indexes_choose(void)
{
    fl_check_op(&(fl_op_case){
        .type = "similarity_focus",
        .attr = {{"axis", FL_ATTR_INT, .i = 3},
                 {"indexes", FL_ATTR_INTS, FL_CASE_INTS(0, 1)}},
        .in = {{"X", {1, 3, 2, 2}, PICTURE}},
        .out = {{"Out", {1, 3, 2, 2}, {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}}},
    });
}

static void axis_two_leaves_the_outer_dimensions(void)
{
    fl_check_op(&(fl_op_case){
        .type = "similarity_focus",
        .attr = {{"axis", FL_ATTR_INT, .i = 2},
                 {"indexes", FL_ATTR_INTS, FL_CASE_INTS(1)}},
        .in = {{"X", {1, 3, 2, 2}, PICTURE}},
        .out = {{"Out", {1, 3, 2, 2}, {0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0}}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("similarity_focus{axis=1,indexes=[0]} "
                            "X=f32[-1,3,2,2]"),
              "Out=f32[-1,3,2,2]");
    CHECK_ERR(fl_infer_try("similarity_focus{axis=1,indexes=[0]} X=f32[3,2]"),
              FL_ESHAPE, "similarity_focus: X is [3,2], expected 4 dims");
    CHECK_ERR(fl_infer_try("similarity_focus{axis=0,indexes=[0]} "
                           "X=f32[1,3,2,2]"),
              FL_EINVAL, "similarity_focus: axis is 0, expected 1, 2 or 3");
    CHECK_ERR(fl_infer_try("similarity_focus{axis=2,indexes=[0,2]} "
                           "X=f32[1,3,2,2]"),
              FL_EINVAL,
              "similarity_focus: indexes have 2, but dimension 2 of X is 2");
}

const fl_test fl_tests[] = {
    {"similarity_focus chooses one of each row and column",
     chooses_one_of_each_row_and_column},
    {"similarity_focus adds up what several indexes choose",
     adds_up_what_several_indexes_choose},
    {"similarity_focus with axis 2 leaves the outer dimensions",
     axis_two_leaves_the_outer_dimensions},
    {"similarity_focus says what does not fit", says_what_does_not_fit},
    {0},
};
