/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - searches in the lines of a block, and the order of the passes.
 *
 * Gradient ops are fused first. A forward value that only they have read is
 * then not read any more, so that the forward ops can be fused too. Searches
 * use an index from names to lines, so that the time of compiling is
 * proportional to the number of ops. */
#include "exec/fuse.h"

#include <string.h>

static bool reads(const fl_desc *d, const char *name)
{
    return d && fl_desc_reads(d, name);
}

static bool writes(const fl_desc *d, const char *name)
{
    return d && fl_desc_writes(d, name);
}

/* --- the index --- */

typedef FL_VEC(int) numbers; /* line numbers */

static void add_use(fl_lines *l, const char *name, int i)
{
    numbers *u = fl_map_get(&l->uses, name);
    if (!u) {
        u = fl_arena_alloc(l->arena, sizeof *u);
        fl_map_put(&l->uses, name, u);
    }
    for (int64_t k = u->n - 1; k >= 0 && u->at[k] >= i; k--)
        if (u->at[k] == i)
            return;
    fl_push(u, i);
    for (int64_t k = u->n - 1; k > 0 && u->at[k - 1] > i; k--) {
        u->at[k] = u->at[k - 1];
        u->at[k - 1] = i;
    }
}

void fl_lines_put(fl_lines *l, int i, fl_desc *d)
{
    l->descs.at[i] = d;
    for (int s = 0; s < d->n_in; s++)
        for (int j = 0; j < d->in[s].n; j++)
            add_use(l, d->in[s].name[j], i);
    for (int s = 0; s < d->n_out; s++)
        for (int j = 0; j < d->out[s].n; j++)
            add_use(l, d->out[s].name[j], i);
}

void fl_lines_add(fl_lines *l, fl_desc *d)
{
    fl_push(&l->descs, NULL);
    fl_lines_put(l, (int)l->descs.n - 1, d);
    fl_push(&l->descs, NULL);
}

void fl_lines_fini(fl_lines *l)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&l->uses, e));)
        fl_vec_fini((numbers *)e->value);
    fl_map_fini(&l->uses);
    fl_map_fini(&l->kept);
    fl_vec_fini(&l->descs);
}

typedef bool (*relation)(const fl_desc *d,
                         const char *name); /* `reads` or `writes` */

/* How many lines in [from, to) read or write the name; *first and *last are the
 * first and the last of them (NULL: not needed). */
static int count_uses(const fl_lines *l, const char *name, relation is,
                      int from, int to, int *first, int *last)
{
    const numbers *u = fl_map_get(&l->uses, name);
    int n = 0;
    for (int64_t k = 0; u && k < u->n; k++) {
        const int i = u->at[k];
        if (i < from || i >= to || !is(l->descs.at[i], name))
            continue;
        if (first && !n)
            *first = i;
        if (last)
            *last = i;
        n++;
    }
    return n;
}

/* --- searches --- */

int fl_lines_reader(const fl_lines *l, const char *name, int after)
{
    int first = -1;
    count_uses(l, name, reads, after + 1, (int)l->descs.n, &first, NULL);
    return first;
}

int fl_lines_writer(const fl_lines *l, const char *name, int before)
{
    int last = -1;
    count_uses(l, name, writes, 0, before, NULL, &last);
    return last;
}

int fl_lines_readers(const fl_lines *l, const char *name)
{
    return count_uses(l, name, reads, 0, (int)l->descs.n, NULL, NULL);
}

bool fl_lines_written(const fl_lines *l, const char *name, int from, int to)
{
    return count_uses(l, name, writes, from, to, NULL, NULL);
}

bool fl_lines_read(const fl_lines *l, const char *name, int from, int to)
{
    return count_uses(l, name, reads, from, to, NULL, NULL);
}

const fl_var *fl_lines_var(const fl_lines *l, const char *name)
{
    return fl_block_find(l->block, name);
}

bool fl_lines_temporary(const fl_lines *l, const char *name)
{
    const fl_var *v = fl_lines_var(l, name);
    if (!v || v->persistable || v->is_data || !strcmp(name, FL_EMPTY) ||
        fl_map_get(&l->kept, name))
        return false;
    return count_uses(l, name, writes, 0, (int)l->descs.n, NULL, NULL) == 1;
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
    fl_fuse_mul_send(l);
}
