/* scan.c - all rows, some at a time.
 *
 * A cursor is the hash from which to go on. Shelves, and the bins of a shelf,
 * are in the order of hashes, so it finds its place again however much the
 * table has grown. The rows of a bin are in none: they are put into order here,
 * after those that lie in other bins, because their own was full, were fetched
 * from there. */
#include "table/table_in.h"

#include "base/vec.h"

#include <stdlib.h>

typedef struct item {
    uint64_t hash;
    const char *row;
} item;

typedef struct scan {
    const fl_table *t;
    fl_table_cursor *c;
    int64_t n, most; /* rows */
    int64_t *id;
    char *rows;
    FL_VEC(item) items; /* of a bin */
} scan;

static int by_hash(const void *a, const void *b)
{
    const uint64_t x = ((const item *)a)->hash, y = ((const item *)b)->hash;
    return x < y ? -1 : x > y;
}

/* The rows that belong into a bin, from the cursor on, in order. */
static void collect(scan *s, const fl_shelf *shelf, uint64_t number)
{
    const char *bin = fl_shelf_bin(s->t, shelf, number);
    s->items.n = 0;
    for (;; bin = fl_shelf_next(s->t, shelf, bin)) {
        const int64_t n = fl_bin_count(bin);
        for (int64_t i = 0; i < n; i++) {
            const char *row = fl_bin_row(s->t, bin, i);
            const uint64_t hash = fl_table_hash(s->t, fl_row_id(row));
            if (hash >= s->c->next && fl_shelf_home(shelf, hash) == number)
                fl_push(&s->items, (item){hash, row});
        }
        if (n < s->t->bin_rows)
            break;
    }
    if (s->items.n)
        qsort(s->items.at, (size_t)s->items.n, sizeof *s->items.at, by_hash);
}

static void take(scan *s, const item *it)
{
    const fl_table *t = s->t;
    const size_t bytes = (size_t)t->span * fl_dtype_size(t->opts.dtype);
    s->id[s->n] = fl_row_id(it->row);
    memcpy(s->rows + (size_t)s->n * bytes, it->row + sizeof(int64_t), bytes);
    s->n++;
    s->c->next = it->hash + 1;
    s->c->done = !s->c->next; /* there is no larger hash */
}

/* A shelf from the cursor on, which then stands behind it, unless the scan is
 * full. */
static void scan_shelf(scan *s, const fl_shelf *shelf)
{
    const uint64_t own = UINT64_MAX >> shelf->depth; /* bits not shared */
    const uint64_t last = s->c->next | own;
    uint64_t bin = fl_shelf_home(shelf, s->c->next);
    for (; bin < shelf->bins && s->n < s->most; bin++) {
        collect(s, shelf, bin);
        for (int64_t i = 0; i < s->items.n && s->n < s->most; i++)
            take(s, &s->items.at[i]);
    }
    if (s->n == s->most)
        return;
    s->c->next = last + 1;
    s->c->done = !s->c->next;
}

uint64_t fl_table_order(uint64_t key, int64_t id)
{
    return fl_table_mix((uint64_t)id ^ key);
}

uint64_t fl_table_key(const uint64_t tables[2])
{
    return fl_table_mix(tables[0] ^ fl_table_mix(tables[1]));
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
    while (!c->done && s.n < s.most)
        scan_shelf(&s, fl_table_shelf(t, c->next));
    fl_vec_fini(&s.items);
    id->shape.dim[0] = rows->shape.dim[0] = s.n;
    return FL_OK;
}
