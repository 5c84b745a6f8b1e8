/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - memory that two processes of one host share.
 *
 * The descriptor of the memory is sent over a Unix socket with an abstract
 * name, so that no file is left when the processes end, even if they are
 * killed. */
#ifndef FL_NET_SHARE_H
#define FL_NET_SHARE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    FL_SHARE_NAME = 16, /* random bytes that name a listener */
    FL_SHARE_HOST = 32, /* bytes that identify a host */
};

/* Bytes that are equal for processes that can share memory: those of one
 * machine since its start, one network namespace and one user. Zero: not known.
 */
void fl_share_host(unsigned char out[FL_SHARE_HOST]);

/* A non-blocking socket; -1: failed. */
int fl_share_listen(const unsigned char name[FL_SHARE_NAME]);
int fl_share_connect(const unsigned char name[FL_SHARE_NAME]);

/* Whether the process at the other end belongs to the same user. */
bool fl_share_trusts(int fd);

/* Map new zeroed memory and send it to the other end. NULL: it cannot be
 * allocated, of which the other end is told, or it cannot be sent. */
void *fl_share_send(int fd, size_t size);

/* Map the memory that the other end has sent. Its size cannot change. NULL:
 * errno is EAGAIN if it has not arrived yet, ENOENT if the other end has none,
 * or another error. */
void *fl_share_receive(int fd, size_t size);

void fl_share_end(void *memory, size_t size); /* NULL is fine */

#endif
