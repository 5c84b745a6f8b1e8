/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - a program compiled for one scope and one set of feeds and fetches.
 *
 * Which value a name stands for: the value of a persistable variable is in the
 * scope; any other is a local of the block that declares it, owned by the plan.
 * Sub-blocks are compiled with the plan and run through a hook by the op that
 * owns them.
 *
 * A run: the plan uses the memory of the feeds, steps run in order, fetches are
 * copied out.
 * External values are compared with those of the last run: if no shape and no
 * LoD has changed, no shape is inferred and no memory is sized.
 *
 * Easy to get wrong: a step's outputs may have been changed since the step last
 * ran. Such a step must infer its shapes at each run, although no external
 * value has changed ("steps that infer again"). */
#include "exec/plan.h"

#include "base/str.h"
#include "exec/absent.h"
#include "exec/fuse.h"
#include "exec/regions.h"

#include <stdio.h>
#include <string.h>

typedef struct step {
    fl_frame frame;
    int index;   /* position of the op in its block, for error messages */
    bool infers; /* shapes are inferred at every run, not only when an external
                    value has another shape */
} step;

/* One block of the program, compiled. */
typedef struct unit {
    fl_plan *plan;
    const fl_block *block;
    struct unit *parent;
    fl_map locals; /* name -> fl_value */
    FL_VEC(step) steps;
    bool compiled;
} unit;

/* A value that exists before the run, and its shape at the last run. */
typedef struct external {
    fl_value *value;
    fl_kind kind;
    fl_dtype dtype;
    fl_shape shape;
    int lod_levels;
    bool in_scope;          /* the value belongs to the scope */
    bool absent_at_compile; /* the value had no memory when the plan was
                               compiled; a change makes the plan stale */
} external;

typedef struct port { /* a feed or a fetch */
    const char *name;
    fl_value *value;
    const fl_var *var;
    fl_lod spare; /* memory for the LoD of the next feed */
} port;

struct fl_plan {
    fl_exec_env env;
    fl_hooks hooks;
    const fl_program *program;
    fl_scope *scope;
    const fl_plan_part *part; /* NULL: the whole program */
    bool kept; /* large start values are not made: fl_exec_env's `kept` */
    fl_arena *arena;
    fl_key key;
    unit *units; /* one for each block */
    int n_units;
    port *feeds, *fetches, *lent;
    int n_feeds, n_fetches, n_lent;
    fl_tensor *ahead; /* by feed: the tensor of fl_plan_look_ahead */
    fl_map known;     /* persistable name -> fl_value */
    FL_VEC(external) externals;
    fl_regions regions;     /* memory of temporaries */
    fl_workspace workspace; /* memory of kernels */
    bool settled; /* the last run succeeded, so shapes and memory are set */
};

/* --- keys --- */

fl_key fl_key_of(const fl_request *o, fl_arena *a)
{
    fl_key k = {.program_uid = o->program->uid,
                .program_version = o->program->version,
                .scope_uid = fl_scope_uid(o->scope),
                .scope_changes = fl_scope_changes(o->scope),
                .n_feeds = o->n_feeds,
                .n_fetches = o->n_fetches};
    k.feeds = fl_arena_alloc(a, (size_t)k.n_feeds * sizeof *k.feeds);
    k.fetches = fl_arena_alloc(a, (size_t)k.n_fetches * sizeof *k.fetches);
    for (int i = 0; i < k.n_feeds; i++)
        k.feeds[i] = fl_arena_strdup(a, o->feeds[i].name);
    for (int i = 0; i < k.n_fetches; i++)
        k.fetches[i] = fl_arena_strdup(a, o->fetches[i].name);
    return k;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || !strcmp(a, b);
}

bool fl_key_fits(const fl_key *k, const fl_request *o)
{
    if (k->program_uid != o->program->uid ||
        k->program_version != o->program->version ||
        k->scope_uid != fl_scope_uid(o->scope) ||
        k->scope_changes != fl_scope_changes(o->scope) ||
        k->n_feeds != o->n_feeds || k->n_fetches != o->n_fetches)
        return false;
    for (int i = 0; i < k->n_feeds; i++)
        if (!same_name(k->feeds[i], o->feeds[i].name))
            return false;
    for (int i = 0; i < k->n_fetches; i++)
        if (!same_name(k->fetches[i], o->fetches[i].name))
            return false;
    return true;
}

bool fl_key_stale(const fl_key *k, const fl_program *p)
{
    return k->program_uid == p->uid && k->program_version != p->version;
}

/* --- names to values --- */

static fl_value *local_value(unit *u, const char *name)
{
    fl_value *v = fl_map_get(&u->locals, name);
    if (!v) {
        v = fl_arena_alloc(u->plan->arena, sizeof *v);
        fl_map_put(&u->locals, fl_arena_strdup(u->plan->arena, name), v);
    }
    return v;
}

static fl_value *scope_value(fl_plan *plan, const fl_var *var)
{
    const char *name = var->name;
    fl_value *v = fl_map_get(&plan->known, name);
    if (v)
        return v;
    v = fl_scope_find(plan->scope, name);
    if (!v)
        v = fl_scope_var(fl_scope_root(plan->scope), name);
    fl_absent_stand_in(var, v);
    fl_map_put(&plan->known, fl_arena_strdup(plan->arena, name), v);
    fl_push(&plan->externals,
            (external){.value = v,
                       .in_scope = true,
                       .absent_at_compile = fl_value_is_absent(v)});
    return v;
}

static fl_value *resolve_name(void *self, const char *name)
{
    unit *u = self;
    for (unit *at = u; at; at = at->parent) {
        const fl_var *v = fl_block_var(at->block, name);
        if (v)
            return v->persistable ? scope_value(u->plan, v)
                                  : local_value(at, name);
    }
    fl_fail(FL_ENOENT, "variable \"%s\" is not declared in block %d or above",
            name, u->block->idx);
    return NULL;
}

/* --- running steps --- */

/* The script line that made the op, if the front recorded it:
 * "; File ..., line 3: y = x". */
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

/* An error of a fused op is reported in the name of the op that the user
 * wrote. */
static fl_err in_name_of(fl_err err, const char *hidden, const char *known)
{
    char sentence[1024];
    const size_t n = strlen(hidden);
    snprintf(sentence, sizeof sentence, "%s", fl_errmsg());
    if (strncmp(sentence, hidden, n) || sentence[n] != ':')
        return err;
    return fl_fail(err, "%s%s", known, sentence + n);
}

static fl_err fail_at_op(fl_err err, const unit *u, const fl_desc *d, int index)
{
    char by[300]; /* an error message has at most 1024 bytes */
    const fl_desc *known = &u->block->ops.at[index]->desc;
    if (strcmp(d->type, known->type))
        err = in_name_of(err, d->type, known->type);
    return fl_fail_at(err, "op %d \"%s\" in block %d%s", index, known->type,
                      u->block->idx, made_by(known, by, sizeof by));
}

static fl_err run_step(step *s, bool settled)
{
    if (!settled || s->infers)
        FL_TRY(fl_frame_prepare(&s->frame));
    return fl_frame_run(&s->frame);
}

static fl_err run_watched(fl_watch *w, step *s, bool settled)
{
    FL_TRY(fl_watch_ask(w));
    if (!w->profiling)
        return run_step(s, settled);
    const int64_t start = fl_clock_now(w->clock);
    FL_TRY(run_step(s, settled));
    fl_watch_count(w, s->frame.desc->type, start);
    return FL_OK;
}

/* The usual cause is a persistable variable that was never initialised: the
 * message then says what to do. */
static fl_err step_failed(const unit *u, const step *s, fl_err err)
{
    const char *empty = err == FL_ENOENT ? fl_frame_empty(&s->frame) : NULL;
    const fl_var *v = empty ? fl_block_find(u->block, empty) : NULL;
    const fl_value *value =
        v && v->persistable ? fl_map_get(&u->plan->known, empty) : NULL;
    if (value && fl_value_is_absent(value))
        err = fl_absent_fail(empty);
    else if (value)
        err = fl_fail(FL_ENOENT,
                      "\"%s\" holds nothing yet: run the startup program first "
                      "(in Python: exe.run(fluid.default_startup_program())), "
                      "or load it",
                      empty);
    return fail_at_op(err, u, s->frame.desc, s->index);
}

static fl_err unit_run(unit *u, bool settled)
{
    fl_watch *w = u->plan->env.watch;
    for (int64_t i = 0; i < u->steps.n; i++) {
        step *s = &u->steps.at[i];
        const fl_err err =
            w ? run_watched(w, s, settled) : run_step(s, settled);
        if (err)
            return step_failed(u, s, err);
    }
    return FL_OK;
}

/* --- hooks --- */

static fl_err run_block(fl_call *c, int64_t block)
{
    unit *u = c->runner;
    fl_plan *plan = u->plan;
    if (block < 0 || block >= plan->n_units || !plan->units[block].compiled)
        return fl_fail(FL_EINVAL, "%s: there is no block %lld", c->def->type,
                       (long long)block);
    return unit_run(&plan->units[block], false);
}

static uint64_t draw_entropy(fl_call *c)
{
    unit *u = c->runner;
    fl_entropy *e = u->plan->env.entropy;
    return e->draw(e);
}

fl_site fl_call_site(const fl_call *c)
{
    const unit *u = c->runner;
    return (fl_site){&u->plan->env, u->plan->program, u->plan->scope};
}

/* --- compiling --- */

bool fl_op_bypassed(const fl_op *op)
{
    return !strcmp(op->desc.type, "feed") || !strcmp(op->desc.type, "fetch");
}

/* Whether the plan runs op i of block b. */
static bool runs_op(const fl_plan *plan, int b, int64_t i)
{
    const fl_op *op = plan->units[b].block->ops.at[i];
    return !fl_op_bypassed(op) && !fl_absent_only(op) &&
           !(plan->kept && fl_absent_start(op)) &&
           (b || !plan->part || plan->part->runs[i]);
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

/* Ops that were not fused keep the order of the block, so one walk finds the
 * position of each; *at is where the walk continues. */
static int index_of(const unit *u, const fl_desc *d, int64_t *at)
{
    if (d->arena == u->plan->arena) /* made by the plan */
        return (int)fl_desc_int(d, FL_FUSED_FROM, 0);
    while (*at < u->block->ops.n - 1 && &u->block->ops.at[*at]->desc != d)
        ++*at;
    return (int)(*at)++;
}

/* Refuse ops that read or write files in a program that was loaded from
 * outside.
 */
static fl_err check_trust(const unit *u, const fl_op_def *def, int index)
{
    const fl_op *op = u->block->ops.at[index];
    const fl_attr *path = fl_desc_attr(&op->desc, "file_path");
    if (!(def->flags & FL_OP_LOCAL) || !op->foreign || u->plan->env.trust)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s: this program was read from a file or from bytes, and "
                   "such a program may not touch files or ports of this "
                   "machine%s%s%s; if you trust it, set "
                   "FLUID_TRUST_PROGRAMS=1 in the environment",
                   def->type, path ? " (\"" : "", path ? path->s : "",
                   path ? "\")" : "");
}

static fl_err add_step(unit *u, const fl_desc *d, int index)
{
    fl_plan *plan = u->plan;
    const fl_op_def *def;
    fl_err err = fl_registry_get(plan->env.registry, d->type, &def);
    step s = {.index = index};
    if (!err)
        err = check_trust(u, def, index);
    if (!err)
        err = fl_frame_init(&s.frame, plan->arena, def, d, &plan->hooks, u,
                            resolve_name, u);
    if (err)
        return fail_at_op(err, u, d, index);
    s.frame.call.no_views = any_persistable(u, d);
    fl_push(&u->steps, s);
    return FL_OK;
}

static fl_err compile_unit(unit *u, const fl_lines *l)
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

/* Only the global block is fused. Values that sub-blocks or fetches read are
 * kept. */
static void fuse_global_block(const fl_plan *plan, fl_lines *l)
{
    for (int i = 0; i < plan->n_fetches; i++)
        fl_map_put(&l->kept, plan->fetches[i].name, l);
    for (int i = 0; plan->part && i < plan->part->n_kept; i++)
        fl_map_put(&l->kept, plan->part->kept[i], l);
    for (int b = 1; b < plan->n_units; b++)
        keep_reads(plan->units[b].block, &l->kept);
    fl_fuse(l);
}

/* Multiply the start value of the loss gradient by the part's seed_scale. */
static void scale_seed(const fl_plan *plan, fl_lines *l, const fl_op *op)
{
    const fl_attr *value = fl_desc_attr(&op->desc, "value");
    if (!plan->part || !plan->part->seed_scale || !value ||
        fl_op_role(op) != (FL_ROLE_BACKWARD | FL_ROLE_LOSS))
        return;
    fl_attr scaled = *value;
    scaled.f *= plan->part->seed_scale;
    fl_desc_set_attr(fl_lines_own(l, (int)l->descs.n - 2), &scaled);
}

/* An op whose outputs are all absent is left out; the scope then holds shapes
 * without memory in place of its outputs. */
static void leave_out(unit *u, const fl_op *op)
{
    const fl_desc *d = &op->desc;
    if (u->plan->kept && fl_absent_start(op)) {
        const fl_var *v = fl_block_var(u->block, d->out[0].name[0]);
        fl_value_set_absent(scope_value(u->plan, v), v->dtype, &v->shape);
    }
    for (int i = 0; fl_absent_only(op) && i < d->n_out; i++)
        for (int j = 0; j < d->out[i].n; j++) {
            const fl_var *v = fl_block_find(u->block, d->out[i].name[j]);
            if (v && v->persistable)
                scope_value(u->plan, v);
        }
}

static fl_err compile_block(fl_plan *plan, int b)
{
    unit *u = &plan->units[b];
    fl_lines l = {.block = u->block, .arena = plan->arena};
    for (int64_t i = 0; i < u->block->ops.n; i++)
        if (runs_op(plan, b, i)) {
            fl_lines_add(&l, &u->block->ops.at[i]->desc);
            scale_seed(plan, &l, u->block->ops.at[i]);
        } else {
            leave_out(u, u->block->ops.at[i]);
        }
    fl_absent_look_up(&l, plan->scope);
    if (b == 0 && !plan->env.no_fuse)
        fuse_global_block(plan, &l);
    fl_err err = compile_unit(u, &l);
    fl_lines_fini(&l);
    return err;
}

static const port *port_of(const port *ports, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(ports[i].name, name))
            return &ports[i];
    return NULL;
}

static fl_err fail_unknown(const unit *u, const char *what, const char *name)
{
    fl_near near = {.name = name};
    for (fl_entry *v = NULL; (v = fl_map_next(&u->block->vars, v));)
        fl_near_offer(&near, v->key);
    return fl_fail(FL_ENOENT,
                   "%s \"%s\": the program has no such variable%s%s%s", what,
                   name, near.best ? "; did you mean \"" : "",
                   near.best ? near.best : "", near.best ? "\"?" : "");
}

static fl_err open_port(unit *u, const char *what, const char *name, port *p)
{
    p->name = name;
    p->var = fl_block_var(u->block, name);
    if (!p->var)
        return fail_unknown(u, what, name);
    p->value = resolve_name(u, name);
    return FL_OK;
}

static fl_err open_ports(fl_plan *plan)
{
    unit *u = &plan->units[0];
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
        port *p = &plan->lent[i];
        FL_TRY(open_port(u, "lent", plan->part->lent[i], p));
        if (!p->var->persistable)
            fl_push(&plan->externals, (external){.value = p->value});
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
    return fail_at_op(err, &plan->units[0], d, index);
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

/* A name that is read before any op writes it must be fed. */
static fl_err check_reads(const fl_plan *plan)
{
    fl_map written = {0};
    fl_err err = FL_OK;
    for (int i = 0; i < plan->n_feeds; i++)
        fl_map_put(&written, plan->feeds[i].name, &plan->feeds[i]);
    for (int i = 0; i < plan->n_lent; i++)
        fl_map_put(&written, plan->lent[i].name, &plan->lent[i]);
    for (int64_t i = 0; i < plan->units[0].block->ops.n && !err; i++)
        if (runs_op(plan, 0, i))
            err = check_op_reads(plan, i, &written);
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

/* --- steps that infer again ---
 *
 * A run after a settled one infers no shapes, because each step finds its
 * outputs as it left them. That is true for a value that only one step writes,
 * and false for
 *   - a value that a sub-block writes, or an operator whose output shapes
 * depend on its data; and for all that is computed from such a value;
 *   - a value that two steps write, or a step and a feed, or a step and the
 * plan of another part: each of them needs its own shape and memory.
 *
 * For the same reason a view must not share the memory of such a value, or of
 * an external value that the run writes. */

/* Properties of a value in a plan. */
enum {
    WRITTEN = 1,   /* a step writes it */
    SHARED = 2,    /* two steps write it, or a step and the caller */
    RESHAPED = 4,  /* its shape may change though no external shape does */
    EXTERNAL = 8,  /* it exists before the run */
    SUPPLIED = 16, /* the caller writes it before the run: fed or lent */
    CHANGED = 32,  /* it is EXTERNAL and WRITTEN */
    LASTING = 64,  /* sub-blocks use it, or the caller reads it after the run */
};

typedef struct marks {
    fl_numbers numbers;
    uint8_t *of; /* marks of each value, by its number */
} marks;

static void add_mark(marks *m, const fl_value *v, uint8_t mark)
{
    const int64_t i = fl_numbers_find(&m->numbers, v);
    if (i >= 0)
        m->of[i] |= mark;
}

static uint8_t marks_of(const marks *m, const fl_value *v)
{
    const int64_t i = fl_numbers_find(&m->numbers, v);
    return i < 0 ? 0 : m->of[i];
}

static uint8_t marks_of_args(const marks *m, fl_value **const *args,
                             const int *n)
{
    uint8_t all = 0;
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < n[s]; i++)
            all |= marks_of(m, args[s][i]);
    return all;
}

/* The union of the marks of all values that a step uses. */
static uint8_t marks_of_call(const marks *m, const fl_call *c)
{
    return marks_of_args(m, c->in, c->n_in) |
           marks_of_args(m, c->out, c->n_out);
}

static void mark_args(marks *m, fl_value **const *args, const int *n,
                      uint8_t mark)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < n[s]; i++)
            add_mark(m, args[s][i], mark);
}

static void mark_ports(marks *m, const port *ports, int n, uint8_t mark)
{
    for (int i = 0; i < n; i++)
        add_mark(m, ports[i].value, mark);
}

/* A step may read one value through several slots and writes it at most once:
 * frames refuse two outputs in one variable. */
static void mark_writes(marks *m, const fl_call *c)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_out[s]; i++) {
            if (c->def->out[s].flags & FL_TOKEN)
                continue;
            const uint8_t now = marks_of(m, c->out[s][i]);
            add_mark(m, c->out[s][i],
                     now & (WRITTEN | SUPPLIED) ? WRITTEN | SHARED : WRITTEN);
        }
}

static void mark_values(const fl_plan *plan, marks *m)
{
    for (int64_t i = 0; i < plan->externals.n; i++)
        add_mark(m, plan->externals.at[i].value, EXTERNAL | LASTING);
    mark_ports(m, plan->feeds, plan->n_feeds, EXTERNAL | SUPPLIED | LASTING);
    mark_ports(m, plan->lent, plan->n_lent, EXTERNAL | SUPPLIED | LASTING);
    mark_ports(m, plan->fetches, plan->n_fetches, LASTING);
    for (int i = 0; plan->part && i < plan->part->n_kept; i++)
        add_mark(m, fl_map_get(&plan->units[0].locals, plan->part->kept[i]),
                 LASTING);
    for (int b = 0; b < plan->n_units; b++)
        for (int64_t i = 0; i < plan->units[b].steps.n; i++) {
            const fl_call *c = &plan->units[b].steps.at[i].frame.call;
            mark_writes(m, c);
            if (!b)
                continue;
            mark_args(m, c->in, c->n_in, LASTING);
            mark_args(m, c->out, c->n_out, LASTING | RESHAPED);
        }
    for (int64_t i = 0; i < m->numbers.values.n; i++)
        if (m->of[i] & EXTERNAL && m->of[i] & WRITTEN)
            m->of[i] |= CHANGED;
}

/* A step that infers gives its outputs another shape. A value that is updated
 * in place keeps its shape, or the frame refuses it. */
static void mark_reshaped(marks *m, const fl_call *c)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_out[s]; i++)
            if (c->def->flags & FL_OP_DYNAMIC ||
                !fl_call_reads(c, c->out[s][i]))
                add_mark(m, c->out[s][i], RESHAPED);
}

/* Steps whose shapes depend on a reshaped value infer too. A second pass finds
 * more of them only where a value is read before it is written. */
static void spread_inference(unit *u, marks *m)
{
    bool more = true;
    while (more) {
        more = false;
        for (int64_t i = 0; i < u->steps.n; i++) {
            step *s = &u->steps.at[i];
            const fl_call *c = &s->frame.call;
            if (s->infers ||
                !(fl_frame_moves(&s->frame) || marks_of_call(m, c) & RESHAPED))
                continue;
            s->infers = more = true;
            mark_reshaped(m, c);
        }
    }
}

static void mark_steps(fl_plan *plan, marks *m)
{
    mark_values(plan, m);
    spread_inference(&plan->units[0], m); /* sub-blocks always infer */
    for (int b = 0; b < plan->n_units; b++)
        for (int64_t i = 0; i < plan->units[b].steps.n; i++) {
            step *s = &plan->units[b].steps.at[i];
            fl_call *c = &s->frame.call;
            const uint8_t all = marks_of_call(m, c);
            s->infers |= (all & SHARED) != 0;
            c->no_views |= fl_op_makes_view(c->def) && all & (SHARED | CHANGED);
        }
}

/* --- memory of temporaries --- */

static void share_memory(fl_plan *plan, const marks *m)
{
    const unit *u = &plan->units[0];
    const int64_t n = m->numbers.values.n;
    bool *lasting = fl_mem_alloc((size_t)n);
    const fl_call **calls = fl_mem_alloc((size_t)u->steps.n * sizeof *calls);
    for (int64_t i = 0; i < n; i++)
        lasting[i] = m->of[i] & (LASTING | SHARED | EXTERNAL);
    for (int64_t i = 0; i < u->steps.n; i++)
        calls[i] = &u->steps.at[i].frame.call;
    fl_regions_init(&plan->regions, &(fl_lives){.block = u->block,
                                                .n = u->steps.n,
                                                .step = calls,
                                                .numbers = &m->numbers,
                                                .lasting = lasting});
    fl_mem_free(lasting);
    fl_mem_free(calls);
}

/* Run the passes that need the steps of all blocks. */
static void finish_steps(fl_plan *plan)
{
    marks m = {0};
    for (int b = 0; b < plan->n_units; b++)
        for (int64_t i = 0; i < plan->units[b].steps.n; i++)
            fl_numbers_add_call(&m.numbers,
                                &plan->units[b].steps.at[i].frame.call);
    fl_numbers_sort(&m.numbers);
    m.of = fl_mem_alloc((size_t)m.numbers.values.n);
    mark_steps(plan, &m);
    share_memory(plan, &m);
    fl_mem_free(m.of);
    fl_numbers_fini(&m.numbers);
}

/* --- making and freeing --- */

static fl_err plan_build(fl_plan *plan)
{
    make_units(plan);
    FL_TRY(open_ports(plan));
    FL_TRY(check_reads(plan));
    for (int i = plan->n_units - 1; i >= 0; i--)
        FL_TRY(compile_block(plan, i));
    finish_steps(plan);
    return FL_OK;
}

static port *make_ports(fl_plan *plan, int n)
{
    return fl_arena_alloc(plan->arena, (size_t)n * sizeof(port));
}

fl_err fl_plan_new(const fl_exec_env *env, const fl_request *o,
                   const fl_plan_part *part, fl_plan **out)
{
    fl_plan *plan = fl_mem_alloc(sizeof *plan);
    plan->env = *env;
    plan->hooks = (fl_hooks){.run_block = run_block,
                             .entropy = draw_entropy,
                             .disk = env->disk,
                             .service = env->service,
                             .worlds = env->worlds,
                             .workspace = &plan->workspace};
    plan->program = o->program;
    plan->scope = o->scope;
    plan->part = part;
    plan->kept = env->kept && o->program->job && env->kept(o->program);
    plan->arena = fl_arena_new();
    plan->key = fl_key_of(o, plan->arena);
    plan->n_feeds = o->n_feeds;
    plan->feeds = make_ports(plan, plan->n_feeds);
    plan->ahead = fl_arena_alloc(plan->arena,
                                 (size_t)plan->n_feeds * sizeof *plan->ahead);
    plan->n_fetches = o->n_fetches;
    plan->fetches = make_ports(plan, plan->n_fetches);
    plan->n_lent = part ? part->n_lent : 0;
    plan->lent = make_ports(plan, plan->n_lent);
    fl_err err = plan_build(plan);
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
    fl_regions_fini(&plan->regions);
    fl_mem_free(plan->workspace.data);
    for (int i = 0; i < plan->n_units; i++)
        free_unit(&plan->units[i]);
    for (int i = 0; i < plan->n_feeds; i++)
        fl_lod_fini(&plan->feeds[i].spare);
    fl_vec_fini(&plan->externals);
    fl_map_fini(&plan->known);
    fl_arena_free(plan->arena);
    fl_mem_free(plan);
}

/* --- a run --- */

/* The declared shape is not compared here: the operators decide whether they
 * can compute with another one, as in Fluid. */
static fl_err check_feed(const port *p, const fl_tensor *t)
{
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    if (!t->data)
        return fl_fail(FL_EINVAL, "feed \"%s\": the tensor has no memory",
                       p->name);
    if (fl_shape_numel(&t->shape) < 0)
        return fl_fail(FL_ESHAPE,
                       "feed \"%s\" is %s%s: a dimension is negative", p->name,
                       fl_dtype_word(t->dtype), fl_shape_text(&t->shape, got));
    if (t->dtype != p->var->dtype)
        return fl_fail(FL_ESHAPE, "feed \"%s\" is %s%s, expected %s%s", p->name,
                       fl_dtype_word(t->dtype), fl_shape_text(&t->shape, got),
                       fl_dtype_word(p->var->dtype),
                       fl_shape_text(&p->var->shape, want));
    fl_err err = FL_OK;
    if (t->lod.levels)
        err = fl_lod_check(&t->lod, t->shape.rank ? t->shape.dim[0] : 1);
    return err ? fl_fail_at(err, "feed \"%s\"", p->name) : FL_OK;
}

/* Copy the LoD of a feed. Values of the last run may still share the old LoD,
 * so the copy goes to the spare memory, and the old memory is the next spare.
 */
static fl_err take_lod(port *p, const fl_lod *lod)
{
    fl_lod *mine = &p->value->tensor.lod, old = *mine;
    if (old.buf && fl_buf_shared(old.buf)) {
        *mine = p->spare;
        p->spare = old;
    }
    return fl_lod_copy(mine, lod);
}

/* Use the memory of the fed tensor for the run; copy its LoD if that has
 * changed. *reshaped is set if the shape or the LoD differs from the last
 * run's. */
static fl_err take_feed(port *p, const fl_tensor *t, bool *reshaped)
{
    fl_tensor *mine = &p->value->tensor;
    FL_TRY(check_feed(p, t));
    if (mine->buf) { /* a persistable variable may be fed: it owned memory */
        fl_buf_unref(mine->buf);
        mine->buf = NULL;
    }
    if (p->value->kind != FL_LOD_TENSOR ||
        !fl_shape_equal(&mine->shape, &t->shape))
        *reshaped = true;
    p->value->kind = FL_LOD_TENSOR;
    mine->dtype = t->dtype;
    mine->shape = t->shape;
    mine->data = t->data;
    if (!fl_lod_equal(&mine->lod, &t->lod)) {
        *reshaped = true;
        FL_TRY(take_lod(p, &t->lod));
    }
    return FL_OK;
}

/* The memory of a feed belongs to the caller: drop it when the run is over. */
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

/* Whether a value of the scope has another shape than in the last run. A value
 * with a LoD counts as changed each time: such persistable variables are
 * rare. */
static bool externals_changed(fl_plan *plan)
{
    bool reshaped = false;
    for (int64_t i = 0; i < plan->externals.n; i++) {
        external *o = &plan->externals.at[i];
        const fl_value *v = o->value;
        const fl_tensor *t =
            v->kind == FL_SELECTED_ROWS ? &v->rows.value : &v->tensor;
        if (o->kind == v->kind && o->dtype == t->dtype &&
            fl_shape_equal(&o->shape, &t->shape) && !o->lod_levels &&
            !t->lod.levels)
            continue;
        o->kind = v->kind;
        o->dtype = t->dtype;
        o->shape = t->shape;
        o->lod_levels = t->lod.levels;
        reshaped = true;
    }
    return reshaped;
}

static fl_err give_rows(const fl_rows *from, fl_rows *to)
{
    fl_shape shape = from->value.shape;
    shape.dim[0] = from->height;
    FL_TRY(fl_rows_resize(to, from->value.dtype, &shape, from->n));
    const size_t bytes = fl_tensor_bytes(&to->value);
    if (!bytes)
        return FL_OK;
    memcpy(to->index.data, from->index.data, (size_t)from->n * sizeof(int64_t));
    memcpy(to->value.data, from->value.data, bytes);
    return FL_OK;
}

static fl_err give_fetch(const port *p, fl_fetch *f, bool lenient)
{
    const fl_value *v = p->value;
    f->kind = v->kind;
    if (v->kind == FL_SELECTED_ROWS)
        return give_rows(&v->rows, &f->rows);
    const bool written = v->kind == FL_LOD_TENSOR && v->tensor.data;
    if (written)
        return fl_tensor_copy(&f->tensor, &v->tensor);
    if (p->var->persistable && fl_value_is_absent(v))
        return fl_absent_fail(p->name);
    if (!lenient)
        return fl_fail(FL_ENOENT, "fetch \"%s\": nothing has written it",
                       p->name);
    fl_fetch_fini(f);
    return FL_OK;
}

static fl_err run_all(fl_plan *plan, const fl_feed *feeds, fl_fetch *fetches)
{
    bool reshaped = !plan->settled;
    plan->settled = false;
    for (int i = 0; i < plan->n_feeds; i++)
        FL_TRY(take_feed(&plan->feeds[i], &feeds[i].tensor, &reshaped));
    if (externals_changed(plan))
        reshaped = true;
    FL_TRY(unit_run(&plan->units[0], !reshaped));
    for (int i = 0; i < plan->n_fetches; i++)
        FL_TRY(give_fetch(&plan->fetches[i], &fetches[i], plan->env.lenient));
    plan->settled = true;
    return FL_OK;
}

/* The likely cause of a failed shape check: a feed whose shape is not the
 * declared one. */
static fl_err blame_feed(const fl_plan *plan, const fl_feed *feeds, fl_err err)
{
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    for (int i = 0; i < plan->n_feeds; i++) {
        const fl_shape *fed = &feeds[i].tensor.shape;
        const fl_var *v = plan->feeds[i].var;
        if (feeds[i].tensor.dtype == v->dtype &&
            !fl_shape_alike(fed, &v->shape))
            return fl_fail_at(err, "feed \"%s\" is %s%s, expected %s%s",
                              v->name, fl_dtype_word(v->dtype),
                              fl_shape_text(fed, got), fl_dtype_word(v->dtype),
                              fl_shape_text(&v->shape, want));
    }
    return err;
}

fl_err fl_plan_run(fl_plan *plan, const fl_feed *feeds, fl_fetch *fetches)
{
    fl_err err = run_all(plan, feeds, fetches);
    if (err == FL_ESHAPE)
        err = blame_feed(plan, feeds, err);
    fl_err dropped = drop_feeds(plan);
    return err ? err : dropped;
}

/* --- the run after the next one --- */

static bool is_fed(const fl_plan *plan, const fl_value *v)
{
    for (int i = 0; i < plan->n_feeds; i++)
        if (plan->feeds[i].value == v)
            return true;
    return false;
}

static bool can_look_ahead(const fl_plan *plan, const fl_call *c)
{
    if (!c->def->ahead)
        return false;
    for (int i = 0; i < fl_in_count(c, c->def->ahead_in); i++)
        if (!is_fed(plan, fl_in_value(c, c->def->ahead_in, i)))
            return false;
    return true;
}

/* Exchange the tensor of a feed with *t. Its shape comes back, so that the next
 * run still sees whether the shape has changed. */
static void swap_feed(const port *p, fl_tensor *t)
{
    const fl_tensor was = p->value->tensor;
    p->value->tensor = *t;
    *t = was;
}

bool fl_plan_looks_ahead(const fl_plan *plan)
{
    const unit *all = &plan->units[0];
    for (int64_t i = 0; i < all->steps.n; i++)
        if (can_look_ahead(plan, &all->steps.at[i].frame.call))
            return true;
    return false;
}

void fl_plan_look_ahead(fl_plan *plan, const fl_feed *feeds)
{
    const unit *all = &plan->units[0];
    for (int i = 0; i < plan->n_feeds; i++) {
        const fl_tensor *next = &feeds[i].tensor;
        plan->ahead[i] = fl_tensor_view(next->dtype, &next->shape, next->data);
        swap_feed(&plan->feeds[i], &plan->ahead[i]);
    }
    for (int64_t i = 0; i < all->steps.n; i++) {
        fl_call *c = &all->steps.at[i].frame.call;
        if (can_look_ahead(plan, c))
            c->def->ahead(c);
    }
    for (int i = 0; i < plan->n_feeds; i++)
        swap_feed(&plan->feeds[i], &plan->ahead[i]);
}

fl_value *fl_plan_value(fl_plan *plan, const char *name)
{
    return resolve_name(&plan->units[0], name);
}

const fl_key *fl_plan_key(const fl_plan *plan)
{
    return &plan->key;
}

bool fl_plan_is_current(const fl_plan *plan)
{
    if (plan->kept)
        return false; /* the kept variables may have been discarded */
    for (int64_t i = 0; i < plan->externals.n; i++) {
        const external *o = &plan->externals.at[i];
        if (o->in_scope && fl_value_is_absent(o->value) != o->absent_at_compile)
            return false;
    }
    return true;
}

size_t fl_plan_bytes(const fl_plan *plan)
{
    return fl_regions_bytes(&plan->regions) + plan->workspace.size;
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
