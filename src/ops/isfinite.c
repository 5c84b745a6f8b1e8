/* isfinite  Out = whether no element of X is infinite or NaN, bool [1] */
#define FL_SELF "ops/isfinite.c"
#include "op/number.h"
#ifdef NUM

/* x - x is 0 for every finite x, and NaN for all others. */
FL_CLONES static bool FN(all)(int64_t n, const NUM *x)
{
    int ok = 1;
    for (int64_t i = 0; i < n; i++)
        ok &= x[i] - x[i] == 0;
    return ok;
}

static fl_err FN(all_finite)(fl_call *c)
{
    const fl_value *v = fl_in_value(c, "X", 0);
    const fl_tensor *x =
        v->kind == FL_SELECTED_ROWS ? &v->rows.value : &v->tensor;
    *(bool *)fl_out(c, "Out")->data = FN(all)(fl_tensor_numel(x), x->data);
    return FL_OK;
}

#else

FL_NUMBER_KERNEL(all_finite)

static fl_err infer(fl_infer *x)
{
    fl_shape one = {1, {1}};
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS | FL_OR_ROWS));
    fl_meta_set(x, "Out", 0, FL_BOOL, &one);
    return FL_OK;
}

const fl_op_def fl_op_isfinite = {
    .type = "isfinite",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .infer = infer,
    .run = all_finite,
};

#endif
