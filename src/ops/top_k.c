/* SPDX-License-Identifier: Apache-2.0 */
/* top_k   Out, Indices = the k largest elements of each row, the largest first,
 *         and their indices; equal elements keep their order
 *
 * k is the attribute, or the one element of K: then shapes depend on it. */
#define FL_SELF "ops/top_k.c"
#include "op/real.h"
#ifdef REAL

/* Rows of n. `out` has the largest elements so far, so that a row costs n
 * comparisons, and an insertion for each element that belongs there. NaN is the
 * smallest. */
static void FN(pick)(int64_t rows, int64_t n, int64_t k, const REAL *x,
                     REAL *out, int64_t *index)
{
    for (int64_t r = 0; r < rows; r++, x += n, out += k, index += k)
        for (int64_t j = 0, have = 0; j < n; j++) {
            bool full = have == k;
            if (full && !(x[j] > out[k - 1] || isnan(out[k - 1])))
                continue;
            int64_t at = full ? k - 1 : have++;
            for (; at > 0 && (x[j] > out[at - 1] || isnan(out[at - 1])); at--) {
                out[at] = out[at - 1];
                index[at] = index[at - 1];
            }
            out[at] = x[j];
            index[at] = j;
        }
}

static fl_err FN(top_k)(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const fl_shape *from = &x->shape, *to = &fl_out(c, "Out")->shape;
    int64_t n = from->dim[from->rank - 1], k = to->dim[to->rank - 1];
    int64_t rows = fl_shape_span(from, 0, from->rank - 1);
    int64_t *index = fl_out(c, "Indices")->data;
    FN(pick)(rows, n, k, x->data, fl_out(c, "Out")->data, index);
    return FL_OK;
}

#else

static fl_err check_k(const char *type, int64_t k, int64_t n)
{
    if (k >= 1 && (k <= n || n == -1))
        return FL_OK;
    if (n == -1)
        return fl_fail(FL_ESHAPE, "%s: k is %lld, expected 1 or more", type,
                       (long long)k);
    return fl_fail(FL_ESHAPE,
                   "%s: k is %lld, X has %lld in a row, expected 1 to that",
                   type, (long long)k, (long long)n);
}

/* Size the outputs by K. */
static fl_err resize(fl_call *c, const fl_tensor *k)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_shape shape = x->shape;
    int64_t *last = &shape.dim[shape.rank - 1], n = *last;
    FL_TRY(fl_convert(1, k->dtype, k->data, FL_I64, last));
    FL_TRY(check_k(c->def->type, *last, n));
    fl_value *out = fl_out_value(c, "Out", 0);
    fl_value *index = fl_out_value(c, "Indices", 0);
    out->kind = index->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&out->tensor, x->dtype, &shape));
    FL_TRY(fl_tensor_resize(&index->tensor, FL_I64, &shape));
    if (shape.rank == 1) /* X was one row, so the result has no sequences */
        return FL_OK;
    FL_TRY(fl_lod_ref(&out->tensor.lod, &x->lod));
    return fl_lod_ref(&index->tensor.lod, &x->lod);
}

static fl_err top_k(fl_call *c)
{
    const fl_tensor *k = fl_in(c, "K");
    if (k)
        FL_TRY(resize(c, k));
    return fl_in(c, "X")->dtype == FL_F64 ? top_k_f64(c) : top_k_f32(c);
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *m = fl_meta_in(x, "X", 0);
    fl_shape shape = m->shape, one = {1, {1}};
    FL_TRY(fl_meta_check(x, "X", FL_REALS));
    if (!shape.rank)
        return fl_fail(FL_ESHAPE, "%s: X has no dims", fl_meta_type(x));
    int64_t *last = &shape.dim[shape.rank - 1];
    if (fl_meta_in(x, "K", 0)) {
        FL_TRY(fl_meta_expect(x, "K", FL_I32, &one));
        if (fl_meta_running(x))
            return FL_OK; /* the kernel resizes them */
        *last = -1;
    } else {
        int64_t k = fl_meta_attr(x, "k")->i;
        FL_TRY(check_k(fl_meta_type(x), k, *last));
        *last = k;
    }
    fl_meta_set(x, "Out", 0, m->dtype, &shape);
    fl_meta_set(x, "Indices", 0, FL_I64, &shape);
    fl_meta_share_lod(x, "X", "Out");
    fl_meta_share_lod(x, "X", "Indices");
    return FL_OK;
}

const fl_op_def fl_op_top_k = {
    .type = "top_k",
    .in = {{"X"}, {"K", FL_OPTIONAL | FL_NOGRAD | FL_SHAPES}},
    .out = {{"Out"}, {"Indices"}},
    .attr = {{"k", FL_ATTR_INT, .i = 1}},
    .infer = infer,
    .run = top_k,
};

#endif
