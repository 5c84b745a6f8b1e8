/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h - waiting until servers are there.
 *
 * Two waits, one manner: try, say every few seconds what is missing, ask
 * whether to go on, end at a limit. */
#ifndef FL_CLUSTER_PORTS_H
#define FL_CLUSTER_PORTS_H

#include "base/clock.h"
#include "net/address.h"

/* What a wait sees of the world; a test has its own. */
typedef struct fl_ports_world {
    const fl_clock *clock;
    void (*nap)(void *user, int64_t ns);
    void (*say)(void *user, const char *line);
    void *user;
} fl_ports_world;

/* fl_wait_ports in a world of one's own. */
fl_err fl_ports_wait(int n, const char *const *endpoints,
                     const fl_wait_opts *opts,
                     const fl_ports_world *world) FL_MUST_CHECK;

/* Is a parameter server there, now? A host that is silent is waited for a few
 * seconds. Err: EINVAL (no endpoint); EIO, what is there instead. */
fl_err fl_ports_ask(const char *endpoint) FL_MUST_CHECK;

/* The numbers of an endpoint, for who binds it: a name that is not known yet
 * (a cluster is starting) is asked for again. world NULL: the real one. */
fl_err fl_ports_resolve(const char *endpoint, const fl_wait_opts *opts,
                        const fl_ports_world *world,
                        char out[FL_ADDRESS_TEXT]) FL_MUST_CHECK;

#endif
