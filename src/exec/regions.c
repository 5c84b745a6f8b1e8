/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c - which temporaries share memory. See regions.h.
 *
 * The first pass over the steps finds where each life begins and ends. The
 * second one, backwards, extends the life of a value to that of its views. The
 * third one assigns regions as a compiler assigns registers.
 *
 * Easy to get wrong: an output must not lie in the memory of an input of the
 * same step, unless the operator's table says that it may (FL_OP_IN_PLACE) and
 * the input ends there. */
#include "exec/regions.h"

enum {
    CLASSES = 4 * 64, /* size classes: four per power of 2 */
    ROOM = 4,         /* a region may be so many classes (factor 2) too large */
    UNKNOWN = 64,     /* guess for a dimension that is -1 */
};

/* The life of a value. */
typedef struct life {
    int64_t first, last; /* steps that begin and end it; -1: none */
    int64_t next_dying;  /* the next value whose life ends at the same step */
    int64_t region;      /* -1: none */
    size_t bytes;        /* guessed size; 0: the value gets no region */
    bool lasting;        /* as in fl_lives */
} life;

typedef struct free_region {
    int64_t owner; /* number of the value that uses the region now */
    int64_t next;  /* the next free region of the class */
    int class;
} free_region;

typedef struct pass {
    const fl_lives *of;
    life *life;            /* by number */
    int64_t *dying;        /* by step: the first value whose life ends there */
    int64_t free[CLASSES]; /* by class: the first free region; -1: none */
    FL_VEC(free_region) regions;
} pass;

static life *life_of(const pass *p, const fl_value *v)
{
    const int64_t i = fl_numbers_find(p->of->numbers, v);
    return i < 0 ? NULL : &p->life[i];
}

/* --- where lives begin and end --- */

/* Whether an op may use its arguments after it has run: the network reads those
 * of `send`, and a sub-block may use those of conditional_block. */
static bool keeps_arguments(const fl_op_def *def)
{
    return def->flags & (FL_OP_NO_INFER | FL_OP_RANKS);
}

static void read_input(life *x, const fl_op_def *def, int slot, int64_t step)
{
    if (x->first < 0 || keeps_arguments(def))
        x->lasting = true;
    if (!(def->in[slot].flags & FL_UNREAD))
        x->last = step;
}

/* The size of a variable, from its declared shape. */
static size_t guess_bytes(const fl_block *b, const char *name)
{
    const fl_var *v = fl_block_find(b, name);
    int64_t n = v ? (int64_t)fl_dtype_size(v->dtype) : 0;
    for (int i = 0; v && i < v->shape.rank; i++)
        n = fl_dim_mul(n, v->shape.dim[i] < 0 ? UNKNOWN : v->shape.dim[i]);
    return n > 0 ? (size_t)n : 1;
}

static void write_output(const pass *p, const fl_call *c, int slot, int i,
                         int64_t step)
{
    life *x = life_of(p, c->out[slot][i]);
    const char *name = fl_desc_out(c->desc, c->def->out[slot].name)->name[i];
    x->lasting |= x->first >= 0 || keeps_arguments(c->def);
    x->first = x->last = step;
    if (!(c->def->out[slot].flags & FL_VIEW) &&
        !(c->def->flags & FL_OP_DYNAMIC))
        x->bytes = guess_bytes(p->of->block, name);
}

static void find_lives(const pass *p)
{
    for (int64_t k = 0; k < p->of->n; k++) {
        const fl_call *c = p->of->step[k];
        for (int s = 0; s < FL_SLOTS; s++)
            for (int i = 0; i < c->n_in[s]; i++)
                if (c->in[s][i])
                    read_input(life_of(p, c->in[s][i]), c->def, s, k);
        for (int s = 0; s < FL_SLOTS; s++)
            for (int i = 0; i < c->n_out[s]; i++)
                if (c->out[s][i])
                    write_output(p, c, s, i, k);
    }
}

static void outlive(life *x, const life *view)
{
    x->lasting |= view->lasting;
    if (x->last < view->last)
        x->last = view->last;
}

/* Extend lives by those of views. A view may share the memory of any input of
 * its step. */
static void extend_by_views(const pass *p)
{
    for (int64_t k = p->of->n - 1; k >= 0; k--) {
        const fl_call *c = p->of->step[k];
        if (!fl_op_makes_view(c->def))
            continue;
        for (int s = 0; s < FL_SLOTS; s++)
            for (int i = 0; i < c->n_in[s]; i++)
                for (int o = 0; o < FL_SLOTS && c->in[s][i]; o++)
                    if (c->n_out[o] && c->out[o][0])
                        outlive(life_of(p, c->in[s][i]),
                                life_of(p, c->out[o][0]));
    }
}

static void list_dying(const pass *p)
{
    for (int64_t i = 0; i < p->of->numbers->values.n; i++) {
        life *x = &p->life[i];
        if (x->lasting || !x->bytes || x->first < 0)
            continue;
        x->next_dying = p->dying[x->last];
        p->dying[x->last] = i;
    }
}

/* --- assigning regions --- */

static int class_of(size_t bytes)
{
    const int power = 63 - __builtin_clzll(bytes);
    return 4 * power + (power < 2 ? 0 : (int)(bytes >> (power - 2)) & 3);
}

static int64_t take_free(pass *p, int class)
{
    const int64_t r = p->free[class];
    if (r >= 0)
        p->free[class] = p->regions.at[r].next;
    return r;
}

/* A free region of the size class, or a larger one, or a smaller one that
 * grows, or a new one. */
static int64_t take_region(pass *p, int class)
{
    int64_t r = -1;
    for (int k = class; r < 0 && k <= class + ROOM && k < CLASSES; k++)
        r = take_free(p, k);
    for (int k = class - 1; r < 0 && k >= class - ROOM && k >= 0; k--)
        r = take_free(p, k);
    if (r >= 0) {
        if (p->regions.at[r].class < class)
            p->regions.at[r].class = class;
        return r;
    }
    fl_push(&p->regions, (free_region){.class = class});
    return p->regions.n - 1;
}

static void free_dying(pass *p, int64_t step)
{
    for (int64_t i = p->dying[step]; i >= 0; i = p->life[i].next_dying) {
        const int64_t r = p->life[i].region;
        free_region *f = &p->regions.at[r];
        if (f->owner != i)
            continue; /* an output of the step uses it now */
        f->next = p->free[f->class];
        p->free[f->class] = r;
    }
}

/* The region of an input whose life ends at this step, so that the output may
 * use its memory; -1: none. */
static int64_t region_of_input(const pass *p, const fl_call *c, const life *out)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_in[s]; i++) {
            const life *x = life_of(p, c->in[s][i]);
            if (x && x->region >= 0 && x->last == out->first &&
                x->bytes == out->bytes && !(c->def->in[s].flags & FL_UNREAD))
                return x->region;
        }
    return -1;
}

static void place_output(pass *p, const fl_call *c, int slot, int i)
{
    const int64_t number = fl_numbers_find(p->of->numbers, c->out[slot][i]);
    life *x = number < 0 ? NULL : &p->life[number];
    if (!x || x->lasting || !x->bytes)
        return;
    if (c->def->flags & FL_OP_IN_PLACE && !slot && !i)
        x->region = region_of_input(p, c, x);
    if (x->region < 0)
        x->region = take_region(p, class_of(x->bytes));
    p->regions.at[x->region].owner = number;
}

static void place_all(pass *p)
{
    for (int64_t k = 0; k < p->of->n; k++) {
        const fl_call *c = p->of->step[k];
        for (int s = 0; s < FL_SLOTS; s++)
            for (int i = 0; i < c->n_out[s]; i++)
                if (c->out[s][i])
                    place_output(p, c, s, i);
        free_dying(p, k);
    }
}

/* --- public functions --- */

static void init_pass(pass *p)
{
    const int64_t n = p->of->numbers->values.n;
    p->life = fl_mem_alloc((size_t)n * sizeof *p->life);
    p->dying = fl_mem_alloc((size_t)p->of->n * sizeof *p->dying);
    for (int64_t i = 0; i < n; i++)
        p->life[i] = (life){.first = -1,
                            .last = -1,
                            .region = -1,
                            .lasting = p->of->lasting[i]};
    for (int64_t k = 0; k < p->of->n; k++)
        p->dying[k] = -1;
    for (int k = 0; k < CLASSES; k++)
        p->free[k] = -1;
}

void fl_regions_init(fl_regions *r, const fl_lives *of)
{
    pass p = {.of = of};
    init_pass(&p);
    find_lives(&p);
    extend_by_views(&p);
    list_dying(&p);
    place_all(&p);
    r->n = p.regions.n;
    r->at = fl_mem_alloc((size_t)r->n * sizeof *r->at);
    for (int64_t i = 0; i < of->numbers->values.n; i++)
        if (p.life[i].region >= 0)
            fl_region_add(&r->at[p.life[i].region], of->numbers->values.at[i]);
    fl_mem_free(p.life);
    fl_mem_free(p.dying);
    fl_vec_fini(&p.regions);
}

void fl_regions_fini(fl_regions *r)
{
    for (int64_t i = 0; i < r->n; i++)
        fl_region_fini(&r->at[i]);
    fl_mem_free(r->at);
}

size_t fl_regions_bytes(const fl_regions *r)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < r->n; i++)
        bytes += r->at[i].buf ? fl_buf_size(r->at[i].buf) : 0;
    return bytes;
}
