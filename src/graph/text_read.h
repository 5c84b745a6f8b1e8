/* SPDX-License-Identifier: Apache-2.0 */
/* text_read.h - reads the words of the text form of programs. */
#ifndef FL_GRAPH_TEXT_READ_H
#define FL_GRAPH_TEXT_READ_H

#include "graph/program.h"

enum {
    FL_READ_BLOCKS = 1 << 16, /* no program has more */
};

typedef struct fl_text_reader {
    const char *at, *line_at;
    int line;
    int nesting; /* number of open brackets; line breaks within them are ignored
                  */
    fl_program *p;
    fl_block *b;
    fl_arena *a; /* memory of one statement */
} fl_text_reader;

/* Put "text 3:14: " before the last error message; return `err`. */
fl_err fl_read_place(const fl_text_reader *r, fl_err err);
#define FL_READ_FAIL(r, ...) fl_read_place((r), fl_fail(FL_EINVAL, __VA_ARGS__))

/* "expected WHAT, found ..." */
fl_err fl_read_expected(const fl_text_reader *r, const char *what);

void fl_read_skip(fl_text_reader *r); /* skip blanks and comments */
bool fl_read_accept(fl_text_reader *r, const char *text);
bool fl_read_word(fl_text_reader *r, const char *word); /* as a whole word */
fl_err fl_read_expect(fl_text_reader *r, const char *text) FL_MUST_CHECK;

/* Results live in r->a. */
fl_err fl_read_string(fl_text_reader *r, const char **out) FL_MUST_CHECK;
fl_err fl_read_name(fl_text_reader *r, const char *what,
                    const char **out) FL_MUST_CHECK;
fl_err fl_read_int(fl_text_reader *r, int64_t least, int64_t most,
                   int64_t *out) FL_MUST_CHECK;

/* Read the type and the value of an attribute (text_value.c). Its name is not
 * changed. */
fl_err fl_read_number(fl_text_reader *r, fl_attr *v) FL_MUST_CHECK;
fl_err fl_read_value(fl_text_reader *r, fl_attr *v) FL_MUST_CHECK;

#endif
