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
#include "exec/fuse.h"

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

static void remember(fl_plan *plan, fl_value *v)
{
    for (int64_t i = 0; i < plan->outsides.n; i++)
        if (plan->outsides.at[i].value == v)
            return;
    fl_push(&plan->outsides, (fl_outside){.value = v});
}

static fl_value *persistent(fl_plan *plan, const char *name)
{
    fl_value *v = fl_scope_find(plan->scope, name);
    if (!v)
        v = fl_scope_var(fl_scope_root(plan->scope), name);
    remember(plan, v);
    return v;
}

static fl_value *resolve(void *self, const char *name)
{
    fl_unit *u = self;
    for (fl_unit *at = u; at; at = at->parent) {
        const fl_var *v = fl_block_var(at->block, name);
        if (v)
            return v->persistable ? persistent(u->plan, name) : local(at, name);
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

static bool bypassed(const char *type)
{
    return !strcmp(type, "feed") || !strcmp(type, "fetch");
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

static fl_err add_step(fl_unit *u, const fl_desc *d)
{
    fl_plan *plan = u->plan;
    const fl_op_def *def;
    int index = fl_lines_origin(u->block, d);
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
    for (int64_t i = 0; i < l->descs.n; i++)
        if (l->descs.at[i])
            FL_TRY(add_step(u, l->descs.at[i]));
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
    for (int b = 1; b < plan->n_units; b++)
        keep_reads(plan->units[b].block, &l->kept);
    fl_fuse(l);
    fl_map_fini(&l->kept);
}

static fl_err compile_block(fl_plan *plan, int b)
{
    fl_unit *u = &plan->units[b];
    fl_lines l = {.block = u->block, .arena = plan->arena};
    for (int64_t i = 0; i < u->block->ops.n; i++)
        if (!bypassed(u->block->ops.at[i]->desc.type))
            fl_push(&l.descs, &u->block->ops.at[i]->desc);
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

static fl_err open_ports(fl_plan *plan, const fl_feed *feeds,
                         const fl_fetch *fetches)
{
    fl_unit *u = &plan->units[0];
    for (int i = 0; i < plan->n_feeds; i++) {
        fl_port *p = &plan->feeds[i];
        if (port_of(plan->feeds, i, feeds[i].name))
            return fl_fail(FL_EINVAL, "feed \"%s\": it is fed twice",
                           feeds[i].name);
        p->name = fl_arena_strdup(plan->arena, feeds[i].name);
        p->var = fl_block_var(u->block, p->name);
        if (!p->var)
            return fl_fail(FL_ENOENT,
                           "feed \"%s\": the program has no such variable",
                           p->name);
        p->value = resolve(u, p->name);
    }
    for (int i = 0; i < plan->n_fetches; i++) {
        fl_port *p = &plan->fetches[i];
        p->name = fl_arena_strdup(plan->arena, fetches[i].name);
        p->var = fl_block_var(u->block, p->name);
        if (!p->var)
            return fl_fail(FL_ENOENT,
                           "fetch \"%s\": the program has no such variable",
                           p->name);
        p->value = resolve(u, p->name);
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

/* A name that is read before anything can have written it must be fed. */
static fl_err check_reads(const fl_plan *plan)
{
    const fl_block *b = plan->units[0].block;
    fl_map written = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < b->ops.n && !err; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        if (bypassed(d->type))
            continue;
        for (int s = 0; s < d->n_in && !err; s++)
            for (int j = 0; j < d->in[s].n && !err; j++) {
                const char *name = d->in[s].name[j];
                const fl_var *v = fl_block_var(b, name);
                if (!v || v->persistable || fl_map_get(&written, name) ||
                    port_of(plan->feeds, plan->n_feeds, name))
                    continue;
                err = not_fed(plan, name, d, (int)i);
            }
        for (int s = 0; s < d->n_out; s++)
            for (int j = 0; j < d->out[s].n; j++)
                fl_map_put(&written, d->out[s].name[j], (void *)d);
    }
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

static fl_err build(fl_plan *plan, const fl_feed *feeds,
                    const fl_fetch *fetches)
{
    make_units(plan);
    FL_TRY(open_ports(plan, feeds, fetches));
    FL_TRY(check_reads(plan));
    for (int i = plan->n_units - 1; i >= 0; i--)
        FL_TRY(compile_block(plan, i));
    fl_plan_mark(plan);
    return FL_OK;
}

fl_err fl_plan_new(const fl_exec_env *env, const fl_program *p, fl_scope *s,
                   int n_feeds, const fl_feed *feeds, int n_fetches,
                   const fl_fetch *fetches, fl_plan **out)
{
    fl_plan *plan = fl_mem_alloc(sizeof *plan);
    plan->env = *env;
    plan->hooks = (fl_hooks){run_block, draw_entropy, env->disk, env->service};
    plan->program = p;
    plan->program_uid = p->uid;
    plan->program_version = p->version;
    plan->scope = s;
    plan->scope_uid = fl_scope_uid(s);
    plan->scope_changes = fl_scope_changes(s);
    plan->arena = fl_arena_new();
    plan->n_feeds = n_feeds;
    plan->feeds =
        fl_arena_alloc(plan->arena, (size_t)n_feeds * sizeof(fl_port));
    plan->n_fetches = n_fetches;
    plan->fetches =
        fl_arena_alloc(plan->arena, (size_t)n_fetches * sizeof(fl_port));
    fl_err err = build(plan, feeds, fetches);
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
    fl_arena_free(plan->arena);
    fl_mem_free(plan);
}

/* --- fitting --- */

static bool same_name(const char *a, const char *b)
{
    return a == b || !strcmp(a, b);
}

bool fl_plan_stale(const fl_plan *plan, const fl_program *p)
{
    return plan->program_uid == p->uid && plan->program_version != p->version;
}

bool fl_plan_fits(const fl_plan *plan, const fl_program *p, fl_scope *s,
                  int n_feeds, const fl_feed *feeds, int n_fetches,
                  const fl_fetch *fetches)
{
    if (plan->program_uid != p->uid || plan->program_version != p->version ||
        plan->scope_uid != fl_scope_uid(s) ||
        plan->scope_changes != fl_scope_changes(s) ||
        plan->n_feeds != n_feeds || plan->n_fetches != n_fetches)
        return false;
    for (int i = 0; i < n_feeds; i++)
        if (!same_name(plan->feeds[i].name, feeds[i].name))
            return false;
    for (int i = 0; i < n_fetches; i++)
        if (!same_name(plan->fetches[i].name, fetches[i].name))
            return false;
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
