/* codec_in.h - what the files of the codec share. */
#ifndef FL_WIRE_CODEC_IN_H
#define FL_WIRE_CODEC_IN_H

#include "wire/codec.h"
#include "wire/fields.h"

/* Append it to p, as a field of Message. What is large is lent: the parcel that
 * the item is of must outlive p. */
void fl_item_encode(const fl_item *item, fl_packet *p);

/* The bytes of a Tensor as another item of the parcel. Err: EPROTO. */
fl_err fl_item_decode(fl_bytes b, fl_parcel *p) FL_MUST_CHECK;

#endif
