/* table_rows.c - rows in chunks that never move, and the memory for all.
 *
 * The next chunk is a 32nd of those before, but at least a huge page once there
 * is so much, and at most 32 MB, so that the addresses of all chunks stay in
 * the nearest cache. */
#include "dist/table_in.h"

#include "base/log.h"
#include "base/pages.h"

#include <stdio.h>

enum {
    FIRST = 64 << 10,    /* bytes of the first chunk */
    LARGEST = 32 << 20,  /* bytes of a chunk */
    AHEAD = 32,          /* the part of a table that it has room for */
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

fl_err fl_table_no_memory(const fl_table *t)
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

fl_err fl_table_take(fl_table *t, size_t bytes)
{
    fl_budget *b = t->opts.budget;
    const int64_t used = fl_count_add(&b->used, (int64_t)bytes);
    const bool within = !b->limit || used <= b->limit;
    if (within && machine_has(bytes)) {
        t->taken += (int64_t)bytes;
        return FL_OK;
    }
    fl_count_add(&b->used, -(int64_t)bytes);
    return within ? fl_table_no_memory(t) : over(t, used - (int64_t)bytes);
}

void fl_table_give(fl_table *t, size_t bytes)
{
    fl_count_add(&t->opts.budget->used, -(int64_t)bytes);
    t->taken -= (int64_t)bytes;
}

/* --- chunks --- */

static size_t chunk_bytes(size_t before)
{
    if (before < FL_HUGE_PAGE)
        return before < FIRST ? FIRST : before;
    const size_t size = before / AHEAD / FL_HUGE_PAGE * FL_HUGE_PAGE;
    return size < FL_HUGE_PAGE ? FL_HUGE_PAGE : size > LARGEST ? LARGEST : size;
}

void fl_table_layout(fl_table *t)
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
    while ((uint64_t)LARGEST / t->stride >> t->shift)
        t->shift++;
}

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

static fl_err add_chunk(fl_table *t)
{
    size_t before = 0;
    for (int64_t i = 0; i < t->chunks.n; i++)
        before += t->chunks.at[i].bytes;
    size_t size = chunk_bytes(before);
    if (size < t->stride)
        size = t->stride;
    if (t->chunks.n >> (32 - t->shift))
        return fl_fail(FL_ENOMEM,
                       "table \"%s\" is full: a server has room for %lld rows "
                       "of a table; add servers",
                       t->name, (long long)t->n);
    FL_TRY(fl_table_take(t, size));
    char *at = fl_pages_map(size);
    if (!at) {
        fl_table_give(t, size);
        return fl_table_no_memory(t);
    }
    fl_push(&t->chunks, (fl_chunk){at, (uint32_t)(size / t->stride), size});
    t->chunk_at =
        fl_mem_grow(t->chunk_at, (size_t)t->chunks.n * sizeof *t->chunk_at);
    t->chunk_at[t->chunks.n - 1] = at;
    t->fill = 0;
    tell_huge(t);
    return FL_OK;
}

fl_err fl_chunks_next(fl_table *t, uint32_t *at)
{
    if (!t->chunks.n || t->fill == t->chunks.at[t->chunks.n - 1].rows)
        FL_TRY(add_chunk(t));
    *at = (uint32_t)(t->chunks.n - 1) << t->shift | t->fill;
    return FL_OK;
}

void fl_chunks_fini(fl_table *t)
{
    for (int64_t i = 0; i < t->chunks.n; i++) {
        fl_pages_unmap(t->chunks.at[i].at, t->chunks.at[i].bytes);
        fl_table_give(t, t->chunks.at[i].bytes);
    }
    fl_vec_fini(&t->chunks);
    fl_mem_free(t->chunk_at);
}
