/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c - prints tensors as the stream operator of Fluid does.
 *
 *     auc     auc_0.tmp_0
 *             lod: {}
 *             dim: 1
 *             layout: NCHW
 *             dtype: double
 *             data: [0.703125] */
#include "train/dump.h"

#include <math.h>

/* An element as a double; the text shows six digits of it. */
static double element_number(const fl_tensor *t, int64_t i)
{
    double x = NAN;
    const size_t size = fl_dtype_size(t->dtype);
    if (fl_convert(1, t->dtype, (const char *)t->data + (size_t)i * size,
                   FL_F64, &x))
        return NAN;
    return x;
}

static bool is_real(fl_dtype t)
{
    return t == FL_F32 || t == FL_F64 || t == FL_F16;
}

static void add_element(fl_str *out, const fl_tensor *t, int64_t i)
{
    if (t->dtype == FL_I64)
        fl_str_printf(out, "%lld", (long long)((const int64_t *)t->data)[i]);
    else
        fl_str_printf(out, is_real(t->dtype) ? "%.6g" : "%.0f",
                      element_number(t, i));
}

static const char *type_name(fl_dtype t)
{
    switch (t) {
    case FL_F32:
        return "float";
    case FL_F64:
        return "double";
    case FL_I32:
        return "int";
    case FL_I64:
        return "int64_t";
    default:
        return fl_dtype_word(t);
    }
}

static void add_lod(fl_str *out, const fl_lod *lod)
{
    fl_str_add(out, "\tlod: {");
    for (int l = 0; l < lod->levels; l++)
        for (int64_t i = 0; i < lod->n[l]; i++)
            fl_str_printf(out, "%s%lld%s", i ? ", " : "{",
                          (long long)lod->off[l][i],
                          i + 1 < lod->n[l] ? "" : "}");
    fl_str_add(out, "}\n");
}

static void add_tensor(fl_str *out, const fl_tensor *t)
{
    add_lod(out, &t->lod);
    fl_str_add(out, "\tdim: ");
    for (int i = 0; i < t->shape.rank; i++)
        fl_str_printf(out, "%s%lld", i ? ", " : "", (long long)t->shape.dim[i]);
    fl_str_printf(out, "\n\tlayout: NCHW\n\tdtype: %s\n\tdata: [",
                  type_name(t->dtype));
    for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++) {
        fl_str_add(out, i ? " " : "");
        add_element(out, t, i);
    }
    fl_str_add(out, "]\n");
}

void fl_dump(fl_str *out, const char *label, const char *name,
             const fl_value *v)
{
    fl_str_printf(out, "%s\t%s\t", label, name);
    if (v->kind == FL_LOD_TENSOR && v->tensor.data) {
        fl_str_add(out, "\n");
        add_tensor(out, &v->tensor);
    } else if (v->kind == FL_SELECTED_ROWS) {
        fl_str_printf(out, "%lld of %lld rows\n", (long long)v->rows.n,
                      (long long)v->rows.height);
        add_tensor(out, &v->rows.value);
    } else {
        fl_str_printf(out, "nothing has written it\n");
    }
}

double fl_first_number(const fl_value *v)
{
    const bool any = v && v->kind == FL_LOD_TENSOR && v->tensor.data &&
                     fl_tensor_numel(&v->tensor);
    return any ? element_number(&v->tensor, 0) : NAN;
}
