/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - polls during a run, and times of ops. */
#include "exec/watch.h"

#include "base/str.h"

#include <stdlib.h>

enum {
    READ_CLOCK = 4, /* ops between two reads of the clock (25 ns each) */
    ASK = 50 * 1000 * 1000, /* ns between polls; users notice 100 ms */
    EVENTS = 1 << 20,       /* events kept for a trace (24 MB); rows have all */
};

static void forget(fl_watch *w)
{
    fl_map_fini(&w->rows);
    fl_vec_fini(&w->events);
    fl_arena_free(w->arena);
    w->arena = NULL;
}

void fl_watch_fini(fl_watch *w)
{
    forget(w);
}

fl_err fl_watch_ask(fl_watch *w)
{
    if (!w->poll || ++w->ops < READ_CLOCK)
        return FL_OK;
    w->ops = 0;
    const int64_t now = fl_clock_now(w->clock);
    if (now - w->asked < ASK)
        return FL_OK;
    w->asked = now;
    return w->poll(w->user) ? fl_fail(FL_EINTR, "the run was interrupted")
                            : FL_OK;
}

void fl_watch_profile(fl_watch *w, bool on)
{
    if (on) {
        forget(w);
        w->arena = fl_arena_new();
    }
    w->profiling = on;
}

static fl_profile_row *row_of(fl_watch *w, const char *type)
{
    fl_profile_row *row = fl_map_get(&w->rows, type);
    if (!row) {
        row = fl_arena_alloc(w->arena, sizeof *row);
        row->type = fl_arena_strdup(w->arena, type);
        row->min = INT64_MAX;
        fl_map_put(&w->rows, row->type, row);
    }
    return row;
}

void fl_watch_count(fl_watch *w, const char *type, int64_t start)
{
    const int64_t ns = fl_clock_now(w->clock) - start;
    fl_profile_row *row = row_of(w, type);
    row->calls++;
    row->total += ns;
    row->max = ns > row->max ? ns : row->max;
    row->min = ns < row->min ? ns : row->min;
    if (w->events.n < EVENTS)
        fl_push(&w->events, (fl_event){row->type, start, ns, 0});
}

void fl_watch_follow(fl_watch *w, const fl_watch *by)
{
    const bool on = by && by->profiling;
    if (on || w->profiling)
        fl_watch_profile(w, on);
}

void fl_watch_take(fl_watch *w, fl_watch *from, int thread)
{
    if (!w->profiling || !from->profiling)
        return;
    for (fl_entry *e = NULL; (e = fl_map_next(&from->rows, e));) {
        const fl_profile_row *x = e->value;
        fl_profile_row *row = row_of(w, x->type);
        row->calls += x->calls;
        row->total += x->total;
        row->max = x->max > row->max ? x->max : row->max;
        row->min = x->min < row->min ? x->min : row->min;
    }
    for (int64_t i = 0; i < from->events.n && w->events.n < EVENTS; i++) {
        fl_event e = from->events.at[i];
        e.type = row_of(w, e.type)->type;
        e.thread = thread;
        fl_push(&w->events, e);
    }
}

static int by_total(const void *a, const void *b)
{
    const fl_profile_row *x = a, *y = b;
    return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

int fl_watch_rows(const fl_watch *w, int max, fl_profile_row *out)
{
    FL_VEC(fl_profile_row) all = {0};
    for (fl_entry *e = NULL; (e = fl_map_next(&w->rows, e));)
        fl_push(&all, *(fl_profile_row *)e->value);
    const int n = (int)all.n;
    if (n)
        qsort(all.at, (size_t)n, sizeof *all.at, by_total);
    for (int i = 0; i < n && i < max; i++)
        out[i] = all.at[i];
    fl_vec_fini(&all);
    return n;
}

/* Op types are letters, digits and underscores: nothing to escape. */
char *fl_watch_trace(const fl_watch *w)
{
    fl_str s = {0};
    fl_str_add(&s, "{\"traceEvents\": [");
    const int64_t zero = w->events.n ? w->events.at[0].start : 0;
    for (int64_t i = 0; i < w->events.n; i++) {
        const fl_event *e = &w->events.at[i];
        fl_str_printf(&s,
                      "%s\n{\"name\": \"%s\", \"cat\": \"op\", \"ph\": \"X\", "
                      "\"ts\": %.3f, \"dur\": %.3f, \"pid\": 0, \"tid\": %d}",
                      i ? "," : "", e->type, (double)(e->start - zero) / 1e3,
                      (double)e->ns / 1e3, e->thread);
    }
    fl_str_add(&s, "\n]}\n");
    return fl_str_take(&s);
}
