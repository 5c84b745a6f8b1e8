/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - networks as users of fluid.h see them. */
#include "api/engine.h"

#include "build/net.h"
#include "build/optimizer.h"

fl_net *fl_net_new(fl_engine *e)
{
    return fl_net_make(e->registry);
}

fl_program *fl_net_main(fl_net *n)
{
    return n->main;
}

fl_program *fl_net_startup(fl_net *n)
{
    return n->startup;
}

void fl_net_seed(fl_net *n, int64_t seed)
{
    n->main->random_seed = seed;
    n->startup->random_seed = seed;
}

const char *fl_var_name(const fl_var *v)
{
    return v->name;
}

fl_dtype fl_var_dtype(const fl_var *v)
{
    return v->dtype;
}

const fl_shape *fl_var_shape(const fl_var *v)
{
    return &v->shape;
}

static fl_err minimize(fl_net *n, fl_var *loss, const char *optimizer,
                       const fl_arg *args)
{
    fl_optimizer *o;
    FL_TRY(fl_optimizer_new(n, optimizer, args, &o));
    fl_err err = fl_optimizer_minimize(o, loss, NULL, NULL, NULL);
    fl_optimizer_free(o);
    return err;
}

fl_err fl_minimize(fl_net *n, fl_var *loss, const char *optimizer,
                   const fl_arg *args)
{
    if (n->err)
        return fl_net_error(n);
    return fl_net_fail(n, minimize(n, loss, optimizer, args));
}
