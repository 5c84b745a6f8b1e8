/* fuse.c - what passes ask of a block's lines, and their order.
 *
 * Gradients go first: a forward value that only a fused gradient would have
 * read is then read by nobody, and the forward ops can be fused too. Searches
 * walk all lines; blocks are short and this happens once for a program. */
#include "exec/fuse.h"

#include <string.h>

static bool has_name(const fl_args *args, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < args[i].n; j++)
            if (!strcmp(args[i].name[j], name))
                return true;
    return false;
}

static bool reads(const fl_desc *d, const char *name)
{
    return d && has_name(d->in, d->n_in, name);
}

static bool writes(const fl_desc *d, const char *name)
{
    return d && has_name(d->out, d->n_out, name);
}

int fl_lines_reader(const fl_lines *l, const char *name, int after)
{
    for (int i = after + 1; i < l->descs.n; i++)
        if (reads(l->descs.at[i], name))
            return i;
    return -1;
}

int fl_lines_writer(const fl_lines *l, const char *name, int before)
{
    for (int i = before - 1; i >= 0; i--)
        if (writes(l->descs.at[i], name))
            return i;
    return -1;
}

int fl_lines_readers(const fl_lines *l, const char *name)
{
    int n = 0;
    for (int i = 0; i < l->descs.n; i++)
        n += reads(l->descs.at[i], name);
    return n;
}

bool fl_lines_written(const fl_lines *l, const char *name, int from, int to)
{
    for (int i = from; i < to; i++)
        if (writes(l->descs.at[i], name))
            return true;
    return false;
}

bool fl_lines_read(const fl_lines *l, const char *name, int from, int to)
{
    for (int i = from; i < to; i++)
        if (reads(l->descs.at[i], name))
            return true;
    return false;
}

const fl_var *fl_lines_var(const fl_lines *l, const char *name)
{
    return fl_block_find(l->block, name);
}

bool fl_lines_temporary(const fl_lines *l, const char *name)
{
    const fl_var *v = fl_lines_var(l, name);
    int writers = 0;
    if (!v || v->persistable || v->is_data || !strcmp(name, FL_EMPTY) ||
        fl_map_get(&l->kept, name))
        return false;
    for (int i = 0; i < l->descs.n; i++)
        writers += writes(l->descs.at[i], name);
    return writers == 1;
}

bool fl_lines_private(const fl_lines *l, const char *name, int reader)
{
    return fl_lines_temporary(l, name) && fl_lines_readers(l, name) == 1 &&
           reads(l->descs.at[reader], name);
}

int fl_lines_next(const fl_lines *l, const char *name, const char *type)
{
    int i = name ? fl_lines_reader(l, name, -1) : -1;
    return i >= 0 && fl_lines_is(l, i, type) && fl_lines_private(l, name, i)
               ? i
               : -1;
}

int fl_lines_origin(const fl_block *b, const fl_desc *d)
{
    for (int64_t i = 0; i < b->ops.n; i++)
        if (&b->ops.at[i]->desc == d)
            return (int)i;
    return (int)fl_desc_int(d, FL_FUSED_FROM, -1);
}

static void set_origin(const fl_lines *l, fl_desc *d, const fl_desc *of)
{
    fl_desc_set_attr(d, &(fl_attr){FL_FUSED_FROM, FL_ATTR_INT,
                                   .i = fl_lines_origin(l->block, of)});
}

fl_desc *fl_lines_own(fl_lines *l, int i)
{
    fl_desc *d = l->descs.at[i];
    if (d->arena == l->arena)
        return d;
    l->descs.at[i] = fl_desc_dup(l->arena, d);
    set_origin(l, l->descs.at[i], d);
    return l->descs.at[i];
}

fl_desc *fl_lines_fused(fl_lines *l, const char *type, const fl_desc *of)
{
    fl_desc *d = fl_desc_new(l->arena, type);
    set_origin(l, d, of);
    return d;
}

bool fl_lines_is(const fl_lines *l, int i, const char *type)
{
    return i >= 0 && l->descs.at[i] && !strcmp(l->descs.at[i]->type, type);
}

int64_t fl_desc_int(const fl_desc *d, const char *name, int64_t otherwise)
{
    const fl_attr *a = fl_desc_attr(d, name);
    return a ? a->i : otherwise;
}

void fl_fuse(fl_lines *l)
{
    fl_fuse_softmax_ce(l);
    fl_fuse_conv(l);
    fl_fuse_bias_grad(l);
    fl_fuse_embed(l);
    fl_fuse_fc(l);
    fl_fuse_mul_sgd(l);
}
