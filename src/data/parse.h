/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - a line becomes a row of a batch, or a reason why it cannot. */
#ifndef FL_DATA_PARSE_H
#define FL_DATA_PARSE_H

#include "data/batch.h"
#include "data/index.h"

/* A line as the index has it: token i ends at text[end[i]]. */
typedef struct fl_line {
    const char *text;    /* that offsets count from */
    uint32_t start;      /* of the line */
    uint32_t stop;       /* its newline */
    const uint32_t *end; /* of tokens */
    int64_t n;           /* tokens */
} fl_line;

enum {
    FL_FLAW_TEXT = 256
};

/* What is wrong with a line, and where. */
typedef struct fl_flaw {
    uint32_t at; /* in the text */
    char rule[FL_FLAW_TEXT];
} fl_flaw;

/* Note the flaw; FL_EPROTO. */
fl_err fl_flaw_set(fl_flaw *f, uint32_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A token for a sentence: its first bytes, what cannot be shown as dots. */
enum {
    FL_WORD_TEXT = 40
};
const char *fl_word_text(const char *p, size_t len, char out[FL_WORD_TEXT]);

/* "file:line:column: rule, in "text"". Returns FL_EPROTO. */
fl_err fl_flaw_fail(const fl_flaw *f, const char *file, int64_t number,
                    const fl_line *l);

/* How lines of one format are read. The values of a row are added to the
 * batch, which the caller then keeps or drops. EPROTO: the flaw tells; any
 * other: fl_errmsg does. */
typedef struct fl_format fl_format;
struct fl_format {
    fl_split split;
    fl_err (*row)(const fl_format *self, const fl_line *l, fl_batch *b,
                  fl_flaw *f);
};

extern const fl_format fl_multislot; /* multislot.c */

#endif
