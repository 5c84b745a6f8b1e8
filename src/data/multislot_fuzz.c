/* SPDX-License-Identifier: Apache-2.0 */
/* multislot_fuzz.c - any bytes as lines of slots. */
#include "data/test_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fl_data_slot slots[] = {
        {"x", FL_F32, .sparse = true},
        {"skipped", FL_I64, .sparse = true, .unused = true},
        {"y", FL_I64, .shape = {2, {-1, 2}}},
        {"id", FL_I64, .sparse = true},
    };
    fuzz_format(&fl_multislot, 4, slots, data, size);
    return 0;
}
