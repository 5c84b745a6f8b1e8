/* table_scan.c - all rows, some at a time.
 *
 * A cursor is the hash from which to go on. Shelves, and spots of a shelf, are
 * in the order of hashes, so it finds its place again however much the table
 * has grown. */
#include "dist/table_in.h"

enum {
    AHEAD = 16 /* spots; their rows are asked for before they are copied */
};

typedef struct scan {
    const fl_table *t;
    fl_table_cursor *c;
    int64_t n, most; /* rows */
    int64_t *id;
    char *rows;
} scan;

static void take(scan *s, fl_spot spot)
{
    const fl_table *t = s->t;
    const size_t bytes = (size_t)t->span * fl_dtype_size(t->opts.dtype);
    char *row = fl_table_row(t, spot);
    const uint64_t hash = fl_table_hash(fl_row_id(row));
    if (hash < s->c->next)
        return; /* an equal tag before the cursor */
    s->id[s->n] = fl_row_id(row);
    memcpy(s->rows + (size_t)s->n * bytes, fl_row_value(row), bytes);
    s->n++;
    s->c->next = hash + 1;
    s->c->done = !s->c->next; /* there is no larger hash */
}

static void scan_shelf(scan *s, const fl_shelf *shelf)
{
    const fl_spot *p = fl_shelf_home(shelf, fl_table_tag(s->c->next));
    const fl_spot *end = fl_shelf_end(shelf);
    for (; p < end && s->n < s->most && !s->c->done; p++) {
        if (p + AHEAD < end && p[AHEAD] != FL_SPOT_FREE)
            __builtin_prefetch(fl_table_row(s->t, p[AHEAD]));
        if (*p != FL_SPOT_FREE)
            take(s, *p);
    }
}

/* To the next shelf, unless the scan is full. */
static void advance(scan *s)
{
    const uint64_t shelf = s->c->next >> FL_SHELF_BITS;
    if (shelf == FL_SHELVES - 1)
        s->c->done = true;
    else
        s->c->next = (shelf + 1) << FL_SHELF_BITS;
}

uint64_t fl_table_order(int64_t id)
{
    return fl_table_hash(id);
}

fl_err fl_table_scan(const fl_table *t, fl_table_cursor *c, int64_t n,
                     fl_tensor *id, fl_tensor *rows)
{
    scan s = {.t = t, .c = c, .most = n < t->n ? n : t->n};
    FL_TRY(fl_tensor_resize(id, FL_I64, &(fl_shape){1, {s.most}}));
    FL_TRY(fl_tensor_resize(rows, t->opts.dtype,
                            &(fl_shape){2, {s.most, t->span}}));
    s.id = id->data;
    s.rows = rows->data;
    while (!c->done && s.n < s.most) {
        const uint64_t from = c->next >> FL_SHELF_BITS;
        scan_shelf(&s, &t->shelf[from]);
        if (s.n < s.most && !c->done && c->next >> FL_SHELF_BITS == from)
            advance(&s);
    }
    id->shape.dim[0] = rows->shape.dim[0] = s.n;
    return FL_OK;
}
