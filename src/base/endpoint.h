/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - where a process listens: "ps0:6174" or "[::1]:6174". */
#ifndef FL_BASE_ENDPOINT_H
#define FL_BASE_ENDPOINT_H

#include "base/err.h"

typedef struct fl_endpoint {
    const char *host; /* in the text that was read; not NUL-terminated */
    int host_size;    /* bytes; the brackets of an IPv6 address do not count */
    int port;         /* 0: the system chooses a free one */
} fl_endpoint;

/* Split `text`. An error message begins with `what`, for example "transpile:
 * server ". Err: EINVAL (the host or the port is missing, or the port is not a
 * number up to 65535). */
fl_err fl_endpoint_read(const char *text, const char *what,
                        fl_endpoint *out) FL_MUST_CHECK;

/* Check the endpoint of a server that others must reach: port 0 is refused,
 * too. */
fl_err fl_endpoint_check(const char *text, const char *what) FL_MUST_CHECK;

#endif
