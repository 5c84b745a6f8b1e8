/* SPDX-License-Identifier: Apache-2.0 */
/* codec_fuzz.c - decodes any bytes as a message, in spans whose size is the
 * first byte. A message that was decoded must be the same after encode and
 * decode. */
#include "wire/codec.h"
#include "wire/test_packet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    fl_arena *a = fl_arena_new();
    fl_packet *p = test_cut(data + 1, size - 1, (size_t)data[0] + 1);
    fl_msg m, again;
    if (!fl_msg_decode("fuzz", p, a, &m)) {
        if (m.blob.owner)
            fl_parcel_scan(fl_parcel_of(m.blob));
        fl_packet *q = fl_msg_encode(&m);
        if (fl_msg_decode("again", q, a, &again) ||
            again.blob.size != m.blob.size)
            abort();
        fl_keeper_parcels.drop(NULL, again.blob);
        fl_keeper_parcels.drop(NULL, m.blob);
        fl_packet_unref(q);
    }
    fl_packet_unref(p);
    fl_arena_free(a);
    return 0;
}
