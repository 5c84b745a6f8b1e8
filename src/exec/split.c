/* SPDX-License-Identifier: Apache-2.0 */
/* split.c - which ops of a program run on every place, and which run once.
 *
 * The role of an op decides: forward and backward run on every place, updates
 * run once, and so do calls to other ranks. Schedules run once, with the
 * updates, unless an op of every place needs what they compute; then every
 * place computes it. An op after an update that depends on what the update
 * changed runs once, too.
 *
 * Easy to get wrong: the part of every place runs as a whole before the part
 * that runs once, so no op may be moved past an op of the other part that uses
 * the same variable. */
#include "exec/split.h"

#include "exec/plan.h"
#include "graph/verify.h"

#include <string.h>

enum side {
    EACH,
    ONCE,
    RATE, /* a schedule: not yet decided */
    NONE, /* in neither part */
};

typedef struct touched { /* names that ops read and write */
    fl_map reads, writes;
} touched;

typedef struct cutter {
    fl_places_split *h;
    const fl_request *request;
    const fl_block *block;
    enum side *side; /* by op */
    touched *ops;    /* by op */
    fl_map crossing; /* names that are in h->crossing already */
} cutter;

static void add_op(touched *t, const fl_op *op)
{
    fl_op_add_reads(op, &t->reads);
    fl_op_add_writes(op, &t->writes);
}

static void touched_fini(touched *t)
{
    fl_map_fini(&t->reads);
    fl_map_fini(&t->writes);
}

static bool share_name(const fl_map *a, const fl_map *b)
{
    for (fl_entry *e = NULL; (e = fl_map_next(a, e));)
        if (fl_map_get(b, e->key))
            return true;
    return false;
}

/* Whether one of the two must run before the other. */
static bool depend(const touched *a, const touched *b)
{
    return share_name(&a->writes, &b->writes) ||
           share_name(&a->writes, &b->reads) ||
           share_name(&a->reads, &b->writes);
}

/* --- the side of each op --- */

static enum side side_of(const fl_op *op, bool own_seed)
{
    const int role = fl_op_role(op);
    if (fl_op_bypassed(op) ||
        (own_seed && role == (FL_ROLE_BACKWARD | FL_ROLE_LOSS)))
        return NONE;
    if (role & (FL_ROLE_OPTIMIZE | FL_ROLE_RPC | FL_ROLE_DIST) ||
        op->def->flags & FL_OP_RANKS)
        return ONCE;
    return role & FL_ROLE_LR ? RATE : EACH;
}

/* An op after an update that depends on it runs once, too. */
static void settle_late(cutter *c)
{
    touched late = {0};
    for (int64_t i = 0; i < c->block->ops.n; i++) {
        if (c->side[i] != NONE && depend(&c->ops[i], &late))
            c->side[i] = ONCE;
        if (c->side[i] == ONCE)
            add_op(&late, c->block->ops.at[i]);
    }
    touched_fini(&late);
}

/* A schedule that a later op of every place depends on runs on every place. */
static void settle_rates(cutter *c)
{
    touched early = {0};
    for (int64_t i = c->block->ops.n; i-- > 0;) {
        if (c->side[i] == RATE)
            c->side[i] = depend(&c->ops[i], &early) ? EACH : ONCE;
        if (c->side[i] == EACH)
            add_op(&early, c->block->ops.at[i]);
    }
    touched_fini(&early);
}

static void choose_sides(cutter *c, bool own_seed)
{
    for (int64_t i = 0; i < c->block->ops.n; i++) {
        c->side[i] = side_of(c->block->ops.at[i], own_seed);
        if (c->side[i] != NONE)
            add_op(&c->ops[i], c->block->ops.at[i]);
    }
    settle_late(c);
    settle_rates(c);
    for (int64_t i = 0; i < c->block->ops.n; i++) {
        c->h->each[i] = c->side[i] == EACH;
        c->h->once[i] = c->side[i] == ONCE;
    }
}

/* --- values that go from one part to the other --- */

static bool is_persistable(const fl_block *b, const char *name)
{
    const fl_var *v = fl_block_var(b, name);
    return v && v->persistable;
}

static int feed_of(const cutter *c, const char *name)
{
    for (int i = 0; i < c->request->n_feeds; i++)
        if (!strcmp(c->request->feeds[i].name, name))
            return i;
    return -1;
}

static void add_crossing(cutter *c, const char *name, bool sum)
{
    if (fl_map_get(&c->crossing, name))
        return;
    fl_push(&c->h->crossing, (fl_crossing){name, sum});
    fl_map_put(&c->crossing, name, c);
    if (sum)
        fl_map_put(&c->h->settled, name, c);
}

/* Only an update may read a value that differs between places. */
static fl_err refuse_read(int64_t at, const fl_op *op, const char *name)
{
    if (fl_op_role(op) & ~(FL_ROLE_BACKWARD | FL_ROLE_LOSS))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "op %lld \"%s\" comes after the update and reads \"%s\", "
                   "which differs on each place: run it in a program of its "
                   "own",
                   (long long)at, op->desc.type, name);
}

static void add_fed(cutter *c, int feed)
{
    for (int64_t i = 0; i < c->h->fed.n; i++)
        if (c->h->fed.at[i] == feed)
            return;
    fl_push(&c->h->fed, feed);
}

/* Op `at` runs once and reads a name that no op before it in the same part
 * writes. `writer` is the last op of every place that writes the name. */
static fl_err cross_name(cutter *c, int64_t at, const char *name,
                         const fl_op *writer)
{
    const bool sum = writer && fl_op_role(writer) & FL_ROLE_BACKWARD;
    const int feed = feed_of(c, name);
    if (!sum && (is_persistable(c->block, name) || (!writer && feed < 0)))
        return FL_OK; /* the scope has it, or the plan reports an error */
    if (!sum)
        FL_TRY(refuse_read(at, c->block->ops.at[at], name));
    if (writer)
        add_crossing(c, name, sum);
    else
        add_fed(c, feed);
    return FL_OK;
}

/* Gradients of parameters are summed even if no op of this program reads
 * them. */
static void add_gradients(cutter *c, const fl_op *op)
{
    const fl_attr *a = fl_desc_attr(&op->desc, "op_role_var");
    if (!(fl_op_role(op) & FL_ROLE_BACKWARD) || !a ||
        a->type != FL_ATTR_STRINGS)
        return;
    for (int i = 1; i < a->n; i += 2)
        if (fl_block_var(c->block, a->strings[i]))
            add_crossing(c, a->strings[i], true);
}

static void find_writers(cutter *c, fl_map *writers)
{
    for (int64_t i = 0; i < c->block->ops.n; i++) {
        fl_op *op = c->block->ops.at[i];
        if (c->side[i] != EACH)
            continue;
        for (fl_entry *e = NULL; (e = fl_map_next(&c->ops[i].writes, e));)
            fl_map_put(writers, e->key, op);
        add_gradients(c, op);
    }
}

static fl_err find_crossings(cutter *c, const fl_map *writers)
{
    for (int64_t i = 0; i < c->block->ops.n; i++) {
        if (c->side[i] != ONCE)
            continue;
        const touched *t = &c->ops[i];
        for (fl_entry *e = NULL; (e = fl_map_next(&t->reads, e));)
            if (!fl_map_get(&c->h->settled, e->key))
                FL_TRY(cross_name(c, i, e->key, fl_map_get(writers, e->key)));
        for (fl_entry *e = NULL; (e = fl_map_next(&t->writes, e));)
            fl_map_put(&c->h->settled, e->key, c);
    }
    return FL_OK;
}

/* Persistable variables that a place writes: each place gets its own copy. */
static void find_state(cutter *c, const fl_map *writers)
{
    for (fl_entry *e = NULL; (e = fl_map_next(writers, e));)
        if (is_persistable(c->block, e->key))
            fl_push(&c->h->state, e->key);
    for (int i = 0; i < c->request->n_feeds; i++) {
        const fl_var *v = fl_block_var(c->block, c->request->feeds[i].name);
        if (v && v->persistable && !fl_map_get(writers, v->name))
            fl_push(&c->h->state, v->name);
    }
}

static fl_err split_block(cutter *c, bool own_seed)
{
    fl_map writers = {0};
    choose_sides(c, own_seed);
    find_writers(c, &writers);
    const fl_err err = find_crossings(c, &writers);
    find_state(c, &writers);
    fl_map_fini(&writers);
    return err;
}

fl_err fl_places_split_init(fl_places_split *h, const fl_request *o,
                            bool own_seed)
{
    *h = (fl_places_split){0};
    FL_TRY(fl_verify_blocks(o->program));
    cutter c = {h, o, o->program->blocks.at[0]};
    const size_t n = (size_t)c.block->ops.n;
    h->each = fl_mem_alloc((n + 1) * sizeof *h->each);
    h->once = fl_mem_alloc((n + 1) * sizeof *h->once);
    c.side = fl_mem_alloc((n + 1) * sizeof *c.side);
    c.ops = fl_mem_alloc((n + 1) * sizeof *c.ops);
    const fl_err err = split_block(&c, own_seed);
    for (size_t i = 0; i < n; i++)
        touched_fini(&c.ops[i]);
    fl_mem_free(c.ops);
    fl_mem_free(c.side);
    fl_map_fini(&c.crossing);
    return err;
}

void fl_places_split_fini(fl_places_split *h)
{
    fl_mem_free(h->each);
    fl_mem_free(h->once);
    fl_vec_fini(&h->crossing);
    fl_vec_fini(&h->state);
    fl_vec_fini(&h->fed);
    fl_map_fini(&h->settled);
}

bool fl_places_split_common(const fl_places_split *h, const fl_program *p,
                            const char *name)
{
    if (fl_map_get(&h->settled, name))
        return true;
    if (!is_persistable(p->blocks.at[0], name))
        return false;
    for (int64_t i = 0; i < h->state.n; i++)
        if (!strcmp(h->state.at[i], name))
            return false;
    return true;
}
