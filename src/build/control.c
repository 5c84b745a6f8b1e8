/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - branches, as Fluid's Switch.
 *
 * The ops of a case are in a sub- block. When the case ends, a
 * conditional_block op is added to the parent block. It lists the outer
 * variables that the sub-block reads and writes. */
#include "build/layer.h"

typedef FL_VEC(const char *) names;

static bool has_name(const names *set, const char *name)
{
    for (int64_t i = 0; i < set->n; i++)
        if (!strcmp(set->at[i], name))
            return true;
    return false;
}

static void add_name(names *set, const char *name)
{
    if (!has_name(set, name))
        fl_push(set, name);
}

/* Collect the names that are read before they are written, and the names that
 * are written, in order. */
static void collect_names(const fl_block *b, names *reads, names *writes)
{
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        for (int s = 0; s < d->n_in; s++)
            for (int j = 0; j < d->in[s].n; j++)
                if (!has_name(writes, d->in[s].name[j]))
                    add_name(reads, d->in[s].name[j]);
        for (int s = 0; s < d->n_out; s++)
            for (int j = 0; j < d->out[s].n; j++)
                add_name(writes, d->out[s].name[j]);
    }
}

/* Keep only the names that the parent block has, without the condition. */
static void keep_outer(names *set, const fl_block *parent, const char *cond)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < set->n; i++)
        if (fl_block_find(parent, set->at[i]) && strcmp(set->at[i], cond))
            set->at[kept++] = set->at[i];
    set->n = kept;
}

static fl_err append_logical(fl_net *n, const char *op, fl_var *x, fl_var *y,
                             fl_var **out)
{
    return fl_layer_get(n, op,
                        (fl_arg[]){{"x", .var = x}, {"y", .var = y}, {0}}, out);
}

static fl_err negate_condition(fl_net *n, fl_var *x, fl_var **out)
{
    return fl_layer_get(n, "logical_not", (fl_arg[]){{"x", .var = x}, {0}},
                        out);
}

/* Set s->cond: the condition of this case holds, and that of no earlier case.
 */
static fl_err chain_condition(fl_net *n, fl_switch *s, fl_var *cond)
{
    fl_var *not_cond = NULL, *before = s->not_before;
    if (!before) {
        s->cond = cond;
        return negate_condition(n, cond, &s->not_before);
    }
    FL_TRY(negate_condition(n, cond, &not_cond));
    FL_TRY(append_logical(n, "logical_and", before, not_cond, &s->not_before));
    return append_logical(n, "logical_and", before, cond, &s->cond);
}

fl_err fl_switch_case(fl_net *n, fl_switch *s, fl_var *cond)
{
    if (!s->name)
        s->name = fl_names_generate(n->names, n->arena, "switch");
    if (!cond && !s->not_before)
        return fl_fail(FL_EINVAL, "%s: the default needs a case before it",
                       s->name);
    if (cond)
        FL_TRY(chain_condition(n, s, cond));
    else
        s->cond = s->not_before;
    fl_names_generate(n->names, n->arena, "conditional_block");
    s->parent = n->block;
    n->block = fl_program_add_block(n->main, n->block)->idx;
    return FL_OK;
}

static fl_err append_block(fl_net *n, const fl_switch *s, int sub,
                           const names *reads, const names *writes)
{
    fl_var *scope = NULL;
    FL_TRY(fl_block_add_var(fl_net_block(n),
                            &(fl_var){.name = fl_names_generate(
                                          n->names, n->arena, "_generated_var"),
                                      .kind = FL_STEP_SCOPES},
                            &scope));
    fl_desc *d = fl_net_desc(n, "conditional_block");
    fl_set_in(d, "Cond", s->cond);
    fl_desc_set_in(d, "Input", (int)reads->n, reads->at);
    fl_desc_set_out(d, "Out", (int)writes->n, writes->at);
    fl_set_out(d, "Scope", scope);
    fl_desc_set_attr(d, &(fl_attr){"sub_block", FL_ATTR_BLOCK, .i = sub});
    fl_set_bool(d, "is_scalar_condition", true);
    return fl_net_append(n, d);
}

fl_err fl_switch_end(fl_net *n, fl_switch *s)
{
    const int sub = n->block;
    names reads = {0}, writes = {0};
    collect_names(fl_program_block(n->main, sub), &reads, &writes);
    n->block = s->parent;
    keep_outer(&reads, fl_net_block(n), s->cond->name);
    keep_outer(&writes, fl_net_block(n), "");
    const fl_err err = append_block(n, s, sub, &reads, &writes);
    fl_vec_fini(&reads);
    fl_vec_fini(&writes);
    return err;
}
