/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"

#define ATTR(steps, kind)                                                      \
    {                                                                          \
        {"curve", FL_ATTR_STRING, .s = kind},                                  \
            {"num_thresholds", FL_ATTR_INT, .i = 4},                           \
        {                                                                      \
            "slide_steps", FL_ATTR_INT, .i = steps                             \
        }                                                                      \
    }

/* Buckets 3, 1, 2 and 0; positives in 3 and 1. */
#define BATCH                                                                  \
    {"Predict", {4, 2}, {0.2, 0.8, 0.6, 0.4, 0.4, 0.6, 0.9, 0.1}},             \
    {                                                                          \
        "Label", {4, 1}, {1, 1, 0, 0}, "i64"                                   \
    }

/* Of the four pairs of a positive and a negative one is in the wrong order. */
static void counts_pairs_in_order(void)
{
    fl_check_op(&(fl_op_case){
        .type = "auc",
        .attr = ATTR(0, "ROC"),
        .in = {BATCH,
               {"StatPos", {1, 5}, {0}, "i64"},
               {"StatNeg", {1, 5}, {0}, "i64"}},
        .out =
            {{"AUC", {1}, {0.75}, "f64"},
             {"StatPosOut", {1, 5}, {0, 1, 0, 1, 0}, "i64", .same = "StatPos"},
             {"StatNegOut", {1, 5}, {1, 0, 1, 0, 0}, "i64", .same = "StatNeg"}},
    });
}

/* Before: a positive in bucket 4, a negative in bucket 0, and a tie in 2. */
static void goes_on_from_what_was_counted(void)
{
    fl_check_op(&(fl_op_case){
        .type = "auc",
        .attr = ATTR(0, "ROC"),
        .in = {BATCH,
               {"StatPos", {1, 5}, {0, 0, 1, 0, 1}, "i64"},
               {"StatNeg", {1, 5}, {1, 0, 1, 0, 0}, "i64"}},
        .out = {{"AUC", {1}, {0.8125}, "f64"},
                {"StatPosOut", {1, 5}, {0, 1, 1, 1, 1}, "i64"},
                {"StatNegOut", {1, 5}, {2, 0, 2, 0, 0}, "i64"}},
    });
}

static void slides_a_window_of_batches(void)
{
    fl_check_op(&(fl_op_case){
        .type = "auc",
        .attr = ATTR(2, "ROC"),
        .in = {BATCH,
               {"StatPos", {2, 5}, {9, 9, 9, 9, 9, 0, 0, 1, 0, 1}, "i64"},
               {"StatNeg", {2, 5}, {7, 7, 7, 7, 7, 1, 0, 1, 0, 0}, "i64"}},
        .out = {{"AUC", {1}, {0.8125}, "f64"},
                {"StatPosOut",
                 {2, 5},
                 {0, 0, 1, 0, 1, 0, 1, 0, 1, 0},
                 "i64",
                 .same = "StatPos"},
                {"StatNegOut",
                 {2, 5},
                 {1, 0, 1, 0, 0, 1, 0, 1, 0, 0},
                 "i64",
                 .same = "StatNeg"}},
    });
}

/* One batch: what was there is forgotten. */
static void a_window_of_one_is_the_batch(void)
{
    fl_check_op(&(fl_op_case){
        .type = "auc",
        .attr = ATTR(1, "ROC"),
        .in = {BATCH,
               {"StatPos", {1, 5}, {9, 9, 9, 9, 9}, "i64"},
               {"StatNeg", {1, 5}, {7, 7, 7, 7, 7}, "i64"}},
        .out = {{"AUC", {1}, {0.75}, "f64"},
                {"StatPosOut", {1, 5}, {0, 1, 0, 1, 0}, "i64"},
                {"StatNegOut", {1, 5}, {1, 0, 1, 0, 0}, "i64"}},
    });
}

/* Recall 1/2 at precision 1, then recall 1 at 2/3 coming from 1/2. */
static void knows_the_curve_of_precision(void)
{
    fl_check_op(&(fl_op_case){
        .type = "auc",
        .attr = ATTR(0, "PR"),
        .in = {BATCH,
               {"StatPos", {1, 5}, {0}, "i64"},
               {"StatNeg", {1, 5}, {0}, "i64"}},
        .out = {{"AUC", {1}, {0.5 + (2 / 3.0 + 0.5) / 4}, "f64"}},
        .want = {"StatPosOut", "StatNegOut"},
    });
}

static void without_negatives_is_not_divided(void)
{
    fl_check_op(&(fl_op_case){
        .type = "auc",
        .attr = ATTR(0, "ROC"),
        .in = {{"Predict", {1, 1}, {1}},
               {"Label", {1, 1}, {1}, "i64"},
               {"StatPos", {1, 5}, {0}, "i64"},
               {"StatNeg", {1, 5}, {0}, "i64"}},
        .out = {{"AUC", {1}, {0}, "f64"},
                {"StatPosOut", {1, 5}, {0, 0, 0, 0, 1}, "i64"}},
        .want = {"StatNegOut"},
    });
}

static void refuses_what_is_no_probability(void)
{
    fl_op_case c = {
        .type = "auc",
        .attr = ATTR(0, "ROC"),
        .in = {{"Predict", {1, 2}, {0, 1.5}},
               {"Label", {1, 1}, {1}, "i64"},
               {"StatPos", {1, 5}, {0}, "i64"},
               {"StatNeg", {1, 5}, {0}, "i64"}},
        .want = {"AUC", "StatPosOut", "StatNegOut"},
    };
    CHECK_ERR(fl_check_try(&c), FL_EINVAL,
              "auc: Predict is 1.5 in row 0, expected 0 to 1");
}

static void knows_shapes(void)
{
    CHECK_STR(fl_infer_text("auc{num_thresholds=4,slide_steps=3} "
                            "Predict=f32[-1,2] Label=i64[-1,1] "
                            "StatPos=i64[3,5] StatNeg=i64[3,5]"),
              "AUC=f64[1] StatPosOut=i64[3,5] StatNegOut=i64[3,5]");
    CHECK_ERR(fl_infer_try("auc{num_thresholds=4} Predict=f32[-1,2] "
                           "Label=i64[-1,1] StatPos=i64[1,4] StatNeg=i64[1,5]"),
              FL_ESHAPE, "auc: StatPos is i64[1,4], expected i64[1,5]");
    CHECK_ERR(fl_infer_try("auc{curve=\"XY\"} Predict=f32[-1,2] "
                           "Label=i64[-1,1] StatPos=i64[1,5] StatNeg=i64[1,5]"),
              FL_EINVAL, "auc: curve is \"XY\", expected ROC or PR");
}

const fl_test fl_tests[] = {
    {"auc counts pairs in order", counts_pairs_in_order},
    {"auc goes on from what was counted", goes_on_from_what_was_counted},
    {"auc slides a window of batches", slides_a_window_of_batches},
    {"auc of a window of one is the batch's", a_window_of_one_is_the_batch},
    {"auc knows the curve of precision", knows_the_curve_of_precision},
    {"auc without negatives is not divided", without_negatives_is_not_divided},
    {"auc refuses what is no probability", refuses_what_is_no_probability},
    {"auc knows its shapes", knows_shapes},
    {0},
};
