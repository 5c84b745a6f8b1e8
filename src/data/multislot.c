/* SPDX-License-Identifier: Apache-2.0 */
/* multislot.c - Fluid's text format: for each slot a count, then the values.
 *
 *     2 0.5 1.25 1 17 3 8 9 10
 *
 * Tokens are separated by white space. A row is read in one pass over the ends
 * that the index found. A token usually starts one byte after the end of the
 * one before; only if that byte is white space, the start is searched. */
#include "data/number.h"
#include "data/parse.h"
#include "data/wide.h"

/* Inlined into each version of the function that reads a row. */
#define INLINE static inline __attribute__((always_inline))

typedef struct cursor {
    const char *text;
    const uint32_t *end;
    int64_t k, n; /* index of the next token; number of tokens */
    uint32_t at;  /* position after the last token */
    bool wide;    /* the functions of wide.h may be called */
} cursor;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The start of the next token, which exists. */
static inline const char *start_number(cursor *c)
{
    while (__builtin_expect((unsigned char)c->text[c->at] <= ' ', 0) &&
           is_blank(c->text[c->at]))
        c->at++;
    return c->text + c->at;
}

static inline size_t token_length(const cursor *c)
{
    return c->end[c->k] - c->at;
}

static inline void step_cursor(cursor *c)
{
    c->at = c->end[c->k++] + 1;
}

static inline void skip_tokens(cursor *c, int64_t n)
{
    c->k += n;
    c->at = n ? c->end[c->k - 1] + 1 : c->at;
}

/* The cursor is passed by value, so that the compiler can keep the original in
 * registers. */
static fl_err bad_count(cursor c, const fl_schema_slot *s, fl_flaw *f)
{
    char word[FL_WORD_TEXT];
    if (!c.n)
        return fl_flaw_set(f, c.at, "the line is empty");
    if (c.k == c.n)
        return fl_flaw_set(f, c.end[c.n - 1],
                           "the line ends before slot \"%s\"", s->name);
    return fl_flaw_set(
        f, c.at,
        "the count of slot \"%s\" is \"%s\", expected a whole number from 1 on",
        s->name, fl_word_text(start_number(&c), token_length(&c), word));
}

/* Read the number of values. The line must have so many, and the slot must
 * allow them. */
INLINE fl_err read_count(cursor *c, const fl_schema_slot *s, int64_t *count,
                         fl_flaw *f)
{
    if (__builtin_expect(c->k == c->n, 0))
        return bad_count(*c, s, f);
    const char *p = c->text + c->at;
    uint32_t at = c->at;
    if (__builtin_expect(p[0] == '1' && p[1] == ' ', 1)) { /* the usual case */
        *count = 1;
    } else {
        p = start_number(c);
        at = c->at;
        if (!fl_parse_i64(p, token_length(c), count) || *count < 1)
            return bad_count(*c, s, f);
    }
    step_cursor(c);
    if (s->width && *count != s->width)
        return fl_flaw_set(f, at, "slot \"%s\" has %lld values, expected %lld",
                           s->name, (long long)*count, (long long)s->width);
    if (*count > c->n - c->k)
        return fl_flaw_set(
            f, at,
            "slot \"%s\" should have %lld values, the line has only %lld more",
            s->name, (long long)*count, (long long)(c->n - c->k));
    return FL_OK;
}

static fl_err bad_value(cursor c, const fl_schema_slot *s, int64_t i,
                        fl_flaw *f)
{
    char word[FL_WORD_TEXT];
    return fl_flaw_set(f, c.at,
                       "value %lld of slot \"%s\" is \"%s\", expected a %s",
                       (long long)(i + 1), s->name,
                       fl_word_text(c.text + c.at, token_length(&c), word),
                       s->dtype == FL_F32 ? "finite number" : "whole number");
}

INLINE fl_err read_ids(cursor *c, const fl_schema_slot *s, int64_t n,
                       int64_t *out, fl_flaw *f)
{
    for (int64_t i = 0; i < n; i++) {
        const char *p = start_number(c);
        if (!fl_parse_i64(p, token_length(c), &out[i]))
            return bad_value(*c, s, i, f);
        step_cursor(c);
    }
    return FL_OK;
}

INLINE fl_err read_floats(cursor *c, const fl_schema_slot *s, int64_t n,
                          float *out, fl_flaw *f)
{
    int64_t i =
        c->wide ? fl_wide_floats(c->text, c->at, c->end + c->k, n, out) : 0;
    skip_tokens(c, i);
    for (; i < n; i++) {
        const char *p = start_number(c);
        if (!fl_parse_f32(p, token_length(c), &out[i]))
            return bad_value(*c, s, i, f);
        step_cursor(c);
    }
    return FL_OK;
}

INLINE fl_err read_slot(cursor *c, const fl_schema_slot *s, fl_batch *b,
                        fl_flaw *f)
{
    int64_t n = 0;
    FL_TRY(read_count(c, s, &n, f));
    if (s->column < 0) {
        skip_tokens(c, n);
        return FL_OK;
    }
    fl_column *to = &b->column[s->column];
    if (__builtin_expect(to->n + n > to->cap, 0))
        FL_TRY(fl_column_grow(b, s->column, n));
    FL_TRY(s->dtype == FL_F32 ? read_floats(c, s, n, to->f32 + to->n, f)
                              : read_ids(c, s, n, to->i64 + to->n, f));
    to->n += n;
    return FL_OK;
}

static fl_err bad_end(cursor c, const fl_schema_slot *last, fl_flaw *f)
{
    char word[FL_WORD_TEXT];
    const char *p = start_number(&c);
    return fl_flaw_set(f, c.at, "\"%s\" follows the last slot, \"%s\"",
                       fl_word_text(p, token_length(&c), word), last->name);
}

/* Read a slot that is "1 id". False: it is something else, and nothing was
 * read. */
INLINE bool read_single(cursor *c, const fl_schema_slot *s, fl_batch *b)
{
    uint64_t id;
    const char *p = c->text + c->at;
    fl_column *to = &b->column[s->column];
    const size_t len = c->end[c->k + 1] - c->at - 2;
    if (p[0] != '1' || p[1] != ' ' || to->n == to->cap || len - 1 >= 8 ||
        !fl_digits8(p + 2, len, &id))
        return false;
    to->i64[to->n++] = (int64_t)id;
    skip_tokens(c, 2);
    return true;
}

/* Read slots that are "1 id" and have room in their columns, from `first` on.
 * Returns how many were read. read_slot reads all other slots and reports
 * errors. */
INLINE int read_singles(cursor *c, const fl_schema_slot *first, fl_batch *b)
{
    int64_t id[FL_WIDE_IDS];
    const int64_t pairs = (c->n - c->k) / 2;
    int n = first->singles < FL_WIDE_IDS ? first->singles : FL_WIDE_IDS;
    n = n < pairs ? n : (int)pairs;
    if (!c->wide)
        return n && read_single(c, first, b);
    n = fl_wide_ids(c->text, c->at, c->end + c->k, n, id);
    fl_column *to = &b->column[first->column];
    for (int i = 0; i < n; i++, to++) {
        if (__builtin_expect(to->n == to->cap, 0))
            n = i;
        else
            to->i64[to->n++] = id[i];
    }
    skip_tokens(c, 2 * n);
    return n;
}

FL_CLONES
static fl_err multislot_row(const fl_format *self, const fl_line *l,
                            fl_batch *b, fl_flaw *f)
{
    const fl_schema *s = b->schema;
    cursor c = {.text = l->text,
                .end = l->end,
                .n = l->n,
                .at = l->start,
                .wide = b->wide};
    for (int i = 0, n; i < s->n; i += n) {
        n = s->slot[i].singles ? read_singles(&c, &s->slot[i], b) : 0;
        if (!n) {
            FL_TRY(read_slot(&c, &s->slot[i], b, f));
            n = 1;
        }
    }
    if (c.k == c.n)
        return FL_OK;
    return bad_end(c, &s->slot[s->n - 1], f);
}

const fl_format fl_multislot = {FL_SPLIT_BLANKS, multislot_row};
