/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/test_store.h"
#include "table/table.h"

#include <math.h>

static const fl_transpile_opts two = {.pservers = A, .trainers = 2};

static void a_distributed_table_grows(void)
{
    static const int64_t id = INT64_C(-123456789012345);
    shop p;
    shop_begin_rows(&p, "sgd", scene_rate, true);
    shop_open(&p, &two);
    shop_pull(&p, "emb", 1, &id);
    CHECK_INT(p.kind, FL_MSG_VALUES);
    const float x = shop_value(&p, 0), y = shop_value(&p, 1);
    CHECK(x != y && x > -1 && x < 1);
    SHOP_ROUND(&p,
               shop_rows("emb@GRAD.trainer_0.pserver_0", 10, 2, 2,
                         (const int64_t[]){id, id},
                         (const float[]){1, 2, 3, 4}),
               shop_rows("emb@GRAD.trainer_1.pserver_0", 10, 1, 2, &id,
                         (const float[]){4, 2}));
    CHECK_STR(p.why, "");
    shop_pull(&p, "emb", 1, &id);
    CHECK_NEAR(shop_value(&p, 0), x - 0.5f * 4, 1e-6);
    CHECK_NEAR(shop_value(&p, 1), y - 0.5f * 4, 1e-6);
    shop_pull(&p, "emb", -1, NULL);
    CHECK_STR(p.text, "pull: \"emb\" is a table: it is asked for by rows");
    shop_close(&p);
}

/* Push the gradient [1, 2] of a row, then pull the row. */
static void push_row(shop *p, const char *table, int64_t id)
{
    char name[64];
    snprintf(name, sizeof name, "%s@GRAD.trainer_0.pserver_0", table);
    SHOP_ROUND(p, shop_rows(name, 10, 1, 2, &id, (const float[]){1, 2}));
    CHECK_STR(p->why, "");
    shop_pull(p, table, 1, &id);
    CHECK_INT(p->kind, FL_MSG_VALUES);
}

static void a_table_keeps_the_state_of_its_rows(void)
{
    const int64_t id = INT64_MIN;
    shop p;
    shop_begin_rows(&p, "adagrad",
                    (const fl_arg[]){{"learning_rate", .f = 0.5},
                                     {"initial_accumulator_value", .f = 3},
                                     {0}},
                    true);
    shop_open(&p, &two);
    shop_pull(&p, "emb_moment_0", 1, &id);
    CHECK_NEAR(shop_value(&p, 1), 3, 0);
    shop_pull(&p, "emb", 1, &id);
    float x[2] = {shop_value(&p, 0), shop_value(&p, 1)}, m[2] = {3, 3};
    for (int step = 0; step < 3; step++) {
        push_row(&p, "emb", id);
        for (int i = 0; i < 2; i++) {
            const float g = (float)(i + 1);
            m[i] += g * g;
            x[i] -= 0.5f * g / (sqrtf(m[i]) + 1e-6f);
            CHECK_NEAR(shop_value(&p, i), x[i], 0);
        }
    }
    shop_pull(&p, "emb_moment_0", 1, &id);
    CHECK_NEAR(shop_value(&p, 0), 6, 0);
    CHECK_NEAR(shop_value(&p, 1), 15, 0);
    shop_close(&p);
}

/* Two tables of one server start their rows in different ways. */
static void tables_live_side_by_side(void)
{
    const fl_init starts[] = {{.kind = "constant", .a = 2},
                              {.kind = "uniform", .a = 5, .b = 6}};
    shop p = {0};
    fl_var *e[2];
    scene_begin(&p.s);
    fl_var *ids = test_data(p.s.net, "ids", FL_I64, 1, (int64_t[]){1});
    for (int i = 0; i < 2; i++) {
        const fl_param_attr attr = {.name = i ? "two" : "emb",
                                    .init = &starts[i]};
        e[i] =
            TEST_LAYER(p.s.net, "embedding", {"input", .var = ids},
                       {"size", .n = 2, .ints = (int64_t[]){10, 2}},
                       {"is_sparse", .b = true}, {"is_distributed", .b = true},
                       {"param_attr", .attr = &attr});
    }
    fl_var *sum = TEST_LAYER(p.s.net, "elementwise_add", {"x", .var = e[0]},
                             {"y", .var = e[1]});
    p.s.loss = TEST_LAYER(p.s.net, "mean", {"x", .var = sum});
    scene_minimize(&p.s, "sgd", scene_rate);
    shop_cut(&p, &two);
    CHECK_OK(shop_try(&p, 2, false));
    push_row(&p, "emb", 7);
    CHECK_NEAR(shop_value(&p, 0), 1.5, 0);
    CHECK_NEAR(shop_value(&p, 1), 1, 0);
    push_row(&p, "two", 7);
    CHECK(shop_value(&p, 0) >= 4.5f && shop_value(&p, 0) < 5.5f);
    shop_pull(&p, "two", 1, (const int64_t[]){-9});
    CHECK(shop_value(&p, 0) >= 5 && shop_value(&p, 0) < 6);
    shop_close(&p);
}

static void a_table_without_room_fails_the_round(void)
{
    enum {
        N = 5000
    };
    static int64_t id[N];
    static float g[2 * N];
    shop p;
    shop_begin_rows(&p, "sgd", scene_rate, true);
    shop_cut(&p, &two);
    p.table_bytes = 100000;
    CHECK_OK(shop_try(&p, 1, false));
    for (int i = 0; i < N; i++)
        id[i] = i;
    SHOP_ROUND(&p, shop_rows("emb@GRAD.trainer_0.pserver_0", 10, N, 2, id, g));
    CHECK(strstr(p.why, "table \"emb\" is full: its ") != NULL);
    CHECK(strstr(p.why, "97.7 KB that they may have") != NULL);
    shop_pull(&p, "emb", N, id);
    CHECK_INT(p.kind, FL_MSG_VALUES);
    shop_close(&p);
}

/* --- listing the ids of a table --- */

static void ask_ids(shop *p, int64_t most, const int64_t *after)
{
    fl_parcel *want = fl_parcel_new();
    fl_parcel_want_ids(want, "emb", most, after);
    shop_ask(p, want);
}

static void a_table_lists_its_rows_part_by_part(void)
{
    enum {
        ROWS = 5
    };
    const int64_t id[ROWS] = {INT64_MIN, -1, 0, 7, INT64_MAX};
    const float grad[2 * ROWS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    int64_t seen = 0, last = 0;
    shop p;
    shop_begin_rows(&p, "adagrad", scene_rate, true);
    shop_open(&p, &two);
    ask_ids(&p, 2, NULL);
    CHECK_INT(p.values->item[0].shape.dim[0], 0);
    SHOP_ROUND(
        &p, shop_rows("emb@GRAD.trainer_0.pserver_0", 10, ROWS, 2, id, grad));
    const uint64_t key =
        fl_table_key(fl_placement_of(p.s.cut->server[0]->job)->tables);
    for (int64_t n = 1; n; seen += n) {
        ask_ids(&p, 2, seen ? &last : NULL);
        CHECK_INT(p.kind, FL_MSG_VALUES);
        const fl_item *item = &p.values->item[0];
        n = item->shape.dim[0];
        CHECK(n <= 2 && item->dtype == FL_I64 && item->shape.rank == 1);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t before = fl_table_order(key, last);
            fl_bytes_copy(item->data, (size_t)i * sizeof last, &last,
                          sizeof last);
            CHECK(!(seen + i) || fl_table_order(key, last) > before);
        }
    }
    CHECK_INT(seen, ROWS);
    shop_close(&p);
}

static void rows_are_listed_of_tables_alone(void)
{
    shop p;
    fl_parcel *want = fl_parcel_new();
    shop_begin_rows(&p, "sgd", scene_rate, false);
    shop_open(&p, &two);
    ask_ids(&p, 2, NULL);
    CHECK_STR(p.text,
              "pull: \"emb\" is not a table, so its ids cannot be listed");
    shop_close(&p);
    shop_begin_rows(&p, "sgd", scene_rate, true);
    shop_open(&p, &two);
    fl_parcel_add_item(want, &(fl_item){.name = "emb", .height = 3});
    shop_ask(&p, want);
    CHECK_STR(p.text, "pull: a request for the ids of \"emb\" has dim [], "
                      "expected [0], or [1] to start after a row");
    shop_close(&p);
}

static void a_list_has_a_limit(void)
{
    const int64_t id[] = {1, 2};
    const float grad[4] = {1, 1, 1, 1};
    shop p;
    shop_begin_rows(&p, "sgd", scene_rate, true);
    p.max_answer = 40;
    shop_open(&p, &two);
    SHOP_ROUND(&p,
               shop_rows("emb@GRAD.trainer_0.pserver_0", 10, 2, 2, id, grad));
    ask_ids(&p, 1, NULL);
    CHECK_INT(p.kind, FL_MSG_VALUES);
    ask_ids(&p, INT64_MAX, NULL);
    CHECK_INT(p.kind, FL_MSG_ERROR);
    CHECK(strstr(p.text, "the answer would have more than 40 bytes"));
    shop_close(&p);
}

const fl_test fl_tests[] = {
    {"a distributed table grows", a_distributed_table_grows},
    {"a table keeps the state of its rows",
     a_table_keeps_the_state_of_its_rows},
    {"tables live side by side", tables_live_side_by_side},
    {"a table without room fails the round",
     a_table_without_room_fails_the_round},
    {"a table lists its rows part by part",
     a_table_lists_its_rows_part_by_part},
    {"rows are listed of tables alone", rows_are_listed_of_tables_alone},
    {"a list of rows has a limit", a_list_has_a_limit},
    {0},
};
