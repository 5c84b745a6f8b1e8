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
#include "exec/key.h"
#include "exec/watch.h"
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

/* Some of the ops of a program's global block, where another plan has the
 * others: what goes from one to the other, whoever runs them carries. */
typedef struct fl_half {
    const bool *runs; /* by op */
    int n_lent, n_kept;
    const char *const *lent; /* written before the run, from outside */
    const char *const *kept; /* read after it, from outside */
    float seed_scale;        /* of a loss's gradient; 0: as it is */
} fl_half;

/* A half of a program (NULL: all of it). Own: *out is new. The program, the
 * scope and the half outlive it. */
fl_err fl_plan_new(const fl_exec_env *env, const fl_order *o,
                   const fl_half *half, fl_plan **out) FL_MUST_CHECK;
void fl_plan_free(fl_plan *plan);

const fl_key *fl_plan_key(const fl_plan *plan);

/* Is all that was on servers when it was made there now, and nothing else?
 * One that does not stand cannot run. */
bool fl_plan_stands(const fl_plan *plan);

/* What a name of the global block stands for; NULL: it is not declared. */
fl_value *fl_plan_value(fl_plan *plan, const char *name);

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
