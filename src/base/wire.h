/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - protobuf messages from outside.
 *
 * protobuf-c allocates what the bytes claim: 2 MB of empty submessages become
 * 168 MB. So bytes are walked first, without memory: every length, wire type
 * and enum number, every field that must or must not be there. The first fault
 * is told with its place ("blocks[0].ops[3]: type is missing"). */
#ifndef FL_BASE_WIRE_H
#define FL_BASE_WIRE_H

#include "base/err.h"

#include <protobuf-c/protobuf-c.h>

enum {
    FL_WIRE_MOST = 256 << 20, /* bytes; far beyond any program we know of */
};

/* `name` is the file or peer, for sentences. Own: *out is new, fl_wire_free.
 * Err: EPROTO; ENOMEM. */
fl_err fl_wire_unpack(const ProtobufCMessageDescriptor *type, const char *name,
                      const void *bytes, size_t n,
                      ProtobufCMessage **out) FL_MUST_CHECK;
void fl_wire_free(ProtobufCMessage *m); /* NULL is fine */

#endif
