/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_acceptor.h - hands accepted sockets to a gRPC server that uses TLS.
 *
 * grpc_server_add_channel_from_fd takes sockets as plain text only. gRPC's C++
 * interface can hand over sockets with any credentials; this uses what is
 * beneath it. */
#ifndef FL_NET_GRPC_ACCEPTOR_H
#define FL_NET_GRPC_ACCEPTOR_H

#include "net/tls.h"

#include <grpc/grpc.h>

typedef struct fl_grpc_acceptor fl_grpc_acceptor; /* Thread: any */

/* A server with these settings that accepts peers with a certificate of the
 * authority of `tls`. It is not started. Own: *server and *out are new; free
 * *out after *server. Err: EINVAL (this gRPC cannot do that). */
fl_err fl_grpc_acceptor_new(const grpc_channel_args *args, const fl_tls *tls,
                            grpc_server **server,
                            fl_grpc_acceptor **out) FL_MUST_CHECK;
void fl_grpc_acceptor_free(fl_grpc_acceptor *a); /* NULL is fine */

/* Hand over a TCP socket. Only while the server runs. Own: takes fd. */
void fl_grpc_acceptor_take(fl_grpc_acceptor *a, int fd);

/* The socket that was handed over last whose peer gRPC calls so
 * ("ipv4:127.0.0.1:40312", "ipv6:%5B::1%5D:40312"); -1: there is none. */
int fl_grpc_acceptor_find(fl_grpc_acceptor *a, const char *peer);

#endif
