/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - reads the fields of a protobuf message whose bytes lie in several
 * spans.
 *
 *     message  := (key value)*        key = number << 3 | wire type
 *     value    := varint | 8 bytes | length bytes | 4 bytes
 *
 * Nothing is copied or allocated. Error messages name the field; the caller
 * adds whose message it is. */
#ifndef FL_WIRE_FIELDS_H
#define FL_WIRE_FIELDS_H

#include "net/packet.h"

#include <stdint.h>

typedef enum fl_wire_type {
    FL_WIRE_VARINT = 0,
    FL_WIRE_8_BYTES = 1,
    FL_WIRE_BYTES = 2,
    FL_WIRE_4_BYTES = 5,
} fl_wire_type;

typedef struct fl_field {
    uint64_t number;
    fl_wire_type wire;
    uint64_t value; /* value of a VARINT, 8_BYTES or 4_BYTES field */
    fl_bytes bytes; /* content of a BYTES field */
} fl_field;

/* A reader of one message. Thread: one at a time. */
typedef struct fl_fields {
    fl_bytes of;
    size_t at;                   /* bytes read */
    const uint8_t *here, *until; /* the rest of the current span */
} fl_fields;

fl_fields fl_fields_of(fl_bytes message);
bool fl_fields_end(const fl_fields *f);

/* Read the next field; there must be one. Err: EPROTO. */
fl_err fl_fields_next(fl_fields *f, fl_field *out) FL_MUST_CHECK;

/* Read a number of a packed list. Err: EPROTO. */
fl_err fl_fields_number(fl_fields *f, uint64_t *out) FL_MUST_CHECK;

/* --- writing --- */

enum {
    FL_VARINT_MOST = 10, /* largest size of a varint in bytes */
};

/* Write a varint. Returns how many bytes were written. */
size_t fl_varint_put(uint8_t to[FL_VARINT_MOST], uint64_t v);

#endif
