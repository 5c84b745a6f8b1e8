/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - a hash table with open addressing.
 *
 * The table holds indices into the array of entries, which keeps their order. A
 * removed entry keeps its position (key NULL) until the next rehash, so that
 * later entries are still found. */
#include "base/map.h"

#include "base/mem.h"

#include <string.h>

static uint32_t hash_of(const char *key)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 16777619u;
    return h;
}

void fl_map_fini(fl_map *m)
{
    fl_mem_free(m->entry);
    fl_mem_free(m->slot);
    memset(m, 0, sizeof *m);
}

static fl_entry *find_entry(const fl_map *m, const char *key, uint32_t hash)
{
    if (!m->n_slot)
        return NULL;
    uint64_t mask = (uint64_t)m->n_slot - 1;
    for (uint64_t i = hash & mask; m->slot[i]; i = (i + 1) & mask) {
        fl_entry *e = &m->entry[m->slot[i] - 1];
        if (e->key && e->hash == hash && !strcmp(e->key, key))
            return e;
    }
    return NULL;
}

void *fl_map_get(const fl_map *m, const char *key)
{
    fl_entry *e = find_entry(m, key, hash_of(key));
    return e ? e->value : NULL;
}

static void link_entry(fl_map *m, int64_t index)
{
    uint64_t mask = (uint64_t)m->n_slot - 1;
    uint64_t i = m->entry[index].hash & mask;
    while (m->slot[i])
        i = (i + 1) & mask;
    m->slot[i] = index + 1;
}

/* Drop removed entries and leave room for one more. */
static void rehash(fl_map *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->n; i++)
        if (m->entry[i].key)
            m->entry[n++] = m->entry[i];
    m->n = n;
    int64_t size = 16;
    while (size < 4 * (n + 1))
        size *= 2;
    fl_mem_free(m->slot);
    m->n_slot = size;
    m->slot = fl_mem_alloc((size_t)size * sizeof *m->slot);
    m->entry = fl_mem_grow(m->entry, (size_t)size / 2 * sizeof *m->entry);
    for (int64_t i = 0; i < n; i++)
        link_entry(m, i);
}

void fl_map_put(fl_map *m, const char *key, void *value)
{
    uint32_t hash = hash_of(key);
    fl_entry *e = find_entry(m, key, hash);
    if (e) {
        e->value = value;
        return;
    }
    if (2 * (m->n + 1) > m->n_slot)
        rehash(m);
    m->entry[m->n] = (fl_entry){key, value, hash};
    link_entry(m, m->n++);
    m->live++;
}

bool fl_map_remove(fl_map *m, const char *key)
{
    fl_entry *e = find_entry(m, key, hash_of(key));
    if (!e)
        return false;
    e->key = NULL;
    m->live--;
    return true;
}

fl_entry *fl_map_next(const fl_map *m, fl_entry *after)
{
    for (int64_t i = after ? after - m->entry + 1 : 0; i < m->n; i++)
        if (m->entry[i].key)
            return &m->entry[i];
    return NULL;
}
