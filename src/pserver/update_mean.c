/* update_mean.c - what the participants sent becomes one gradient.
 *
 *     dense   (x0 + x1 + ..) / n, by rank, straight from the bytes received
 *     rows    each participant's equal rows are added up first, then those of
 *             all, by rank; then / n: the same as if they were dense
 *
 * Who sent nothing sent zero. Of one participant alone everything stays as it
 * came.
 *
 * Easy to get wrong: a number may straddle two spans. */
#include "pserver/store_in.h"

#include "op/kernel.h"

enum {
    PIECE = 1024 /* elements that are copied where memory is not aligned */
};

/* --- bytes --- */

typedef struct sink {
    size_t one; /* bytes of an element: 4 or 8 */
    char *to;
    _Alignas(double) char torn[sizeof(double)]; /* the start of an element */
    size_t have;                                /* bytes of it */
} sink;

static void add(sink *s, const void *x, size_t n)
{
    if (s->one == sizeof(double))
        fl_add_f64((int64_t)n, x, (double *)s->to);
    else
        fl_add_f32((int64_t)n, x, (float *)s->to);
    s->to += n * s->one;
}

static void add_whole(sink *s, const char *at, size_t n)
{
    double piece[PIECE];
    if ((uintptr_t)at % s->one == 0) {
        add(s, at, n);
        return;
    }
    for (size_t m; n; n -= m, at += m * s->one) {
        m = n < PIECE ? n : PIECE;
        memcpy(piece, at, m * s->one);
        add(s, piece, m);
    }
}

static void add_span(sink *s, const char *at, size_t size)
{
    if (s->have) {
        const size_t lack = s->one - s->have, n = size < lack ? size : lack;
        memcpy(s->torn + s->have, at, n);
        s->have += n;
        at += n;
        size -= n;
        if (s->have < s->one)
            return;
        add(s, s->torn, 1);
    }
    const size_t n = size / s->one;
    add_whole(s, at, n);
    s->have = size - n * s->one;
    memcpy(s->torn, at + n * s->one, s->have);
}

/* to += the elements of an item. */
static void add_bytes(fl_bytes b, size_t one, void *to)
{
    sink s = {.one = one, .to = to};
    size_t cursor = 0;
    for (fl_span span; fl_bytes_next(b, &cursor, &span);)
        add_span(&s, span.at, span.size);
}

FL_CLONES static void divide_f32(int64_t n, float *x, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] /= by;
}

FL_CLONES static void divide_f64(int64_t n, double *x, double by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] /= by;
}

static void divide(fl_dtype type, int64_t n, void *x, int by)
{
    if (by == 1)
        return;
    if (type == FL_F64)
        divide_f64(n, x, by);
    else
        divide_f32(n, x, (float)by);
}

/* --- dense --- */

static int64_t numel_of(const fl_item *item)
{
    return fl_shape_numel(&item->shape);
}

static fl_err not_all(const fl_update *u, int64_t have, const fl_item *next)
{
    const long long numel = fl_shape_numel(&u->grad->shape);
    if (next)
        return fl_fail(FL_EPROTO,
                       "gradient \"%s\": elements from %lld on came after %lld "
                       "of %lld",
                       u->grad->name, (long long)next->first, (long long)have,
                       numel);
    return fl_fail(FL_EPROTO, "gradient \"%s\": %lld of %lld elements came",
                   u->grad->name, (long long)have, numel);
}

/* One gradient that came whole, in one piece and aligned, is read where it
 * lies. */
static bool lend(fl_update *u, const fl_item *item)
{
    size_t cursor = 0;
    fl_span span;
    fl_tensor *t = &u->mean->tensor;
    if (u->spoils || numel_of(item) != fl_shape_numel(&u->grad->shape) ||
        !fl_bytes_next(item->data, &cursor, &span) ||
        span.size != item->data.size ||
        (uintptr_t)span.at % fl_dtype_size(item->dtype))
        return false;
    fl_tensor_fini(t);
    *t = fl_tensor_view(item->dtype, &u->grad->shape, span.at);
    u->mean->kind = FL_LOD_TENSOR;
    return true;
}

void fl_update_drop(fl_update *u)
{
    fl_tensor *t = &u->mean->tensor;
    u->given.n = u->reader.n = 0;
    if (!t->buf)
        *t = (fl_tensor){.dtype = t->dtype, .shape = t->shape};
}

static fl_err make_mean(fl_update *u)
{
    u->mean->kind = FL_LOD_TENSOR;
    return fl_tensor_resize(&u->mean->tensor, u->grad->dtype, &u->grad->shape);
}

/* The items behind those of the participant that given[i] is of. */
static int64_t next_of(const fl_update *u, int64_t i)
{
    const int from = u->given.at[i].from;
    while (i < u->given.n && u->given.at[i].from == from)
        i++;
    return i;
}

/* Slices of a participant come in order and leave nothing out. */
static fl_err check_one(const fl_update *u, int64_t from, int64_t to)
{
    int64_t have = 0;
    for (int64_t i = from; i < to; i++) {
        const fl_item *item = u->given.at[i].item;
        if (item->first != have)
            return not_all(u, have, item);
        have += numel_of(item);
    }
    return have == fl_shape_numel(&u->grad->shape) ? FL_OK
                                                   : not_all(u, have, NULL);
}

static fl_err begin_reading(fl_update *u, int n)
{
    u->n = n;
    u->reader.n = 0;
    for (int64_t i = 0, end; i < u->given.n; i = end) {
        end = next_of(u, i);
        FL_TRY(check_one(u, i, end));
        fl_push(&u->reader, (fl_given_cursor){u->given.at + i, 0});
    }
    return FL_OK;
}

/* The next `size` bytes of a participant, in place of what is there, or added
 * to it. */
static void read_next(fl_given_cursor *r, size_t size, size_t one, bool adds,
                      char *to)
{
    for (size_t n; size; size -= n, to += n) {
        const fl_bytes all = r->next->item->data;
        n = all.size - r->from < size ? all.size - r->from : size;
        const fl_bytes some = {all.of, all.at + r->from, n};
        if (adds)
            add_bytes(some, one, to);
        else
            fl_bytes_copy(some, 0, to, n);
        r->from += n;
        if (r->from == all.size) {
            r->next++;
            r->from = 0;
        }
    }
}

void fl_update_next(fl_update *u, int64_t n, void *to)
{
    const size_t one = fl_dtype_size(u->grad->dtype);
    for (int64_t i = 0; i < u->reader.n; i++)
        read_next(&u->reader.at[i], (size_t)n * one, one, i > 0, to);
    divide(u->grad->dtype, n, to, u->n);
}

static fl_err mean_dense(fl_update *u, int n, bool *some)
{
    *some = u->given.n > 0;
    if (!*some)
        return FL_OK;
    if (u->ruled.op)
        return begin_reading(u, n);
    if (n == 1 && u->given.n == 1 && lend(u, u->given.at[0].item))
        return FL_OK;
    FL_TRY(begin_reading(u, n));
    FL_TRY(make_mean(u));
    fl_update_next(u, fl_shape_numel(&u->grad->shape), u->mean->tensor.data);
    return FL_OK;
}

/* --- rows --- */

static int64_t rows_of(const fl_item *item)
{
    return item->shape.dim[0];
}

/* r has room for more than it has rows; now it looks as if it had not. */
static void set_rows(fl_rows *r, int64_t n)
{
    r->n = r->index.shape.dim[0] = r->value.shape.dim[0] = n;
}

/* All rows of given[from .. to), in order, into r. */
static fl_err gather(const fl_update *u, int64_t from, int64_t to, fl_rows *r)
{
    int64_t n = 0;
    for (int64_t i = from; i < to; i++)
        n += rows_of(u->given.at[i].item);
    FL_TRY(fl_rows_resize(r, u->grad->dtype, &u->grad->shape, n));
    char *index = r->index.data, *value = r->value.data;
    for (int64_t i = from; i < to; i++) {
        const fl_item *item = u->given.at[i].item;
        fl_bytes_copy(item->rows, 0, index, item->rows.size);
        fl_bytes_copy(item->data, 0, value, item->data.size);
        index += item->rows.size;
        value += item->data.size;
    }
    return FL_OK;
}

static void append(fl_rows *to, int64_t at, const fl_rows *r)
{
    const size_t row = (size_t)fl_rows_width(r) * fl_dtype_size(r->value.dtype);
    memcpy(fl_rows_index(to) + at, r->index.data,
           (size_t)r->n * sizeof(int64_t));
    memcpy((char *)to->value.data + (size_t)at * row, r->value.data,
           (size_t)r->n * row);
}

/* Each participant's rows merged, one participant after the other. */
static fl_err merge_each(fl_update *u)
{
    int64_t have = 0, total = 0;
    for (int64_t i = 0; i < u->given.n; i++)
        total += rows_of(u->given.at[i].item);
    FL_TRY(fl_rows_resize(&u->all, u->grad->dtype, &u->grad->shape, total));
    for (int64_t i = 0, end; i < u->given.n; i = end) {
        end = next_of(u, i);
        FL_TRY(gather(u, i, end, &u->own));
        FL_TRY(fl_rows_merge(&u->sum, &u->own));
        append(&u->all, have, &u->sum);
        have += u->sum.n;
    }
    set_rows(&u->all, have);
    return FL_OK;
}

static fl_err mean_rows(fl_update *u, int n)
{
    fl_rows *out = u->table ? &u->sum : &u->mean->rows;
    if (!u->table)
        u->mean->kind = FL_SELECTED_ROWS;
    if (n == 1 && !u->table)
        return gather(u, 0, u->given.n, out);
    if (n == 1) {
        FL_TRY(gather(u, 0, u->given.n, &u->own));
        return fl_rows_merge(out, &u->own);
    }
    FL_TRY(merge_each(u));
    FL_TRY(fl_rows_merge(out, &u->all));
    divide(out->value.dtype, fl_tensor_numel(&out->value), out->value.data, n);
    return FL_OK;
}

fl_err fl_update_mean(fl_update *u, int n, bool *some)
{
    *some = true;
    return u->grad->kind == FL_SELECTED_ROWS ? mean_rows(u, n)
                                             : mean_dense(u, n, some);
}

/* --- one trainer's items as they come --- */

static fl_slices *slices_of(fl_update *u, const fl_staged *by)
{
    fl_slices *h = NULL;
    for (int64_t i = 0; i < u->slices.n && !h; i++)
        if (u->slices.at[i].rank == by->rank)
            h = &u->slices.at[i];
    if (!h) {
        fl_push(&u->slices, (fl_slices){.rank = by->rank});
        h = &u->slices.at[u->slices.n - 1];
    }
    if (!fl_id_same(h->session, by->session)) {
        h->session = by->session; /* what another one left is worth nothing */
        h->have = 0;
    }
    return h;
}

/* Slices come in any order, but those of a step before those of the next; none
 * overlaps another, which is checked at the push. */
static fl_err take_slice(fl_update *u, const fl_staged *by, const fl_item *item,
                         bool *some)
{
    const size_t one = fl_dtype_size(u->grad->dtype);
    fl_slices *h = slices_of(u, by);
    u->given.n = 0;
    if (!h->have)
        FL_TRY(fl_tensor_resize(&h->tensor, u->grad->dtype, &u->grad->shape));
    fl_bytes_copy(item->data, 0,
                  (char *)h->tensor.data + (size_t)item->first * one,
                  item->data.size);
    h->have += numel_of(item);
    *some = h->have == fl_shape_numel(&u->grad->shape);
    if (!*some)
        return FL_OK;
    const fl_tensor old = u->mean->tensor;
    u->mean->kind = FL_LOD_TENSOR;
    u->mean->tensor = h->tensor;
    h->tensor = old;
    h->have = 0;
    return FL_OK;
}

fl_err fl_update_take(fl_update *u, const fl_staged *by, const fl_item *item,
                      bool *some)
{
    if (u->grad->kind != FL_SELECTED_ROWS &&
        numel_of(item) < fl_shape_numel(&u->grad->shape))
        return take_slice(u, by, item, some);
    const fl_given alone = {.item = item};
    u->given.n = 0;
    fl_push(&u->given, alone);
    return fl_update_mean(u, 1, some);
}
