/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - messages as bytes: proto/fluid.proto, explained in docs/wire.md.
 *
 *     message Message { Control control = 1; repeated Tensor tensor = 2; }
 *
 * Control is in control.h. A tensor is a small header, then the memory of the
 * tensor as the last field, so that elements are not copied. */
#ifndef FL_WIRE_CODEC_H
#define FL_WIRE_CODEC_H

#include "net/rpc.h"
#include "wire/parcel.h"

enum {
    /* Largest number of bytes of values in an answer. The rest of a packet is
     * for names and shapes. */
    FL_VALUES_MOST = INT32_MAX - (64 << 20),
};

#define FL_METHOD_WHY    "/fluid.Watch/Why"
#define FL_METHOD_STREAM "/fluid.Server/Stream"

/* Fill out[FL_MSG_KINDS] with every RPC method that carries messages. A method
 * is a copy of `call`, or of `open` if it is an open call, with its own name;
 * FL_METHOD_STREAM is a copy of `stream`. Returns how many there are. */
int fl_msg_methods(fl_rpc_method *out, fl_rpc_method call, fl_rpc_method open,
                   fl_rpc_method stream);

/* Whether requests of this kind may also come on the stream of a pair. */
bool fl_msg_streams(fl_msg_kind kind);

/* Own: a new packet, which holds a reference to the parcel of the blob. */
fl_packet *fl_msg_encode(const fl_msg *m);

/* m borrows from the packet and from `arena`. If the message has tensors, the
 * blob holds a parcel, which the caller drops with fl_keeper_parcels. Error
 * messages name `peer`, unless it is NULL. Limits are checked before anything
 * is allocated. Err: EPROTO. */
fl_err fl_msg_decode(const char *peer, const fl_packet *p, fl_arena *arena,
                     fl_msg *m) FL_MUST_CHECK;

/* How many bytes an item takes on the wire. */
size_t fl_item_size(const fl_item *item);

/* The answer to Why: lines that say which process waits for which. The request
 * is an empty packet. Own: encode gives a new packet; the text that decode
 * gives is in the arena. */
fl_packet *fl_why_encode(const char *text);
fl_err fl_why_decode(const char *peer, const fl_packet *p, fl_arena *arena,
                     const char **text) FL_MUST_CHECK;

#endif
