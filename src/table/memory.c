/* memory.c - what a table may take, and where it comes from.
 *
 * Little pieces come from the heap, others are pages of their own, large ones a
 * whole number of huge pages, so that nothing of them is left on small ones. */
#include "table/table_in.h"

#include "base/log.h"
#include "base/pages.h"

#include <stdio.h>

enum {
    PAGES = 128 << 10,   /* bytes from which on memory has pages of its own.. */
    HUGE = 16 << 20,     /* ..and a whole number of huge ones */
    SPARE = 32,          /* the part of the machine's memory to be left */
    TELL_AT = 256 << 20, /* bytes; from here on huge pages are worth a look */
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

static fl_err over(const fl_table *t, int64_t used)
{
    char own[SIZE_TEXT], all[SIZE_TEXT], limit[SIZE_TEXT];
    return fl_fail(
        FL_ENOMEM,
        "table \"%s\" is full: its %lld rows take %s, the tables of this "
        "server %s of the %s that they may have; raise FLUID_TABLE_MEMORY, add "
        "servers, or use fewer ids",
        t->name, (long long)t->n, size_text((double)t->taken, own),
        size_text((double)used, all),
        size_text((double)t->opts.budget->limit, limit));
}

static fl_err no_memory(const fl_table *t)
{
    const fl_memory m = fl_memory_look(false);
    char own[SIZE_TEXT], left[SIZE_TEXT], total[SIZE_TEXT];
    return fl_fail(FL_ENOMEM,
                   "table \"%s\" is full: its %lld rows take %s, and this "
                   "machine has %s of its %s left; add memory or servers, or "
                   "use fewer ids",
                   t->name, (long long)t->n, size_text((double)t->taken, own),
                   size_text((double)m.left, left),
                   size_text((double)m.total, total));
}

/* Others may need memory too: small pieces are not worth a look at it. */
static bool machine_has(size_t bytes)
{
    if (bytes < FL_HUGE_PAGE)
        return true;
    const fl_memory m = fl_memory_look(false);
    return m.left < 0 || m.left - (int64_t)bytes >= m.total / SPARE;
}

static fl_err take(fl_table *t, size_t bytes)
{
    fl_budget *b = t->opts.budget;
    const int64_t used = fl_count_add(&b->used, (int64_t)bytes);
    const bool within = !b->limit || used <= b->limit;
    if (within && machine_has(bytes)) {
        t->taken += (int64_t)bytes;
        return FL_OK;
    }
    fl_count_add(&b->used, -(int64_t)bytes);
    return within ? no_memory(t) : over(t, used - (int64_t)bytes);
}

static void give(fl_table *t, size_t bytes)
{
    fl_count_add(&t->opts.budget->used, -(int64_t)bytes);
    t->taken -= (int64_t)bytes;
}

/* --- memory --- */

/* Once: a table without huge pages works at half speed. */
static void tell_huge(fl_table *t)
{
    char have[SIZE_TEXT], all[SIZE_TEXT];
    if (t->told || t->taken < TELL_AT)
        return;
    t->told = true;
    const fl_memory m = fl_memory_look(true);
    if (m.huge >= 0 && m.huge < t->taken / 2)
        FL_WARN("table %s: %s of %s lie on huge pages, so reading is slow; see "
                "/sys/kernel/mm/transparent_hugepage/enabled",
                t->name, size_text((double)m.huge, have),
                size_text((double)t->taken, all));
}

static char *get(size_t bytes)
{
    if (bytes >= PAGES)
        return fl_pages_map(bytes);
    char *p = fl_mem_try(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

static size_t rounded(size_t bytes)
{
    const size_t page = FL_HUGE_PAGE;
    return bytes < HUGE ? bytes : (bytes + page - 1) / page * page;
}

fl_err fl_table_take(fl_table *t, size_t *bytes, char **out)
{
    const size_t size = rounded(*bytes);
    FL_TRY(take(t, size));
    char *p = get(size);
    if (!p) {
        give(t, size);
        return no_memory(t);
    }
    *bytes = size;
    *out = p;
    tell_huge(t);
    return FL_OK;
}

static void drop(char *p, size_t bytes)
{
    if (bytes >= PAGES)
        fl_pages_unmap(p, bytes);
    else
        fl_mem_free(p);
}

/* Pages that are not huge would stay so. */
static char *extend(char *p, size_t old, size_t size)
{
    if (old >= HUGE)
        return fl_pages_grow(p, old, size);
    char *to = get(size);
    if (to) {
        memcpy(to, p, old);
        drop(p, old);
    }
    return to;
}

fl_err fl_table_extend(fl_table *t, size_t *bytes, size_t larger, char **p)
{
    const size_t size = rounded(larger), old = *bytes;
    FL_TRY(take(t, size - old));
    char *to = extend(*p, old, size);
    if (!to) {
        give(t, size - old);
        return no_memory(t);
    }
    *bytes = size;
    *p = to;
    tell_huge(t);
    return FL_OK;
}

void fl_table_give(fl_table *t, char *p, size_t bytes)
{
    drop(p, bytes);
    give(t, bytes);
}
