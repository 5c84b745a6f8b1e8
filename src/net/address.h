/* SPDX-License-Identifier: Apache-2.0 */
/* address.h - "host:port" becomes addresses that sockets understand. */
#ifndef FL_NET_ADDRESS_H
#define FL_NET_ADDRESS_H

#include "base/err.h"

#include <sys/socket.h>

enum {
    FL_ADDRESSES = 8,     /* of a name; more are not tried */
    FL_ADDRESS_TEXT = 80, /* bytes of "[IPv6]:port" with its NUL */
};

typedef struct fl_address {
    struct sockaddr_storage at;
    socklen_t size;
} fl_address;

/* All of "ps0:6174", "10.0.0.1:6174" or "[::1]:6174"; asks once. EINVAL: it is
 * no endpoint. ENOENT: the name is not known, which may change. A name server
 * that is silent is waited for as long as the system is told to. */
fl_err fl_address_find(const char *endpoint, fl_address out[FL_ADDRESSES],
                       int *n) FL_MUST_CHECK;

/* The same, but `stop` (NULL: nobody) is asked twenty times a second whether to
 * give up: EINTR. */
fl_err fl_address_find_unless(const char *endpoint, int (*stop)(void *user),
                              void *user, fl_address out[FL_ADDRESSES],
                              int *n) FL_MUST_CHECK;

/* As numbers: "127.0.0.1:6174", "[::1]:6174". */
void fl_address_text(const fl_address *a, char out[FL_ADDRESS_TEXT]);

/* Is such a text of a loopback address? */
bool fl_address_loopback(const char *text);

#endif
