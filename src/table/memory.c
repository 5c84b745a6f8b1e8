/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - allocates memory of tables within their budget.
 *
 * Large blocks consist of whole huge pages. On small pages each access would
 * wait longer for the translation of its address. */
#include "table/memory.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/pages.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGES = 128 << 10,   /* bytes; blocks below this size come from the heap */
    HUGE = 16 << 20,     /* bytes; blocks from this size on are huge pages */
    SPARE = 32,          /* 1/SPARE of the machine's memory is left free */
    WARN_AT = 256 << 20, /* bytes; smaller tables are fast on small pages too */
    SIZE_TEXT = 24
};

/* --- the budget --- */

static const char *size_text(double bytes, char text[SIZE_TEXT])
{
    static const char *const unit[] = {"bytes", "KB", "MB", "GB"};
    int i = 0;
    for (; i < 3 && bytes >= 1024; i++)
        bytes /= 1024;
    snprintf(text, SIZE_TEXT, "%.*f %s", i ? 1 : 0, bytes, unit[i]);
    return text;
}

static fl_err over_budget(const fl_table_memory *m, int64_t rows, int64_t used)
{
    char own[SIZE_TEXT], all[SIZE_TEXT], limit[SIZE_TEXT];
    return fl_fail(
        FL_ENOMEM,
        "table \"%s\" is full: its %lld rows take %s, the tables of this "
        "server %s of the %s that they may have; raise FLUID_TABLE_MEMORY, add "
        "servers, or use fewer ids",
        m->table, (long long)rows, size_text((double)m->taken, own),
        size_text((double)used, all),
        size_text((double)m->budget->limit, limit));
}

static fl_err no_memory(const fl_table_memory *m, int64_t rows)
{
    const fl_memory now = fl_memory_look(false);
    char own[SIZE_TEXT], left[SIZE_TEXT], total[SIZE_TEXT];
    return fl_fail(FL_ENOMEM,
                   "table \"%s\" is full: its %lld rows take %s, and this "
                   "machine has %s of its %s left; add memory or servers, or "
                   "use fewer ids",
                   m->table, (long long)rows, size_text((double)m->taken, own),
                   size_text((double)now.left, left),
                   size_text((double)now.total, total));
}

/* Whether the machine has that much memory left. Small blocks are not checked.
 */
static bool machine_has(size_t bytes)
{
    if (bytes < FL_HUGE_PAGE)
        return true;
    const fl_memory m = fl_memory_look(false);
    return m.left < 0 || m.left - (int64_t)bytes >= m.total / SPARE;
}

static fl_err reserve_bytes(fl_table_memory *m, int64_t rows, size_t bytes)
{
    fl_budget *b = m->budget;
    const int64_t used = fl_count_add(&b->used, (int64_t)bytes);
    const bool within = !b->limit || used <= b->limit;
    if (within && machine_has(bytes)) {
        m->taken += (int64_t)bytes;
        return FL_OK;
    }
    fl_count_add(&b->used, -(int64_t)bytes);
    return within ? no_memory(m, rows)
                  : over_budget(m, rows, used - (int64_t)bytes);
}

static void release_bytes(fl_table_memory *m, size_t bytes)
{
    fl_count_add(&m->budget->used, -(int64_t)bytes);
    m->taken -= (int64_t)bytes;
}

/* --- memory --- */

/* Warn once that a table without huge pages has half the speed. */
static void warn_of_small_pages(fl_table_memory *m)
{
    char have[SIZE_TEXT], all[SIZE_TEXT];
    if (m->warned || m->extents || m->taken < WARN_AT)
        return;
    m->warned = true;
    const fl_memory now = fl_memory_look(true);
    if (now.huge >= 0 && now.huge < m->taken / 2)
        FL_WARN("table %s: only %s of %s lie on huge pages, so reading is "
                "slow; see "
                "/sys/kernel/mm/transparent_hugepage/enabled",
                m->table, size_text((double)now.huge, have),
                size_text((double)m->taken, all));
}

/* A zeroed block; NULL: there is no memory. */
static char *alloc_block(size_t bytes)
{
    if (bytes >= PAGES)
        return fl_pages_map(bytes);
    char *p = fl_mem_try(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

static void free_block(char *p, size_t bytes)
{
    if (bytes >= PAGES)
        fl_pages_unmap(p, bytes);
    else
        fl_mem_free(p);
}

/* Extend a block. One that is not on huge pages yet is copied, since its pages
 * would stay small. NULL: there is no memory, and the block is unchanged. */
static char *extend_block(char *p, size_t old, size_t size)
{
    if (old >= HUGE)
        return fl_pages_grow(p, old, size);
    char *to = alloc_block(size);
    if (to) {
        memcpy(to, p, old);
        free_block(p, old);
    }
    return to;
}

static size_t round_up(size_t bytes)
{
    const size_t page = FL_HUGE_PAGE;
    return bytes < HUGE ? bytes : (bytes + page - 1) / page * page;
}

fl_err fl_table_memory_take(fl_table_memory *m, int64_t rows, size_t *bytes,
                            char **out)
{
    const size_t size = round_up(*bytes);
    void *p = NULL;
    m->lacks_room = false;
    FL_TRY(reserve_bytes(m, rows, size));
    fl_err err = FL_OK;
    if (m->extents)
        err = fl_extents_make(m->extents, size, &p);
    else if (!(p = alloc_block(size)))
        err = no_memory(m, rows);
    if (err) {
        release_bytes(m, size);
        m->lacks_room = m->extents && err == FL_ENOMEM;
        return m->extents ? fl_fail_at(err,
                                       "table \"%s\" with %lld rows has to "
                                       "grow",
                                       m->table, (long long)rows)
                          : err;
    }
    *bytes = size;
    *out = p;
    warn_of_small_pages(m);
    return FL_OK;
}

fl_err fl_table_memory_find(fl_table_memory *m, uint32_t number, size_t *bytes,
                            char **out)
{
    void *p;
    FL_TRY(fl_extents_find(m->extents, number, &p, bytes));
    fl_count_add(&m->budget->used, (int64_t)*bytes);
    m->taken += (int64_t)*bytes;
    *out = p;
    return FL_OK;
}

fl_err fl_table_memory_extend(fl_table_memory *m, int64_t rows, size_t larger,
                              size_t *bytes, char **p)
{
    const size_t size = round_up(larger), old = *bytes;
    FL_TRY(reserve_bytes(m, rows, size - old));
    char *to = extend_block(*p, old, size);
    if (!to) {
        release_bytes(m, size - old);
        return no_memory(m, rows);
    }
    *bytes = size;
    *p = to;
    warn_of_small_pages(m);
    return FL_OK;
}

void fl_table_memory_give(fl_table_memory *m, char *p, size_t bytes)
{
    if (m->extents)
        fl_extents_drop(m->extents, p);
    else
        free_block(p, bytes);
    release_bytes(m, bytes);
}
