/* SPDX-License-Identifier: Apache-2.0 */
/* index.h - where the tokens and lines of a text end.
 *
 * A text is examined 64 bytes at a time: one bit for each byte says whether it
 * is a separator. Numbers are then read from tokens whose ends are known, so
 * that the processor can read several at the same time. */
#ifndef FL_DATA_INDEX_H
#define FL_DATA_INDEX_H

#include "base/err.h"
#include "data/wide.h"

enum {
    FL_INDEX_LINES = 512 /* lines that are indexed at a time */
};

typedef enum fl_split {
    FL_SPLIT_BLANKS, /* tokens are separated by any amount of white space */
    FL_SPLIT_TABS, /* fields end with a tab or the end of the line; they may be
                      empty */
} fl_split;

typedef struct fl_line_end {
    uint32_t tokens;  /* number of tokens up to the end of this line */
    uint32_t newline; /* position of the newline */
} fl_line_end;

/* Thread: one at a time. Zero is empty; ends with fl_index_fini. */
typedef struct fl_index {
    uint32_t *end; /* position after each token */
    int64_t cap;
    bool narrow; /* do not use wide.h; for tests */
    int n_lines;
    fl_line_end line[FL_INDEX_LINES];
} fl_index;

void fl_index_fini(fl_index *ix);

/* Index text[0, n) up to its last newline, or up to FL_INDEX_LINES lines; n < 4
 * GB, and FL_TEXT_SLACK bytes after it are readable. True: the whole text was
 * scanned. Tokens after the last newline are not counted. */
bool fl_index_scan(fl_index *ix, fl_split split, const char *text, size_t n);

#endif
