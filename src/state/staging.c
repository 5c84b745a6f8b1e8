/* SPDX-License-Identifier: Apache-2.0 */
/* staging.c - keeps the entries of pushes in one file and their bytes in
 * another.
 *
 * Which bytes are free is known in memory only: after a restart, those that no
 * entry names. An entry whose session is forgotten stays in its place, marked
 * as dead, until the entries of its round are dropped. */
#include "state/staging.h"

#include "base/atomic.h"
#include "base/crc.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/vec.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum {
    LINE = 64,             /* bytes; alignment of a room */
    FIRST = 64 << 10,      /* bytes of the entries' file at first */
    STEP = FL_HUGE_PAGE,   /* bytes by which the bytes' file grows */
    ENTRIES_MOST = 1 << 30 /* bytes of all entries */
};

typedef struct entry {
    uint64_t session[2];
    int64_t rank, seq, round, count;
    uint64_t offset, size;
    uint32_t crc;  /* of all fields above */
    uint32_t dead; /* 1: the push is not needed any more */
} entry;

typedef struct entries {
    uint64_t count;
    uint64_t unused[7];
    entry at[];
} entries;

/* A range of bytes that is in use. */
typedef struct room {
    size_t from, end;
    void *at;   /* the address for the user; NULL: given back */
    bool named; /* an entry refers to this range */
} room;

struct fl_staging {
    pthread_mutex_t lock;
    fl_mapping *list, *bytes;
    FL_VEC(room) rooms; /* in the order of offsets */
};

static entries *entries_of(const fl_staging *s)
{
    return fl_mapping_at(s->list);
}

static char *bytes_of(const fl_staging *s)
{
    return fl_mapping_at(s->bytes);
}

static uint32_t sum_of(const entry *e)
{
    return fl_crc32c(0, e, offsetof(entry, crc));
}

/* --- rooms --- */

static int64_t find_room(const fl_staging *s, const void *at)
{
    for (int64_t i = 0; i < s->rooms.n; i++)
        if (s->rooms.at[i].at == at)
            return i;
    return -1;
}

static void free_room(fl_staging *s, int64_t i)
{
    const room *r = &s->rooms.at[i];
    if (!r->at && !r->named)
        fl_remove(&s->rooms, i);
}

/* The first gap of `size` bytes. *i becomes the index of the room after it. */
static size_t find_gap(const fl_staging *s, size_t size, int64_t *i)
{
    size_t from = 0;
    for (*i = 0; *i < s->rooms.n; (*i)++) {
        if (s->rooms.at[*i].from - from >= size)
            return from;
        from = s->rooms.at[*i].end;
    }
    return from;
}

/* Make sure that there is space for an entry for every room. */
static fl_err reserve_entries(fl_staging *s)
{
    const size_t n = (size_t)entries_of(s)->count + (size_t)s->rooms.n + 1;
    const size_t need = sizeof(entries) + n * sizeof(entry);
    size_t size = fl_mapping_size(s->list);
    while (size < need)
        size *= 2;
    return fl_mapping_grow(s->list, size);
}

static fl_err reserve_bytes(fl_staging *s, size_t end)
{
    if (end <= fl_mapping_size(s->bytes))
        return FL_OK;
    return fl_mapping_grow(s->bytes, (end + STEP - 1) / STEP * STEP);
}

fl_err fl_staging_take(fl_staging *s, size_t size, size_t aligned, void **at)
{
    const size_t skip = (LINE - aligned % LINE) % LINE;
    const size_t whole = (skip + size + LINE) / LINE * LINE;
    int64_t i;
    pthread_mutex_lock(&s->lock);
    const size_t from = find_gap(s, whole, &i);
    fl_err err = reserve_entries(s);
    if (!err)
        err = reserve_bytes(s, from + whole);
    if (!err) {
        *at = bytes_of(s) + from + skip;
        fl_insert(&s->rooms, i, ((room){from, from + whole, *at, false}));
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

void fl_staging_give(fl_staging *s, void *at)
{
    pthread_mutex_lock(&s->lock);
    const int64_t i = find_room(s, at);
    s->rooms.at[i].at = NULL;
    free_room(s, i);
    pthread_mutex_unlock(&s->lock);
}

/* --- entries --- */

/* The index of the room that an entry refers to. */
static int64_t room_of(const fl_staging *s, const entry *e)
{
    for (int64_t i = 0; i < s->rooms.n; i++)
        if (s->rooms.at[i].from <= e->offset && e->offset < s->rooms.at[i].end)
            return i;
    return -1;
}

static void unname_room(fl_staging *s, const entry *e)
{
    const int64_t i = room_of(s, e);
    if (e->dead || i < 0)
        return;
    s->rooms.at[i].named = false;
    free_room(s, i);
}

void fl_staging_keep(fl_staging *s, const fl_staging_entry *e)
{
    pthread_mutex_lock(&s->lock);
    entries *all = entries_of(s);
    entry *to = &all->at[all->count];
    fl_failpoint_hit("stage.bytes");
    *to = (entry){.session = {e->session[0], e->session[1]},
                  .rank = e->rank,
                  .seq = e->seq,
                  .round = e->round,
                  .count = e->count,
                  .offset = (uint64_t)((char *)e->at - bytes_of(s)),
                  .size = e->size};
    to->crc = sum_of(to);
    s->rooms.at[find_room(s, e->at)].named = true;
    fl_failpoint_hit("stage.entry");
    fl_word_set(&all->count, all->count + 1);
    fl_failpoint_hit("stage.count");
    pthread_mutex_unlock(&s->lock);
}

void fl_staging_close(fl_staging *s, int64_t version)
{
    pthread_mutex_lock(&s->lock);
    entries *all = entries_of(s);
    const uint64_t count = all->count;
    uint64_t n = 0;
    while (n < count && all->at[n].round < version)
        n++;
    if (count && n == count) { /* a round is dropped as a whole */
        fl_failpoint_hit("round.version");
        fl_word_set(&all->count, 0);
        fl_failpoint_hit("round.dropped");
        for (uint64_t i = 0; i < count; i++)
            unname_room(s, &all->at[i]);
    }
    pthread_mutex_unlock(&s->lock);
}

void fl_staging_forget(fl_staging *s, const uint64_t session[2])
{
    pthread_mutex_lock(&s->lock);
    entries *all = entries_of(s);
    for (uint64_t i = 0; i < all->count; i++) {
        entry *e = &all->at[i];
        if (e->dead || memcmp(e->session, session, sizeof e->session))
            continue;
        unname_room(s, e);
        e->dead = 1;
    }
    pthread_mutex_unlock(&s->lock);
}

bool fl_staging_next(const fl_staging *s, int64_t *cursor,
                     fl_staging_entry *out)
{
    const entries *all = entries_of(s);
    while (*cursor < (int64_t)all->count && all->at[*cursor].dead)
        ++*cursor;
    if (*cursor >= (int64_t)all->count)
        return false;
    const entry *e = &all->at[(*cursor)++];
    *out = (fl_staging_entry){.session = {e->session[0], e->session[1]},
                              .rank = e->rank,
                              .seq = e->seq,
                              .round = e->round,
                              .count = e->count,
                              .at = bytes_of(s) + e->offset,
                              .size = e->size};
    return true;
}

/* --- life --- */

static fl_err damaged_entry(const fl_staging *s, uint64_t i)
{
    return fl_fail(FL_EINVAL, "%s is damaged: entry %llu names no push",
                   fl_mapping_path(s->list), (unsigned long long)i);
}

/* Take the room of every entry that was found. */
static fl_err mark_rooms(fl_staging *s)
{
    const entries *all = entries_of(s);
    const size_t size = fl_mapping_size(s->bytes);
    if (all->count > (fl_mapping_size(s->list) - sizeof *all) / sizeof(entry))
        return damaged_entry(s, all->count);
    for (uint64_t i = 0; i < all->count; i++) {
        const entry *e = &all->at[i];
        int64_t before = 0;
        if (e->dead)
            continue;
        if (sum_of(e) != e->crc || e->offset > size ||
            e->size > size - e->offset)
            return damaged_entry(s, i);
        const size_t from = e->offset / LINE * LINE;
        const size_t end = (e->offset + e->size + LINE) / LINE * LINE;
        while (before < s->rooms.n && s->rooms.at[before].from < from)
            before++;
        fl_insert(&s->rooms, before,
                  ((room){from, end, bytes_of(s) + e->offset, true}));
    }
    return FL_OK;
}

fl_err fl_staging_new(fl_statedir *d, size_t limit, fl_staging **out)
{
    fl_staging *s = fl_mem_alloc(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    fl_err err = fl_statedir_map(d, "entries", FIRST, ENTRIES_MOST, &s->list);
    if (!err)
        err = fl_statedir_map(d, "stage", STEP, limit + STEP, &s->bytes);
    if (!err)
        err = mark_rooms(s);
    if (err) {
        fl_staging_free(s);
        return err;
    }
    *out = s;
    return FL_OK;
}

void fl_staging_free(fl_staging *s)
{
    if (!s)
        return;
    fl_mapping_unref(s->list);
    fl_mapping_unref(s->bytes);
    fl_vec_fini(&s->rooms);
    pthread_mutex_destroy(&s->lock);
    fl_mem_free(s);
}
