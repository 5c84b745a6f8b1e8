/* Tables that live on servers, and what stands in for them.
 *
 *     prefetch             X i to server i, Out i is what it looked up
 *     lookup_sparse_table  on the server: the rows Ids of a table that grows
 *     fake_init            Out has this shape and no elements: its numbers are
 *                          the servers'
 *     ref_by_trainer_id    Out = X[TrainerId] */
#include "exec/plan.h"
#include "trainer/ops_in.h"
#include "trainer/service.h"

static fl_err infer_lookup(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "W", FL_REALS | FL_OR_ROWS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    return fl_meta_rows_of(x, fl_meta_in(x, "Ids", 0), fl_meta_in(x, "W", 0),
                           "Out", 0);
}

static fl_err infer_fake(fl_infer *x)
{
    const fl_attr *shape = fl_meta_attr(x, "shape");
    if (shape->n > FL_MAX_RANK)
        return fl_fail(FL_EINVAL, "fake_init: shape has %d numbers, at most %d",
                       shape->n, FL_MAX_RANK);
    const fl_shape s = fl_shape_of(shape->n, shape->longs);
    const fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out && !fl_meta_running(x)) /* of the type that it was declared with */
        fl_meta_set(x, "Out", 0, out->dtype, &s);
    return FL_OK;
}

static fl_err fake(fl_call *c)
{
    const fl_program *p = fl_call_site(c).program;
    const fl_attr *shape = fl_attr_get(c, "shape");
    const fl_shape s = fl_shape_of(shape->n, shape->longs);
    fl_value *out = fl_out_value(c, "Out", 0);
    fl_var *v;
    FL_TRY(
        fl_block_get(fl_program_block(p, 0), fl_desc_out1(c->desc, "Out"), &v));
    fl_value_set_absent(out, v->dtype, &s);
    return FL_OK;
}

/* --- prefetch --- */

static fl_err infer_prefetch(fl_infer *x)
{
    return fl_meta_check(x, "X", FL_SET(FL_I64));
}

/* Ids that split_ids has dealt; servers call rows by their number in the whole.
 */
static fl_err prefetch(fl_call *c)
{
    const fl_attr *to = fl_attr_get(c, "epmap");
    const int n = fl_in_count(c, "X");
    fl_lookup *ask = fl_scratch(c, n, sizeof *ask);
    fl_trainer *t;
    if (!ask)
        return FL_ENOMEM;
    if (to->n != n || fl_out_count(c, "Out") != n)
        return fl_fail(FL_EINVAL, "prefetch: %d X, %d Out, %d servers in epmap",
                       n, fl_out_count(c, "Out"), to->n);
    FL_TRY(fl_call_trainer(c, &t));
    for (int i = 0; i < n; i++) {
        const fl_tensor *ids = fl_in_at(c, "X", i);
        ask[i] = (fl_lookup){.table = fl_attr_str(c, "table_name"),
                             .n = fl_tensor_numel(ids),
                             .rows = ids->data,
                             .out = fl_out_at(c, "Out", i)};
        FL_TRY(fl_call_server(c, to->strings[i], &ask[i].server));
        fl_out_value(c, "Out", i)->kind = FL_LOD_TENSOR;
    }
    return fl_trainer_lookup(t, fl_call_watch(c), n, ask);
}

/* --- others --- */

static fl_err infer_pick(fl_infer *x)
{
    fl_meta *out = fl_meta_out(x, "Out", 0);
    FL_TRY(fl_meta_check(x, "TrainerId", FL_SET(FL_I64)));
    if (out)
        *out = *fl_meta_in(x, "X", 0);
    return FL_OK;
}

static fl_err pick(fl_call *c)
{
    const fl_tensor *id = fl_in(c, "TrainerId");
    const int64_t n = fl_in_count(c, "X");
    const int64_t at = fl_tensor_numel(id) ? *(const int64_t *)id->data : -1;
    if (at < 0 || at >= n)
        return fl_fail(FL_EINVAL,
                       "ref_by_trainer_id: TrainerId is %lld, X has %lld",
                       (long long)at, (long long)n);
    return fl_value_copy(fl_out_value(c, "Out", 0),
                         fl_in_value(c, "X", (int)at));
}

/* What comes back has as many rows as ids went out. */
const fl_op_def fl_op_prefetch = {
    .type = "prefetch",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},
            {"table_name", FL_ATTR_STRING},
            {"trainer_id", FL_ATTR_INT},
        },
    .flags = FL_OP_DYNAMIC,
    .infer = infer_prefetch,
    .run = prefetch,
};

const fl_op_def fl_op_lookup_sparse_table = {
    .type = "lookup_sparse_table",
    .in = {{"W"}, {"Ids"}},
    .out = {{"Out"}},
    .attr =
        {
            {"is_sparse", FL_ATTR_BOOL, .b = true},
            {"is_distributed", FL_ATTR_BOOL, .b = true},
            {"padding_idx", FL_ATTR_LONG, .i = -1},
            {"auto_grown_table", FL_ATTR_BOOL, .b = true},
            {"is_test", FL_ATTR_BOOL},
            /* how rows start: as this op would make them, with these two
             * numbers (value; min, max; mean, std) */
            {"start", FL_ATTR_STRING, .ours = true},
            {"start_a", FL_ATTR_FLOAT, .ours = true},
            {"start_b", FL_ATTR_FLOAT, .ours = true},
            {"start_seed", FL_ATTR_INT, .ours = true},
        },
    .infer = infer_lookup,
};

const fl_op_def fl_op_fake_init = {
    .type = "fake_init",
    .out = {{"Out"}},
    .attr = {{"shape", FL_ATTR_LONGS, .required = true}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer_fake,
    .run = fake,
};

const fl_op_def fl_op_ref_by_trainer_id = {
    .type = "ref_by_trainer_id",
    .in = {{"X", FL_MANY}, {"TrainerId"}},
    .out = {{"Out"}},
    .infer = infer_pick,
    .run = pick,
};
