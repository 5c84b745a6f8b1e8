/* table_index.c - from hashes to rows: linear probing in order of tags. */
#include "dist/table_in.h"

#include "base/pages.h"

enum {
    OVER = 8,          /* lines for what flows over */
    FULL = 75,         /* percent of spots with rows: then a shelf grows.. */
    GROWTH = 6,        /* ..by this part */
    PAGES = 128 << 10, /* bytes from which on a shelf has pages of its own.. */
    HUGE = 8 << 20,    /* ..and a whole number of huge ones */
    LINE = FL_LINE_SPOTS * sizeof(fl_spot)
};

/* What a shelf without rows looks like to a search. */
static const fl_spot nothing[FL_LINE_SPOTS] = {
    FL_SPOT_FREE, FL_SPOT_FREE, FL_SPOT_FREE, FL_SPOT_FREE,
    FL_SPOT_FREE, FL_SPOT_FREE, FL_SPOT_FREE, FL_SPOT_FREE,
};

void fl_shelves_init(fl_table *t)
{
    for (int i = 0; i < FL_SHELVES; i++)
        t->shelf[i] = (fl_shelf){.spot = (fl_spot *)nothing, .lines = 1};
}

/* For s->lines, or some more. */
static fl_err make_spots(fl_table *t, fl_shelf *s)
{
    const size_t page = FL_HUGE_PAGE;
    s->bytes = (size_t)(s->lines + OVER) * LINE;
    if (s->bytes >= HUGE)
        s->bytes = (s->bytes + page - 1) / page * page;
    s->lines = s->bytes / LINE - OVER;
    FL_TRY(fl_table_take(t, s->bytes));
    s->spot = s->bytes < PAGES ? fl_mem_try(s->bytes) : fl_pages_map(s->bytes);
    if (!s->spot) {
        fl_table_give(t, s->bytes);
        return fl_table_no_memory(t);
    }
    memset(s->spot, 0xff, s->bytes); /* all free */
    return FL_OK;
}

static void drop(fl_table *t, fl_shelf *s)
{
    if (!s->bytes)
        return;
    if (s->bytes < PAGES)
        fl_mem_free(s->spot);
    else
        fl_pages_unmap(s->spot, s->bytes);
    fl_table_give(t, s->bytes);
}

void fl_shelves_fini(fl_table *t)
{
    for (int i = 0; i < FL_SHELVES; i++)
        drop(t, &t->shelf[i]);
}

char *fl_shelves_find(const fl_table *t, int64_t id, uint64_t hash)
{
    const fl_spot tag = fl_table_tag(hash);
    const fl_spot *p = fl_shelf_home(&t->shelf[hash >> FL_SHELF_BITS], tag);
    for (p = fl_line_find((fl_spot *)p, tag); fl_spot_is(*p, tag); p++) {
        char *row = fl_table_row(t, *p);
        if (fl_row_id(row) == id)
            return row;
    }
    return NULL;
}

/* --- growth --- */

/* All spots of `from` into `to`, which is larger and empty. False: some flow
 * over its end. */
static bool refill(fl_shelf *to, const fl_shelf *from)
{
    const fl_spot *end = fl_shelf_end(to), *last = fl_shelf_end(from);
    fl_spot *next = to->spot;
    for (const fl_spot *p = from->spot; p < last; p++) {
        if (*p == FL_SPOT_FREE)
            continue;
        fl_spot *home = fl_shelf_home(to, *p);
        next = next < home ? home : next;
        if (next >= end)
            return false;
        *next++ = *p;
    }
    return true;
}

static fl_err grow(fl_table *t, fl_shelf *s)
{
    fl_shelf big = {.lines = s->lines, .used = s->used};
    bool fits = false;
    while (!fits) {
        big.lines += big.lines / GROWTH + 1;
        FL_TRY(make_spots(t, &big));
        fits = refill(&big, s);
        if (!fits)
            drop(t, &big);
    }
    drop(t, s);
    *s = big;
    return FL_OK;
}

/* Where a new spot belongs. Equal tags are told apart by the ids. */
static fl_spot *place(const fl_table *t, const fl_shelf *s, uint64_t hash)
{
    const fl_spot tag = fl_table_tag(hash);
    fl_spot *p = fl_line_find(fl_shelf_home(s, tag), tag);
    while (fl_spot_is(*p, tag) &&
           fl_table_hash(fl_row_id(fl_table_row(t, *p))) < hash)
        p++;
    return p;
}

static fl_spot *next_free(fl_spot *p)
{
    while (*p != FL_SPOT_FREE)
        p++;
    return p;
}

fl_err fl_shelves_reserve(fl_table *t, uint64_t hash)
{
    fl_shelf *s = &t->shelf[hash >> FL_SHELF_BITS];
    if (!s->bytes || (s->used + 1) * 100 > s->lines * FL_LINE_SPOTS * FULL)
        FL_TRY(grow(t, s));
    while (next_free(place(t, s, hash)) == fl_shelf_end(s))
        FL_TRY(grow(t, s));
    return FL_OK;
}

void fl_shelves_add(fl_table *t, uint64_t hash, uint32_t at)
{
    fl_shelf *s = &t->shelf[hash >> FL_SHELF_BITS];
    fl_spot *p = place(t, s, hash), *gap = next_free(p);
    memmove(p + 1, p, (size_t)(gap - p) * sizeof *p);
    *p = fl_table_tag(hash) | at;
    s->used++;
}
