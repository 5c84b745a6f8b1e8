/* plan.c - compile a program.
 *
 * Which value a name stands for: a persistable variable's is in the scope; any
 * other's is a local of the block that declares it, kept by the plan. Sub-
 * blocks are compiled with it and run through a hook by the op that owns them.
 *
 * Easy to get wrong: a step may find its outputs other than it left them, and
 * must then prepare at each run, though nothing from outside has moved
 * (moving.c). */
#include "exec/plan_parts.h"

#include "base/str.h"
#include "exec/away.h"

#include <stdio.h>
#include <string.h>

/* --- names to values --- */

static fl_value *local(fl_unit *u, const char *name)
{
    fl_value *v = fl_map_get(&u->locals, name);
    if (!v) {
        v = fl_arena_alloc(u->plan->arena, sizeof *v);
        fl_map_put(&u->locals, fl_arena_strdup(u->plan->arena, name), v);
    }
    return v;
}

static fl_value *persistent(fl_plan *plan, const fl_var *var)
{
    const char *name = var->name;
    fl_value *v = fl_map_get(&plan->known, name);
    if (v)
        return v;
    v = fl_scope_find(plan->scope, name);
    if (!v)
        v = fl_scope_var(fl_scope_root(plan->scope), name);
    fl_away_stand_in(plan->program->place, var, v);
    fl_map_put(&plan->known, fl_arena_strdup(plan->arena, name), v);
    fl_push(&plan->outsides, (fl_outside){.value = v,
                                          .in_scope = true,
                                          .away = fl_value_is_away(v)});
    return v;
}

static fl_value *resolve(void *self, const char *name)
{
    fl_unit *u = self;
    for (fl_unit *at = u; at; at = at->parent) {
        const fl_var *v = fl_block_var(at->block, name);
        if (v)
            return v->persistable ? persistent(u->plan, v) : local(at, name);
    }
    fl_fail(FL_ENOENT, "variable \"%s\" is not declared in block %d or above",
            name, u->block->idx);
    return NULL;
}

/* --- hooks --- */

static fl_err run_block(fl_call *c, int64_t block)
{
    fl_unit *u = c->runner;
    fl_plan *plan = u->plan;
    if (block < 0 || block >= plan->n_units || !plan->units[block].compiled)
        return fl_fail(FL_EINVAL, "%s: there is no block %lld", c->def->type,
                       (long long)block);
    return fl_unit_run(&plan->units[block], false);
}

static uint64_t draw_entropy(fl_call *c)
{
    fl_unit *u = c->runner;
    fl_entropy *e = u->plan->env.entropy;
    return e->draw(e);
}

fl_site fl_call_site(const fl_call *c)
{
    const fl_unit *u = c->runner;
    return (fl_site){&u->plan->env, u->plan->program, u->plan->scope};
}

/* --- compiling --- */

bool fl_op_bypassed(const fl_op *op)
{
    return !strcmp(op->desc.type, "feed") || !strcmp(op->desc.type, "fetch");
}

/* Is op i of block b one of the plan's? */
static bool takes(const fl_plan *plan, int b, int64_t i)
{
    const fl_op *op = plan->units[b].block->ops.at[i];
    return !fl_op_bypassed(op) && !fl_away_only(op) &&
           (b || !plan->half || plan->half->runs[i]);
}

static bool any_persistable(const fl_unit *u, const fl_desc *d)
{
    for (int i = 0; i < d->n_out; i++)
        for (int j = 0; j < d->out[i].n; j++) {
            const fl_var *v = fl_block_find(u->block, d->out[i].name[j]);
            if (v && v->persistable)
                return true;
        }
    return false;
}

/* Who made the op, where a front wrote it down: "; File ..., line 3: y = x". */
static const char *made_by(const fl_desc *d, char *text, size_t size)
{
    const fl_attr *a = fl_desc_attr(d, "op_callstack");
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; a && a->type == FL_ATTR_STRINGS && i < a->n; i++) {
        const char *line = a->strings[i] + strspn(a->strings[i], " ");
        snprintf(text + used, size - used, "%s%s", i ? ": " : "; ", line);
        used = strlen(text);
    }
    return text;
}

/* What a hidden op says is said by the op that the user knows. */
static fl_err in_name_of(fl_err err, const char *hidden, const char *known)
{
    char sentence[1024];
    const size_t n = strlen(hidden);
    snprintf(sentence, sizeof sentence, "%s", fl_errmsg());
    if (strncmp(sentence, hidden, n) || sentence[n] != ':')
        return err;
    return fl_fail(err, "%s%s", known, sentence + n);
}

fl_err fl_unit_at(fl_err err, const fl_unit *u, const fl_desc *d, int index)
{
    char by[300]; /* a sentence has 1024 bytes */
    const fl_desc *known = &u->block->ops.at[index]->desc;
    if (strcmp(d->type, known->type))
        err = in_name_of(err, d->type, known->type);
    return fl_fail_at(err, "op %d \"%s\" in block %d%s", index, known->type,
                      u->block->idx, made_by(known, by, sizeof by));
}

/* Lines that were not fused stand in the block's order, so one walk finds the
 * place of each: *at is where to go on. */
static int index_of(const fl_unit *u, const fl_desc *d, int64_t *at)
{
    if (d->arena == u->plan->arena) /* the plan's own */
        return (int)fl_desc_int(d, FL_FUSED_FROM, 0);
    while (*at < u->block->ops.n - 1 && &u->block->ops.at[*at]->desc != d)
        ++*at;
    return (int)(*at)++;
}

static fl_err add_step(fl_unit *u, const fl_desc *d, int index)
{
    fl_plan *plan = u->plan;
    const fl_op_def *def;
    fl_err err = fl_registry_get(plan->env.registry, d->type, &def);
    fl_step s = {.index = index};
    if (!err)
        err = fl_frame_init(&s.frame, plan->arena, def, d, &plan->hooks, u,
                            resolve, u);
    if (err)
        return fl_unit_at(err, u, d, index);
    s.frame.call.no_views = any_persistable(u, d);
    fl_push(&u->steps, s);
    return FL_OK;
}

static fl_err compile(fl_unit *u, const fl_lines *l)
{
    fl_watch *w = u->plan->env.watch;
    int64_t at = 0;
    for (int64_t i = 0; i < l->descs.n; i++) {
        const fl_desc *d = l->descs.at[i];
        if (!d)
            continue;
        FL_TRY(w ? fl_watch_ask(w) : FL_OK);
        FL_TRY(add_step(u, d, index_of(u, d, &at)));
    }
    u->compiled = true;
    return FL_OK;
}

static void keep_reads(const fl_block *b, fl_map *kept)
{
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        for (int s = 0; s < d->n_in; s++)
            for (int j = 0; j < d->in[s].n; j++)
                fl_map_put(kept, d->in[s].name[j], kept);
    }
}

/* Only the global block: what others read of it stays as it is. */
static void fuse(const fl_plan *plan, fl_lines *l)
{
    for (int i = 0; i < plan->n_fetches; i++)
        fl_map_put(&l->kept, plan->fetches[i].name, l);
    for (int i = 0; plan->half && i < plan->half->n_kept; i++)
        fl_map_put(&l->kept, plan->half->kept[i], l);
    for (int b = 1; b < plan->n_units; b++)
        keep_reads(plan->units[b].block, &l->kept);
    fl_fuse(l);
    fl_map_fini(&l->kept);
}

/* Where gradients start: with 1, or with a part of it. */
static void scale_seed(const fl_plan *plan, fl_lines *l, const fl_op *op)
{
    const fl_attr *value = fl_desc_attr(&op->desc, "value");
    if (!plan->half || !plan->half->seed_scale || !value ||
        fl_op_role(op) != (FL_ROLE_BACKWARD | FL_ROLE_LOSS))
        return;
    fl_attr scaled = *value;
    scaled.f *= plan->half->seed_scale;
    fl_desc_set_attr(fl_lines_own(l, (int)l->descs.n - 1), &scaled);
}

/* An op that would write what is away is left out; the scope then has a shape
 * in place of its outputs. */
static void stand_in(fl_unit *u, const fl_op *op)
{
    const fl_desc *d = &op->desc;
    for (int i = 0; fl_away_only(op) && i < d->n_out; i++)
        for (int j = 0; j < d->out[i].n; j++) {
            const fl_var *v = fl_block_find(u->block, d->out[i].name[j]);
            if (v && v->persistable)
                persistent(u->plan, v);
        }
}

static fl_err compile_block(fl_plan *plan, int b)
{
    fl_unit *u = &plan->units[b];
    fl_lines l = {.block = u->block, .arena = plan->arena};
    for (int64_t i = 0; i < u->block->ops.n; i++)
        if (takes(plan, b, i)) {
            fl_push(&l.descs, &u->block->ops.at[i]->desc);
            scale_seed(plan, &l, u->block->ops.at[i]);
        } else {
            stand_in(u, u->block->ops.at[i]);
        }
    fl_away_look_up(&l, plan->scope);
    if (b == 0 && !plan->env.no_fuse)
        fuse(plan, &l);
    fl_err err = compile(u, &l);
    fl_vec_fini(&l.descs);
    return err;
}

static const fl_port *port_of(const fl_port *ports, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(ports[i].name, name))
            return &ports[i];
    return NULL;
}

static fl_err open_port(fl_unit *u, const char *what, const char *name,
                        fl_port *p)
{
    p->name = name;
    p->var = fl_block_var(u->block, name);
    if (!p->var)
        return fl_fail(FL_ENOENT, "%s \"%s\": the program has no such variable",
                       what, name);
    p->value = resolve(u, name);
    return FL_OK;
}

static fl_err open_ports(fl_plan *plan)
{
    fl_unit *u = &plan->units[0];
    const fl_key *k = &plan->key;
    for (int i = 0; i < k->n_feeds; i++) {
        if (port_of(plan->feeds, i, k->feeds[i]))
            return fl_fail(FL_EINVAL, "feed \"%s\": it is fed twice",
                           k->feeds[i]);
        FL_TRY(open_port(u, "feed", k->feeds[i], &plan->feeds[i]));
    }
    for (int i = 0; i < k->n_fetches; i++)
        FL_TRY(open_port(u, "fetch", k->fetches[i], &plan->fetches[i]));
    for (int i = 0; i < plan->n_lent; i++) {
        fl_port *p = &plan->lent[i];
        FL_TRY(open_port(u, "lent", plan->half->lent[i], p));
        if (!p->var->persistable)
            fl_push(&plan->outsides, (fl_outside){.value = p->value});
    }
    return FL_OK;
}

static char *fed_names(const fl_plan *plan)
{
    fl_str s = {0};
    for (int i = 0; i < plan->n_feeds; i++)
        fl_str_printf(&s, "%s%s", i ? ", " : "", plan->feeds[i].name);
    return plan->n_feeds ? fl_str_take(&s) : fl_mem_strdup("nothing");
}

static fl_err not_fed(const fl_plan *plan, const char *name, const fl_desc *d,
                      int index)
{
    char *fed = fed_names(plan);
    const fl_err err = fl_fail(FL_ENOENT,
                               "\"%s\" is read, but nothing writes it: feed it "
                               "(fed: %s)",
                               name, fed);
    fl_mem_free(fed);
    return fl_unit_at(err, &plan->units[0], d, index);
}

static fl_err check_op_reads(const fl_plan *plan, int64_t at, fl_map *written)
{
    const fl_block *b = plan->units[0].block;
    const fl_op *op = b->ops.at[at];
    const fl_desc *d = &op->desc;
    const int n_in = op->def->flags & FL_OP_HEARS ? 0 : d->n_in;
    for (int s = 0; s < n_in; s++)
        for (int j = 0; j < d->in[s].n; j++) {
            const char *name = d->in[s].name[j];
            const fl_var *v = fl_block_var(b, name);
            if (v && !v->persistable && !fl_map_get(written, name))
                return not_fed(plan, name, d, (int)at);
        }
    for (int s = 0; s < d->n_out; s++)
        for (int j = 0; j < d->out[s].n; j++)
            fl_map_put(written, d->out[s].name[j], (void *)d);
    return FL_OK;
}

/* A name that is read before anything can have written it must be fed. */
static fl_err check_reads(const fl_plan *plan)
{
    fl_map written = {0};
    fl_err err = FL_OK;
    for (int i = 0; i < plan->n_feeds; i++)
        fl_map_put(&written, plan->feeds[i].name, &plan->feeds[i]);
    for (int i = 0; i < plan->n_lent; i++)
        fl_map_put(&written, plan->lent[i].name, &plan->lent[i]);
    for (int64_t i = 0; i < plan->units[0].block->ops.n && !err; i++)
        if (takes(plan, 0, i))
            err = check_op_reads(plan, i, &written);
    fl_map_fini(&written);
    return err;
}

static void make_units(fl_plan *plan)
{
    plan->n_units = (int)plan->program->blocks.n;
    plan->units =
        fl_arena_alloc(plan->arena, (size_t)plan->n_units * sizeof(fl_unit));
    for (int i = 0; i < plan->n_units; i++) {
        fl_unit *u = &plan->units[i];
        u->plan = plan;
        u->block = plan->program->blocks.at[i];
        u->parent =
            u->block->parent < 0 ? NULL : &plan->units[u->block->parent];
    }
}

static fl_err build(fl_plan *plan)
{
    make_units(plan);
    FL_TRY(open_ports(plan));
    FL_TRY(check_reads(plan));
    for (int i = plan->n_units - 1; i >= 0; i--)
        FL_TRY(compile_block(plan, i));
    fl_plan_mark(plan);
    return FL_OK;
}

static fl_port *make_ports(fl_plan *plan, int n)
{
    return fl_arena_alloc(plan->arena, (size_t)n * sizeof(fl_port));
}

fl_err fl_plan_new(const fl_exec_env *env, const fl_order *o,
                   const fl_half *half, fl_plan **out)
{
    fl_plan *plan = fl_mem_alloc(sizeof *plan);
    plan->env = *env;
    plan->hooks = (fl_hooks){run_block, draw_entropy, env->disk, env->service};
    plan->program = o->program;
    plan->scope = o->scope;
    plan->half = half;
    plan->arena = fl_arena_new();
    plan->key = fl_key_of(o, plan->arena);
    plan->n_feeds = o->n_feeds;
    plan->feeds = make_ports(plan, plan->n_feeds);
    plan->n_fetches = o->n_fetches;
    plan->fetches = make_ports(plan, plan->n_fetches);
    plan->n_lent = half ? half->n_lent : 0;
    plan->lent = make_ports(plan, plan->n_lent);
    fl_err err = build(plan);
    if (err) {
        fl_plan_free(plan);
        return err;
    }
    *out = plan;
    return FL_OK;
}

static void free_unit(fl_unit *u)
{
    for (int64_t i = 0; i < u->steps.n; i++)
        fl_frame_fini(&u->steps.at[i].frame);
    fl_vec_fini(&u->steps);
    for (fl_entry *e = NULL; (e = fl_map_next(&u->locals, e));)
        fl_value_fini(e->value);
    fl_map_fini(&u->locals);
}

void fl_plan_free(fl_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->n_units; i++)
        free_unit(&plan->units[i]);
    for (int i = 0; i < plan->n_feeds; i++)
        fl_lod_fini(&plan->feeds[i].spare);
    fl_vec_fini(&plan->outsides);
    fl_map_fini(&plan->known);
    fl_arena_free(plan->arena);
    fl_mem_free(plan);
}

fl_value *fl_plan_value(fl_plan *plan, const char *name)
{
    return resolve(&plan->units[0], name);
}

const fl_key *fl_plan_key(const fl_plan *plan)
{
    return &plan->key;
}

bool fl_plan_stands(const fl_plan *plan)
{
    for (int64_t i = 0; i < plan->outsides.n; i++) {
        const fl_outside *o = &plan->outsides.at[i];
        if (o->in_scope && fl_value_is_away(o->value) != o->away)
            return false;
    }
    return true;
}

char *fl_plan_text(const fl_plan *plan)
{
    fl_str s = {0};
    for (int b = 0; b < plan->n_units; b++)
        for (int64_t i = 0; i < plan->units[b].steps.n; i++)
            fl_str_printf(&s, "%d %s\n", b,
                          plan->units[b].steps.at[i].frame.desc->type);
    return fl_str_take(&s);
}
