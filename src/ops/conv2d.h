/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d.h - what operators with the inputs and attributes of conv2d share. */
#ifndef FL_OPS_CONV2D_H
#define FL_OPS_CONV2D_H

#include "kernel/conv.h"

/* From Input, Filter and the attributes of conv2d; oh and ow are not set. */
fl_conv fl_conv_of(const fl_call *c);
/* The shape rule of conv2d: Output [n, m, oh, ow], or the error. */
fl_err fl_conv_infer(const fl_infer *x, fl_shape *out) FL_MUST_CHECK;

#endif
