/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void divides_by_the_largest_singular_value(void)
{
    fl_check_op(&(fl_op_case){
        .type = "spectral_norm",
        .attr = {{"power_iters", FL_ATTR_INT, .i = 9}},
        .in = {{"Weight", {2, 3}, {1, 2, 3, 4, 5, 6}},
               {"U", {2}, {1, 0.5}},
               {"V", {3}, {0.1, 0.2, 0.3}}},
        .out = {{"Out",
                 {2, 3},
                 {0.1051742, 0.2103485, 0.3155227, 0.4206970, 0.5258712,
                  0.6310455}}},
        .grad = {"Weight"}, /* u and v have come to rest */
    });
}

static void takes_u_and_v_as_they_are_without_iterations(void)
{
    fl_check_op(&(fl_op_case){
        .type = "spectral_norm",
        .attr = {{"power_iters", FL_ATTR_INT, .i = 0}},
        .in = {{"Weight", {2, 3}, {1, 2, 3, 4, 5, 6}},
               {"U", {2}, {1, 0.5}},
               {"V", {3}, {1, 0.5, 2}}},
        .out = {{"Out",
                 {2, 3},
                 {0.0579710, 0.1159420, 0.1739130, 0.2318841, 0.2898551,
                  0.3478261}}},
        .grad = {"Weight"},
    });
}

static void rows_may_be_any_dimension(void)
{
    fl_check_op(&(fl_op_case){
        .type = "spectral_norm",
        .attr = {{"dim", FL_ATTR_INT, .i = 1},
                 {"power_iters", FL_ATTR_INT, .i = 3}},
        .in = {{"Weight",
                {2, 3, 2},
                {0.25, 0.5, 0.75, 1, 1.25, 1.5, -1, 2, 2.25, 2.5, 2.75, 3}},
               {"U", {3}, {1, 0.5, -1}},
               {"V", {4}, {0}}},
        .out = {{"Out",
                 {2, 3, 2},
                 {0.0427375, 0.0854751, 0.1282126, 0.1709502, 0.2136877,
                  0.2564253, -0.1709502, 0.3419004, 0.3846379, 0.4273754,
                  0.4701130, 0.5128505}}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("spectral_norm{dim=1} Weight=f32[2,8,3,3] "
                            "U=f32[8] V=f32[18]"),
              "Out=f32[2,8,3,3]");
    CHECK_ERR(fl_infer_try("spectral_norm Weight=f32[4] U=f32[4] V=f32[1]"),
              FL_ESHAPE,
              "spectral_norm: Weight is [4], expected 2 dims or more");
    CHECK_ERR(fl_infer_try("spectral_norm{dim=2} Weight=f32[4,2] U=f32[4] "
                           "V=f32[2]"),
              FL_EINVAL, "spectral_norm: dim is 2, but Weight is [4,2]");
    CHECK_ERR(fl_infer_try("spectral_norm{power_iters=-1} Weight=f32[4,2] "
                           "U=f32[4] V=f32[2]"),
              FL_EINVAL,
              "spectral_norm: power_iters is -1, expected 0 to 10000");
    CHECK_ERR(fl_infer_try("spectral_norm Weight=f32[4,2] U=f32[2] V=f32[4]"),
              FL_ESHAPE, "spectral_norm: U is f32[2], expected f32[4]");
    CHECK_ERR(fl_infer_try("spectral_norm_grad Weight=f32[4,2] U=f32[4] "
                           "V=f32[2] Out@GRAD=f32[2,4]"),
              FL_ESHAPE,
              "spectral_norm_grad: Out@GRAD is f32[2,4], expected f32[4,2]");
}

static void power_iters_has_an_end(void)
{
    CHECK_ERR(fl_infer_try("spectral_norm{power_iters=2147483647} "
                           "Weight=f32[2,3] U=f32[2] V=f32[3]"),
              FL_EINVAL, "power_iters is 2147483647, expected 0 to 10000");
}

const fl_test fl_tests[] = {
    {"spectral_norm divides by the largest singular value",
     divides_by_the_largest_singular_value},
    {"spectral_norm takes U and V as they are without iterations",
     takes_u_and_v_as_they_are_without_iterations},
    {"spectral_norm's rows may be any dimension", rows_may_be_any_dimension},
    {"spectral_norm says what does not fit", says_what_does_not_fit},
    {"power_iters has an end", power_iters_has_an_end},
    {0},
};
