/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

/* The numbers that Paddle's own operator gives. */
static void gives_the_numbers_of_paddle(void)
{
    fl_check_op(&(fl_op_case){
        .type = "hash",
        .attr = {{"num_hash", FL_ATTR_INT, .i = 2},
                 {"mod_by", FL_ATTR_LONG, .i = 10000}},
        .in = {{"X", {4, 1}, {5, 8, 9, 0}, "i32", .lod = "0,1,4"}},
        .out = {{"Out",
                 {4, 2, 1},
                 {3481, 7475, 1719, 5986, 8473, 694, 4372, 9456},
                 "i32",
                 .lod = "0,1,4"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "hash",
        .attr = {{"num_hash", FL_ATTR_INT, .i = 2},
                 {"mod_by", FL_ATTR_LONG, .i = 10000}},
        .in = {{"X", {2, 1}, {1, 4294967297}, "i64"}},
        .out = {{"Out", {2, 2, 1}, {1269, 9609, 3868, 7268}, "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "hash",
        .attr = {{"num_hash", FL_ATTR_INT, .i = 2},
                 {"mod_by", FL_ATTR_LONG, .i = 4294967296}},
        .in = {{"X", {2, 1}, {10, 5}, "i64"}},
        .out = {{"Out",
                 {2, 2, 1},
                 {1204014882, 393011615, 3586283837, 2814821595},
                 "i64"}},
    });
}

/* Whole stripes and what may be left of one; the numbers are the checksums that
 * zstd puts behind these bytes. */
static void takes_long_rows_in_stripes(void)
{
    fl_check_op(&(fl_op_case){
        .type = "hash",
        .attr = {{"mod_by", FL_ATTR_LONG, .i = 65536}},
        .in = {{"X",
                {2, 11},
                {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,   10,
                 -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11},
                "i32"}},
        .out = {{"Out", {2, 1, 1}, {30192, 30954}, "i32"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "hash",
        .attr = {{"mod_by", FL_ATTR_LONG, .i = 4294967296}},
        .in = {{"X", {1, 9}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, "i64"}},
        .out = {{"Out", {1, 1, 1}, {2010611783}, "i64"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "hash",
        .attr = {{"mod_by", FL_ATTR_LONG, .i = 4294967296}},
        .in = {{"X", {1, 4}, {1, 2, 3, 4}, "i64"}},
        .out = {{"Out", {1, 1, 1}, {1332125293}, "i64"}},
    });
}

static void says_what_does_not_fit(void)
{
    CHECK_STR(fl_infer_text("hash{num_hash=3} X=i64[-1,2]/1"),
              "Out=i64[-1,3,1]/1");
    CHECK_ERR(fl_infer_try("hash X=f32[2,1]"), FL_ESHAPE,
              "hash: X is f32, expected i64 or i32");
    CHECK_ERR(fl_infer_try("hash X=i64[2]"), FL_ESHAPE,
              "hash: X is [2], expected [N,D]");
    CHECK_ERR(fl_infer_try("hash{num_hash=0} X=i64[2,1]"), FL_EINVAL,
              "hash: num_hash is 0, expected 1 or more");
    CHECK_ERR(fl_infer_try("hash{mod_by=4294967296} X=i32[2,1]"), FL_EINVAL,
              "hash: mod_by is 4294967296, expected 1 to 2147483647");
    CHECK_ERR(fl_infer_try("hash{mod_by=0} X=i32[2,1]"), FL_EINVAL,
              "hash: mod_by is 0, expected 1 to 2147483647");
}

const fl_test fl_tests[] = {
    {"hash gives the numbers of Paddle", gives_the_numbers_of_paddle},
    {"hash takes long rows in stripes", takes_long_rows_in_stripes},
    {"hash says what does not fit", says_what_does_not_fit},
    {0},
};
