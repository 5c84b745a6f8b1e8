/* SPDX-License-Identifier: Apache-2.0 */
/* windows.c - seats in a file that grows.
 *
 * A seat belongs to a session from the store of `used` on, which is the last
 * one of those that make it. */
#include "state/windows.h"

#include "base/atomic.h"
#include "base/failpoint.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST = 4096 /* bytes of the file at first */
};

#define RESERVE ((size_t)1 << 30) /* bytes of addresses */

typedef struct copy {
    int64_t base;
    uint64_t ahead;
    int64_t step, first;
} copy;

typedef struct seat {
    uint64_t used, selector;
    uint64_t session[2];
    int64_t rank;
    copy copy[2];
} seat;

struct fl_windows {
    fl_mapping *map;
};

static int64_t count_seats(const fl_windows *w)
{
    return (int64_t)(fl_mapping_size(w->map) / sizeof(seat));
}

static seat *seat_at(const fl_windows *w, int64_t i)
{
    return (seat *)fl_mapping_at(w->map) + i;
}

static seat *find_seat(const fl_windows *w, const uint64_t session[2])
{
    for (int64_t i = 0; i < count_seats(w); i++) {
        seat *s = seat_at(w, i);
        if (s->used && s->session[0] == session[0] &&
            s->session[1] == session[1])
            return s;
    }
    return NULL;
}

/* The index of a seat that nobody has. */
static fl_err find_free(fl_windows *w, int64_t *i)
{
    *i = 0;
    while (*i < count_seats(w) && seat_at(w, *i)->used)
        ++*i;
    return *i < count_seats(w)
               ? FL_OK
               : fl_mapping_grow(w->map, fl_mapping_size(w->map) * 2);
}

static fl_err make_seat(fl_windows *w, const uint64_t session[2], int64_t rank,
                        seat **out)
{
    int64_t i;
    FL_TRY(find_free(w, &i));
    seat *s = seat_at(w, i);
    *s = (seat){.session = {session[0], session[1]}, .rank = rank};
    fl_word_set(&s->used, 1);
    *out = s;
    return FL_OK;
}

static const copy *selected(const seat *s)
{
    return &s->copy[fl_word_get(&s->selector) & 1];
}

bool fl_windows_seen(const fl_windows *w, const uint64_t session[2],
                     int64_t seq)
{
    const seat *s = find_seat(w, session);
    if (!s)
        return false;
    const copy *c = selected(s);
    return seq <= c->base ||
           (seq - c->base <= 64 && (c->ahead >> (seq - c->base - 1) & 1));
}

fl_err fl_windows_reserve(fl_windows *w, const uint64_t session[2])
{
    int64_t i;
    return find_seat(w, session) ? FL_OK : find_free(w, &i);
}

fl_err fl_windows_mark(fl_windows *w, const fl_seat *of, int64_t seq)
{
    seat *s = find_seat(w, of->session);
    if (!s)
        FL_TRY(make_seat(w, of->session, of->rank, &s));
    copy c = *selected(s);
    const uint64_t other = ~fl_word_get(&s->selector) & 1;
    c.ahead |= UINT64_C(1) << (seq - c.base - 1);
    for (; c.ahead & 1; c.ahead >>= 1)
        c.base++;
    if (of->step > c.step) {
        c.step = of->step;
        c.first = of->first;
    }
    s->copy[other] = c;
    fl_failpoint_hit("owner.window");
    fl_word_set(&s->selector, other);
    fl_failpoint_hit("owner.marked");
    return FL_OK;
}

void fl_windows_forget(fl_windows *w, const uint64_t session[2])
{
    seat *s = find_seat(w, session);
    if (s)
        fl_word_set(&s->used, 0);
}

bool fl_windows_next(const fl_windows *w, int64_t *cursor, fl_seat *out)
{
    while (*cursor < count_seats(w) && !seat_at(w, *cursor)->used)
        ++*cursor;
    if (*cursor >= count_seats(w))
        return false;
    const seat *s = seat_at(w, (*cursor)++);
    const copy *c = selected(s);
    *out = (fl_seat){.session = {s->session[0], s->session[1]},
                     .rank = s->rank,
                     .base = c->base,
                     .ahead = c->ahead,
                     .step = c->step,
                     .first = c->first};
    return true;
}

fl_err fl_windows_new(fl_statedir *d, int owner, fl_windows **out)
{
    fl_windows *w = fl_mem_alloc(sizeof *w);
    char name[32];
    snprintf(name, sizeof name, "windows-%d", owner);
    const fl_err err = fl_statedir_map(d, name, FIRST, RESERVE, &w->map);
    if (err) {
        fl_windows_free(w);
        return err;
    }
    *out = w;
    return FL_OK;
}

void fl_windows_free(fl_windows *w)
{
    if (!w)
        return;
    fl_mapping_unref(w->map);
    fl_mem_free(w);
}
