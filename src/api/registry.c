/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - the one place that lists every table of operators. */
#include "api/registry.h"

#include "base/vec.h"
#include "collective/ops.h"
#include "ops/ops.h"
#include "pserver/pserver.h"
#include "trainer/ops.h"

fl_err fl_registry_all(fl_registry **out)
{
    FL_VEC(const fl_op_def *) all = {0};
    for (int i = 0; i < fl_ops_count; i++)
        fl_push(&all, fl_ops_table[i]);
    for (int i = 0; i < fl_trainer_ops_count; i++)
        fl_push(&all, fl_trainer_ops_table[i]);
    fl_push(&all, &fl_op_listen_and_serv);
    for (int i = 0; i < fl_collective_ops_count; i++)
        fl_push(&all, fl_collective_ops_table[i]);
    const fl_err err = fl_registry_new(all.at, (int)all.n, out);
    fl_vec_fini(&all);
    return err;
}
