/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - a source as lines that are indexed. */
#ifndef FL_DATA_TEXT_H
#define FL_DATA_TEXT_H

#include "data/parse.h"
#include "data/source.h"

enum {
    FL_LINE_MAX = 16 << 20 /* bytes: more is no line of examples */
};

/* Thread: one at a time. Zero and a split is one without a source. */
typedef struct fl_text {
    fl_split split;
    fl_source *source; /* its own; NULL: none */
    char *buf;         /* cap bytes, and slack behind them */
    size_t cap, from, to;
    bool at_end;     /* the source has no more */
    bool looked;     /* all of buf has been indexed */
    fl_index index;  /* of what begins at buf + from */
    int next;        /* line of the index */
    uint32_t tokens; /* of it that are used up */
    uint32_t start;  /* of the next line, from `from` on */
    int64_t number;  /* of the line given last; counts from 1 */
    int64_t bytes;   /* read so far, of all sources */
    int64_t read_ns; /* and how long that took */
} fl_text;

/* Go on with this source, which is taken; NULL: none. */
void fl_text_take(fl_text *t, fl_source *s);
void fl_text_fini(fl_text *t);

/* More lines into the index; none are left in it. */
fl_err fl_text_fill(fl_text *t) FL_MUST_CHECK;

/* The next line, which lasts until the one after it. *more false: there is
 * none. Err: EPROTO (a line without an end), and what the source says. */
static inline fl_err fl_text_next(fl_text *t, fl_line *l, bool *more)
{
    if (t->next == t->index.n_lines)
        FL_TRY(fl_text_fill(t));
    *more = t->next < t->index.n_lines;
    if (!*more)
        return FL_OK;
    const fl_line_end *e = &t->index.line[t->next++];
    *l = (fl_line){
        .text = t->buf + t->from,
        .start = t->start,
        .stop = e->newline,
        .end = t->index.end + t->tokens,
        .n = e->tokens - t->tokens,
    };
    t->tokens = e->tokens;
    t->start = e->newline + 1;
    t->number++;
    return FL_OK;
}

#endif
