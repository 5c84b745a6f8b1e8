/* SPDX-License-Identifier: Apache-2.0 */
/* is_empty  Out = whether X has no elements, bool [1] */
#include "op/op.h"

static fl_err infer_is_empty(fl_infer *x)
{
    fl_shape one = {1, {1}};
    FL_TRY(fl_meta_check(x, "X", FL_ANY));
    fl_meta_set(x, "Out", 0, FL_BOOL, &one);
    return FL_OK;
}

static fl_err is_empty(fl_call *c)
{
    *(bool *)fl_out(c, "Out")->data = !fl_numel(c, "X");
    return FL_OK;
}

const fl_op_def fl_op_is_empty = {
    .type = "is_empty",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .infer = infer_is_empty,
    .run = is_empty,
};
