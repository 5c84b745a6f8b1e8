/* SPDX-License-Identifier: Apache-2.0 */
/* The fused operators on embeddings, by hand and against the plain ones. */
#include "check/check.h"

static void concat_pools_and_joins(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_embed_concat",
        .attr = {{"order", FL_ATTR_INTS, FL_CASE_INTS(1, -1, 0)},
                 {"pool", FL_ATTR_BOOL, .b = true},
                 {"padding_idx", FL_ATTR_LONG, .i = 0}},
        .in = {{"Ids", {3, 1}, {1, 2, 1}, .dtype = "i64", .lod = "0,2,3"},
               {"Ids", {2, 1}, {0, 2}, .dtype = "i64", .lod = "0,2,2"},
               {"W", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Dense", {2, 1}, {9, 8}}},
        .out = {{"Out", {2, 5}, {5, 6, 9, 8, 10, 0, 0, 8, 3, 4}, .lod = ""}},
    });
}

static void concat_takes_one_id_a_row(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_embed_concat",
        .attr = {{"order", FL_ATTR_INTS, FL_CASE_INTS(0, 1)}},
        .in = {{"Ids", {2, 1}, {1, 0}, .dtype = "i64", .lod = "0,2"},
               {"Ids", {2, 1}, {1, 1}, .dtype = "i64"},
               {"W", {2, 1}, {1, 2}}},
        .out = {{"Out", {2, 2}, {2, 2, 1, 2}, .lod = "0,2"}},
    });
}

static void sgd_adds_up_repeats_and_skips_padding(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_embed_sgd",
        .attr = {{"order", FL_ATTR_INTS, FL_CASE_INTS(-1, 0)},
                 {"pool", FL_ATTR_BOOL, .b = true},
                 {"padding_idx", FL_ATTR_LONG, .i = 2}},
        .in = {{"Ids", {4, 1}, {1, 1, 2, 0}, .dtype = "i64", .lod = "0,3,4"},
               {"Param", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Dense", {2, 1}},
               {"Grad", {2, 3}, {7, 10, 20, 7, 30, 40}},
               {"LearningRate", {1}, {0.1}}},
        .out = {{"ParamOut", {3, 2}, {-2, -2, 1, 0, 5, 6}, .same = "Param"}},
    });
}

static void rows_have_the_gradient_of_each_id(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_embed_rows",
        .attr = {{"order", FL_ATTR_INTS, FL_CASE_INTS(-1, 0, 1)},
                 {"pool", FL_ATTR_BOOL, .b = true}},
        .in = {{"Ids", {3, 1}, {1, 1, 2}, .dtype = "i64", .lod = "0,2,3"},
               {"Ids", {1, 1}, {0}, .dtype = "i64", .lod = "0,0,1"},
               {"W", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Dense", {2, 1}},
               {"Grad", {2, 5}, {7, 10, 20, 30, 40, 8, 11, 21, 31, 41}}},
        .out = {{"Out",
                 {4, 2},
                 {10, 20, 10, 20, 11, 21, 31, 41},
                 .rows = "1,1,2,0",
                 .height = 3}},
    });
}

/* Ids 1, 1, 2 and 0 are rows 1, 1, 2 and 0 of the list 0, 1, 2. */
static void rows_of_one_id_are_added_up(void)
{
    fl_check_op(&(fl_op_case){
        .type = "fused_embed_rows",
        .attr = {{"order", FL_ATTR_INTS, FL_CASE_INTS(-1, 0, 1)},
                 {"pool", FL_ATTR_BOOL, .b = true},
                 {"reverse", FL_ATTR_BOOL, .b = true}},
        .in = {{"Ids", {3, 1}, {1, 1, 2}, .dtype = "i64", .lod = "0,2,3"},
               {"Ids", {1, 1}, {0}, .dtype = "i64", .lod = "0,0,1"},
               {"W", {3, 2}, {1, 2, 3, 4, 5, 6}},
               {"Dense", {2, 1}},
               {"Grad", {2, 5}, {7, 10, 20, 30, 40, 8, 11, 21, 31, 41}},
               {"Where", {9}, {3, 1, 1, 2, 0, 0, 1, 2, 0}, .dtype = "i64"}},
        .out = {{"Out",
                 {3, 2},
                 {31, 41, 20, 40, 11, 21},
                 .rows = "0,1,2",
                 .height = 3}},
    });
}

/* --- against the plain operators --- */

enum {
    SLOTS = 3,
    BATCH = 40,
    VOCAB = 17,
    WIDTH = 10,
};

static fl_tensor *make(fl_vars *v, const char *name, fl_dtype t, int64_t rows,
                       int64_t columns)
{
    fl_value *x = fl_vars_get(v, name);
    fl_shape s = {2, {rows, columns}};
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, t, &s));
    return &x->tensor;
}

static float some(int i)
{
    return (float)(i * 37 % 101) / 101 - 0.5f;
}

/* Slots s0.. with 0 to 3 ids a row, the table w, the gradient g, a rate. */
static void fill(fl_vars *v)
{
    fl_vars_init(v);
    for (int s = 0; s < SLOTS; s++) {
        int64_t length[BATCH], total = 0, n = BATCH;
        const int64_t *lengths = length;
        char name[4] = {'s', (char)('0' + s)};
        for (int r = 0; r < BATCH; r++)
            total += length[r] = (r * 5 + s) % 4;
        fl_tensor *t = make(v, name, FL_I64, total, 1);
        for (int i = 0; i < total; i++)
            ((int64_t *)t->data)[i] = (i * 11 + s * 3) % VOCAB;
        CHECK_OK(fl_lod_from_lengths(&t->lod, 1, &n, &lengths));
    }
    float *w = make(v, "w", FL_F32, VOCAB, WIDTH)->data;
    for (int i = 0; i < VOCAB * WIDTH; i++)
        w[i] = some(i);
    float *g = make(v, "g", FL_F32, BATCH, SLOTS * WIDTH)->data;
    for (int i = 0; i < BATCH * SLOTS * WIDTH; i++)
        g[i] = some(i + 50);
    *(float *)make(v, "lr", FL_F32, 1, 1)->data = 0.1f;
}

static fl_desc *op(fl_vars *v, const char *type)
{
    return fl_desc_new(v->arena, type);
}

static void run(fl_vars *v, fl_desc *d)
{
    CHECK_OK(fl_vars_run(v, d));
}

static const char *slot[] = {"s0", "s1", "s2"};
static const char *row[] = {"r0", "r1", "r2"};
static const char *pooled[] = {"p0", "p1", "p2"};
static const char *d_row[] = {"dr0", "dr1", "dr2"};
static const char *d_pooled[] = {"dp0", "dp1", "dp2"};
static const fl_attr sum = {"pooltype", FL_ATTR_STRING, .s = "SUM"};
static const fl_attr across = {"axis", FL_ATTR_INT, .i = 1};
static const fl_attr sparse = {"is_sparse", FL_ATTR_BOOL, .b = true};

static void plain_forward(fl_vars *v)
{
    for (int s = 0; s < SLOTS; s++) {
        fl_desc *d = op(v, "lookup_table");
        fl_desc_set_in1(d, "Ids", slot[s]);
        fl_desc_set_in1(d, "W", "w");
        fl_desc_set_out1(d, "Out", row[s]);
        run(v, d);
        d = op(v, "sequence_pool");
        fl_desc_set_in1(d, "X", row[s]);
        fl_desc_set_out1(d, "Out", pooled[s]);
        fl_desc_set_attr(d, &sum);
        run(v, d);
    }
    fl_desc *d = op(v, "concat");
    fl_desc_set_in(d, "X", SLOTS, pooled);
    fl_desc_set_out1(d, "Out", "y");
    fl_desc_set_attr(d, &across);
    run(v, d);
}

/* Gradients of the pooled rows of each slot. */
static void plain_concat_grad(fl_vars *v)
{
    fl_desc *d = op(v, "concat_grad");
    fl_desc_set_in(d, "X", SLOTS, pooled);
    fl_desc_set_in1(d, "Out@GRAD", "g");
    fl_desc_set_out(d, "X@GRAD", SLOTS, d_pooled);
    fl_desc_set_attr(d, &across);
    run(v, d);
}

/* From there down to the table: the gradient dw of one slot. */
static void plain_slot_grad(fl_vars *v, int s, const char *dw)
{
    fl_desc *d = op(v, "sequence_pool_grad");
    fl_desc_set_in1(d, "X", row[s]);
    fl_desc_set_in1(d, "Out@GRAD", d_pooled[s]);
    fl_desc_set_out1(d, "X@GRAD", d_row[s]);
    fl_desc_set_attr(d, &sum);
    run(v, d);
    d = op(v, "lookup_table_grad");
    fl_desc_set_in1(d, "W", "w");
    fl_desc_set_in1(d, "Ids", slot[s]);
    fl_desc_set_in1(d, "Out@GRAD", d_row[s]);
    fl_desc_set_out1(d, "W@GRAD", dw);
    fl_desc_set_attr(d, &sparse);
    run(v, d);
}

/* Gradients down to the table, applied slot by slot. */
static void plain_update(fl_vars *v)
{
    plain_concat_grad(v);
    for (int s = 0; s < SLOTS; s++) {
        plain_slot_grad(v, s, "dw");
        fl_desc *d = op(v, "sgd");
        fl_desc_set_in1(d, "Param", "w");
        fl_desc_set_in1(d, "Grad", "dw");
        fl_desc_set_in1(d, "LearningRate", "lr");
        fl_desc_set_out1(d, "ParamOut", "w");
        run(v, d);
    }
}

/* Gradients down to the table, added up from the last slot to the first, as
 * backward makes them. */
static void plain_sum(fl_vars *v)
{
    static const char *const backwards[] = {"dw2", "dw1", "dw0"};
    plain_concat_grad(v);
    for (int s = 0; s < SLOTS; s++)
        plain_slot_grad(v, s, backwards[SLOTS - 1 - s]);
    fl_desc *d = op(v, "sum");
    fl_desc_set_in(d, "X", SLOTS, backwards);
    fl_desc_set_out1(d, "Out", "all");
    run(v, d);
}

static fl_desc *fused(fl_vars *v, const char *type)
{
    static const int64_t in_order[] = {0, 1, 2};
    fl_desc *d = op(v, type);
    fl_desc_set_in(d, "Ids", SLOTS, slot);
    fl_desc_set_attr(
        d, &(fl_attr){"order", FL_ATTR_INTS, .n = SLOTS, .longs = in_order});
    fl_desc_set_attr(d, &(fl_attr){"pool", FL_ATTR_BOOL, .b = true});
    return d;
}

static void check_same(fl_vars *a, fl_vars *b, const char *name)
{
    const fl_tensor *x = &fl_vars_get(a, name)->tensor,
                    *y = &fl_vars_get(b, name)->tensor;
    CHECK(fl_shape_equal(&x->shape, &y->shape));
    for (int64_t i = 0; i < fl_tensor_numel(x); i++)
        CHECK_NEAR(((float *)x->data)[i], ((float *)y->data)[i], 1e-6);
}

static void fused_equal_the_plain_ones(void)
{
    fl_vars a, b;
    fill(&a);
    fill(&b);
    plain_forward(&a);
    fl_desc *d = fused(&b, "fused_embed_concat");
    fl_desc_set_in1(d, "W", "w");
    fl_desc_set_out1(d, "Out", "y");
    run(&b, d);
    check_same(&a, &b, "y");

    plain_update(&a);
    d = fused(&b, "fused_embed_sgd");
    fl_desc_set_in1(d, "Param", "w");
    fl_desc_set_in1(d, "Grad", "g");
    fl_desc_set_in1(d, "LearningRate", "lr");
    fl_desc_set_out1(d, "ParamOut", "w");
    run(&b, d);
    check_same(&a, &b, "w");
    fl_vars_fini(&a);
    fl_vars_fini(&b);
}

/* The list of different ids, as a lookup on servers makes it. */
static void make_where(fl_vars *v)
{
    int64_t n = 0, m = 0, at[VOCAB];
    for (int s = 0; s < SLOTS; s++)
        n += fl_tensor_numel(&fl_vars_get(v, slot[s])->tensor);
    int64_t *where = make(v, "where", FL_I64, 2 * n + 1, 1)->data;
    fl_vars_get(v, "where")->tensor.shape = (fl_shape){1, {2 * n + 1}};
    for (int64_t id = 0; id < VOCAB; id++) {
        at[id] = m;
        where[1 + n + m++] = id;
    }
    where[0] = m;
    for (int s = 0, k = 1; s < SLOTS; s++) {
        const fl_tensor *t = &fl_vars_get(v, slot[s])->tensor;
        for (int64_t i = 0; i < fl_tensor_numel(t); i++)
            where[k++] = at[((const int64_t *)t->data)[i]];
    }
}

static void fused_rows_equal_the_sum_to_the_last_bit(void)
{
    fl_vars a, b;
    fill(&a);
    fill(&b);
    plain_forward(&a);
    plain_sum(&a);
    make_where(&b);
    fl_desc *d = fused(&b, "fused_embed_rows");
    fl_desc_set_in1(d, "W", "w");
    fl_desc_set_in1(d, "Grad", "g");
    fl_desc_set_in1(d, "Where", "where");
    fl_desc_set_out1(d, "Out", "all");
    fl_desc_set_attr(d, &(fl_attr){"reverse", FL_ATTR_BOOL, .b = true});
    run(&b, d);
    const fl_rows *x = &fl_vars_get(&a, "all")->rows,
                  *y = &fl_vars_get(&b, "all")->rows;
    CHECK_INT(x->n, VOCAB);
    CHECK_INT(y->n, VOCAB);
    CHECK(!memcmp(fl_rows_index(x), fl_rows_index(y), VOCAB * sizeof(int64_t)));
    CHECK(!memcmp(x->value.data, y->value.data, VOCAB * WIDTH * sizeof(float)));
    fl_vars_fini(&a);
    fl_vars_fini(&b);
}

static void say_what_does_not_fit(void)
{
    CHECK_ERR(fl_infer_try("fused_embed_concat{order=[0,1]} Ids=i64[-1,1] "
                           "W=f32[9,8]"),
              FL_EINVAL,
              "fused_embed_concat: order has 2 numbers for 1 inputs");
    CHECK_ERR(fl_infer_try("fused_embed_concat{order=[1]} Ids=i64[-1,1] "
                           "W=f32[9,8]"),
              FL_EINVAL, "fused_embed_concat: order names Ids 1, there are 1");
    CHECK_ERR(fl_infer_try("fused_embed_concat{order=[0,-1]} Ids=i64[4,1] "
                           "W=f32[9,8] Dense=f32[5,1]"),
              FL_ESHAPE,
              "fused_embed_concat: Dense 0 has 5 rows, others have 4");
    CHECK_ERR(fl_infer_try("fused_embed_sgd{order=[0]} Ids=i64[4,1] "
                           "Param=f32[9,8] Grad=f32[4,9] LearningRate=f32[1]"),
              FL_ESHAPE,
              "fused_embed_sgd: Grad is f32[4,9], expected f32[4,8]");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "fused_embed_concat",
                  .attr = {{"order", FL_ATTR_INTS, FL_CASE_INTS(0)}},
                  .in = {{"Ids", {1, 1}, {3}, .dtype = "i64"}, {"W", {3, 1}}},
              }),
              FL_EINVAL, "lookup_table: id 3 is outside the table of 3 rows");
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "fused_embed_concat",
                  .attr = {{"order", FL_ATTR_INTS, FL_CASE_INTS(0)},
                           {"pool", FL_ATTR_BOOL, .b = true}},
                  .in = {{"Ids", {1, 1}, {0}, .dtype = "i64"}, {"W", {3, 1}}},
              }),
              FL_ESHAPE,
              "fused_embed_concat: Ids 0 has no sequences to sum up");
}

const fl_test fl_tests[] = {
    {"fused_embed_rows has the gradient of each id",
     rows_have_the_gradient_of_each_id},
    {"fused_embed_rows adds up rows of one id", rows_of_one_id_are_added_up},
    {"fused_embed_concat pools and joins", concat_pools_and_joins},
    {"fused_embed_concat takes one id a row", concat_takes_one_id_a_row},
    {"fused_embed_sgd adds up repeats and skips padding",
     sgd_adds_up_repeats_and_skips_padding},
    {"fused embeddings equal the plain operators", fused_equal_the_plain_ones},
    {"fused rows equal the sum of the slots to the last bit",
     fused_rows_equal_the_sum_to_the_last_bit},
    {"fused embeddings say what does not fit", say_what_does_not_fit},
    {0},
};
