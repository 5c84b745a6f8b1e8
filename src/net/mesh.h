/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.h - the ranks of a collective job, each connected to every other.
 *
 *     control  notes about waits, leaving and failures; every wait listens to
 *              all control connections
 *     data     the bytes of collective calls, in the order of the calls
 *
 * Two connections per pair of ranks, so that a failure overtakes data. A rank
 * that dies closes its control connections: every other rank sees it during its
 * next wait, also a rank that exchanges no data with it. A failure is final:
 * the rank that finds it tells all others, and every later call returns it. */
#ifndef FL_NET_MESH_H
#define FL_NET_MESH_H

#include "net/ranks.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_MESH_WORLD = 256, /* ranks at most: each needs two descriptors */
};

typedef struct fl_mesh fl_mesh; /* Thread: one at a time */

typedef struct fl_mesh_opts {
    const char *const *endpoints; /* "host:port" of each rank, in their order */
    int world;                    /* number of ranks */
    int rank;                     /* rank of this process */
    const void *key;              /* of the job; the same on all ranks */
    size_t key_size;              /* 0: peers need not prove who they are */
    fl_tls *tls;  /* borrowed, until the mesh ends; NULL: plain text */
    int listener; /* a socket that listens at the own endpoint, which the mesh
                   * takes; 0: the mesh makes one */
    bool held;    /* the launcher holds the own port for us (SO_REUSEPORT) */
    bool no_sharing;      /* data of ranks on one host go over TCP, too */
    int64_t join_timeout; /* ns until all ranks are connected; 0: 120 s */
    int64_t timeout;      /* limit of a wait without progress, ns; 0: 60 s */
    int64_t late_after;   /* ns of a wait until `late` is called; 0: 5 s */
    /* Both run on the caller's thread. poll returns true to end the wait (for
     * Ctrl-C); a wait calls it ten times a second. late gets a message
     * that names the rank that is waited for, after late_after and then at
     * growing intervals. */
    bool (*poll)(void *user);
    void (*late)(void *user, const char *sentence);
    void *user;
} fl_mesh_opts;

/* Connect to all ranks, in whatever order they start. Blocks: up to
 * join_timeout. Own: *out. Err: EINVAL (options; another world size or list
 * of endpoints at a peer; a rank twice), EIO (the own endpoint is taken;
 * a rank died), ETIMEOUT, EINTR. */
fl_err fl_mesh_join(const fl_mesh_opts *opts, fl_mesh **out) FL_MUST_CHECK;

/* Tells the other ranks first that this one leaves; they may go on without it.
 * NULL is fine. */
void fl_mesh_free(fl_mesh *m);

int fl_mesh_rank(const fl_mesh *m);
int fl_mesh_world(const fl_mesh *m);
int fl_mesh_local(const fl_mesh *m); /* ranks on this host */

/* This rank cannot go on: the mesh fails here and on all other ranks, with a
 * message that names this rank and contains `why`. */
void fl_mesh_fail(fl_mesh *m, const char *why);

/* See net/ranks.h. */
void fl_mesh_about(fl_mesh *m, const fl_mesh_subject *about);

/* Begin the next collective call. Its text ("all-reduce sum of 10 f32") is sent
 * to each peer before the data and must be the same on all ranks. Err: the
 * error of an earlier call. */
fl_err fl_mesh_begin(fl_mesh *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))) FL_MUST_CHECK;

/* Parts of a buffer, visited downwards: part, part - 1, .. 0, parts - 1, .. */
typedef struct fl_parts {
    char *base;
    const size_t *at; /* part i is base + at[i] .. base + at[i + 1] */
    int parts;        /* number of parts of the buffer */
    int part;         /* the first part to visit */
    int count;        /* parts to visit */
} fl_parts;

/* x[i] = x[i] op y[i], or y[i] op x[i] if y_first. */
typedef void fl_fold(void *x, const void *y, size_t n, bool y_first);

/* Sends bytes to one rank while it receives bytes from another. */
typedef struct fl_move {
    int to, from; /* ranks; -1: none */
    fl_parts out, in;
    bool forward;  /* send only `credit` bytes, plus as many as were received */
    size_t credit; /* with `forward`: bytes that may be sent at once */
    fl_fold *fold; /* combines the first `folds` received parts with the buffer;
                    * later parts replace what is in the buffer */
    int folds;
    size_t size; /* bytes of an element that is folded */
} fl_move;

/* Returns when everything is received and the system has taken all that is to
 * be sent. The bytes of a part are sent on while the rest of it is received.
 * Err: EPROTO (the peer is in another call), EIO, ETIMEOUT, EINTR. */
fl_err fl_mesh_move(fl_mesh *m, fl_move *move) FL_MUST_CHECK;

#endif
