/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - a listening socket, and what is known of who connects to it.
 *
 *     stranger --shows the token--> member
 *        |
 *        +--sends too much, stays too long, too many of its host--> hung up
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

/* In limits zero is the default. */
typedef struct fl_listener_opts {
    bool shared; /* another socket may be bound to the port (SO_REUSEPORT) */
    bool open;   /* whoever connects is a member */
    /* All run on the listener's thread, without a lock. `take` owns the socket.
     * `tick` comes once a second. After `settle` fl_listener_settled follows,
     * once all that has come so far was told; NULL: it always was. */
    void (*take)(void *self, int fd);
    void (*tick)(void *self, int64_t now);
    void (*settle)(void *self);
    void *self;
    /* That may be read of a connection; 1 MiB. All strangers together may send
     * 64 MiB: where there are more than 64, each may send less. */
    int64_t stranger_bytes;
    int64_t stranger_time; /* ns until it must have shown the token; 30 s */
    int stranger_calls;    /* at once, of a connection; 4 */
    int strangers;         /* connections of one host; 64 */
} fl_listener_opts;

/* Listen at an exact address ("127.0.0.1:80"; port 0: any free one, which *port
 * is). Connections wait until fl_listener_start. Own: new. Err: EIO (see
 * fl_port_why). */
fl_err fl_listener_new(const fl_listener_opts *opts, const char *exact,
                       int *port, fl_listener **out) FL_MUST_CHECK;
fl_err fl_listener_start(fl_listener *l) FL_MUST_CHECK;

/* No callback runs after it; connections are still known. */
void fl_listener_stop(fl_listener *l);
void fl_listener_free(fl_listener *l); /* NULL is fine */

/* From any thread. */
void fl_listener_settled(fl_listener *l);

/* Does it still take connections? Err: EIO. */
fl_err fl_listener_check(fl_listener *l) FL_MUST_CHECK;

/* --- a connection --- */

/* The connection whose socket has the number that `take` was given; 0: none
 * has. Numbers are used again when a socket was closed; these names are not. */
uint64_t fl_listener_name(fl_listener *l, int fd);

typedef enum fl_standing {
    FL_STRANGER, /* or the connection has gone */
    FL_LOCAL,    /* a stranger from this host */
    FL_MEMBER,
} fl_standing;

fl_standing fl_listener_standing(fl_listener *l, uint64_t name);
/* It is a member's from now on. */
void fl_listener_trust(fl_listener *l, uint64_t name);

/* A call begins, and ends. False: the stranger has too many already, or the
 * connection has gone; then no end is told. */
bool fl_listener_enter(fl_listener *l, uint64_t name);
void fl_listener_leave(fl_listener *l, uint64_t name);

/* "127.0.0.1:40312" into buf, which it returns; "?": it is not known. */
const char *fl_listener_address(fl_listener *l, uint64_t name, char *buf,
                                size_t size);

#endif
