/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

/* A step of 8 samples after 24, in pass 1 of both trainers, with base 0.5. */
static void check_schedule(const char *name, float a, float b, float rate)
{
    const float counts[] = {1, 32, 40}, rates[] = {1, 0.25f, 0.125f};
    fl_check_op(&(fl_op_case){
        .type = "v2_schedule",
        .attr = {{"schedule", FL_ATTR_STRING, .s = name},
                 {"rate", FL_ATTR_FLOAT, .f = 0.5f},
                 {"a", FL_ATTR_FLOAT, .f = a},
                 {"b", FL_ATTR_FLOAT, .f = b},
                 {"counts", FL_ATTR_FLOATS, .n = 3, .floats = counts},
                 {"rates", FL_ATTR_FLOATS, .n = 3, .floats = rates}},
        .in = {{"State", {3}, {24, 1, 5}, .dtype = "f64"},
               {"Batch", {3}, {8, 2, 2}, .dtype = "f64"}},
        .out = {{"StateOut", {3}, {32, 1, 6}, .dtype = "f64"},
                {"LearningRate", {1}, {rate}, .dtype = "f32"}},
    });
}

static void follows_the_samples_of_all_trainers(void)
{
    check_schedule("poly", 0.25f, 2, 0.5f / 81);
    check_schedule("caffe_poly", 64, 2, 0.125f);
    check_schedule("caffe_poly", 31, 2, 0);
    check_schedule("exp", 0.25f, 64, 0.25f);
    check_schedule("discexp", 0.5f, 20, 0.25f);
    check_schedule("linear", 1.0f / 128, 0.125f, 0.25f);
    check_schedule("linear", 1, 0.125f, 0.125f);
    check_schedule("manual", 0, 0, 0.125f);
    check_schedule("pass_manual", 0, 0, 0.5f);
}

static void refuses_what_it_does_not_know(void)
{
    CHECK_ERR(fl_infer_try("v2_schedule{schedule=\"poly\",rate=1} "
                           "State=f32[3] Batch=f64[3]"),
              FL_ESHAPE, "v2_schedule: State is f32");
    CHECK_ERR(fl_infer_try("v2_schedule{schedule=\"poly\",rate=1} "
                           "State=f64[3] Batch=f64[2]"),
              FL_ESHAPE, "v2_schedule: Batch is [2], expected [3]");
    CHECK_ERR(fl_infer_try("v2_schedule{schedule=\"often\",rate=1} "
                           "State=f64[3] Batch=f64[3]"),
              FL_EINVAL, "v2_schedule: schedule is \"often\", expected poly");
    CHECK_ERR(fl_infer_try("v2_schedule{schedule=\"manual\",rate=1} "
                           "State=f64[3] Batch=f64[3]"),
              FL_EINVAL, "v2_schedule: 0 counts and 0 rates");
}

const fl_test fl_tests[] = {
    {"v2_schedule follows the samples of all trainers",
     follows_the_samples_of_all_trainers},
    {"v2_schedule refuses what it does not know",
     refuses_what_it_does_not_know},
    {0},
};
