/* SPDX-License-Identifier: Apache-2.0 */
/* criteo_fuzz.c - any bytes as raw Criteo lines, by each of the hashes. */
#include "data/criteo.h"
#include "data/test_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hashes[] = {"python", "crc32", "fnv"};
    fl_data_slot slots[FL_CRITEO_SLOTS];
    fl_criteo_format f;
    slots[0] = (fl_data_slot){"x", FL_F32, .shape = {2, {-1, 13}}};
    for (int i = 1; i < FL_CRITEO_SLOTS; i++)
        slots[i] = (fl_data_slot){"id", FL_I64, .sparse = true};
    for (int i = 0; i < 3; i++) {
        must(!fl_criteo_init(&f, &(fl_criteo){1000001, hashes[i]}));
        fuzz_format(&f.format, FL_CRITEO_SLOTS, slots, data, size);
    }
    return 0;
}
