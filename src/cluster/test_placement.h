/* SPDX-License-Identifier: Apache-2.0 */
/* test_placement.h - gives a test program a placement. Tests only. */
#ifndef FL_CLUSTER_TEST_PLACEMENT_H
#define FL_CLUSTER_TEST_PLACEMENT_H

#include "cluster/placement.h"
#include "graph/program.h"

static inline void test_place(fl_program *p, const fl_placement *like)
{
    fl_placement *own = fl_placement_new(like);
    fl_program_set_job(p, &own->handle);
    fl_handle_unref(&own->handle);
}

#endif
