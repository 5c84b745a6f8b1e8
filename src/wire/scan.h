/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - is every number finite? */
#ifndef FL_WIRE_SCAN_H
#define FL_WIRE_SCAN_H

#include "net/packet.h"
#include "tensor/tensor.h"

/* The first element that is not; -1: all are, or t has no such numbers. An
 * element may straddle two spans. */
int64_t fl_scan(fl_bytes b, fl_dtype t);

#endif
