/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of transpiled programs that do not talk to a server.
 *
 *     fake_init          Out gets a shape and no memory: servers hold it
 *     ref_by_trainer_id  Out = X[TrainerId]
 *     checkpoint_notify  has slots and attributes, so that programs with it can
 *                        be made, checked, saved and shown; it does not run */
#include "exec/plan.h"
#include "graph/program.h"

/* --- fake_init --- */

static fl_err infer_fake_init(fl_infer *x)
{
    const fl_attr *shape = fl_meta_attr(x, "shape");
    if (shape->n > FL_MAX_RANK)
        return fl_fail(FL_EINVAL,
                       "fake_init: shape has %d numbers, expected at most %d",
                       shape->n, FL_MAX_RANK);
    const fl_shape s = fl_shape_of(shape->n, shape->longs);
    const fl_meta *out = fl_meta_out(x, "Out", 0);
    if (out && !fl_meta_running(
                   x)) /* while the program is built: keep the declared type */
        fl_meta_set(x, "Out", 0, out->dtype, &s);
    return FL_OK;
}

static fl_err fake_init(fl_call *c)
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

/* --- ref_by_trainer_id --- */

static fl_err infer_ref(fl_infer *x)
{
    fl_meta *out = fl_meta_out(x, "Out", 0);
    FL_TRY(fl_meta_check(x, "TrainerId", FL_SET(FL_I64)));
    if (out)
        *out = *fl_meta_in(x, "X", 0);
    return FL_OK;
}

static fl_err ref_by_trainer_id(fl_call *c)
{
    const fl_tensor *id = fl_in(c, "TrainerId");
    const int64_t n = fl_in_count(c, "X");
    const int64_t at = fl_tensor_numel(id) ? *(const int64_t *)id->data : -1;
    if (at < 0 || at >= n)
        return fl_fail(
            FL_EINVAL,
            "ref_by_trainer_id: TrainerId is %lld, but X has %lld variables",
            (long long)at, (long long)n);
    return fl_value_copy(fl_out_value(c, "Out", 0),
                         fl_in_value(c, "X", (int)at));
}

const fl_op_def fl_op_fake_init = {
    .type = "fake_init",
    .out = {{"Out"}},
    .attr = {{"shape", FL_ATTR_LONGS, .required = true}},
    .flags = FL_OP_DYNAMIC,
    .infer = infer_fake_init,
    .run = fake_init,
};

const fl_op_def fl_op_ref_by_trainer_id = {
    .type = "ref_by_trainer_id",
    .in = {{"X", FL_MANY}, {"TrainerId"}},
    .out = {{"Out"}},
    .infer = infer_ref,
    .run = ref_by_trainer_id,
};

const fl_op_def fl_op_checkpoint_notify = {
    .type = "checkpoint_notify",
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},
            {"dir", FL_ATTR_STRING},
            {"lookup_table", FL_ATTR_STRING},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = fl_infer_none,
};
