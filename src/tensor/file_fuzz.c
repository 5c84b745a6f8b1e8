/* SPDX-License-Identifier: Apache-2.0 */
/* file_fuzz.c - reads any bytes as a tensor file. A value that was read must be
 * the same after it is written and read again. */
#include "tensor/file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fl_value v = {.kind = size && data[0] & 1 ? FL_SELECTED_ROWS : 0};
    size_t used, again;
    fl_str s = {0};
    for (size_t at = 1; at < size; at += used) {
        if (fl_value_decode("fuzz", data + at, size - at, &v, &used))
            break;
        if (fl_value_encode(&v, data[0] & 2, &s) ||
            fl_value_decode("again", s.at, s.n, &v, &again) || again != s.n)
            abort();
        s.n = 0;
    }
    fl_str_fini(&s);
    fl_value_fini(&v);
    return 0;
}
