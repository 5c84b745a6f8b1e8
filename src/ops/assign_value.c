/* SPDX-License-Identifier: Apache-2.0 */
/* assign_value  Out = the numbers in fp32_values, int32_values or int64_values
 *               (whichever `dtype` says), in `shape` */
#include "kernel/move.h"

#include <string.h>

static const char *list_name(fl_dtype t)
{
    return t == FL_F32   ? "fp32_values"
           : t == FL_I32 ? "int32_values"
           : t == FL_I64 ? "int64_values"
                         : NULL;
}

static fl_err infer_assign_value(fl_infer *x)
{
    fl_shape s;
    fl_dtype dtype;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_move_shape(x, "shape", 0, &s));
    FL_TRY(fl_move_dtype(x, "dtype", &dtype));
    const char *name = list_name(dtype);
    if (!name)
        return fl_fail(FL_ESHAPE,
                       "assign_value: dtype is %s, expected f32, i32 or i64",
                       fl_dtype_name(dtype));
    if (fl_meta_attr(x, name)->n != fl_shape_numel(&s))
        return fl_fail(FL_ESHAPE,
                       "assign_value: %s has %d numbers, shape %s needs %lld",
                       name, fl_meta_attr(x, name)->n, fl_shape_text(&s, text),
                       (long long)fl_shape_numel(&s));
    fl_meta_set(x, "Out", 0, dtype, &s);
    return FL_OK;
}

static fl_err assign_value(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out");
    const fl_attr *a = fl_attr_get(c, list_name(y->dtype));
    if (y->dtype == FL_F32)
        return fl_convert(a->n, FL_F32, a->floats, FL_F32, y->data);
    return fl_convert(a->n, FL_I64, a->longs, y->dtype, y->data);
}

const fl_op_def fl_op_assign_value = {
    .type = "assign_value",
    .out = {{"Out"}},
    .attr =
        {
            {"shape", FL_ATTR_INTS, .required = true},
            {"dtype", FL_ATTR_INT, .required = true},
            {"fp32_values", FL_ATTR_FLOATS},
            {"int32_values", FL_ATTR_INTS},
            {"int64_values", FL_ATTR_LONGS},
        },
    .infer = infer_assign_value,
    .run = assign_value,
};
