/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and shape rules of operators that talk to other ranks. */
#include "collective/ops.h"

#include "check/check.h"

static void results_have_the_shapes_of_fluid(void)
{
    CHECK_STR(fl_infer_text("c_allreduce_sum X=f32[3,2]"), "Out=f32[3,2]");
    CHECK_STR(fl_infer_text("c_broadcast X=i64[-1,2]"), "Out=i64[-1,2]");
    CHECK_STR(fl_infer_text("c_allgather{nranks=3} X=f32[2,5]"),
              "Out=f32[6,5]");
    CHECK_STR(fl_infer_text("c_allgather{nranks=3} X=f32[-1,5]"),
              "Out=f32[-1,5]");
    CHECK_STR(fl_infer_text("c_reducescatter{nranks=3} X=f32[6,5]"),
              "Out=f32[2,5]");
}

static void wrong_shapes_are_refused(void)
{
    CHECK_ERR(fl_infer_try("c_reducescatter{nranks=4} X=f32[6,5]"), FL_ESHAPE,
              "c_reducescatter: X has 6 rows, expected a multiple of nranks, "
              "which is 4");
    CHECK_ERR(fl_infer_try("c_allgather{nranks=0} X=f32[6,5]"), FL_EINVAL,
              "c_allgather: nranks is 0, expected 1 or more");
    CHECK_ERR(fl_infer_try("c_allreduce_sum X=bool[6]"), FL_ESHAPE,
              "c_allreduce_sum: X is bool, expected f32, f64, i64 or i32");
}

/* The kernels need other ranks and are tested in world_test.c. */
static void every_table_is_registered(void)
{
    for (int i = 0; i < fl_collective_ops_count; i++) {
        const fl_op_def *def = fl_collective_ops_table[i];
        CHECK(fl_registry_find(fl_check_registry(), def->type) == def);
        CHECK(def->infer != NULL);
        fl_checked(def->type, false);
    }
}

const fl_test fl_tests[] = {
    {"results have the shapes of Fluid", results_have_the_shapes_of_fluid},
    {"wrong shapes are refused", wrong_shapes_are_refused},
    {"every table is registered", every_table_is_registered},
    {0},
};
