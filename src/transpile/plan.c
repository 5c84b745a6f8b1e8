/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - decides which op runs where, and which server holds which rows.
 *
 * Servers run the ops with the role optimize, parameter by parameter, and the
 * ops that compute learning rates. A parameter is split by rows if it is large
 * and all its update ops work element by element. A norm, or an unknown op,
 * needs the whole parameter. (Fluid always splits, so that a norm is that of a
 * slice.) */
#include "base/endpoint.h"
#include "base/shuffle.h"
#include "base/str.h"
#include "kernel/rule.h"
#include "transpile/transpile.h"

#include <ctype.h>

enum {
    MIN_BLOCK = 8192, /* elements of a slice, at least; Fluid's default */
};

/* --- options --- */

static fl_err check_opts(const fl_transpile_opts *o)
{
    if (o->enable_dc_asgd || o->geo_sgd_mode)
        return fl_fail(FL_EINVAL, "transpile: %s is not supported yet",
                       o->geo_sgd_mode ? "geo_sgd_mode" : "enable_dc_asgd");
    if (o->trainers < 0)
        return fl_fail(FL_EINVAL,
                       "transpile: trainers is %d, expected 1 or more",
                       o->trainers);
    if (o->trainer_id < 0 ||
        (o->trainers ? o->trainer_id >= o->trainers : o->trainer_id > 0))
        return fl_fail(FL_EINVAL,
                       "transpile: trainer_id is %d, but there are %d trainers",
                       o->trainer_id, o->trainers ? o->trainers : 1);
    if (o->dense_servers < 0)
        return fl_fail(FL_EINVAL,
                       "transpile: dense_servers is %d, expected 0 or more",
                       o->dense_servers);
    if (o->min_block_size < 0)
        return fl_fail(FL_EINVAL,
                       "transpile: min_block_size is %lld, expected 0 or more",
                       (long long)o->min_block_size);
    if (o->split_method && strcmp(o->split_method, "RoundRobin") &&
        strcmp(o->split_method, "HashName"))
        return fl_fail(FL_EINVAL,
                       "transpile: split_method is \"%s\", expected "
                       "\"RoundRobin\" or \"HashName\"",
                       o->split_method);
    return FL_OK;
}

static fl_err fail_unset(const fl_cut *c, const char *server, const char *part,
                         const char *variable)
{
    return fl_fail(FL_EINVAL,
                   "transpile: server \"%s\" has no %s (pservers is \"%s\"), "
                   "expected host:port; is %s set?",
                   server, part, c->opts.pservers, variable);
}

static fl_err add_server(fl_cut *c, const char *text, size_t n)
{
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    const char *name = fl_arena_printf(c->arena, "%.*s", (int)n, text);
    if (!*name)
        return FL_OK; /* two commas in a row are allowed */
    /* Scripts join host and port from two variables. A variable that is not set
     * becomes "" or Python's None. */
    if (*name == ':' || fl_starts_with(name, "None:"))
        return fail_unset(c, name, "host", "PADDLE_PSERVER_IPS");
    if (fl_ends_with(name, ":") || fl_ends_with(name, ":None"))
        return fail_unset(c, name, "port", "PADDLE_PSERVER_PORT");
    FL_TRY(fl_endpoint_check(name, "transpile: server "));
    for (int i = 0; i < c->n_servers; i++)
        if (!strcmp(c->servers[i], name))
            return fl_fail(FL_EINVAL,
                           "transpile: server %s is listed twice (servers on "
                           "one host need different ports; a script with one "
                           "PADDLE_PSERVER_PORT for all needs --server_num 1)",
                           name);
    c->servers[c->n_servers++] = name;
    return FL_OK;
}

static fl_err read_servers(fl_cut *c)
{
    const char *at = c->opts.pservers ? c->opts.pservers : "";
    c->servers = fl_arena_alloc(c->arena, (strlen(at) + 1) * sizeof(char *));
    while (*at) {
        at += strspn(at, " \t\n");
        const size_t n = strcspn(at, ",");
        FL_TRY(add_server(c, at, n));
        at += n + (at[n] == ',');
    }
    if (!c->n_servers)
        return fl_fail(FL_EINVAL, "transpile: pservers is empty, expected "
                                  "host:port,host:port");
    return FL_OK;
}

/* --- which op runs where --- */

const char *fl_cut_role_var(const fl_op *op, int i)
{
    const fl_attr *a = fl_desc_attr(&op->desc, "op_role_var");
    return a && a->type == FL_ATTR_STRINGS && i < a->n ? a->strings[i] : NULL;
}

bool fl_cut_is_joint(const fl_op *op)
{
    const fl_attr *scope = fl_desc_attr(&op->desc, "op_namescope");
    const char *type = op->desc.type;
    return fl_op_role(op) == FL_ROLE_OPTIMIZE && scope && scope->s &&
           strstr(scope->s, "gradient_clip") && strcmp(type, "clip") &&
           strcmp(type, "clip_by_norm");
}

bool fl_cut_is_rate_op(const fl_op *op)
{
    const int role = fl_op_role(op);
    return role == FL_ROLE_LR || role == (FL_ROLE_LR | FL_ROLE_OPTIMIZE);
}

static fl_err sort_ops(fl_cut *c)
{
    const fl_block *b = fl_program_block(c->main, 0);
    for (int64_t i = 0; i < b->ops.n; i++) {
        fl_op *op = b->ops.at[i];
        if (!strcmp(op->desc.type, "send") ||
            !strcmp(op->desc.type, "listen_and_serv"))
            return fl_fail(
                FL_EINVAL,
                "transpile: the program was transpiled before (op %lld is a "
                "%s); transpile the program that minimize was called on",
                (long long)i, op->desc.type);
        if (fl_cut_is_rate_op(op))
            fl_push(&c->rates, op);
        if (fl_op_role(op) != FL_ROLE_OPTIMIZE || fl_cut_is_joint(op))
            continue;
        if (!fl_cut_role_var(op, 1))
            return fl_fail(
                FL_EINVAL,
                "transpile: op %lld \"%s\" has the role of an optimiser, but "
                "its op_role_var does not name a parameter and a gradient",
                (long long)i, op->desc.type);
        fl_push(&c->updates, op);
    }
    return FL_OK;
}

/* --- parameters --- */

static bool is_listed(const fl_cut *c, const char *param)
{
    for (int i = 0; i < c->opts.n_params; i++)
        if (!strcmp(c->opts.params[i], param))
            return true;
    return !c->opts.n_params;
}

static fl_err add_share(fl_cut *c, const fl_op *op, const fl_var *param)
{
    fl_share *s = fl_arena_alloc(c->arena, sizeof *s);
    fl_var *grad;
    if (!is_listed(c, param->name))
        return fl_fail(
            FL_EINVAL,
            "transpile: op \"%s\" updates \"%s\", which params_grads "
            "does not list",
            op->desc.type, param->name);
    FL_TRY(fl_block_get(param->block, fl_cut_role_var(op, 1), &grad));
    *s = (fl_share){param, grad, .sparse = grad->kind == FL_SELECTED_ROWS};
    fl_push(&c->shares, s);
    return FL_OK;
}

/* List the parameters in the order of their update ops. The first update op of
 * a parameter names its gradient. */
static fl_err find_shares(fl_cut *c)
{
    fl_block *b = fl_program_block(c->main, 0);
    fl_map seen = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < c->updates.n && !err; i++) {
        const char *name = fl_cut_role_var(c->updates.at[i], 0);
        fl_var *param = NULL;
        if (fl_map_get(&seen, name))
            continue;
        fl_map_put(&seen, name, b);
        err = fl_block_get(b, name, &param);
        if (!err && (!param->param || param->param->trainable))
            err = add_share(c, c->updates.at[i], param);
    }
    for (int i = 0; i < c->opts.n_params && !err; i++)
        if (!fl_map_get(&seen, c->opts.params[i]))
            err = fl_fail(FL_EINVAL,
                          "transpile: params_grads lists \"%s\", which no op "
                          "updates",
                          c->opts.params[i]);
    fl_map_fini(&seen);
    if (!err && !c->shares.n)
        err = fl_fail(FL_EINVAL, "transpile: no op of the program updates a "
                                 "parameter; call minimize first");
    return err;
}

/* Whether only lookups in the global block that may ask servers use the
 * parameter. */
static bool is_remote(const fl_cut *c, const fl_share *s)
{
    const char *name = s->param->name;
    bool any = false;
    for (int64_t i = 0; i < c->main->blocks.n; i++) {
        const fl_block *b = c->main->blocks.at[i];
        for (int64_t k = 0; k < b->ops.n; k++) {
            const fl_op *op = b->ops.at[k];
            const fl_attr *remote = fl_desc_attr(&op->desc, "remote_prefetch");
            if (fl_op_role(op) & FL_ROLE_OPTIMIZE ||
                (!fl_desc_reads(&op->desc, name) &&
                 !fl_desc_writes(&op->desc, name)) ||
                !strcmp(op->desc.type, "lookup_table_grad"))
                continue;
            if (i || strcmp(op->desc.type, "lookup_table") || !remote ||
                !remote->b)
                return false;
            any = true;
        }
    }
    return any && s->sparse;
}

/* --- slices --- */

/* Whether each slice of the op's output is computed from the same slices of its
 * inputs. This is true of an update rule unless it is `whole`. */
static bool works_by_element(const fl_op_def *def)
{
    return def->rule ? !def->rule->whole : def->flags & FL_OP_BY_ELEMENT;
}

static bool may_be_cut(const fl_cut *c, const fl_share *s)
{
    if (c->opts.no_slices)
        return false;
    for (int64_t i = 0; i < c->updates.n; i++)
        if (!strcmp(fl_cut_role_var(c->updates.at[i], 0), s->param->name) &&
            !works_by_element(c->updates.at[i]->def))
            return false;
    return true;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Whether an update op of the parameter writes the learning rate of another
 * one. */
static bool makes_rate(const fl_cut *c, const fl_share *s)
{
    for (int64_t i = 0; i < c->updates.n; i++) {
        const fl_op *op = c->updates.at[i];
        if (strcmp(fl_cut_role_var(op, 0), s->param->name))
            continue;
        for (int64_t k = 0; k < c->updates.n; k++) {
            const char *rate =
                fl_desc_in1(&c->updates.at[k]->desc, "LearningRate");
            if (rate && fl_desc_writes(&op->desc, rate))
                return true;
        }
    }
    return false;
}

/* Every server gets a copy of the whole parameter. */
static void copy_share(fl_cut *c, fl_share *s)
{
    s->n = c->n_servers;
    s->slice = fl_arena_alloc(c->arena, (size_t)s->n * sizeof *s->slice);
    for (int i = 0; i < s->n; i++) {
        fl_slice *p = &s->slice[i];
        *p = (fl_slice){s, s->param->name, s->grad->name, .server = i};
        p->shape = s->param->shape;
        p->sent = fl_cut_sums(c) ? fl_arena_printf(c->arena, "%s.trainer_%d",
                                                   p->grad, c->opts.trainer_id)
                                 : p->grad;
    }
}

static const char *slice_name(fl_cut *c, const char *of, int i, int n)
{
    return n == 1 ? of : fl_arena_printf(c->arena, "%s.block%d", of, i);
}

/* The servers that may hold slices of a parameter: *n servers, beginning with
 * *first. */
static void servers_for(const fl_cut *c, const fl_share *s, int *first, int *n)
{
    const int dense = c->opts.dense_servers;
    const bool apart = dense > 0 && dense < c->n_servers;
    *first = apart && s->sparse ? dense : 0;
    *n = !apart ? c->n_servers : s->sparse ? c->n_servers - dense : dense;
}

static void cut_share(fl_cut *c, fl_share *s)
{
    const fl_shape *shape = &s->param->shape;
    const int64_t n = fl_shape_numel(shape);
    const int64_t width = fl_shape_span(shape, 1, shape->rank);
    const int64_t most = n / c->opts.min_block_size;
    int first, servers;
    servers_for(c, s, &first, &servers);
    int64_t k = may_be_cut(c, s) ? servers : 1;
    k = k < most ? k : most > 1 ? most : 1;
    int64_t rows = width ? ceil_div(ceil_div(n, k), width) : shape->dim[0];
    rows = rows ? rows : 1;
    s->n = n ? (int)ceil_div(shape->dim[0], rows) : 1;
    s->slice = fl_arena_alloc(c->arena, (size_t)s->n * sizeof *s->slice);
    for (int i = 0; i < s->n; i++) {
        fl_slice *p = &s->slice[i];
        const int64_t left = shape->dim[0] - i * rows;
        *p = (fl_slice){s, slice_name(c, s->param->name, i, s->n),
                        slice_name(c, s->grad->name, i, s->n)};
        p->row = i * rows;
        p->shape = *shape;
        p->shape.dim[0] = left < rows ? left : rows;
        p->sent = fl_cut_sums(c) ? fl_arena_printf(c->arena, "%s.trainer_%d",
                                                   p->grad, c->opts.trainer_id)
                                 : p->grad;
    }
}

/* --- placement --- */

typedef FL_VEC(fl_slice *) slices;

/* FNV-1a. Unlike Python's hash it gives the same number on every host. */
static uint32_t hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static int find_server(const fl_cut *c, const char *endpoint)
{
    for (int i = 0; endpoint && i < c->n_servers; i++)
        if (!strcmp(c->servers[i], endpoint))
            return i;
    return -1;
}

static fl_err ask_dispatcher(fl_cut *c, const slices *all)
{
    const fl_dispatcher *d = c->opts.dispatcher;
    const size_t size = (size_t)all->n * sizeof(char *);
    const char **names = fl_arena_alloc(c->arena, size);
    const char **chosen = fl_arena_alloc(c->arena, size);
    for (int64_t i = 0; i < all->n; i++)
        names[i] = all->at[i]->param;
    FL_TRY(d->dispatch(d->user, (int)all->n, names, chosen));
    for (int64_t i = 0; i < all->n; i++) {
        all->at[i]->server = find_server(c, chosen[i]);
        if (all->at[i]->server < 0)
            return fl_fail(FL_EINVAL,
                           "transpile: the dispatcher puts \"%s\" on \"%s\", "
                           "which is not among the servers",
                           names[i], chosen[i] ? chosen[i] : "");
    }
    return FL_OK;
}

static fl_err assign_servers(fl_cut *c)
{
    const bool hash =
        c->opts.split_method && !strcmp(c->opts.split_method, "HashName");
    slices all = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < c->shares.n; i++) {
        fl_share *s = c->shares.at[c->order[i]];
        for (int k = 0; k < s->n && !s->common; k++)
            fl_push(&all, &s->slice[k]);
    }
    uint32_t turn[2] = {
        0, 0}; /* position of the round robin, for each kind of server */
    for (int64_t i = 0; i < all.n; i++) {
        fl_slice *p = all.at[i];
        int first, n;
        servers_for(c, p->of, &first, &n);
        p->server =
            first + (int)((hash ? hash_name(p->param) : turn[first > 0]++) %
                          (uint32_t)n);
    }
    if (c->opts.dispatcher)
        err = ask_dispatcher(c, &all);
    fl_vec_fini(&all);
    return err;
}

static void set_order(fl_cut *c)
{
    const int n = (int)c->shares.n;
    c->order = fl_arena_alloc(c->arena, ((size_t)n + 1) * sizeof *c->order);
    for (int i = 0; i < n; i++)
        c->order[i] = i;
    if (c->opts.no_slices)
        fl_shuffle((uint32_t)c->main->random_seed, n, c->order);
}

fl_err fl_cut_plan(fl_cut *c)
{
    FL_TRY(check_opts(&c->opts));
    c->opts.trainers = c->opts.trainers ? c->opts.trainers : 1;
    if (!c->opts.min_block_size)
        c->opts.min_block_size = MIN_BLOCK;
    FL_TRY(read_servers(c));
    FL_TRY(sort_ops(c));
    FL_TRY(find_shares(c));
    FL_TRY(fl_table_find(c));
    for (int64_t i = 0; i < c->shares.n; i++) {
        fl_share *s = c->shares.at[i];
        s->remote = is_remote(c, s);
        s->common = makes_rate(c, s);
        if (s->common)
            copy_share(c, s);
        else
            cut_share(c, s);
    }
    set_order(c);
    return assign_servers(c);
}
