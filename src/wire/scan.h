/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - searches for NaN and infinities. */
#ifndef FL_WIRE_SCAN_H
#define FL_WIRE_SCAN_H

#include "net/packet.h"
#include "tensor/tensor.h"

/* The index of the first element that is NaN or infinite; -1: there is none, or
 * t is not a floating-point type. An element may begin in one span and end in
 * the next. */
int64_t fl_scan(fl_bytes b, fl_dtype t);

#endif
