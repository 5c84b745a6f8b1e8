/* SPDX-License-Identifier: Apache-2.0 */
/* regions.h - temporaries whose lives do not overlap share memory.
 *
 * A temporary lives from the step that writes it to the last step that reads
 * its elements. When a plan is compiled, each temporary gets a region
 * (tensor/value.h) that no other temporary uses during its life. Sizes are
 * guessed from the declared shapes; a wrong guess costs memory, not
 * correctness. */
#ifndef FL_EXEC_REGIONS_H
#define FL_EXEC_REGIONS_H

#include "exec/numbers.h"
#include "graph/program.h"

/* The steps of a block, in order of execution. */
typedef struct fl_lives {
    const fl_block *block;
    int64_t n;
    const fl_call *const *step;
    const fl_numbers *numbers;
    const bool *lasting; /* by number: the value needs its own memory, because
                            it is used outside these steps or read before
                            it is written */
} fl_lives;

typedef struct fl_regions {
    fl_region *at;
    int64_t n;
} fl_regions;

/* Give regions to the temporaries of the steps. Own: call fl_regions_fini
 * before the values are freed. */
void fl_regions_init(fl_regions *r, const fl_lives *of);
void fl_regions_fini(fl_regions *r);
size_t fl_regions_bytes(const fl_regions *r); /* memory of all regions now */

#endif
