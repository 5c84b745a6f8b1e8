/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h - waits until servers can be reached.
 *
 * Both waits work the same way: they try, log every few seconds what is
 * missing, poll the caller, and end at a limit. */
#ifndef FL_CLUSTER_PORTS_H
#define FL_CLUSTER_PORTS_H

#include "base/clock.h"
#include "net/address.h"

/* Clock, sleep and log of a wait; a test provides its own. */
typedef struct fl_ports_world {
    const fl_clock *clock;
    void (*nap)(void *user, int64_t ns);
    void (*say)(void *user, const char *line);
    void *user;
} fl_ports_world;

/* fl_wait_ports with another clock, sleep and log. */
fl_err fl_ports_wait(int n, const char *const *endpoints,
                     const fl_wait_opts *opts,
                     const fl_ports_world *world) FL_MUST_CHECK;

/* Check that a parameter server answers at the endpoint now. A host that does
 * not answer gets a few seconds. Err: EINVAL (not an endpoint); EIO, with what
 * was found instead. */
fl_err fl_ports_ask(const char *endpoint) FL_MUST_CHECK;

/* Resolve an endpoint to a numeric address to bind. A name that is not known
 * yet, because the cluster is starting, is looked up again until the limit.
 * world NULL: the real clock, sleep and log. */
fl_err fl_ports_resolve(const char *endpoint, const fl_wait_opts *opts,
                        const fl_ports_world *world,
                        char out[FL_ADDRESS_TEXT]) FL_MUST_CHECK;

#endif
