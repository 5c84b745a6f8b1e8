/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/test_ops.h"

/* x[-1,13], w[13,1]: what most tests start from. */
typedef struct scene {
    fl_registry *r;
    fl_program *p;
    fl_block *b;
    fl_arena *a;
} scene;

static scene begin(void)
{
    scene s = {.r = test_registry(), .a = fl_arena_new()};
    s.p = fl_program_make(s.r);
    s.b = fl_program_block(s.p, 0);
    test_var(s.b, (fl_var){.name = "x", .is_data = true}, TEST_DIMS(-1, 13));
    test_var(s.b,
             (fl_var){.name = "w",
                      .persistable = true,
                      .param = &(fl_param_info){.trainable = true}},
             TEST_DIMS(13, 1));
    return s;
}

static void end(scene *s)
{
    fl_program_free(s->p);
    fl_registry_free(s->r);
    fl_arena_free(s->a);
}

static fl_desc *mul(scene *s, const char *x, const char *y, const char *out)
{
    fl_desc *d = fl_desc_new(s->a, "mul");
    fl_desc_set_in1(d, "X", x);
    fl_desc_set_in1(d, "Y", y);
    fl_desc_set_out1(d, "Out", out);
    return d;
}

static fl_desc *scale(scene *s, const char *x, const char *out)
{
    fl_desc *d = fl_desc_new(s->a, "scale");
    fl_desc_set_in1(d, "X", x);
    fl_desc_set_out1(d, "Out", out);
    return d;
}

static const char *shape_of(scene *s, const char *name)
{
    fl_var *v = NULL;
    CHECK_OK(fl_block_get(s->b, name, &v));
    return fl_shape_text(&v->shape,
                         fl_arena_alloc(s->a, (size_t)FL_SHAPE_TEXT));
}

static void starts_with_a_global_block(void)
{
    scene s = begin();
    fl_program *q = fl_program_make(s.r);
    CHECK_INT(q->blocks.n, 1);
    CHECK_INT(q->blocks.at[0]->parent, -1);
    CHECK(q->uid != s.p->uid);
    CHECK(!fl_program_block(q, 1));
    CHECK(!fl_program_block(q, -1));
    fl_program_free(q);
    end(&s);
}

static void an_op_makes_its_output_and_infers_it(void)
{
    scene s = begin();
    fl_op *op = NULL;
    CHECK_OK(fl_block_append_op(s.b, mul(&s, "x", "w", "y"), &op));
    CHECK_STR(shape_of(&s, "y"), "[-1,1]");
    CHECK_INT(fl_block_var(s.b, "y")->kind, FL_LOD_TENSOR);
    CHECK_INT(fl_block_var(s.b, "y")->dtype, FL_F32);
    CHECK_INT(op->desc.n_attr, 2);
    CHECK_INT(fl_desc_attr(&op->desc, "y_num_col_dims")->i, 1);
    end(&s);
}

static void given_attributes_stand_before_defaults(void)
{
    scene s = begin();
    fl_op *op = NULL;
    fl_desc *d = mul(&s, "x", "w", "y");
    fl_desc_set_attr(d, &(fl_attr){.name = "op_role"});
    fl_desc_set_attr(d, &(fl_attr){.name = "y_num_col_dims", .i = 2});
    CHECK_OK(fl_block_append_op(s.b, d, &op));
    CHECK_STR(op->desc.attr[0].name, "op_role");
    CHECK_STR(op->desc.attr[1].name, "y_num_col_dims");
    CHECK_INT(op->desc.attr[1].i, 2);
    CHECK_STR(op->desc.attr[2].name, "x_num_col_dims");
    CHECK_INT(d->n_attr, 2); /* the caller's desc is as it was */
    end(&s);
}

static void a_failed_op_leaves_no_trace(void)
{
    scene s = begin();
    const uint64_t version = s.p->version;
    test_var(s.b, (fl_var){.name = "v"}, TEST_DIMS(7, 1));
    CHECK_ERR(fl_block_append_op(s.b, mul(&s, "x", "v", "y"), NULL), FL_ESHAPE,
              "mul: X has 13 columns, Y has 7 rows");
    CHECK_ERR(fl_block_append_op(s.b, mul(&s, "x", "u", "y"), NULL), FL_ENOENT,
              "mul: input Y is \"u\", but block 0 has no such variable");
    CHECK_ERR(fl_block_append_op(s.b, mul(&s, "x", "@EMPTY@", "y"), NULL),
              FL_EINVAL, "mul: input Y is missing");
    CHECK_ERR(fl_block_append_op(s.b, mul(&s, "x", "w", ""), NULL), FL_EINVAL,
              "mul: output Out holds an empty name");
    CHECK(!fl_block_var(s.b, "y"));
    CHECK_INT(s.b->ops.n, 0);
    CHECK_INT((int64_t)s.p->version, (int64_t)version + 1);
    end(&s);
}

static void an_op_that_breaks_its_table_is_refused(void)
{
    scene s = begin();
    CHECK_ERR(fl_block_append_op(s.b, fl_desc_new(s.a, "scales"), NULL),
              FL_ENOENT, "did you mean \"scale\"?");
    CHECK_ERR(fl_block_insert_op(s.b, 1, scale(&s, "x", "y"), NULL), FL_EINVAL,
              "scale: it cannot be inserted at 1: block 0 has 0 ops");
    fl_desc *d = scale(&s, "x", "y");
    fl_desc_set_attr(d, &(fl_attr){.name = "factor"});
    CHECK_ERR(fl_block_append_op(s.b, d, NULL), FL_EINVAL,
              "scale: the operator has no attribute factor");
    d = fl_desc_new(s.a, "conditional_block");
    fl_desc_set_attr(d, &(fl_attr){"sub_block", FL_ATTR_BLOCK, .i = 1});
    CHECK_ERR(fl_block_append_op(s.b, d, NULL), FL_EINVAL,
              "attribute sub_block is block 1, but the program has 1 blocks");
    end(&s);
}

static void ops_enter_at_a_place_and_leave(void)
{
    scene s = begin();
    CHECK_OK(fl_block_append_op(s.b, scale(&s, "x", "a"), NULL));
    CHECK_OK(fl_block_append_op(s.b, scale(&s, "x", "c"), NULL));
    CHECK_OK(fl_block_insert_op(s.b, 1, scale(&s, "x", "b"), NULL));
    const char *want[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        CHECK_STR(fl_desc_out1(&s.b->ops.at[i]->desc, "Out"), want[i]);
    fl_block_remove_op(s.b, 1);
    CHECK_INT(s.b->ops.n, 2);
    CHECK_STR(fl_desc_out1(&s.b->ops.at[1]->desc, "Out"), "c");
    end(&s);
}

static void every_change_counts(void)
{
    scene s = begin();
    fl_op *op = NULL;
    uint64_t v = s.p->version;
    CHECK_OK(fl_block_append_op(s.b, scale(&s, "x", "a"), &op));
    CHECK(s.p->version > v);
    v = s.p->version;
    CHECK_OK(fl_op_set_attr(
        op, &(fl_attr){.name = "scale", .type = FL_ATTR_INT, .i = 2}));
    CHECK(s.p->version > v);
    CHECK_NEAR(fl_desc_attr(&op->desc, "scale")->f, 2, 0);
    v = s.p->version;
    fl_op_rename_out(op, "a", "b");
    CHECK(s.p->version > v);
    v = s.p->version;
    fl_op_rename_in(op, "not there", "b");
    CHECK(s.p->version == v);
    fl_block_remove_op(s.b, 0);
    CHECK(s.p->version > v);
    v = s.p->version;
    CHECK(fl_block_remove_var(s.b, "a"));
    CHECK(!fl_block_remove_var(s.b, "a"));
    CHECK(s.p->version == v + 1);
    fl_var_touch(fl_block_var(s.b, "x"));
    CHECK(s.p->version == v + 2);
    end(&s);
}

static void attributes_keep_their_type(void)
{
    scene s = begin();
    fl_op *op = NULL;
    CHECK_OK(fl_block_append_op(s.b, scale(&s, "x", "a"), &op));
    CHECK_ERR(fl_op_set_attr(op, &(fl_attr){"scale", FL_ATTR_STRING, .s = "2"}),
              FL_EINVAL, "scale: attribute scale is string, expected float");
    CHECK_ERR(fl_op_set_attr(op, &(fl_attr){"speed", FL_ATTR_INT}), FL_EINVAL,
              "scale: the operator has no attribute speed");
    CHECK_INT(fl_op_role(op), FL_ROLE_FORWARD);
    CHECK_OK(fl_op_set_attr(
        op, &(fl_attr){"op_role", FL_ATTR_INT, .i = FL_ROLE_OPTIMIZE}));
    CHECK_INT(fl_op_role(op), FL_ROLE_OPTIMIZE);
    end(&s);
}

static void a_parameter_keeps_its_declared_shape(void)
{
    scene s = begin();
    fl_desc *d = fl_desc_new(s.a, "fill_constant");
    const int64_t wrong[] = {13, 2}, right[] = {13, 1};
    fl_desc_set_out1(d, "Out", "w");
    fl_desc_set_attr(
        d, &(fl_attr){"shape", FL_ATTR_LONGS, .n = 2, .longs = wrong});
    CHECK_ERR(fl_block_append_op(s.b, d, NULL), FL_ESHAPE,
              "f32[13,2], but it is declared as ");
    fl_desc_set_attr(
        d, &(fl_attr){"shape", FL_ATTR_LONGS, .n = 2, .longs = right});
    CHECK_OK(fl_block_append_op(s.b, d, NULL));
    CHECK_OK(fl_block_append_op(s.b, scale(&s, "x", "x"), NULL));
    CHECK_STR(shape_of(&s, "x"), "[-1,13]");
    end(&s);
}

static void shapes_are_inferred_again_on_request(void)
{
    scene s = begin();
    fl_op *op = NULL;
    CHECK_OK(fl_block_append_op(s.b, mul(&s, "x", "w", "y"), &op));
    fl_block_var(s.b, "x")->shape.dim[0] = 20;
    CHECK_STR(shape_of(&s, "y"), "[-1,1]");
    CHECK_OK(fl_op_infer(op));
    CHECK_STR(shape_of(&s, "y"), "[20,1]");
    end(&s);
}

static void absent_outputs_get_no_var(void)
{
    scene s = begin();
    fl_desc *d = fl_desc_new(s.a, "mul_grad");
    fl_desc_set_in1(d, "X", "x");
    fl_desc_set_in1(d, "Y", "w");
    fl_desc_set_in1(d, "Out@GRAD", "x");
    fl_desc_set_out1(d, "X@GRAD", FL_EMPTY);
    fl_desc_set_out1(d, "Y@GRAD", "w@GRAD");
    CHECK_OK(fl_block_append_op(s.b, d, NULL));
    CHECK(!fl_block_var(s.b, FL_EMPTY));
    CHECK_STR(shape_of(&s, "w@GRAD"), "[13,1]");
    end(&s);
}

static void a_name_is_found_in_parents(void)
{
    scene s = begin();
    fl_block *sub = fl_program_add_block(s.p, 0);
    fl_var *v = NULL;
    CHECK(fl_block_find(sub, "x") == fl_block_var(s.b, "x"));
    CHECK(!fl_block_var(sub, "x"));
    CHECK_OK(fl_block_append_op(sub, scale(&s, "x", "local"), NULL));
    CHECK(fl_block_var(sub, "local"));
    CHECK(!fl_block_find(s.b, "local"));
    CHECK_OK(fl_block_append_op(sub, scale(&s, "x", "x"), NULL));
    CHECK(!fl_block_var(sub, "x"));
    CHECK_ERR(fl_block_get(sub, "z", &v), FL_ENOENT,
              "block 1: there is no variable \"z\"");
    end(&s);
}

static void a_var_is_shared_only_if_it_agrees(void)
{
    scene s = begin();
    fl_var *v = NULL, like = *fl_block_var(s.b, "w");
    CHECK_OK(fl_block_add_var(s.b, &like, &v));
    CHECK(v == fl_block_var(s.b, "w"));
    like.shape.dim[0] = 14;
    CHECK_ERR(fl_block_add_var(s.b, &like, &v), FL_EINVAL,
              "var \"w\" is f32[13,1], not f32[14,1]");
    like.shape.dim[0] = 13;
    like.persistable = false;
    CHECK_ERR(fl_block_add_var(s.b, &like, &v), FL_EINVAL,
              "var \"w\" is persistable");
    like.name = "";
    CHECK_ERR(fl_block_add_var(s.b, &like, &v), FL_EINVAL,
              "a variable without a name");
    end(&s);
}

static void a_rename_reaches_sub_blocks_but_not_shadows(void)
{
    scene s = begin();
    fl_block *sub = fl_program_add_block(s.p, 0);
    fl_block *shadow = fl_program_add_block(s.p, 0);
    fl_op *top = NULL, *below = NULL, *other = NULL;
    test_var(shadow, (fl_var){.name = "x"}, TEST_DIMS(2));
    CHECK_OK(fl_block_append_op(s.b, scale(&s, "x", "a"), &top));
    CHECK_OK(fl_block_append_op(sub, scale(&s, "x", "b"), &below));
    CHECK_OK(fl_block_append_op(shadow, scale(&s, "x", "c"), &other));
    CHECK_OK(fl_block_rename_var(s.b, "x", "image"));
    CHECK(fl_block_var(s.b, "image"));
    CHECK(!fl_block_var(s.b, "x"));
    CHECK_STR(fl_desc_in1(&top->desc, "X"), "image");
    CHECK_STR(fl_desc_in1(&below->desc, "X"), "image");
    CHECK_STR(fl_desc_in1(&other->desc, "X"), "x");
    CHECK_ERR(fl_block_rename_var(s.b, "image", "w"), FL_EINVAL,
              "\"image\" cannot be renamed to \"w\": a variable has this name");
    CHECK_ERR(fl_block_rename_var(s.b, "x", "y"), FL_ENOENT,
              "block 0: there is no variable \"x\"");
    end(&s);
}

static void a_program_takes_the_place_of_another(void)
{
    scene s = begin();
    fl_program *q = fl_program_make(s.r);
    const uint64_t uid = s.p->uid, version = s.p->version;
    test_var(fl_program_block(q, 0), (fl_var){.name = "q"}, TEST_DIMS(1));
    q->random_seed = 7;
    fl_program_take(s.p, q);
    fl_program_free(q);
    CHECK(s.p->uid == uid);
    CHECK(s.p->version > version);
    CHECK_INT(s.p->random_seed, 7);
    CHECK(fl_block_var(fl_program_block(s.p, 0), "q"));
    CHECK(fl_program_block(s.p, 0)->program == s.p);
    end(&s);
}

const fl_test fl_tests[] = {
    {"program starts with a global block", starts_with_a_global_block},
    {"an op makes its output and infers it",
     an_op_makes_its_output_and_infers_it},
    {"given attributes stand before defaults",
     given_attributes_stand_before_defaults},
    {"a failed op leaves no trace", a_failed_op_leaves_no_trace},
    {"an op that breaks its table is refused",
     an_op_that_breaks_its_table_is_refused},
    {"ops enter at a place and leave", ops_enter_at_a_place_and_leave},
    {"every change counts", every_change_counts},
    {"attributes keep their type", attributes_keep_their_type},
    {"a parameter keeps its declared shape",
     a_parameter_keeps_its_declared_shape},
    {"shapes are inferred again on request",
     shapes_are_inferred_again_on_request},
    {"absent outputs get no var", absent_outputs_get_no_var},
    {"a name is found in parents", a_name_is_found_in_parents},
    {"a var is shared only if it agrees", a_var_is_shared_only_if_it_agrees},
    {"a rename reaches sub-blocks but not shadows",
     a_rename_reaches_sub_blocks_but_not_shadows},
    {"a program takes the place of another",
     a_program_takes_the_place_of_another},
    {0},
};
