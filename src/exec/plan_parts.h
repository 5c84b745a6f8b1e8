/* plan_parts.h - what a plan is made of: plan.c makes it, moving.c
 * marks its steps, run.c runs it. */
#ifndef FL_EXEC_PLAN_PARTS_H
#define FL_EXEC_PLAN_PARTS_H

#include "exec/plan.h"

typedef struct fl_step {
    fl_frame frame;
    int index;   /* of the op in its block, for sentences */
    bool moving; /* prepares at every run, though nothing outside moved */
} fl_step;

/* One block of the program. */
typedef struct fl_unit {
    fl_plan *plan;
    const fl_block *block;
    struct fl_unit *parent;
    fl_map locals; /* name -> fl_value */
    FL_VEC(fl_step) steps;
    bool compiled;
} fl_unit;

/* A value that comes into the run from outside, as it was the last time. */
typedef struct fl_outside {
    fl_value *value;
    fl_kind kind;
    fl_dtype dtype;
    fl_shape shape;
    int lod_levels;
    bool in_scope; /* where it may be away; and was it, */
    bool away;     /* when the plan was made? That decides what runs. */
} fl_outside;

typedef struct fl_port { /* a feed or a fetch */
    const char *name;
    fl_value *value;
    const fl_var *var;
    fl_lod spare; /* of a feed: memory for the next LoD */
} fl_port;

struct fl_plan {
    fl_exec_env env;
    fl_hooks hooks;
    const fl_program *program;
    fl_scope *scope;
    const fl_half *half; /* NULL: all of the program */
    fl_arena *arena;
    fl_key key;
    fl_unit *units; /* by block */
    int n_units;
    fl_port *feeds, *fetches, *lent;
    int n_feeds, n_fetches, n_lent;
    fl_map known; /* persistable name -> fl_value */
    FL_VEC(fl_outside) outsides;
    bool settled; /* the last run prepared everything and went well */
};

/* Feed and fetch ops stand for what a plan does itself. */
bool fl_op_bypassed(const fl_op *op);

/* Once all units are compiled. */
void fl_plan_mark(fl_plan *plan);

/* Run a unit's steps; unless settled, shapes are inferred anew. */
fl_err fl_unit_run(fl_unit *u, bool settled) FL_MUST_CHECK;

/* Say where: "(op 12 "mul" in block 0)". */
fl_err fl_unit_at(fl_err err, const fl_unit *u, const fl_desc *d, int index);

#endif
