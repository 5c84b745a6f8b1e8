/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - finds out whether a parameter server listens at an address.
 *
 * This is gRPC's health check over a connected socket, without the gRPC
 * library, so that a wait for servers does not need it. The check asks for the
 * service "fluid.Server", which other gRPC servers do not have. */
#ifndef FL_NET_PROBE_H
#define FL_NET_PROBE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    FL_PROBE_BYTES = 512 /* bytes of a request at most */
};

/* Write the request to send. Returns its length. */
size_t fl_probe_request(unsigned char out[FL_PROBE_BYTES]);

typedef enum fl_probe_answer {
    FL_PROBE_MORE,    /* the answer is not complete */
    FL_PROBE_SERVES,  /* it is a parameter server */
    FL_PROBE_STARTS,  /* it is a parameter server that does not serve yet */
    FL_PROBE_FOREIGN, /* it is something else */
} fl_probe_answer;

/* The state of reading an answer. All zero at first. */
typedef struct fl_probe {
    unsigned char frame[16]; /* head and first bytes of the current frame */
    size_t n;                /* bytes of `frame` that have arrived */
    size_t skip;             /* bytes of the frame still to be skipped */
    bool greeted;            /* a first HTTP/2 frame has arrived */
} fl_probe;

/* Read the next bytes of the answer. */
fl_probe_answer fl_probe_hear(fl_probe *p, const void *bytes, size_t n);

#endif
