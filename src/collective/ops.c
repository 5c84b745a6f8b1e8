/* ops.c - the operators that talk to other ranks.
 *
 *     gen_nccl_id, c_gen_nccl_id   join the ranks; the Out variable names them
 *     c_comm_init                  X's ranks get the number ring_id
 *     c_allreduce_*                Out = the sum (max, min, prod) of all ranks'
 * X c_broadcast                  Out = X of rank `root` c_allgather Out = the
 * rows of all ranks, in their order c_reducescatter              Out = this
 * rank's rows of the sum c_sync_calc_stream           orders programs for GPUs;
 * copies X to Out c_sync_comm_stream           waits for all calls of ring_id
 *     allreduce, broadcast         as the c_ ones; they wait by themselves
 *
 * The operators and their attributes are Fluid's. device_id, devices and the
 * hierarchical_ attributes speak of GPUs and have no effect. */
#include "collective/ops.h"

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

/* Each Out is like its X, whatever that is. */
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

/* --- tables --------------------------------------------------------------- */

/* Fluid 0.13 to 0.15 said endpoint and endpoint_list, later versions trainers;
 * trainer_id is the rank. */
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
    .flags = FL_OP_NO_INFER | FL_OP_LOCAL,
    .infer = fl_infer_none,
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
    .flags = FL_OP_NO_INFER | FL_OP_LOCAL,
    .infer = fl_infer_none,
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
    .flags = FL_OP_NO_INFER,
    .infer = fl_infer_none,
};

/* Connects the GPUs of one process. */
const fl_op_def fl_op_c_comm_init_all = {
    .type = "c_comm_init_all",
    .attr = {{"devices", FL_ATTR_INTS}, {"ring_id", FL_ATTR_INT}},
    .flags = FL_OP_NO_INFER,
    .infer = fl_infer_none,
};

#define C_ATTRS                                                                \
    {"ring_id", FL_ATTR_INT},                                                  \
    {                                                                          \
        "use_calc_stream", FL_ATTR_BOOL                                        \
    }

#define C_ALLREDUCE(how)                                                       \
    const fl_op_def fl_op_c_allreduce_##how = {                                \
        .type = "c_allreduce_" #how,                                           \
        .in = {{"X"}},                                                         \
        .out = {{"Out"}},                                                      \
        .attr = {C_ATTRS},                                                     \
        .infer = infer_reduced,                                                \
    };

C_ALLREDUCE(sum)
C_ALLREDUCE(max)
C_ALLREDUCE(min)
C_ALLREDUCE(prod)

const fl_op_def fl_op_c_broadcast = {
    .type = "c_broadcast",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {C_ATTRS, {"root", FL_ATTR_INT}},
    .infer = infer_tensor,
};

const fl_op_def fl_op_c_allgather = {
    .type = "c_allgather",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {C_ATTRS, {"nranks", FL_ATTR_INT, .i = 1}},
    .infer = infer_gathered,
};

const fl_op_def fl_op_c_reducescatter = {
    .type = "c_reducescatter",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {C_ATTRS, {"nranks", FL_ATTR_INT, .i = 1}},
    .infer = infer_scattered,
};

const fl_op_def fl_op_c_sync_calc_stream = {
    .type = "c_sync_calc_stream",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .infer = infer_each,
};

const fl_op_def fl_op_c_sync_comm_stream = {
    .type = "c_sync_comm_stream",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .attr = {{"ring_id", FL_ATTR_INT}},
    .infer = infer_each,
};

/* reduce_type: 0 sum, 1 prod, 2 max, 3 min. */
const fl_op_def fl_op_allreduce = {
    .type = "allreduce",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"reduce_type", FL_ATTR_INT}, {"sync_mode", FL_ATTR_BOOL}},
    .infer = infer_reduced,
};

const fl_op_def fl_op_broadcast = {
    .type = "broadcast",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"root", FL_ATTR_INT}, {"sync_mode", FL_ATTR_BOOL}},
    .infer = infer_tensor,
};

const fl_op_def *const fl_collective_ops_table[] = {
#define FL_OP(type) &fl_op_##type,
#include "collective/list.h"
#undef FL_OP
};

const int fl_collective_ops_count =
    sizeof fl_collective_ops_table / sizeof *fl_collective_ops_table;
