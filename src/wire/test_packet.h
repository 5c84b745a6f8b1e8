/* SPDX-License-Identifier: Apache-2.0 */
/* test_packet.h - packets with one span or many. Tests only. */
#ifndef FL_WIRE_TEST_PACKET_H
#define FL_WIRE_TEST_PACKET_H

#include "base/mem.h"
#include "base/str.h"
#include "net/packet.h"

#include <string.h>

/* The bytes of a packet. Own: takes the packet. */
static inline fl_str test_bytes(fl_packet *p)
{
    fl_str s = {0};
    fl_span piece;
    size_t cursor = 0;
    while (fl_bytes_next((fl_bytes){p, 0, fl_packet_size(p)}, &cursor, &piece))
        fl_str_bytes(&s, piece.at, piece.size);
    fl_packet_unref(p);
    return s;
}

/* A packet with spans of `piece` bytes, each allocated separately, so that a
 * sanitizer sees a read beyond a span. */
static inline fl_packet *test_cut(const void *at, size_t n, size_t piece)
{
    fl_packet *p = fl_packet_new();
    for (size_t i = 0; i < n; i += piece) {
        const size_t m = n - i < piece ? n - i : piece;
        void *copy = fl_mem_alloc(m);
        memcpy(copy, (const char *)at + i, m);
        fl_packet_lend(p, copy, m, fl_mem_free, copy);
    }
    return p;
}

#endif
