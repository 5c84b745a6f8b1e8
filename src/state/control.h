/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the images of a server's state machines, replaced as a whole.
 *
 * There are two copies and a selector. A new image is written to the copy that
 * is not selected; storing the selector makes it the one that counts. */
#ifndef FL_STATE_CONTROL_H
#define FL_STATE_CONTROL_H

#include "state/statedir.h"

typedef struct fl_control fl_control;

enum {
    FL_CONTROL_PARTS = 2 /* images that are replaced together */
};

typedef struct fl_control_image {
    const void *at[FL_CONTROL_PARTS];
    size_t n[FL_CONTROL_PARTS]; /* bytes; 0: there is none */
} fl_control_image;

/* A new state has room for images of `expected` bytes. Own: *out is new; d
 * outlives it. Err: those of fl_statedir_map. */
fl_err fl_control_new(fl_statedir *d, size_t expected,
                      fl_control **out) FL_MUST_CHECK;
void fl_control_free(fl_control *c); /* NULL is fine */

/* Make sure that there is room for images that have `more` bytes more than the
 * last ones. Err: ENOMEM: the state directory is full. */
fl_err fl_control_reserve(fl_control *c, size_t more) FL_MUST_CHECK;

/* Err: ENOMEM: the state directory is full, and the old images count. */
fl_err fl_control_save(fl_control *c,
                       const fl_control_image *image) FL_MUST_CHECK;

/* The images that count; they are borrowed until the next save. Without a save
 * all are empty. Err: EINVAL: they are damaged. */
fl_err fl_control_load(fl_control *c, fl_control_image *out) FL_MUST_CHECK;

#endif
