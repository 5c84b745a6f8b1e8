/* moving.c - which steps of a plan prepare at every run, and which may view.
 *
 * A settled run infers nothing: each step finds its outputs as it left them.
 * That holds for a value that one step writes. It does not hold for one that
 * a sub-block or an operator with shapes of its own writes (and for what is
 * computed from it), nor for one that two steps write, or a step and a feed or
 * the plan of another half: what one of them left, memory and shape, is not
 * what the other needs.
 *
 * For the same reason a view must not share the memory of such a value, or of
 * one that comes into the run from outside and is then written. */
#include "exec/plan_parts.h"

#include <stdlib.h>

typedef FL_VEC(fl_value *) values;

typedef struct marks {
    values moved;   /* may change their shape while nothing outside does */
    values crowded; /* have two writers, or a feed and a writer; sorted */
    values changed; /* persistable or fed, and have a writer; sorted */
} marks;

static int by_address(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

static void sort(values *v)
{
    if (v->n)
        qsort(v->at, (size_t)v->n, sizeof *v->at, by_address);
}

static bool has(const values *sorted, const fl_value *v)
{
    return sorted->n && bsearch(&v, sorted->at, (size_t)sorted->n,
                                sizeof *sorted->at, by_address);
}

/* --- what a step touches --- */

static bool any_of(const values *set, fl_value **const *args, const int *n)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < n[s]; i++)
            if (args[s][i] && has(set, args[s][i]))
                return true;
    return false;
}

static bool touches(const fl_call *c, const values *set)
{
    return any_of(set, c->in, c->n_in) || any_of(set, c->out, c->n_out);
}

static void add_outputs(values *set, const fl_call *c)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_out[s]; i++)
            if (c->out[s][i])
                fl_push(set, c->out[s][i]);
}

/* --- the three sets --- */

static void add_ports(values *set, const fl_port *ports, int n)
{
    for (int i = 0; i < n; i++)
        fl_push(set, ports[i].value);
}

/* A step may name its value in several slots, and writes it but once: frames
 * refuse two outputs in one variable. */
static void find_crowds(const fl_plan *plan, marks *m)
{
    values writes = {0}, outside = {0}, given = {0};
    add_ports(&given, plan->feeds, plan->n_feeds);
    add_ports(&given, plan->lent, plan->n_lent);
    for (int b = 0; b < plan->n_units; b++)
        for (int64_t i = 0; i < plan->units[b].steps.n; i++)
            add_outputs(&writes, &plan->units[b].steps.at[i].frame.call);
    for (int64_t i = 0; i < plan->outsides.n; i++)
        fl_push(&outside, plan->outsides.at[i].value);
    for (int64_t i = 0; i < given.n; i++)
        fl_push(&outside, given.at[i]);
    sort(&writes);
    sort(&outside);
    for (int64_t i = 0; i < writes.n; i++) {
        bool again = i && writes.at[i - 1] == writes.at[i];
        if (again)
            fl_push(&m->crowded, writes.at[i]);
        else if (has(&outside, writes.at[i]))
            fl_push(&m->changed, writes.at[i]);
    }
    for (int64_t i = 0; i < given.n; i++)
        if (has(&writes, given.at[i]))
            fl_push(&m->crowded, given.at[i]);
    sort(&m->crowded);
    fl_vec_fini(&writes);
    fl_vec_fini(&outside);
    fl_vec_fini(&given);
}

/* The outputs whose shape is new in a step that moves: what is updated in
 * place keeps its own, or the frame refuses it. */
static void add_moved(values *set, const fl_call *c)
{
    values in = {0};
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_in[s]; i++)
            fl_push(&in, c->in[s][i]);
    sort(&in);
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_out[s]; i++) {
            fl_value *v = c->out[s][i];
            if (v && (c->def->flags & FL_OP_DYNAMIC || !has(&in, v)))
                fl_push(set, v);
        }
    fl_vec_fini(&in);
}

/* Steps whose shapes depend on what moves; each pass may find more. */
static void spread(fl_unit *u, marks *m)
{
    int64_t before;
    do {
        sort(&m->moved);
        before = m->moved.n;
        for (int64_t i = 0; i < u->steps.n; i++) {
            fl_step *s = &u->steps.at[i];
            const fl_call *c = &s->frame.call;
            if (s->moving ||
                !(fl_frame_moves(&s->frame) || touches(c, &m->moved)))
                continue;
            s->moving = true;
            add_moved(&m->moved, c);
        }
    } while (m->moved.n > before);
}

static bool makes_view(const fl_op_def *def)
{
    for (int s = 0; s < FL_SLOTS && def->out[s].name; s++)
        if (def->out[s].flags & FL_VIEW)
            return true;
    return false;
}

void fl_plan_mark(fl_plan *plan)
{
    marks m = {0};
    fl_unit *u = &plan->units[0]; /* sub-blocks always prepare */
    for (int b = 1; b < plan->n_units; b++)
        for (int64_t i = 0; i < plan->units[b].steps.n; i++)
            add_outputs(&m.moved, &plan->units[b].steps.at[i].frame.call);
    spread(u, &m);
    find_crowds(plan, &m);
    for (int b = 0; b < plan->n_units; b++)
        for (int64_t i = 0; i < plan->units[b].steps.n; i++) {
            fl_step *s = &plan->units[b].steps.at[i];
            fl_call *c = &s->frame.call;
            bool crowd = touches(c, &m.crowded);
            s->moving |= crowd;
            c->no_views |=
                makes_view(c->def) && (crowd || touches(c, &m.changed));
        }
    fl_vec_fini(&m.moved);
    fl_vec_fini(&m.crowded);
    fl_vec_fini(&m.changed);
}
