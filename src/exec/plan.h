/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a program compiled for one scope and one set of feeds and fetches.
 *
 * Compiling resolves every name to a value and every op to a frame; a run then
 * walks the frames. Shapes are inferred again only when a feed or a value of
 * the scope has another shape or LoD than in the run before. Temporaries belong
 * to the plan and keep their memory between runs. */
#ifndef FL_EXEC_PLAN_H
#define FL_EXEC_PLAN_H

#include "base/disk.h"
#include "base/random.h"
#include "exec/scope.h"
#include "exec/watch.h"
#include "graph/program.h"
#include "op/frame.h"

/* What the caller of a run asks for. */
typedef struct fl_request {
    const fl_program *program;
    fl_scope *scope;
    int n_feeds, n_fetches;
    const fl_feed *feeds;
    const fl_fetch *fetches;
} fl_request;

/* Identifies a plan, so that a later request finds it again. */
typedef struct fl_key {
    uint64_t program_uid, program_version, scope_uid, scope_changes;
    int n_feeds, n_fetches;
    const char **feeds, **fetches;
} fl_key;

/* The key of a request. Own: names are copied into the arena. */
fl_key fl_key_of(const fl_request *o, fl_arena *a);

/* Whether the key is that of the request: same program and version, same
 * scope, same names in the same order. */
bool fl_key_fits(const fl_key *k, const fl_request *o);
/* Whether the program of the key is p, and p has changed since. */
bool fl_key_stale(const fl_key *k, const fl_program *p);

/* What an engine gives to its plans. Own: all that it points to outlives the
 * plans. */
typedef struct fl_exec_env {
    const fl_registry *registry;
    const fl_disk *disk;
    fl_entropy *entropy;
    void *service;            /* used by send, recv and lookups; NULL: none */
    struct fl_worlds *worlds; /* used by c_* operators; NULL: none */
    bool no_fuse, lenient;    /* as in fl_exe_opts */
    bool trust; /* decoded programs may run FL_OP_LOCAL operators */
    /* Whether an earlier process has kept the variables that the program gives
     * start values: large ones are then left absent. NULL: it never has. */
    bool (*kept)(const fl_program *p);
    fl_watch *watch; /* watches the runs; NULL: they are not watched */
} fl_exec_env;

typedef struct fl_plan fl_plan; /* Thread: one thread at a time */

/* A part of a program: some of the ops of its global block. Another plan runs
 * the others, and the caller carries values from one plan to the other. */
typedef struct fl_plan_part {
    const bool *runs; /* for each op, whether this part runs it */
    int n_lent, n_kept;
    const char *const *lent; /* written by the caller before the run */
    const char *const *kept; /* read by the caller after the run */
    float seed_scale;        /* factor for the start value of the loss
                                gradient; 0: none */
} fl_plan_part;

/* Ops of type feed and fetch are carried out by the plan itself. */
bool fl_op_bypassed(const fl_op *op);

/* Compile a part of a program (NULL: the whole program). Own: *out is new; the
 * program, the scope and the part outlive it. */
fl_err fl_plan_new(const fl_exec_env *env, const fl_request *o,
                   const fl_plan_part *part, fl_plan **out) FL_MUST_CHECK;
void fl_plan_free(fl_plan *plan);

const fl_key *fl_plan_key(const fl_plan *plan);

/* Whether the same variables of the scope are absent as when the plan was
 * compiled, and no start value was left out because it is kept. A plan that is
 * not current must not run. */
bool fl_plan_is_current(const fl_plan *plan);

/* The value of a variable of the global block; NULL: it is not declared. Own:
 * borrowed from the plan. After a run the value is valid if the variable is
 * persistable, fetched or kept; other variables share memory. */
fl_value *fl_plan_value(fl_plan *plan, const char *name);

/* Run the plan once. Feeds and fetches have the names and the order of the
 * request that the plan was compiled for. */
fl_err fl_plan_run(fl_plan *plan, const fl_feed *feeds,
                   fl_fetch *fetches) FL_MUST_CHECK;

/* Tell the plan what the run after the next one will be fed, so that operators
 * can begin what takes long (fl_op_def.ahead). The feeds are read before this
 * returns. The run may be fed something else; it then costs more. */
bool fl_plan_looks_ahead(const fl_plan *plan); /* an operator does that */
void fl_plan_look_ahead(fl_plan *plan, const fl_feed *feeds);

/* Where an operator runs. Operators that run programs or talk to other
 * processes need it. */
typedef struct fl_site {
    const fl_exec_env *env;
    const fl_program *program;
    fl_scope *scope;
} fl_site;

fl_site fl_call_site(const fl_call *c);

/* How many bytes of memory the plan holds for temporaries and kernels. */
size_t fl_plan_bytes(const fl_plan *plan);

/* The ops that the plan runs, one per line, for tests of fusion. Own: the
 * caller frees the text with fl_mem_free. */
char *fl_plan_text(const fl_plan *plan);

#endif
