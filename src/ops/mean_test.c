#include "ops/check.h"

static void averages_all_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "mean",
        .in = {{"X", {2, 3}, {1, 2, 3, 4, 5, 9}}},
        .out = {{"Out", {1}, {4}}},
        .grad = {"X"},
    });
}

static void gives_one_number_whatever_the_batch(void)
{
    CHECK_STR(fl_infer_text("mean X=f32[-1,8]"), "Out=f32[1]");
}

static void says_which_input_is_missing(void)
{
    CHECK_ERR(fl_infer_try("mean"), FL_EINVAL, "mean: input X is missing");
}

const fl_test fl_tests[] = {
    {"mean averages all elements", averages_all_elements},
    {"mean gives one number whatever the batch",
     gives_one_number_whatever_the_batch},
    {"mean says which input is missing", says_which_input_is_missing},
    {0},
};
