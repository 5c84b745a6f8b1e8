/* SPDX-License-Identifier: Apache-2.0 */
/* why_fuzz.c - decodes any bytes as a server's answer to Why, in spans whose
 * size is the first byte. A text that was decoded must be the same after encode
 * and decode. */
#include "wire/codec.h"
#include "wire/test_packet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text, *again;
    if (!size)
        return 0;
    fl_arena *a = fl_arena_new();
    fl_packet *p = test_cut(data + 1, size - 1, (size_t)data[0] + 1);
    if (!fl_why_decode("fuzz", p, a, &text)) {
        fl_packet *q = fl_why_encode(text);
        if (fl_why_decode("again", q, a, &again) ||
            strlen(again) != strlen(text))
            abort();
        fl_packet_unref(q);
    }
    fl_packet_unref(p);
    fl_arena_free(a);
    return 0;
}
