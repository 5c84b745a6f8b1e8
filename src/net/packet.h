/* SPDX-License-Identifier: Apache-2.0 */
/* packet.h - bytes on their way: scattered, counted, never copied twice.
 *
 *     [header, copied][a tensor's memory, lent][header][memory] ..
 *
 * A sender appends small copies and lends large memory; a receiver gets spans
 * that lie where the network left them, so a number may straddle two. */
#ifndef FL_NET_PACKET_H
#define FL_NET_PACKET_H

#include "base/err.h"

#include <stddef.h>

typedef struct fl_span {
    const void *at;
    size_t size;
} fl_span;

/* Thread: one while it is filled, any afterwards (the count is atomic). */
typedef struct fl_packet fl_packet;

fl_packet *fl_packet_new(void); /* empty, one reference */
fl_packet *fl_packet_ref(fl_packet *p);
void fl_packet_unref(fl_packet *p); /* NULL is fine */

/* Append bytes: a copy of them, or the memory itself, which must stay as it is
 * until drop(owner) is called, on any thread and inside any call of net/, so it
 * takes no lock that is held over one (drop NULL: the memory always stays). */
void fl_packet_copy(fl_packet *p, const void *at, size_t size);
void fl_packet_lend(fl_packet *p, const void *at, size_t size,
                    void (*drop)(void *owner), void *owner);

size_t fl_packet_size(const fl_packet *p);
int fl_packet_spans(const fl_packet *p, const fl_span **out); /* how many */

/* Some bytes of a packet, which outlives it. */
typedef struct fl_bytes {
    const fl_packet *of;
    size_t at, size;
} fl_bytes;

/* Copy `size` bytes that begin `from` bytes into b. They are there. */
void fl_bytes_copy(fl_bytes b, size_t from, void *to, size_t size);

/* The bytes piece by piece: *cursor is 0 at first; false at the end. */
bool fl_bytes_next(fl_bytes b, size_t *cursor, fl_span *out);

#endif
