/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - a listening socket, and the limits for those who connect to it.
 *
 *     stranger --shows the token--> member
 *        |
 *        +--sends too much, stays too long, too many of its host--> closed
 *
 * gRPC would accept by itself, but it has no limits for a connection, keeps
 * every byte of an unfinished message, and closes its listening socket for good
 * when files run out. So sockets are accepted here and handed on; a stranger's
 * socket is watched by a second descriptor until it is a member's. */
#ifndef FL_NET_LISTENER_H
#define FL_NET_LISTENER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_listener fl_listener; /* Thread: any */

/* A limit of 0 is replaced by the default that is named here. */
typedef struct fl_listener_opts {
    bool shared; /* another socket may be bound to the port (SO_REUSEPORT) */
    bool open;   /* every connection counts as a member's */
    /* Callbacks on the listener's thread, without a lock. `take` gets a socket
     * and owns it. `tick` is called once a second. `settle` asks the owner to
     * call fl_listener_settled when all that was received so far has been
     * reported; NULL: that is always the case. */
    void (*take)(void *self, int fd);
    void (*tick)(void *self, int64_t now);
    void (*settle)(void *self);
    void *self;
    /* Bytes that a stranger's connection may send; 1 MiB, and eight times as
     * many until fl_listener_enter was called for it. All strangers together
     * may send 64 MiB: the more there are, the less each may send. */
    int64_t stranger_bytes;
    int64_t stranger_time; /* ns until a stranger must show the token; 30 s */
    int stranger_calls;    /* open calls of a stranger's connection; 4 */
    int strangers;         /* connections of strangers from one host; 64 */
} fl_listener_opts;

/* Listen at an exact address ("127.0.0.1:80"; port 0: any free one, which *port
 * is). Connections wait until fl_listener_start. Own: new. Err: EIO (see
 * fl_port_why). */
fl_err fl_listener_new(const fl_listener_opts *opts, const char *exact,
                       int *port, fl_listener **out) FL_MUST_CHECK;
fl_err fl_listener_start(fl_listener *l) FL_MUST_CHECK;

/* After this no callback runs; the functions below still work. */
void fl_listener_stop(fl_listener *l);
void fl_listener_free(fl_listener *l); /* NULL is fine */

/* The answer to `settle`. Thread: any. */
void fl_listener_settled(fl_listener *l);

/* Check that it still accepts connections. Err: EIO. */
fl_err fl_listener_check(fl_listener *l) FL_MUST_CHECK;

/* --- a connection --- */

/* The name of the connection whose socket `take` got; 0: there is none. The
 * number of a closed socket is used again, a name is not. */
uint64_t fl_listener_name(fl_listener *l, int fd);

typedef enum fl_standing {
    FL_STRANGER, /* a stranger, or the connection has ended */
    FL_LOCAL,    /* a stranger from this host */
    FL_MEMBER,
} fl_standing;

fl_standing fl_listener_standing(fl_listener *l, uint64_t name);
/* From now on the connection is a member's. */
void fl_listener_trust(fl_listener *l, uint64_t name);

/* Count the begin and the end of a call. False: the stranger has too many
 * calls, or the connection has ended; then fl_listener_leave must not be
 * called. */
bool fl_listener_enter(fl_listener *l, uint64_t name);
void fl_listener_leave(fl_listener *l, uint64_t name);

/* Write "127.0.0.1:40312" to buf, and return buf; "?" if it is not known. */
const char *fl_listener_address(fl_listener *l, uint64_t name, char *buf,
                                size_t size);

#endif
