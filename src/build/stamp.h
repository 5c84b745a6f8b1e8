/* SPDX-License-Identifier: Apache-2.0 */
/* stamp.h - sets the attributes that a net gives to new ops for a limited time.
 */
#ifndef FL_BUILD_STAMP_H
#define FL_BUILD_STAMP_H

#include "build/net.h"

typedef struct fl_stamp {
    int role, block;
    const char *role_var[2], *scope;
} fl_stamp;

static inline fl_stamp fl_stamp_get(const fl_net *n)
{
    return (fl_stamp){
        n->role, n->block, {n->role_var[0], n->role_var[1]}, n->scope};
}

/* Returns the previous value. A second call with it restores that. */
static inline fl_stamp fl_stamp_set(fl_net *n, fl_stamp s)
{
    const fl_stamp old = fl_stamp_get(n);
    n->role = s.role;
    n->block = s.block;
    n->role_var[0] = s.role_var[0];
    n->role_var[1] = s.role_var[1];
    n->scope = s.scope;
    return old;
}

/* New ops go to the global block and belong to a parameter and its gradient. */
static inline fl_stamp fl_stamp_optimize(fl_net *n, const fl_param_grad *pg,
                                         const char *scope)
{
    return fl_stamp_set(
        n, (fl_stamp){
               FL_ROLE_OPTIMIZE, 0, {pg->param->name, pg->grad->name}, scope});
}

#endif
