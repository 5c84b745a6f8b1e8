/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c - how plans treat variables without elements. See absent.h. */
#include "exec/absent.h"

#include <string.h>

enum {
    LARGE = 1 << 14 /* elements; fewer take no time */
};

fl_err fl_absent_fail(const char *name)
{
    return fl_fail(
        FL_ENOENT,
        "\"%s\" is on the servers, and this process has no copy of it: look up "
        "its rows (embedding), or save all of it (fluid.io.save_persistables)",
        name);
}

bool fl_absent_only(const fl_op *op)
{
    const fl_desc *d = &op->desc;
    int n = 0;
    for (int i = 0; i < d->n_out; i++)
        for (int j = 0; j < d->out[i].n; j++, n++) {
            const fl_var *v = fl_block_find(op->block, d->out[i].name[j]);
            if (!v || !v->absent)
                return false;
        }
    return n;
}

static int count_names(const fl_args *args, int n)
{
    int names = 0;
    for (int i = 0; i < n; i++)
        names += args[i].n;
    return names;
}

static bool uses_name(const fl_op *op, const char *name)
{
    return fl_desc_reads(&op->desc, name) || fl_desc_writes(&op->desc, name);
}

/* A row of a table has another shape than the table, and stays. */
static bool makes_whole(const fl_op *op, const fl_var *v)
{
    const fl_attr *shape = fl_desc_attr(&op->desc, "shape");
    if (!shape || shape->n != v->shape.rank ||
        (shape->type != FL_ATTR_LONGS && shape->type != FL_ATTR_INTS))
        return false;
    for (int i = 0; i < shape->n; i++)
        if (shape->longs[i] != v->shape.dim[i])
            return false;
    return fl_shape_numel(&v->shape) >= LARGE;
}

bool fl_absent_start(const fl_op *op)
{
    const fl_desc *d = &op->desc;
    if (count_names(d->in, d->n_in) || d->n_out != 1 || d->out[0].n != 1)
        return false;
    const char *name = d->out[0].name[0];
    const fl_var *v = fl_block_var(op->block, name);
    if (!v || !v->persistable || v->kind != FL_LOD_TENSOR ||
        !makes_whole(op, v))
        return false;
    for (int64_t i = 0; i < op->block->ops.n; i++)
        if (op->block->ops.at[i] != op && uses_name(op->block->ops.at[i], name))
            return false;
    return true;
}

/* A value that has memory is kept: the user has loaded a model into it. */
void fl_absent_stand_in(const fl_var *var, fl_value *v)
{
    const bool empty = !v->kind || (v->kind == FL_LOD_TENSOR &&
                                    !v->tensor.data && !fl_value_is_absent(v));
    if (empty && var->absent)
        fl_value_set_absent(v, var->dtype, &var->shape);
}

/* --- lookups --- */

/* Whether the scope has a shape without memory under this name. */
static bool is_table(const fl_lines *l, fl_scope *s, const char *name)
{
    const fl_var *w = fl_lines_var(l, name);
    const fl_value *v = w && w->persistable ? fl_scope_find(s, w->name) : NULL;
    return v && fl_value_is_absent(v);
}

static bool is_absent(const fl_lines *l, fl_scope *s, int i)
{
    return fl_lines_is(l, i, "lookup_table") &&
           is_table(l, s, fl_desc_in1(l->descs.at[i], "W"));
}

/* Whether the lookup at line i can be moved to line `first`, which looks up the
 * same table. */
static bool can_join(const fl_lines *l, int first, int i)
{
    const fl_desc *a = l->descs.at[first], *b = l->descs.at[i];
    const char *out = fl_desc_out1(b, "Out");
    return !strcmp(fl_desc_in1(a, "W"), fl_desc_in1(b, "W")) &&
           fl_desc_int(a, "padding_idx", -1) ==
               fl_desc_int(b, "padding_idx", -1) &&
           !fl_lines_written(l, fl_desc_in1(b, "Ids"), first, i) &&
           !fl_lines_written(l, out, first, i) &&
           !fl_lines_read(l, out, first, i);
}

/* Replace the lookup at line `first`, and all that can be moved there, by one
 * op that asks the servers. */
static void join_lookups(fl_lines *l, fl_scope *s, int first)
{
    const fl_desc *of = l->descs.at[first];
    fl_desc *d = fl_lines_fused(l, "distributed_lookup_table", of);
    FL_VEC(const char *) ids = {0}, outs = {0};
    FL_VEC(int) gone = {0};
    for (int i = first; i < l->descs.n; i++) {
        if (!is_absent(l, s, i) || !can_join(l, first, i))
            continue;
        fl_push(&ids, fl_desc_in1(l->descs.at[i], "Ids"));
        fl_push(&outs, fl_desc_out1(l->descs.at[i], "Out"));
        fl_push(&gone, i);
    }
    fl_desc_set_in(d, "Ids", (int)ids.n, ids.at);
    fl_desc_set_in1(d, "W", fl_desc_in1(of, "W"));
    fl_desc_set_out(d, "Outputs", (int)outs.n, outs.at);
    fl_desc_set_attr(d, &(fl_attr){"padding_idx", FL_ATTR_LONG,
                                   .i = fl_desc_int(of, "padding_idx", -1)});
    for (int64_t i = 0; i < gone.n; i++)
        l->descs.at[gone.at[i]] = NULL;
    fl_lines_put(l, first, d);
    fl_vec_fini(&ids);
    fl_vec_fini(&outs);
    fl_vec_fini(&gone);
}

/* --- split_ids, prefetch, merge_ids --- */

static bool same_args(const fl_args *a, const fl_args *b)
{
    bool same = a && b && a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = !strcmp(a->name[i], b->name[i]);
    return same;
}

/* The one padding row of all lookups; false: they differ. */
static bool get_padding(const fl_desc *merge, int64_t *out)
{
    const fl_attr *all = fl_desc_attr(merge, "padding_idx");
    *out = all && all->n ? all->longs[0] : -1;
    for (int i = 1; all && i < all->n; i++)
        if (all->longs[i] != *out)
            return false;
    return true;
}

/* The lookups of a table by id come as three ops, whose shapes nobody knows
 * before they run: everything behind them would be prepared again at each step.
 * One op does the same. */
static void join_prefetch(fl_lines *l, fl_scope *s, int at)
{
    const fl_desc *fetch = l->descs.at[at];
    const fl_args *asked = fl_desc_in(fetch, "X");
    const fl_args *came = fl_desc_out(fetch, "Out");
    const fl_attr *table = fl_desc_attr(fetch, "table_name");
    if (!asked || !asked->n || !came || !came->n || !table || !table->s ||
        !is_table(l, s, table->s))
        return;
    const int split = fl_lines_writer(l, asked->name[0], at);
    const int merge = fl_lines_reader(l, came->name[0], at);
    int64_t padding;
    if (!fl_lines_is(l, split, "split_ids") ||
        !fl_lines_is(l, merge, "merge_ids"))
        return;
    const fl_desc *first = l->descs.at[split], *last = l->descs.at[merge];
    const fl_args *ids = fl_desc_in(last, "Ids");
    if (!same_args(fl_desc_out(first, "Out"), asked) ||
        !same_args(fl_desc_in(last, "Rows"), asked) ||
        !same_args(fl_desc_in(last, "X"), came) ||
        !same_args(fl_desc_in(first, "Ids"), ids) ||
        !get_padding(last, &padding))
        return;
    fl_desc *d = fl_lines_fused(l, "distributed_lookup_table", last);
    const fl_args *out = fl_desc_out(last, "Out");
    fl_desc_set_in(d, "Ids", ids->n, ids->name);
    fl_desc_set_in1(d, "W", table->s);
    fl_desc_set_out(d, "Outputs", out->n, out->name);
    fl_desc_set_attr(d, &(fl_attr){"padding_idx", FL_ATTR_LONG, .i = padding});
    l->descs.at[split] = l->descs.at[at] = NULL;
    fl_lines_put(l, merge, d);
}

/* Selected rows are split without a look at their number. */
static void name_split(fl_lines *l, int at)
{
    const fl_desc *d = l->descs.at[at];
    const fl_args *out = fl_desc_out(d, "Out");
    const fl_var *x = fl_lines_var(l, fl_desc_in1(d, "Ids"));
    if (!x || x->kind != FL_SELECTED_ROWS || fl_desc_in(d, "Ids")->n != 1)
        return;
    fl_desc *named = fl_lines_fused(l, "split_rows", d);
    fl_desc_set_in1(named, "Ids", x->name);
    fl_desc_set_out(named, "Out", out->n, out->name);
    fl_lines_put(l, at, named);
}

void fl_absent_look_up(fl_lines *l, fl_scope *s)
{
    for (int i = 0; i < l->descs.n; i++)
        if (is_absent(l, s, i))
            join_lookups(l, s, i);
        else if (fl_lines_is(l, i, "prefetch"))
            join_prefetch(l, s, i);
        else if (fl_lines_is(l, i, "split_ids"))
            name_split(l, i);
}
