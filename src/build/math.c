/* SPDX-License-Identifier: Apache-2.0 */
/* math.c - operators on variables: x + y, x * 2.0, 1.0 - x, x < y.
 *
 * A number becomes a variable: [1] to the right of x (it is broadcast), but of
 * the full shape of x to its left, where nothing is broadcast. */
#include "build/layer.h"

static const struct math {
    const char *sign, *op;
    bool commutes; /* 2 + x is x + 2 */
} maths[] = {
    {"+", "elementwise_add", true},
    {"-", "elementwise_sub"},
    {"*", "elementwise_mul", true},
    {"/", "elementwise_div"},
    {"**", "elementwise_pow"},
    {"//", "elementwise_floordiv"},
    {"%", "elementwise_mod"},
    {"==", "equal"},
    {"!=", "not_equal"},
    {"<", "less_than"},
    {"<=", "less_equal"},
    {">", "greater_than"},
    {">=", "greater_equal"},
};

static fl_err tmp(fl_net *n, fl_dtype dtype, fl_var **out)
{
    return fl_block_add_var(
        fl_net_block(n),
        &(fl_var){.name = fl_names_generate(n->names, n->arena, "tmp"),
                  .dtype = dtype},
        out);
}

static int first_unknown(const fl_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] < 0)
            return i;
    return -1;
}

/* `number` in the shape of x, or [1]. */
static fl_err emit_fill(fl_net *n, const fl_var *x, double number, bool full,
                        fl_var **out)
{
    const int batch = full ? first_unknown(&x->shape) : -1;
    const int64_t one = 1;
    FL_TRY(tmp(n, x->dtype, out));
    (*out)->stop_gradient = true;
    fl_desc *d = fl_net_desc(n, batch < 0 ? "fill_constant"
                                          : "fill_constant_batch_size_like");
    if (batch >= 0) {
        fl_set_in(d, "Input", x);
        fl_set_int(d, "input_dim_idx", batch);
        fl_set_int(d, "output_dim_idx", batch);
        fl_set_bool(d, "by_rows", true);
    }
    fl_set_out(d, "Out", *out);
    if (full)
        fl_set_ints(d, "shape", x->shape.rank, x->shape.dim);
    else
        fl_set_ints(d, "shape", 1, &one);
    fl_set_int(d, "dtype", x->dtype);
    fl_set_float(d, "value", number);
    return fl_net_append(n, d);
}

static fl_err to_dtype(fl_net *n, fl_dtype dtype, fl_var **v)
{
    fl_var *out = NULL;
    if ((*v)->dtype == dtype)
        return FL_OK;
    FL_TRY(tmp(n, dtype, &out));
    fl_desc *d = fl_net_desc(n, "cast");
    fl_set_in(d, "X", *v);
    fl_set_out(d, "Out", out);
    fl_set_int(d, "in_dtype", (*v)->dtype);
    fl_set_int(d, "out_dtype", dtype);
    FL_TRY(fl_net_append(n, d));
    *v = out;
    return FL_OK;
}

static fl_err combine_operands(fl_net *n, const char *op, fl_var *x, fl_var *y,
                               fl_var **out)
{
    const bool batched = y->shape.rank && y->shape.dim[0] == -1;
    FL_TRY(tmp(n, x->dtype, out));
    fl_desc *d = fl_net_desc(n, op);
    fl_set_in(d, "X", x);
    fl_set_in(d, "Y", y);
    fl_set_out(d, "Out", *out);
    fl_set_int(d, "axis", batched ? 0 : -1);
    return fl_net_append(n, d);
}

fl_err fl_var_math(fl_net *n, const char *op, fl_var *x, fl_var *y,
                   double number, bool reversed, fl_var **out)
{
    const struct math *m = NULL;
    for (size_t i = 0; i < sizeof maths / sizeof *maths; i++)
        if (!strcmp(maths[i].sign, op))
            m = &maths[i];
    if (!m)
        return fl_fail(FL_EINVAL, "there is no operator \"%s\" on variables",
                       op);
    const bool swap = reversed && !m->commutes;
    if (!y)
        FL_TRY(emit_fill(n, x, number, swap, &y));
    FL_TRY(to_dtype(n, x->dtype, &y));
    return combine_operands(n, m->op, swap ? y : x, swap ? x : y, out);
}
