/* SPDX-License-Identifier: Apache-2.0 */
/* extents.c - a list of mappings, in order of their numbers. */
#include "state/extents.h"

#include "base/mem.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_TEXT = 32
};

static const char prefix[] = "extent-";

typedef struct extent {
    uint32_t number;
    fl_mapping *map;
} extent;

struct fl_extents {
    fl_statedir *dir;
    pthread_mutex_t lock;
    FL_VEC(extent) at;
    uint32_t last; /* the highest number so far */
};

static const char *name_of(uint32_t number, char text[NAME_TEXT])
{
    snprintf(text, NAME_TEXT, "%s%u", prefix, number);
    return text;
}

/* The number of an extent in the name of its file; 0: it is none. */
static uint32_t number_in(const char *name)
{
    const size_t n = sizeof prefix - 1;
    return strncmp(name, prefix, n) ? 0 : (uint32_t)strtoul(name + n, NULL, 10);
}

static void count_number(void *user, const char *name)
{
    fl_extents *e = user;
    const uint32_t number = number_in(name);
    if (number > e->last)
        e->last = number;
}

fl_extents *fl_extents_new(fl_statedir *d)
{
    fl_extents *e = fl_mem_alloc(sizeof *e);
    e->dir = d;
    pthread_mutex_init(&e->lock, NULL);
    fl_statedir_visit(d, count_number, e);
    return e;
}

void fl_extents_free(fl_extents *e)
{
    if (!e)
        return;
    for (int64_t i = 0; i < e->at.n; i++)
        fl_mapping_unref(e->at.at[i].map);
    fl_vec_fini(&e->at);
    pthread_mutex_destroy(&e->lock);
    fl_mem_free(e);
}

static int64_t index_of(const fl_extents *e, const void *at)
{
    for (int64_t i = 0; i < e->at.n; i++)
        if (fl_mapping_at(e->at.at[i].map) == at)
            return i;
    return -1;
}

fl_err fl_extents_make(fl_extents *e, size_t bytes, void **at)
{
    char name[NAME_TEXT];
    fl_mapping *m;
    pthread_mutex_lock(&e->lock);
    const fl_err err =
        fl_statedir_make(e->dir, name_of(e->last + 1, name), bytes, &m);
    if (!err) {
        fl_push(&e->at, ((extent){++e->last, m}));
        *at = fl_mapping_at(m);
    }
    pthread_mutex_unlock(&e->lock);
    return err;
}

void fl_extents_drop(fl_extents *e, void *at)
{
    char name[NAME_TEXT];
    pthread_mutex_lock(&e->lock);
    const int64_t i = index_of(e, at);
    fl_statedir_drop(e->dir, name_of(e->at.at[i].number, name));
    fl_mapping_unref(e->at.at[i].map);
    fl_remove(&e->at, i);
    pthread_mutex_unlock(&e->lock);
}

uint32_t fl_extents_number(const fl_extents *e, const void *at)
{
    pthread_mutex_lock((pthread_mutex_t *)&e->lock);
    const uint32_t number = e->at.at[index_of(e, at)].number;
    pthread_mutex_unlock((pthread_mutex_t *)&e->lock);
    return number;
}

fl_err fl_extents_find(fl_extents *e, uint32_t number, void **at, size_t *bytes)
{
    char name[NAME_TEXT];
    fl_mapping *m;
    FL_TRY(fl_statedir_map(e->dir, name_of(number, name), 1, 0, &m));
    pthread_mutex_lock(&e->lock);
    fl_push(&e->at, ((extent){number, m}));
    pthread_mutex_unlock(&e->lock);
    *at = fl_mapping_at(m);
    *bytes = fl_mapping_size(m);
    return FL_OK;
}

static int64_t find_number(const fl_extents *e, uint32_t number)
{
    for (int64_t i = 0; i < e->at.n; i++)
        if (e->at.at[i].number == number)
            return i;
    return -1;
}

static void drop_unused(void *user, const char *name)
{
    fl_extents *e = user;
    const uint32_t number = number_in(name);
    if (number && find_number(e, number) < 0)
        fl_statedir_drop(e->dir, name);
}

void fl_extents_sweep(fl_extents *e)
{
    fl_statedir_visit(e->dir, drop_unused, e);
}

void *fl_extents_place(const fl_extents *e, uint32_t number, uint64_t offset,
                       size_t bytes)
{
    const int64_t i = find_number(e, number);
    if (i < 0)
        return NULL;
    const size_t size = fl_mapping_size(e->at.at[i].map);
    if (offset > size || bytes > size - offset)
        return NULL;
    return (char *)fl_mapping_at(e->at.at[i].map) + offset;
}
