/* SPDX-License-Identifier: Apache-2.0 */
/* key.h - the secret by which the processes of a job know each other.
 *
 *     FLUID_JOB_KEY_FD     a descriptor that the launcher left open; it is read
 *                          to its end, once
 *     FLUID_JOB_KEY_FILE   a file that nobody else can read (mode 0600)
 *
 * White space at the end is ignored. The key proves who a peer is; it does not
 * encrypt what peers send. */
#ifndef FL_CLUSTER_KEY_H
#define FL_CLUSTER_KEY_H

#include "base/err.h"

enum {
    FL_JOB_KEY_LEAST = 16, /* bytes; a shorter key could be guessed */
    FL_JOB_KEY = 4096,     /* bytes at most */
};

typedef struct fl_job_key {
    char bytes[FL_JOB_KEY];
    size_t size; /* 0: there is none */
} fl_job_key;

/* Read the key that the environment names; size 0 if it names none. Err: EINVAL
 * (the content cannot be a key), EIO (it cannot be read). */
fl_err fl_job_key_read(fl_job_key *out) FL_MUST_CHECK;

#endif
