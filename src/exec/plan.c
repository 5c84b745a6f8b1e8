/* plan.c - compile a program, run the plan.
 *
 * Which value a name stands for: a persistable variable's is in the scope; any
 * other's is a local of the block that declares it, kept by the plan. Sub-
 * blocks are compiled with it and run through a hook by the op that owns them.
 *
 * Easy to get wrong: an op whose output shapes depend on values (FL_OP_DYNAMIC)
 * makes every op behind it prepare at each run, since their shapes may move
 * though nothing from outside has. */
#include "exec/plan.h"

#include "base/str.h"
#include "exec/fuse.h"

#include <string.h>

typedef struct step {
    fl_frame frame;
    int index;   /* of the op in its block, for sentences; -1: fused */
    bool moving; /* shapes may change from run to run */
} step;

/* One block of the program. */
typedef struct unit {
    fl_plan *plan;
    const fl_block *block;
    struct unit *parent;
    fl_map locals; /* name -> fl_value */
    FL_VEC(step) steps;
    bool compiled;
} unit;

/* A value that comes into the run from outside, as it was the last time. */
typedef struct outside {
    fl_value *value;
    fl_kind kind;
    fl_dtype dtype;
    fl_shape shape;
} outside;

typedef struct port { /* a feed or a fetch */
    const char *name;
    fl_value *value;
    const fl_var *var;
} port;

struct fl_plan {
    fl_exec_env env;
    fl_hooks hooks;
    const fl_program *program;
    uint64_t program_uid, program_version;
    fl_scope *scope;
    uint64_t scope_uid, scope_changes;
    fl_arena *arena;
    unit *units; /* by block */
    int n_units;
    port *feeds, *fetches;
    int n_feeds, n_fetches;
    FL_VEC(outside) outsides;
    bool settled; /* the last run prepared everything and went well */
};

/* --- names to values --- */

static fl_value *local(unit *u, const char *name)
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
    fl_push(&plan->outsides, (outside){.value = v});
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
    unit *u = self;
    for (unit *at = u; at; at = at->parent) {
        const fl_var *v = fl_block_var(at->block, name);
        if (v)
            return v->persistable ? persistent(u->plan, name) : local(at, name);
    }
    fl_fail(FL_ENOENT, "variable \"%s\" is not declared in block %d or above",
            name, u->block->idx);
    return NULL;
}

/* --- hooks --- */

static fl_err run_unit(unit *u, bool settled);

static fl_err run_block(fl_call *c, int64_t block)
{
    unit *u = c->runner;
    fl_plan *plan = u->plan;
    if (block < 0 || block >= plan->n_units || !plan->units[block].compiled)
        return fl_fail(FL_EINVAL, "%s: there is no block %lld", c->def->type,
                       (long long)block);
    return run_unit(&plan->units[block], false);
}

static uint64_t draw_entropy(fl_call *c)
{
    unit *u = c->runner;
    fl_entropy *e = u->plan->env.entropy;
    return e->draw(e);
}

/* --- compiling --- */

static bool bypassed(const char *type)
{
    return !strcmp(type, "feed") || !strcmp(type, "fetch");
}

static bool any_persistable(const unit *u, const fl_desc *d)
{
    for (int i = 0; i < d->n_out; i++)
        for (int j = 0; j < d->out[i].n; j++) {
            const fl_var *v = fl_block_find(u->block, d->out[i].name[j]);
            if (v && v->persistable)
                return true;
        }
    return false;
}

static fl_err at_op(fl_err err, const unit *u, const fl_desc *d, int index)
{
    if (index < 0)
        return fl_fail_at(err, "fused op \"%s\" in block %d", d->type,
                          u->block->idx);
    return fl_fail_at(err, "op %d \"%s\" in block %d", index, d->type,
                      u->block->idx);
}

static int index_of(const unit *u, const fl_desc *d)
{
    for (int64_t i = 0; i < u->block->ops.n; i++)
        if (&u->block->ops.at[i]->desc == d)
            return (int)i;
    return -1;
}

static fl_err add_step(unit *u, const fl_desc *d)
{
    fl_plan *plan = u->plan;
    const fl_op_def *def;
    int index = index_of(u, d);
    fl_err err = fl_registry_get(plan->env.registry, d->type, &def);
    step s = {.index = index};
    if (!err)
        err = fl_frame_init(&s.frame, plan->arena, def, d, &plan->hooks, u,
                            resolve, u);
    if (err)
        return at_op(err, u, d, index);
    s.frame.call.no_views = any_persistable(u, d);
    fl_push(&u->steps, s);
    return FL_OK;
}

static bool in_list(fl_value **values, int n, fl_value *const *set,
                    int64_t n_set)
{
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; j < n_set; j++)
            if (values[i] && values[i] == set[j])
                return true;
    return false;
}

/* Mark the steps whose shapes may move while nothing outside does. */
static void mark_moving(unit *u)
{
    FL_VEC(fl_value *) moved = {0};
    for (int64_t i = 0; i < u->steps.n; i++) {
        step *s = &u->steps.at[i];
        fl_call *c = &s->frame.call;
        s->moving = c->def->flags & FL_OP_DYNAMIC;
        for (int k = 0; k < FL_SLOTS && !s->moving; k++)
            s->moving = in_list(c->in[k], c->n_in[k], moved.at, moved.n);
        if (!s->moving)
            continue;
        for (int k = 0; k < FL_SLOTS; k++)
            for (int j = 0; j < c->n_out[k]; j++)
                if (c->out[k][j])
                    fl_push(&moved, c->out[k][j]);
    }
    fl_vec_fini(&moved);
}

static fl_err compile(unit *u, const fl_lines *l)
{
    for (int64_t i = 0; i < l->descs.n; i++)
        if (l->descs.at[i])
            FL_TRY(add_step(u, l->descs.at[i]));
    mark_moving(u);
    u->compiled = true;
    return FL_OK;
}

static fl_err compile_block(fl_plan *plan, int b)
{
    unit *u = &plan->units[b];
    fl_lines l = {.block = u->block, .arena = plan->arena};
    const char **kept =
        fl_arena_alloc(plan->arena, (size_t)plan->n_fetches * sizeof *kept);
    for (int i = 0; i < plan->n_fetches; i++)
        kept[i] = plan->fetches[i].name;
    l.kept = kept;
    l.n_kept = plan->n_fetches;
    for (int64_t i = 0; i < u->block->ops.n; i++)
        if (!bypassed(u->block->ops.at[i]->desc.type))
            fl_push(&l.descs, &u->block->ops.at[i]->desc);
    if (b == 0 && !plan->env.no_fuse && plan->n_units == 1)
        fl_fuse(&l);
    fl_err err = compile(u, &l);
    fl_vec_fini(&l.descs);
    return err;
}

static fl_err open_ports(fl_plan *plan, const fl_feed *feeds,
                         const fl_fetch *fetches)
{
    unit *u = &plan->units[0];
    for (int i = 0; i < plan->n_feeds; i++) {
        port *p = &plan->feeds[i];
        p->name = fl_arena_strdup(plan->arena, feeds[i].name);
        p->var = fl_block_var(u->block, p->name);
        if (!p->var)
            return fl_fail(FL_ENOENT,
                           "feed \"%s\": the program has no such variable",
                           p->name);
        p->value = resolve(u, p->name);
        p->value->kind = FL_LOD_TENSOR;
    }
    for (int i = 0; i < plan->n_fetches; i++) {
        port *p = &plan->fetches[i];
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

static bool is_fed(const fl_plan *plan, const char *name)
{
    for (int i = 0; i < plan->n_feeds; i++)
        if (!strcmp(plan->feeds[i].name, name))
            return true;
    return false;
}

static char *fed_names(const fl_plan *plan)
{
    fl_str s = {0};
    for (int i = 0; i < plan->n_feeds; i++)
        fl_str_printf(&s, "%s%s", i ? ", " : "", plan->feeds[i].name);
    return plan->n_feeds ? fl_str_take(&s) : fl_mem_strdup("nothing");
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
                    is_fed(plan, name))
                    continue;
                char *fed = fed_names(plan);
                err = fl_fail(FL_ENOENT,
                              "\"%s\" is read by op %lld \"%s\" but nothing "
                              "writes it: feed it (fed: %s)",
                              name, (long long)i, d->type, fed);
                fl_mem_free(fed);
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
        fl_arena_alloc(plan->arena, (size_t)plan->n_units * sizeof(unit));
    for (int i = 0; i < plan->n_units; i++) {
        unit *u = &plan->units[i];
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
    plan->feeds = fl_arena_alloc(plan->arena, (size_t)n_feeds * sizeof(port));
    plan->n_fetches = n_fetches;
    plan->fetches =
        fl_arena_alloc(plan->arena, (size_t)n_fetches * sizeof(port));
    fl_err err = build(plan, feeds, fetches);
    if (err) {
        fl_plan_free(plan);
        return err;
    }
    *out = plan;
    return FL_OK;
}

static void free_unit(unit *u)
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

/* --- running --- */

static bool fits_var(const fl_tensor *t, const fl_var *v)
{
    if (t->dtype != v->dtype || t->shape.rank != v->shape.rank)
        return false;
    for (int i = 0; i < t->shape.rank; i++)
        if (v->shape.dim[i] != -1 && v->shape.dim[i] != t->shape.dim[i])
            return false;
    return true;
}

static fl_err check_feed(const port *p, const fl_tensor *t)
{
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    if (!t->data)
        return fl_fail(FL_EINVAL, "feed \"%s\": the tensor has no memory",
                       p->name);
    if (!fits_var(t, p->var))
        return fl_fail(FL_ESHAPE, "feed \"%s\" is %s%s, expected %s%s", p->name,
                       fl_dtype_name(t->dtype), fl_shape_text(&t->shape, got),
                       fl_dtype_name(p->var->dtype),
                       fl_shape_text(&p->var->shape, want));
    if (t->lod.levels)
        FL_TRY(fl_lod_check(&t->lod, t->shape.rank ? t->shape.dim[0] : 1));
    return FL_OK;
}

/* The fed tensor lends its memory for the run; its LoD is copied if new.
 * *moved: the shape or the LoD differs from the last run's. */
static fl_err take_feed(const port *p, const fl_tensor *t, bool *moved)
{
    fl_tensor *mine = &p->value->tensor;
    FL_TRY(check_feed(p, t));
    if (mine->buf) { /* a persistable variable may be fed: it owned memory */
        fl_buf_unref(mine->buf);
        mine->buf = NULL;
    }
    if (!fl_shape_equal(&mine->shape, &t->shape))
        *moved = true;
    mine->dtype = t->dtype;
    mine->shape = t->shape;
    mine->data = t->data;
    if (!fl_lod_equal(&mine->lod, &t->lod)) {
        *moved = true;
        FL_TRY(fl_lod_copy(&mine->lod, &t->lod));
    }
    return FL_OK;
}

/* Memory of a feed is the caller's: let go of it when the run is over. */
static fl_err drop_feeds(fl_plan *plan)
{
    for (int i = 0; i < plan->n_feeds; i++) {
        fl_tensor *t = &plan->feeds[i].value->tensor;
        if (t->buf || !t->data)
            continue;
        if (plan->feeds[i].var->persistable)
            FL_TRY(fl_tensor_unique(t));
        else
            t->data = NULL;
    }
    return FL_OK;
}

/* Shapes of what the scope holds, against the last run's. */
static bool outside_moved(fl_plan *plan)
{
    bool moved = false;
    for (int64_t i = 0; i < plan->outsides.n; i++) {
        outside *o = &plan->outsides.at[i];
        const fl_value *v = o->value;
        const fl_tensor *t =
            v->kind == FL_SELECTED_ROWS ? &v->rows.value : &v->tensor;
        if (o->kind == v->kind && o->dtype == t->dtype &&
            fl_shape_equal(&o->shape, &t->shape))
            continue;
        *o = (outside){o->value, v->kind, t->dtype, t->shape};
        moved = true;
    }
    return moved;
}

static fl_err run_unit(unit *u, bool settled)
{
    for (int64_t i = 0; i < u->steps.n; i++) {
        step *s = &u->steps.at[i];
        fl_err err = FL_OK;
        if (!settled || s->moving)
            err = fl_frame_prepare(&s->frame);
        if (!err)
            err = fl_frame_run(&s->frame);
        if (err)
            return at_op(err, u, s->frame.desc, s->index);
    }
    return FL_OK;
}

static fl_err give_fetch(const port *p, fl_fetch *f)
{
    if (p->value->kind == FL_SELECTED_ROWS)
        return fl_fail(FL_EINVAL,
                       "fetch \"%s\": it holds selected rows, no tensor; "
                       "fetch the output of get_tensor_from_selected_rows",
                       p->name);
    if (p->value->kind != FL_LOD_TENSOR || !p->value->tensor.data)
        return fl_fail(FL_ENOENT, "fetch \"%s\": nothing has written it",
                       p->name);
    return fl_tensor_copy(&f->tensor, &p->value->tensor);
}

static fl_err run_all(fl_plan *plan, const fl_feed *feeds, fl_fetch *fetches)
{
    bool moved = !plan->settled;
    plan->settled = false;
    for (int i = 0; i < plan->n_feeds; i++)
        FL_TRY(take_feed(&plan->feeds[i], &feeds[i].tensor, &moved));
    if (outside_moved(plan))
        moved = true;
    FL_TRY(run_unit(&plan->units[0], !moved));
    for (int i = 0; i < plan->n_fetches; i++)
        FL_TRY(give_fetch(&plan->fetches[i], &fetches[i]));
    plan->settled = true;
    return FL_OK;
}

fl_err fl_plan_run(fl_plan *plan, const fl_feed *feeds, fl_fetch *fetches)
{
    fl_err err = run_all(plan, feeds, fetches);
    fl_err dropped = drop_feeds(plan);
    return err ? err : dropped;
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
