/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_library.h - gRPC in this process: its start and end, its settings.
 *
 * A received packet may live longer than its fl_rpc and needs gRPC, so the
 * users of gRPC are counted. */
#ifndef FL_NET_GRPC_LIBRARY_H
#define FL_NET_GRPC_LIBRARY_H

#include "net/rpc.h"

#include <grpc/grpc.h>
#include <signal.h>

typedef struct fl_grpc_library fl_grpc_library; /* Thread: any */

/* Start gRPC. Own: a new reference. */
fl_grpc_library *fl_grpc_library_new(void);
fl_grpc_library *fl_grpc_library_ref(fl_grpc_library *l);
void fl_grpc_library_unref(fl_grpc_library *l);

/* The settings of connections, for both sides. Own: stored in *out. */
enum {
    FL_GRPC_ARGS = 32
};
typedef struct fl_grpc_args {
    grpc_arg arg[FL_GRPC_ARGS];
    grpc_channel_args args;
} fl_grpc_args;
const grpc_channel_args *fl_grpc_args_of(const fl_rpc_opts *opts,
                                         fl_grpc_args *out);

/* Block all signals of this thread, and restore them. gRPC starts threads,
 * which inherit the mask: no signal is delivered to them. */
void fl_grpc_signals_off(sigset_t *old);
void fl_grpc_signals_on(const sigset_t *old);

#endif
