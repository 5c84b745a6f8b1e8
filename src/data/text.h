/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - splits a source into indexed lines. */
#ifndef FL_DATA_TEXT_H
#define FL_DATA_TEXT_H

#include "data/parse.h"
#include "data/source.h"

enum {
    FL_LINE_MAX = 16 << 20 /* bytes of a line, at most */
};

/* Thread: one at a time. Zero, with `split` set, has no source. */
typedef struct fl_text {
    fl_split split;
    fl_source *source; /* owned; NULL: none */
    char *buf;         /* cap + FL_TEXT_SLACK bytes */
    size_t cap, from, to;
    bool at_end;     /* the source is at its end */
    bool looked;     /* all of buf has been indexed */
    fl_index index;  /* index of the text at buf + from */
    int next;        /* the next line of the index */
    uint32_t tokens; /* tokens of the index that were used */
    uint32_t start;  /* offset of the next line, relative to `from` */
    int64_t number;  /* number of the last line, counted from 1 */
    int64_t bytes;   /* bytes that were read from all sources */
    int64_t got;     /* bytes of this source that were read or skipped */
    int64_t moved;   /* those of them that are not in buf any more */
    int64_t read_ns; /* time that reading took */
} fl_text;

/* Continue with this source and own it; NULL: none. */
void fl_text_take(fl_text *t, fl_source *s);
void fl_text_fini(fl_text *t);

/* Right after fl_text_take: skip bytes that were read in an earlier run, and
 * count their lines. Err: EIO (the source has fewer bytes), and those of the
 * source. */
fl_err fl_text_skip(fl_text *t, int64_t bytes, int64_t lines) FL_MUST_CHECK;

/* The offset in the source after the last line that was returned. */
int64_t fl_text_offset(const fl_text *t);

/* Read and index more lines. All lines of the index must have been used. */
fl_err fl_text_fill(fl_text *t) FL_MUST_CHECK;

/* The next line; it is valid until the next call. *more false: there is none.
 * Err: EPROTO (a line is too long), and those of the source. */
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
