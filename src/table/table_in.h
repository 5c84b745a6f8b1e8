/* table_in.h - the inside of a table, shared by its files.
 *
 *     table_memory.c  the budget
 *     table_start.c   how rows start
 *     table_bins.c    where rows lie
 *     table.c         read, apply, load
 *     table_scan.c    reading it out
 *
 *     bin     tag of each row: 63 bytes  rows: 1 byte  row 0  row 1  ..
 *     shelf   bins, for the hashes that begin with the same bits
 *
 * A row lies in the bin that its hash belongs to, behind those that came
 * before, or, where that bin is full, in the next one of its shelf with room;
 * after the last bin comes the first. A tag is 8 bits of the hash, so a search
 * reads one line of 64 bytes and one row of the same page. */
#ifndef FL_TABLE_TABLE_IN_H
#define FL_TABLE_TABLE_IN_H

#include "base/vec.h"
#include "table/table.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    FL_SHELF_BITS = 10, /* of a hash, at most, are the same in a shelf */
    FL_SHELVES = 1 << FL_SHELF_BITS,
    FL_BIN_HEAD = 64 /* bytes, a line */
};

typedef struct fl_shelf {
    char *bin; /* all zero: empty */
    uint64_t bins;
    int64_t rows; /* fewer than there is room for */
    int depth;    /* bits that its hashes share */
    size_t bytes; /* from the system; 0: the shelf of a table without rows */
} fl_shelf;

struct fl_table {
    fl_shelf *shelf[FL_SHELVES]; /* by the first bits of a hash, with repeats */
    size_t stride;               /* bytes from row to row of a bin */
    size_t bin_bytes;
    int64_t bin_rows; /* that a bin has room for */
    size_t bytes;     /* of a value */
    fl_table_opts opts;
    char *name;
    uint64_t salt;                /* of seed and name */
    fl_tensor pool;               /* FL_START_PICKED */
    size_t state[FL_RULE_STATES]; /* bytes from a row's start; 0: it lacks it */
    int64_t span;
    int64_t n;            /* rows */
    int64_t moves;        /* times that rows have moved */
    int64_t taken;        /* bytes from the budget */
    bool told;            /* about huge pages */
    fl_shelf none;        /* what all shelves are as long as there is no row */
    FL_VEC(char *) found; /* rows to be written */
    fl_budget own;
};

/* A bijection, so that a hash stands for its id. */
static inline uint64_t fl_table_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t fl_table_hash(const fl_table *t, int64_t id)
{
    return fl_table_mix((uint64_t)id ^ t->opts.key);
}

/* --- rows --- */

static inline int64_t fl_row_id(const char *row)
{
    return *(const int64_t *)row;
}

static inline char *fl_row_value(char *row)
{
    return row + sizeof(int64_t);
}

/* Most rows are short: a call for each would cost more than the copy. n is a
 * multiple of 4. */
static inline void fl_row_copy(char *to, const char *from, size_t n)
{
    for (; n >= 32; n -= 32, to += 32, from += 32)
        memcpy(to, from, 32);
    for (; n >= 8; n -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    if (n)
        memcpy(to, from, 4);
}

/* --- bins --- */

/* Never 0, which stands where there is no row. */
static inline uint64_t fl_bin_tag(uint64_t hash)
{
    return (hash & 255) + !(hash & 255);
}

static inline int64_t fl_bin_count(const char *bin)
{
    return (unsigned char)bin[FL_BIN_HEAD - 1];
}

static inline char *fl_bin_row(const fl_table *t, const char *bin, int64_t i)
{
    return (char *)bin + FL_BIN_HEAD + (size_t)i * t->stride;
}

/* The rows with this tag, as bits. Without a branch for each: where a row lies
 * cannot be foretold. */
static inline uint64_t fl_bin_match(const char *bin, uint64_t tag)
{
    uint64_t found = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi8((char)tag);
    for (int at = 0; at < FL_BIN_HEAD; at += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(bin + at));
        const int same = _mm_movemask_epi8(_mm_cmpeq_epi8(x, wanted));
        found |= (uint64_t)same << at;
    }
#else
    for (int at = 0; at < FL_BIN_HEAD; at++)
        found |= (uint64_t)((unsigned char)bin[at] == tag) << at;
#endif
    return found & INT64_MAX; /* the last byte is no tag */
}

/* Which row the lowest bit of a match is. */
static inline int64_t fl_match_first(uint64_t match)
{
    return __builtin_ctzll(match);
}

/* --- shelves --- */

static inline fl_shelf *fl_table_shelf(const fl_table *t, uint64_t hash)
{
    return t->shelf[hash >> (64 - FL_SHELF_BITS)];
}

static inline char *fl_shelf_bin(const fl_table *t, const fl_shelf *s,
                                 uint64_t i)
{
    return s->bin + i * t->bin_bytes;
}

/* The number of the bin that a hash belongs to: they are in its order. */
static inline uint64_t fl_shelf_home(const fl_shelf *s, uint64_t hash)
{
    return (hash << s->depth >> 32) * s->bins >> 32;
}

/* The bin to look into when this one is full. */
static inline char *fl_shelf_next(const fl_table *t, const fl_shelf *s,
                                  const char *bin)
{
    const char *next = bin + t->bin_bytes;
    return next == fl_shelf_bin(t, s, s->bins) ? s->bin : (char *)next;
}

/* --- table_memory.c --- */

/* Zeroed, from the budget and then from the system; *bytes becomes what it is.
 * ENOMEM says it all. */
fl_err fl_table_take(fl_table *t, size_t *bytes, char **out) FL_MUST_CHECK;
/* *p, which has *bytes, becomes larger; what is new is zeroed. ENOMEM: it stays
 * as it is. */
fl_err fl_table_extend(fl_table *t, size_t *bytes, size_t larger,
                       char **p) FL_MUST_CHECK;
void fl_table_give(fl_table *t, char *p, size_t bytes);

/* --- table_start.c --- */

fl_err fl_start_init(fl_table *t) FL_MUST_CHECK;
void fl_start_value(const fl_table *t, int64_t id, char *value);
void fl_start_row(const fl_table *t, int64_t id, char *row);
void fl_start_state(const fl_table *t, int state, char *at);

/* --- table_bins.c --- */

void fl_bins_init(fl_table *t);
void fl_bins_fini(fl_table *t);
/* The row of an id, or NULL. */
char *fl_bins_find(const fl_table *t, int64_t id, uint64_t hash);
/* A row for an id that has none yet, as it starts. Others may move: t->moves
 * tells. ENOMEM: nothing has changed. */
fl_err fl_bins_add(fl_table *t, int64_t id, uint64_t hash,
                   char **row) FL_MUST_CHECK;

#endif
