/* SPDX-License-Identifier: Apache-2.0 */
/* packet.c - a list of spans and of the owners of lent memory.
 *
 * Copies are stored one after the other in the packet's own memory, so that
 * many small ones become one span. */
#include "net/packet.h"

#include "base/atomic.h"
#include "base/vec.h"

enum {
    ROOM = 224,  /* bytes; enough for the headers of a small message */
    FEW = 8,     /* spans, and loans, of a small message */
    CHUNK = 4096 /* bytes that are allocated when the room is full */
};

typedef struct loan {
    void (*drop)(void *owner);
    void *owner;
} loan;

/* A small packet is one allocation: its arrays begin inside. */
struct fl_packet {
    fl_count refs;
    FL_VEC(fl_span) spans; /* none is empty */
    FL_VEC(size_t) ends;   /* offset of the end of each span */
    FL_VEC(loan) loans;
    char *room; /* the next copy goes here */
    size_t left;
    fl_span few_spans[FEW];
    size_t few_ends[FEW];
    loan few_loans[FEW];
    char first[ROOM];
};

fl_packet *fl_packet_new(void)
{
    fl_packet *p = fl_mem_alloc(sizeof *p);
    fl_count_init(&p->refs, 1);
    p->room = p->first;
    p->left = ROOM;
    p->spans.at = p->few_spans;
    p->ends.at = p->few_ends;
    p->loans.at = p->few_loans;
    p->spans.cap = p->ends.cap = p->loans.cap = FEW;
    return p;
}

fl_packet *fl_packet_ref(fl_packet *p)
{
    fl_count_up(&p->refs);
    return p;
}

void fl_packet_unref(fl_packet *p)
{
    if (!p || fl_count_down(&p->refs))
        return;
    for (int64_t i = 0; i < p->loans.n; i++)
        p->loans.at[i].drop(p->loans.at[i].owner);
    fl_vec_free_grown(p->spans.at, p->few_spans);
    fl_vec_free_grown(p->ends.at, p->few_ends);
    fl_vec_free_grown(p->loans.at, p->few_loans);
    fl_mem_free(p);
}

size_t fl_packet_size(const fl_packet *p)
{
    return p->ends.n ? p->ends.at[p->ends.n - 1] : 0;
}

int fl_packet_spans(const fl_packet *p, const fl_span **out)
{
    *out = p->spans.at;
    return (int)p->spans.n;
}

static void add_span(fl_packet *p, const void *at, size_t size)
{
    fl_vec_grow_from((void **)&p->ends.at, p->few_ends, p->ends.n, &p->ends.cap,
                     p->ends.n + 1, sizeof *p->ends.at);
    fl_vec_grow_from((void **)&p->spans.at, p->few_spans, p->spans.n,
                     &p->spans.cap, p->spans.n + 1, sizeof *p->spans.at);
    fl_push(&p->ends, fl_packet_size(p) + size);
    fl_push(&p->spans, (fl_span){at, size});
}

static void add_loan(fl_packet *p, void (*drop)(void *owner), void *owner)
{
    fl_vec_grow_from((void **)&p->loans.at, p->few_loans, p->loans.n,
                     &p->loans.cap, p->loans.n + 1, sizeof *p->loans.at);
    fl_push(&p->loans, (loan){drop, owner});
}

static void make_room(fl_packet *p, size_t size)
{
    size = size < CHUNK ? CHUNK : size;
    p->room = fl_mem_grow(NULL, size);
    p->left = size;
    add_loan(p, fl_mem_free, p->room);
}

void fl_packet_copy(fl_packet *p, const void *at, size_t size)
{
    if (!size)
        return;
    if (size > p->left)
        make_room(p, size);
    memcpy(p->room, at, size);
    fl_span *last = p->spans.n ? &p->spans.at[p->spans.n - 1] : NULL;
    if (last && (const char *)last->at + last->size == p->room) {
        last->size += size;
        p->ends.at[p->ends.n - 1] += size;
    } else {
        add_span(p, p->room, size);
    }
    p->room += size;
    p->left -= size;
}

void fl_packet_lend(fl_packet *p, const void *at, size_t size,
                    void (*drop)(void *owner), void *owner)
{
    if (size)
        add_span(p, at, size);
    if (drop)
        add_loan(p, drop, owner);
}

/* The index of the span with byte `at`, which is before the end. */
static int64_t span_at(const fl_packet *p, size_t at)
{
    int64_t low = 0, high = p->ends.n - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (p->ends.at[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool fl_bytes_next(fl_bytes b, size_t *cursor, fl_span *out)
{
    if (*cursor >= b.size)
        return false;
    size_t at = b.at + *cursor, left = b.size - *cursor;
    int64_t i = span_at(b.of, at);
    size_t here = b.of->ends.at[i] - at; /* bytes left in the span */
    fl_span s = b.of->spans.at[i];
    out->at = (const char *)s.at + (s.size - here);
    out->size = here < left ? here : left;
    *cursor += out->size;
    return true;
}

void fl_bytes_copy(fl_bytes b, size_t from, void *to, size_t size)
{
    fl_bytes part = {b.of, b.at + from, size};
    fl_span s;
    char *at = to;
    for (size_t cursor = 0; fl_bytes_next(part, &cursor, &s); at += s.size)
        memcpy(at, s.at, s.size);
}
