/* SPDX-License-Identifier: Apache-2.0 */
/* backend_ring.c - the ring as a backend. */
#include "collective/backend.h"

static fl_err ring_all_reduce(void *self, fl_reduce how, fl_dtype type, void *x,
                              int64_t n)
{
    return fl_ring_all_reduce(self, how, type, x, n);
}

static fl_err ring_reduce_scatter(void *self, fl_reduce how, fl_dtype type,
                                  void *x, int64_t n)
{
    return fl_ring_reduce_scatter(self, how, type, x, n);
}

static fl_err ring_all_gather(void *self, void *x, const size_t *at)
{
    return fl_ring_all_gather(self, x, at);
}

static fl_err ring_broadcast(void *self, int root, void *x, size_t size)
{
    return fl_ring_broadcast(self, root, x, size);
}

static fl_err ring_barrier(void *self)
{
    return fl_ring_barrier(self);
}

static void ring_about(void *self, const fl_mesh_subject *about)
{
    fl_mesh_about(self, about);
}

static void ring_fail(void *self, const char *why)
{
    fl_mesh_fail(self, why);
}

static void ring_free(void *self)
{
    fl_mesh_free(self);
}

fl_err fl_backend_ring(const fl_mesh_opts *opts, fl_backend *b)
{
    fl_mesh *m;
    FL_TRY(fl_mesh_join(opts, &m));
    *b = (fl_backend){
        .self = m,
        .local = fl_mesh_local(m),
        .all_reduce = ring_all_reduce,
        .reduce_scatter = ring_reduce_scatter,
        .all_gather = ring_all_gather,
        .broadcast = ring_broadcast,
        .barrier = ring_barrier,
        .about = ring_about,
        .fail = ring_fail,
        .free = ring_free,
    };
    return FL_OK;
}
