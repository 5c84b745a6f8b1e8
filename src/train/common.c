/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - one pass over the ops finds which variables are read before they
 * are written. */
#include "train/common.h"

/* How the ops so far have used a persistable variable. */
typedef enum fate {
    READ = 1,
    WRITTEN = 2,
    FIRST_WRITTEN = 4, /* written before any op read it */
} fate;

typedef struct walk {
    const fl_program *program;
    fl_map fates; /* name of a persistable variable -> its fate, in order */
    fl_arena *arena;
} walk;

static fate *fate_of(walk *w, const fl_block *b, const char *name)
{
    fate *f = fl_map_get(&w->fates, name);
    const fl_var *v = f ? NULL : fl_block_find(b, name);
    if (v && v->persistable) {
        f = fl_arena_alloc(w->arena, sizeof *f);
        fl_map_put(&w->fates, v->name, f);
    }
    return f;
}

/* Ops of a sub-block may run never or several times, so every variable that
 * they use counts as read first. */
static void visit_op(walk *w, const fl_block *b, const fl_desc *d)
{
    for (int s = 0; s < d->n_in; s++)
        for (int i = 0; i < d->in[s].n; i++) {
            fate *f = fate_of(w, b, d->in[s].name[i]);
            if (f)
                *f |= READ;
        }
    for (int s = 0; s < d->n_out; s++)
        for (int i = 0; i < d->out[s].n; i++) {
            fate *f = fate_of(w, b, d->out[s].name[i]);
            if (f)
                *f |= WRITTEN | (b->idx ? READ : *f ? 0 : FIRST_WRITTEN);
        }
}

void fl_common_init(fl_common *c, const fl_program *p)
{
    walk w = {.program = p, .arena = fl_arena_new()};
    *c = (fl_common){0};
    for (int64_t k = p->blocks.n; k-- > 0;) { /* sub-blocks first */
        const fl_block *b = p->blocks.at[k];
        for (int64_t i = 0; i < b->ops.n; i++)
            visit_op(&w, b, &b->ops.at[i]->desc);
    }
    for (fl_entry *e = NULL; (e = fl_map_next(&w.fates, e));) {
        const fate f = *(fate *)e->value;
        if (f & FIRST_WRITTEN)
            fl_push(&c->fresh, e->key);
        else if (f & WRITTEN)
            fl_push(&c->state, e->key);
    }
    fl_map_fini(&w.fates);
    fl_arena_free(w.arena);
}

void fl_common_fini(fl_common *c)
{
    fl_vec_fini(&c->state);
    fl_vec_fini(&c->fresh);
}

fl_err fl_common_settle(const fl_common *c, fl_scope *s)
{
    for (int64_t i = 0; i < c->state.n; i++) {
        fl_value *v = fl_scope_find(s, c->state.at[i]);
        if (v && v->kind == FL_LOD_TENSOR && v->tensor.data)
            FL_TRY(fl_tensor_unique(&v->tensor));
    }
    return FL_OK;
}

fl_scope *fl_common_scope(const fl_common *c, fl_scope *parent)
{
    fl_scope *s = fl_scope_private(parent);
    for (int64_t i = 0; i < c->fresh.n; i++)
        fl_scope_var(s, c->fresh.at[i]);
    return s;
}
