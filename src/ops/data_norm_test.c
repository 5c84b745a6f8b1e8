/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void takes_away_the_mean_and_divides_by_the_deviation(void)
{
    fl_check_op(&(fl_op_case){
        .type = "data_norm",
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"BatchSize", {2}, {4, 100}},
               {"BatchSum", {2}, {8, -50}},
               {"BatchSquareSum", {2}, {1, 400}}},
        .out = {{"Y", {3, 2}, {-2, 1.25, 2, 2.25, 6, 3.25}},
                {"Means", {2}, {2, -0.5}},
                {"Scales", {2}, {2, 0.5}}},
        .grad = {"X"},
    });
}

/* No slopes: what the batch adds to the summaries. */
static void gives_summaries_what_a_batch_adds(void)
{
    fl_check_op(&(fl_op_case){
        .type = "data_norm_grad",
        .attr = {{"epsilon", FL_ATTR_FLOAT, .f = 0.0005f}},
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Y@GRAD", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"BatchSize", {2}, {4, 100}},
               {"BatchSum", {2}, {8, -50}},
               {"BatchSquareSum", {2}, {1, 400}},
               {"Scales", {2}, {2, 0.5}},
               {"Means", {2}, {2, -0.5}}},
        .out = {{"X@GRAD", {3, 2}, {2, 1, 6, 2, 10, 3}},
                {"BatchSize@GRAD", {2}, {3, 3}},
                {"BatchSum@GRAD", {2}, {9, 12}},
                {"BatchSquareSum@GRAD", {2}, {11.0015, 68.7515}}},
    });
}

static void leaves_out_what_nobody_wants(void)
{
    fl_check_op(&(fl_op_case){
        .type = "data_norm_grad",
        .in = {{"X", {1, 1}, {3}},
               {"Y@GRAD", {1, 1}, {1}},
               {"BatchSize", {1}, {1}},
               {"BatchSum", {1}, {1}},
               {"BatchSquareSum", {1}, {1}},
               {"Scales", {1}, {1}},
               {"Means", {1}, {1}}},
        .out = {{"BatchSum@GRAD", {1}, {3}}},
    });
}

#define SUMMARIES "BatchSize=f32[8] BatchSum=f32[8] BatchSquareSum=f32[8]"

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("data_norm X=f32[-1,8] " SUMMARIES),
              "Y=f32[-1,8] Means=f32[8] Scales=f32[8]");
    CHECK_ERR(fl_infer_try("data_norm X=f32[2,8,1] " SUMMARIES), FL_ESHAPE,
              "data_norm: X is [2,8,1], expected [N,C]");
    CHECK_ERR(fl_infer_try("data_norm X=f32[2,9] " SUMMARIES), FL_ESHAPE,
              "data_norm: BatchSize is f32[8], expected f32[9]");
    CHECK_ERR(fl_infer_try("data_norm{epsilon=0.5} X=f32[2,8] " SUMMARIES),
              FL_EINVAL, "data_norm: epsilon is 0.5, expected 0 to 0.001");
    CHECK_ERR(fl_infer_try("data_norm_grad X=f32[2,8] Y@GRAD=f32[3,8] "
                           "Scales=f32[8] Means=f32[8] " SUMMARIES),
              FL_ESHAPE, "data_norm_grad: X is f32[2,8], Y@GRAD is f32[3,8]");
    CHECK_ERR(fl_infer_try("data_norm_grad X=f32[2,8] Y@GRAD=f32[2,8] "
                           "Scales=f32[8] Means=f32[7] " SUMMARIES),
              FL_ESHAPE, "data_norm_grad: Means is f32[7], expected f32[8]");
}

const fl_test fl_tests[] = {
    {"data_norm takes away the mean and divides by the deviation",
     takes_away_the_mean_and_divides_by_the_deviation},
    {"data_norm gives summaries what a batch adds",
     gives_summaries_what_a_batch_adds},
    {"data_norm leaves out what nobody wants", leaves_out_what_nobody_wants},
    {"data_norm says what does not fit", says_what_does_not_fit},
    {0},
};
