/* SPDX-License-Identifier: Apache-2.0 */
/* role.h - what this process is in a job.
 *
 * Fluid's launchers and scripts have used seven dialects of environment
 * variables for this. All of them are read here, and nowhere else. */
#ifndef FL_CLUSTER_ROLE_H
#define FL_CLUSTER_ROLE_H

#include "base/err.h"

/* Access to environment variables; a test provides its own. */
typedef struct fl_env {
    const char *(*get)(void *user, const char *name); /* NULL: it is not set */
    const char *(*at)(void *user, int i); /* "NAME=value" number i; NULL: there
                                             are no more */
    void *user;
} fl_env;

/* fl_role_init with another environment. After an error *r is zero. */
fl_err fl_role_resolve(fl_role *r, const fl_role_args *args,
                       const fl_env *env) FL_MUST_CHECK;

/* What mpirun or srun says of this process, see role.c. Err: EINVAL (neither
 * has started it). */
fl_err fl_role_mpi(int *rank, int *ranks) FL_MUST_CHECK;

#endif
