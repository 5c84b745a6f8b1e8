/* SPDX-License-Identifier: Apache-2.0 */
/* desc.c - an operator as written in a program. */
#include "op/desc.h"

#include <string.h>

void fl_desc_init(fl_desc *d, fl_arena *a, const char *type)
{
    *d = (fl_desc){.type = fl_arena_strdup(a, type), .arena = a};
}

fl_desc *fl_desc_new(fl_arena *a, const char *type)
{
    fl_desc *d = fl_arena_alloc(a, sizeof *d);
    fl_desc_init(d, a, type);
    return d;
}

static fl_args dup_args(fl_arena *a, const char *slot, int n,
                        const char *const *name)
{
    fl_args to = {fl_arena_strdup(a, slot), n, NULL};
    to.name = fl_arena_alloc(a, (size_t)n * sizeof *to.name);
    for (int i = 0; i < n; i++)
        to.name[i] = fl_arena_strdup(a, name[i]);
    return to;
}

fl_desc *fl_desc_dup(fl_arena *a, const fl_desc *from)
{
    fl_desc *d = fl_desc_new(a, from->type);
    for (int i = 0; i < from->n_in; i++)
        fl_desc_set_in(d, from->in[i].slot, from->in[i].n, from->in[i].name);
    for (int i = 0; i < from->n_out; i++)
        fl_desc_set_out(d, from->out[i].slot, from->out[i].n,
                        from->out[i].name);
    for (int i = 0; i < from->n_attr; i++)
        fl_desc_set_attr(d, &from->attr[i]);
    return d;
}

static fl_args *find_args(fl_args *args, int n, const char *slot)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(args[i].slot, slot))
            return &args[i];
    return NULL;
}

/* Replace the slot, or append it; the old array stays in the arena. */
static void set_args(fl_arena *a, fl_args **args, int *n, const char *slot,
                     int count, const char *const *name)
{
    fl_args now = dup_args(a, slot, count, name);
    fl_args *old = find_args(*args, *n, slot);
    if (old) {
        *old = now;
        return;
    }
    fl_args *grown = fl_arena_alloc(a, (size_t)(*n + 1) * sizeof *grown);
    if (*n)
        memcpy(grown, *args, (size_t)*n * sizeof *grown);
    grown[(*n)++] = now;
    *args = grown;
}

void fl_desc_set_in(fl_desc *d, const char *slot, int n,
                    const char *const *name)
{
    set_args(d->arena, &d->in, &d->n_in, slot, n, name);
}

void fl_desc_set_out(fl_desc *d, const char *slot, int n,
                     const char *const *name)
{
    set_args(d->arena, &d->out, &d->n_out, slot, n, name);
}

void fl_desc_set_in1(fl_desc *d, const char *slot, const char *name)
{
    fl_desc_set_in(d, slot, 1, &name);
}

void fl_desc_set_out1(fl_desc *d, const char *slot, const char *name)
{
    fl_desc_set_out(d, slot, 1, &name);
}

static int find_attr(const fl_desc *d, const char *name)
{
    for (int i = 0; i < d->n_attr; i++)
        if (!strcmp(d->attr[i].name, name))
            return i;
    return -1;
}

void fl_desc_set_attr(fl_desc *d, const fl_attr *value)
{
    fl_attr now = fl_attr_dup(d->arena, value);
    int i = find_attr(d, value->name);
    if (i >= 0) {
        d->attr[i] = now;
        return;
    }
    size_t n = (size_t)d->n_attr;
    fl_attr *grown = fl_arena_alloc(d->arena, (n + 1) * sizeof *grown);
    if (n)
        memcpy(grown, d->attr, n * sizeof *grown);
    grown[d->n_attr++] = now;
    d->attr = grown;
}

bool fl_desc_remove_attr(fl_desc *d, const char *name)
{
    int i = find_attr(d, name);
    if (i < 0)
        return false;
    d->n_attr--;
    memmove(d->attr + i, d->attr + i + 1,
            (size_t)(d->n_attr - i) * sizeof *d->attr);
    return true;
}

const fl_args *fl_desc_in(const fl_desc *d, const char *slot)
{
    return find_args(d->in, d->n_in, slot);
}

const fl_args *fl_desc_out(const fl_desc *d, const char *slot)
{
    return find_args(d->out, d->n_out, slot);
}

const fl_attr *fl_desc_attr(const fl_desc *d, const char *name)
{
    int i = find_attr(d, name);
    return i < 0 ? NULL : &d->attr[i];
}

static const char *first_name(const fl_args *args)
{
    return args && args->n ? args->name[0] : NULL;
}

static bool has_name(const fl_args *args, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < args[i].n; j++)
            if (!strcmp(args[i].name[j], name))
                return true;
    return false;
}

bool fl_desc_reads(const fl_desc *d, const char *name)
{
    return has_name(d->in, d->n_in, name);
}

bool fl_desc_writes(const fl_desc *d, const char *name)
{
    return has_name(d->out, d->n_out, name);
}

const char *fl_desc_in1(const fl_desc *d, const char *slot)
{
    return first_name(fl_desc_in(d, slot));
}

const char *fl_desc_out1(const fl_desc *d, const char *slot)
{
    return first_name(fl_desc_out(d, slot));
}

static int rename_args(fl_desc *d, fl_args *args, int n, const char *from,
                       const char *to)
{
    int changed = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < args[i].n; j++)
            if (!strcmp(args[i].name[j], from)) {
                args[i].name[j] = fl_arena_strdup(d->arena, to);
                changed++;
            }
    return changed;
}

int fl_desc_rename_in(fl_desc *d, const char *from, const char *to)
{
    return rename_args(d, d->in, d->n_in, from, to);
}

int fl_desc_rename_out(fl_desc *d, const char *from, const char *to)
{
    return rename_args(d, d->out, d->n_out, from, to);
}

const char *fl_grad_name(fl_arena *a, const char *name)
{
    return fl_arena_printf(a, "%s" FL_GRAD_SUFFIX, name);
}
