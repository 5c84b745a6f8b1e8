/* SPDX-License-Identifier: Apache-2.0 */
/* label.c - checks the shape and the values of class labels. */
#include "kernel/label.h"

fl_shape fl_shape_single(const fl_shape *shape, int dim)
{
    fl_shape s = *shape;
    s.dim[dim] = 1;
    return s;
}

fl_err fl_meta_label(const fl_infer *x, const char *scores, const char *label,
                     int dim, bool soft)
{
    const fl_meta *m = fl_meta_in(x, scores, 0);
    fl_shape one = fl_shape_single(&m->shape, dim);
    if (soft)
        return fl_meta_expect(x, label, m->dtype, &m->shape);
    return fl_meta_expect(x, label, FL_I64, &one);
}

fl_err fl_label_check(const fl_call *c, const char *label, int64_t classes,
                      int64_t ignore)
{
    const fl_tensor *t = fl_in(c, label);
    const int64_t *l = t->data;
    for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++)
        if ((l[i] < 0 || l[i] >= classes) && l[i] != ignore)
            return fl_fail(FL_EINVAL,
                           "%s: %s is %lld in row %lld, expected 0 to %lld",
                           c->def->type, label, (long long)l[i], (long long)i,
                           (long long)classes - 1);
    return FL_OK;
}
