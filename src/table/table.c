/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - rows in buckets, found many at a time.
 *
 *     bucket    tag of each row: 62 bytes  rows: 2 bytes  row 0  row 1  ..
 *     segment   buckets, for the hashes that begin with the same bits
 *
 * A row lies in the bucket that its hash selects (its home), after the rows
 * that were added before. If its home is full, it lies in the next bucket of
 * the segment that has room; the first bucket follows the last one. A tag is 16
 * bits of the hash. A search reads the tags, which are one cache line, and in
 * nearly all cases one row.
 *
 * A row that is not in a cache costs two waits for memory, one for the head of
 * its bucket and one for the row itself. Most of the first wait is the
 * translation of the address. So ids are looked up in blocks, in short passes,
 * in which many loads wait at the same time:
 *
 *     prefetch  the buckets of all ids; when reading, a block ahead
 *     match     tags, and prefetch the rows that have the right one
 *     resolve   compare ids, and use the rows
 *
 * A read puts off the ids whose homes are full and lack them: each costs two
 * more waits, which last least where many of them are read together.
 *
 * Easy to get wrong: adding a row may move others. So all rows that an update
 * writes are found or added before the first one is written. */
#include "table/table.h"

#include "base/failpoint.h"
#include "base/vec.h"
#include "op/kernel.h"
#include "table/directory.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    SEGMENT_BITS = FL_DIRECTORY_BITS, /* of a hash that select the segment, at
                                         most */
    SEGMENTS = FL_DIRECTORY_SLOTS,
    HEAD = 64,           /* bytes of a bucket before its rows: one cache line */
    ROWS = HEAD / 2 - 1, /* rows of a bucket; each has a tag in the head */

    FULL = 91,          /* percent of a segment in use at which it grows */
    ROOMY = 82,         /* percent of a segment in use after it has grown */
    SPLIT_BUCKETS = 16, /* a segment with fewer buckets is not split */
    SPLIT_AT = 1 << 26, /* bytes; a smaller segment is not split */

    BLOCK = 128,    /* ids that are looked up at a time */
    GROUP = 8,      /* rows that a task gets at a time */
    AHEAD = 16,     /* rows between prefetch and write */
    LINE = 64,      /* bytes of a cache line */
    LINES_MAX = 16, /* cache lines of a row that are prefetched, at most */
    FAR = 2 /* prefetch into the second-level cache, which can have many more
             * outstanding requests than the first */
};

typedef struct segment {
    char *bucket; /* the first bucket; an empty bucket is all zero */
    uint64_t buckets;
    int64_t rows;    /* rows in use; always fewer than there is room for */
    int depth;       /* number of first bits that all its hashes share */
    size_t bytes;    /* memory of all buckets; 0: the table has no rows */
    uint32_t extent; /* kept: number of the memory */
} segment;

/* Where the buckets of a segment lie. */
typedef struct segment_place {
    const char *bucket; /* the first bucket */
    uint64_t buckets;
    int depth;
} segment_place;

struct fl_table {
    segment *segment[SEGMENTS]; /* by the first bits of a hash; one segment may
                                   fill several slots (slots_of) */
    segment_place place[SEGMENTS]; /* by the first `depth` bits of a hash.
                                      Segments lie all over the heap: a read
                                      would wait for them */
    int depth;                     /* that of the deepest segment */
    size_t stride;                 /* bytes from row to row of a bucket */
    size_t bucket_bytes;
    size_t bytes; /* bytes of a value */
    fl_table_opts opts;
    char *name;
    fl_row_start start;
    size_t state[FL_RULE_STATES]; /* offset in a row; 0: rows lack this state */
    int64_t span;                 /* elements of value and states of a row */
    int64_t n;                    /* rows */
    int64_t moves;                /* incremented whenever rows move */
    segment none;                 /* the only segment while there are no rows */
    FL_VEC(char *) found;         /* rows that the current update writes */
    fl_table_memory memory;
    fl_directory *dir; /* NULL: the table ends with the process */
    fl_budget own;     /* budget of a table that was made without one */
};

/* --- rows and buckets --- */

/* Different ids have different hashes, since the mix is a bijection. */
static inline uint64_t hash_of(const fl_table *t, int64_t id)
{
    return fl_table_mix((uint64_t)id ^ t->opts.key);
}

static inline int64_t row_id(const char *row)
{
    return *(const int64_t *)row;
}

static inline char *row_value(char *row)
{
    return row + sizeof(int64_t);
}

/* Copy n bytes, a multiple of 4. Most rows are short, and a call of memcpy
 * would take longer than the copy. */
static inline void copy_row(char *to, const char *from, size_t n)
{
    for (; n >= 32; n -= 32, to += 32, from += 32)
        memcpy(to, from, 32);
    for (; n >= 8; n -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    if (n)
        memcpy(to, from, 4);
}

typedef struct bucket_head {
    uint16_t tag[ROWS]; /* of each row; 0: unused */
    uint16_t rows;      /* rows in use */
} bucket_head;

/* The tag of a hash. It is never 0, which marks an unused slot of a bucket. */
static inline uint16_t tag_of(uint64_t hash)
{
    return (uint16_t)((hash & UINT16_MAX) + !(hash & UINT16_MAX));
}

static inline bucket_head *head_of(const char *bucket)
{
    return (bucket_head *)bucket;
}

static inline int64_t count_rows(const char *bucket)
{
    return head_of(bucket)->rows;
}

static inline char *row_at(const fl_table *t, const char *bucket, int64_t i)
{
    return (char *)bucket + HEAD + (size_t)i * t->stride;
}

/* A bit for each row of the bucket that has this tag. There is no branch per
 * row, because it could not be predicted. */
static inline uint32_t match_tag(const char *bucket, uint16_t tag)
{
    uint32_t found = 0;
#ifdef __SSE2__
    const __m128i wanted = _mm_set1_epi16((int16_t)tag);
    const __m128i *head = (const __m128i *)bucket;
    __m128i same[4];
    for (int i = 0; i < 4; i++)
        same[i] = _mm_cmpeq_epi16(_mm_loadu_si128(head + i), wanted);
    for (int i = 0; i < 2; i++) {
        const __m128i both = _mm_packs_epi16(same[2 * i], same[2 * i + 1]);
        found |= (uint32_t)_mm_movemask_epi8(both) << 16 * i;
    }
#else
    for (int i = 0; i < ROWS; i++)
        found |= (uint32_t)(head_of(bucket)->tag[i] == tag) << i;
#endif
    return found & INT32_MAX; /* the last word of the line is not a tag */
}

/* The index of the first row of a match. */
static inline int64_t first_match(uint32_t match)
{
    return __builtin_ctz(match);
}

static inline segment *segment_of(const fl_table *t, uint64_t hash)
{
    return t->segment[hash >> (64 - SEGMENT_BITS)];
}

static inline const segment_place *place_of(const fl_table *t, uint64_t hash)
{
    return &t->place[hash >> 1 >> (63 - t->depth)]; /* depth may be 0 */
}

static inline char *bucket_at(const fl_table *t, const segment *s, uint64_t i)
{
    return s->bucket + i * t->bucket_bytes;
}

/* The index of the home bucket of a hash, in a segment of so many buckets.
 * Buckets are in the order of hashes. */
static inline uint64_t home_among(uint64_t buckets, int depth, uint64_t hash)
{
    return (hash << depth >> 32) * buckets >> 32;
}

static inline uint64_t home_of(const segment *s, uint64_t hash)
{
    return home_among(s->buckets, s->depth, hash);
}

static inline const char *find_home(const fl_table *t, uint64_t hash)
{
    const segment_place *s = place_of(t, hash);
    return s->bucket + home_among(s->buckets, s->depth, hash) * t->bucket_bytes;
}

/* The bucket in which a search continues if this one is full. */
static inline char *next_bucket(const fl_table *t, const segment *s,
                                const char *bucket)
{
    const char *next = bucket + t->bucket_bytes;
    return next == bucket_at(t, s, s->buckets) ? s->bucket : (char *)next;
}

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

/* A bucket has an odd number of cache lines: if it had a power of two, the
 * heads of all buckets would share a small part of the sets of a cache. */
static void lay_out_bucket(fl_table *t)
{
    const size_t lines = (HEAD + ROWS * t->stride + LINE - 1) / LINE;
    t->bucket_bytes = (lines | 1) * LINE;
}

/* How many slots of t->segment point to this segment. */
static int slots_of(const segment *s)
{
    return SEGMENTS >> s->depth;
}

/* Set t->place after a segment has changed. */
static void place_segments(fl_table *t)
{
    t->depth = 0;
    for (int i = 0; i < SEGMENTS; i += slots_of(t->segment[i]))
        if (t->segment[i]->depth > t->depth)
            t->depth = t->segment[i]->depth;
    for (int i = 0; i < 1 << t->depth; i++) {
        const segment *s = t->segment[i << (SEGMENT_BITS - t->depth)];
        t->place[i] = (segment_place){s->bucket, s->buckets, s->depth};
    }
}

/* The bucket of a table without rows. */
static const bucket_head empty;

static void init_layout(fl_table *t)
{
    lay_out_row(t);
    lay_out_bucket(t);
    t->none = (segment){.bucket = (char *)&empty, .buckets = 1};
    for (int i = 0; i < SEGMENTS; i++)
        t->segment[i] = &t->none;
    place_segments(t);
}

/* --- segments --- */

static uint64_t buckets_for(const fl_table *t, int64_t rows)
{
    return (uint64_t)(rows * 100 / (ROWS * ROOMY)) + 1;
}

static fl_err new_segment(fl_table *t, int64_t rows, int depth, segment **out)
{
    segment s = {.depth = depth,
                 .bytes = buckets_for(t, rows) * t->bucket_bytes};
    FL_TRY(fl_table_memory_take(&t->memory, t->n, &s.bytes, &s.bucket));
    s.buckets = s.bytes / t->bucket_bytes;
    if (t->dir)
        s.extent = fl_extents_number(t->memory.extents, s.bucket);
    *out = fl_mem_alloc(sizeof **out);
    **out = s;
    return FL_OK;
}

static void free_segment(fl_table *t, segment *s)
{
    if (!s || s == &t->none)
        return;
    fl_table_memory_give(&t->memory, s->bucket, s->bytes);
    fl_mem_free(s);
}

/* Memory that is kept stays: a later process finds it. */
static void free_segments(fl_table *t)
{
    for (int i = 0, next; i < SEGMENTS; i = next) {
        segment *s = t->segment[i];
        next = i + slots_of(s);
        if (!t->dir)
            free_segment(t, s);
        else if (s != &t->none)
            fl_mem_free(s);
    }
}

static void install_segment(fl_table *t, int at, segment *s)
{
    for (int i = 0; i < slots_of(s); i++)
        t->segment[at + i] = s;
}

static fl_directory_entry entry_of(const segment *s)
{
    return (fl_directory_entry){s->extent, s->depth};
}

/* Put two segments, which may be the same one, in the place of another. */
static void replace_segment(fl_table *t, segment *old, int slot,
                            segment *const to[2])
{
    const int slots = slots_of(old), first = slot / slots * slots;
    if (t->dir)
        fl_directory_set(
            t->dir, first, slots,
            (fl_directory_entry[]){entry_of(to[0]), entry_of(to[1])});
    install_segment(t, first, to[0]);
    if (to[1] != to[0])
        install_segment(t, first + slots / 2, to[1]);
    place_segments(t);
    free_segment(t, old);
}

/* --- segments of a directory, after a restart --- */

/* Count the rows of each bucket, and remove the tag of a row that was not
 * counted yet when the process ended. */
static fl_err sweep_segment(fl_table *t, segment *s)
{
    for (uint64_t i = 0; i < s->buckets; i++) {
        char *bucket = bucket_at(t, s, i);
        const int64_t n = count_rows(bucket);
        if (n > ROWS)
            return fl_directory_damaged(t->dir,
                                        "a bucket has more rows than room");
        if (n < ROWS && head_of(bucket)->tag[n])
            head_of(bucket)->tag[n] = 0;
        s->rows += n;
    }
    if (s->rows == (int64_t)s->buckets * ROWS) /* no search would end */
        return fl_directory_damaged(t->dir, "a segment has no room");
    t->n += s->rows;
    fl_failpoint_hit("recover.sweep");
    return FL_OK;
}

static fl_err find_segment(fl_table *t, int slot, fl_directory_entry e,
                           int *next)
{
    segment s = {.extent = e.extent, .depth = e.depth};
    if (s.depth > SEGMENT_BITS || slot % slots_of(&s))
        return fl_directory_damaged(t->dir, "an entry names no segment");
    FL_TRY(fl_table_memory_find(&t->memory, s.extent, &s.bytes, &s.bucket));
    s.buckets = s.bytes / t->bucket_bytes;
    if (!s.buckets)
        return fl_directory_damaged(t->dir, "a segment has no buckets");
    segment *own = fl_mem_alloc(sizeof *own);
    *own = s;
    install_segment(t, slot, own);
    *next = slot + slots_of(own);
    return sweep_segment(t, own);
}

static fl_err open_directory(fl_table *t)
{
    const fl_table_opts *o = &t->opts;
    fl_directory_entry e;
    if (!o->dir)
        return FL_OK;
    FL_TRY(fl_directory_open(
        o->dir, o->number,
        &(fl_directory_layout){t->stride, t->bucket_bytes, o->key}, &t->dir));
    for (int i = 0; i < SEGMENTS && fl_directory_get(t->dir, i, &e);)
        FL_TRY(find_segment(t, i, e, &i));
    place_segments(t);
    return FL_OK;
}

/* --- finding and placing one row --- */

/* The row of an id, or NULL. */
static char *find_row(const fl_table *t, int64_t id, uint64_t hash)
{
    const segment *s = segment_of(t, hash);
    const char *bucket = bucket_at(t, s, home_of(s, hash));
    for (;; bucket = next_bucket(t, s, bucket)) {
        uint32_t match = match_tag(bucket, tag_of(hash));
        for (; match; match &= match - 1) {
            char *row = row_at(t, bucket, first_match(match));
            if (row_id(row) == id)
                return row;
        }
        if (count_rows(bucket) < ROWS)
            return NULL;
    }
}

/* Where a row is about to be. */
typedef struct row_place {
    char *bucket; /* NULL: there is no room */
    char *row;
} row_place;

/* Find room for a new row in bucket `home` or a later one. */
static row_place place_from(const fl_table *t, const segment *s, uint64_t home)
{
    for (; home < s->buckets; home++) {
        char *bucket = bucket_at(t, s, home);
        const int64_t i = count_rows(bucket);
        if (i < ROWS)
            return (row_place){bucket, row_at(t, bucket, i)};
    }
    return (row_place){0};
}

/* Find room for a new row in any bucket: there always is some. */
static row_place place_row(const fl_table *t, const segment *s, uint64_t hash)
{
    const row_place p = place_from(t, s, home_of(s, hash));
    return p.bucket ? p : place_from(t, s, 0);
}

/* The row at a place is whole: from now on it is in the table. The count is the
 * store that decides; the tag is before it, the row before the tag. */
static inline void count_place(segment *s, row_place p, uint64_t hash)
{
    bucket_head *head = head_of(p.bucket);
    fl_store_order();
    head->tag[head->rows] = tag_of(hash);
    fl_store_order();
    head->rows++;
    s->rows++;
}

static void put_row(const fl_table *t, segment *s, row_place p, uint64_t hash,
                    const char *row)
{
    copy_row(p.row, row, t->stride);
    count_place(s, p, hash);
}

/* --- growth in place ---
 *
 * A full segment gets more memory, and its rows are distributed again. The
 * number of buckets is computed from the number of rows, so one growth is
 * enough for any hashes, and at least one bucket has room, which ends every
 * search.
 *
 * Buckets are processed from the last to the first: the rows of a bucket are
 * taken out and put into their new homes, most of which are later buckets that
 * have been processed. A row whose new home has not been processed yet is set
 * aside until it has; a row that finds no room up to the last bucket is set
 * aside until all buckets are processed. */

typedef struct row_list {
    char *at; /* copies of rows */
    int64_t n, cap;
} row_list;

static void set_aside(row_list *w, const fl_table *t, const char *row)
{
    fl_vec_reserve((void **)&w->at, &w->cap, w->n + 1, t->stride);
    memcpy(w->at + (size_t)w->n++ * t->stride, row, t->stride);
}

/* Place the rows that are set aside and whose home is bucket `done` or later.
 */
static void place_aside(const fl_table *t, segment *s, uint64_t done,
                        row_list *rows, row_list *last)
{
    const int64_t n = rows->n;
    rows->n = 0;
    for (int64_t i = 0; i < n; i++) {
        const char *row = rows->at + (size_t)i * t->stride;
        const uint64_t hash = hash_of(t, row_id(row));
        const uint64_t home = home_of(s, hash);
        row_place to = {0};
        if (home >= done)
            to = place_from(t, s, home);
        if (to.bucket)
            put_row(t, s, to, hash, row);
        else
            set_aside(home < done ? rows : last, t, row);
    }
}

static void spread_rows(const fl_table *t, segment *s, uint64_t old_buckets)
{
    row_list rows = {0}, last = {0};
    s->rows = 0;
    for (uint64_t b = old_buckets; b-- > 0;) {
        char *bucket = bucket_at(t, s, b);
        for (int64_t i = 0, n = count_rows(bucket); i < n; i++)
            set_aside(&rows, t, row_at(t, bucket, i));
        memset(bucket, 0, HEAD);
        place_aside(t, s, b, &rows, &last);
    }
    for (int64_t i = 0; i < last.n; i++) {
        const char *row = last.at + (size_t)i * t->stride;
        const uint64_t hash = hash_of(t, row_id(row));
        put_row(t, s, place_row(t, s, hash), hash, row);
    }
    fl_mem_free(rows.at);
    fl_mem_free(last.at);
}

static fl_err extend_segment(fl_table *t, segment *s)
{
    const uint64_t old_buckets = s->buckets;
    const size_t larger = buckets_for(t, s->rows + 1) * t->bucket_bytes;
    FL_TRY(fl_table_memory_extend(&t->memory, t->n, larger, &s->bytes,
                                  &s->bucket));
    s->buckets = s->bytes / t->bucket_bytes;
    place_segments(t);
    spread_rows(t, s, old_buckets);
    return FL_OK;
}

/* --- growth by a split ---
 *
 * A large segment is split into two whose hashes share one more bit, so that
 * only a part of the table is moved at a time. */

typedef struct splitting {
    fl_table *t;
    segment *from;
    segment *to[2];  /* for hashes whose next bit is 0 and 1 */
    int64_t rows[2]; /* rows of each new segment */
} splitting;

/* Call fn for each row of h->from. */
static void visit_segment(splitting *h,
                          void (*fn)(splitting *h, int part, uint64_t hash,
                                     const char *row))
{
    for (uint64_t b = 0; b < h->from->buckets; b++) {
        const char *bucket = bucket_at(h->t, h->from, b);
        for (int64_t i = 0, n = count_rows(bucket); i < n; i++) {
            const char *row = row_at(h->t, bucket, i);
            const uint64_t hash = hash_of(h->t, row_id(row));
            fn(h, (int)(hash << h->from->depth >> 63), hash, row);
        }
    }
}

static void count_row(splitting *h, int part, uint64_t hash, const char *row)
{
    h->rows[part]++;
}

static void move_row(splitting *h, int part, uint64_t hash, const char *row)
{
    segment *to = h->to[part];
    put_row(h->t, to, place_row(h->t, to, hash), hash, row);
}

static fl_err split_segment(fl_table *t, segment *s, int slot)
{
    splitting h = {.t = t, .from = s};
    visit_segment(&h, count_row);
    FL_TRY(new_segment(t, h.rows[0] + 1, s->depth + 1, &h.to[0]));
    const fl_err err = new_segment(t, h.rows[1] + 1, s->depth + 1, &h.to[1]);
    if (err) {
        free_segment(t, h.to[0]);
        return err;
    }
    visit_segment(&h, move_row);
    replace_segment(t, s, slot, h.to);
    return FL_OK;
}

/* --- growth into new memory ---
 *
 * A segment that is kept is never spread in place: a kill in the middle would
 * lose rows. Its rows are copied into a larger one, which then takes its place.
 */

static void copy_to_larger(splitting *h, int part, uint64_t hash,
                           const char *row)
{
    move_row(h, 0, hash, row);
}

static fl_err enlarge_segment(fl_table *t, segment *s, int slot)
{
    splitting h = {.t = t, .from = s};
    FL_TRY(new_segment(t, s->rows + 1, s->depth, &h.to[0]));
    h.to[1] = h.to[0];
    visit_segment(&h, copy_to_larger);
    replace_segment(t, s, slot, h.to);
    return FL_OK;
}

static fl_err make_first_segment(fl_table *t)
{
    segment *s;
    FL_TRY(new_segment(t, 1, 0, &s));
    replace_segment(t, &t->none, 0, (segment *const[2]){s, s});
    return FL_OK;
}

/* Make room in the segment of a hash. While it is split, a segment needs twice
 * its memory; if there is not enough, it grows in place. */
static fl_err grow_segment(fl_table *t, uint64_t hash)
{
    segment *s = segment_of(t, hash);
    const int slot = (int)(hash >> (64 - SEGMENT_BITS));
    t->moves++;
    if (s == &t->none)
        return make_first_segment(t);
    if (s->depth < SEGMENT_BITS && s->buckets >= SPLIT_BUCKETS &&
        s->bytes >= SPLIT_AT && !split_segment(t, s, slot))
        return FL_OK;
    return t->dir ? enlarge_segment(t, s, slot) : extend_segment(t, s);
}

static void start_row(const fl_table *t, int64_t id, char *row)
{
    memcpy(row, &id, sizeof id);
    fl_row_start_value(&t->start, id, row_value(row));
    for (int s = 0; s < FL_RULE_STATES; s++)
        if (t->state[s])
            fl_row_start_state(&t->start, t->opts.state[s], row + t->state[s]);
}

/* Add a row with its start values for an id that has none. Other rows may move:
 * then t->moves is incremented. Err: ENOMEM, and nothing has changed. */
static fl_err add_row(fl_table *t, int64_t id, uint64_t hash, char **row)
{
    const segment *s = segment_of(t, hash);
    const int64_t room = (int64_t)s->buckets * ROWS;
    if (s == &t->none || (s->rows + 1) * 100 > room * FULL)
        FL_TRY(grow_segment(t, hash));
    segment *to = segment_of(t, hash);
    const row_place p = place_row(t, to, hash);
    start_row(t, id, p.row);
    fl_failpoint_hit("table.row");
    count_place(to, p, hash);
    fl_failpoint_hit("table.count");
    *row = p.row;
    t->n++;
    return FL_OK;
}

/* --- finding rows in blocks --- */

typedef struct block {
    int64_t n;
    const int64_t *id;
    uint64_t hash[BLOCK];
    const char *bucket[BLOCK]; /* the bucket that may have the id's row */
    char *row[BLOCK]; /* the first row with the id's tag, then the id's row;
                         NULL: there is none */
} block;

/* Some rows that are written. */
typedef struct group {
    int64_t n;
    const int64_t *id;
    char *const *row;
} group;

/* An update or a load of rows. */
typedef struct row_task {
    /* Called with some rows; `at` is the index of the first one. */
    void (*fn)(const struct row_task *k, int64_t at, const group *g);
    const fl_table *table;
    size_t touched;     /* fn uses so many first bytes of a row */
    size_t from;        /* load: offset in a row of the value or state */
    const char *in;     /* [n, ..] */
    size_t in_bytes;    /* load: bytes of a row of `in` */
    fl_undo *undo;      /* update: the log of the owner; NULL: none is kept */
    const fl_hyper *by; /* update: rate and other numbers of the step */
} row_task;

/* A read of rows. */
typedef struct row_read {
    const fl_table *table;
    size_t touched; /* bytes of a row, from its beginning, that are used */
    size_t from;    /* offset in a row of the value or state */
    int state;      /* a state, or FL_TABLE_VALUE */
    char *out;      /* [n, width] */
} row_read;

/* Prefetches have a loop of their own: the fewer instructions are between them,
 * the more of them wait for memory at the same time. */
FL_CLONES static void prefetch_buckets(const fl_table *t, block *b)
{
    for (int64_t i = 0; i < b->n; i++)
        b->hash[i] = hash_of(t, b->id[i]);
    for (int64_t i = 0; i < b->n; i++)
        b->bucket[i] = find_home(t, b->hash[i]);
    for (int64_t i = 0; i < b->n; i++)
        __builtin_prefetch(b->bucket[i], 0, FAR);
}

static inline void prefetch_row(const char *row, size_t touched)
{
    __builtin_prefetch(row, 0, FAR);
    __builtin_prefetch(row + touched - 1, 0, FAR);
    for (size_t at = LINE; at + LINE < touched; at += LINE)
        __builtin_prefetch(row + at, 0, FAR);
}

/* Prefetch the first row with the tag: in nearly all cases it is the id's row.
 * There is no branch, because it could not be predicted. */
static inline void match_id(const fl_table *t, block *b, int64_t i,
                            size_t touched)
{
    const uint32_t m = match_tag(b->bucket[i], tag_of(b->hash[i]));
    char *row = row_at(t, b->bucket[i], first_match(m | !m));
    b->row[i] = m ? row : NULL;
    prefetch_row(row, touched);
}

/* Match the tags of all ids of a block. */
FL_CLONES static void match_block(const fl_table *t, block *b, size_t touched)
{
    for (int64_t i = 0; i < b->n; i++)
        match_id(t, b, i, touched);
}

/* Whether no row of the bucket has the id's tag, and the row may be in the next
 * bucket. */
static inline bool is_late(const block *b, int64_t i)
{
    return !b->row[i] & (count_rows(b->bucket[i]) == ROWS);
}

/* Match the late ids of a block in the buckets after their homes. */
static void match_late(const fl_table *t, block *b, size_t touched)
{
    int16_t late[BLOCK];
    int n = 0;
    for (int64_t i = 0; i < b->n; i++) {
        late[n] = (int16_t)i;
        n += is_late(b, i);
    }
    for (int still; n; n = still) {
        for (int k = 0; k < n; k++) {
            const char **at = &b->bucket[late[k]];
            *at = next_bucket(t, segment_of(t, b->hash[late[k]]), *at);
            __builtin_prefetch(*at, 0, FAR);
        }
        still = 0;
        for (int k = 0; k < n; k++) {
            match_id(t, b, late[k], touched);
            late[still] = late[k];
            still += is_late(b, late[k]);
        }
    }
}

static void probe_block(const fl_table *t, block *b, size_t touched)
{
    prefetch_buckets(t, b);
    match_block(t, b, touched);
    match_late(t, b, touched);
}

/* The row is the first match, or it is searched for. */
static inline void resolve_row(const fl_table *t, block *b, int64_t i)
{
    if (b->row[i] && row_id(b->row[i]) != b->id[i])
        b->row[i] = find_row(t, b->id[i], b->hash[i]);
}

static size_t clamp_touched(size_t bytes)
{
    const size_t most = (size_t)LINES_MAX * LINE;
    return bytes < most ? bytes : most;
}

/* Ids that are read last, all together: their rows are not in their homes, so
 * that each costs two more waits for memory. */
typedef struct late_ids {
    int64_t n;
    int64_t id[BLOCK];
    int64_t at[BLOCK]; /* the index of each */
} late_ids;

/* `row` is NULL: the table has none. */
static void read_row(const row_read *k, int64_t id, const char *row, char *to)
{
    const fl_table *t = k->table;
    if (row)
        copy_row(to, row + k->from, t->bytes);
    else if (k->state == FL_TABLE_VALUE)
        fl_row_start_value(&t->start, id, to);
    else
        fl_row_start_state(&t->start, t->opts.state[k->state], to);
}

static void read_late(const row_read *k, late_ids *l)
{
    block b;
    b.n = l->n;
    b.id = l->id;
    probe_block(k->table, &b, k->touched);
    for (int64_t i = 0; i < b.n; i++) {
        resolve_row(k->table, &b, i);
        read_row(k, b.id[i], b.row[i],
                 k->out + (size_t)l->at[i] * k->table->bytes);
    }
    l->n = 0;
}

/* Read the row of an id that is not the first match in its home. */
static void read_other(const row_read *k, block *b, int64_t i, int64_t at,
                       late_ids *l)
{
    if (is_late(b, i)) {
        l->id[l->n] = b->id[i];
        l->at[l->n++] = at;
        if (l->n == BLOCK)
            read_late(k, l);
        return;
    }
    resolve_row(k->table, b, i);
    read_row(k, b->id[i], b->row[i], k->out + (size_t)at * k->table->bytes);
}

FL_CLONES static void read_block(const row_read *k, block *b, int64_t at,
                                 late_ids *l)
{
    const size_t bytes = k->table->bytes;
    char *to = k->out + (size_t)at * bytes;
    for (int64_t i = 0; i < b->n; i++, to += bytes) {
        const char *row = b->row[i];
        if (row && row_id(row) == b->id[i])
            copy_row(to, row + k->from, bytes);
        else
            read_other(k, b, i, at + i, l);
    }
}

/* Ids from `at` on, at most a block of n. */
static void begin_block(const fl_table *t, block *b, int64_t at, int64_t n,
                        const int64_t *id)
{
    b->n = n - at < BLOCK ? n - at : BLOCK;
    b->id = id + at;
    prefetch_buckets(t, b);
}

/* The buckets of the next block arrive while this one is read. */
static void read_ids(const row_read *k, int64_t n, const int64_t *id)
{
    block b[2];
    late_ids late;
    late.n = 0;
    begin_block(k->table, &b[0], 0, n, id);
    for (int64_t at = 0, i = 0; at < n; at += BLOCK, i ^= 1) {
        if (at + BLOCK < n)
            begin_block(k->table, &b[i ^ 1], at + BLOCK, n, id);
        match_block(k->table, &b[i], k->touched);
        read_block(k, &b[i], at, &late);
    }
    if (late.n)
        read_late(k, &late);
}

/* --- finding rows to write --- */

/* Find or add the row of an id that had none when the block was probed. An
 * equal id may have added it since. */
static fl_err find_or_add_row(fl_table *t, block *b, int64_t i)
{
    b->row[i] = find_row(t, b->id[i], b->hash[i]);
    if (b->row[i])
        return FL_OK;
    return add_row(t, b->id[i], b->hash[i], &b->row[i]);
}

static fl_err find_or_add_block(fl_table *t, block *b)
{
    const size_t touched = sizeof(int64_t); /* write_rows prefetches the rest */
    probe_block(t, b, touched);
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t moves = t->moves;
        resolve_row(t, b, i);
        if (!b->row[i])
            FL_TRY(find_or_add_row(t, b, i));
        if (t->moves != moves)
            probe_block(t, b, touched); /* the ids that follow */
    }
    return FL_OK;
}

static fl_err find_or_add_all(fl_table *t, int64_t n, const int64_t *id)
{
    block b;
    for (int64_t at = 0; at < n; at += b.n) {
        b.n = n - at < BLOCK ? n - at : BLOCK;
        b.id = id + at;
        FL_TRY(find_or_add_block(t, &b));
        memcpy(t->found.at + at, b.row, (size_t)b.n * sizeof *b.row);
    }
    return FL_OK;
}

/* Save the rows of a group, which is a block of the owner's task. */
static fl_err guard_group(const row_task *k, int64_t number, const group *g)
{
    const fl_table *t = k->table;
    for (int64_t i = 0; i < g->n; i++) {
        const segment *s = segment_of(t, hash_of(t, g->id[i]));
        const char *at = row_value(g->row[i]);
        FL_TRY(fl_undo_add(k->undo, s->extent, (uint64_t)(at - s->bucket), at,
                           t->stride - sizeof(int64_t)));
    }
    fl_undo_arm(k->undo, number);
    return FL_OK;
}

/* Find or add all rows before the first one is written, so that a request that
 * fails changes no value. If rows have moved, all are searched again. */
static fl_err write_rows(fl_table *t, const row_task *k, int64_t n,
                         const int64_t *id)
{
    const size_t touched = clamp_touched(k->touched);
    int64_t moves;
    fl_vec_reserve((void **)&t->found.at, &t->found.cap, n, sizeof(char *));
    do {
        moves = t->moves;
        FL_TRY(find_or_add_all(t, n, id));
    } while (t->moves != moves);
    for (int64_t i = 0; i < n; i += GROUP) {
        const group g = {n - i < GROUP ? n - i : GROUP, id + i,
                         t->found.at + i};
        for (int64_t j = i + AHEAD; j < i + AHEAD + g.n && j < n; j++)
            prefetch_row(t->found.at[j], touched);
        if (k->undo && fl_undo_written(k->undo, i / GROUP))
            continue;
        if (k->undo)
            FL_TRY(guard_group(k, i / GROUP, &g));
        k->fn(k, i, &g);
        if (k->undo)
            fl_undo_next(k->undo, i / GROUP);
    }
    return FL_OK;
}

/* --- reading, updating and loading rows --- */

/* The offset of a value or a state in a row. */
static size_t offset_of(const fl_table *t, int state)
{
    return state < 0 ? sizeof(int64_t) : t->state[state];
}

static void apply_rows(const row_task *k, int64_t at, const group *g)
{
    const fl_table *t = k->table;
    const char *grad = k->in + (size_t)at * t->bytes;
    void *state[FL_RULE_STATES];
    for (int64_t i = 0; i < g->n; i++, grad += t->bytes) {
        for (int s = 0; s < FL_RULE_STATES; s++)
            state[s] = t->state[s] ? g->row[i] + t->state[s] : NULL;
        fl_rule_apply(t->opts.rule, t->opts.dtype, t->opts.width,
                      row_value(g->row[i]), grad, state, k->by);
    }
}

static void load_rows(const row_task *k, int64_t at, const group *g)
{
    const char *in = k->in + (size_t)at * k->in_bytes;
    for (int64_t i = 0; i < g->n; i++, in += k->in_bytes)
        memcpy(g->row[i] + k->from, in, k->in_bytes);
}

/* --- scanning ---
 *
 * A cursor is the hash at which to continue. Segments, and the buckets of a
 * segment, are in the order of hashes, so that a scan can continue after the
 * table has grown. The rows of a bucket are not sorted; they are sorted here,
 * together with those that lie in later buckets because their home was full. */

typedef struct hashed_row {
    uint64_t hash;
    const char *row;
} hashed_row;

typedef struct scan {
    const fl_table *t;
    fl_table_cursor *c;
    int64_t n, most;         /* rows read so far; limit */
    int64_t *id;             /* id of each row */
    char *rows;              /* values and states */
    FL_VEC(hashed_row) home; /* rows whose home is the current bucket */
} scan;

static int by_hash(const void *a, const void *b)
{
    const uint64_t x = ((const hashed_row *)a)->hash,
                   y = ((const hashed_row *)b)->hash;
    return x < y ? -1 : x > y;
}

/* Fill s->home with the rows whose home is this bucket, from the cursor on,
 * sorted by hash. */
static void collect_bucket(scan *s, const segment *seg, uint64_t number)
{
    const char *bucket = bucket_at(s->t, seg, number);
    s->home.n = 0;
    for (;; bucket = next_bucket(s->t, seg, bucket)) {
        const int64_t n = count_rows(bucket);
        for (int64_t i = 0; i < n; i++) {
            const char *row = row_at(s->t, bucket, i);
            const uint64_t hash = hash_of(s->t, row_id(row));
            if (hash >= s->c->next && home_of(seg, hash) == number)
                fl_push(&s->home, (hashed_row){hash, row});
        }
        if (n < ROWS)
            break;
    }
    if (s->home.n)
        qsort(s->home.at, (size_t)s->home.n, sizeof *s->home.at, by_hash);
}

static void add_to_scan(scan *s, const hashed_row *r)
{
    const fl_table *t = s->t;
    const size_t bytes = (size_t)t->span * fl_dtype_size(t->opts.dtype);
    s->id[s->n] = row_id(r->row);
    memcpy(s->rows + (size_t)s->n * bytes, r->row + sizeof(int64_t), bytes);
    s->n++;
    s->c->next = r->hash + 1;
    s->c->done = !s->c->next; /* it was the largest hash */
}

/* Scan a segment from the cursor on. The cursor is then after the segment, or
 * after the last row that was read if the limit is reached. */
static void scan_segment(scan *s, const segment *seg)
{
    const uint64_t own =
        UINT64_MAX >> seg->depth; /* the bits that are not shared */
    const uint64_t last = s->c->next | own;
    uint64_t bucket = home_of(seg, s->c->next);
    for (; bucket < seg->buckets && s->n < s->most; bucket++) {
        collect_bucket(s, seg, bucket);
        for (int64_t i = 0; i < s->home.n && s->n < s->most; i++)
            add_to_scan(s, &s->home.at[i]);
    }
    if (s->n == s->most)
        return;
    s->c->next = last + 1;
    s->c->done = !s->c->next;
}

/* --- public functions --- */

fl_err fl_table_new(const fl_table_opts *opts, fl_table **out)
{
    if (opts->dtype != FL_F32 && opts->dtype != FL_F64)
        return fl_fail(FL_EINVAL,
                       "table \"%s\" is of %s, expected float32 or float64",
                       opts->name, fl_dtype_word(opts->dtype));
    if (opts->width < 1 || opts->width > INT32_MAX)
        return fl_fail(FL_EINVAL, "table \"%s\" has rows of %lld numbers",
                       opts->name, (long long)opts->width);
    if (opts->rule && opts->rule->whole)
        return fl_fail(FL_EINVAL,
                       "table \"%s\": its rule needs all rows at once",
                       opts->name);
    fl_table *t = fl_mem_alloc(sizeof *t);
    t->opts = *opts;
    t->opts.name = t->name = fl_mem_strdup(opts->name);
    t->memory =
        (fl_table_memory){.table = t->name,
                          .budget = opts->budget ? opts->budget : &t->own,
                          .extents = opts->extents};
    init_layout(t);
    fl_err err = fl_row_start_init(&t->start, &opts->start, t->name,
                                   opts->dtype, opts->width);
    if (!err)
        err = open_directory(t);
    if (err) {
        fl_table_free(t);
        return err;
    }
    *out = t;
    return FL_OK;
}

void fl_table_free(fl_table *t)
{
    if (!t)
        return;
    free_segments(t);
    fl_directory_free(t->dir);
    fl_vec_fini(&t->found);
    fl_row_start_fini(&t->start);
    fl_mem_free(t->name);
    fl_mem_free(t);
}

int64_t fl_table_rows(const fl_table *t)
{
    return t->n;
}

int64_t fl_table_width(const fl_table *t)
{
    return t->opts.width;
}

int64_t fl_table_span(const fl_table *t)
{
    return t->span;
}

int64_t fl_table_bytes(const fl_table *t)
{
    return t->memory.taken;
}

uint64_t fl_table_key_of(const fl_table *t)
{
    return t->opts.key;
}

fl_err fl_table_read(const fl_table *t, int state, int64_t n, const int64_t *id,
                     fl_tensor *out)
{
    const fl_shape s = {2, {n, t->opts.width}};
    FL_TRY(fl_tensor_resize(out, t->opts.dtype, &s));
    const size_t from = offset_of(t, state);
    const row_read k = {.table = t,
                        .touched = clamp_touched(from + t->bytes),
                        .from = from,
                        .state = state,
                        .out = out->data};
    read_ids(&k, n, id);
    return FL_OK;
}

bool fl_table_copy(const fl_table *t, int64_t id, void *to)
{
    char *row = find_row(t, id, hash_of(t, id));
    if (row)
        memcpy(to, row_value(row),
               (size_t)t->span * fl_dtype_size(t->opts.dtype));
    return row != NULL;
}

fl_err fl_table_apply(fl_table *t, int64_t n, const int64_t *id,
                      const void *grad, const fl_hyper *h, fl_undo *undo)
{
    if (!t->opts.rule)
        return fl_fail(FL_EINVAL, "table \"%s\" has no rule to be updated by",
                       t->name);
    const row_task k = {.fn = apply_rows,
                        .table = t,
                        .touched = t->stride,
                        .in = grad,
                        .undo = undo,
                        .by = h};
    return write_rows(t, &k, n, id);
}

bool fl_table_lacks_room(const fl_table *t)
{
    return t->memory.lacks_room;
}

size_t fl_table_guarded(const fl_table *t, int64_t *n)
{
    *n = GROUP;
    return GROUP * t->stride;
}

fl_err fl_table_load(fl_table *t, int state, int64_t n, const int64_t *id,
                     const fl_tensor *rows)
{
    const fl_shape *s = &rows->shape;
    const int64_t width = state == FL_TABLE_WHOLE ? t->span : t->opts.width;
    char text[FL_SHAPE_TEXT];
    if (rows->dtype != t->opts.dtype || s->rank != 2 || s->dim[0] != n ||
        s->dim[1] != width)
        return fl_fail(FL_ESHAPE,
                       "table \"%s\": %lld rows came as %s%s, expected %s of "
                       "%lld numbers each",
                       t->name, (long long)n, fl_dtype_word(rows->dtype),
                       fl_shape_text(s, text), fl_dtype_word(t->opts.dtype),
                       (long long)width);
    const size_t from = offset_of(t, state);
    const size_t bytes = (size_t)width * fl_dtype_size(t->opts.dtype);
    const row_task k = {.fn = load_rows,
                        .table = t,
                        .touched = from + bytes,
                        .from = from,
                        .in = rows->data,
                        .in_bytes = bytes};
    return write_rows(t, &k, n, id);
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
        scan_segment(&s, segment_of(t, c->next));
    c->done = c->done || (n && !s.n); /* the table may be empty */
    fl_vec_fini(&s.home);
    id->shape.dim[0] = rows->shape.dim[0] = s.n;
    return FL_OK;
}

uint64_t fl_table_order(uint64_t key, int64_t id)
{
    return fl_table_mix((uint64_t)id ^ key);
}

uint64_t fl_table_key(const uint64_t tables[2])
{
    return fl_table_mix(tables[0] ^ fl_table_mix(tables[1]));
}
