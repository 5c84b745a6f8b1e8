/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - memory that two processes of one host share.
 *
 * The descriptor of the memory goes over a Unix socket whose name is in no
 * folder, so that nothing is left when the processes end, however they end. */
#ifndef FL_NET_SHARE_H
#define FL_NET_SHARE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    FL_SHARE_NAME = 16, /* random bytes that name a listener */
    FL_SHARE_HOST = 32, /* bytes that tell hosts apart */
};

/* The same for processes that can share memory: of one machine since its start,
 * one network namespace and one user. Zero where that cannot be told. */
void fl_share_host(unsigned char out[FL_SHARE_HOST]);

/* A socket that does not block; -1: it cannot be had. */
int fl_share_listen(const unsigned char name[FL_SHARE_NAME]);
int fl_share_connect(const unsigned char name[FL_SHARE_NAME]);

/* Is the process at the other end of the same user? */
bool fl_share_trusts(int fd);

/* New memory, all zero, mapped here and sent to the other end. NULL: it cannot
 * be had, which the other end is told, or sent. */
void *fl_share_send(int fd, size_t size);

/* The memory that the other end sent; it keeps its size. NULL: errno EAGAIN
 * where it has not come yet, ENOENT where the other end has none, another where
 * it cannot be used. */
void *fl_share_receive(int fd, size_t size);

void fl_share_end(void *memory, size_t size); /* NULL is fine */

#endif
