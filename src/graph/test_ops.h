/* SPDX-License-Identifier: Apache-2.0 */
/* test_ops.h - a handful of operators without kernels, for graph/'s tests.
 *
 * graph/ never sees ops/; these have the tables of the real ones, as far as
 * programs can tell. */
#ifndef FL_GRAPH_TEST_OPS_H
#define FL_GRAPH_TEST_OPS_H

#include "base/test.h"
#include "graph/program.h"

static fl_err test_mul_infer(fl_infer *x)
{
    const fl_meta *a = fl_meta_in(x, "X", 0), *b = fl_meta_in(x, "Y", 0);
    if (a->shape.rank != 2 || b->shape.rank != 2 ||
        a->shape.dim[1] != b->shape.dim[0])
        return fl_fail(FL_ESHAPE, "mul: X has %lld columns, Y has %lld rows",
                       (long long)a->shape.dim[1], (long long)b->shape.dim[0]);
    fl_shape s = {2, {a->shape.dim[0], b->shape.dim[1]}};
    fl_meta_set(x, "Out", 0, a->dtype, &s);
    return FL_OK;
}

static fl_err test_fill_infer(fl_infer *x)
{
    const fl_attr *shape = fl_meta_attr(x, "shape");
    fl_shape s = fl_shape_of(shape->n, shape->longs);
    fl_meta_set(x, "Out", 0, (fl_dtype)fl_meta_attr(x, "dtype")->i, &s);
    return FL_OK;
}

static fl_err test_sgd_infer(fl_infer *x)
{
    const fl_meta *p = fl_meta_in(x, "Param", 0);
    fl_meta_set(x, "ParamOut", 0, p->dtype, &p->shape);
    return FL_OK;
}

static fl_err test_no_kernel(fl_call *c)
{
    return FL_OK;
}

static const fl_op_def test_feed = {
    .type = "feed",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"col", FL_ATTR_INT}},
    .flags = FL_OP_NO_INFER,
};
static const fl_op_def test_fetch = {
    .type = "fetch",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"col", FL_ATTR_INT}},
    .flags = FL_OP_NO_INFER,
};
static const fl_op_def test_mul = {
    .type = "mul",
    .in = {{"X"}, {"Y"}},
    .out = {{"Out"}},
    .attr = {{"x_num_col_dims", FL_ATTR_INT, .i = 1},
             {"y_num_col_dims", FL_ATTR_INT, .i = 1}},
    .infer = test_mul_infer,
    .grad_in = {"X", "Y", "Out@GRAD"},
    .grad_run = test_no_kernel,
};
static const fl_op_def test_elementwise_add = {
    .type = "elementwise_add",
    .in = {{"X"}, {"Y"}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INT, .i = -1}},
    .infer = fl_infer_broadcast,
    .grad_in = {"X", "Y", "Out@GRAD"},
    .grad_run = test_no_kernel,
};
static const fl_op_def test_scale = {
    .type = "scale",
    .in = {{"X"}},
    .out = {{"Out"}},
    .attr = {{"scale", FL_ATTR_FLOAT, .f = 1},
             {"bias", FL_ATTR_FLOAT},
             {"bias_after_scale", FL_ATTR_BOOL, .b = true}},
    .infer = fl_infer_same,
};
static const fl_op_def test_dropout = {
    .type = "dropout",
    .in = {{"X"}},
    .out = {{"Out"}, {"Mask", FL_INTERMEDIATE | FL_OPTIONAL}},
    .attr = {{"dropout_prob", FL_ATTR_FLOAT, .f = 0.5f},
             {"is_test", FL_ATTR_BOOL}},
    .infer = fl_infer_same,
};
static const fl_op_def test_sum = {
    .type = "sum",
    .in = {{"X", FL_MANY}},
    .out = {{"Out"}},
    .infer = fl_infer_same,
};
static const fl_op_def test_concat = {
    .type = "concat",
    .in = {{"X", FL_MANY}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INT}},
    .infer = fl_infer_same,
    .grad_in = {"X", "Out@GRAD"},
    .grad_run = test_no_kernel,
};
static const fl_op_def test_fill_constant = {
    .type = "fill_constant",
    .out = {{"Out"}},
    .attr = {{"shape", FL_ATTR_LONGS},
             {"dtype", FL_ATTR_INT, .i = FL_F32},
             {"value", FL_ATTR_FLOAT}},
    .infer = test_fill_infer,
};
static const fl_op_def test_sgd = {
    .type = "sgd",
    .in = {{"Param"}, {"Grad"}, {"LearningRate"}},
    .out = {{"ParamOut"}},
    .infer = test_sgd_infer,
};
static const fl_op_def test_conditional_block = {
    .type = "conditional_block",
    .in = {{"Cond", FL_MANY | FL_OPTIONAL}, {"Input", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL}, {"Scope", FL_OPTIONAL}},
    .attr = {{"sub_block", FL_ATTR_BLOCK, .required = true},
             {"is_scalar_condition", FL_ATTR_BOOL}},
    .flags = FL_OP_NO_INFER,
};
/* Any attribute type, for text and files. */
static const fl_op_def test_every = {
    .type = "every",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL}},
    .attr = {{"i", FL_ATTR_INT},
             {"f", FL_ATTR_FLOAT},
             {"s", FL_ATTR_STRING},
             {"ints", FL_ATTR_INTS},
             {"floats", FL_ATTR_FLOATS},
             {"strings", FL_ATTR_STRINGS},
             {"b", FL_ATTR_BOOL},
             {"bools", FL_ATTR_BOOLS},
             {"l", FL_ATTR_LONG},
             {"blocks", FL_ATTR_BLOCKS},
             {"longs", FL_ATTR_LONGS}},
    .flags = FL_OP_NO_INFER,
};

static inline fl_registry *test_registry(void)
{
    static const fl_op_def *const defs[] = {
        &test_feed,  &test_fetch,   &test_mul,   &test_elementwise_add,
        &test_scale, &test_dropout, &test_sum,   &test_fill_constant,
        &test_sgd,   &test_concat,  &test_every, &test_conditional_block,
    };
    fl_registry *r = NULL;
    CHECK_OK(fl_registry_new(defs, sizeof defs / sizeof *defs, &r));
    return r;
}

static inline fl_var *test_var(fl_block *b, fl_var like, int rank,
                               const int64_t *dim)
{
    fl_var *v = NULL;
    like.shape = fl_shape_of(rank, dim);
    if (!like.dtype)
        like.dtype = FL_F32;
    CHECK_OK(fl_block_add_var(b, &like, &v));
    return v;
}

#define TEST_DIMS(...)                                                         \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[])      \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

#endif
