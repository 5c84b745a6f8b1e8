/* SPDX-License-Identifier: Apache-2.0 */
/* logical.c - and, or, xor, not of bools, element by element. */
#include "op/kernel.h"

static fl_err infer(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_SET(FL_BOOL)));
    if (fl_op_slot_in(x->def, "Y") >= 0)
        FL_TRY(fl_meta_alike(x, "X", "Y"));
    return fl_infer_same(x);
}

#define LOGICAL(name, value, other, ...)                                       \
    static fl_err name(fl_call *c)                                             \
    {                                                                          \
        const uint8_t *x = fl_in(c, "X")->data, *y = fl_in(c, other)->data;    \
        uint8_t *z = fl_out(c, "Out")->data;                                   \
        for (int64_t i = 0, n = fl_numel(c, "X"); i < n; i++)                  \
            z[i] = (value);                                                    \
        return FL_OK;                                                          \
    }                                                                          \
    const fl_op_def fl_op_##name = {                                           \
        .type = #name,                                                         \
        .in = {{"X", FL_NOGRAD}, __VA_ARGS__},                                 \
        .out = {{"Out"}},                                                      \
        .infer = infer,                                                        \
        .run = name,                                                           \
    };

LOGICAL(logical_and, x[i] && y[i], "Y", {"Y", FL_NOGRAD})
LOGICAL(logical_or, x[i] || y[i], "Y", {"Y", FL_NOGRAD})
LOGICAL(logical_xor, !x[i] != !y[i], "Y", {"Y", FL_NOGRAD})
/* logical_not has no Y, so the macro gets X twice. */
LOGICAL(logical_not, !(x[i] || y[i]), "X", {0})
