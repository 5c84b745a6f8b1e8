/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that trainers look up on servers. */
#include "transpile/test_transpile.h"

typedef struct lookup {
    const char *ids, *table;
    bool distributed;
    int64_t padding; /* 0: none */
} lookup;

static fl_var *embed(scene *s, const lookup *l)
{
    fl_var *ids =
        TEST_LAYER(s->net, "data", {"name", .s = l->ids}, {"shape", .i = 1},
                   {"dtype", .i = FL_I64}, {"lod_level", .i = 1});
    const fl_param_attr attr = {.name = l->table};
    const fl_arg padding = {l->padding ? "padding_idx" : NULL, .i = l->padding};
    return TEST_LAYER(s->net, "embedding", {"input", .var = ids},
                      {"size", .n = 2, .ints = (int64_t[]){1000, 64}},
                      {"is_sparse", .b = true},
                      {"is_distributed", .b = l->distributed},
                      {"param_attr", .attr = &attr}, padding);
}

/* Embeddings, pooled and summed -> fc 2 -> softmax -> cross_entropy -> mean. */
static void begin(scene *s, int n, const lookup *l)
{
    fl_var *pooled[3], *sum;
    scene_begin(s);
    for (int i = 0; i < n; i++)
        pooled[i] = TEST_LAYER(s->net, "sequence_pool",
                               {"input", .var = embed(s, &l[i])},
                               {"pool_type", .s = "sum"});
    sum = n == 1
              ? pooled[0]
              : TEST_LAYER(s->net, "sums", {"input", .n = n, .vars = pooled});
    fl_var *label = test_data(s->net, "label", FL_I64, 1, (int64_t[]){1});
    fl_var *predict = TEST_LAYER(s->net, "fc", {"input", .var = sum},
                                 {"size", .i = 2}, {"act", .s = "softmax"});
    fl_var *cost =
        TEST_LAYER(s->net, "cross_entropy", {"input", .var = predict},
                   {"label", .var = label});
    s->loss = TEST_LAYER(s->net, "mean", {"x", .var = cost});
}

/* --- tables that are cut by rows --- */

#define FORWARD                                                                \
    "distributed_lookup_table sequence_pool mul elementwise_add softmax "      \
    "cross_entropy2 mean fill_constant mean_grad cross_entropy_grad2 "         \
    "softmax_grad elementwise_add_grad send mul_grad send sequence_pool_grad " \
    "lookup_table_grad "

static void sparse_lookups_ask_the_servers(void)
{
    scene s;
    begin(&s, 1, &(lookup){"ids", "emb"});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_trainer(&s),
              FORWARD "split_selected_rows send send_barrier recv recv "
                      "fetch_barrier");
    CHECK_STR(scene_lines(&s, s.cut->trainer, "distributed_lookup_table"),
              "distributed_lookup_table(Ids=ids, W=emb) -> "
              "Outputs=embedding_0.tmp_0 {table_names=[\"emb.block0\", "
              "\"emb.block1\"], height_sections=[500l, 500l], endpoints=[\"" A
              "\", \"" B "\"]}\n");
    CHECK_STR(scene_lines(&s, s.cut->trainer, "split_selected_rows"),
              "split_selected_rows(X=emb@GRAD) -> "
              "Out=[emb@GRAD.block0.trainer_0, emb@GRAD.block1.trainer_0] "
              "{op_role=8, height_sections=[500l, 500l]}\n");
    CHECK_STR(scene_types(&s, s.cut->trainer_startup, 0),
              "fill_constant fill_constant uniform_random uniform_random recv "
              "recv recv fetch_barrier concat");
    CHECK_STR(scene_blocks(&s, 0), "1/0: sum scale sgd\n2/0: sum scale sgd\n");
    CHECK(strstr(scene_lines(&s, s.cut->server[0], "listen_and_serv"),
                 "sparse_grad_to_param=[\"emb@GRAD.block0:emb.block0\"]"));
    CHECK(strstr(scene_lines(&s, s.cut->server[0], "var emb@GRAD.block0:"),
                 "selected_rows f32[500,64] persistable"));
    scene_end(&s);
}

static void fleet_trains_async(void)
{
    scene s;
    begin(&s, 1, &(lookup){"ids", "emb"});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){.pservers = A "," B,
                                       .trainers = 2,
                                       .async = true,
                                       .runtime_split_send_recv = true});
    CHECK_STR(scene_trainer(&s), FORWARD "send recv recv");
    CHECK(strstr(scene_lines(&s, s.cut->trainer, "send(X=emb@GRAD)"),
                 "sections=[500l, 500l], send_varnames=[\"emb@GRAD.block0\", "
                 "\"emb@GRAD.block1\"]"));
    CHECK_STR(scene_blocks(&s, 0), "1/0: sgd\n2/0: sgd\n");
    CHECK_STR(scene_lines(&s, s.cut->server[0], "listen_and_serv"),
              "listen_and_serv(X=[emb@GRAD.block0, fc_0.b_0@GRAD]) "
              "{endpoint=\"" A "\", Fanin=2, optimize_blocks=[@1, @2], "
              "grad_to_block_id=[\"emb@GRAD.block0:1\", \"fc_0.b_0@GRAD:2\"], "
              "sparse_grad_to_param=[\"emb@GRAD.block0:emb.block0\"]}\n");
    scene_end(&s);
}

static void lookups_of_a_table_become_one(void)
{
    scene s;
    begin(&s, 3, (lookup[]){{"a", "emb"}, {"b", "other"}, {"c", "emb"}});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_lines(&s, s.cut->trainer, " lookup_table("), "");
    CHECK(fl_starts_with(scene_trainer(&s),
                         "distributed_lookup_table sequence_pool "
                         "distributed_lookup_table sequence_pool "
                         "sequence_pool sum"));
    CHECK(strstr(scene_brief(&s, s.cut->trainer),
                 "distributed_lookup_table(Ids=[a, c], W=emb) -> "
                 "Outputs=[embedding_0.tmp_0, embedding_2.tmp_0]"));
    scene_end(&s);
}

static void lookups_with_another_padding_stay_apart(void)
{
    scene s;
    begin(&s, 2, (lookup[]){{"a", "emb"}, {"b", "emb", .padding = 7}});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK(strstr(scene_brief(&s, s.cut->trainer), "Ids=a, W=emb"));
    CHECK(strstr(scene_lines(&s, s.cut->trainer, "Ids=b, W=emb"),
                 "padding_idx=7l"));
    scene_end(&s);
}

/* Something else reads the table, too. */
static void begin_with_reader(scene *s, const char *rule)
{
    begin(s, 1, &(lookup){"ids", "emb"});
    fl_var *all = TEST_LAYER(s->net, "mean",
                             {"x", .var = test_find(s->net->main, "emb")});
    s->loss = TEST_LAYER(s->net, "elementwise_add", {"x", .var = s->loss},
                         {"y", .var = all});
    scene_minimize(s, rule, scene_rate);
    scene_cut2(s);
}

/* It is received like any parameter. */
static void a_table_with_other_readers_is_received(void)
{
    scene s;
    begin_with_reader(&s, "sgd");
    CHECK(fl_starts_with(scene_trainer(&s), "lookup_table "));
    CHECK(
        fl_ends_with(scene_trainer(&s), "recv recv recv fetch_barrier concat"));
    scene_end(&s);
}

/* --- what trainers have no copy of --- */

static const char *absent(scene *s)
{
    const fl_cut *c = s->cut;
    fl_str t = {0};
    for (int64_t i = 0; i < c->absent.n; i++) {
        const char *name = c->absent.at[i];
        const fl_block *b = fl_program_block(c->trainer, 0);
        CHECK(!fl_block_var(b, name) || fl_block_var(b, name)->absent);
        fl_str_printf(&t, "%s%s", i ? " " : "", name);
    }
    return scene_keep(s, &t);
}

static void a_trainer_has_no_copy_of_a_table(void)
{
    scene s;
    begin(&s, 2, (lookup[]){{"a", "emb"}, {"b", "far", true}});
    scene_minimize(&s, "adam", scene_rate);
    scene_cut2(&s);
    CHECK_STR(absent(&s), "emb emb.block0 emb.block1 emb_moment1_0 "
                          "emb_moment2_0 far");
    scene_end(&s);
}

static void a_table_with_other_readers_is_copied(void)
{
    scene s;
    begin_with_reader(&s, "adagrad");
    CHECK_STR(absent(&s), "");
    scene_end(&s);
}

/* What else it is started with reads it. */
static void a_table_that_starts_another_is_copied(void)
{
    scene s;
    fl_var *w;
    begin(&s, 1, &(lookup){"ids", "emb"});
    scene_minimize(&s, "sgd", scene_rate);
    fl_block *b = fl_program_block(s.net->startup, 0);
    CHECK_OK(fl_block_add_var(b,
                              &(fl_var){.name = "twin",
                                        .dtype = FL_F32,
                                        .shape = {2, {1000, 64}},
                                        .persistable = true},
                              &w));
    fl_desc *d = fl_desc_new(s.net->arena, "assign");
    fl_desc_set_in1(d, "X", "emb");
    fl_desc_set_out1(d, "Out", "twin");
    CHECK_OK(fl_block_append_op(b, d, NULL));
    scene_cut2(&s);
    CHECK_STR(absent(&s), "");
    scene_end(&s);
}

static void decay_makes_a_sparse_gradient_dense(void)
{
    scene s;
    const fl_regularizer decay = {"l2", 0.25f};
    begin(&s, 1, &(lookup){"ids", "emb"});
    scene_minimize(&s, "sgd",
                   (fl_arg[]){{"learning_rate", .f = 0.5},
                              {"regularization", .regularizer = &decay},
                              {0}});
    scene_cut2(&s);
    CHECK(strstr(scene_brief(&s, s.cut->server[0]),
                 "sum(X=[emb@GRAD.block0, _generated_var_0]) -> "
                 "Out=emb@GRAD@NEWGRAD@"));
    CHECK(strstr(scene_brief(&s, s.cut->server[0]),
                 "var emb@GRAD@NEWGRAD@: f32[500,64]\n"));
    scene_end(&s);
}

/* --- the table that is distributed --- */

static void begin_distributed(scene *s)
{
    begin(s, 2, (lookup[]){{"a", "emb", true}, {"b", "emb", true}});
}

static void a_distributed_table_is_prefetched(void)
{
    scene s;
    begin_distributed(&s);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_trainer(&s),
              "split_ids prefetch merge_ids sequence_pool sequence_pool sum "
              "mul elementwise_add softmax cross_entropy2 mean fill_constant "
              "mean_grad cross_entropy_grad2 softmax_grad "
              "elementwise_add_grad send mul_grad send scale scale "
              "sequence_pool_grad lookup_table_grad sequence_pool_grad "
              "lookup_table_grad sum "
              "split_ids send send_barrier recv recv fetch_barrier");
    CHECK_STR(scene_lines(&s, s.cut->trainer, "_ids("),
              "split_ids(Ids=[a, b]) -> Out=[prefetch_compress_in_tmp_0, "
              "prefetch_compress_in_tmp_1]\n"
              "merge_ids(Ids=[a, b], Rows=[prefetch_compress_in_tmp_0, "
              "prefetch_compress_in_tmp_1], X=[prefetch_compress_out_tmp_0, "
              "prefetch_compress_out_tmp_1]) -> Out=[embedding_0.tmp_0, "
              "embedding_1.tmp_0]\n"
              "split_ids(Ids=emb@GRAD) -> Out=[emb@GRAD.trainer_0.pserver_0, "
              "emb@GRAD.trainer_0.pserver_1] {op_role=8}\n");
    CHECK_STR(scene_types(&s, s.cut->trainer_startup, 0),
              "fill_constant fill_constant uniform_random recv recv "
              "fetch_barrier fake_init");
    scene_end(&s);
}

static void a_distributed_table_is_served(void)
{
    scene s;
    begin_distributed(&s);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_blocks(&s, 1),
              "1/0: sum scale sgd\n2/0: sum sgd\n3/2: lookup_sparse_table\n"
              "4/2: save\n");
    CHECK_STR(scene_lines(&s, s.cut->server[1], "listen_and_serv"),
              "listen_and_serv(X=[fc_0.w_0@GRAD.trainer_0, "
              "fc_0.w_0@GRAD.trainer_1, emb@GRAD.trainer_0.pserver_1, "
              "emb@GRAD.trainer_1.pserver_1]) {endpoint=\"" B
              "\", Fanin=2, sync_mode=true, optimize_blocks=[@1, @2], "
              "grad_to_block_id=[\"fc_0.w_0@GRAD:1\", \"emb@GRAD:2\"], "
              "prefetch_var_name_to_block_id="
              "[\"prefetch_compress_in_tmp_1:3\"], checkpint_block_id=4}\n");
    CHECK_STR(scene_lines(&s, s.cut->server[1], "var emb:"),
              "var emb: selected_rows f32[500,64] persistable\n");
    CHECK_STR(scene_starts(&s, s.cut->server_startup[1]),
              "fill_constant learning_rate_0, uniform_random fc_0.w_0, "
              "uniform_random emb");
    CHECK(strstr(scene_lines(&s, s.cut->server_startup[1], "Out=emb"),
                 "shape=[1l, 64l]")); /* rows come as they are updated */
    CHECK(strstr(scene_lines(&s, s.cut->server[1], "lookup_sparse_table("),
                 "start=\"uniform_random\", start_a=-0.0"));
    scene_end(&s);
}

static void a_distributed_table_is_updated_by_sgd(void)
{
    scene s;
    begin_distributed(&s);
    scene_minimize(&s, "adam", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){
                      .pservers = A "," B, .trainers = 2, .async = true});
    CHECK_STR(scene_blocks(&s, 1),
              "1/0: adam scale scale\n2/0: sgd\n3/2: lookup_sparse_table\n"
              "4/2: save\n");
    CHECK(strstr(scene_lines(&s, s.cut->server[1], "sgd("),
                 "Grad=emb@GRAD.pserver_1"));
    /* no process has moments of the table, so that none are saved */
    CHECK_STR(scene_lines(&s, s.cut->trainer, "var emb_moment"), "");
    scene_end(&s);
}

static void a_distributed_table_may_have_all_ids(void)
{
    scene s;
    begin(&s, 1, &(lookup){"a", "emb", true});
    for (int i = 0; i < 2; i++)
        fl_block_var(fl_program_block(i ? s.net->startup : s.net->main, 0),
                     "emb")
            ->shape.dim[0] = INT64_MAX;
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK(strstr(scene_lines(&s, s.cut->server[1], "var emb:"),
                 "selected_rows f32[4611686018427387904,64] persistable"));
    scene_end(&s);
}

/* Adagrad leaves rows alone that have no gradient. */
static void a_distributed_table_may_have_state(void)
{
    scene s;
    begin_distributed(&s);
    scene_minimize(&s, "adagrad", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_blocks(&s, 1), "1/0: sum scale adagrad\n2/0: sum adagrad\n"
                                   "3/2: lookup_sparse_table\n4/2: save\n");
    CHECK(strstr(scene_lines(&s, s.cut->server[1], "Param=emb"),
                 "adagrad(Param=emb, Grad=emb@GRAD, Moment=emb_moment_0"));
    CHECK(strstr(scene_lines(&s, s.cut->server[1], "var emb_moment_0:"),
                 "selected_rows f32[500,64] persistable"));
    CHECK(strstr(scene_lines(&s, s.cut->server_startup[1], "Out=emb_moment_0"),
                 "shape=[1l, 64l]"));
    CHECK_STR(scene_lines(&s, s.cut->trainer_startup, "Out=emb_moment_0"), "");
    scene_end(&s);
}

static void a_distributed_table_keeps_rules_that_leave_rows(void)
{
    for (int i = 0; i < fl_optimizers_count; i++) {
        const fl_optimizer_def *def = &fl_optimizers[i];
        const fl_rule *rule = scene_rule_of(def);
        if (rule->whole || rule->decays)
            continue;
        scene s;
        begin_distributed(&s);
        scene_minimize_by(&s, def);
        scene_cut2(&s);
        const char *op =
            fl_arena_printf(s.net->arena, "%s(Param=emb,", def->op);
        CHECK(fl_starts_with(scene_lines(&s, s.cut->server[1], "(Param=emb,"),
                             op));
        scene_end(&s);
    }
}

static void several_tables_are_distributed(void)
{
    scene s;
    begin(&s, 2, (lookup[]){{"a", "emb", true}, {"b", "two", true}});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_lines(&s, s.cut->trainer, "split_ids(Ids=b"),
              "split_ids(Ids=b) -> Out=[two.prefetch_compress_in_tmp_0, "
              "two.prefetch_compress_in_tmp_1]\n");
    CHECK(strstr(scene_lines(&s, s.cut->trainer, "two.prefetch_compress_out"),
                 "table_name=\"two\""));
    CHECK_STR(scene_blocks(&s, 1),
              "1/0: sum scale sgd\n2/0: sum sgd\n3/2: lookup_sparse_table\n"
              "4/2: save\n5/0: sum sgd\n6/5: lookup_sparse_table\n7/5: save\n");
    CHECK(strstr(scene_lines(&s, s.cut->server[1], "listen_and_serv"),
                 "prefetch_var_name_to_block_id="
                 "[\"prefetch_compress_in_tmp_1:3\", "
                 "\"two.prefetch_compress_in_tmp_1:6\"]"));
    scene_end(&s);
}

static void says_what_is_wrong_with_a_table(void)
{
    const fl_transpile_opts opts = {.pservers = A};
    scene s;
    begin(&s, 2, (lookup[]){{"a", "emb", true}, {"b", "emb", false}});
    scene_minimize(&s, "sgd", scene_rate);
    CHECK_ERR(fl_transpile(s.net->main, s.net->startup, &opts, &s.cut),
              FL_EINVAL, "a lookup_table of \"emb\" lacks is_distributed");
    scene_end(&s);
}

const fl_test fl_tests[] = {
    {"sparse lookups ask the servers", sparse_lookups_ask_the_servers},
    {"sparse lookups are cut for Fleet's async training", fleet_trains_async},
    {"lookups of one table become one op", lookups_of_a_table_become_one},
    {"lookups with another padding stay apart",
     lookups_with_another_padding_stay_apart},
    {"a table with other readers is received",
     a_table_with_other_readers_is_received},
    {"a trainer has no copy of a table", a_trainer_has_no_copy_of_a_table},
    {"a table with other readers is copied",
     a_table_with_other_readers_is_copied},
    {"a table that starts another is copied",
     a_table_that_starts_another_is_copied},
    {"decay makes a sparse gradient dense on the server",
     decay_makes_a_sparse_gradient_dense},
    {"a distributed table is prefetched", a_distributed_table_is_prefetched},
    {"a distributed table is served", a_distributed_table_is_served},
    {"a distributed table is updated by sgd",
     a_distributed_table_is_updated_by_sgd},
    {"a distributed table may have all ids that are not negative",
     a_distributed_table_may_have_all_ids},
    {"a distributed table may have state", a_distributed_table_may_have_state},
    {"a distributed table keeps rules that leave rows without gradients",
     a_distributed_table_keeps_rules_that_leave_rows},
    {"several tables are distributed", several_tables_are_distributed},
    {"a cut says what is wrong with a table", says_what_is_wrong_with_a_table},
    {0},
};
