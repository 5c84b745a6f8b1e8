/* Tables that live on servers, and what stands in for them.
 *
 *     distributed_lookup_table  Outputs i = the rows Ids i of W, whose slices
 *                               lie on the servers
 *     prefetch             X i to server i, Out i is what it looked up
 *     lookup_sparse_table  on the server: the rows Ids of a table that grows
 *     fake_init            Out has this shape and no elements: its numbers are
 *                          the servers'
 *     ref_by_trainer_id    Out = X[TrainerId] */
#include "op/op.h"

/* A row of w for each id of `ids`, whose last dim is 1. */
static fl_err rows_of(const fl_infer *x, const fl_meta *ids, const fl_meta *w,
                      const char *slot, int i)
{
    char text[FL_SHAPE_TEXT];
    fl_shape s = ids->shape;
    if (w->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: W is %s, expected [v,d]",
                       fl_meta_type(x), fl_shape_text(&w->shape, text));
    if (s.rank < 1 || s.dim[s.rank - 1] != 1)
        return fl_fail(FL_ESHAPE, "%s: Ids is %s, expected [.., 1]",
                       fl_meta_type(x), fl_shape_text(&s, text));
    s.dim[s.rank - 1] = w->shape.dim[1];
    fl_meta_set(x, slot, i, w->dtype, &s);
    fl_meta *out = fl_meta_out(x, slot, i);
    if (out) {
        out->lod_level = ids->lod_level;
        out->lod = ids->lod;
    }
    return FL_OK;
}

static fl_err infer_lookups(fl_infer *x)
{
    const int n = fl_meta_count_in(x, "Ids"),
              m = fl_meta_count_out(x, "Outputs");
    FL_TRY(fl_meta_check(x, "W", FL_REALS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    if (n != m)
        return fl_fail(FL_EINVAL,
                       "distributed_lookup_table: %d Ids, %d Outputs", n, m);
    for (int i = 0; i < n; i++)
        FL_TRY(rows_of(x, fl_meta_in(x, "Ids", i), fl_meta_in(x, "W", 0),
                       "Outputs", i));
    return FL_OK;
}

static fl_err infer_lookup(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "W", FL_REALS | FL_OR_ROWS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    return rows_of(x, fl_meta_in(x, "Ids", 0), fl_meta_in(x, "W", 0), "Out", 0);
}

static fl_err infer_fake(fl_infer *x)
{
    const fl_attr *shape = fl_meta_attr(x, "shape");
    if (shape->n > FL_MAX_RANK)
        return fl_fail(FL_EINVAL, "fake_init: shape has %d numbers, at most %d",
                       shape->n, FL_MAX_RANK);
    const fl_shape s = fl_shape_of(shape->n, shape->longs);
    const fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out) /* of the type that it was declared with */
        fl_meta_set(x, "Out", 0, out->dtype, &s);
    return FL_OK;
}

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

const fl_op_def fl_op_distributed_lookup_table = {
    .type = "distributed_lookup_table",
    .in = {{"Ids", FL_MANY}, {"W"}},
    .out = {{"Outputs", FL_MANY}},
    .attr =
        {
            {"table_names", FL_ATTR_STRINGS},   /* the slices of W */
            {"height_sections", FL_ATTR_LONGS}, /* their rows */
            {"endpoints", FL_ATTR_STRINGS},     /* and servers */
            {"padding_idx", FL_ATTR_LONG, .i = -1},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = infer_lookups,
};

/* What comes back has as many rows as ids went out. */
const fl_op_def fl_op_prefetch = {
    .type = "prefetch",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = fl_infer_none,
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
        },
    .infer = infer_lookup,
};

const fl_op_def fl_op_fake_init = {
    .type = "fake_init",
    .out = {{"Out"}},
    .attr = {{"shape", FL_ATTR_LONGS, .required = true}},
    .infer = infer_fake,
};

const fl_op_def fl_op_ref_by_trainer_id = {
    .type = "ref_by_trainer_id",
    .in = {{"X", FL_MANY}, {"TrainerId"}},
    .out = {{"Out"}},
    .infer = infer_pick,
    .run = pick,
};
