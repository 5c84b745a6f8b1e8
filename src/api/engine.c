/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - an engine: its operators, its disk, its jobs. */
#include "api/engine.h"

#include "api/registry.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/str.h"
#include "exec/exe.h"
#include "pserver/pserver.h"
#include "pserver/shard.h"
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef FL_VERSION
#define FL_VERSION "0.0.0"
#endif

const char *fl_version(void)
{
    return FL_VERSION;
}

void fl_free(void *p)
{
    fl_mem_free(p);
}

const char *fl_nearest(const char *name, const char *const *names)
{
    fl_near near = {.name = name};
    for (; *names; names++)
        fl_near_offer(&near, *names);
    return near.best;
}

fl_engine *fl_engine_new(void)
{
    fl_engine *e = fl_mem_alloc(sizeof *e);
    if (fl_registry_all(&e->registry)) {
        fprintf(stderr, "fluid: a table of operators is wrong: %s\n",
                fl_errmsg()); /* a bug in a table: every test runs this line */
        abort();
    }
    e->disk = fl_disk_real();
    e->entropy = fl_entropy_real();
    e->service = fl_service_new();
    e->worlds = fl_worlds_new();
    fl_engine_list(e);
    return e;
}

void fl_engine_free(fl_engine *e)
{
    if (!e)
        return;
    fl_worlds_free(e->worlds);
    fl_service_free(e->service);
    fl_arena_free(e->arena);
    fl_registry_free(e->registry);
    fl_mem_free(e);
}

fl_exec_env fl_engine_env(fl_engine *e)
{
    bool no_fuse = false, trust = false;
    if (fl_flag_bool("FLUID_NO_FUSE", &no_fuse) ||
        fl_flag_bool("FLUID_TRUST_PROGRAMS", &trust))
        FL_WARN("%s", fl_errmsg());
    return (fl_exec_env){
        .registry = e->registry,
        .disk = e->disk,
        .entropy = &e->entropy,
        .service = e->service,
        .worlds = e->worlds,
        .no_fuse = no_fuse,
        .trust = trust,
        .kept = fl_shard_kept,
    };
}

fl_exe *fl_exe_new(fl_engine *e, const fl_exe_opts *opts)
{
    fl_watch watch = {.clock = fl_clock_real()};
    fl_exec_env env = fl_engine_env(e);
    env.watch = &watch;
    if (opts) {
        watch.poll = opts->poll;
        watch.user = opts->user;
        env.no_fuse |= opts->no_fuse;
        env.lenient = opts->lenient;
    }
    return fl_exe_make(&env);
}

fl_err fl_train(fl_engine *e, const fl_train_opts *opts, fl_progress *out)
{
    const fl_exec_env env = fl_engine_env(e);
    return fl_train_run(&env, opts, out);
}

fl_err fl_communicator_start(fl_engine *e, const fl_program *p)
{
    return fl_service_start_communicator(e->service, p);
}

fl_err fl_communicator_stop(fl_engine *e, const fl_program *p,
                            const fl_wait_opts *opts)
{
    fl_watch watch = {.clock = fl_clock_real()};
    if (opts) {
        watch.poll = opts->poll;
        watch.user = opts->user;
    }
    return p->job ? fl_service_stop_communicator(
                        e->service, fl_placement_of(p->job), &watch)
                  : FL_OK;
}

bool fl_communicator_running(fl_engine *e, const fl_program *p)
{
    return fl_service_communicator(e->service, fl_placement_of(p->job)) != NULL;
}

fl_err fl_engine_leave(fl_engine *e, int code, const char *why,
                       const fl_wait_opts *opts)
{
    fl_worlds_leave(e->worlds, code, why);
    return fl_service_leave(e->service, code, why, opts);
}
