/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/copy.h"
#include "graph/test_ops.h"

static fl_program *dropout_net(fl_registry *r, fl_arena *a)
{
    fl_program *p = fl_program_make(r);
    fl_block *b = fl_program_block(p, 0);
    test_var(b, (fl_var){.name = "x", .is_data = true}, TEST_DIMS(-1, 4));
    test_var(b,
             (fl_var){.name = "w",
                      .persistable = true,
                      .stop_gradient = true,
                      .param = &(fl_param_info){.learning_rate = 0.5f}},
             TEST_DIMS(4, 2));
    fl_block *sub = fl_program_add_block(p, 0);
    fl_desc *d = fl_desc_new(a, "dropout");
    fl_desc_set_in1(d, "X", "x");
    fl_desc_set_out1(d, "Out", "y");
    CHECK_OK(fl_block_append_op(b, d, NULL));
    CHECK_OK(fl_block_append_op(sub, d, NULL));
    p->random_seed = 90;
    return p;
}

static void keeps_what_a_parameter_points_to(void)
{
    fl_registry *r = test_registry();
    fl_program *p = fl_program_make(r);
    char group[] = "group";
    fl_clip clip = {"global_norm", .max = 5, .group = group};
    fl_regularizer l2 = {"l2", .coeff = 0.1f};
    fl_param_info info = {.clip = &clip, .regularizer = &l2};
    test_var(fl_program_block(p, 0),
             (fl_var){.name = "w", .param = &info, .error_clip = &clip},
             TEST_DIMS(4, 2));
    memset(group, 0, sizeof group);
    clip = (fl_clip){0};
    l2 = (fl_regularizer){0};
    fl_program *q = fl_program_clone(p, false);
    fl_program_free(p);
    const fl_var *w = fl_block_var(fl_program_block(q, 0), "w");
    CHECK_STR(w->param->clip->group, "group");
    CHECK_STR(w->param->regularizer->kind, "l2");
    CHECK_STR(w->error_clip->kind, "global_norm");
    CHECK_NEAR(w->error_clip->max, 5, 0);
    fl_program_free(q);
    fl_registry_free(r);
}

static void keeps_everything(void)
{
    fl_arena *a = fl_arena_new();
    fl_registry *r = test_registry();
    fl_program *p = dropout_net(r, a), *q = fl_program_clone(p, false);
    const uint64_t uid = p->uid;
    fl_program_free(p); /* nothing is shared */
    fl_block *b = fl_program_block(q, 0);
    const fl_var *w = fl_block_var(b, "w");
    CHECK(q->uid != uid);
    CHECK_INT(q->random_seed, 90);
    CHECK_INT(q->blocks.n, 2);
    CHECK_INT(fl_program_block(q, 1)->parent, 0);
    CHECK(fl_block_var(b, "x")->is_data);
    CHECK(w->block == b && w->persistable && w->stop_gradient);
    CHECK_NEAR(w->param->learning_rate, 0.5, 0);
    CHECK_INT(b->ops.n, 1);
    CHECK(b->ops.at[0]->block == b);
    CHECK_STR(b->ops.at[0]->desc.type, "dropout");
    CHECK(!fl_desc_attr(&b->ops.at[0]->desc, "is_test")->b);
    fl_program_free(q);
    fl_registry_free(r);
    fl_arena_free(a);
}

static void for_test_switches_every_block(void)
{
    fl_arena *a = fl_arena_new();
    fl_registry *r = test_registry();
    fl_program *p = dropout_net(r, a), *q = fl_program_clone(p, true);
    for (int i = 0; i < 2; i++) {
        fl_op *was = fl_program_block(p, i)->ops.at[0];
        fl_op *is = fl_program_block(q, i)->ops.at[0];
        CHECK(!fl_desc_attr(&was->desc, "is_test")->b);
        CHECK(fl_desc_attr(&is->desc, "is_test")->b);
    }
    fl_program_free(p);
    fl_program_free(q);
    fl_registry_free(r);
    fl_arena_free(a);
}

static void a_block_becomes_a_program(void)
{
    fl_arena *a = fl_arena_new();
    fl_registry *r = test_registry();
    fl_program *p = dropout_net(r, a);
    fl_block *sub = fl_program_block(p, 1);
    fl_desc *d = fl_desc_new(a, "dropout");
    fl_desc_set_in1(d, "X", "x");
    fl_desc_set_out1(d, "Out", "z");
    CHECK_OK(fl_block_append_op(sub, d, NULL));
    fl_program *q = fl_copy_ops(sub, 1);
    fl_program_free(p); /* nothing is shared */
    const fl_block *b = fl_program_block(q, 0);
    CHECK_OK(fl_program_verify(q));
    CHECK_INT(q->random_seed, 90);
    CHECK_INT(q->blocks.n, 1);
    CHECK_INT(b->ops.n, 1);
    CHECK_INT(b->vars.live, 2);
    CHECK(fl_block_var(b, "x")->persistable);
    CHECK(!fl_block_var(b, "z")->persistable);
    fl_program_free(q);
    fl_registry_free(r);
    fl_arena_free(a);
}

const fl_test fl_tests[] = {
    {"a clone keeps everything and shares nothing", keeps_everything},
    {"a clone keeps what a parameter points to",
     keeps_what_a_parameter_points_to},
    {"a clone for test switches every block", for_test_switches_every_block},
    {"a block becomes a program of its own", a_block_becomes_a_program},
    {0},
};
