/* SPDX-License-Identifier: Apache-2.0 */
/* multislot_fuzz.c - any bytes as lines of slots. The first byte chooses the
 * slots: some of each kind, or many of which each has one id. */
#include "data/test_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fl_data_slot kinds[] = {
        {"x", FL_F32, .sparse = true},
        {"skipped", FL_I64, .sparse = true, .unused = true},
        {"y", FL_I64, .shape = {2, {-1, 2}}},
        {"id", FL_I64, .sparse = true},
    };
    static const fl_data_slot ids[] = {
        {"x", FL_F32, .shape = {2, {-1, 4}}}, {"a", FL_I64, .sparse = true},
        {"b", FL_I64, .sparse = true},        {"c", FL_I64, .sparse = true},
        {"d", FL_I64, .shape = {2, {-1, 1}}}, {"e", FL_I64, .sparse = true},
        {"f", FL_I64, .sparse = true},        {"g", FL_I64, .sparse = true},
        {"h", FL_I64, .sparse = true},        {"i", FL_I64, .sparse = true},
    };
    if (size && data[0] == '#')
        fuzz_format(&fl_multislot, 10, ids, data + 1, size - 1);
    else
        fuzz_format(&fl_multislot, 4, kinds, data, size);
    return 0;
}
