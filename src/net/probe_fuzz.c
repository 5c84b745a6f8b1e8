/* SPDX-License-Identifier: Apache-2.0 */
/* probe_fuzz.c - any bytes as the answer to a probe. The result must be the
 * same if they arrive in two parts. */
#include "net/probe.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const size_t n = size - 1, cut = n ? data[0] % n : 0;
    fl_probe whole = {0}, parts = {0};
    fl_probe_answer a = fl_probe_hear(&parts, data + 1, cut);
    if (!a)
        a = fl_probe_hear(&parts, data + 1 + cut, n - cut);
    if (a != fl_probe_hear(&whole, data + 1, n))
        abort();
    return 0;
}
