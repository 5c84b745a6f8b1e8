/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - the bytes of a file: as they are, unpacked, or what a command
 * makes of them. */
#ifndef FL_DATA_SOURCE_H
#define FL_DATA_SOURCE_H

#include "data/cancel.h"

typedef struct fl_source fl_source; /* Thread: one at a time */

/* NULL, "" or "cat": no command is started. */
bool fl_source_is_plain(const char *pipe);

/* A plain pipe: the file, unpacked where it is gzip; else what the
 * shell command writes with the file on its stdin. Own: *out.
 * Err: ENOENT, EIO. */
fl_err fl_source_open(const char *path, const char *pipe, fl_cancel *cancel,
                      fl_source **out) FL_MUST_CHECK;

/* The same for an open descriptor, which stays the caller's. */
fl_err fl_source_of(int fd, const char *name, fl_cancel *cancel,
                    fl_source **out) FL_MUST_CHECK;

void fl_source_free(fl_source *s); /* NULL is fine */

/* Up to n bytes; *got 0: that was all. Err: EIO, EPROTO (no gzip after all, or
 * cut off), EINTR (cancelled). */
fl_err fl_source_read(fl_source *s, void *buf, size_t n,
                      size_t *got) FL_MUST_CHECK;

const char *fl_source_name(const fl_source *s); /* for sentences */

#endif
