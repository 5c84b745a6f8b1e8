/* SPDX-License-Identifier: Apache-2.0 */
/* address.h - resolves "host:port" to socket addresses. */
#ifndef FL_NET_ADDRESS_H
#define FL_NET_ADDRESS_H

#include "base/err.h"

#include <sys/socket.h>

enum {
    FL_ADDRESSES = 8,     /* addresses of a name that are used, at most */
    FL_ADDRESS_TEXT = 80, /* bytes of "[IPv6]:port" with its NUL */
};

typedef struct fl_address {
    struct sockaddr_storage at;
    socklen_t size;
} fl_address;

/* All addresses of "ps0:6174", "10.0.0.1:6174" or "[::1]:6174". The name is
 * looked up once. Blocks: as long as the system waits for a name server. Err:
 * EINVAL (not an endpoint), ENOENT (the name is not known now). */
fl_err fl_address_find(const char *endpoint, fl_address out[FL_ADDRESSES],
                       int *n) FL_MUST_CHECK;

/* fl_address_find, with `stop` (or NULL) called twenty times a second. If it
 * returns other than 0, the lookup ends with EINTR. */
fl_err fl_address_find_unless(const char *endpoint, int (*stop)(void *user),
                              void *user, fl_address out[FL_ADDRESSES],
                              int *n) FL_MUST_CHECK;

/* Write the numeric form: "127.0.0.1:6174", "[::1]:6174". */
void fl_address_text(const fl_address *a, char out[FL_ADDRESS_TEXT]);

/* The address of a network device ("eth0") as numbers, without a port: of IPv4
 * if it has one. ENOENT: there is no such device (and which there are), or it
 * has no address. */
fl_err fl_address_device(const char *name,
                         char out[FL_ADDRESS_TEXT]) FL_MUST_CHECK;

/* Whether such a text is a loopback address. */
bool fl_address_loopback(const char *text);

#endif
