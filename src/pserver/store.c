/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - a server's parameters and the threads that own them.
 *
 * Making: the transpiler puts `sum` over the trainers' gradients and `scale` by
 * their number at the head of a block. The participants differ from round to
 * round, so these two ops are left out and the update makes the mean itself. If
 * the program says sum_gradients, there is no `scale`, and it makes a sum.
 * The rest of a block becomes a program of its own, which is compiled to a
 * plan.
 *
 * Applying: a round is a task for every owner; the owner that finishes last
 * reports it. Rounds and pushes are reported in the order in which they were
 * given, because the state machine knows them by their order only: an owner
 * reports before it begins its next task, and no later round is complete
 * without that owner.
 *
 * Pulling: see pulls.h.
 *
 * Going on: where the store is kept, an owner that finds a task half done goes
 * on at its cursor when it gets the same task again.
 *
 * No room: see room.h; docs/why.md says why the room is not reserved when a
 * push arrives.
 *
 * Easy to get wrong: updates read every variable of the global block that a
 * learning-rate block writes, also one that is not persistable. */
#include "pserver/store.h"

#include "base/log.h"
#include "base/pool.h"
#include "graph/copy.h"
#include "graph/verify.h"
#include "pserver/pulls.h"
#include "pserver/pushes.h"
#include "pserver/room.h"
#include "pserver/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    COPIES_PART = 20,       /* a snapshot copies this part of all values */
    COPIES_LEAST = 1 << 20, /* at most, but so many bytes at least, */
    COPIES_MOST = 64 << 20, /* and so many at most */
};

/* A learning-rate block, compiled for one owner. */
typedef struct rates {
    fl_program *program;
    fl_values writes; /* persistable values that the plan changes */
    fl_values kept;   /* those of them that outlive the process; the others held
                         nothing at the start: running the plan again gives
                         them */
    fl_plan *plan;
} rates;

/* A thread and what belongs to it alone. */
typedef struct owner {
    fl_pstore *store;
    int index;
    fl_pool *pool;
    fl_group group;
    fl_scope *scope; /* child of the user's: gradients, rates, temporaries */
    FL_VEC(rates) rates;
    bool rates_due; /* the rates must run before the next update */
    FL_VEC(fl_update *) updates;
    const fl_guard *guard; /* NULL: nothing is kept */
    int64_t changes;       /* how often rates or updates have run */
} owner;

/* A round, or in asynchronous mode a push, that the owners apply. */
typedef struct applying {
    fl_pstore *store;
    int64_t round; /* synchronous */
    fl_staged *by; /* what each participant sent, sorted by rank */
    int n;         /* participants */
    int left;      /* owners that have not finished; under the store's lock */
    char why[512]; /* the first failure, or ""; under the store's lock */
} applying;

struct fl_pstore {
    fl_pstore_opts opts;
    fl_exec_env env;
    fl_store ops; /* what the state machine calls */
    bool async;
    fl_arena *arena;
    fl_map gradients;    /* names that pushes use -> fl_update */
    fl_map rated;        /* names that learning-rate blocks write */
    fl_pulls *pulls;     /* variables that may be pulled */
    fl_pushes *pushes;   /* what pushes may contain */
    fl_budget tables;    /* memory of all tables */
    fl_kept *kept;       /* NULL: all ends with the process */
    fl_extents *extents; /* kept: memory of tables */
    FL_VEC(const fl_block *) rate_blocks;
    FL_VEC(fl_update *) updates;
    owner *owner;
    int owners;
    fl_writer *writer;           /* writes snapshots; NULL: none are taken */
    fl_room *room;               /* owners that wait for room; their pulls */
    pthread_mutex_t lock;        /* never held while a callback runs */
    FL_VEC(applying *) applying; /* in order of arrival */
};

static const fl_block *global_block(const fl_pstore *s)
{
    return fl_program_block(s->opts.program, 0);
}

static const fl_attr *find_attr(const fl_pstore *s, const char *name)
{
    return fl_desc_attr(&s->opts.op->desc, name);
}

/* Copy the tensors that a plan is about to write, if a pull still shares them,
 * or a snapshot needs them. */
static fl_err claim_values(const owner *o, fl_value *const *at, int64_t n)
{
    const fl_pstore *s = o->store;
    fl_capture *capture = fl_writer_capture(s->writer, o->index);
    for (int64_t i = 0; i < n; i++) {
        fl_tensor *t = &at[i]->tensor;
        if (capture)
            fl_capture_claim(capture, at[i]);
        if (at[i]->kind != FL_LOD_TENSOR || !t->buf ||
            (s->kept && !fl_buf_shared(t->buf)))
            continue;
        FL_TRY(s->kept && fl_kept_has(s->kept, at[i])
                   ? fl_kept_claim(s->kept, at[i])
                   : fl_tensor_unique(t));
    }
    return FL_OK;
}

/* --- making: updates --- */

/* The gradient that grad_to_block_id ("grad:block") has for a block. */
static const char *find_grad(const fl_pstore *s, int64_t block)
{
    const fl_attr *a = find_attr(s, "grad_to_block_id");
    for (int i = 0; a && i < a->n; i++) {
        const char *colon = strrchr(a->strings[i], ':');
        if (colon && strtol(colon + 1, NULL, 10) == block) {
            const int n = (int)(colon - a->strings[i]);
            return fl_arena_printf(s->arena, "%.*s", n, a->strings[i]);
        }
    }
    return NULL;
}

static bool is_in_place(const fl_desc *d, const char *type, const char *name)
{
    const char *x = fl_desc_in1(d, "X"), *out = fl_desc_out1(d, "Out");
    return !strcmp(d->type, type) && x && out && !strcmp(x, name) &&
           !strcmp(out, name);
}

/* Set u->first to the op after `sum` and `scale`. A push may use the name of
 * the gradient or one of the names that are summed. */
static void skip_mean(fl_pstore *s, fl_update *u)
{
    const fl_ops *ops = &u->block->ops;
    const fl_desc *sum = ops->n ? &ops->at[0]->desc : NULL;
    const char *out = sum ? fl_desc_out1(sum, "Out") : NULL;
    fl_map_put(&s->gradients, u->grad->name, u);
    if (!out || strcmp(sum->type, "sum") || strcmp(out, u->grad->name))
        return;
    const fl_args *x = fl_desc_in(sum, "X");
    for (int i = 0; x && i < x->n; i++)
        if (!strcmp(x->name[i], out))
            return; /* this `sum` adds weight decay to the gradient */
    for (int i = 0; x && i < x->n; i++)
        fl_map_put(&s->gradients, x->name[i], u);
    u->first = 1;
    if (ops->n > 1 && is_in_place(&ops->at[1]->desc, "scale", out))
        u->first = 2;
}

static fl_err check_grad(const fl_var *g)
{
    char text[FL_SHAPE_TEXT];
    if (g->dtype != FL_F32 && g->dtype != FL_F64)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: gradient \"%s\" is %s, expected "
                       "float32 or float64",
                       g->name, fl_dtype_word(g->dtype));
    if (fl_shape_numel(&g->shape) < 0 || g->shape.rank < 1)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: gradient \"%s\" is %s: its shape must "
                       "be known",
                       g->name, fl_shape_text(&g->shape, text));
    return FL_OK;
}

static fl_err add_update(fl_pstore *s, const fl_block *b, const char *grad)
{
    fl_var *v;
    FL_TRY(fl_block_get(b, grad, &v));
    FL_TRY(check_grad(v));
    fl_update *u = fl_arena_alloc(s->arena, sizeof *u);
    const fl_attr *adds = find_attr(s, "sum_gradients");
    u->number = (int)s->updates.n;
    u->grad = v;
    u->block = b;
    u->adds = adds && adds->b;
    fl_push(&s->updates, u);
    skip_mean(s, u);
    u->program = fl_copy_ops(b, u->first);
    return FL_OK;
}

static fl_err add_blocks(fl_pstore *s)
{
    const fl_attr *a = find_attr(s, "optimize_blocks");
    for (int i = 0; a && i < a->n; i++) {
        const fl_block *b = fl_program_block(s->opts.program, (int)a->longs[i]);
        const char *grad = b ? find_grad(s, b->idx) : NULL;
        if (!b || !b->idx)
            return fl_fail(FL_EINVAL,
                           "listen_and_serv: optimize_blocks has %lld, which "
                           "is not a block of updates",
                           (long long)a->longs[i]);
        if (grad)
            FL_TRY(add_update(s, b, grad));
        else if (b->ops.n)
            fl_push(&s->rate_blocks, b);
    }
    for (int64_t i = 0; i < s->rate_blocks.n; i++)
        for (int64_t k = 0; k < s->rate_blocks.at[i]->ops.n; k++)
            fl_op_add_writes(s->rate_blocks.at[i]->ops.at[k], &s->rated);
    return FL_OK;
}

/* --- making: owners --- */

/* Does an update read what another one writes, as a learning rate? Then one
 * owner must run all of them, in order. */
static bool updates_depend(const fl_pstore *s)
{
    fl_map writes = {0};
    bool depend = false;
    for (int64_t i = 0; i < s->updates.n; i++)
        for (int64_t k = 0; k < s->updates.at[i]->block->ops.n; k++) {
            const fl_desc *d = &s->updates.at[i]->block->ops.at[k]->desc;
            const char *rate = fl_desc_in1(d, "LearningRate");
            depend |= rate && fl_map_get(&writes, rate);
            fl_op_add_writes(s->updates.at[i]->block->ops.at[k], &writes);
        }
    fl_map_fini(&writes);
    return depend;
}

/* Give each update to the owner that has the fewest elements so far. */
static void assign_owners(fl_pstore *s)
{
    if (updates_depend(s))
        s->owners = 1;
    int64_t *load = fl_arena_alloc(s->arena, (size_t)s->owners * sizeof *load);
    for (int64_t i = 0; i < s->updates.n; i++) {
        fl_update *u = s->updates.at[i];
        for (int k = 1; k < s->owners; k++)
            if (load[k] < load[u->owner])
                u->owner = k;
        const int64_t n = fl_shape_numel(&u->grad->shape);
        load[u->owner] = fl_dim_add(load[u->owner], fl_dim_add(n, 1));
        fl_push(&s->owner[u->owner].updates, u);
    }
}

/* Make the value of a variable for the plans of one owner. Each owner has its
 * own gradients and temporaries. Each has its own copy of what learning-rate
 * blocks write, except that the first owner uses the values of the user's
 * scope. */
static fl_err bind_variable(owner *o, const char *name)
{
    fl_pstore *s = o->store;
    const fl_var *v = fl_block_var(global_block(s), name);
    if (!v)
        return FL_OK; /* the plan makes temporaries */
    if (!v->persistable || fl_map_get(&s->gradients, name)) {
        fl_scope_var(o->scope, name);
        return FL_OK;
    }
    const fl_value *from = fl_scope_find(o->scope, name);
    if (from && o->index && fl_map_get(&s->rated, name) &&
        from == fl_scope_find(s->opts.scope, name))
        return fl_value_copy(fl_scope_var(o->scope, name), from);
    return FL_OK;
}

/* Check that the startup program has set every variable that the op reads. */
static fl_err check_started(const owner *o, const fl_op *op)
{
    fl_map reads = {0};
    fl_err err = FL_OK;
    fl_op_add_reads(op, &reads);
    for (fl_entry *e = NULL; !err && (e = fl_map_next(&reads, e));) {
        const fl_var *v = fl_block_var(global_block(o->store), e->key);
        const fl_value *x = fl_scope_find(o->scope, e->key);
        if (v && v->kind == FL_LOD_TENSOR && v->persistable &&
            !fl_map_get(&o->store->gradients, e->key) &&
            (!x || !x->kind || !x->tensor.data))
            err = fl_fail(FL_ENOENT,
                          "listen_and_serv: \"%s\" holds nothing yet: run the "
                          "server's startup program first",
                          e->key);
    }
    fl_map_fini(&reads);
    return err;
}

/* Bind the variables of a program, compile it, and list what it writes. */
static fl_err compile_program(owner *o, const fl_program *p, fl_plan **plan,
                              fl_values *writes)
{
    const fl_block *b = fl_program_block(p, 0);
    fl_map names = {0};
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        FL_TRY(bind_variable(o, e->key));
    for (int64_t i = 0; i < b->ops.n; i++)
        FL_TRY(check_started(o, b->ops.at[i]));
    const fl_request order = {.program = p, .scope = o->scope};
    FL_TRY(fl_plan_new(&o->store->env, &order, NULL, plan));
    for (int64_t i = 0; i < b->ops.n; i++)
        fl_op_add_writes(b->ops.at[i], &names);
    for (fl_entry *e = NULL; (e = fl_map_next(&names, e));) {
        const fl_var *v = fl_block_var(b, e->key);
        if (v && v->persistable)
            fl_push(writes, fl_scope_find(o->scope, e->key));
    }
    fl_map_fini(&names);
    return FL_OK;
}

static fl_err compile_rates(owner *o)
{
    fl_pstore *s = o->store;
    for (int64_t i = 0; i < s->rate_blocks.n; i++) {
        fl_push(&o->rates, (rates){0});
        rates *r = &o->rates.at[i];
        r->program = fl_copy_ops(s->rate_blocks.at[i], 0);
        FL_TRY(compile_program(o, r->program, &r->plan, &r->writes));
    }
    return FL_OK;
}

static fl_err compile_update(owner *o, fl_update *u)
{
    const fl_update_env e = {
        .program = o->store->opts.program,
        .exec = o->store->opts.env,
        .user = o->store->opts.scope,
        .scope = o->scope,
        .arena = o->store->arena,
        .rated = &o->store->rated,
        .tables = &o->store->tables,
        .dir =
            o->store->extents ? fl_recovery_dir(o->store->opts.recovery) : NULL,
        .extents = o->store->extents,
        .number = u->number};
    FL_TRY(fl_update_make_table(u, &e));
    fl_update_take_rule(u, &e);
    FL_TRY(compile_program(o, u->program, &u->plan, &u->writes));
    FL_TRY(fl_update_bind_rule(u, &e));
    u->mean = fl_scope_var(o->scope, u->grad->name);
    for (int64_t i = 0; i < u->writes.n; i++)
        u->writes_mean |= u->writes.at[i] == u->mean;
    return FL_OK;
}

static fl_err start_owner(owner *o)
{
    o->scope = fl_scope_child(o->store->opts.scope);
    o->rates_due = true;
    FL_TRY(compile_rates(o));
    for (int64_t i = 0; i < o->updates.n; i++) {
        const fl_err err = compile_update(o, o->updates.at[i]);
        if (err)
            return fl_fail_at(err, "update by \"%s\"",
                              o->updates.at[i]->grad->name);
    }
    return fl_pool_new("owner", 1, &o->pool);
}

/* --- tasks of owners --- */

static void submit_task(void *store, int index, void (*fn)(void *arg),
                        void *arg)
{
    fl_pstore *s = store;
    owner *o = &s->owner[index];
    fl_pool_submit(o->pool, &o->group, fn, arg);
}

static void run_read(void *arg)
{
    const owner *o = arg;
    (void)fl_room_read(o->store->room, o->index);
}

static void submit_read(void *store, int index, void (*fn)(void *arg),
                        void *arg)
{
    const fl_pstore *s = store;
    fl_room_add(s->room, index, fn, arg);
    submit_task(store, index, run_read, &s->owner[index]);
}

/* --- making: variables that may be pulled --- */

/* Variables of an update are pulled from its owner, except learning rates. */
static void assign_pullables(fl_pstore *s, const fl_update *u)
{
    const fl_block *b = fl_program_block(u->program, 0);
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
        int state;
        if (fl_pulls_owner(s->pulls, e->key) < 0)
            continue;
        if (!fl_map_get(&s->rated, e->key))
            fl_pulls_assign(s->pulls, e->key, u->owner);
        if (u->table && fl_update_in_rows(u, e->key, &state))
            fl_pulls_in_rows(s->pulls, e->key, u->table, state);
    }
}

static void add_pullables(fl_pstore *s)
{
    const fl_pstore_opts *o = &s->opts;
    s->pulls = fl_pulls_new(&(fl_pulls_opts){.owners = s->owners,
                                             .max_answer = o->max_answer,
                                             .submit = submit_read,
                                             .store = s,
                                             .answer = o->answer,
                                             .self = o->self});
    for (fl_entry *e = NULL; (e = fl_map_next(&global_block(s)->vars, e));) {
        const fl_var *v = e->value;
        fl_value *value = fl_scope_find(o->scope, v->name);
        if (v->persistable && value && !fl_map_get(&s->gradients, v->name))
            fl_pulls_add(s->pulls, v->name, value);
    }
    for (int64_t i = 0; i < s->updates.n; i++)
        assign_pullables(s, s->updates.at[i]);
}

/* --- making: what outlives the process --- */

static bool lies_in_rows(const fl_pstore *s, const char *name)
{
    int state;
    for (int64_t i = 0; i < s->updates.n; i++) {
        const fl_update *u = s->updates.at[i];
        if (u->table && fl_update_in_rows(u, name, &state))
            return true;
    }
    return false;
}

static bool holds_tensor(const fl_value *v)
{
    return v && v->kind == FL_LOD_TENSOR && fl_tensor_bytes(&v->tensor);
}

/* All persistable tensors, and the copies that owners have of those that the
 * learning rates write. */
static void add_kept(fl_pstore *s)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&global_block(s)->vars, e));) {
        const fl_var *v = e->value;
        fl_value *first = fl_scope_find(s->opts.scope, v->name);
        if (!v->persistable || !holds_tensor(first) ||
            fl_map_get(&s->gradients, v->name) || lies_in_rows(s, v->name))
            continue;
        fl_kept_add(s->kept, v->name, 0, first);
        for (int i = 1; i < s->owners; i++) {
            fl_value *own = fl_scope_find(s->owner[i].scope, v->name);
            if (own != first && holds_tensor(own))
                fl_kept_add(s->kept, v->name, i, own);
        }
    }
}

/* Check that all that an update changes is kept. */
static fl_err check_kept(const fl_pstore *s, const fl_update *u)
{
    for (int64_t i = 0; i < u->writes.n; i++)
        if (u->writes.at[i] != u->mean &&
            !fl_kept_has(s->kept, u->writes.at[i]))
            return fl_fail(FL_EINVAL,
                           "listen_and_serv: the update by \"%s\" writes a "
                           "variable that held nothing at the start; such a "
                           "variable is lost when the process ends: set "
                           "FLUID_DURABILITY=memory",
                           u->grad->name);
    return FL_OK;
}

/* What the rates write is copied back after a restart: no update may change it.
 */
static fl_err keep_rates(const fl_pstore *s, owner *o)
{
    int64_t places = 0;
    size_t bytes = 0;
    for (int64_t i = 0; i < o->rates.n; i++) {
        rates *r = &o->rates.at[i];
        const int64_t n = r->writes.n;
        for (int64_t k = 0; k < n; k++)
            if (fl_kept_has(s->kept, r->writes.at[k])) {
                fl_push(&r->kept, r->writes.at[k]);
                bytes += fl_tensor_bytes(&r->writes.at[k]->tensor);
                places++;
            }
        for (int64_t k = 0; k < o->updates.n; k++)
            for (int64_t j = 0; j < o->updates.at[k]->writes.n * n; j++)
                if (o->updates.at[k]->writes.at[j / n] == r->writes.at[j % n])
                    return fl_fail(
                        FL_EINVAL,
                        "listen_and_serv: the update by \"%s\" writes a "
                        "variable of the learning rates, and then neither "
                        "outlives the process: set FLUID_DURABILITY=memory",
                        o->updates.at[k]->grad->name);
    }
    return fl_undo_rates_reserve(o->guard->undo, places, bytes);
}

static fl_err keep_owner(fl_pstore *s, owner *o)
{
    o->guard = fl_kept_guard(s->kept, o->index);
    o->rates_due = fl_undo_rates_due(o->guard->undo);
    if (o->updates.n >= FL_UNDO_UPDATES)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: an owner thread has %lld updates, at "
                       "most %d can outlive the process; raise FLUID_OWNERS",
                       (long long)o->updates.n, FL_UNDO_UPDATES - 1);
    for (int64_t i = 0; i < o->updates.n; i++) {
        fl_update *u = o->updates.at[i];
        FL_TRY(check_kept(s, u));
        u->guard = o->guard;
    }
    return keep_rates(s, o);
}

/* The rates give values that are not kept: they run once more. */
static fl_err recover_rates(owner *o)
{
    if (!fl_undo_rates_ran(o->guard->undo))
        return FL_OK;
    for (int64_t i = 0; i < o->rates.n; i++)
        FL_TRY(fl_plan_run(o->rates.at[i].plan, NULL, NULL));
    return FL_OK;
}

static fl_err keep_store(fl_pstore *s)
{
    FL_TRY(fl_kept_new(fl_recovery_dir(s->opts.recovery), s->owners, s->async,
                       &s->kept));
    add_kept(s);
    FL_TRY(fl_kept_map(s->kept));
    for (int i = 0; i < s->owners; i++)
        FL_TRY(keep_owner(s, &s->owner[i]));
    FL_TRY(fl_kept_recover(s->kept, s->extents));
    fl_extents_sweep(s->extents);
    for (int i = 0; i < s->owners; i++)
        FL_TRY(recover_rates(&s->owner[i]));
    return FL_OK;
}

/* What counts the changes of a value: its update if one alone writes it, else
 * its owner. */
static const int64_t *find_changes(const owner *o, const fl_value *value)
{
    const int64_t *changes = &o->changes;
    int writers = 0;
    for (int64_t i = 0; i < o->updates.n; i++) {
        const fl_update *u = o->updates.at[i];
        bool writes = false;
        for (int64_t j = 0; j < u->writes.n; j++)
            writes |= u->writes.at[j] == value;
        if (writes)
            changes = writers++ ? &o->changes : &u->runs;
    }
    return changes;
}

/* Pulls never share the memory of what learning rates write: their log names
 * the place of a value. */
static void keep_pullables(fl_pstore *s)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&global_block(s)->vars, e));) {
        const fl_value *x = fl_scope_find(s->opts.scope, e->key);
        const int index = fl_pulls_owner(s->pulls, e->key);
        const bool rated = fl_map_get(&s->rated, e->key);
        if (index >= 0)
            fl_pulls_keep(s->pulls, e->key, find_changes(&s->owner[index], x),
                          rated ? NULL : s->kept);
    }
}

/* Values that the startup program has left absent get memory, which nobody
 * touches, until keep_store gives them that of the state. */
static fl_err stand_in(fl_pstore *s)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&global_block(s)->vars, e));) {
        fl_value *x = fl_scope_find(s->opts.scope, e->key);
        if (x && fl_value_is_absent(x)) {
            const fl_shape shape = x->tensor.shape;
            FL_TRY(fl_tensor_resize(&x->tensor, x->tensor.dtype, &shape));
        }
    }
    return FL_OK;
}

static fl_err make_store(fl_pstore *s)
{
    const fl_attr *dc = find_attr(s, "dc_asgd");
    if (dc && dc->b)
        return fl_fail(FL_EINVAL, "listen_and_serv: dc_asgd is not supported");
    if (s->opts.recovery)
        s->extents = fl_extents_new(fl_recovery_dir(s->opts.recovery));
    if (s->opts.recovery &&
        fl_statedir_found(fl_recovery_dir(s->opts.recovery)))
        FL_TRY(stand_in(s));
    FL_TRY(add_blocks(s));
    assign_owners(s);
    for (int i = 0; i < s->owners; i++)
        FL_TRY(start_owner(&s->owner[i]));
    add_pullables(s);
    if (s->opts.recovery) {
        FL_TRY(keep_store(s));
        keep_pullables(s);
    }
    s->pushes =
        fl_pushes_new(&(fl_pushes_opts){.gradients = &s->gradients,
                                        .updates = (int)s->updates.n,
                                        .allow_nan = s->opts.allow_nan,
                                        .kept = s->async ? s->kept : NULL});
    return FL_OK;
}

/* --- applying --- */

static fl_err reserve_log(void *update, bool *lacks)
{
    const fl_err err = fl_update_reserve(update);
    *lacks = err == FL_ENOMEM;
    return err;
}

static fl_err apply_to_rows(void *update, bool *lacks)
{
    fl_update *u = update;
    const fl_err err = fl_update_apply(u);
    *lacks = err && fl_table_lacks_room(u->table);
    return err;
}

static fl_err run_update(owner *o, fl_update *u)
{
    if (u->table && !u->sum.n)
        return FL_OK;
    fl_room *room = o->store->room;
    fl_capture *capture = fl_writer_capture(o->store->writer, o->index);
    FL_TRY(fl_room_take(room, o->index, reserve_log, u));
    if (capture && u->table)
        fl_capture_rows(capture, o->index, u->table, u->sum.n,
                        fl_rows_index(&u->sum));
    if (u->table)
        FL_TRY(fl_room_take(room, o->index, apply_to_rows, u));
    FL_TRY(claim_values(o, u->writes.at, u->writes.n));
    o->changes++;
    u->runs++;
    if (!u->table)
        FL_TRY(fl_update_apply(u));
    const fl_err err = fl_update_run_plan(u);
    fl_update_clear(u);
    return err;
}

/* Save what the rates are about to write. */
static fl_err guard_rates(owner *o)
{
    fl_undo *undo = o->guard->undo;
    fl_undo_rates_begin(undo);
    for (int64_t i = 0; i < o->rates.n; i++) {
        const fl_values *w = &o->rates.at[i].kept;
        for (int64_t k = 0; k < w->n; k++) {
            const fl_tensor *t = &w->at[k]->tensor;
            FL_TRY(fl_undo_rates_add(undo,
                                     fl_dense_offset(o->guard->dense, t->data),
                                     t->data, fl_tensor_bytes(t)));
        }
    }
    fl_undo_rates_arm(undo);
    return FL_OK;
}

static fl_err run_rates(owner *o)
{
    if (o->guard && fl_undo_rated(o->guard->undo))
        return FL_OK; /* after a restart, in the middle of the task */
    if (o->guard && o->rates.n)
        FL_TRY(guard_rates(o));
    o->changes++;
    for (int64_t i = 0; i < o->rates.n; i++) {
        rates *r = &o->rates.at[i];
        FL_TRY(claim_values(o, r->writes.at, r->writes.n));
        const fl_err err = fl_plan_run(r->plan, NULL, NULL);
        if (err)
            return fl_fail_at(err, "learning rates");
    }
    return FL_OK;
}

/* Give the items of a round to the updates of the owner, in order of rank, then
 * of seq. */
static void hand_out_items(const owner *o, const applying *a)
{
    for (int64_t i = 0; i < o->updates.n; i++)
        o->updates.at[i]->given.n = 0;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < a->by[i].n; k++) {
            const fl_parcel *p = fl_parcel_of(a->by[i].part[k]);
            for (int j = 0; p && j < p->n; j++) {
                fl_update *u =
                    fl_map_get(&o->store->gradients, p->item[j].name);
                if (u && u->owner == o->index)
                    fl_push(&u->given, (fl_given){i, &p->item[j]});
            }
        }
}

static fl_err apply_gradients(owner *o, const applying *a)
{
    FL_TRY(run_rates(o));
    hand_out_items(o, a);
    for (int64_t i = 0; i < o->updates.n; i++) {
        fl_update *u = o->updates.at[i];
        bool some;
        if (o->guard && !fl_undo_enter(o->guard->undo, i))
            continue;
        fl_err err = fl_update_mean(u, a->n, &some);
        if (!err && some)
            err = run_update(o, u);
        if (err)
            return fl_fail_at(err, "update by \"%s\"", u->grad->name);
        if (o->guard)
            fl_undo_leave(o->guard->undo, i);
    }
    return FL_OK;
}

/* A round is task number `round` of an owner. */
static fl_err apply_round(owner *o, const applying *a)
{
    if (!o->guard)
        return apply_gradients(o, a);
    fl_undo *undo = o->guard->undo;
    if (fl_undo_done(undo) == a->round + 1)
        return FL_OK; /* it was finished before a restart */
    if (fl_undo_done(undo) != a->round)
        return fl_fail(FL_EINVAL,
                       "round %lld is to be applied, but the state contains "
                       "%lld rounds: it is not the state that the job knows",
                       (long long)a->round, (long long)fl_undo_done(undo));
    fl_undo_begin(undo, &(fl_undo_task){.rates_due = true});
    FL_TRY(apply_gradients(o, a));
    fl_undo_finish(undo);
    return FL_OK;
}

static fl_err apply_item(owner *o, const fl_staged *by, const fl_item *item)
{
    fl_update *u = fl_map_get(&o->store->gradients, item->name);
    bool some;
    if (!u || u->owner != o->index)
        return FL_OK;
    fl_err err = fl_update_add(u, by, item, &some);
    if (!err && some)
        err = run_update(o, u);
    return err ? fl_fail_at(err, "update by \"%s\"", u->grad->name) : FL_OK;
}

/* Apply the items of a push. An item is an update of the owner's task. */
static fl_err apply_items(owner *o, const fl_staged *by)
{
    int64_t number = 0;
    for (int k = 0; k < by->n; k++) {
        const fl_parcel *p = fl_parcel_of(by->part[k]);
        for (int i = 0; p && i < p->n; i++, number++) {
            if (o->guard && !fl_undo_enter(o->guard->undo, number))
                continue;
            FL_TRY(apply_item(o, by, &p->item[i]));
            if (o->guard)
                fl_undo_leave(o->guard->undo, number);
        }
    }
    return FL_OK;
}

/* Apply a push (asynchronous). The learning-rate blocks run once per step of a
 * trainer: after the last push of the step, before the next push of any
 * trainer. */
static fl_err apply_push(owner *o, const fl_staged *by)
{
    if (o->rates_due)
        FL_TRY(run_rates(o));
    o->rates_due = by->last;
    return apply_items(o, by);
}

/* Where an owner marks a push. */
typedef struct push_seat {
    fl_windows *windows;
    uint64_t session[2];
} push_seat;

static fl_err reserve_seat(void *of, bool *lacks)
{
    const push_seat *s = of;
    const fl_err err = fl_windows_reserve(s->windows, s->session);
    *lacks = err == FL_ENOMEM;
    return err;
}

/* A push that this owner has marked was applied before a restart. */
static fl_err apply_kept_push(owner *o, const fl_staged *by)
{
    const fl_guard *g = o->guard;
    const uint64_t session[2] = {by->session.hi, by->session.lo};
    push_seat seat = {g->windows, {session[0], session[1]}};
    if (fl_windows_seen(g->windows, session, by->seq))
        return FL_OK;
    FL_TRY(fl_room_take(o->store->room, o->index, reserve_seat, &seat));
    fl_undo_begin(g->undo, &(fl_undo_task){.session = {session[0], session[1]},
                                           .seq = by->seq,
                                           .rank = by->rank,
                                           .last = by->last,
                                           .rates_due = o->rates_due});
    FL_TRY(apply_push(o, by));
    FL_TRY(fl_windows_mark(g->windows,
                           &(fl_seat){.session = {session[0], session[1]},
                                      .rank = by->rank,
                                      .step = by->step,
                                      .first = by->first},
                           by->seq));
    fl_undo_finish(g->undo);
    return FL_OK;
}

/* --- applying: rounds through the threads --- */

/* The part of one owner in a round or push. */
typedef struct owner_task {
    owner *owner;
    applying *of;
} owner_task;

/* One allocation, with the tasks, the participants and their blobs behind. */
static applying *new_applying(const fl_pstore *s, const fl_staged *by, int n,
                              owner_task **tasks)
{
    size_t parts = 0;
    applying *a;
    for (int i = 0; i < n; i++)
        parts += (size_t)by[i].n;
    a = fl_mem_alloc(sizeof *a + (size_t)s->owners * sizeof **tasks +
                     (size_t)n * sizeof *by + parts * sizeof *by->part);
    *tasks = (owner_task *)(a + 1);
    a->by = (fl_staged *)(*tasks + s->owners);
    fl_blob *part = (fl_blob *)(a->by + n);
    for (int i = 0; i < n; i++) {
        a->by[i] = by[i];
        a->by[i].part = part;
        for (int k = 0; k < by[i].n; k++)
            *part++ = by[i].part[k];
    }
    return a;
}

static void finish_owner_task(applying *a, fl_err err)
{
    fl_pstore *s = a->store;
    pthread_mutex_lock(&s->lock);
    if (err && !a->why[0])
        snprintf(a->why, sizeof a->why, "%s", fl_errmsg());
    const bool last = !--a->left;
    if (last)
        fl_remove(&s->applying,
                  0); /* the oldest task: see the head of the file */
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    s->opts.applied(s->opts.self, a->why[0] ? a->why : NULL);
    fl_mem_free(a);
}

static void run_owner_task(void *arg)
{
    owner_task *t = arg;
    applying *a = t->of;
    owner *o = t->owner;
    finish_owner_task(a, !o->store->async ? apply_round(o, a)
                         : o->guard       ? apply_kept_push(o, a->by)
                                          : apply_push(o, a->by));
}

static void apply_staged(void *self, int64_t round, const fl_staged *by, int n)
{
    fl_pstore *s = self;
    owner_task *tasks;
    applying *a = new_applying(s, by, n, &tasks);
    a->store = s;
    a->round = round;
    a->n = n;
    a->left = s->owners;
    pthread_mutex_lock(&s->lock);
    fl_push(&s->applying, a);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->owners; i++) {
        owner *o = &s->owner[i];
        tasks[i] = (owner_task){o, a};
        fl_pool_submit(o->pool, &o->group, run_owner_task, &tasks[i]);
    }
}

/* fl_store.check. */
static fl_err check_push(void *self, const fl_staged *by)
{
    const fl_pstore *s = self;
    return fl_pushes_check(s->pushes, by);
}

/* fl_store.read. The next round or push cannot begin meanwhile, because the
 * state machine gives it on a thread that holds the machine's lock. */
static void read_values(void *self, fl_blob names, fl_peer to,
                        const fl_msg *reply)
{
    fl_pstore *s = self;
    pthread_mutex_lock(&s->lock);
    const bool idle = !s->applying.n;
    pthread_mutex_unlock(&s->lock);
    fl_pulls_read(s->pulls, names, to, reply, idle);
}

/* --- staged pushes that are kept --- */

static fl_blob stage_push(void *self, const fl_push_id *id, fl_blob b)
{
    const fl_pstore *s = self;
    return fl_recovery_keep(s->opts.recovery, id, b);
}

static void close_round(void *self, int64_t version)
{
    const fl_pstore *s = self;
    fl_recovery_closed(s->opts.recovery, version);
}

static void forget_session(void *self, fl_id session)
{
    const fl_pstore *s = self;
    fl_recovery_forget(s->opts.recovery, session);
}

/* --- snapshots --- */

/* The piece that a variable of this server is. */
static const fl_piece *find_piece(const fl_pstore *s, const char *name)
{
    const fl_placement *p = s->opts.place;
    for (int i = 0; p && i < p->n_pieces; i++)
        if (p->pieces[i].server == p->server &&
            !strcmp(p->pieces[i].name, name))
            return &p->pieces[i];
    return NULL;
}

/* Call fn for every tensor that a snapshot has, and its owner. */
static void each_tensor(fl_pstore *s,
                        void (*fn)(void *user, const fl_var *v, fl_value *x,
                                   int index, const fl_piece *k),
                        void *user)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&global_block(s)->vars, e));) {
        const fl_var *v = e->value;
        fl_value *x = fl_scope_find(s->opts.scope, v->name);
        const int index = fl_pulls_owner(s->pulls, v->name);
        if (v->persistable && holds_tensor(x) &&
            !fl_map_get(&s->gradients, v->name) && !lies_in_rows(s, v->name))
            fn(user, v, x, index < 0 ? 0 : index, find_piece(s, v->name));
    }
}

/* The name of an update's table. */
static const char *name_table(const fl_update *u)
{
    return u->ruled.param ? u->ruled.param : u->grad->name;
}

static void capture_tensor(void *user, const fl_var *v, fl_value *x, int index,
                           const fl_piece *k)
{
    fl_capture_add(user, index, x, v->name, k ? k->var : v->name,
                   k ? k->first : 0);
}

static void add_bytes(void *user, const fl_var *v, fl_value *x, int index,
                      const fl_piece *k)
{
    *(size_t *)user += fl_tensor_bytes(&x->tensor);
}

/* How many bytes a snapshot may copy. */
static size_t limit_copies(fl_pstore *s)
{
    size_t bytes = 0;
    each_tensor(s, add_bytes, &bytes);
    for (int64_t i = 0; i < s->updates.n; i++)
        if (s->updates.at[i]->table)
            bytes += (size_t)fl_table_bytes(s->updates.at[i]->table);
    bytes /= COPIES_PART;
    return bytes < COPIES_LEAST  ? COPIES_LEAST
           : bytes > COPIES_MOST ? COPIES_MOST
                                 : bytes;
}

static void settle_owners(void *store)
{
    fl_pstore_settle(store);
}

static fl_err make_writer(fl_pstore *s)
{
    const fl_pstore_opts *o = &s->opts;
    return fl_writer_new(
        &(fl_writer_opts){.disk = s->env.disk,
                          .base = o->snapshots,
                          .server = o->place ? o->place->server : 0,
                          .servers = o->place ? o->place->n_servers : 1,
                          .owners = s->owners,
                          .submit = submit_task,
                          .serve = submit_read,
                          .settle = settle_owners,
                          .store = s,
                          .written = o->written,
                          .self = o->self},
        &s->writer);
}

/* fl_room_opts.full. */
static bool on_full(void *self, int index, const char *why)
{
    const fl_pstore *s = self;
    const bool waits = s->opts.full && s->opts.full(s->opts.self, why);
    if (waits && s->writer)
        fl_writer_lacks_room(s->writer, index);
    return waits;
}

/* fl_store.cut. */
static void begin_cut(void *self, const fl_moment *cut)
{
    fl_pstore *s = self;
    if (fl_writer_busy(s->writer)) {
        FL_WARN("snapshot %lld is not taken: the one before it is still being "
                "written",
                (long long)cut->number);
        return;
    }
    fl_capture *c = fl_capture_new(s->owners, limit_copies(s));
    each_tensor(s, capture_tensor, c);
    for (int64_t i = 0; i < s->updates.n; i++) {
        const fl_update *u = s->updates.at[i];
        if (u->table)
            fl_capture_add_table(c, u->owner, u->table, name_table(u));
    }
    fl_writer_begin(s->writer, c, cut);
}

/* --- going back to a snapshot --- */

typedef struct loading {
    fl_pstore *store;
    const fl_restore *from;
    fl_err err;
} loading;

static void load_tensor(void *user, const fl_var *v, fl_value *x, int index,
                        const fl_piece *k)
{
    loading *l = user;
    fl_pstore *s = l->store;
    if (l->err)
        return;
    l->err = fl_restore_tensor(l->from, k ? k->var : v->name, k ? k->first : 0,
                               &x->tensor);
    for (int i = 1; i < s->owners && !l->err; i++) {
        fl_value *own = fl_scope_find(s->owner[i].scope, v->name);
        if (own != x && holds_tensor(own))
            memcpy(own->tensor.data, x->tensor.data,
                   fl_tensor_bytes(&x->tensor));
    }
}

fl_err fl_pstore_load(fl_pstore *s, const fl_restore *from)
{
    loading l = {.store = s, .from = from};
    each_tensor(s, load_tensor, &l);
    FL_TRY(l.err);
    for (int64_t i = 0; i < s->updates.n; i++) {
        const fl_update *u = s->updates.at[i];
        if (u->table)
            FL_TRY(
                fl_restore_table(from, name_table(u), s->opts.place, u->table));
    }
    for (int i = 0; i < s->owners; i++) {
        s->owner[i].rates_due = true;
        if (s->owner[i].guard && !s->async)
            fl_undo_start(s->owner[i].guard->undo, fl_restore_version(from));
    }
    return FL_OK;
}

/* --- asynchronous pushes that are kept --- */

typedef struct forget_task {
    owner *owner;
    uint64_t session[2];
} forget_task;

/* A session is gone. What a restart has left of its push is given up. */
static void run_forget_task(void *arg)
{
    forget_task *t = arg;
    const fl_guard *g = t->owner->guard;
    fl_undo_task task;
    if (fl_undo_interrupted(g->undo, &task) &&
        !memcmp(task.session, t->session, sizeof t->session)) {
        FL_WARN("push %lld of trainer %lld is in the model up to variable %lld "
                "only: its trainer and this server died together",
                (long long)task.seq, (long long)task.rank,
                (long long)fl_undo_reached(g->undo));
        fl_undo_finish(g->undo);
        t->owner->rates_due = fl_undo_rates_due(g->undo);
    }
    fl_windows_forget(g->windows, t->session);
    fl_mem_free(t);
}

static void forget_pusher(void *self, fl_id session)
{
    fl_pstore *s = self;
    for (int i = 0; i < s->owners; i++) {
        owner *o = &s->owner[i];
        forget_task *t = fl_mem_alloc(sizeof *t);
        *t = (forget_task){o, {session.hi, session.lo}};
        fl_pool_submit(o->pool, &o->group, run_forget_task, t);
    }
}

void fl_pstore_resume(fl_pstore *s, fl_server *server)
{
    if (s->kept && s->async)
        fl_kept_resume(s->kept, server);
}

/* --- public functions --- */

static void free_owner(owner *o)
{
    for (int64_t i = 0; i < o->rates.n; i++) {
        fl_plan_free(o->rates.at[i].plan);
        fl_program_free(o->rates.at[i].program);
        fl_vec_fini(&o->rates.at[i].writes);
        fl_vec_fini(&o->rates.at[i].kept);
    }
    fl_vec_fini(&o->rates);
    fl_vec_fini(&o->updates);
}

size_t fl_pstore_bytes(const fl_program *program, fl_scope *scope)
{
    const fl_block *b = fl_program_block(program, 0);
    size_t bytes = 0;
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
        const fl_var *v = e->value;
        const fl_value *x = fl_scope_find(scope, v->name);
        if (v->persistable && x && x->kind == FL_LOD_TENSOR)
            bytes += fl_tensor_bytes(&x->tensor);
    }
    return bytes;
}

bool fl_pstore_lacks(const fl_program *program, fl_scope *scope)
{
    const fl_block *b = fl_program_block(program, 0);
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
        const fl_value *x = fl_scope_find(scope, e->key);
        if (x && fl_value_is_absent(x))
            return true;
    }
    return false;
}

fl_err fl_pstore_new(const fl_pstore_opts *opts, fl_pstore **out)
{
    fl_pstore *s = fl_mem_alloc(sizeof *s);
    const fl_attr *sync = fl_desc_attr(&opts->op->desc, "sync_mode");
    s->opts = *opts;
    s->env = *opts->env;
    s->env.watch = NULL; /* only the caller's thread may use its watch */
    s->env.service = NULL;
    s->env.no_fuse = true; /* so that every plan gives the same bits */
    s->async = sync && !sync->b;
    s->tables.limit = opts->table_bytes;
    s->ops = (fl_store){.self = s,
                        .keep = fl_keeper_parcels,
                        .check = check_push,
                        .apply = apply_staged,
                        .read = read_values};
    if (opts->snapshots)
        s->ops.cut = begin_cut;
    if (opts->recovery && s->async) {
        s->ops.forget = forget_pusher;
    } else if (opts->recovery) {
        s->ops.stage = stage_push;
        s->ops.closed = close_round;
        s->ops.forget = forget_session;
    }
    s->arena = fl_arena_new();
    pthread_mutex_init(&s->lock, NULL);
    s->owners = opts->owners > 0 ? opts->owners : 1;
    if (s->owners > FL_OWNERS_MOST)
        s->owners = FL_OWNERS_MOST;
    s->owner = fl_mem_alloc((size_t)s->owners * sizeof *s->owner);
    for (int i = 0; i < s->owners; i++)
        s->owner[i] = (owner){.store = s, .index = i};
    s->room = fl_room_new(
        &(fl_room_opts){.owners = s->owners, .full = on_full, .self = s});
    fl_err err = make_store(s);
    if (!err && opts->snapshots)
        err = make_writer(s);
    if (err) {
        fl_pstore_free(s);
        return err;
    }
    *out = s;
    return FL_OK;
}

void fl_pstore_free(fl_pstore *s)
{
    if (!s)
        return;
    fl_room_end(s->room);
    fl_writer_free(s->writer);
    for (int i = 0; i < s->owners; i++)
        fl_pool_free(s->owner[i].pool);
    for (int64_t i = 0; i < s->updates.n; i++)
        fl_update_fini(s->updates.at[i]);
    for (int i = 0; i < s->owners; i++)
        free_owner(&s->owner[i]);
    fl_mem_free(s->owner);
    fl_room_free(s->room);
    fl_pulls_free(s->pulls);
    fl_pushes_free(s->pushes);
    fl_kept_free(s->kept);
    fl_extents_free(s->extents);
    fl_vec_fini(&s->updates);
    fl_vec_fini(&s->rate_blocks);
    fl_vec_fini(&s->applying);
    fl_map_fini(&s->gradients);
    fl_map_fini(&s->rated);
    pthread_mutex_destroy(&s->lock);
    fl_arena_free(s->arena);
    fl_mem_free(s);
}

void fl_pstore_settle(fl_pstore *s)
{
    for (int i = 0; i < s->owners; i++)
        if (s->owner[i].pool) /* else the store is not complete */
            (void)!fl_pool_wait(s->owner[i].pool, &s->owner[i].group, -1);
}

const fl_store *fl_pstore_ops(const fl_pstore *s)
{
    return &s->ops;
}

fl_err fl_pstore_room(fl_pstore *s)
{
    return fl_room_check(s->room);
}

void fl_pstore_waits(fl_pstore *s, fl_str *rows)
{
    pthread_mutex_lock(&s->lock);
    const long long n = s->applying.n;
    pthread_mutex_unlock(&s->lock);
    if (n)
        fl_str_printf(rows,
                      "the server waits for its %d owner threads: %lld "
                      "%s to be applied\n",
                      s->owners, n, s->async ? "pushes" : "rounds");
    if (fl_pstore_room(s))
        fl_str_printf(rows, "the server waits for room: %s\n", fl_errmsg());
    if (s->writer)
        fl_writer_waits(s->writer, rows);
    const long long refused = fl_pushes_not_finite(s->pushes);
    if (refused)
        fl_str_printf(rows,
                      "%lld pushes with gradients that are not finite "
                      "were refused\n",
                      refused);
}
