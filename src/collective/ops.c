/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - the operators that talk to other ranks.
 *
 *     gen_nccl_id, c_gen_nccl_id  join the ranks; the Out variable names them
 *     c_comm_init                 X's ranks get the number ring_id
 *     c_allreduce_*               Out = sum (max, min, prod) of X of all ranks
 *     c_broadcast                 Out = X of rank `root`
 *     c_allgather                 Out = the rows of all ranks, in their order
 *     c_reducescatter             Out = this rank's rows of the sum
 *     c_sync_calc_stream          copies X to Out; its purpose is GPUs
 *     c_sync_comm_stream          waits for all calls of ring_id
 *     allreduce, broadcast        like the c_ operators, but wait themselves
 *
 * The operators and their attributes are those of Fluid. device_id, devices and
 * the hierarchical_ attributes concern GPUs and have no effect. */
#include "collective/ops.h"

#include "collective/world.h"
#include "exec/plan.h"
#include "graph/verify.h"

#include <string.h>

/* --- shapes --------------------------------------------------------------- */

/* Out is like X; gradients of lookups are selected rows. */
static fl_err infer_reduced(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS | FL_OR_ROWS));
    return fl_infer_same(x);
}

static fl_err infer_tensor(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    return fl_infer_same(x);
}

/* Each Out has the kind, type and shape of its X. */
static fl_err infer_each(fl_infer *x)
{
    const int n = fl_meta_count_in(x, "X");
    if (fl_meta_count_out(x, "Out") != n)
        return fl_fail(FL_EINVAL, "%s: %d outputs for %d inputs",
                       fl_meta_type(x), fl_meta_count_out(x, "Out"), n);
    for (int i = 0; i < n; i++) {
        const fl_meta *in = fl_meta_in(x, "X", i);
        fl_meta *out = fl_meta_out(x, "Out", i);
        if (in && out)
            *out = *in;
    }
    return FL_OK;
}

static fl_err read_ranks(const fl_infer *x, fl_shape *shape, int64_t *ranks)
{
    FL_TRY(fl_meta_check(x, "X", FL_NUMBERS));
    *shape = fl_meta_in(x, "X", 0)->shape;
    *ranks = fl_meta_attr(x, "nranks")->i;
    if (!shape->rank)
        return fl_fail(FL_ESHAPE, "%s: X is a single number, expected rows",
                       fl_meta_type(x));
    if (*ranks < 1)
        return fl_fail(FL_EINVAL, "%s: nranks is %lld, expected 1 or more",
                       fl_meta_type(x), (long long)*ranks);
    return FL_OK;
}

static fl_err infer_gathered(fl_infer *x)
{
    fl_shape s;
    int64_t ranks;
    FL_TRY(read_ranks(x, &s, &ranks));
    if (s.dim[0] >= 0 && __builtin_mul_overflow(s.dim[0], ranks, &s.dim[0]))
        return fl_fail(FL_ESHAPE, "c_allgather: %lld ranks are too many",
                       (long long)ranks);
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "X", 0)->dtype, &s);
    return FL_OK;
}

static fl_err infer_scattered(fl_infer *x)
{
    fl_shape s;
    int64_t ranks;
    FL_TRY(read_ranks(x, &s, &ranks));
    if (s.dim[0] >= 0 && s.dim[0] % ranks)
        return fl_fail(FL_ESHAPE,
                       "c_reducescatter: X has %lld rows, expected a multiple "
                       "of nranks, which is %lld",
                       (long long)s.dim[0], (long long)ranks);
    if (s.dim[0] >= 0)
        s.dim[0] /= ranks;
    fl_meta_set(x, "Out", 0, fl_meta_in(x, "X", 0)->dtype, &s);
    return FL_OK;
}

/* --- ranks ---------------------------------------------------------------- */

static fl_err find_worlds(const fl_call *c, fl_worlds **out)
{
    *out = c->hooks ? c->hooks->worlds : NULL;
    return *out ? FL_OK
                : fl_fail(FL_EINVAL,
                          "%s: nothing here connects it to other ranks; only "
                          "ranks can run it: exe.run of the program that "
                          "fleet.distributed_optimizer or DistributeTranspiler "
                          "made, after its startup program",
                          c->def->type);
}

/* Join the ranks of `list`, in which this process is number `rank`. The name of
 * the output variable names their world. */
static fl_err join_ranks(fl_call *c, const char *id, int n,
                         const char *const *list, int64_t rank)
{
    fl_worlds *w;
    FL_TRY(find_worlds(c, &w));
    const fl_site site = fl_call_site(c);
    if (rank < 0 || rank >= n)
        return fl_fail(FL_EINVAL, "%s: rank %lld of %d ranks, expected 0 to %d",
                       c->def->type, (long long)rank, n, n - 1);
    return fl_worlds_join(w, id, n, list, (int)rank, site.program,
                          site.env->watch);
}

static fl_err gen_nccl_id(fl_call *c)
{
    const fl_attr *list = fl_attr_get(c, "trainers");
    const int64_t rings = fl_attr_i64(c, "nccl_comm_num");
    const char *id = fl_desc_out1(c->desc, "NCCLID");
    fl_worlds *w;
    if (!list->n)
        list = fl_attr_get(c, "endpoint_list");
    if (!id)
        id = "NCCLID";
    FL_TRY(join_ranks(c, id, list->n, list->strings,
                      fl_attr_i64(c, "trainer_id")));
    FL_TRY(find_worlds(c, &w));
    for (int64_t i = 0; i < (rings < 1 ? 1 : rings); i++)
        FL_TRY(fl_worlds_name(w, i, id, 0, 0));
    return FL_OK;
}

/* The list of all ranks is other_endpoints with `endpoint` inserted at `rank`.
 */
static fl_err c_gen_nccl_id(fl_call *c)
{
    const fl_attr *others = fl_attr_get(c, "other_endpoints");
    const int64_t rank = fl_attr_i64(c, "rank");
    const int n = others->n + 1;
    const char **list = fl_mem_alloc((size_t)n * sizeof *list);
    for (int i = 0, k = 0; i < n; i++)
        list[i] = i == rank       ? fl_attr_str(c, "endpoint")
                  : k < others->n ? others->strings[k++]
                                  : "";
    const fl_err err =
        join_ranks(c, fl_desc_out1(c->desc, "Out"), n, list, rank);
    fl_mem_free(list);
    return err;
}

static fl_err c_comm_init(fl_call *c)
{
    fl_worlds *w;
    FL_TRY(find_worlds(c, &w));
    return fl_worlds_name(w, fl_attr_i64(c, "ring_id"),
                          fl_desc_in1(c->desc, "X"), fl_attr_i64(c, "nranks"),
                          fl_attr_i64(c, "rank"));
}

static fl_err c_comm_init_all(fl_call *c)
{
    return fl_fail(
        FL_EINVAL,
        "c_comm_init_all connects the GPUs of one process, and there "
        "are none; connect processes with c_gen_nccl_id and "
        "c_comm_init");
}

/* --- calls ---------------------------------------------------------------- */

/* Memory that a call keeps between runs. */
typedef struct state {
    fl_world *world;
    bool pending; /* a reduction was added and not waited for yet */
    bool beside;  /* a sync op waits for the result before any op reads it */
} state;

static void end_state(void *scratch)
{
    state *s = scratch;
    if (s && s->pending)
        fl_world_abandon(s->world);
    if (s)
        fl_world_unref(s->world);
    fl_mem_free(s);
}

static bool touches(const fl_op *op, const char *name)
{
    fl_map names = {0};
    fl_op_add_reads(op, &names);
    fl_op_add_writes(op, &names);
    const bool found = fl_map_get(&names, name);
    fl_map_fini(&names);
    return found;
}

static bool is_sync(const fl_op *op, int64_t ring)
{
    const fl_attr *a = fl_desc_attr(&op->desc, "ring_id");
    return !strcmp(op->desc.type, "c_sync_comm_stream") &&
           (a ? a->i : 0) == ring;
}

/* Whether an op from `first` on uses the variable. */
static bool is_used(const fl_ops *ops, int64_t first, const char *out_var)
{
    for (int64_t i = first; i < ops->n; i++)
        if (touches(ops->at[i], out_var))
            return true;
    return false;
}

/* Whether a c_sync_comm_stream of the ring comes before every op that uses the
 * result. Otherwise the call waits for its result itself. It also waits if no
 * op uses the result, since another temporary may get its memory. */
static bool is_synced(const fl_call *c, int64_t ring)
{
    const fl_program *p = fl_call_site(c).program;
    const char *out = fl_desc_out1(c->desc, "Out");
    for (int64_t b = 0; b < p->blocks.n; b++) {
        const fl_ops *ops = &p->blocks.at[b]->ops;
        int64_t i = 0;
        while (i < ops->n && &ops->at[i]->desc != c->desc)
            i++;
        for (i++; i < ops->n; i++) {
            if (is_sync(ops->at[i], ring))
                return is_used(ops, i, out);
            if (touches(ops->at[i], out))
                return false;
        }
    }
    return false;
}

static fl_err make_state(fl_call *c, int64_t ring, bool beside)
{
    fl_worlds *w;
    fl_world *world;
    FL_TRY(find_worlds(c, &w));
    FL_TRY(fl_worlds_find(w, ring, &world));
    state *s = fl_mem_alloc(sizeof *s);
    s->world = world;
    s->beside = beside && is_synced(c, ring);
    c->scratch = s;
    c->end_scratch = end_state;
    return FL_OK;
}

/* Find the world of a call, and check that all its ranks run the same program.
 */
static fl_err find_state(fl_call *c, int64_t ring, bool beside, state **out)
{
    if (!c->scratch)
        FL_TRY(make_state(c, ring, beside));
    const fl_site site = fl_call_site(c);
    *out = c->scratch;
    if ((*out)->pending) {
        fl_world_abandon((*out)->world);
        return fl_fail(FL_EIO,
                       "%s: the last run stopped in the middle of a step, "
                       "which the other ranks cannot repeat; start all ranks "
                       "again",
                       c->def->type);
    }
    return fl_world_agree((*out)->world, site.program, site.env->watch);
}

static const char *out_name(const fl_call *c)
{
    return fl_desc_out1(c->desc, "Out");
}

static fl_err copy_input(fl_call *c, int i)
{
    const fl_value *x = fl_in_value(c, "X", i);
    fl_value *out = fl_out_value(c, "Out", i);
    return x && out && x != out ? fl_value_copy(out, x) : FL_OK;
}

static fl_err reduce(fl_call *c, fl_reduce how, int64_t ring, bool beside)
{
    state *s;
    FL_TRY(find_state(c, ring, beside, &s));
    FL_TRY(copy_input(c, 0));
    FL_TRY(fl_world_reduce(s->world, &(fl_reduction){how, out_name(c),
                                                     fl_out_value(c, "Out", 0),
                                                     &s->pending}));
    return s->beside ? FL_OK
                     : fl_world_wait(s->world, fl_call_site(c).env->watch);
}

static fl_err c_reduce(fl_call *c, fl_reduce how)
{
    return reduce(c, how, fl_attr_i64(c, "ring_id"),
                  !fl_attr_bool(c, "use_calc_stream"));
}

static fl_err c_allreduce_sum(fl_call *c)
{
    return c_reduce(c, FL_REDUCE_SUM);
}

static fl_err c_allreduce_max(fl_call *c)
{
    return c_reduce(c, FL_REDUCE_MAX);
}

static fl_err c_allreduce_min(fl_call *c)
{
    return c_reduce(c, FL_REDUCE_MIN);
}

static fl_err c_allreduce_prod(fl_call *c)
{
    return c_reduce(c, FL_REDUCE_PROD);
}

static fl_err allreduce(fl_call *c)
{
    static const fl_reduce how[] = {FL_REDUCE_SUM, FL_REDUCE_PROD,
                                    FL_REDUCE_MAX, FL_REDUCE_MIN};
    const int64_t type = fl_attr_i64(c, "reduce_type");
    if (type < 0 || type > 3)
        return fl_fail(FL_EINVAL,
                       "allreduce: reduce_type is %lld, expected 0 (sum), 1 "
                       "(prod), 2 (max) or 3 (min)",
                       (long long)type);
    return reduce(c, how[type], 0, false);
}

static fl_err broadcast_on(fl_call *c, int64_t ring)
{
    fl_tensor *out = fl_out(c, "Out");
    state *s;
    FL_TRY(find_state(c, ring, false, &s));
    FL_TRY(copy_input(c, 0));
    return fl_world_broadcast(s->world, out_name(c), fl_attr_i64(c, "root"),
                              out->data, fl_tensor_bytes(out),
                              fl_call_site(c).env->watch);
}

static fl_err c_broadcast(fl_call *c)
{
    return broadcast_on(c, fl_attr_i64(c, "ring_id"));
}

static fl_err broadcast(fl_call *c)
{
    return broadcast_on(c, 0);
}

static fl_err check_ranks(const fl_call *c, const state *s)
{
    const int64_t n = fl_attr_i64(c, "nranks");
    return n == fl_world_ranks(s->world)
               ? FL_OK
               : fl_fail(FL_EINVAL, "%s: nranks is %lld, the ring has %d",
                         c->def->type, (long long)n, fl_world_ranks(s->world));
}

static fl_err c_allgather(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *out = fl_out(c, "Out");
    const size_t part = fl_tensor_bytes(x);
    size_t at[FL_MESH_WORLD + 1];
    state *s;
    FL_TRY(find_state(c, fl_attr_i64(c, "ring_id"), false, &s));
    FL_TRY(check_ranks(c, s));
    for (int i = 0; i <= fl_world_ranks(s->world); i++)
        at[i] = (size_t)i * part;
    if (part)
        memmove((char *)out->data + at[fl_world_rank(s->world)], x->data, part);
    return fl_world_all_gather(s->world, out_name(c), out->data, at,
                               fl_call_site(c).env->watch);
}

/* The reduction overwrites its whole buffer, so the kernel works on a copy of
 * X. */
static fl_err c_reducescatter(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    fl_tensor *out = fl_out(c, "Out");
    const size_t bytes = fl_tensor_bytes(x), part = fl_tensor_bytes(out);
    state *s;
    FL_TRY(find_state(c, fl_attr_i64(c, "ring_id"), false, &s));
    FL_TRY(check_ranks(c, s));
    char *all = fl_mem_alloc(bytes + 1);
    if (bytes)
        memcpy(all, x->data, bytes);
    const fl_err err = fl_world_reduce_scatter(s->world, out_name(c), x->dtype,
                                               all, fl_tensor_numel(out),
                                               fl_call_site(c).env->watch);
    if (!err && part)
        memcpy(out->data, all + (size_t)fl_world_rank(s->world) * part, part);
    fl_mem_free(all);
    return err;
}

static fl_err copy_inputs(fl_call *c)
{
    for (int i = 0; i < fl_in_count(c, "X"); i++)
        FL_TRY(copy_input(c, i));
    return FL_OK;
}

static fl_err c_sync_comm_stream(fl_call *c)
{
    state *s;
    FL_TRY(find_state(c, fl_attr_i64(c, "ring_id"), false, &s));
    FL_TRY(fl_world_wait(s->world, fl_call_site(c).env->watch));
    return copy_inputs(c);
}

/* --- gradients ------------------------------------------------------------ */

/* The gradient of a call is a call over the same ring, because the loss of each
 * rank depends on the inputs of all ranks. */
static fl_err call_back(fl_grads *g, const char *type)
{
    static const char *const same[] = {"ring_id", "use_calc_stream", "nranks"};
    fl_desc *d = fl_grad_back(g, type);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const fl_attr *a = fl_desc_attr(g->fwd, same[i]);
        if (a)
            fl_desc_set_attr(d, a);
    }
    return FL_OK;
}

static fl_err c_allreduce_sum_grad(fl_grads *g)
{
    return call_back(g, "c_allreduce_sum");
}

static fl_err c_allgather_grad(fl_grads *g)
{
    return call_back(g, "c_reducescatter");
}

static fl_err c_reducescatter_grad(fl_grads *g)
{
    return call_back(g, "c_allgather");
}

/* --- tables --------------------------------------------------------------- */

/* Fluid 0.13 to 0.15 used endpoint and endpoint_list, later versions use
 * trainers. trainer_id is the rank. */
const fl_op_def fl_op_gen_nccl_id = {
    .type = "gen_nccl_id",
    .out = {{"NCCLID", FL_OPTIONAL}},
    .attr =
        {
            {"trainers", FL_ATTR_STRINGS}, /* endpoints of all ranks */
            {"trainer_id", FL_ATTR_INT},
            {"nccl_comm_num", FL_ATTR_INT, .i = 1}, /* rings 0, 1, .. */
            {"use_hierarchical_allreduce", FL_ATTR_BOOL},
            {"hierarchical_allreduce_inter_nranks", FL_ATTR_INT, .i = -1},
            {"endpoint", FL_ATTR_STRING},
            {"endpoint_list", FL_ATTR_STRINGS},
        },
    .flags = FL_OP_RANKS | FL_OP_NO_INFER | FL_OP_LOCAL,
    .infer = fl_infer_none,
    .run = gen_nccl_id,
};

const fl_op_def fl_op_c_gen_nccl_id = {
    .type = "c_gen_nccl_id",
    .out = {{"Out"}},
    .attr =
        {
            {"rank", FL_ATTR_INT},
            {"endpoint", FL_ATTR_STRING}, /* of this rank */
            {"other_endpoints", FL_ATTR_STRINGS},
        },
    .flags = FL_OP_RANKS | FL_OP_NO_INFER | FL_OP_LOCAL,
    .infer = fl_infer_none,
    .run = c_gen_nccl_id,
};

const fl_op_def fl_op_c_comm_init = {
    .type = "c_comm_init",
    .in = {{"X"}},
    .attr =
        {
            {"nranks", FL_ATTR_INT},
            {"rank", FL_ATTR_INT},
            {"ring_id", FL_ATTR_INT},
            {"device_id", FL_ATTR_INT, .i = -1},
        },
    .flags = FL_OP_RANKS | FL_OP_NO_INFER,
    .infer = fl_infer_none,
    .run = c_comm_init,
};

/* In Fluid this connects the GPUs of one process. */
const fl_op_def fl_op_c_comm_init_all = {
    .type = "c_comm_init_all",
    .attr = {{"devices", FL_ATTR_INTS}, {"ring_id", FL_ATTR_INT}},
    .flags = FL_OP_RANKS | FL_OP_NO_INFER,
    .infer = fl_infer_none,
    .run = c_comm_init_all,
};

#define C_ATTRS                                                                \
    {"ring_id", FL_ATTR_INT},                                                  \
    {                                                                          \
        "use_calc_stream", FL_ATTR_BOOL                                        \
    }

#define C_ALLREDUCE(how, back)                                                 \
    const fl_op_def fl_op_c_allreduce_##how = {                                \
        .type = "c_allreduce_" #how,                                           \
        .in = {{"X"}},                                                         \
        .out = {{"Out"}},                                                      \
        .attr = {C_ATTRS},                                                     \
        .flags = FL_OP_RANKS,                                                  \
        .infer = infer_reduced,                                                \
        .run = c_allreduce_##how,                                              \
        .make_grad = back,                                                     \
    };

C_ALLREDUCE(sum, c_allreduce_sum_grad)
C_ALLREDUCE(max, NULL)
C_ALLREDUCE(min, NULL)
C_ALLREDUCE(prod, NULL)

const fl_op_def fl_op_c_broadcast = {
    .type = "c_broadcast",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {C_ATTRS, {"root", FL_ATTR_INT}},
    .flags = FL_OP_RANKS,
    .infer = infer_tensor,
    .run = c_broadcast,
};

const fl_op_def fl_op_c_allgather = {
    .type = "c_allgather",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {C_ATTRS, {"nranks", FL_ATTR_INT, .i = 1}},
    .flags = FL_OP_RANKS,
    .infer = infer_gathered,
    .run = c_allgather,
    .make_grad = c_allgather_grad,

};

const fl_op_def fl_op_c_reducescatter = {
    .type = "c_reducescatter",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {C_ATTRS, {"nranks", FL_ATTR_INT, .i = 1}},
    .flags = FL_OP_RANKS,
    .infer = infer_scattered,
    .run = c_reducescatter,
    .make_grad = c_reducescatter_grad,
};

const fl_op_def fl_op_c_sync_calc_stream = {
    .type = "c_sync_calc_stream",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .flags = FL_OP_RANKS,
    .infer = infer_each,
    .run = copy_inputs,
};

const fl_op_def fl_op_c_sync_comm_stream = {
    .type = "c_sync_comm_stream",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .attr = {{"ring_id", FL_ATTR_INT}},
    .flags = FL_OP_RANKS,
    .infer = infer_each,
    .run = c_sync_comm_stream,
};

/* reduce_type: 0 sum, 1 prod, 2 max, 3 min. */
const fl_op_def fl_op_allreduce = {
    .type = "allreduce",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"reduce_type", FL_ATTR_INT}, {"sync_mode", FL_ATTR_BOOL}},
    .flags = FL_OP_RANKS,
    .infer = infer_reduced,
    .run = allreduce,
};

const fl_op_def fl_op_broadcast = {
    .type = "broadcast",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"root", FL_ATTR_INT}, {"sync_mode", FL_ATTR_BOOL}},
    .flags = FL_OP_RANKS,
    .infer = infer_tensor,
    .run = broadcast,
};

const fl_op_def *const fl_collective_ops_table[] = {
#define FL_OP(type) &fl_op_##type,
#include "collective/list.h"
#undef FL_OP
};

const int fl_collective_ops_count =
    sizeof fl_collective_ops_table / sizeof *fl_collective_ops_table;
