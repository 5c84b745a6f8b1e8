/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of ops that need a server, and the kernels of those that do not.
 */
#include "check/check.h"
#include "trainer/ops.h"

static void split_byref_cuts_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "split_byref",
        .attr = {{"sections", FL_ATTR_INTS, FL_CASE_INTS(1, 2)}},
        .in = {{"X", {3, 2}, {1, 2, 3, 4, 5, 6}}},
        .out = {{"Out", {1, 2}, {1, 2}}, {"Out", {2, 2}, {3, 4, 5, 6}}},
    });
    CHECK_ERR(fl_infer_try("split_byref{sections=[1,1]} X=f32[3,2]"), FL_ESHAPE,
              "split_byref: the sections have 2 rows, X has 3");
    CHECK_ERR(fl_infer_try("split_byref{sections=[3]} X=f32[3,2]"), FL_EINVAL,
              "split_byref: 1 sections for 2 outputs");
}

static void split_ids_deals_each_id_once(void)
{
    fl_check_op(&(fl_op_case){
        .type = "split_ids",
        .in = {{"Ids", {4, 1}, {7, 2, 7, 4}, .dtype = "i64"},
               {"Ids", {2, 1}, {3, 2}, .dtype = "i64"}},
        .out = {{"Out", {2, 1}, {2, 4}, .dtype = "i64"},
                {"Out", {2, 1}, {3, 7}, .dtype = "i64"}},
    });
}

static void split_ids_deals_selected_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "split_ids",
        .in =
            {{"Ids", {3, 2}, {1, 2, 3, 4, 5, 6}, .rows = "5,2,5", .height = 9}},
        .out = {{"Out", {1, 2}, {3, 4}, .rows = "2", .height = 9},
                {"Out", {2, 2}, {1, 2, 5, 6}, .rows = "5,5", .height = 9}},
    });
}

static void merge_ids_finds_each_row(void)
{
    fl_check_op(&(fl_op_case){
        .type = "merge_ids",
        .attr = {{"padding_idx", FL_ATTR_LONGS, FL_CASE_INTS(-1, 3)}},
        .in = {{"Ids", {3, 1}, {7, 2, 7}, .dtype = "i64", .lod = "0,1,3"},
               {"Ids", {2, 1}, {3, 2}, .dtype = "i64"},
               {"Rows", {1, 1}, {2}, .dtype = "i64"},
               {"Rows", {2, 1}, {3, 7}, .dtype = "i64"},
               {"X", {1, 2}, {1, 2}},
               {"X", {2, 2}, {3, 4, 5, 6}}},
        .out = {{"Out", {3, 2}, {5, 6, 1, 2, 5, 6}, .lod = "0,1,3"},
                {"Out", {2, 2}, {0, 0, 1, 2}}},
    });
}

/* An id may occur in several inputs, and shards may list rows in any order. */
static void merge_ids_takes_ids_that_repeat(void)
{
    fl_check_op(&(fl_op_case){
        .type = "merge_ids",
        .in = {{"Ids", {4, 1}, {0, 2, 5, 6}, "i64"},
               {"Ids", {4, 1}, {0, 2, 2, 3}, "i64"},
               {"Rows", {2, 1}, {0, 2}, "i64"},
               {"Rows", {2, 1}, {5, 3}, "i64"},
               {"Rows", {1, 1}, {6}, "i64"},
               {"X", {2, 2}, {0.5, 1, 2, 2.5}},
               {"X", {2, 2}, {5, 5.5, 3, 3.5}},
               {"X", {1, 2}, {6, 6.5}}},
        .out = {{"Out", {4, 2}, {0.5, 1, 2, 2.5, 5, 5.5, 6, 6.5}},
                {"Out", {4, 2}, {0.5, 1, 2, 2.5, 2, 2.5, 3, 3.5}}},
    });
    CHECK_ERR(fl_infer_try("merge_ids Ids=i64[1,1] Ids=i64[1,1] Rows=i64[1] "
                           "Rows=i64[1] X=f64[1,2] X=f32[1,2]"),
              FL_ESHAPE,
              "merge_ids: X 1 is f32[1,2], whose rows differ from those of X "
              "0");
}

static void merge_ids_says_which_row_is_missing(void)
{
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "merge_ids",
                  .in = {{"Ids", {1, 1}, {5}, .dtype = "i64"},
                         {"Rows", {1, 1}, {4}, .dtype = "i64"},
                         {"X", {1, 2}, {1, 2}}},
                  .out = {{"Out", {1, 2}, {0, 0}}},
              }),
              FL_EINVAL, "merge_ids: no Rows have the id 5");
}

static void ref_by_trainer_id_picks(void)
{
    fl_check_op(&(fl_op_case){
        .type = "ref_by_trainer_id",
        .in = {{"X", {2}, {1, 2}},
               {"X", {2}, {3, 4}},
               {"TrainerId", {1}, {1}, .dtype = "i64"}},
        .out = {{"Out", {2}, {3, 4}}},
    });
    CHECK_ERR(
        fl_check_try(&(fl_op_case){
            .type = "ref_by_trainer_id",
            .in = {{"X", {1}, {1}}, {"TrainerId", {1}, {2}, .dtype = "i64"}},
            .out = {{"Out", {1}, {0}}},
        }),
        FL_EINVAL, "ref_by_trainer_id: TrainerId is 2, but X has 1");
}

static void lookups_have_a_row_for_each_id(void)
{
    CHECK_STR(fl_infer_text("distributed_lookup_table Ids=i64[-1,1]/1 "
                            "Ids=i64[5,1] W=f32[10,4]"),
              "Outputs=f32[-1,4]/1 Outputs=f32[5,4]");
    CHECK_STR(fl_infer_text("lookup_sparse_table W=rows:f32[10,4] "
                            "Ids=i64[-1,1]"),
              "Out=f32[-1,4]");
    CHECK_ERR(fl_infer_try("lookup_sparse_table W=f32[10] Ids=i64[-1,1]"),
              FL_ESHAPE, "lookup_sparse_table: W is [10], expected [v,d]");
    CHECK_ERR(fl_infer_try("lookup_sparse_table W=f32[10,4] Ids=i64[-1,2]"),
              FL_ESHAPE,
              "lookup_sparse_table: Ids is [-1,2], expected [.., 1]");
    /* Out keeps its declared type, which is bool in this harness */
    CHECK_STR(fl_infer_text("fake_init{shape=[10,4]}"), "Out=bool[10,4]");
}

/* The other operators have no shape rules. */
static void others_run_under_a_service(void)
{
    for (int i = 0; i < fl_trainer_ops_count; i++) {
        const fl_op_def *def = fl_trainer_ops_table[i];
        CHECK(fl_registry_find(fl_check_registry(), def->type) == def);
        CHECK(def->infer != NULL);
        fl_checked(def->type, false);
    }
    CHECK_ERR(fl_check_try(&(fl_op_case){.type = "send",
                                         .in = {{"X", {1}, {1}}},
                                         .out = {{"Out", {1}, {0}}}}),
              FL_EINVAL,
              "send: nothing here connects it to servers; only trainers can "
              "run it: exe.run of the program that get_trainer_program");
}

const fl_test fl_tests[] = {
    {"split_byref cuts rows", split_byref_cuts_rows},
    {"split_ids deals each id once", split_ids_deals_each_id_once},
    {"split_ids deals selected rows", split_ids_deals_selected_rows},
    {"merge_ids finds each row", merge_ids_finds_each_row},
    {"merge_ids takes ids that repeat", merge_ids_takes_ids_that_repeat},
    {"merge_ids says which row is missing",
     merge_ids_says_which_row_is_missing},
    {"ref_by_trainer_id picks", ref_by_trainer_id_picks},
    {"lookups have a row for each id", lookups_have_a_row_for_each_id},
    {"other ops of distribution run under a service",
     others_run_under_a_service},
    {0},
};
