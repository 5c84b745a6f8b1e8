/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the fields of a message as bytes, and back.
 *
 * Control, and the Answer to Why, are small protobuf messages. They are written
 * and read in one walk, by the tables of their fields (fl_msg_fields) and the
 * types that proto/fluid.proto gives to these. */
#ifndef FL_WIRE_CONTROL_H
#define FL_WIRE_CONTROL_H

#include "net/packet.h"
#include "protocol/message.h"

enum {
    FL_CONTROL_MOST =
        1 << 20, /* largest size in bytes of a Control, and of an Answer */
};

/* Append a Control: a length, then its bytes. */
void fl_control_put(fl_packet *p, const fl_msg *m);

/* *m points into the arena. Limits are checked before anything is allocated.
 * Err: EPROTO. */
fl_err fl_control_read(fl_bytes b, fl_arena *a, fl_msg *m) FL_MUST_CHECK;

/* The same for the text of an Answer. No length precedes it. */
void fl_answer_put(fl_packet *p, const char *text);
fl_err fl_answer_read(fl_bytes b, fl_arena *a, const char **text) FL_MUST_CHECK;

#endif
