/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - carries out the collective calls of a world.
 *
 *     ring   our own connections (net/mesh.h, net/ring.h)
 *     mpi    a library that is loaded on request (collective/plugin.h)
 *
 * The calls mean what net/ring.h says. Thread: one at a time. */
#ifndef FL_COLLECTIVE_BACKEND_H
#define FL_COLLECTIVE_BACKEND_H

#include "net/ring.h"

typedef struct fl_backend fl_backend;

struct fl_backend {
    void *self;
    int local; /* ranks on this host */
    fl_err (*all_reduce)(void *self, fl_reduce how, fl_dtype type, void *x,
                         int64_t n);
    fl_err (*reduce_scatter)(void *self, fl_reduce how, fl_dtype type, void *x,
                             int64_t n);
    fl_err (*all_gather)(void *self, void *x, const size_t *at);
    fl_err (*broadcast)(void *self, int root, void *x, size_t size);
    fl_err (*barrier)(void *self);
    void (*about)(void *self, const fl_mesh_subject *about);
    /* later calls fail, here and on all other ranks */
    void (*fail)(void *self, const char *why);
    void (*free)(void *self); /* tells the other ranks that this one is done */
};

/* Join over sockets (net/mesh.h). Own: b. Err: as fl_mesh_join. */
fl_err fl_backend_ring(const fl_mesh_opts *opts, fl_backend *b) FL_MUST_CHECK;

/* Join with a plug-in library: name "mpi". Only the options rank and world are
 * used. Own: b. Err: EINVAL, ENOENT (there is no such library), EIO. */
fl_err fl_backend_plugin(const char *name, const fl_mesh_opts *opts,
                         fl_backend *b) FL_MUST_CHECK;

#endif
