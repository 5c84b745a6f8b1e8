/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

static void makes_pixels_of_channels(void)
{
    fl_check_op(&(fl_op_case){
        .type = "pixel_shuffle",
        .attr = {{"upscale_factor", FL_ATTR_INT, .i = 2}},
        .in = {{"X", {1, 4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
        .out = {{"Out", {1, 1, 2, 4}, {1, 3, 2, 4, 5, 7, 6, 8}}},
        .grad = {"X"},
    });
    CHECK_STR(fl_infer_text("pixel_shuffle{upscale_factor=2} X=f32[-1,8,3,3]"),
              "Out=f32[-1,2,6,6]");
    CHECK_ERR(fl_infer_try("pixel_shuffle{upscale_factor=2} X=f32[1,3,3,3]"),
              FL_ESHAPE,
              "pixel_shuffle: X is [1,3,3,3], expected [N,C,H,W] "
              "whose C 4 divides");
}

static void makes_channels_of_pixels(void)
{
    fl_check_op(&(fl_op_case){
        .type = "space_to_depth",
        .attr = {{"blocksize", FL_ATTR_LONG, .i = 2}},
        .in = {{"X",
                {1, 4, 2, 2},
                {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}},
        .out = {{"Out",
                 {1, 16, 1, 1},
                 {0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15}}},
        .grad = {"X"},
    });
    CHECK_STR(fl_infer_text("space_to_depth{blocksize=2} X=f32[-1,4,6,4]"),
              "Out=f32[-1,16,3,2]");
    CHECK_ERR(fl_infer_try("space_to_depth{blocksize=2} X=f32[1,4,3,4]"),
              FL_ESHAPE,
              "space_to_depth: X is [1,4,3,4], whose dim 2 2 does "
              "not divide");
}

static void interleaves_channels_of_groups(void)
{
    fl_check_op(&(fl_op_case){
        .type = "shuffle_channel",
        .attr = {{"group", FL_ATTR_INT, .i = 2}},
        .in = {{"X",
                {2, 4, 1, 2},
                {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}},
        .out = {{"Out",
                 {2, 4, 1, 2},
                 {1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16}}},
        .grad = {"X"},
    });
    CHECK_STR(fl_infer_text("shuffle_channel{group=2} X=f32[-1,8,3,3]"),
              "Out=f32[-1,8,3,3]");
    CHECK_ERR(fl_infer_try("shuffle_channel{group=0} X=f32[1,3,3,3]"),
              FL_EINVAL, "shuffle_channel: group is 0, expected 1 to 4096");
}

static void a_factor_is_in_range(void)
{
    CHECK_ERR(fl_infer_try("space_to_depth{blocksize=-8589934592} "
                           "X=f32[1,4,4,4]"),
              FL_EINVAL,
              "space_to_depth: blocksize is -8589934592, expected 1 to 4096");
}

const fl_test fl_tests[] = {
    {"pixel_shuffle makes pixels of channels", makes_pixels_of_channels},
    {"space_to_depth makes channels of pixels", makes_channels_of_pixels},
    {"shuffle_channel interleaves the channels of groups",
     interleaves_channels_of_groups},
    {"a factor is in range", a_factor_is_in_range},
    {0},
};
