/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - makes the startup program of a server.
 *
 * It has the ops of the startup program that write variables of the server, in
 * the same order. A part of a variable gets the numbers that it has in the
 * whole variable: random ops skip the numbers before it (`offset`), constants
 * only need another shape, lists of values are cut. If any other op initialises
 * a variable, it initialises the whole variable, and the part is sliced from
 * it. */
#include "graph/copy.h"
#include "transpile/transpile.h"

typedef struct start {
    const fl_server_cut *s;
    const fl_block *from;
    fl_block *to;
    fl_map needed; /* names of variables of the startup program */
} start;

/* --- which ops --- */

static void need_inputs(start *t, const fl_desc *d)
{
    for (int i = 0; i < d->n_in; i++)
        for (int j = 0; j < d->in[i].n; j++)
            fl_map_put(&t->needed, d->in[i].name[j], t);
}

static bool is_needed(const start *t, const fl_desc *d)
{
    for (int i = 0; i < d->n_out; i++)
        for (int j = 0; j < d->out[i].n; j++)
            if (fl_map_get(&t->needed, d->out[i].name[j]))
                return true;
    return false;
}

/* Find the ops that write variables of the server, and the ops that those
 * depend on. */
static void find_ops(start *t, fl_ops *ops)
{
    for (int64_t i = 0; i < t->s->held.n; i++)
        fl_map_put(&t->needed, t->s->held.at[i].origin, t);
    for (int64_t i = t->from->ops.n; i-- > 0;) {
        fl_op *op = t->from->ops.at[i];
        if (!is_needed(t, &op->desc))
            continue;
        need_inputs(t, &op->desc);
        fl_insert(ops, 0, op);
    }
}

/* --- parts --- */

static const fl_attr *values_of(const fl_desc *d)
{
    static const char *const lists[] = {"fp32_values", "int32_values",
                                        "int64_values"};
    for (int i = 0; i < 3; i++) {
        const fl_attr *a = fl_desc_attr(d, lists[i]);
        if (a && a->n)
            return a;
    }
    return NULL;
}

static bool is_random(const char *type)
{
    return !strcmp(type, "uniform_random") ||
           !strcmp(type, "gaussian_random") ||
           !strcmp(type, "truncated_gaussian_random");
}

/* Whether the op can be changed so that it makes only a part of its output. */
static bool makes_parts(const fl_desc *d)
{
    return !strcmp(d->type, "fill_constant") || is_random(d->type) ||
           (!strcmp(d->type, "assign_value") && values_of(d));
}

const fl_op *fl_cut_only_start(const fl_cut *c, const char *name)
{
    const fl_block *b = fl_program_block(c->startup, 0);
    const fl_op *found = NULL;
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_op *op = b->ops.at[i];
        if (!fl_desc_writes(&op->desc, name) && !fl_desc_reads(&op->desc, name))
            continue;
        if (found)
            return NULL;
        found = op;
    }
    return found;
}

static bool is_direct(const start *t, const fl_held *h)
{
    const fl_op *op = fl_cut_only_start(t->s->c, h->origin);
    return (!h->cut && !strcmp(h->name, h->origin)) ||
           (op && !op->desc.n_in && makes_parts(&op->desc));
}

/* Whether an op initialises the variable. Any other variable gets its value
 * with the job (fl_cut_set_up). */
static bool is_started(const start *t, const fl_held *h)
{
    return fl_cut_last_writer(t->from, h->origin) >= 0;
}

static void cut_values(fl_desc *d, const fl_held *h)
{
    fl_attr a = *values_of(d);
    if (a.type == FL_ATTR_FLOATS)
        a.floats += h->offset;
    else
        a.longs += h->offset;
    a.n = (int)fl_shape_numel(&h->shape);
    a = fl_attr_dup(d->arena, &a);
    fl_desc_set_attr(d, &a);
}

/* Copy the op, and let it write the part. */
static fl_err add_part(start *t, const fl_op *op, const fl_held *h)
{
    fl_op *copy = fl_copy_op(t->to, op);
    fl_desc *d = &copy->desc;
    fl_shape made = h->shape;
    fl_attr shape = {"shape", FL_ATTR_LONGS, .n = made.rank, .longs = made.dim};
    if (h->by_id && strcmp(d->type, "assign_value"))
        made.dim[0] = 1;
    fl_op_rename_out(copy, h->origin, h->name);
    if (makes_parts(d))
        FL_TRY(fl_op_set_attr(copy, &shape));
    if (h->cut && is_random(d->type))
        FL_TRY(fl_op_set_attr(
            copy, &(fl_attr){"offset", FL_ATTR_LONG, .i = h->offset}));
    if (h->cut && !strcmp(d->type, "assign_value"))
        cut_values(d, h);
    return FL_OK;
}

/* --- wholes --- */

/* Declare the variables of an op that the server does not hold. */
static void declare_names(start *t, const fl_args *args, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < args[i].n; j++) {
            const char *name = args[i].name[j];
            const fl_var *v = fl_block_find(t->from, name);
            if (!v || fl_block_var(t->to, name))
                continue;
            fl_var *copy = fl_copy_var(t->to, v);
            copy->persistable = false;
            copy->param = NULL;
        }
}

static void add_whole(start *t, const fl_op *op)
{
    declare_names(t, op->desc.in, op->desc.n_in);
    declare_names(t, op->desc.out, op->desc.n_out);
    fl_copy_op(t->to, op);
}

static fl_err add_slice(start *t, const fl_held *h)
{
    const fl_var *whole = fl_block_find(t->from, h->origin);
    const int64_t width = fl_shape_span(&whole->shape, 1, whole->shape.rank);
    const int64_t first = width ? h->offset / width : 0;
    fl_desc *d = fl_desc_new(t->s->c->arena, "slice");
    fl_desc_set_in1(d, "Input", h->origin);
    fl_desc_set_out1(d, "Out", h->name);
    fl_set_ints(d, "axes", 1, (int64_t[]){0});
    fl_set_ints(d, "starts", 1, &first);
    fl_set_ints(d, "ends", 1, (int64_t[]){first + h->shape.dim[0]});
    return fl_block_append_op(t->to, d, NULL);
}

/* --- the program --- */

static fl_err add_op(start *t, const fl_op *op)
{
    bool whole = true;
    for (int64_t i = 0; i < t->s->held.n; i++) {
        const fl_held *h = &t->s->held.at[i];
        if (!fl_desc_writes(&op->desc, h->origin) || !is_direct(t, h) ||
            !makes_parts(&op->desc))
            continue;
        whole = false;
        FL_TRY(add_part(t, op, h));
    }
    if (whole)
        add_whole(t, op);
    return FL_OK;
}

static fl_err add_all(start *t, const fl_ops *ops)
{
    for (int64_t i = 0; i < ops->n; i++)
        FL_TRY(add_op(t, ops->at[i]));
    for (int64_t i = 0; i < t->s->held.n; i++)
        if (!is_direct(t, &t->s->held.at[i]) &&
            is_started(t, &t->s->held.at[i]))
            FL_TRY(add_slice(t, &t->s->held.at[i]));
    return FL_OK;
}

fl_err fl_server_start(fl_server_cut *s, fl_program **out)
{
    start t = {.s = s, .from = fl_program_block(s->c->startup, 0)};
    fl_ops ops = {0};
    *out = fl_program_make(s->p->registry);
    (*out)->random_seed = s->c->startup->random_seed;
    t.to = fl_program_block(*out, 0);
    for (fl_entry *e = NULL; (e = fl_map_next(&s->b->vars, e));)
        fl_copy_var(t.to, e->value);
    find_ops(&t, &ops);
    const fl_err err = add_all(&t, &ops);
    fl_vec_fini(&ops);
    fl_map_fini(&t.needed);
    return err;
}
