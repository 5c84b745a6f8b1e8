/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - is it a parameter server that listens there?
 *
 * gRPC's health check, spoken by hand over a socket that is connected already:
 * who waits for servers needs no gRPC for it. The check asks for the service
 * "fluid.Server"; a gRPC server of something else does not know it. */
#ifndef FL_NET_PROBE_H
#define FL_NET_PROBE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    FL_PROBE_BYTES = 512 /* of a request, at most */
};

/* What to send; its length. */
size_t fl_probe_request(unsigned char out[FL_PROBE_BYTES]);

typedef enum fl_probe_answer {
    FL_PROBE_MORE,    /* the answer is not complete */
    FL_PROBE_SERVES,  /* it is a parameter server */
    FL_PROBE_STARTS,  /* it is one that does not serve yet */
    FL_PROBE_FOREIGN, /* it is something else */
} fl_probe_answer;

/* An answer that is being read. All zero at first. */
typedef struct fl_probe {
    unsigned char frame[16]; /* the head of a frame and what matters of it */
    size_t n;                /* bytes of it that have come */
    size_t skip;             /* bytes of its rest that are to come */
    bool greeted;            /* the first frame was one of HTTP/2 */
} fl_probe;

/* The next bytes that came. */
fl_probe_answer fl_probe_hear(fl_probe *p, const void *bytes, size_t n);

#endif
