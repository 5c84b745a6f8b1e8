/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - mutual TLS beneath sockets.
 *
 *     peer <--TLS over TCP--> a thread of fl_tls <--socket pair--> this process
 *
 * Whoever is wrapped reads and writes plain bytes on a socket of its own, so
 * that gRPC, the mesh and probes need not know of TLS. Both sides show a
 * certificate of the same authority. A peer that shows none, an expired one or
 * one of another authority gets not a byte: the wrapped socket ends. */
#ifndef FL_NET_TLS_H
#define FL_NET_TLS_H

#include "base/err.h"

typedef struct fl_tls fl_tls; /* Thread: any */

/* Certificate, key and authority as PEM. They are of a process in a job. */
typedef struct fl_tls_pem {
    char *certificate, *key, *authority;
} fl_tls_pem;

/* From files; each is read once. Own: *out. Err: EINVAL (one of them is not
 * what it should be), EIO, ENOENT. */
fl_err fl_tls_new(const char *certificate, const char *key,
                  const char *authority, fl_tls **out) FL_MUST_CHECK;

/* Ends all connections. NULL is fine. */
void fl_tls_free(fl_tls *t);

const fl_tls_pem *fl_tls_pem_of(const fl_tls *t);

/* A socket that stands for `tcp`, which is connected, or about to be, and is
 * taken; -1: no file or thread is left, and tcp is closed. `accepted`: the peer
 * has connected to us. It never blocks. */
int fl_tls_wrap(fl_tls *t, int tcp, bool accepted);

#endif
