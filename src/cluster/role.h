/* SPDX-License-Identifier: Apache-2.0 */
/* role.h - what this process is in a job.
 *
 * Over the years Fluid's launchers and scripts have said it in seven dialects
 * of environment variables. All of them are read here, and nowhere else. */
#ifndef FL_CLUSTER_ROLE_H
#define FL_CLUSTER_ROLE_H

#include "base/err.h"

/* Where variables come from. */
typedef struct fl_env {
    const char *(*get)(void *user, const char *name); /* NULL: it is not set */
    const char *(*at)(void *user, int i); /* "NAME=value" number i; NULL: there
                                             are no more */
    void *user;
} fl_env;

/* fl_role_init with an environment of one's own. r is zero on failure. */
fl_err fl_role_resolve(fl_role *r, const fl_role_args *args,
                       const fl_env *env) FL_MUST_CHECK;

#endif
