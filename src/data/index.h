/* SPDX-License-Identifier: Apache-2.0 */
/* index.h - where the tokens and lines of a text end.
 *
 * A text is looked at 64 bytes at a time: one bit a byte says whether it
 * separates. Numbers are then read from tokens whose ends are known, so that
 * none waits for the one before it. */
#ifndef FL_DATA_INDEX_H
#define FL_DATA_INDEX_H

#include "base/err.h"

enum {
    FL_INDEX_LINES = 512 /* lines that are indexed at a time */
};

typedef enum fl_split {
    FL_SPLIT_BLANKS, /* tokens have white space between them, however much */
    FL_SPLIT_TABS,   /* fields end with a tab or the line; may be empty */
} fl_split;

typedef struct fl_line_end {
    uint32_t tokens;  /* up to this line's end */
    uint32_t newline; /* where it stands */
} fl_line_end;

/* Thread: one at a time. Zero is empty; ends with fl_index_fini. */
typedef struct fl_index {
    uint32_t *end; /* behind each token */
    int64_t cap;
    int n_lines;
    fl_line_end line[FL_INDEX_LINES];
} fl_index;

void fl_index_fini(fl_index *ix);

/* Index text[0, n) (n < 4 GB, with slack behind it) up to the last newline in
 * it, or less when that is more than FL_INDEX_LINES. True: all was looked at.
 * Tokens behind the last newline do not count. */
bool fl_index_scan(fl_index *ix, fl_split split, const char *text, size_t n);

#endif
