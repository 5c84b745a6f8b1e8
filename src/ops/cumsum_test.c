/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <string.h>

static void sums_along_the_last_dim(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cumsum",
        .in = {{"X", {2, 3}, {1, 2, 3, -4, 5, 0.5}, .lod = "0,1,2"}},
        .out = {{"Out", {2, 3}, {1, 3, 6, -4, 1, 1.5}, .lod = "0,1,2"}},
        .grad = {"X"},
    });
}

static void sums_along_any_dim(void)
{
    const double first[] = {1, 2, 3, 4, 6, 8, 10, 12};
    const double middle[] = {1, 2, 4, 6, 5, 6, 12, 14};
    for (int axis = -3; axis < 2; axis++) {
        fl_op_case c = {
            .type = "cumsum",
            .attr = {{"axis", FL_ATTR_INT, .i = axis}},
            .in = {{"X", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
            .out = {{"Out", {2, 2, 2}, {1, 3, 3, 7, 5, 11, 7, 15}}},
            .grad = {"X"},
        };
        if (axis != -1)
            memcpy(c.out[0].value, axis == 0 || axis == -3 ? first : middle,
                   sizeof first);
        fl_check_op(&c);
    }
}

/* Both flags, both ways, and in place. */
static void leaves_itself_out_and_starts_at_the_end(void)
{
    const double want[4][3] = {{1, 3, 7}, {0, 1, 3}, {7, 6, 4}, {6, 4, 0}};
    for (int i = 0; i < 8; i++) {
        fl_op_case c = {
            .type = "cumsum",
            .attr = {{"exclusive", FL_ATTR_BOOL, .b = i & 1},
                     {"reverse", FL_ATTR_BOOL, .b = i & 2}},
            .in = {{"X", {3}, {1, 2, 4}}},
            .out = {{"Out", {3}, .same = i & 4 ? "X" : NULL}},
            .grad = {i & 4 ? NULL : "X"},
        };
        memcpy(c.out[0].value, want[i & 3], sizeof want[0]);
        fl_check_op(&c);
    }
}

/* More than are summed at once. */
static void sums_many_lines_side_by_side(void)
{
    enum {
        N = 40
    };
    fl_op_case c = {
        .type = "cumsum",
        .attr = {{"axis", FL_ATTR_INT, .i = 0},
                 {"reverse", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {3, N}}},
        .out = {{"Out", {3, N}}},
        .grad = {"X"},
    };
    for (int i = 0; i < N; i++) {
        double *x = c.in[0].value + i, *y = c.out[0].value + i;
        x[0] = i, x[N] = 0.5 * i, x[2 * N] = 3;
        y[0] = 1.5 * i + 3, y[N] = 0.5 * i + 3, y[2 * N] = 3;
    }
    fl_check_op(&c);
}

static void sums_whole_numbers(void)
{
    const char *types[] = {"i64", "i32"};
    for (int i = 0; i < 2; i++)
        fl_check_op(&(fl_op_case){
            .type = "cumsum",
            .in = {{"X", {3}, {1, -2, 4}, .dtype = types[i]}},
            .out = {{"Out", {3}, {1, -1, 3}, .dtype = types[i]}},
        });
}

static void bears_no_elements(void)
{
    fl_check_op(&(fl_op_case){
        .type = "cumsum",
        .attr = {{"axis", FL_ATTR_INT, .i = 0},
                 {"reverse", FL_ATTR_BOOL, .b = true}},
        .in = {{"X", {0, 4}, .empty = true}},
        .out = {{"Out", {0, 4}, .empty = true}},
        .grad = {"X"},
    });
}

static void keeps_unknown_dims(void)
{
    CHECK_STR(fl_infer_text("cumsum X=f32[-1,8]/1"), "Out=f32[-1,8]/1");
    CHECK_STR(fl_infer_text("cumsum{axis=0} X=i64[-1,8]"), "Out=i64[-1,8]");
}

static void refuses_what_it_cannot_sum(void)
{
    CHECK_ERR(fl_infer_try("cumsum{axis=2} X=f32[2,3]"), FL_ESHAPE,
              "cumsum: axis is 2, X has 2 dims");
    CHECK_ERR(fl_infer_try("cumsum{axis=-3} X=f32[2,3]"), FL_ESHAPE,
              "cumsum: axis is -3, X has 2 dims");
    CHECK_ERR(fl_infer_try("cumsum X=bool[2,3]"), FL_ESHAPE,
              "cumsum: X is bool, expected f32, f64, i64 or i32");
    CHECK_ERR(fl_infer_try("cumsum X=rows:f32[9,2]"), FL_ESHAPE,
              "cumsum: X is selected_rows, expected a tensor");
}

const fl_test fl_tests[] = {
    {"cumsum sums along the last dim", sums_along_the_last_dim},
    {"cumsum sums along any dim", sums_along_any_dim},
    {"cumsum leaves itself out and starts at the end",
     leaves_itself_out_and_starts_at_the_end},
    {"cumsum sums many lines side by side", sums_many_lines_side_by_side},
    {"cumsum sums whole numbers", sums_whole_numbers},
    {"cumsum bears no elements", bears_no_elements},
    {"cumsum keeps unknown dims", keeps_unknown_dims},
    {"cumsum refuses what it cannot sum", refuses_what_it_cannot_sum},
    {0},
};
