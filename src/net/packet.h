/* SPDX-License-Identifier: Apache-2.0 */
/* packet.h - the bytes of a message in several spans, with a reference count.
 *
 *     [header, copied][a tensor's memory, lent][header][memory] ..
 *
 * A sender appends small copies and lends large memory; a receiver gets the
 * spans as the network has stored them, so a number may begin in one span and
 * end in the next. */
#ifndef FL_NET_PACKET_H
#define FL_NET_PACKET_H

#include "base/err.h"

#include <stddef.h>

typedef struct fl_span {
    const void *at;
    size_t size;
} fl_span;

/* Thread: one while it is filled, any after that. */
typedef struct fl_packet fl_packet;

fl_packet *fl_packet_new(void); /* empty, one reference */
fl_packet *fl_packet_ref(fl_packet *p);
void fl_packet_unref(fl_packet *p); /* NULL is fine */

/* Append a copy of the bytes, or lend the memory itself. Lent memory must not
 * change until drop(owner) is called; drop NULL: it never changes. `drop` may
 * run on any thread and inside any function of net/, so it must not take a lock
 * that is held during such a call. */
void fl_packet_copy(fl_packet *p, const void *at, size_t size);
void fl_packet_lend(fl_packet *p, const void *at, size_t size,
                    void (*drop)(void *owner), void *owner);

size_t fl_packet_size(const fl_packet *p);
int fl_packet_spans(const fl_packet *p, const fl_span **out); /* number of
                                                                 spans */

/* A range of a packet's bytes. The packet must outlive it. */
typedef struct fl_bytes {
    const fl_packet *of;
    size_t at, size;
} fl_bytes;

/* Copy `size` bytes of b, from byte `from` on, to `to`. b must have them. */
void fl_bytes_copy(fl_bytes b, size_t from, void *to, size_t size);

/* Get the next span of the bytes. *cursor is 0 at first. False: at the end. */
bool fl_bytes_next(fl_bytes b, size_t *cursor, fl_span *out);

#endif
