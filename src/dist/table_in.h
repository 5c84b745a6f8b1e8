/* table_in.h - the inside of a table, shared by its files.
 *
 *     table_start.c  how rows start
 *     table_rows.c   rows in chunks that never move
 *     table_index.c  from hashes to rows
 *     table.c        read, apply, load
 *     table_scan.c   reading it out
 *
 *     hash, 64 bits:   shelf (4)  tag (32)  rest (28)
 *     spot, 64 bits:   tag (32)  place of a row (32): chunk, row of the chunk
 *
 * A shelf is many spots in ascending order, a line of 8 after the other. A tag
 * belongs into line tag * lines / 2^32 of its shelf, or as little behind that
 * as the order allows; lines are filled from their start. So a search reads
 * one line, rarely two, and a shelf grows by copying spots in their order: no
 * row is looked at, and only one shelf waits. */
#ifndef FL_DIST_TABLE_IN_H
#define FL_DIST_TABLE_IN_H

#include "base/vec.h"
#include "dist/table.h"

enum {
    FL_SHELVES = 16,
    FL_SHELF_BITS = 60, /* of a hash, below those of its shelf */
    FL_TAG_BITS = 28,   /* of a hash, below those of its tag */
    FL_LINE_SPOTS = 8,  /* 64 bytes, which memory is read by */
};

typedef uint64_t fl_spot;

#define FL_SPOT_FREE UINT64_MAX /* the largest, so that it ends a search */

typedef struct fl_shelf {
    fl_spot *spot;
    uint64_t lines; /* 1 and no memory of its own: nothing was ever added */
    uint64_t used;  /* spots with a row */
    size_t bytes;   /* more than the lines have, for what flows over; the last
                     * spot is always free */
} fl_shelf;

typedef struct fl_chunk {
    char *at;
    uint32_t rows; /* that it has room for */
    size_t bytes;
} fl_chunk;

struct fl_table {
    fl_shelf shelf[FL_SHELVES];
    char **chunk_at; /* of each chunk, for speed */
    int shift;       /* of a place: see above */
    size_t stride;   /* bytes from row to row of a chunk */
    size_t bytes;    /* of a value */
    fl_table_opts opts;
    char *name;
    uint64_t salt;                /* of seed and name */
    fl_tensor pool;               /* FL_START_PICKED */
    size_t state[FL_RULE_STATES]; /* bytes from a row's start; 0: it lacks it */
    int64_t span;
    FL_VEC(fl_chunk) chunks;
    uint32_t fill; /* rows of the last chunk */
    int64_t n;     /* rows */
    int64_t taken; /* bytes from the budget */
    bool told;     /* about huge pages */
    fl_budget own;
};

/* A bijection, so that a hash stands for its id. */
static inline uint64_t fl_table_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t fl_table_hash(int64_t id)
{
    return fl_table_mix((uint64_t)id);
}

static inline fl_spot fl_table_tag(uint64_t hash)
{
    return hash << (64 - FL_SHELF_BITS) & ~(fl_spot)UINT32_MAX;
}

/* Where the line of a tag starts. */
static inline fl_spot *fl_shelf_home(const fl_shelf *s, fl_spot tag)
{
    return s->spot + ((tag >> 32) * s->lines >> 32) * FL_LINE_SPOTS;
}

/* The last spot, which is free. */
static inline const fl_spot *fl_shelf_end(const fl_shelf *s)
{
    return s->bytes ? s->spot + s->bytes / sizeof *s->spot - 1 : s->spot;
}

/* Spots of the line at p that are below `tag`. Without a branch for each: where
 * a tag stands cannot be foretold. */
static inline int fl_line_below(const fl_spot *p, fl_spot tag)
{
    int below = 0;
    for (int i = 0; i < FL_LINE_SPOTS; i++)
        below += p[i] < tag;
    return below;
}

/* The first spot from the line at p on that is not below `tag`. */
static inline fl_spot *fl_line_find(fl_spot *p, fl_spot tag)
{
    int below;
    while ((below = fl_line_below(p, tag)) == FL_LINE_SPOTS)
        p += FL_LINE_SPOTS;
    return p + below;
}

/* Has it a row, with this tag? */
static inline bool fl_spot_is(fl_spot spot, fl_spot tag)
{
    return (spot ^ tag) <= UINT32_MAX && spot != FL_SPOT_FREE;
}

static inline char *fl_table_row(const fl_table *t, fl_spot spot)
{
    const uint32_t at = (uint32_t)spot, mask = (UINT32_C(1) << t->shift) - 1;
    return t->chunk_at[at >> t->shift] + (size_t)(at & mask) * t->stride;
}

static inline int64_t fl_row_id(const char *row)
{
    return *(const int64_t *)row;
}

static inline char *fl_row_value(char *row)
{
    return row + sizeof(int64_t);
}

/* --- table_start.c --- */

fl_err fl_start_init(fl_table *t) FL_MUST_CHECK;
void fl_start_value(const fl_table *t, int64_t id, char *value);
void fl_start_row(const fl_table *t, int64_t id, char *row);
void fl_start_state(const fl_table *t, int state, char *at);
void fl_start_states(const fl_table *t, char *row);

/* --- table_rows.c --- */

/* Bytes from the budget, before they are mapped. ENOMEM says it all. */
fl_err fl_table_take(fl_table *t, size_t bytes) FL_MUST_CHECK;
void fl_table_give(fl_table *t, size_t bytes);
fl_err fl_table_no_memory(const fl_table *t);

void fl_table_layout(fl_table *t);
/* A row's place; it is the table's once t->n counts it. */
fl_err fl_chunks_next(fl_table *t, uint32_t *at) FL_MUST_CHECK;
void fl_chunks_fini(fl_table *t);

/* --- table_index.c --- */

void fl_shelves_init(fl_table *t);
void fl_shelves_fini(fl_table *t);
/* The row of an id, or NULL. */
char *fl_shelves_find(const fl_table *t, int64_t id, uint64_t hash);
/* Room for one more; then adding cannot fail. The id is not there yet. */
fl_err fl_shelves_reserve(fl_table *t, uint64_t hash) FL_MUST_CHECK;
void fl_shelves_add(fl_table *t, uint64_t hash, uint32_t at);

#endif
