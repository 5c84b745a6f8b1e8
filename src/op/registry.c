/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - all operators by name; derives gradient operators.
 *
 * For a table with .grad_in the registry makes another table: slots from
 * .grad_in, one output S@GRAD for each input S that may have a gradient, and
 * the attributes of the forward operator. A wrong table is reported here, at
 * start, and not during training. */
#include "op/op.h"

#include "base/map.h"
#include "base/str.h"

#include <string.h>

struct fl_registry {
    fl_arena *arena; /* derived tables */
    fl_map by_type;  /* type -> fl_op_def */
    fl_map forward;  /* gradient type -> forward fl_op_def */
    FL_VEC(const fl_op_def *) defs;
};

bool fl_op_differentiable(const fl_op_def *def)
{
    return def->grad_run || def->make_grad;
}

static bool is_grad_name(const char *name)
{
    return fl_ends_with(name, FL_GRAD_SUFFIX);
}

/* The slot that `name` (S or S@GRAD) refers to. */
static const fl_slot *slot_of(const fl_op_def *def, const char *name)
{
    size_t n = strlen(name) - (is_grad_name(name) ? strlen(FL_GRAD_SUFFIX) : 0);
    const fl_slot *lists[] = {def->in, def->out};
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < FL_SLOTS && lists[l][i].name; i++)
            if (strlen(lists[l][i].name) == n &&
                !memcmp(lists[l][i].name, name, n))
                return &lists[l][i];
    return NULL;
}

static fl_err check_slots(const fl_op_def *def, const fl_slot *slots,
                          const char *side)
{
    for (int i = 0; i < FL_SLOTS && slots[i].name; i++)
        for (int j = 0; j < i; j++)
            if (!strcmp(slots[i].name, slots[j].name))
                return fl_fail(FL_EINVAL, "%s: %s slot %s is listed twice",
                               def->type, side, slots[i].name);
    return FL_OK;
}

static fl_err check_grad(const fl_op_def *def)
{
    if (def->grad_run && !def->grad_in[0])
        return fl_fail(FL_EINVAL, "%s: .grad_run without .grad_in", def->type);
    if (def->grad_run && def->make_grad)
        return fl_fail(FL_EINVAL, "%s: both .grad_run and .make_grad",
                       def->type);
    for (int i = 0; i < FL_SLOTS && def->grad_in[i]; i++)
        if (!slot_of(def, def->grad_in[i]))
            return fl_fail(
                FL_EINVAL,
                "%s: .grad_in %s is neither a slot nor the gradient of a slot",
                def->type, def->grad_in[i]);
    return FL_OK;
}

static fl_err check_def(const fl_op_def *def)
{
    FL_TRY(check_slots(def, def->in, "input"));
    FL_TRY(check_slots(def, def->out, "output"));
    for (int i = 0; i < FL_ATTRS && def->attr[i].name; i++)
        if (fl_op_attr(def, def->attr[i].name) != i)
            return fl_fail(FL_EINVAL, "%s: attribute %s is listed twice",
                           def->type, def->attr[i].name);
    if (def->run && !def->infer)
        return fl_fail(FL_EINVAL, "%s: .run without .infer", def->type);
    return check_grad(def);
}

static fl_err add_op(fl_registry *r, const fl_op_def *def)
{
    if (fl_map_get(&r->by_type, def->type))
        return fl_fail(FL_EINVAL, "%s: the type is registered twice",
                       def->type);
    fl_map_put(&r->by_type, def->type, (void *)def);
    fl_push(&r->defs, def);
    return FL_OK;
}

/* S@GRAD gets the meta of S if the gradient op reads S, or else that of its
 * first gradient input. */
static fl_err infer_grad(fl_infer *x)
{
    const fl_op_def *def = x->def;
    for (int s = 0; s < FL_SLOTS && def->out[s].name; s++) {
        char in[64];
        size_t n = strlen(def->out[s].name) - strlen(FL_GRAD_SUFFIX);
        memcpy(in, def->out[s].name, n);
        in[n] = 0;
        int from = fl_op_slot_in(def, in);
        for (int i = 0; from < 0 && i < FL_SLOTS && def->in[i].name; i++)
            if (is_grad_name(def->in[i].name) && x->n_in[i])
                from = i;
        for (int i = 0; i < x->n_out[s]; i++) {
            const fl_meta *like =
                from >= 0 && i < x->n_in[from] ? x->in[from][i] : NULL;
            if (x->out[s][i] && like)
                *x->out[s][i] = *like;
        }
    }
    return FL_OK;
}

/* If an operator has several outputs, the gradients of some may be missing; all
 * other inputs are required. */
static unsigned grad_flags(const fl_op_def *fwd, int i, unsigned flags)
{
    int gradients = 0;
    for (int j = 0; j < FL_SLOTS && fwd->grad_in[j]; j++)
        gradients += is_grad_name(fwd->grad_in[j]);
    const bool unread =
        flags & FL_GRAD_UNREAD && !is_grad_name(fwd->grad_in[i]);
    flags &= FL_MANY | FL_OPTIONAL;
    flags |= unread ? FL_UNREAD : 0;
    bool spare = is_grad_name(fwd->grad_in[i]) && gradients > 1;
    return spare ? flags | FL_OPTIONAL : flags;
}

static fl_err derive_grad(fl_registry *r, const fl_op_def *fwd)
{
    fl_op_def *g = fl_arena_alloc(r->arena, sizeof *g);
    g->type = fwd->grad_type ? fwd->grad_type
                             : fl_arena_printf(r->arena, "%s_grad", fwd->type);
    for (int i = 0; i < FL_SLOTS && fwd->grad_in[i]; i++) {
        const fl_slot *of = slot_of(fwd, fwd->grad_in[i]);
        g->in[i] = (fl_slot){fwd->grad_in[i], grad_flags(fwd, i, of->flags)};
    }
    int n = 0;
    for (int i = 0; i < FL_SLOTS && fwd->in[i].name; i++)
        if (!(fwd->in[i].flags & FL_NOGRAD))
            g->out[n++] = (fl_slot){fl_grad_name(r->arena, fwd->in[i].name),
                                    (fwd->in[i].flags & FL_MANY) | FL_OPTIONAL};
    if (n == 1) /* a gradient op with a single output always has it */
        g->out[0].flags &= ~(unsigned)FL_OPTIONAL;
    memcpy(g->attr, fwd->attr, sizeof g->attr);
    g->flags = fwd->flags & (FL_OP_DYNAMIC | FL_OP_HIDDEN);
    if (fwd->flags & FL_OP_GRAD_IN_PLACE)
        g->flags |= FL_OP_IN_PLACE;
    g->infer = fwd->grad_infer ? fwd->grad_infer : infer_grad;
    g->run = fwd->grad_run;
    g->forward = fwd;
    fl_map_put(&r->forward, g->type, (void *)fwd);
    return add_op(r, g);
}

fl_err fl_registry_new(const fl_op_def *const *defs, int n, fl_registry **out)
{
    fl_registry *r = fl_mem_alloc(sizeof *r);
    r->arena = fl_arena_new();
    fl_err err = FL_OK;
    for (int i = 0; i < n && !err; i++) {
        err = check_def(defs[i]);
        if (!err)
            err = add_op(r, defs[i]);
        if (!err && defs[i]->grad_run)
            err = derive_grad(r, defs[i]);
    }
    if (err) {
        fl_registry_free(r);
        return err;
    }
    *out = r;
    return FL_OK;
}

void fl_registry_free(fl_registry *r)
{
    if (!r)
        return;
    fl_map_fini(&r->by_type);
    fl_map_fini(&r->forward);
    fl_vec_fini(&r->defs);
    fl_arena_free(r->arena);
    fl_mem_free(r);
}

const fl_op_def *fl_registry_find(const fl_registry *r, const char *type)
{
    return fl_map_get(&r->by_type, type);
}

fl_err fl_registry_get(const fl_registry *r, const char *type,
                       const fl_op_def **def)
{
    const fl_op_def *found = fl_registry_find(r, type);
    if (found) {
        *def = found;
        return FL_OK;
    }
    fl_near near = {.name = type};
    for (int64_t i = 0; i < r->defs.n; i++)
        if (!(r->defs.at[i]->flags & FL_OP_HIDDEN))
            fl_near_offer(&near, r->defs.at[i]->type);
    if (near.best)
        return fl_fail(FL_ENOENT, "unknown op \"%s\"; did you mean \"%s\"?",
                       type, near.best);
    return fl_fail(FL_ENOENT, "unknown op \"%s\"", type);
}

int fl_registry_count(const fl_registry *r)
{
    return (int)r->defs.n;
}

const fl_op_def *fl_registry_at(const fl_registry *r, int i)
{
    return r->defs.at[i];
}

const fl_op_def *fl_registry_forward(const fl_registry *r, const char *type)
{
    return fl_map_get(&r->forward, type);
}

fl_desc *fl_grad_emit(fl_grads *g, const char *type)
{
    fl_desc *d = fl_desc_new(g->arena, type);
    fl_push(&g->descs, d);
    return d;
}

fl_desc *fl_grad_back(fl_grads *g, const char *type)
{
    fl_desc *d = fl_grad_emit(g, type);
    const char *out = fl_desc_out1(g->fwd, "Out"),
               *x = fl_desc_in1(g->fwd, "X");
    fl_desc_set_in1(d, "X", fl_grad_name(g->arena, out));
    fl_desc_set_out1(d, "Out", fl_grad_name(g->arena, x));
    return d;
}
