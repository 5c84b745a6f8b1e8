/* SPDX-License-Identifier: Apache-2.0 */
/* channel_fuzz.c - reads any bytes as if they came from the other end of a
 * channel. */
#include "launch/channel.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fl_channel c = {.in = -1, .out = -1};
    fl_notice r;
    bool found = true;
    fl_str_bytes(&c.got, data, size);
    (void)fl_channel_skip_to(&c, "hello");
    while (!fl_channel_take(&c, &r, &found) && found)
        if (r.size > FL_NOTICE_BYTES || r.body[r.size])
            abort();
    fl_channel_fini(&c);
    return 0;
}
