/* ops_in.h - what the operators share. */
#ifndef FL_TRAINER_OPS_IN_H
#define FL_TRAINER_OPS_IN_H

#include "op/op.h"
#include "tensor/value.h"

/* Output `slot` i has a row of w for each id of `ids`, whose last dim is 1. */
fl_err fl_meta_rows_of(const fl_infer *x, const fl_meta *ids, const fl_meta *w,
                       const char *slot, int i) FL_MUST_CHECK;

#endif
