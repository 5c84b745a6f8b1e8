/* plan.h - a program compiled for one scope and one set of feeds and fetches.
 *
 * Compiling resolves every name to a value and every op to a frame; a run then
 * walks the frames. Shapes are inferred again only when something that comes
 * from outside has another shape (or LoD) than in the run before. Temporaries
 * belong to the plan and keep their memory between runs. */
#ifndef FL_EXEC_PLAN_H
#define FL_EXEC_PLAN_H

#include "base/disk.h"
#include "base/random.h"
#include "exec/scope.h"
#include "exec/watch.h"
#include "graph/program.h"
#include "op/frame.h"

/* What plans are made with. */
typedef struct fl_exec_env {
    const fl_registry *registry;
    const fl_disk *disk;
    fl_entropy *entropy;
    void *service;         /* for send, recv and c_* operators; NULL: none */
    bool no_fuse, lenient; /* as in fl_exe_opts */
    fl_watch *watch;       /* NULL: nobody looks */
} fl_exec_env;

typedef struct fl_plan fl_plan; /* Thread: one at a time */

/* Own: *out is new. The program and the scope outlive it. */
fl_err fl_plan_new(const fl_exec_env *env, const fl_program *p, fl_scope *s,
                   int n_feeds, const fl_feed *feeds, int n_fetches,
                   const fl_fetch *fetches, fl_plan **out) FL_MUST_CHECK;
void fl_plan_free(fl_plan *plan);

/* Still right for this program, scope, and these names in this order? */
bool fl_plan_fits(const fl_plan *plan, const fl_program *p, fl_scope *s,
                  int n_feeds, const fl_feed *feeds, int n_fetches,
                  const fl_fetch *fetches);
bool fl_plan_stale(const fl_plan *plan, const fl_program *p); /* p changed */

fl_err fl_plan_run(fl_plan *plan, const fl_feed *feeds,
                   fl_fetch *fetches) FL_MUST_CHECK;

/* What runs an operator: for those that are a program's heart. */
typedef struct fl_site {
    const fl_exec_env *env;
    const fl_program *program;
    fl_scope *scope;
} fl_site;

fl_site fl_call_site(const fl_call *c);

/* What runs, one op a line: for tests of fusion and for curious people. The
 * caller ends it with fl_mem_free. */
char *fl_plan_text(const fl_plan *plan);

#endif
