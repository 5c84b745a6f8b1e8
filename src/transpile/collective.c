/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c - a training program for ranks that share gradients without
 * servers.
 *
 *     nccl2           the startup program joins the ranks (gen_nccl_id); the
 *                     main program is unchanged, and fl_collective_grads makes
 *                     the program that runs
 *     grad_allreduce  gradients are summed over all ranks while backward runs
 *     local_sgd       each rank updates its own parameters; after each step the
 *                     changes of all ranks are averaged
 *
 * In all modes the gradient of the loss starts with 1 / ranks, or the sum of
 * the changes is multiplied by it, so that sums over ranks are means. The
 * programs have the same ops as Fluid's. */
#include "base/endpoint.h"
#include "base/str.h"
#include "graph/copy.h"
#include "graph/verify.h"
#include "transpile/transpile.h"

#include <ctype.h>

#define SNAPSHOT "@SNAPSHOT"

enum {
    RINGS = 2, /* in grad_allreduce and local_sgd, as in Fluid */
    MOST_RINGS = 64
};

/* A program while it is transpiled. */
typedef struct edit {
    fl_arena *arena; /* holds the lists below */
    fl_program *main, *startup;
    int n; /* number of ranks */
    const char **endpoints;
    int rank, rings;
    int ring; /* the ring of the last call */
} edit;

typedef FL_VEC(const char *) name_list;

/* --- options --- */

static fl_err add_endpoint(edit *e, const char *text, size_t n)
{
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    if (!n)
        return FL_OK; /* two commas in a row are allowed */
    const char *name = fl_arena_printf(e->arena, "%.*s", (int)n, text);
    FL_TRY(fl_endpoint_check(name, "transpile: trainer "));
    for (int i = 0; i < e->n; i++)
        if (!strcmp(e->endpoints[i], name))
            return fl_fail(FL_EINVAL, "transpile: trainer %s is listed twice",
                           name);
    e->endpoints[e->n++] = name;
    return FL_OK;
}

static fl_err read_endpoints(edit *e, const char *at)
{
    e->endpoints = fl_arena_alloc(e->arena, (strlen(at) + 1) * sizeof(char *));
    while (*at) {
        at += strspn(at, " \t\n");
        const size_t n = strcspn(at, ",");
        FL_TRY(add_endpoint(e, at, n));
        at += n + (at[n] == ',');
    }
    return e->n ? FL_OK
                : fl_fail(FL_EINVAL, "transpile: trainers is empty, expected "
                                     "host:port,host:port");
}

static fl_err check_rank(const edit *e, const char *own)
{
    if (e->rank < 0 || e->rank >= e->n)
        return fl_fail(FL_EINVAL,
                       "transpile: trainer_id is %d, but trainers names %d: "
                       "ids go from 0 to %d",
                       e->rank, e->n, e->n - 1);
    if (own && strcmp(own, e->endpoints[e->rank]))
        return fl_fail(FL_EINVAL,
                       "transpile: trainer_id %d is %s, but current_endpoint "
                       "is %s; ids count the list of trainers from 0: "
                       "correct one of the two",
                       e->rank, e->endpoints[e->rank], own);
    return FL_OK;
}

static fl_err read_opts(edit *e, const fl_collective_opts *o)
{
    FL_TRY(read_endpoints(e, o->trainers ? o->trainers : ""));
    FL_TRY(check_rank(e, o->endpoint));
    if (o->rings < 0 || o->rings > MOST_RINGS)
        return fl_fail(FL_EINVAL,
                       "transpile: %d rings are asked for, expected 1 to %d",
                       o->rings, MOST_RINGS);
    return FL_OK;
}

/* --- ops --- */

static fl_desc *new_desc(const fl_block *b, const char *type, int role)
{
    fl_desc *d = fl_desc_new(b->program->arena, type);
    fl_desc_set_attr(d, &(fl_attr){"op_role", FL_ATTR_INT, .i = role});
    return d;
}

/* A new op that reads and writes the same variable. */
static fl_desc *new_desc_on(const fl_block *b, const char *type, int role,
                            const char *var)
{
    fl_desc *d = new_desc(b, type, role);
    fl_desc_set_in1(d, "X", var);
    fl_desc_set_out1(d, "Out", var);
    return d;
}

static fl_err insert_sync_calc(fl_block *b, int64_t at, int role,
                               const char *var)
{
    return fl_block_insert_op(
        b, at, new_desc_on(b, "c_sync_calc_stream", role, var), NULL);
}

/* Insert an all-reduce. The calls take the rings in turn. */
static fl_err insert_allreduce(edit *e, fl_block *b, int64_t at, int role,
                               const char *var)
{
    fl_desc *d = new_desc_on(b, "c_allreduce_sum", role, var);
    e->ring = (e->ring + 1) % e->rings;
    fl_set_int(d, "ring_id", e->ring);
    return fl_block_insert_op(b, at, d, NULL);
}

/* Insert the ops that wait until all calls of all rings have ended. */
static fl_err insert_sync_comm(const edit *e, fl_block *b, int64_t at, int role,
                               const char *var)
{
    for (int ring = 0; ring < e->rings; ring++) {
        fl_desc *d = new_desc_on(b, "c_sync_comm_stream", role, var);
        fl_set_int(d, "ring_id", ring);
        FL_TRY(fl_block_insert_op(b, at < 0 ? at : at + ring, d, NULL));
    }
    return FL_OK;
}

static fl_err insert_scale(const edit *e, fl_block *b, int64_t at, int role,
                           const char *var)
{
    fl_desc *d = new_desc_on(b, "scale", role, var);
    fl_set_float(d, "scale", 1.0 / e->n);
    return fl_block_insert_op(b, at, d, NULL);
}

/* --- startup --- */

static fl_err declare_id(fl_block *b, const char *name)
{
    fl_var *v;
    return fl_block_add_var(
        b, &(fl_var){.name = name, .kind = FL_RAW, .persistable = true}, &v);
}

/* A name for the id of ring i. If nccl_id is in use, a number is appended:
 * nccl_id_1. */
static const char *new_id(const edit *e, const fl_block *b, int i)
{
    const char *name;
    do
        name = fl_arena_printf(e->arena, "nccl_id_%d", i++);
    while (fl_block_var(b, name));
    return name;
}

static fl_err start_nccl2(const edit *e, const fl_collective_opts *o)
{
    fl_block *b = fl_program_block(e->startup, 0);
    const int rings = o->rings ? o->rings : 1;
    FL_TRY(declare_id(b, "NCCLID"));
    for (int i = 1; i < rings; i++)
        FL_TRY(declare_id(b, fl_arena_printf(e->arena, "NCCLID_%d", i)));
    for (int i = 0; o->hierarchical && i < rings; i++) {
        FL_TRY(declare_id(
            b, fl_arena_printf(e->arena, "Hierarchical_inter_NCCLID_%d", i)));
        FL_TRY(declare_id(
            b, fl_arena_printf(e->arena, "Hierarchical_exter_NCCLID_%d", i)));
    }
    fl_desc *d = fl_desc_new(e->startup->arena, "gen_nccl_id");
    fl_desc_set_out1(d, "NCCLID", "NCCLID");
    fl_set_strs(d, "trainers", e->n, e->endpoints);
    fl_set_int(d, "trainer_id", e->rank);
    fl_set_int(d, "nccl_comm_num", rings);
    fl_set_bool(d, "use_hierarchical_allreduce", o->hierarchical);
    if (o->hierarchical)
        fl_set_int(d, "hierarchical_allreduce_inter_nranks", o->inter_nranks);
    return fl_block_insert_op(b, -1, d, NULL);
}

static fl_err start_ring(const edit *e, fl_block *b, int ring)
{
    const char *id = new_id(e, b, ring);
    const char **others =
        fl_arena_alloc(e->arena, (size_t)e->n * sizeof *others);
    for (int i = 0, k = 0; i < e->n; i++)
        if (i != e->rank)
            others[k++] = e->endpoints[i];
    FL_TRY(declare_id(b, id));
    fl_desc *d = new_desc(b, "c_gen_nccl_id", FL_ROLE_FORWARD);
    fl_desc_set_out1(d, "Out", id);
    fl_set_int(d, "rank", e->rank);
    fl_set_str(d, "endpoint", e->endpoints[e->rank]);
    fl_set_strs(d, "other_endpoints", e->n - 1, others);
    FL_TRY(fl_block_insert_op(b, -1, d, NULL));
    d = new_desc(b, "c_comm_init", FL_ROLE_FORWARD);
    fl_desc_set_in1(d, "X", id);
    fl_set_int(d, "nranks", e->n);
    fl_set_int(d, "rank", e->rank);
    fl_set_int(d, "ring_id", ring);
    return fl_block_insert_op(b, -1, d, NULL);
}

static fl_err append_broadcast(fl_block *b, int ring, const char *var)
{
    fl_desc *d = new_desc_on(b, "c_broadcast", FL_ROLE_FORWARD, var);
    fl_set_int(d, "ring_id", ring);
    fl_set_int(d, "root", 0);
    return fl_block_insert_op(b, -1, d, NULL);
}

/* Join the ranks at startup, and broadcast the parameters of rank 0. */
static fl_err start_rings(edit *e)
{
    fl_block *b = fl_program_block(e->startup, 0);
    const fl_block *main = fl_program_block(e->main, 0);
    const char *last = NULL;
    for (int ring = 0; ring < e->rings; ring++)
        FL_TRY(start_ring(e, b, ring));
    for (fl_entry *v = NULL; (v = fl_map_next(&main->vars, v));) {
        if (!((const fl_var *)v->value)->param || !fl_block_var(b, v->key))
            continue;
        e->ring = (e->ring + 1) % e->rings;
        FL_TRY(append_broadcast(b, e->ring, v->key));
        last = v->key;
    }
    e->ring = -1;
    return last ? insert_sync_comm(e, b, -1, FL_ROLE_FORWARD, last) : FL_OK;
}

/* --- gradients --- */

static bool is_loss_grad(const fl_op *op)
{
    return fl_op_role(op) == (FL_ROLE_BACKWARD | FL_ROLE_LOSS);
}

/* Insert a scale after every op that starts the gradient of a loss. */
static fl_err scale_loss_grads(const edit *e, fl_block *b)
{
    for (int64_t i = b->ops.n - 1; i >= 0; i--) {
        const fl_desc *d = &b->ops.at[i]->desc;
        if (is_loss_grad(b->ops.at[i]) && d->n_out && d->out[0].n)
            FL_TRY(
                insert_scale(e, b, i + 1, FL_ROLE_BACKWARD, d->out[0].name[0]));
    }
    return FL_OK;
}

/* List the gradients of parameters that op `at` writes. */
static void add_grads(const fl_block *b, int64_t at, name_list *grads)
{
    const fl_op *op = b->ops.at[at];
    if (!(fl_op_role(op) & FL_ROLE_BACKWARD))
        return;
    for (int i = 1; fl_cut_role_var(op, i); i += 2) {
        const char *grad = fl_cut_role_var(op, i);
        if (fl_desc_writes(&op->desc, grad) && fl_block_find(b, grad))
            fl_push(grads, grad);
    }
}

/* Insert the calls for the gradients that op `at` writes. *behind becomes the
 * position after the last call. */
static fl_err reduce_grads_of(edit *e, fl_block *b, int64_t at, int64_t *behind,
                              const char **last)
{
    name_list grads = {0};
    fl_err err = FL_OK;
    int64_t next = at + 1;
    add_grads(b, at, &grads);
    if (grads.n)
        err = insert_sync_calc(b, next++, FL_ROLE_BACKWARD, grads.at[0]);
    for (int64_t i = 0; i < grads.n && !err; i++) {
        *last = grads.at[i];
        err = insert_allreduce(e, b, next++, FL_ROLE_BACKWARD, grads.at[i]);
        *behind = next;
    }
    fl_vec_fini(&grads);
    return err;
}

/* Sum the gradients over all ranks. *found: there were gradients. */
static fl_err reduce_grads(edit *e, bool *found)
{
    fl_block *b = fl_program_block(e->main, 0);
    const char *last = NULL;
    int64_t behind = 0;
    for (int64_t i = 0; i < b->ops.n; i++)
        FL_TRY(reduce_grads_of(e, b, i, &behind, &last));
    *found = last;
    if (!last)
        return FL_OK;
    while (behind < b->ops.n &&
           !(fl_op_role(b->ops.at[behind]) & FL_ROLE_OPTIMIZE))
        behind++;
    return insert_sync_comm(e, b, behind, FL_ROLE_BACKWARD, last);
}

static fl_err fail_without_grads(void)
{
    return fl_fail(FL_EINVAL, "transpile: the program has no gradients of "
                              "parameters; call minimize first");
}

static fl_err make_grad_allreduce(edit *e)
{
    bool found;
    FL_TRY(start_rings(e));
    FL_TRY(scale_loss_grads(e, fl_program_block(e->main, 0)));
    FL_TRY(reduce_grads(e, &found));
    return found ? FL_OK : fail_without_grads();
}

/* --- local SGD --- */

static const char *updated_param(const fl_op *op)
{
    const fl_desc *d = &op->desc;
    return fl_op_role(op) & FL_ROLE_OPTIMIZE && fl_desc_in1(d, "Grad")
               ? fl_desc_in1(d, "Param")
               : NULL;
}

static const char *snapshot_of(const edit *e, const char *param)
{
    return fl_arena_printf(e->arena, "%s" SNAPSHOT, param);
}

static fl_err declare_snapshot(fl_block *b, const fl_var *param,
                               const char *name)
{
    fl_var *v;
    return fl_block_add_var(b,
                            &(fl_var){.name = name,
                                      .kind = FL_LOD_TENSOR,
                                      .dtype = param->dtype,
                                      .shape = param->shape,
                                      .persistable = true,
                                      .stop_gradient = true},
                            &v);
}

/* out = x - y */
static fl_err insert_sub(fl_block *b, int64_t at, const char *x, const char *y,
                         const char *out)
{
    fl_desc *d = new_desc(b, "elementwise_sub", FL_ROLE_OPTIMIZE);
    fl_desc_set_in1(d, "X", x);
    fl_desc_set_in1(d, "Y", y);
    fl_desc_set_out1(d, "Out", out);
    return fl_block_insert_op(b, at, d, NULL);
}

static fl_err append_assign(fl_block *b, int role, const char *from,
                            const char *to)
{
    fl_desc *d = new_desc(b, "assign", role);
    fl_desc_set_in1(d, "X", from);
    fl_desc_set_out1(d, "Out", to);
    return fl_block_insert_op(b, -1, d, NULL);
}

/* After the update op `at`: replace the parameter by its change, summed over
 * all ranks. */
static fl_err reduce_change(edit *e, fl_block *b, int64_t at, const char *param)
{
    const char *snapshot = snapshot_of(e, param);
    FL_TRY(declare_snapshot(b, fl_block_find(b, param), snapshot));
    FL_TRY(insert_sub(b, at + 1, snapshot, param, param));
    FL_TRY(insert_sync_calc(b, at + 2, FL_ROLE_OPTIMIZE, param));
    return insert_allreduce(e, b, at + 3, FL_ROLE_OPTIMIZE, param);
}

/* Apply the mean of the changes to the parameter. */
static fl_err apply_change(const edit *e, fl_block *b, const char *param)
{
    const char *snapshot = snapshot_of(e, param);
    FL_TRY(insert_scale(e, b, -1, FL_ROLE_OPTIMIZE, param));
    FL_TRY(insert_sub(b, -1, snapshot, param, param));
    return append_assign(b, FL_ROLE_OPTIMIZE, param, snapshot);
}

static fl_err start_snapshot(const edit *e, const char *param)
{
    fl_block *b = fl_program_block(e->startup, 0);
    const fl_var *v = fl_block_find(fl_program_block(e->main, 0), param);
    const char *snapshot = snapshot_of(e, param);
    FL_TRY(declare_snapshot(b, v, snapshot));
    return append_assign(b, FL_ROLE_FORWARD, param, snapshot);
}

static fl_err average_changes(edit *e, name_list *params)
{
    fl_block *b = fl_program_block(e->main, 0);
    for (int64_t i = 0; i < b->ops.n; i++) {
        const char *param = updated_param(b->ops.at[i]);
        if (!param)
            continue;
        fl_push(params, param);
        FL_TRY(reduce_change(e, b, i, param));
        i += 3;
    }
    if (!params->n)
        return fail_without_grads();
    FL_TRY(insert_sync_comm(e, b, -1, FL_ROLE_OPTIMIZE,
                            params->at[params->n - 1]));
    for (int64_t i = 0; i < params->n; i++)
        FL_TRY(apply_change(e, b, params->at[i]));
    for (int64_t i = 0; i < params->n; i++)
        FL_TRY(start_snapshot(e, params->at[i]));
    return FL_OK;
}

static fl_err make_local_sgd(edit *e)
{
    name_list params = {0};
    FL_TRY(start_rings(e));
    const fl_err err = average_changes(e, &params);
    fl_vec_fini(&params);
    return err;
}

/* --- all of it --- */

static fl_err make_mode(edit *e, const fl_collective_opts *o)
{
    const char *mode = o->mode ? o->mode : "nccl2";
    FL_TRY(read_opts(e, o));
    if (!strcmp(mode, "nccl2"))
        return start_nccl2(e, o);
    e->rings = o->rings ? o->rings : RINGS;
    if (!strcmp(mode, "grad_allreduce"))
        return make_grad_allreduce(e);
    if (!strcmp(mode, "local_sgd"))
        return make_local_sgd(e);
    return fl_fail(FL_EINVAL,
                   "transpile: mode is \"%s\", expected \"nccl2\", "
                   "\"grad_allreduce\" or \"local_sgd\"",
                   mode);
}

fl_err fl_collective(const fl_program *main, const fl_program *startup,
                     const fl_collective_opts *opts, fl_program **main_out,
                     fl_program **startup_out)
{
    edit e = {.arena = fl_arena_new(),
              .main = fl_program_clone(main, false),
              .startup = fl_program_clone(startup, false),
              .rank = opts->rank,
              .ring = -1};
    const fl_err err = make_mode(&e, opts);
    fl_arena_free(e.arena);
    if (err) {
        fl_program_free(e.main);
        fl_program_free(e.startup);
        return err;
    }
    *main_out = e.main;
    *startup_out = e.startup;
    return FL_OK;
}

fl_err fl_collective_grads(const fl_program *main, int ranks,
                           fl_grad_scale scale, fl_program **out)
{
    bool found = false;
    edit e = {.main = fl_program_clone(main, false),
              .n = ranks,
              .rings = 1,
              .ring = -1};
    fl_err err = FL_OK;
    if (scale == FL_GRAD_MEAN)
        err = scale_loss_grads(&e, fl_program_block(e.main, 0));
    if (!err)
        err = reduce_grads(&e, &found);
    if (!err)
        *out = found ? e.main : NULL;
    if (!found)
        fl_program_free(e.main);
    return err;
}

/* List the persistable variables that the program reads before it writes them.
 */
static void find_state(const fl_program *p, name_list *out)
{
    const fl_block *b = fl_program_block(p, 0);
    fl_map seen = {0};
    for (int64_t i = 0; i < b->ops.n; i++) {
        fl_map reads = {0};
        fl_op_add_reads(b->ops.at[i], &reads);
        for (fl_entry *e = NULL; (e = fl_map_next(&reads, e));) {
            const fl_var *v = fl_block_var(b, e->key);
            if (!v || !v->persistable || fl_map_get(&seen, v->name) ||
                (v->kind && v->kind != FL_LOD_TENSOR))
                continue;
            fl_map_put(&seen, v->name, (void *)v);
            fl_push(out, v->name);
        }
        fl_map_fini(&reads);
        fl_op_add_writes(b->ops.at[i], &seen);
    }
    fl_map_fini(&seen);
}

fl_err fl_collective_broadcast(const fl_program *main, fl_program **out)
{
    name_list state = {0};
    edit e = {.rings = 1};
    fl_err err = FL_OK;
    find_state(main, &state);
    e.main = fl_program_make(main->registry);
    fl_block *b = fl_program_block(e.main, 0);
    for (int64_t i = 0; i < state.n && !err; i++) {
        fl_copy_var(b, fl_block_var(fl_program_block(main, 0), state.at[i]));
        err = append_broadcast(b, 0, state.at[i]);
    }
    if (!err && state.n)
        err = insert_sync_comm(&e, b, -1, FL_ROLE_FORWARD, state.at[0]);
    fl_vec_fini(&state);
    if (err)
        fl_program_free(e.main);
    else
        *out = e.main;
    return err;
}
