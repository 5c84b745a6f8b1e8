/* bins.c - where rows lie: probing by bins, in shelves that grow.
 *
 * A shelf that is full gets some more memory, in which its rows are spread
 * anew; a large one is split into two that share one bit more, so that there is
 * little to move at a time. How many bins it then has follows from its rows: so
 * it grows once, whatever their hashes are, and at least one bin has room,
 * which ends a search. */
#include "table/table_in.h"

enum {
    FULL = 91,         /* percent of places with rows: then a shelf grows.. */
    ROOMY = 82,        /* ..until it is filled to this */
    PAGE = 4096,       /* bytes; a bin of short rows does not cross one.. */
    ROWS_LEAST = 28,   /* ..if it holds so many rows, else it has.. */
    ROWS_WIDE = 16,    /* ..these, for small bins fill unevenly */
    SPLIT_BINS = 16,   /* a shelf of so many bins.. */
    SPLIT_AT = 1 << 26 /* ..and bytes is split */
};

/* --- layout --- */

static void lay_out_row(fl_table *t)
{
    const fl_rule *r = t->opts.rule;
    const size_t align = sizeof(int64_t);
    t->bytes = (size_t)t->opts.width * fl_dtype_size(t->opts.dtype);
    t->stride = sizeof(int64_t) + t->bytes;
    t->span = t->opts.width;
    for (int i = 0; r && i < FL_RULE_STATES && r->state[i].in; i++) {
        if (t->opts.lacks[i])
            continue;
        t->state[i] = t->stride;
        t->stride += t->bytes;
        t->span += t->opts.width;
    }
    t->stride = (t->stride + align - 1) / align * align;
}

static void lay_out_bin(fl_table *t)
{
    const size_t wide = FL_BIN_HEAD + ROWS_WIDE * t->stride;
    for (t->bin_bytes = PAGE / 8; t->bin_bytes <= PAGE; t->bin_bytes *= 2) {
        t->bin_rows = (int64_t)((t->bin_bytes - FL_BIN_HEAD) / t->stride);
        if (t->bin_rows >= ROWS_LEAST)
            return;
    }
    t->bin_bytes = (wide + FL_BIN_HEAD - 1) / FL_BIN_HEAD * FL_BIN_HEAD;
    t->bin_rows = ROWS_WIDE;
}

/* What a table without rows looks like to a search. */
static const char empty[FL_BIN_HEAD];

void fl_bins_init(fl_table *t)
{
    lay_out_row(t);
    lay_out_bin(t);
    t->none = (fl_shelf){.bin = (char *)empty, .bins = 1};
    for (int i = 0; i < FL_SHELVES; i++)
        t->shelf[i] = &t->none;
}

/* --- shelves --- */

static uint64_t bins_for(const fl_table *t, int64_t rows)
{
    return (uint64_t)(rows * 100 / (t->bin_rows * ROOMY)) + 1;
}

static fl_err new_shelf(fl_table *t, int64_t rows, int depth, fl_shelf **out)
{
    fl_shelf s = {.depth = depth, .bytes = bins_for(t, rows) * t->bin_bytes};
    FL_TRY(fl_table_take(t, &s.bytes, &s.bin));
    s.bins = s.bytes / t->bin_bytes;
    *out = fl_mem_alloc(sizeof **out);
    **out = s;
    return FL_OK;
}

static void free_shelf(fl_table *t, fl_shelf *s)
{
    if (!s || s == &t->none)
        return;
    fl_table_give(t, s->bin, s->bytes);
    fl_mem_free(s);
}

static int repeats(const fl_shelf *s)
{
    return FL_SHELVES >> s->depth;
}

void fl_bins_fini(fl_table *t)
{
    for (int i = 0, next; i < FL_SHELVES; i = next) {
        next = i + repeats(t->shelf[i]);
        free_shelf(t, t->shelf[i]);
    }
}

static void hang_up(fl_table *t, int at, fl_shelf *s)
{
    for (int i = 0; i < repeats(s); i++)
        t->shelf[at + i] = s;
}

/* --- rows --- */

char *fl_bins_find(const fl_table *t, int64_t id, uint64_t hash)
{
    const fl_shelf *s = fl_table_shelf(t, hash);
    const char *bin = fl_shelf_bin(t, s, fl_shelf_home(s, hash));
    for (;; bin = fl_shelf_next(t, s, bin)) {
        uint64_t match = fl_bin_match(bin, fl_bin_tag(hash));
        for (; match; match &= match - 1) {
            char *row = fl_bin_row(t, bin, fl_match_first(match));
            if (fl_row_id(row) == id)
                return row;
        }
        if (fl_bin_count(bin) < t->bin_rows)
            return NULL;
    }
}

/* A place for a new row between its home and the last bin, or NULL. */
static char *place_behind(const fl_table *t, fl_shelf *s, uint64_t hash,
                          uint64_t home)
{
    for (; home < s->bins; home++) {
        char *bin = fl_shelf_bin(t, s, home);
        const int64_t i = fl_bin_count(bin);
        if (i == t->bin_rows)
            continue;
        bin[i] = (char)fl_bin_tag(hash);
        bin[FL_BIN_HEAD - 1]++;
        s->rows++;
        return fl_bin_row(t, bin, i);
    }
    return NULL;
}

/* The same in all bins: there is one. */
static char *place(const fl_table *t, fl_shelf *s, uint64_t hash)
{
    char *row = place_behind(t, s, hash, fl_shelf_home(s, hash));
    return row ? row : place_behind(t, s, hash, 0);
}

/* --- growth in place ---
 *
 * Bin by bin from the last one down, rows are taken out and put where they now
 * belong: further back, most of them, among bins that are done. The others wait
 * until their own bin is done, or, if there is no room up to the end, until all
 * are. */

typedef struct waiting {
    char *at;
    int64_t n, cap; /* rows */
} waiting;

static void wait_for(waiting *w, const fl_table *t, const char *row)
{
    fl_vec_reserve((void **)&w->at, &w->cap, w->n + 1, t->stride);
    memcpy(w->at + (size_t)w->n++ * t->stride, row, t->stride);
}

/* The bins from `done` on are. */
static void settle(const fl_table *t, fl_shelf *s, uint64_t done, waiting *rows,
                   waiting *last)
{
    const int64_t n = rows->n;
    rows->n = 0;
    for (int64_t i = 0; i < n; i++) {
        const char *row = rows->at + (size_t)i * t->stride;
        const uint64_t hash = fl_table_hash(t, fl_row_id(row));
        const uint64_t home = fl_shelf_home(s, hash);
        char *to = NULL;
        if (home >= done)
            to = place_behind(t, s, hash, home);
        if (to)
            fl_row_copy(to, row, t->stride);
        else
            wait_for(home < done ? rows : last, t, row);
    }
}

static void spread(const fl_table *t, fl_shelf *s, uint64_t old_bins)
{
    waiting rows = {0}, last = {0};
    s->rows = 0;
    for (uint64_t b = old_bins; b-- > 0;) {
        char *bin = fl_shelf_bin(t, s, b);
        for (int64_t i = 0, n = fl_bin_count(bin); i < n; i++)
            wait_for(&rows, t, fl_bin_row(t, bin, i));
        memset(bin, 0, FL_BIN_HEAD);
        settle(t, s, b, &rows, &last);
    }
    for (int64_t i = 0; i < last.n; i++) {
        const char *row = last.at + (size_t)i * t->stride;
        const uint64_t hash = fl_table_hash(t, fl_row_id(row));
        fl_row_copy(place(t, s, hash), row, t->stride);
    }
    fl_mem_free(rows.at);
    fl_mem_free(last.at);
}

static fl_err stretch(fl_table *t, fl_shelf *s)
{
    const uint64_t old_bins = s->bins;
    const size_t larger = bins_for(t, s->rows + 1) * t->bin_bytes;
    FL_TRY(fl_table_extend(t, &s->bytes, larger, &s->bin));
    s->bins = s->bytes / t->bin_bytes;
    spread(t, s, old_bins);
    return FL_OK;
}

/* --- growth by a bit --- */

typedef struct halves {
    fl_table *t;
    fl_shelf *from, *to[2]; /* without and with the next bit of a hash */
    int64_t rows[2];
} halves;

/* Calls fn for each row. */
static void each_row(halves *h, void (*fn)(halves *h, int half, uint64_t hash,
                                           const char *row))
{
    for (uint64_t b = 0; b < h->from->bins; b++) {
        const char *bin = fl_shelf_bin(h->t, h->from, b);
        for (int64_t i = 0, n = fl_bin_count(bin); i < n; i++) {
            const char *row = fl_bin_row(h->t, bin, i);
            const uint64_t hash = fl_table_hash(h->t, fl_row_id(row));
            fn(h, (int)(hash << h->from->depth >> 63), hash, row);
        }
    }
}

static void count(halves *h, int half, uint64_t hash, const char *row)
{
    h->rows[half]++;
}

static void move(halves *h, int half, uint64_t hash, const char *row)
{
    fl_row_copy(place(h->t, h->to[half], hash), row, h->t->stride);
}

static fl_err split(fl_table *t, fl_shelf *s, int slot)
{
    halves h = {.t = t, .from = s};
    const int first = slot / repeats(s) * repeats(s);
    each_row(&h, count);
    FL_TRY(new_shelf(t, h.rows[0] + 1, s->depth + 1, &h.to[0]));
    const fl_err err = new_shelf(t, h.rows[1] + 1, s->depth + 1, &h.to[1]);
    if (err) {
        free_shelf(t, h.to[0]);
        return err;
    }
    each_row(&h, move);
    hang_up(t, first, h.to[0]);
    hang_up(t, first + repeats(h.to[0]), h.to[1]);
    free_shelf(t, s);
    return FL_OK;
}

static fl_err first_shelf(fl_table *t)
{
    fl_shelf *s;
    FL_TRY(new_shelf(t, 1, 0, &s));
    hang_up(t, 0, s);
    return FL_OK;
}

/* The shelf of a hash. To split it takes its size once more for a while, which
 * may be too much where a little is left. */
static fl_err grow(fl_table *t, uint64_t hash)
{
    fl_shelf *s = fl_table_shelf(t, hash);
    const int slot = (int)(hash >> (64 - FL_SHELF_BITS));
    t->moves++;
    if (s == &t->none)
        return first_shelf(t);
    if (s->depth < FL_SHELF_BITS && s->bins >= SPLIT_BINS &&
        s->bytes >= SPLIT_AT && !split(t, s, slot))
        return FL_OK;
    return stretch(t, s);
}

fl_err fl_bins_add(fl_table *t, int64_t id, uint64_t hash, char **row)
{
    const fl_shelf *s = fl_table_shelf(t, hash);
    const int64_t room = (int64_t)s->bins * t->bin_rows;
    if (s == &t->none || (s->rows + 1) * 100 > room * FULL)
        FL_TRY(grow(t, hash));
    *row = place(t, fl_table_shelf(t, hash), hash);
    fl_start_row(t, id, *row);
    t->n++;
    return FL_OK;
}
