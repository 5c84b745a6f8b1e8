/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - protobuf messages from outside.
 *
 * protobuf-c allocates whatever the bytes ask for: 2 MB of empty submessages
 * become 168 MB. So the bytes are checked first, without allocating: every
 * length, wire type and enum number, and which fields are present. The error
 * names the place of the first fault ("blocks[0].ops[3]: type is missing"). */
#ifndef FL_BASE_WIRE_H
#define FL_BASE_WIRE_H

#include "base/err.h"

#include <protobuf-c/protobuf-c.h>

enum {
    FL_WIRE_MOST = 256 << 20, /* bytes; far more than any known program has */
};

/* `name` is the file or peer, for error messages. Own: *out is new, freed with
 * fl_wire_free. Err: EPROTO; ENOMEM. */
fl_err fl_wire_unpack(const ProtobufCMessageDescriptor *type, const char *name,
                      const void *bytes, size_t n,
                      ProtobufCMessage **out) FL_MUST_CHECK;
void fl_wire_free(ProtobufCMessage *m); /* NULL is fine */

#endif
