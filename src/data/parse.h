/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - a line becomes a row of a batch, or a reason why it cannot. */
#ifndef FL_DATA_PARSE_H
#define FL_DATA_PARSE_H

#include "data/batch.h"
#include "data/index.h"

/* An indexed line: token i ends at text[end[i]]. */
typedef struct fl_line {
    const char *text;    /* base of all offsets */
    uint32_t start;      /* offset of the line */
    uint32_t stop;       /* offset of its newline */
    const uint32_t *end; /* offset after each token */
    int64_t n;           /* number of tokens */
} fl_line;

enum {
    FL_FLAW_TEXT = 256
};

/* What is wrong with a line, and where. */
typedef struct fl_flaw {
    uint32_t at; /* offset of the flaw */
    char rule[FL_FLAW_TEXT];
} fl_flaw;

/* Set the flaw. Returns FL_EPROTO. */
fl_err fl_flaw_set(fl_flaw *f, uint32_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A token as text for an error message: its first bytes, with dots for bytes
 * that cannot be shown. */
enum {
    FL_WORD_TEXT = 40
};
const char *fl_word_text(const char *p, size_t len, char out[FL_WORD_TEXT]);

/* Make the error message: file:line:column: rule, in "text". Returns FL_EPROTO.
 */
fl_err fl_flaw_fail(const fl_flaw *f, const char *file, int64_t number,
                    const fl_line *l);

/* Reads lines of one format. The values of a row are added to the batch, and
 * the caller keeps or drops the row. Err: EPROTO (the flaw says why); others
 * (fl_errmsg says why). */
typedef struct fl_format fl_format;
struct fl_format {
    fl_split split;
    fl_err (*row)(const fl_format *self, const fl_line *l, fl_batch *b,
                  fl_flaw *f);
};

extern const fl_format fl_multislot; /* multislot.c */

#endif
