/* SPDX-License-Identifier: Apache-2.0 */
/* ops_fuzz.c - any bytes as a program of one operator, and of its gradient. */
#include "check/hostile.h"
#include "ops/ops.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fl_registry *r; /* made once; a fuzzer never ends */
    if (!r && fl_registry_new(fl_ops_table, fl_ops_count, &r))
        abort();
    fl_hostile_run(r, data, size);
    return 0;
}
