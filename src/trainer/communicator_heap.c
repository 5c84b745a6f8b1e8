/* communicator_heap.c - what gathers of a gradient until it travels. */
#include "trainer/communicator_in.h"

#include "op/lanes.h"

enum {
    ROWS = 4096 /* that travel together: a server is done with them soon */
};

static fl_err differs(const char *name, const char *how)
{
    return fl_fail(FL_ESHAPE,
                   "communicator: gradient \"%s\" has %s than the one before",
                   name, how);
}

/* --- dense --- */

static fl_err start_sum(fl_tensor *sum, const char *name, const fl_tensor *x)
{
    if (x->dtype != FL_F32 && x->dtype != FL_F64)
        return fl_fail(FL_EINVAL,
                       "communicator: gradient \"%s\" is %s; f32 and f64 can "
                       "be added up",
                       name, fl_dtype_name(x->dtype));
    FL_TRY(fl_tensor_resize(sum, x->dtype, &x->shape));
    memcpy(sum->data, x->data, fl_tensor_bytes(x));
    return FL_OK;
}

static fl_err add_tensor(fl_heap *h, const char *name, const fl_tensor *x)
{
    fl_tensor *sum = &h->value.tensor;
    if (!h->n)
        return start_sum(sum, name, x);
    if (sum->dtype != x->dtype || !fl_shape_equal(&sum->shape, &x->shape))
        return differs(name, "another shape");
    if (x->dtype == FL_F64)
        fl_add_f64(fl_tensor_numel(x), x->data, sum->data);
    else
        fl_add_f32(fl_tensor_numel(x), x->data, sum->data);
    return FL_OK;
}

/* --- rows --- */

static void set_rows(fl_rows *r, int64_t n)
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

/* Memory for n rows like those of x; what is there stays. */
static fl_err grow(fl_heap *h, const fl_rows *x, int64_t n)
{
    fl_rows *all = &h->value.rows, bigger = {0};
    fl_shape shape = x->value.shape;
    if (n <= h->room && !fl_buf_shared(all->value.buf))
        return FL_OK;
    shape.dim[0] = x->height;
    const int64_t room = n > 2 * h->room ? n : 2 * h->room;
    FL_TRY(fl_rows_resize(&bigger, x->value.dtype, &shape, room));
    const int64_t had = h->n ? all->n : 0;
    if (had)
        copy_rows(&bigger, 0, all);
    fl_tensor_fini(&all->index);
    fl_tensor_fini(&all->value);
    *all = bigger;
    set_rows(all, had);
    h->room = room;
    return FL_OK;
}

static bool same_rows(const fl_rows *a, const fl_rows *b)
{
    return a->height == b->height && a->value.dtype == b->value.dtype &&
           fl_rows_width(a) == fl_rows_width(b);
}

static fl_err add_rows(fl_heap *h, const char *name, const fl_rows *x)
{
    fl_rows *all = &h->value.rows;
    if (h->room && !same_rows(all, x)) {
        if (h->n)
            return differs(name, "other rows");
        h->room = 0;
    }
    const int64_t had = h->n ? all->n : 0;
    FL_TRY(grow(h, x, had + x->n));
    copy_rows(all, had, x);
    set_rows(all, had + x->n);
    return FL_OK;
}

/* --- either --- */

fl_err fl_heap_add(fl_heap *h, const char *name, const fl_value *v)
{
    if (h->n && h->value.kind != v->kind)
        return differs(name, "another kind");
    FL_TRY(v->kind == FL_SELECTED_ROWS ? add_rows(h, name, &v->rows)
                                       : add_tensor(h, name, &v->tensor));
    h->value.kind = v->kind;
    h->n++;
    return FL_OK;
}

void fl_heap_fini(fl_heap *h)
{
    fl_value_fini(&h->value);
    *h = (fl_heap){0};
}

/* --- parting --- */

/* Some of the rows, without a copy. */
static fl_value *view_rows(fl_communicator *c, const fl_rows *r, int64_t first,
                           int64_t n)
{
    fl_value *v = fl_arena_alloc(c->round, sizeof *v);
    const size_t row = (size_t)fl_rows_width(r) * fl_dtype_size(r->value.dtype);
    *v = (fl_value){.kind = FL_SELECTED_ROWS, .rows = *r};
    v->rows.index.data = fl_rows_index(r) + first;
    v->rows.value.data = (char *)r->value.data + (size_t)first * row;
    set_rows(&v->rows, n);
    return v;
}

static void add_parting(fl_communicator *c, const fl_stretch *to,
                        const fl_value *v)
{
    const int64_t n = v->kind == FL_SELECTED_ROWS ? v->rows.n : 0;
    if (n <= ROWS)
        fl_push(&c->partings, (fl_gradient){to->server, to->name, v});
    else
        for (int64_t i = 0; i < n; i += ROWS)
            fl_push(&c->partings,
                    (fl_gradient){to->server, to->name,
                                  view_rows(c, &v->rows, i,
                                            n - i < ROWS ? n - i : ROWS)});
}

static fl_err cut_all(fl_communicator *c, fl_outflow *f, const fl_value *whole)
{
    int64_t start = 0;
    for (int i = 0; i < f->n; i++) {
        FL_TRY(fl_value_slice(&f->piece[i], whole, start, f->to[i].rows));
        add_parting(c, &f->to[i], &f->piece[i]);
        start += f->to[i].rows;
    }
    const int64_t height = whole->kind == FL_SELECTED_ROWS
                               ? whole->rows.height
                               : whole->tensor.shape.dim[0];
    if (height != start)
        return fl_fail(FL_ESHAPE,
                       "communicator: the sections of \"%s\" have %lld rows, "
                       "it has %lld",
                       f->name, (long long)start, (long long)height);
    return FL_OK;
}

fl_err fl_outflow_part(fl_communicator *c, fl_outflow *f)
{
    fl_value whole = f->away.value;
    if (whole.kind == FL_SELECTED_ROWS) {
        FL_TRY(fl_rows_merge(&f->sum, &f->away.value.rows));
        whole.rows = f->sum;
    }
    if (f->to[0].rows >= 0)
        return cut_all(c, f, &whole);
    f->whole = whole;
    add_parting(c, &f->to[0], &f->whole);
    return FL_OK;
}
