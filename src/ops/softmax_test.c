/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#include <math.h>

static void sums_to_one(void)
{
    fl_check_op(&(fl_op_case){
        .type = "softmax",
        .in = {{"X", {2, 3}, {1, 2, 3, -1, 0.5, 0.25}, .lod = "0,2"}},
        .out = {{"Out",
                 {2, 3},
                 {0.090030573, 0.244728471, 0.665240956, 0.111457471,
                  0.499517730, 0.389024799},
                 .lod = "0,2"}},
        .grad = {"X"},
    });
}

static void goes_along_any_axis(void)
{
    fl_check_op(&(fl_op_case){
        .type = "softmax",
        .attr = {{"axis", FL_ATTR_INT, .i = 1}},
        .in = {{"X", {1, 2, 3}, {1, 2, 3, 4, 5.5, -1}}},
        .out = {{"Out",
                 {1, 2, 3},
                 {0.047425873, 0.029312231, 0.98201379, 0.952574127,
                  0.970687769, 0.01798621}}},
        .grad = {"X"},
    });
}

/* Twenty classes: a whole vector and a tail. */
static void handles_long_rows(void)
{
    fl_op_case c = {.type = "softmax", .grad = {"X"}};
    fl_case_arg x = {"X", {2, 20}}, y = {"Out", {2, 20}};
    for (int r = 0; r < 2; r++) {
        double sum = 0;
        for (int i = 0; i < 20; i++) {
            x.value[r * 20 + i] = (r * 20 + i) * 7 % 11 / 4.0 - 1;
            sum += exp(x.value[r * 20 + i]);
        }
        for (int i = 0; i < 20; i++)
            y.value[r * 20 + i] = exp(x.value[r * 20 + i]) / sum;
    }
    c.in[0] = x;
    c.out[0] = y;
    fl_check_op(&c);
}

static void never_gives_zero(void)
{
    fl_check_op(&(fl_op_case){
        .type = "softmax",
        .in = {{"X", {1, 2}, {1000, -1000}}},
        .out = {{"Out", {1, 2}, {1, 1.6038e-28}}},
        .tolerance = 1e-30,
    });
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("softmax X=f32[-1,10]/1"), "Out=f32[-1,10]/1");
    CHECK_ERR(fl_infer_try("softmax{axis=2} X=f32[4,10]"), FL_ESHAPE,
              "softmax: axis is 2, X has 2 dims");
    CHECK_ERR(fl_infer_try("softmax X=i64[4,10]"), FL_ESHAPE,
              "softmax: X is i64, expected f32 or f64");
}

const fl_test fl_tests[] = {
    {"softmax sums to one", sums_to_one},
    {"softmax goes along any axis", goes_along_any_axis},
    {"softmax handles long rows", handles_long_rows},
    {"softmax never gives zero", never_gives_zero},
    {"softmax knows its shapes", knows_shapes},
    {0},
};
