/* SPDX-License-Identifier: Apache-2.0 */
/* criteo.h - reads raw Criteo lines without a pipe command. */
#ifndef FL_DATA_CRITEO_H
#define FL_DATA_CRITEO_H

#include "data/hash.h"
#include "data/parse.h"

enum {
    FL_CRITEO_NUMBERS = 13,
    FL_CRITEO_CATEGORIES = 26,
    FL_CRITEO_SLOTS = 1 + FL_CRITEO_CATEGORIES + 1,
};

/* Thread: immutable once made. */
typedef struct fl_criteo_format {
    fl_format format; /* first: a pointer to it is a pointer to this */
    fl_modulus dim;
    const fl_hash *hash;
    int64_t empty[FL_CRITEO_CATEGORIES]; /* ids of categories without text */
} fl_criteo_format;

/* EINVAL: dim below 1, an unknown hash. */
fl_err fl_criteo_init(fl_criteo_format *f, const fl_criteo *how) FL_MUST_CHECK;

/* EINVAL unless the slots are 13 floats, 26 ids and a label. */
fl_err fl_criteo_check(const fl_schema *s) FL_MUST_CHECK;

/* Whether this pipe command need not be started, because Fluid can do the same
 * itself: "paddle read criteo --dim N [--hash NAME]". The hash is stored in
 * `name`. */
enum {
    FL_HASH_NAME = 16
};
bool fl_criteo_command(const char *command, fl_criteo *how,
                       char name[FL_HASH_NAME]);

/* The values of a line. */
typedef struct fl_criteo_row {
    double number[FL_CRITEO_NUMBERS]; /* scaled */
    int64_t category[FL_CRITEO_CATEGORIES];
    int64_t label;
} fl_criteo_row;

fl_err fl_criteo_read(const fl_criteo_format *f, const fl_line *l,
                      fl_criteo_row *row, fl_flaw *flaw) FL_MUST_CHECK;

/* Write a double as Python does: the shortest text that reads back as the same
 * double. */
enum {
    FL_F64_TEXT = 32
};
size_t fl_f64_text(double x, char out[FL_F64_TEXT]);

#endif
