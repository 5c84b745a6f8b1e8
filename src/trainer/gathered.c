/* SPDX-License-Identifier: Apache-2.0 */
/* gathered.c - the gradients of one variable that wait to be sent together. */
#include "trainer/gathered.h"

#include "op/lanes.h"

static fl_err fail_difference(const char *name, const char *what)
{
    return fl_fail(FL_ESHAPE,
                   "communicator: gradient \"%s\" has %s than the one before",
                   name, what);
}

/* --- tensors --- */

/* The sum of g, with memory for gradients like the first one. */
static fl_err open_sum(fl_gathered *g, const char *name, fl_dtype dtype,
                       const fl_shape *shape)
{
    fl_tensor *sum = &g->value.tensor;
    if (dtype != FL_F32 && dtype != FL_F64)
        return fl_fail(
            FL_EINVAL,
            "communicator: gradient \"%s\" is %s, expected f32 or f64", name,
            fl_dtype_name(dtype));
    if (!g->n)
        return fl_tensor_resize(sum, dtype, shape);
    if (sum->dtype != dtype || !fl_shape_equal(&sum->shape, shape))
        return fail_difference(name, "another shape");
    return FL_OK;
}

static void add_elements(const void *self, bool first, void *sum)
{
    const fl_tensor *x = self;
    if (first)
        memcpy(sum, x->data, fl_tensor_bytes(x));
    else if (x->dtype == FL_F64)
        fl_add_f64(fl_tensor_numel(x), x->data, sum);
    else
        fl_add_f32(fl_tensor_numel(x), x->data, sum);
}

static fl_err add_tensor(fl_gathered *g, const char *name, const fl_addend *x)
{
    FL_TRY(open_sum(g, name, x->dtype, x->shape));
    x->add(x->self, !g->n, g->value.tensor.data);
    return FL_OK;
}

/* --- selected rows --- */

static void set_row_count(fl_rows *r, int64_t n)
{
    r->n = r->index.shape.dim[0] = r->value.shape.dim[0] = n;
}

static void copy_rows(fl_rows *to, int64_t at, const fl_rows *r)
{
    const size_t row = (size_t)fl_rows_width(r) * fl_dtype_size(r->value.dtype);
    memcpy(fl_rows_index(to) + at, r->index.data,
           (size_t)r->n * sizeof(int64_t));
    memcpy((char *)to->value.data + (size_t)at * row, r->value.data,
           (size_t)r->n * row);
}

/* Get memory for n rows of the width of x. The rows in g are kept. */
static fl_err reserve_rows(fl_gathered *g, const fl_rows *x, int64_t n)
{
    fl_rows *all = &g->value.rows, larger = {0};
    fl_shape shape = x->value.shape;
    if (n <= g->room && !fl_buf_shared(all->value.buf))
        return FL_OK;
    shape.dim[0] = x->height;
    const int64_t room = n > 2 * g->room ? n : 2 * g->room;
    FL_TRY(fl_rows_resize(&larger, x->value.dtype, &shape, room));
    const int64_t had = g->n ? all->n : 0;
    if (had)
        copy_rows(&larger, 0, all);
    fl_tensor_fini(&all->index);
    fl_tensor_fini(&all->value);
    *all = larger;
    set_row_count(all, had);
    g->room = room;
    return FL_OK;
}

static bool is_like(const fl_rows *a, const fl_rows *b)
{
    return a->height == b->height && a->value.dtype == b->value.dtype &&
           fl_rows_width(a) == fl_rows_width(b);
}

static fl_err append_rows(fl_gathered *g, const char *name, const fl_rows *x)
{
    fl_rows *all = &g->value.rows;
    if (g->room && !is_like(all, x)) {
        if (g->n)
            return fail_difference(name, "other rows");
        g->room = 0;
    }
    const int64_t had = g->n ? all->n : 0;
    FL_TRY(reserve_rows(g, x, had + x->n));
    copy_rows(all, had, x);
    set_row_count(all, had + x->n);
    return FL_OK;
}

/* --- both --- */

static fl_err check_kind(const fl_gathered *g, const char *name, fl_kind kind)
{
    return g->n && g->value.kind != kind ? fail_difference(name, "another kind")
                                         : FL_OK;
}

fl_err fl_gathered_make(fl_gathered *g, const char *name, const fl_addend *x)
{
    FL_TRY(check_kind(g, name, FL_LOD_TENSOR));
    FL_TRY(add_tensor(g, name, x));
    g->value.kind = FL_LOD_TENSOR;
    g->n++;
    return FL_OK;
}

fl_err fl_gathered_add(fl_gathered *g, const char *name, const fl_value *v)
{
    const fl_tensor *x = &v->tensor;
    if (v->kind != FL_SELECTED_ROWS)
        return fl_gathered_make(
            g, name, &(fl_addend){x->dtype, &x->shape, add_elements, x});
    FL_TRY(check_kind(g, name, v->kind));
    FL_TRY(append_rows(g, name, &v->rows));
    g->value.kind = v->kind;
    g->n++;
    return FL_OK;
}

void fl_gathered_fini(fl_gathered *g)
{
    fl_value_fini(&g->value);
    *g = (fl_gathered){0};
}
