/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_embed.c - many lookups of one table that are concatenated.
 *
 *   for each slot: lookup_table, sequence_pool SUM     fused_embed_concat
 *   concat
 *
 *   concat_grad                                        fused_embed_sgd
 *   for each slot: sequence_pool_grad, lookup_table_grad
 *   sum, sgd
 *
 * If other ranks or servers get the gradient before the update, the lines from
 * concat_grad to sum become fused_embed_rows. The gradient is fused only as a
 * whole, the forward part only if no other op reads the rows of a slot.
 *
 * If the table is on servers, one distributed_lookup_table looks up all slots.
 * It, the pools and the concat become fused_lookup_concat, which tells
 * fused_embed_rows which ids are different: both are made, or none. */
#include "exec/fuse.h"

#include <string.h>

enum {
    MOST = 256 /* a concat with more inputs is not fused */
};

/* One input of the concat. */
typedef struct input {
    const char *name;
    int lookup, pool;           /* lines; pool is -1 if there is none */
    int pool_grad, lookup_grad; /* lines of the gradient */
    const char *ids;            /* NULL: the input is a plain tensor */
    const char *rows;           /* output of the lookup */
} input;

typedef struct group {
    fl_lines *l;
    int concat;
    int n, n_ids;
    input in[MOST];
    const char *table;
    int64_t padding_idx;
    bool pooled;
    bool forth, back; /* the sum adds slots in order, or in reverse */
    bool remote;      /* the table is on servers: all lookups are one line */
    int rows;         /* line of fused_embed_rows; -1: there is none */
} group;

static bool is_sum_pool(const fl_desc *d)
{
    const fl_attr *type = fl_desc_attr(d, "pooltype");
    const fl_attr *pad = fl_desc_attr(d, "pad_value");
    return type && type->s && !strcmp(type->s, "SUM") && (!pad || pad->f == 0);
}

/* The ids that a lookup has for an output; NULL: the line is no lookup. */
static const char *ids_of(const fl_lines *l, int at, const char *rows)
{
    if (fl_lines_is(l, at, "lookup_table"))
        return fl_desc_in1(l->descs.at[at], "Ids");
    if (!fl_lines_is(l, at, "distributed_lookup_table"))
        return NULL;
    const fl_args *ids = fl_desc_in(l->descs.at[at], "Ids");
    const fl_args *out = fl_desc_out(l->descs.at[at], "Outputs");
    for (int i = 0; i < out->n && i < ids->n; i++)
        if (!strcmp(out->name[i], rows))
            return ids->name[i];
    return NULL;
}

/* Whether the lookup at a line is like the other lookups of the group. */
static bool is_like(const group *g, int at, bool pooled)
{
    const fl_desc *d = g->l->descs.at[at];
    const char *w = fl_desc_in1(d, "W");
    const fl_var *table = fl_lines_var(g->l, w);
    if (table->dtype != FL_F32 || table->kind != FL_LOD_TENSOR)
        return false;
    return !g->table ||
           (!strcmp(g->table, w) && g->pooled == pooled &&
            g->padding_idx == fl_desc_int(d, "padding_idx", -1) &&
            g->remote == fl_lines_is(g->l, at, "distributed_lookup_table"));
}

/* Find the lookup, and the pool behind it, that produce an input of the concat.
 */
static void trace(group *g, input *in)
{
    fl_lines *l = g->l;
    int at = fl_lines_writer(l, in->name, g->concat);
    const char *rows = in->name;
    in->pool = in->lookup = -1;
    if (fl_lines_is(l, at, "sequence_pool") && is_sum_pool(l->descs.at[at])) {
        in->pool = at;
        rows = fl_desc_in1(l->descs.at[at], "X");
        at = fl_lines_writer(l, rows, at);
    }
    const char *ids = ids_of(l, at, rows);
    if (!ids || !is_like(g, at, in->pool >= 0))
        return;
    const fl_desc *d = l->descs.at[at];
    g->table = fl_desc_in1(d, "W");
    g->pooled = in->pool >= 0;
    g->padding_idx = fl_desc_int(d, "padding_idx", -1);
    g->remote = fl_lines_is(l, at, "distributed_lookup_table");
    in->lookup = at;
    in->ids = ids;
    in->rows = rows;
    g->n_ids++;
}

static bool is_by_column(const fl_lines *l, const fl_desc *concat)
{
    const fl_var *out = fl_lines_var(l, fl_desc_out1(concat, "Out"));
    int64_t axis = fl_desc_int(concat, "axis", 0);
    return out && out->shape.rank == 2 && out->dtype == FL_F32 &&
           (axis == 1 || axis == -1);
}

static bool find_group(fl_lines *l, int concat, group *g)
{
    const fl_args *x = fl_desc_in(l->descs.at[concat], "X");
    *g = (group){.l = l,
                 .concat = concat,
                 .n = x->n,
                 .forth = true,
                 .back = true,
                 .rows = -1};
    if (x->n > MOST || !is_by_column(l, l->descs.at[concat]))
        return false;
    for (int i = 0; i < g->n; i++) {
        g->in[i].name = x->name[i];
        trace(g, &g->in[i]);
    }
    return g->n_ids >= 2;
}

/* Set the inputs and attributes of the fused op. Attribute `order` lists the
 * columns: k is slot k, -(k+1) is plain tensor k. */
static void describe(const group *g, fl_desc *f)
{
    const char *ids[MOST] = {0}, *dense[MOST] = {0};
    int64_t order[MOST];
    int n_ids = 0, n_dense = 0;
    for (int i = 0; i < g->n; i++) {
        if (g->in[i].ids) {
            order[i] = n_ids;
            ids[n_ids++] = g->in[i].ids;
        } else {
            order[i] = -(int64_t)(n_dense + 1);
            dense[n_dense++] = g->in[i].name;
        }
    }
    fl_desc_set_in(f, "Ids", n_ids, ids);
    if (n_dense)
        fl_desc_set_in(f, "Dense", n_dense, dense);
    fl_desc_set_attr(
        f, &(fl_attr){"order", FL_ATTR_INTS, .n = g->n, .longs = order});
    fl_desc_set_attr(f, &(fl_attr){"pool", FL_ATTR_BOOL, .b = g->pooled});
    fl_desc_set_attr(
        f, &(fl_attr){"padding_idx", FL_ATTR_LONG, .i = g->padding_idx});
}

/* --- gradient and update --- */

static int concat_grad_of(const group *g)
{
    const fl_args *x = fl_desc_in(g->l->descs.at[g->concat], "X");
    for (int i = g->concat + 1; i < g->l->descs.n; i++) {
        if (!fl_lines_is(g->l, i, "concat_grad"))
            continue;
        const fl_args *of = fl_desc_in(g->l->descs.at[i], "X");
        if (of && of->n == x->n && !strcmp(of->name[0], x->name[0]) &&
            !strcmp(of->name[x->n - 1], x->name[x->n - 1]))
            return i;
    }
    return -1;
}

static bool is_absent(const char *name)
{
    return !name || !strcmp(name, FL_EMPTY);
}

/* Follow the gradient of one slot from the concat to the table. Returns the
 * name of the table's gradient. */
static const char *trace_back(group *g, input *in, const char *dx)
{
    fl_lines *l = g->l;
    in->pool_grad = -1;
    if (in->pool >= 0) {
        in->pool_grad = fl_lines_next(l, dx, "sequence_pool_grad");
        if (in->pool_grad < 0)
            return NULL;
        dx = fl_desc_out1(l->descs.at[in->pool_grad], "X@GRAD");
    }
    in->lookup_grad = fl_lines_next(l, dx, "lookup_table_grad");
    if (in->lookup_grad < 0)
        return NULL;
    const fl_attr *sparse =
        fl_desc_attr(l->descs.at[in->lookup_grad], "is_sparse");
    return sparse && sparse->b
               ? fl_desc_out1(l->descs.at[in->lookup_grad], "W@GRAD")
               : NULL;
}

/* The line of the sum op that adds exactly the gradients of all slots; -1:
 * there is none. */
static int sum_of(group *g, const fl_desc *concat_grad)
{
    const fl_args *dx = fl_desc_out(concat_grad, "X@GRAD");
    int sum = -1, met = 0;
    for (int i = 0; dx && i < g->n; i++) {
        const char *d = i < dx->n ? dx->name[i] : NULL;
        if (!g->in[i].ids) {
            if (!is_absent(d) && fl_lines_readers(g->l, d))
                return -1; /* the gradient of a plain tensor is needed */
            continue;
        }
        const char *grad = is_absent(d) ? NULL : trace_back(g, &g->in[i], d);
        int at = grad ? fl_lines_next(g->l, grad, "sum") : -1;
        if (at < 0 || (sum >= 0 && at != sum))
            return -1;
        const fl_args *added = fl_desc_in(g->l->descs.at[at], "X");
        g->forth &= met < added->n && !strcmp(added->name[met], grad);
        g->back &=
            met < added->n && !strcmp(added->name[added->n - 1 - met], grad);
        sum = at;
        met++;
    }
    return sum >= 0 && fl_desc_in(g->l->descs.at[sum], "X")->n == met ? sum
                                                                      : -1;
}

/* Remove the lines from the concat's gradient to the sum. */
static void drop_back(group *g, int concat_grad)
{
    fl_lines *l = g->l;
    for (int i = 0; i < g->n; i++) {
        if (!g->in[i].ids)
            continue;
        if (g->in[i].pool_grad >= 0)
            l->descs.at[g->in[i].pool_grad] = NULL;
        l->descs.at[g->in[i].lookup_grad] = NULL;
    }
    l->descs.at[concat_grad] = NULL;
}

/* Whether the sum goes to other ranks, or to servers, before the update. */
static bool goes_away(const group *g, const char *grad, int sum)
{
    const fl_lines *l = g->l;
    const int reader = fl_lines_reader(l, grad, sum);
    if (g->remote)
        return g->padding_idx == -1 && (fl_lines_is(l, reader, "send") ||
                                        fl_lines_is(l, reader, "split_rows"));
    return fl_lines_is(l, reader, "c_allreduce_sum") ||
           fl_lines_is(l, reader, "c_sync_calc_stream");
}

static bool fuse_rows(group *g, int concat_grad, int sum)
{
    fl_lines *l = g->l;
    const char *grad = fl_desc_out1(l->descs.at[sum], "Out");
    const char *dy = fl_desc_in1(l->descs.at[concat_grad], "Out@GRAD");
    if (!goes_away(g, grad, sum) || !(g->forth || g->back) ||
        fl_lines_written(l, dy, concat_grad, sum))
        return false;
    fl_desc *f = fl_lines_fused(l, "fused_embed_rows", l->descs.at[sum]);
    describe(g, f);
    fl_desc_set_in1(f, "W", g->table);
    fl_desc_set_in1(f, "Grad", dy);
    fl_desc_set_out1(f, "Out", grad);
    fl_desc_set_attr(f, &(fl_attr){"padding_idx", FL_ATTR_LONG, .i = -1});
    fl_desc_set_attr(f, &(fl_attr){"reverse", FL_ATTR_BOOL, .b = !g->forth});
    drop_back(g, concat_grad);
    fl_lines_put(l, sum, f);
    g->rows = sum;
    return true;
}

static bool fuse_back(group *g, int concat_grad)
{
    fl_lines *l = g->l;
    int sum = sum_of(g, l->descs.at[concat_grad]);
    if (sum < 0)
        return false;
    const char *grad = fl_desc_out1(l->descs.at[sum], "Out");
    int sgd = fl_lines_next(l, grad, "sgd");
    const char *dy = fl_desc_in1(l->descs.at[concat_grad], "Out@GRAD");
    if (sgd < 0)
        return fuse_rows(g, concat_grad, sum);
    if (g->remote || strcmp(fl_desc_in1(l->descs.at[sgd], "Param"), g->table) ||
        fl_lines_written(l, dy, concat_grad, sgd))
        return false;
    fl_desc *f = fl_lines_fused(l, "fused_embed_sgd", l->descs.at[sgd]);
    describe(g, f);
    fl_desc_set_in1(f, "Param", g->table);
    fl_desc_set_in1(f, "Grad", dy);
    /* A sparse gradient changes the padding row too, as in Fluid. */
    fl_desc_set_attr(f, &(fl_attr){"padding_idx", FL_ATTR_LONG, .i = -1});
    fl_desc_set_in1(f, "LearningRate",
                    fl_desc_in1(l->descs.at[sgd], "LearningRate"));
    fl_desc_set_out1(f, "ParamOut", g->table);
    drop_back(g, concat_grad);
    l->descs.at[sum] = NULL;
    fl_lines_put(l, sgd, f);
    return true;
}

/* --- forward --- */

/* Whether only the concat uses the rows of a slot. */
static bool is_closed(const group *g, const input *in)
{
    const fl_lines *l = g->l;
    int reader = in->pool >= 0 ? in->pool : g->concat;
    return fl_lines_private(l, in->rows, reader) &&
           fl_lines_private(l, in->name, g->concat) &&
           !fl_lines_written(l, in->ids, in->lookup, g->concat) &&
           !fl_lines_written(l, g->table, in->lookup, g->concat);
}

/* The one line that looks up all slots of a table on servers; -1: there are
 * several, or it looks up others, too. */
static int remote_lookup(const group *g)
{
    int at = -1;
    for (int i = 0; i < g->n; i++) {
        if (!g->in[i].ids)
            continue;
        if (at >= 0 && at != g->in[i].lookup)
            return -1;
        at = g->in[i].lookup;
    }
    return fl_desc_out(g->l->descs.at[at], "Outputs")->n == g->n_ids ? at : -1;
}

static fl_desc *describe_remote(const group *g, int lookup)
{
    static const char *const pieces[] = {"table_names", "height_sections",
                                         "endpoints"};
    const fl_desc *from = g->l->descs.at[lookup];
    fl_desc *f = fl_lines_fused(g->l, "fused_lookup_concat", from);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        const fl_attr *a = fl_desc_attr(from, pieces[i]);
        if (a)
            fl_desc_set_attr(f, a);
    }
    if (g->rows < 0)
        return f;
    const char *where = fl_desc_out(from, "Outputs")->name[0]; /* is free now */
    fl_desc *rows = g->l->descs.at[g->rows];
    fl_desc_set_out1(f, "Where", where);
    fl_desc_set_in1(rows, "Where", where);
    fl_lines_put(g->l, g->rows, rows);
    return f;
}

static bool fuse_forward(group *g)
{
    fl_lines *l = g->l;
    const int remote = g->remote ? remote_lookup(g) : -1;
    for (int i = 0; i < g->n; i++)
        if (g->in[i].ids && !is_closed(g, &g->in[i]))
            return false;
    if (g->remote && remote < 0)
        return false;
    fl_desc *f = g->remote ? describe_remote(g, remote)
                           : fl_lines_fused(l, "fused_embed_concat",
                                            l->descs.at[g->concat]);
    describe(g, f);
    fl_desc_set_in1(f, "W", g->table);
    fl_desc_set_out1(f, "Out", fl_desc_out1(l->descs.at[g->concat], "Out"));
    for (int i = 0; i < g->n; i++) {
        if (!g->in[i].ids)
            continue;
        l->descs.at[g->in[i].lookup] = NULL;
        if (g->in[i].pool >= 0)
            l->descs.at[g->in[i].pool] = NULL;
    }
    fl_lines_put(l, g->concat, f);
    return true;
}

static void fuse_group(group *g)
{
    fl_lines *l = g->l;
    const int back = concat_grad_of(g);
    const size_t size = (size_t)l->descs.n * sizeof *l->descs.at;
    fl_desc **before = fl_arena_dup(l->arena, l->descs.at, size);
    if ((back < 0 || fuse_back(g, back)) && !fuse_forward(g) && g->remote)
        memcpy(l->descs.at, before, size); /* both or none */
}

void fl_fuse_embed(fl_lines *l)
{
    for (int i = 0; i < l->descs.n; i++) {
        if (!fl_lines_is(l, i, "concat"))
            continue;
        group *g = fl_arena_alloc(l->arena, sizeof *g);
        if (find_group(l, i, g))
            fuse_group(g);
    }
}
