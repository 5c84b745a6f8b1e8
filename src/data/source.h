/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - the bytes of a file: as they are, unpacked, or converted by a
 * command. */
#ifndef FL_DATA_SOURCE_H
#define FL_DATA_SOURCE_H

#include "data/cancel.h"

typedef struct fl_source fl_source; /* Thread: one at a time */

/* Whether the pipe command is NULL, "" or "cat", for which nothing is started.
 */
bool fl_source_is_plain(const char *pipe);

/* Open a file. With a plain pipe command, the file itself is read, and unpacked
 * if it is gzip; otherwise the output of the shell command with the file as its
 * stdin. Own: *out. Err: ENOENT, EIO. */
fl_err fl_source_open(const char *path, const char *pipe, fl_cancel *cancel,
                      fl_source **out) FL_MUST_CHECK;

/* The same for an open descriptor, which the caller still owns. */
fl_err fl_source_of(int fd, const char *name, fl_cancel *cancel,
                    fl_source **out) FL_MUST_CHECK;

void fl_source_free(fl_source *s); /* NULL is fine */

/* Read up to n bytes. *got 0: the end. Err: EIO, EPROTO (a gzip file is damaged
 * or incomplete), EINTR (cancelled). */
fl_err fl_source_read(fl_source *s, void *buf, size_t n,
                      size_t *got) FL_MUST_CHECK;

/* Skip n bytes before the first read; by a seek if possible. Err: EIO (the file
 * has fewer bytes), and those of fl_source_read. */
fl_err fl_source_skip(fl_source *s, int64_t n) FL_MUST_CHECK;

const char *fl_source_name(const fl_source *s); /* for error messages */

#endif
