/* update_table.c - updates whose parameter is a table.
 *
 * The op that updates a table is taken out of the update's program: the table
 * applies its rule in the rows. What else the block has (the powers of adam)
 * stays a plan, which runs after it.
 *
 * How rows start is written on the op that looks them up; where it is not, they
 * start with numbers that the startup program made. */
#include "pserver/store_in.h"

#include "base/log.h"
#include "graph/verify.h"
#include "table/file.h"

static const fl_block *global(const fl_pstore *s)
{
    return fl_program_block(s->opts.program, 0);
}

/* The place of the op in u->program; -1: the update is of a tensor. */
static int64_t find_op(const fl_pstore *s, const fl_update *u)
{
    const fl_ops *ops = &fl_program_block(u->program, 0)->ops;
    for (int64_t i = 0; i < ops->n; i++) {
        const char *p = fl_desc_in1(&ops->at[i]->desc, "Param");
        const fl_var *v = p ? fl_block_var(global(s), p) : NULL;
        if (v && v->kind == FL_SELECTED_ROWS)
            return i;
    }
    return -1;
}

/* --- how rows start --- */

static const fl_desc *lookup_of(const fl_pstore *s, const char *table)
{
    for (int64_t i = 0; i < s->opts.program->blocks.n; i++) {
        const fl_ops *ops = &s->opts.program->blocks.at[i]->ops;
        for (int64_t k = 0; k < ops->n; k++) {
            const fl_desc *d = &ops->at[k]->desc;
            const char *w = fl_desc_in1(d, "W");
            if (!strcmp(d->type, "lookup_sparse_table") && w &&
                !strcmp(w, table))
                return d;
        }
    }
    return NULL;
}

static double number_attr(const fl_desc *d, const char *name)
{
    const fl_attr *a = fl_desc_attr(d, name);
    return !a ? 0 : a->type == FL_ATTR_FLOAT ? a->f : (double)a->i;
}

/* False: nobody says. */
static bool find_start(const fl_desc *lookup, fl_table_start *start)
{
    static const struct {
        const char *type;
        fl_start_kind kind;
    } kinds[] = {
        {"fill_constant", FL_START_CONSTANT},
        {"uniform_random", FL_START_UNIFORM},
        {"gaussian_random", FL_START_NORMAL},
        {"truncated_gaussian_random", FL_START_TRUNCATED},
    };
    const fl_attr *type = lookup ? fl_desc_attr(lookup, "start") : NULL;
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(type->s, kinds[i].type))
            continue;
        start->kind = kinds[i].kind;
        start->a = number_attr(lookup, "start_a");
        start->b = number_attr(lookup, "start_b");
        start->seed = (uint64_t)number_attr(lookup, "start_seed");
        return true;
    }
    return false;
}

/* --- the table --- */

static fl_err check_op(const fl_op *op, const char *name)
{
    const fl_var *v = fl_block_find(op->block, name);
    char text[FL_SHAPE_TEXT];
    if (!op->def->rule)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: the table \"%s\" is updated by %s, "
                       "which is no optimiser",
                       name, op->desc.type);
    if (v->shape.rank != 2 || v->shape.dim[1] < 1)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: the table \"%s\" is %s, expected "
                       "[rows, width]",
                       name, fl_shape_text(&v->shape, text));
    return FL_OK;
}

static fl_err find_states(const fl_pstore *s, const fl_desc *d,
                          const fl_rule *rule, fl_table_opts *o)
{
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++) {
        const char *name = fl_desc_in1(d, rule->state[i].in);
        const fl_value *v;
        o->lacks[i] = !name;
        if (!name)
            continue;
        FL_TRY(fl_pstore_started(s->opts.scope, name, &v));
        o->state[i] = fl_pstore_number(v);
    }
    return FL_OK;
}

/* Nothing else in the update may touch what lies in rows. */
static fl_err check_rest(const fl_update *u)
{
    const fl_ops *ops = &fl_program_block(u->program, 0)->ops;
    const fl_op *op = u->ruled.op;
    const fl_rule *rule = op->def->rule;
    const char *names[2 + FL_RULE_STATES] = {u->ruled.param, u->grad->name};
    fl_map used = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < ops->n; i++) {
        fl_op_add_reads(ops->at[i], &used);
        fl_op_add_writes(ops->at[i], &used);
    }
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++)
        names[2 + i] = fl_desc_in1(&op->desc, rule->state[i].in);
    for (int i = 0; i < 2 + FL_RULE_STATES && !err; i++)
        if (names[i] && fl_map_get(&used, names[i]))
            err = fl_fail(FL_EINVAL,
                          "listen_and_serv: \"%s\" belongs to the rows of the "
                          "table \"%s\", only the op that updates these may "
                          "use it",
                          names[i], u->ruled.param);
    fl_map_fini(&used);
    return err;
}

static fl_err make(fl_pstore *s, fl_update *u)
{
    const fl_op *op = u->ruled.op;
    const fl_var *v = fl_block_find(op->block, u->ruled.param);
    const fl_value *started;
    const fl_placement *place = fl_placement_of(s->opts.program->job);
    fl_table_opts o = {.name = v->name,
                       .dtype = v->dtype,
                       .width = v->shape.dim[1],
                       .rule = op->def->rule,
                       .key = place ? fl_table_key(place->tables) : 0,
                       .budget = &s->tables};
    if (!find_start(lookup_of(s, v->name), &o.start)) {
        FL_TRY(fl_pstore_started(s->opts.scope, v->name, &started));
        o.start.kind = FL_START_PICKED;
        o.start.from = &started->tensor;
    }
    FL_TRY(find_states(s, &op->desc, o.rule, &o));
    return fl_table_new(&o, &u->table);
}

/* --- from a model that was loaded --- */

/* What this server keeps under a name, or NULL. */
static const fl_piece *kept_as(const fl_placement *place, const char *name)
{
    for (int i = 0; place && i < place->n_pieces; i++) {
        const fl_piece *k = &place->pieces[i];
        if (k->server == place->server && !strcmp(k->name, name))
            return k;
    }
    return NULL;
}

static fl_err load(fl_pstore *s, fl_update *u, int state, const char *name)
{
    const char *path = fl_scope_file(s->opts.scope, name);
    const fl_placement *place = fl_placement_of(s->opts.program->job);
    const fl_piece *k = kept_as(place, name);
    const fl_var *v = fl_block_var(global(s), u->ruled.param);
    const fl_watch *w = s->opts.env->watch; /* on its own thread yet */
    fl_record r;
    if (!path || !k)
        return FL_OK;
    FL_TRY(fl_table_file_open(s->env.disk, path, k, v->dtype, &r));
    const fl_err err =
        fl_table_file_load(u->table, state, &r, k, place->n_servers,
                           w ? w->poll : NULL, w ? w->user : NULL);
    fl_record_close(&r);
    if (!err)
        FL_INFO("table %s: %lld rows after %s", u->ruled.param,
                (long long)fl_table_rows(u->table), path);
    return err;
}

static fl_err load_all(fl_pstore *s, fl_update *u)
{
    const fl_op *op = u->ruled.op;
    const fl_rule_state *state = op->def->rule->state;
    FL_TRY(load(s, u, FL_TABLE_VALUE, u->ruled.param));
    for (int i = 0; i < FL_RULE_STATES && state[i].in; i++) {
        const char *name = fl_desc_in1(&op->desc, state[i].in);
        if (name)
            FL_TRY(load(s, u, i, name));
    }
    return FL_OK;
}

fl_err fl_update_make_table(fl_owner *o, fl_update *u)
{
    fl_block *b = fl_program_block(u->program, 0);
    const int64_t at = find_op(o->store, u);
    if (at < 0)
        return FL_OK;
    u->ruled.op = b->ops.at[at];
    u->ruled.param = fl_desc_in1(&u->ruled.op->desc, "Param");
    FL_TRY(check_op(u->ruled.op, u->ruled.param));
    fl_block_remove_op(b, at);
    FL_TRY(check_rest(u));
    FL_TRY(make(o->store, u));
    return load_all(o->store, u);
}

/* --- its steps --- */

bool fl_update_in_rows(const fl_update *u, const char *name, int *state)
{
    const fl_op *op = u->ruled.op;
    const fl_rule_state *s = op->def->rule->state;
    for (int i = 0; i < FL_RULE_STATES && s[i].in; i++) {
        const char *at = fl_desc_in1(&op->desc, s[i].in);
        *state = i;
        if (at && !strcmp(at, name))
            return true;
    }
    *state = FL_TABLE_VALUE;
    return !strcmp(u->ruled.param, name);
}

fl_err fl_update_run_table(fl_update *u)
{
    fl_hyper h;
    FL_TRY(fl_update_step(u, &h));
    return fl_table_apply(u->table, u->sum.n, fl_rows_index(&u->sum),
                          u->sum.value.data, &h);
}
