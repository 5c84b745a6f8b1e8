/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - maps names to pointers; entries are in order of insertion. Keys are
 * borrowed: they must live as long as the entry. */
#ifndef FL_BASE_MAP_H
#define FL_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_entry {
    const char *key; /* NULL: removed */
    void *value;
    uint32_t hash;
} fl_entry;

/* Thread: one at a time. Zero is an empty map. */
typedef struct fl_map {
    fl_entry *entry; /* in order of insertion; removed ones have no key */
    int64_t n, live; /* entries in use; those of them that were not removed */
    int64_t *slot;   /* 1 + index into entry, 0 = free; n_slot a power of 2 */
    int64_t n_slot;
} fl_map;

void fl_map_fini(fl_map *m);
void *fl_map_get(const fl_map *m, const char *key);       /* NULL: absent */
void fl_map_put(fl_map *m, const char *key, void *value); /* or replace */
bool fl_map_remove(fl_map *m, const char *key);

/* for (fl_entry *e = NULL; (e = fl_map_next(m, e));) ... */
fl_entry *fl_map_next(const fl_map *m, fl_entry *after);

#endif
