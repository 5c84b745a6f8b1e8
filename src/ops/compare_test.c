/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *type;
    double out[3]; /* of 1, 2, 3 against 2 */
} rows[] = {
    {"less_than", {1, 0, 0}},    {"less_equal", {1, 1, 0}},
    {"greater_than", {0, 0, 1}}, {"greater_equal", {0, 1, 1}},
    {"equal", {0, 1, 0}},        {"not_equal", {1, 0, 1}},
};

enum {
    ROWS = sizeof rows / sizeof *rows
};

static void order_numbers_of_every_type(void)
{
    const char *types[] = {NULL, "i64", "i32"};
    for (int i = 0; i < ROWS; i++)
        for (int t = 0; t < 3; t++) {
            fl_op_case c = {
                .type = rows[i].type,
                .in = {{"X", {3}, {1, 2, 3}, .dtype = types[t]},
                       {"Y", {3}, {2, 2, 2}, .dtype = types[t]}},
                .out = {{"Out", {3}, .dtype = "bool"}},
            };
            memcpy(c.out[0].value, rows[i].out, sizeof rows[i].out);
            fl_check_op(&c);
        }
}

static void compare_bools(void)
{
    fl_check_op(&(fl_op_case){
        .type = "equal",
        .in = {{"X", {4}, {0, 0, 1, 1}, .dtype = "bool"},
               {"Y", {4}, {0, 1, 0, 1}, .dtype = "bool"}},
        .out = {{"Out", {4}, {1, 0, 0, 1}, .dtype = "bool"}},
    });
}

static void broadcast_y(void)
{
    fl_check_op(&(fl_op_case){
        .type = "less_than",
        .in = {{"X", {2, 2}, {1, 5, 3, 2}}, {"Y", {2}, {2, 4}}},
        .out = {{"Out", {2, 2}, {1, 0, 0, 1}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "less_than",
        .attr = {{"axis", FL_ATTR_INT, .i = 0}},
        .in = {{"X", {2, 2}, {1, 5, 3, 2}}, {"Y", {2}, {2, 4}}},
        .out = {{"Out", {2, 2}, {1, 0, 1, 1}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "greater_equal",
        .in = {{"X", {0, 2}, .empty = true}, {"Y", {1}, {2}}},
        .out = {{"Out", {0, 2}, .dtype = "bool", .empty = true}},
    });
}

static void find_nan_unlike_all(void)
{
    fl_check_op(&(fl_op_case){
        .type = "equal",
        .in = {{"X", {1}, {NAN}}, {"Y", {1}, {NAN}}},
        .out = {{"Out", {1}, {0}, .dtype = "bool"}},
    });
    fl_check_op(&(fl_op_case){
        .type = "not_equal",
        .in = {{"X", {1}, {NAN}}, {"Y", {1}, {NAN}}},
        .out = {{"Out", {1}, {1}, .dtype = "bool"}},
    });
}

static void know_shapes_and_refuse(void)
{
    CHECK_STR(fl_infer_text("less_than X=i64[-1,8] Y=i64[1]"),
              "Out=bool[-1,8]");
    CHECK_ERR(fl_infer_try("less_than X=u8[2] Y=u8[2]"), FL_ESHAPE,
              "less_than: X is u8, expected f32, f64, i64, i32 or bool");
    CHECK_ERR(fl_infer_try("less_than X=f32[2] Y=f32[3]"), FL_ESHAPE,
              "less_than: Y [3] does not fit into X [2] at axis -1");
}

const fl_test fl_tests[] = {
    {"compare ops order numbers of every type", order_numbers_of_every_type},
    {"compare ops compare bools", compare_bools},
    {"compare ops broadcast Y", broadcast_y},
    {"compare ops find NaN unlike all, itself too", find_nan_unlike_all},
    {"compare ops know shapes and refuse", know_shapes_and_refuse},
    {0},
};
