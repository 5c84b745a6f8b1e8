/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - servers that start without a program, and trainers that send it. */
#include "api/engine.h"
#include "pserver/daemon.h"
#include "trainer/fetch.h"
#include "trainer/setup.h"
#include "transpile/transpile.h"

static fl_watch watch_of(const fl_wait_opts *opts)
{
    fl_watch watch = {.clock = fl_clock_real()};
    if (opts) {
        watch.poll = opts->poll;
        watch.user = opts->user;
    }
    return watch;
}

fl_err fl_serve(fl_engine *e, const fl_serve_opts *opts)
{
    const fl_exec_env env = fl_engine_env(e);
    return fl_daemon_run(&env, opts);
}

fl_err fl_cut_set_up(const fl_cut *c, fl_scope *scope, const fl_wait_opts *opts)
{
    const fl_watch watch = watch_of(opts);
    const bool first = c->trainer_id == 0;
    return fl_setup_run(
        &(fl_setup){.place = fl_placement_of(c->trainer->job),
                    .programs = first ? c->server : NULL,
                    .startups = first ? c->server_startup : NULL,
                    .main = c->main,
                    .scope = scope},
        &watch);
}

fl_err fl_params_fetch(fl_engine *e, const fl_program *p, fl_scope *scope,
                       const fl_wait_opts *opts)
{
    const fl_watch watch = watch_of(opts);
    const fl_placement *place = fl_placement_of(p->job);
    fl_trainer *t;
    if (!place || place->server >= 0)
        return fl_fail(FL_EINVAL,
                       "fetch: the program is not that of a trainer in a job");
    FL_TRY(fl_service_trainer(e->service, place, &t));
    return fl_fetch_params(t, &watch, p, scope);
}
