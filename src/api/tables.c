/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - the tables of operators, layers and optimisers, for front ends.
 *
 * The rows are made once, when the engine is created. A front end reads them
 * when it starts, so that it offers exactly what the engine has. */
#include "api/engine.h"

#include "base/vec.h"
#include "build/layer.h"
#include "build/optimizer.h"

/* --- operators --- */

static int count_slots(const fl_slot *slots)
{
    int n = 0;
    while (n < FL_SLOTS && slots[n].name)
        n++;
    return n;
}

static int count_attrs(const fl_attr *attrs)
{
    int n = 0;
    while (n < FL_ATTRS && attrs[n].name)
        n++;
    return n;
}

static void list_ops(fl_engine *e)
{
    const int n = fl_registry_count(e->registry);
    fl_op_info *rows = fl_arena_alloc(e->arena, (size_t)n * sizeof *rows);
    for (int i = 0; i < n; i++) {
        const fl_op_def *def = fl_registry_at(e->registry, i);
        if (def->flags & FL_OP_HIDDEN)
            continue;
        rows[e->n_ops++] = (fl_op_info){
            .type = def->type,
            .n_in = count_slots(def->in),
            .n_out = count_slots(def->out),
            .n_attr = count_attrs(def->attr),
            .in = def->in,
            .out = def->out,
            .attr = def->attr,
            .differentiable = fl_op_differentiable(def),
        };
    }
    e->ops = rows;
}

/* --- layers and optimisers --- */

static int count_args(const fl_arg_def *args)
{
    int n = 0;
    while (n < FL_ARGS && args[n].name)
        n++;
    return n;
}

/* A signature with the documentation of every argument. */
static fl_signature make_signature(fl_engine *e, const char *name,
                                   const char *doc, const char *returns,
                                   const fl_arg_def *args)
{
    const int n = count_args(args);
    fl_arg_def *all = fl_arena_alloc(e->arena, (size_t)(n + 1) * sizeof *all);
    for (int i = 0; i < n; i++) {
        const char *meaning = fl_arg_doc(&args[i]);
        all[i] = args[i];
        all[i].doc = meaning ? meaning : "";
    }
    all[n] = (fl_arg_def){0};
    return (fl_signature){name, doc ? doc : "", returns, n, all};
}

static fl_signature layer_row(fl_engine *e, const fl_layer_def *def)
{
    return make_signature(e, def->name, def->doc, def->returns, def->args);
}

static bool is_listed(const fl_signature *rows, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].name, name))
            return true;
    return false;
}

/* List the layers of the tables, then the operators that are layers without a
 * row. */
static void list_layers(fl_engine *e)
{
    const int rows = fl_layer_count();
    fl_signature *all =
        fl_arena_alloc(e->arena, (size_t)(rows + e->n_ops) * sizeof *all);
    for (int i = 0; i < rows; i++)
        all[e->n_layers++] = layer_row(e, fl_layer_at(i));
    for (int i = 0; i < e->n_ops; i++) {
        const fl_op_def *op = fl_registry_find(e->registry, e->ops[i].type);
        fl_layer_def def;
        if (op->forward || is_listed(all, rows, op->type) ||
            !fl_layer_of_op(e->arena, op, &def))
            continue;
        all[e->n_layers++] = layer_row(e, &def);
    }
    e->layers = all;
}

static void list_optimizers(fl_engine *e)
{
    const int n = fl_optimizers_count;
    fl_signature *rows = fl_arena_alloc(e->arena, (size_t)n * sizeof *rows);
    for (int i = 0; i < n; i++)
        rows[i] = make_signature(e, fl_optimizers[i].cls, fl_optimizers[i].doc,
                                 NULL, fl_optimizers[i].args);
    e->optimizers = rows;
    e->n_optimizers = n;
}

void fl_engine_list(fl_engine *e)
{
    e->arena = fl_arena_new();
    list_ops(e);
    list_layers(e);
    list_optimizers(e);
}

int fl_op_table(const fl_engine *e, const fl_op_info **out)
{
    *out = e->ops;
    return e->n_ops;
}

int fl_layer_table(const fl_engine *e, const fl_signature **out)
{
    *out = e->layers;
    return e->n_layers;
}

int fl_optimizer_table(const fl_engine *e, const fl_signature **out)
{
    *out = e->optimizers;
    return e->n_optimizers;
}
