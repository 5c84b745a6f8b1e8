/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - mutual TLS beneath sockets.
 *
 *     peer <--TLS over TCP--> a thread of fl_tls <--socket pair--> this process
 *
 * fl_tls_wrap replaces a TCP socket by one end of a socket pair, on which the
 * mesh and probes read and write plain bytes. gRPC does its own TLS, with the
 * certificates that were read here. Both sides of a connection
 * must show a certificate of the same authority. A peer that shows none, an
 * expired one or one of another authority gets no byte: the socket ends. */
#ifndef FL_NET_TLS_H
#define FL_NET_TLS_H

#include "base/err.h"

typedef struct fl_tls fl_tls; /* Thread: any */

/* Certificate and key of this process, and the job's authority, as PEM. */
typedef struct fl_tls_pem {
    char *certificate, *key, *authority;
} fl_tls_pem;

/* Read the three PEM files. Own: *out. Err: EINVAL (a file has no certificate,
 * or the key does not fit), EIO, ENOENT. */
fl_err fl_tls_new(const char *certificate, const char *key,
                  const char *authority, fl_tls **out) FL_MUST_CHECK;

/* Ends all connections. NULL is fine. */
void fl_tls_free(fl_tls *t);

const fl_tls_pem *fl_tls_pem_of(const fl_tls *t);

/* The plain socket of a TCP socket that is connected or is connecting.
 * `accepted`: the peer has connected to us. Returns -1 if no descriptor or
 * thread is left. Own: takes tcp, also on failure. Never blocks. */
int fl_tls_wrap(fl_tls *t, int tcp, bool accepted);

#endif
