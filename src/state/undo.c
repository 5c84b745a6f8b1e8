/* SPDX-License-Identifier: Apache-2.0 */
/* undo.c - one owner's record: cursor, task, and two logs.
 *
 *     owner-N   record, in a page of its own; then the undo log
 *     rates-N   log of the learning rates
 *
 *     log       place, bytes up to a multiple of 8; place, bytes; ..
 *
 * Where many bytes are saved at once, they begin at a cache line: the copy
 * takes half the time of one to any other address.
 *
 * Easy to get wrong: the number of bytes of a log counts only while the cursor
 * is live (rates: while `rates` is not 0). It is stored before that. */
#include "state/undo.h"

#include "base/atomic.h"
#include "base/failpoint.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGE = 4096,
    FIRST = 64 << 10, /* bytes of a log at first */
    LINE = 64,        /* bytes of a cache line */
    MANY = 16 * LINE, /* bytes of a place that begin at a cache line */
    AHEAD = 16,       /* rows between prefetch and copy */
    UPDATE_AT = 33,   /* bits of the cursor: task 16, update 15, block 32, */
    TASK_AT = 48      /* live 1 */
};

#define RESERVE    ((size_t)1 << 36) /* bytes of addresses of a log */
#define BLOCK_MASK UINT64_C(0xffffffff)

typedef struct place {
    uint64_t offset, bytes, space;
} place;

typedef struct record {
    uint64_t done;   /* tasks that are finished */
    uint64_t cursor; /* of the task `done`, if its first bits say so */
    uint64_t undo_bytes;
    uint64_t rates; /* 1 + number of the task for which the rates ran last; 0:
                       the log of the rates does not count */
    uint64_t rates_bytes;
    uint64_t task; /* 1 + number of the task that is described here */
    uint64_t session[2], seq, rank, last, rates_due;
} record;

struct fl_undo {
    fl_mapping *map, *rates;
    record *rec;
    uint64_t update;   /* the update at hand */
    uint64_t resume;   /* the cursor at which the task goes on */
    size_t n, rates_n; /* bytes of the logs so far */
};

/* --- the cursor --- */

static uint64_t cursor_of(uint64_t task, uint64_t update, uint64_t block,
                          bool live)
{
    return task << TASK_AT | update << UPDATE_AT | block << 1 | live;
}

static uint64_t update_in(uint64_t cursor)
{
    return cursor >> UPDATE_AT & (FL_UNDO_UPDATES - 1);
}

static uint64_t block_in(uint64_t cursor)
{
    return cursor >> 1 & BLOCK_MASK;
}

static bool is_live(uint64_t cursor)
{
    return cursor & 1;
}

/* Whether the cursor belongs to the task that is not finished. */
static bool is_begun(const record *r)
{
    return fl_word_get(&r->cursor) >> TASK_AT ==
           (fl_word_get(&r->done) & 0xffff);
}

/* --- logs --- */

static size_t padded(uint64_t bytes)
{
    return (size_t)(bytes + 7) / 8 * 8;
}

/* Make sure that the log has `end` bytes. */
static fl_err reserve_log(fl_mapping *m, size_t end)
{
    size_t size = fl_mapping_size(m);
    if (end <= size)
        return FL_OK;
    while (size < end)
        size *= 2;
    return fl_mapping_grow(m, size);
}

/* At most so many bytes of a log are taken by these places. */
static size_t most_bytes(int64_t places, size_t bytes)
{
    return (size_t)places * (sizeof(place) + LINE + padded(1)) + bytes;
}

/* Where the bytes of a place begin that lies at offset `at` of a log. */
static size_t bytes_at(size_t at, uint64_t bytes)
{
    const size_t next = at + sizeof(place);
    return bytes < MANY ? next : (next + LINE - 1) / LINE * LINE;
}

/* Write a place at offset `at` of a log, and return where the next one lies. */
static size_t write_place(char *log, size_t at, place p, const void *bytes)
{
    const size_t first = bytes_at(at, p.bytes);
    memcpy(log + at, &p, sizeof p);
    memcpy(log + first, bytes, p.bytes);
    return first + padded(p.bytes);
}

static fl_err add_place(fl_mapping *m, size_t from, size_t *n, place p,
                        const void *at)
{
    FL_TRY(reserve_log(m, from + bytes_at(*n, p.bytes) + padded(p.bytes)));
    *n = write_place((char *)fl_mapping_at(m) + from, *n, p, at);
    return FL_OK;
}

static fl_err damaged_log(const fl_mapping *m)
{
    return fl_fail(FL_EINVAL,
                   "%s is damaged: its log names no memory of the "
                   "state",
                   fl_mapping_path(m));
}

/* Copy the bytes of a log back to their places. */
static fl_err copy_back(const fl_mapping *m, size_t from, uint64_t n,
                        const fl_spaces *in)
{
    const char *at = (const char *)fl_mapping_at(m) + from;
    const size_t room = fl_mapping_size(m) - from;
    if (n > room)
        return damaged_log(m);
    for (uint64_t i = 0; i < n;) {
        place p;
        if (n - i < sizeof p)
            return damaged_log(m);
        memcpy(&p, at + i, sizeof p);
        const size_t first = bytes_at(i, p.bytes);
        if (first > n || p.bytes > n - first || p.space > UINT32_MAX)
            return damaged_log(m);
        void *to = in->find(in->self, (uint32_t)p.space, p.offset, p.bytes);
        if (!to)
            return damaged_log(m);
        memcpy(to, at + first, p.bytes);
        i = first + padded(p.bytes);
    }
    return FL_OK;
}

/* --- life --- */

fl_err fl_undo_new(fl_statedir *d, int owner, fl_undo **out)
{
    fl_undo *u = fl_mem_alloc(sizeof *u);
    char name[32];
    snprintf(name, sizeof name, "owner-%d", owner);
    fl_err err = fl_statedir_map(d, name, PAGE + FIRST, RESERVE, &u->map);
    snprintf(name, sizeof name, "rates-%d", owner);
    if (!err)
        err = fl_statedir_map(d, name, PAGE, RESERVE, &u->rates);
    if (err) {
        fl_undo_free(u);
        return err;
    }
    u->rec = fl_mapping_at(u->map);
    if (!fl_statedir_found(d)) { /* no task is begun */
        u->rec->cursor = cursor_of(0xffff, 0, 0, false);
        u->rec->rates_due = 1;
    }
    *out = u;
    return FL_OK;
}

void fl_undo_free(fl_undo *u)
{
    if (!u)
        return;
    fl_mapping_unref(u->map);
    fl_mapping_unref(u->rates);
    fl_mem_free(u);
}

fl_err fl_undo_recover(fl_undo *u, const fl_spaces *in)
{
    record *r = u->rec;
    const uint64_t cursor = fl_word_get(&r->cursor);
    if (is_begun(r) && is_live(cursor)) {
        FL_TRY(copy_back(u->map, PAGE, r->undo_bytes, in));
        fl_store_order();
        fl_failpoint_hit("recover.undo");
        fl_word_set(&r->cursor, cursor & ~UINT64_C(1));
    }
    if (r->rates)
        FL_TRY(copy_back(u->rates, 0, r->rates_bytes, in));
    fl_store_order();
    return FL_OK;
}

int64_t fl_undo_done(const fl_undo *u)
{
    return (int64_t)fl_word_get(&u->rec->done);
}

bool fl_undo_interrupted(const fl_undo *u, fl_undo_task *task)
{
    const record *r = u->rec;
    *task = (fl_undo_task){.session = {r->session[0], r->session[1]},
                           .seq = (int64_t)r->seq,
                           .rank = (int64_t)r->rank,
                           .last = r->last,
                           .rates_due = r->rates_due};
    return is_begun(r);
}

bool fl_undo_rates_due(const fl_undo *u)
{
    const record *r = u->rec;
    return r->task && r->task <= r->done ? r->last : r->rates_due;
}

/* --- a task --- */

void fl_undo_start(fl_undo *u, int64_t done)
{
    u->rec->cursor = cursor_of(((uint64_t)done - 1) & 0xffff, 0, 0, false);
    u->rec->done = (uint64_t)done;
}

void fl_undo_begin(fl_undo *u, const fl_undo_task *task)
{
    record *r = u->rec;
    if (!is_begun(r)) { /* `last` is that of the task before until `task` says
                         * that `rates_due` counts */
        r->rates_due = task->rates_due;
        fl_word_set(&r->task, r->done + 1);
        fl_failpoint_hit("owner.task");
        r->session[0] = task->session[0];
        r->session[1] = task->session[1];
        r->seq = (uint64_t)task->seq;
        r->rank = (uint64_t)task->rank;
        r->last = task->last;
        fl_word_set(&r->cursor, cursor_of(r->done, 0, 0, false));
        fl_failpoint_hit("owner.begin");
    }
    u->resume = fl_word_get(&r->cursor);
}

bool fl_undo_enter(fl_undo *u, int64_t update)
{
    u->update = (uint64_t)update;
    u->n = 0;
    return u->update >= update_in(u->resume);
}

bool fl_undo_written(const fl_undo *u, int64_t block)
{
    return u->update == update_in(u->resume) &&
           (uint64_t)block < block_in(u->resume);
}

fl_err fl_undo_reserve(fl_undo *u, int64_t places, size_t bytes)
{
    return reserve_log(u->map, PAGE + most_bytes(places, bytes));
}

fl_err fl_undo_add(fl_undo *u, uint32_t space, uint64_t offset, const void *at,
                   size_t bytes)
{
    return add_place(u->map, PAGE, &u->n, (place){offset, bytes, space}, at);
}

/* The rows lie far apart, so that each costs a wait for memory unless it is
 * asked for early. */
fl_err fl_undo_add_rows(fl_undo *u, uint64_t offset, const void *at, size_t row,
                        int64_t n, const int64_t *index)
{
    FL_TRY(reserve_log(u->map, PAGE + u->n + most_bytes(n, (size_t)n * row)));
    const char *from = at;
    char *log = (char *)u->rec + PAGE;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) { /* a row may lie on two cache lines */
            const char *soon = from + (size_t)index[i + AHEAD] * row;
            __builtin_prefetch(soon, 1);
            __builtin_prefetch(soon + row - 1, 1);
        }
        const size_t skip = (size_t)index[i] * row;
        u->n =
            write_place(log, u->n, (place){offset + skip, row, 0}, from + skip);
    }
    return FL_OK;
}

static void set_cursor(fl_undo *u, uint64_t update, int64_t block, bool live)
{
    fl_word_set(&u->rec->cursor,
                cursor_of(u->rec->done, update, (uint64_t)block, live));
}

void fl_undo_arm(fl_undo *u, int64_t block)
{
    fl_word_set(&u->rec->undo_bytes, u->n);
    fl_failpoint_hit("owner.undo");
    set_cursor(u, u->update, block, true);
    fl_failpoint_hit("owner.live");
    u->n = 0;
}

void fl_undo_next(fl_undo *u, int64_t block)
{
    fl_store_order();
    fl_failpoint_hit("owner.applied");
    set_cursor(u, u->update, block + 1, false);
    fl_failpoint_hit("owner.next");
}

void fl_undo_leave(fl_undo *u, int64_t update)
{
    set_cursor(u, (uint64_t)update + 1, 0, false);
}

void fl_undo_finish(fl_undo *u)
{
    fl_word_set(&u->rec->done, u->rec->done + 1);
    fl_failpoint_hit("owner.done");
}

int64_t fl_undo_reached(const fl_undo *u)
{
    return (int64_t)update_in(fl_word_get(&u->rec->cursor));
}

/* --- learning rates --- */

bool fl_undo_rated(const fl_undo *u)
{
    return u->rec->rates == u->rec->done + 1;
}

fl_err fl_undo_rates_reserve(fl_undo *u, int64_t places, size_t bytes)
{
    return reserve_log(u->rates, most_bytes(places, bytes));
}

void fl_undo_rates_begin(fl_undo *u)
{
    fl_word_set(&u->rec->rates, 0);
    u->rates_n = 0;
}

fl_err fl_undo_rates_add(fl_undo *u, uint64_t offset, const void *at,
                         size_t bytes)
{
    return add_place(u->rates, 0, &u->rates_n, (place){offset, bytes, 0}, at);
}

void fl_undo_rates_arm(fl_undo *u)
{
    fl_word_set(&u->rec->rates_bytes, u->rates_n);
    fl_word_set(&u->rec->rates, u->rec->done + 1);
    fl_failpoint_hit("owner.rates");
}

bool fl_undo_rates_ran(const fl_undo *u)
{
    return u->rec->rates != 0;
}
