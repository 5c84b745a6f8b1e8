/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/test_store.h"
#include "state/snapshot.h"

#include <math.h>

/* x[2] -> fc[1] with parameters w and b. */
static void begin(shop *p, const char *optimizer, const fl_arg *args)
{
    *p = (shop){0};
    scene_begin(&p->s);
    scene_line(&p->s, 2, 1, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&p->s, optimizer, args);
}

static const fl_transpile_opts two = {.pservers = A, .trainers = 2};
static const fl_transpile_opts three = {.pservers = A, .trainers = 3};
static const fl_transpile_opts async = {
    .pservers = A, .trainers = 2, .async = true};

#define GRAD(trainer, ...)                                                     \
    shop_grad("w@GRAD.trainer_" #trainer, 2, 1, (const float[]){__VA_ARGS__})

static bool same(const float *got, float x, float y)
{
    return got[0] == x && got[1] == y;
}

/* --- the mean --- */

static void the_mean_of_participants_is_applied(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &two);
    shop_set(&p, "w", 2, (const float[]){10, 20});
    SHOP_ROUND(&p, GRAD(0, 2, 4), GRAD(1, 6, 8));
    CHECK_STR(p.why, "");
    CHECK(same(shop_get(&p, "w"), 8, 17));
    SHOP_ROUND(&p, GRAD(0, 2, 4)); /* one participant: divided by 1 */
    CHECK(same(shop_get(&p, "w"), 7, 15));
    SHOP_ROUND(&p, GRAD(0, 2, 4),
               NULL); /* the second sent nothing: divided by 2 */
    CHECK(same(shop_get(&p, "w"), 6.5f, 14));
    shop_close(&p);
}

static void names_do_not_say_who_sent(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &two);
    shop_set(&p, "w", 2, (const float[]){10, 20});
    SHOP_ROUND(&p, GRAD(0, 2, 4), GRAD(0, 6, 8));
    CHECK(same(shop_get(&p, "w"), 8, 17));
    shop_close(&p);
}

/* The values are chosen so that another order of addition gives other bits. */
static void gradients_are_added_by_rank(void)
{
    shop p;
    volatile float a = 1e8f, b = 1.0f, c = -1e8f;
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &three);
    shop_set(&p, "w", 2, (const float[]){0, 0});
    SHOP_ROUND(&p, GRAD(0, a, a), GRAD(1, b, c), GRAD(2, c, b));
    const float first = (a + b + c) / 3, second = (a + c + b) / 3;
    CHECK(first != second);
    CHECK(same(shop_get(&p, "w"), -0.5f * first, -0.5f * second));
    shop_close(&p);
}

static void who_sent_nothing_moves_nothing(void)
{
    shop p;
    begin(&p, "momentum",
          (const fl_arg[]){
              {"learning_rate", .f = 0.5}, {"momentum", .f = 0.5}, {0}});
    shop_open(&p, &two);
    shop_set(&p, "w", 2, (const float[]){10, 20});
    SHOP_ROUND(&p, GRAD(0, 2, 4), GRAD(1, 2, 4));
    CHECK(same(shop_get(&p, "w"), 9, 18));
    SHOP_ROUND(&p, NULL,
               NULL); /* no gradient: even the momentum moves nothing */
    CHECK_STR(p.why, "");
    CHECK(same(shop_get(&p, "w"), 9, 18));
    shop_close(&p);
}

/* --- bytes --- */

/* A gradient whose bytes lie in spans of odd sizes. It borrows x. */
static fl_parcel *scattered(const char *name, const fl_shape *s, const float *x)
{
    static const size_t sizes[] = {3, 1, 6, 2, 5, 40, 7, 9, 1, 1, 2, 1 << 20};
    const size_t bytes = (size_t)fl_shape_numel(s) * sizeof *x;
    fl_packet *packet = fl_packet_new();
    fl_parcel *p = fl_parcel_new();
    size_t at = 0;
    for (int i = 0; at < bytes; i++) {
        const size_t n = sizes[i] < bytes - at ? sizes[i] : bytes - at;
        fl_packet_lend(packet, (const char *)x + at, n, NULL, NULL);
        at += n;
    }
    fl_parcel_add_item(p, &(fl_item){.name = name,
                                     .kind = FL_LOD_TENSOR,
                                     .dtype = FL_F32,
                                     .shape = *s,
                                     .data = {packet, 0, bytes}});
    fl_packet_unref(packet);
    return p;
}

enum {
    WIDE = 40,
    LONG = 10007, /* elements of several chunks */
};

static void begin_line(shop *p, int n, const char *optimizer,
                       const fl_transpile_opts *opts)
{
    static const float zeros[LONG];
    *p = (shop){0};
    scene_begin(&p->s);
    scene_line(&p->s, n, 1, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&p->s, optimizer, scene_rate);
    shop_open(p, opts);
    shop_set(p, "w", n, zeros);
}

static void begin_wide(shop *p, const fl_transpile_opts *opts)
{
    begin_line(p, WIDE, "sgd", opts);
}

static void check_ramp(shop *p, float slope)
{
    for (int i = 0; i < WIDE; i++)
        CHECK_NEAR(shop_get(p, "w")[i], slope * (float)(i + 1), 0);
}

static void a_number_may_straddle_spans(void)
{
    const fl_shape s = {2, {WIDE, 1}};
    shop p;
    float x[WIDE];
    begin_wide(&p, &three);
    for (int i = 0; i < WIDE; i++)
        x[i] = (float)(i + 1) * 4;
    SHOP_ROUND(&p, scattered("w@GRAD.trainer_0", &s, x),
               scattered("w@GRAD.trainer_1", &s, x),
               scattered("w@GRAD.trainer_2", &s, x));
    check_ramp(&p, -2);
    SHOP_ROUND(&p, scattered("w@GRAD.trainer_0", &s, x));
    check_ramp(&p, -4);
    shop_close(&p);
}

/* A parcel with x in slices [0, cut) and [cut, end). */
static fl_parcel *sliced(const char *name, const float *x, int64_t cut,
                         int64_t end)
{
    const fl_shape s = {2, {WIDE, 1}};
    const fl_tensor t = fl_tensor_view(FL_F32, &s, x);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_slice(p, name, &t, 0, cut);
    if (end > cut)
        fl_parcel_add_slice(p, name, &t, cut, end - cut);
    return p;
}

static void slices_make_a_whole(void)
{
    shop p;
    float x[WIDE];
    begin_wide(&p, &two);
    for (int i = 0; i < WIDE; i++)
        x[i] = (float)(i + 1);
    SHOP_ROUND(&p, sliced("w@GRAD.trainer_0", x, 7, WIDE),
               sliced("w@GRAD.trainer_1", x, 31, WIDE));
    CHECK_STR(p.why, "");
    check_ramp(&p, -0.5f);
    SHOP_ROUND(&p, sliced("w@GRAD.trainer_0", x, 7, WIDE),
               sliced("w@GRAD.trainer_1", x, 31, 39));
    CHECK_STR(p.why, "gradient \"w@GRAD\": 39 of 40 elements came (update by "
                     "\"w@GRAD\")");
    shop_close(&p);
}

/* Large gradients are applied in chunks, whose ends need not be ends of spans.
 */
static void pieces_meet_the_rule_as_a_whole_would(void)
{
    static float x[3][LONG];
    static volatile float w[LONG], moment[LONG];
    const fl_shape s = {2, {LONG, 1}};
    const float rate = 0.5f, epsilon = 1e-6f;
    shop p;
    begin_line(&p, LONG, "adagrad", &three);
    for (int i = 0; i < 3 * LONG; i++)
        x[i / LONG][i % LONG] = (float)((i * 37) % 101) / 7.0f - 5;
    const fl_tensor t = fl_tensor_view(FL_F32, &s, x[1]);
    for (int round = 0; round < 2; round++) {
        fl_parcel *cut = fl_parcel_new();
        fl_parcel_add_slice(cut, "w@GRAD.trainer_1", &t, 0, 4099);
        fl_parcel_add_slice(cut, "w@GRAD.trainer_1", &t, 4099, LONG - 4099);
        SHOP_ROUND(&p, scattered("w@GRAD.trainer_0", &s, x[0]), cut,
                   scattered("w@GRAD.trainer_2", &s, x[2]));
        CHECK_STR(p.why, "");
        for (int i = 0; i < LONG; i++) {
            const float g = (x[0][i] + x[1][i] + x[2][i]) / 3;
            moment[i] += g * g;
            w[i] -= rate * g / (sqrtf(moment[i]) + epsilon);
            CHECK_NEAR(shop_get(&p, "w")[i], w[i], 0);
        }
    }
    shop_close(&p);
}

/* --- the same bits as without servers --- */

typedef struct local {
    shop p;
    scene raw; /* the same network without an optimiser */
    fl_scope *scope;
    float x[8], y[4];
} local;

static const fl_regularizer l2 = {"l2", .coeff = 0.1f};

/* schedule: the layer that makes the learning rate; NULL: it is constant. */
static void begin_local(local *l, const char *optimizer, const fl_arg *args,
                        const char *schedule, int owners)
{
    const fl_param_attr w = {.name = "w"}, b = {.name = "b"};
    fl_param_grads pgs = {0};
    *l = (local){0};
    scene_begin(&l->p.s);
    scene_line(&l->p.s, 2, 1, &w, &b);
    fl_arg all[8] = {{"regularization", .regularizer = &l2}};
    int n = 1;
    all[n++] = (fl_arg){"learning_rate", .f = 0.05};
    if (schedule)
        all[1] = (fl_arg){"learning_rate", .n = 1,
                          .var = TEST_LAYER(l->p.s.net, schedule,
                                            {"learning_rate", .f = 0.05},
                                            {"decay_steps", .f = 2},
                                            {"decay_rate", .f = 0.5})};
    for (; args && args->name; args++)
        all[n++] = *args;
    scene_minimize(&l->p.s, optimizer, all);
    shop_cut(&l->p, &two);
    CHECK_OK(shop_try(&l->p, owners, false));
    scene_begin(&l->raw);
    scene_line(&l->raw, 2, 1, &w, &b);
    CHECK_OK(fl_backward(l->raw.net, l->raw.loss, NULL, &pgs));
    fl_free(pgs.at);
    l->scope = fl_scope_new();
    CHECK_OK(
        fl_exe_run(l->p.exe, l->p.s.net->startup, l->scope, 0, NULL, 0, NULL));
    shop_set(&l->p, "w", 2, fl_scope_find(l->scope, "w")->tensor.data);
}

static void end_local(local *l)
{
    shop_close(&l->p);
    scene_end(&l->raw);
    fl_scope_free(l->scope);
}

/* Gradients of this batch at the present parameters of the local run. */
static fl_parcel *grads(local *l, const fl_feed *feeds, int trainer)
{
    fl_fetch f[2] = {{"w@GRAD"}, {"b@GRAD"}};
    char name[64];
    fl_parcel *p = fl_parcel_new();
    CHECK_OK(fl_exe_run(l->p.exe, l->raw.net->main, l->scope, 2, feeds, 2, f));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.trainer_%d", f[i].name, trainer);
        fl_parcel_add(p, name, &f[i].tensor);
        fl_tensor_fini(&f[i].tensor);
    }
    return p;
}

static void check_same(local *l, const char *name)
{
    const fl_value *there = fl_scope_find(l->scope, name);
    CHECK(isfinite(shop_get(&l->p, name)[0]));
    CHECK(!memcmp(shop_get(&l->p, name), there->tensor.data,
                  fl_tensor_bytes(&there->tensor)));
}

static void train_beside(local *l)
{
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < 8; i++)
            l->x[i] = (float)((i * 7 + step * 3) % 11) / 3.0f;
        for (int i = 0; i < 4; i++)
            l->y[i] = (float)((i + step) % 5) / 7.0f;
        const fl_shape sx = {2, {4, 2}}, sy = {2, {4, 1}};
        const fl_feed feeds[] = {{"x", fl_tensor_view(FL_F32, &sx, l->x)},
                                 {"y", fl_tensor_view(FL_F32, &sy, l->y)}};
        SHOP_ROUND(&l->p, grads(l, feeds, 0), grads(l, feeds, 1));
        CHECK_STR(l->p.why, "");
        CHECK_OK(fl_exe_run(l->p.exe, l->p.s.net->main, l->scope, 2, feeds, 0,
                            NULL));
        check_same(l, "w");
        check_same(l, "b");
    }
}

static void the_bits_are_those_of_a_local_run(void)
{
    static const fl_arg momentum[] = {{"momentum", .f = 0.9}, {0}};
    static const struct {
        const char *optimizer, *schedule;
        const fl_arg *args;
    } cases[] = {
        {"sgd", NULL, NULL},
        {"momentum", NULL, momentum},
        {"adam", NULL, NULL},
        {"adagrad", NULL, NULL},
        {"sgd", "exponential_decay", NULL},
        {"adam", "inverse_time_decay", NULL},
        {"momentum", "natural_exp_decay", momentum},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int owners = 1; owners < 4; owners += 2) {
            local l;
            begin_local(&l, cases[i].optimizer, cases[i].args,
                        cases[i].schedule, owners);
            train_beside(&l);
            end_local(&l);
        }
}

/* --- what is refused --- */

static void a_bad_push_is_refused(void)
{
    shop p;
    const float x[] = {1, 2, 3, 0.0f / 0.0f};
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &two);
    CHECK_ERR(shop_check(&p, shop_grad("w@GRAD.trainer_2", 2, 1, x)), FL_ENOENT,
              "no gradient \"w@GRAD.trainer_2\" on this server; the nearest is "
              "\"w@GRAD.trainer_0\"");
    CHECK_ERR(shop_check(&p, shop_grad("w@GRAD.trainer_1", 1, 2, x)), FL_ESHAPE,
              "gradient \"w@GRAD.trainer_1\" is float32[1,2], expected "
              "float32[2,1]");
    CHECK_ERR(shop_check(&p, shop_grad("w@GRAD.trainer_1", 3, 0, x)), FL_ESHAPE,
              "is float32[3], expected float32[2,1]");
    CHECK_ERR(shop_check(&p, shop_rows("w@GRAD.trainer_1", 2, 1, 1,
                                       (const int64_t[]){0}, x)),
              FL_ESHAPE, "is rows of float32[1,1], expected float32[2,1]");
    CHECK_ERR(shop_check(&p, shop_grad("w@GRAD.trainer_1", 2, 1, x + 2)),
              FL_EINVAL,
              "gradient \"w@GRAD.trainer_1\" is not finite at element 1");
    fl_str rows = {0};
    fl_pstore_waits(p.store, &rows);
    CHECK_STR(rows.at,
              "1 pushes with gradients that are not finite were refused\n");
    fl_str_fini(&rows);
    CHECK_OK(shop_check(&p, shop_grad("w@GRAD.trainer_1", 2, 1, x)));
    CHECK_OK(shop_check(&p, shop_grad("w@GRAD", 2, 1, x)));
    shop_close(&p);
}

static void nan_is_let_through_on_demand(void)
{
    shop p;
    const float x[] = {1, 0.0f / 0.0f};
    begin(&p, "sgd", scene_rate);
    shop_cut(&p, &two);
    CHECK_OK(shop_try(&p, 1, true));
    CHECK_OK(shop_check(&p, shop_grad("w@GRAD.trainer_1", 2, 1, x)));
    shop_close(&p);
}

static void a_server_that_was_not_started_is_refused(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_cut(&p, &two);
    fl_scope *full = p.scope;
    p.scope = fl_scope_new();
    CHECK_ERR(shop_try(&p, 1, false), FL_ENOENT,
              "holds nothing yet: run the server's startup program first");
    fl_scope_free(full);
    shop_close(&p);
}

/* --- pulls --- */

static void a_pull_is_not_changed_by_what_comes_later(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &two);
    shop_set(&p, "w", 2, (const float[]){10, 20});
    shop_pull(&p, "w", -1, NULL);
    CHECK_INT(p.kind, FL_MSG_VALUES);
    fl_parcel *old = fl_parcel_ref(p.values);
    SHOP_ROUND(&p, GRAD(0, 2, 4), GRAD(1, 6, 8));
    CHECK(same(shop_get(&p, "w"), 8, 17));
    CHECK_NEAR(shop_value(&p, 0), 10, 0);
    CHECK_NEAR(shop_value(&p, 1), 20, 0);
    CHECK_INT(old->item[0].shape.rank, 2);
    fl_parcel_unref(old);
    shop_pull(&p, "w", -1, NULL);
    CHECK_NEAR(shop_value(&p, 1), 17, 0);
    shop_close(&p);
}

static void rows_are_pulled(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &two);
    shop_set(&p, "w", 2, (const float[]){10, 20});
    shop_pull(&p, "w", 3, (const int64_t[]){1, 0, 1});
    CHECK_INT(p.values->item[0].shape.dim[0], 3);
    CHECK_NEAR(shop_value(&p, 0), 20, 0);
    CHECK_NEAR(shop_value(&p, 1), 10, 0);
    CHECK_NEAR(shop_value(&p, 2), 20, 0);
    shop_pull(&p, "w", 0, NULL);
    CHECK_INT(p.values->item[0].shape.dim[0], 0);
    shop_close(&p);
}

/* A request may name a row many times, but its answer has a size limit. */
static void an_answer_has_so_many_bytes(void)
{
    shop p;
    const int64_t rows[4] = {0};
    begin(&p, "sgd", scene_rate);
    p.max_answer = 3 * sizeof(float);
    shop_open(&p, &two);
    shop_pull(&p, "w", 3, rows);
    CHECK_INT(p.kind, FL_MSG_VALUES);
    shop_pull(&p, "w", 4, rows);
    CHECK_INT(p.kind, FL_MSG_ERROR);
    CHECK(strstr(p.text, "would have more than 12 bytes; ask for fewer rows"));
    shop_pull(&p, "w", -1, NULL);
    CHECK_INT(p.kind, FL_MSG_VALUES);
    shop_close(&p);
}

static void a_bad_pull_is_an_error(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &two);
    shop_pull(&p, "v", -1, NULL);
    CHECK_INT(p.kind, FL_MSG_ERROR);
    CHECK_INT(p.code, FL_ENOENT);
    CHECK(strstr(p.text, "there is no variable \"v\" on this server") != NULL);
    shop_pull(&p, "w", 2, (const int64_t[]){1, 2});
    CHECK_INT(p.code, FL_EINVAL);
    CHECK_STR(p.text, "pull: \"w\" has no row 2, it has 2");
    shop_pull(&p, NULL, 0,
              NULL); /* the first pull of a trainer names nothing */
    CHECK_INT(p.kind, FL_MSG_VALUES);
    shop_close(&p);
}

static void owners_answer_together(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_cut(&p, &two);
    CHECK_OK(shop_try(&p, 5, false));
    fl_parcel *want = fl_parcel_new();
    fl_parcel_want(want, "w", -1, NULL);
    fl_parcel_want(want, "b", -1, NULL);
    fl_parcel_want(want, "learning_rate_0", -1, NULL);
    const fl_blob b = fl_parcel_blob(want);
    for (int i = 0; i < 50; i++)
        p.face->read(p.face->self, b, (fl_peer){FL_PEER_CALL, 0, 1},
                     &(fl_msg){.kind = FL_MSG_VALUES});
    shop_wait(&p, &p.answers, 50);
    CHECK_INT(p.values->n, 3);
    CHECK_STR(p.values->item[1].name, "b");
    CHECK_INT(p.values->item[0].shape.dim[0], 2);
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(want);
    shop_close(&p);
}

static void pull_range(shop *p, const char *name, int64_t first, int64_t n)
{
    fl_parcel *want = fl_parcel_new();
    fl_parcel_want_range(want, name, first, n);
    shop_ask(p, want);
}

static void a_range_is_a_slice(void)
{
    shop p;
    begin_wide(&p, &two);
    float x[WIDE];
    for (int i = 0; i < WIDE; i++)
        x[i] = (float)i;
    shop_set(&p, "w", WIDE, x);
    pull_range(&p, "w", 7, 20);
    CHECK_INT(p.values->item[0].first, 7);
    CHECK_INT(p.values->item[0].shape.rank, 1);
    CHECK_INT(p.values->item[0].shape.dim[0], 20);
    CHECK_NEAR(shop_value(&p, 0), 7, 0);
    CHECK_NEAR(shop_value(&p, 19), 26, 0);
    const int64_t beyond[][2] = {
        {21, 20}, {WIDE, 1}, {INT64_MAX - 1, 1}, {0, INT64_MAX}};
    for (int i = 0; i < 4; i++) {
        pull_range(&p, "w", beyond[i][0], beyond[i][1]);
        CHECK(strstr(p.text, "of \"w\" are asked for, which has fewer"));
    }
    shop_close(&p);
}

/* --- asynchronous --- */

/* Apply one push of a trainer. last: it ends a step. */
static void push(shop *p, int rank, fl_parcel *parcel, bool last)
{
    const fl_blob blob = fl_parcel_blob(parcel);
    const fl_staged by = {rank, {1, (uint64_t)rank}, 1, &blob, last};
    CHECK_OK(p->face->check(p->face->self, &by));
    const int until = p->applied + 1;
    p->face->apply(p->face->self, 0, &by, 1);
    shop_wait(p, &p->applied, until);
    CHECK_STR(p->why, "");
    fl_keeper_parcels.drop(NULL, blob);
    fl_parcel_unref(parcel);
}

static void a_push_is_applied_as_it_comes(void)
{
    shop p;
    begin(&p, "sgd", scene_rate);
    shop_open(&p, &async);
    shop_set(&p, "w", 2, (const float[]){10, 20});
    push(&p, 0, shop_grad("w@GRAD", 2, 1, (const float[]){2, 4}), true);
    CHECK(same(shop_get(&p, "w"), 9, 18));
    push(&p, 1, shop_grad("w@GRAD", 2, 1, (const float[]){4, 4}), true);
    CHECK(same(shop_get(&p, "w"), 7, 16));
    shop_close(&p);
}

/* The tenth and later pushes, of what the first nine brought. */
static void check_steady_pushes(shop *p, const char *grad, bool rows)
{
    const int64_t row[] = {3, 7};
    uint64_t allocated = 0, prepared = 0;
    for (int i = 0; i < 20; i++) {
        if (i == 10) {
            allocated = p->allocated;
            prepared = p->prepared;
        }
        const float x[] = {1, 2, 3, 4};
        push(p, 0,
             rows ? shop_rows(grad, 10, 2, 2, row, x)
                  : shop_grad(grad, 2, 1, x),
             true);
    }
    CHECK_INT((int64_t)(p->allocated - allocated), 0);
    CHECK_INT((int64_t)(p->prepared - prepared), 0);
}

static void an_owner_applies_without_allocating(void)
{
    shop p;
    begin(&p, "adam", scene_rate);
    shop_open(&p, &async);
    check_steady_pushes(&p, "w@GRAD", false);
    shop_close(&p);
    for (int i = 0; i < 2; i++) {
        shop_begin_rows(&p, "adagrad", scene_rate, i);
        shop_open(&p, &async);
        check_steady_pushes(&p, i ? "emb@GRAD.pserver_0" : "emb@GRAD", true);
        shop_close(&p);
    }
}

static void slices_wait_for_each_other(void)
{
    const fl_shape s = {2, {WIDE, 1}};
    float x[WIDE];
    shop p;
    begin_wide(&p, &async);
    for (int i = 0; i < WIDE; i++)
        x[i] = (float)(i + 1);
    const fl_tensor t = fl_tensor_view(FL_F32, &s, x);
    for (int i = 0; i < 4;
         i++) { /* two trainers, each sends the last slice first */
        fl_parcel *part = fl_parcel_new();
        fl_parcel_add_slice(part, "w@GRAD", &t, i < 2 ? 30 : 0,
                            i < 2 ? 10 : 30);
        push(&p, i % 2, part, i >= 2);
        check_ramp(&p, -0.5f * (float)(i < 2 ? 0 : i - 1));
    }
    shop_close(&p);
}

/* A parcel with elements first .. first + n of x as a slice. */
static fl_parcel *one_slice(const float *x, int64_t first, int64_t n)
{
    const fl_shape s = {2, {WIDE, 1}};
    const fl_tensor t = fl_tensor_view(FL_F32, &s, x);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_slice(p, "w@GRAD", &t, first, n);
    return p;
}

static void slices_that_overlap_are_refused(void)
{
    const fl_shape s = {2, {WIDE, 1}};
    float x[WIDE];
    shop p;
    begin_wide(&p, &async);
    for (int i = 0; i < WIDE; i++)
        x[i] = (float)(i + 1);
    const fl_tensor t = fl_tensor_view(FL_F32, &s, x);
    push(&p, 1, one_slice(x, 10, 10), false);
    CHECK_ERR(shop_check(&p, one_slice(x, 10, 10)), FL_EPROTO,
              "push: elements 10 to 19 of gradient \"w@GRAD\" came after "
              "elements 10 to 19, while 30 of 40 were missing");
    CHECK_ERR(shop_check(&p, one_slice(x, 0, 11)), FL_EPROTO, "0 to 10");
    CHECK_ERR(shop_check(&p, one_slice(x, 19, 21)), FL_EPROTO, "19 to 39");
    CHECK_ERR(shop_check(&p, shop_grad("w@GRAD", WIDE, 1, x)), FL_EPROTO,
              "elements 0 to 39 of");
    fl_parcel *both =
        one_slice(x, 20, 20); /* one of two slices is wrong: both are refused */
    fl_parcel_add_slice(both, "w@GRAD", &t, 5, 6);
    CHECK_ERR(shop_check(&p, both), FL_EPROTO, "5 to 10");
    push(&p, 1, one_slice(x, 20, 20), false);
    check_ramp(&p, 0);
    push(&p, 1, one_slice(x, 0, 10), true);
    check_ramp(&p, -0.5f);
    push(&p, 1, one_slice(x, 0, 30), false); /* belongs to the next step */
    push(&p, 1, one_slice(x, 30, 10), true);
    check_ramp(&p, -1);
    shop_close(&p);
}

/* The rate halves with every step. Both pushes of a step use the same rate. */
static void the_rate_moves_once_a_step(void)
{
    shop p = {0};
    scene_begin(&p.s);
    scene_line(&p.s, 2, 1, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    fl_var *rate =
        TEST_LAYER(p.s.net, "exponential_decay", {"learning_rate", .f = 1.0},
                   {"decay_steps", .f = 1}, {"decay_rate", .f = 0.5});
    scene_minimize(
        &p.s, "sgd",
        (const fl_arg[]){{"learning_rate", .n = 1, .var = rate}, {0}});
    shop_cut(&p, &async);
    CHECK_OK(shop_try(&p, 2, false));
    shop_set(&p, "w", 2, (const float[]){0, 0});
    shop_set(&p, "b", 1, (const float[]){0});
    const float one[] = {1, 1};
    push(&p, 0, shop_grad("w@GRAD", 2, 1, one), false);
    push(&p, 0, shop_grad("b@GRAD", 1, 0, one), true);
    CHECK_NEAR(shop_get(&p, "w")[0], -1, 0);
    CHECK_NEAR(shop_get(&p, "b")[0], -1, 0);
    push(&p, 1, shop_grad("b@GRAD", 1, 0, one), true);
    CHECK_NEAR(shop_get(&p, "b")[0], -1.5, 0);
    push(&p, 0, shop_grad("w@GRAD", 2, 1, one), true);
    CHECK_NEAR(shop_get(&p, "w")[0], -1.25, 0);
    shop_close(&p);
}

/* The value that all elements of the part's variables have. */
static float read_part(const fl_snapshot_part *part)
{
    float same = 0;
    CHECK_INT(part->index.tensor.n, 3); /* w, b and the learning rate */
    for (int64_t i = 0; i < part->index.tensor.n; i++) {
        const fl_snapshot_tensor *t = &part->index.tensor.at[i];
        float x[2];
        if (t->bytes > (int64_t)sizeof x || !strncmp(t->name, "learning", 8))
            continue;
        CHECK_OK(part->disk->read_at(part->data, t->at, x, (size_t)t->bytes));
        for (int64_t k = 0; k < t->bytes / 4; k++) {
            CHECK(!same || x[k] == same);
            same = x[k];
        }
    }
    return same;
}

/* What the store was given before the cut is in the snapshot, also what it has
 * not applied yet, and nothing of what it was given after it. So the machine
 * can say which pushes it contains (begin_cut in src/protocol/server.c). */
static void a_cut_has_what_was_given_before_it(void)
{
    enum {
        PUSHES = 12
    };
    const float one[] = {1, 1};
    for (int before = 1; before < PUSHES; before++) {
        fl_parcel *push[PUSHES];
        fl_blob blob[PUSHES];
        fl_snapshot_part part;
        shop p;
        begin(&p, "sgd", scene_rate);
        p.snapshots = fl_test_dir();
        shop_cut(&p, &async);
        CHECK_OK(shop_try(&p, 2, false));
        shop_set(&p, "w", 2, (const float[]){0, 0});
        shop_set(&p, "b", 1, (const float[]){0});
        for (int i = 0; i < PUSHES; i++) {
            push[i] = shop_grad("w@GRAD", 2, 1, one);
            const fl_tensor b =
                fl_tensor_view(FL_F32, &(fl_shape){1, {1}}, one);
            fl_parcel_add(push[i], "b@GRAD", &b);
            blob[i] = fl_parcel_blob(push[i]);
            const fl_staged by = {0, {1, 1}, 1, &blob[i], true};
            if (i == before)
                p.face->cut(p.face->self, &(fl_moment){.number = before});
            p.face->apply(p.face->self, 0, &by, 1);
        }
        shop_wait(&p, &p.applied, PUSHES);
        shop_wait(&p, &p.written, 1);
        CHECK_NEAR(shop_get(&p, "w")[0], -0.5 * PUSHES, 0);
        CHECK_OK(fl_snapshot_part_init(&part, fl_disk_real(), p.snapshots,
                                       before, 0));
        CHECK_NEAR(read_part(&part), -0.5 * before, 0);
        fl_snapshot_part_fini(&part);
        for (int i = 0; i < PUSHES; i++) {
            fl_keeper_parcels.drop(NULL, blob[i]);
            fl_parcel_unref(push[i]);
        }
        shop_close(&p);
    }
}

/* --- rows --- */

static void rows_are_added_up(void)
{
    shop p;
    float zeros[20] = {0};
    shop_begin_rows(&p, "sgd", scene_rate, false);
    shop_open(&p, &two);
    shop_set(&p, "emb", 20, zeros);
    SHOP_ROUND(&p,
               shop_rows("emb@GRAD.trainer_0", 10, 3, 2,
                         (const int64_t[]){7, 1, 7},
                         (const float[]){1, 2, 3, 4, 5, 6}),
               shop_rows("emb@GRAD.trainer_1", 10, 1, 2, (const int64_t[]){7},
                         (const float[]){2, 2}));
    CHECK_STR(p.why, "");
    CHECK(same(shop_get(&p, "emb") + 2, -0.75f, -1));
    CHECK(same(shop_get(&p, "emb") + 14, -2, -2.5f));
    SHOP_ROUND(&p, NULL, NULL); /* a round without rows is allowed */
    CHECK_STR(p.why, "");
    CHECK(same(shop_get(&p, "emb") + 14, -2, -2.5f));
    CHECK_ERR(shop_check(&p, shop_rows("emb@GRAD.trainer_0", 10, 1, 2,
                                       (const int64_t[]){10}, zeros)),
              FL_EINVAL,
              "gradient \"emb@GRAD.trainer_0\" has row 10, there "
              "are 10");
    CHECK_ERR(shop_check(&p, shop_rows("emb@GRAD.trainer_0", 10, 1, 3,
                                       (const int64_t[]){1}, zeros)),
              FL_ESHAPE,
              "is rows of float32[1,3], expected rows of "
              "float32[10,2]");
    shop_close(&p);
}

/* A rule with decay also changes rows that have no gradient in a round. */
static void rows_meet_a_rule_that_decays(void)
{
    shop p;
    float zeros[20] = {0};
    shop_begin_rows(&p, "adam",
                    (const fl_arg[]){{"learning_rate", .f = 0.5}, {0}}, false);
    shop_open(&p, &two);
    shop_set(&p, "emb", 20, zeros);
    for (int i = 0; i < 2; i++)
        SHOP_ROUND(&p,
                   shop_rows("emb@GRAD.trainer_0", 10, 1, 2,
                             (const int64_t[]){i}, (const float[]){1, 1}),
                   shop_rows("emb@GRAD.trainer_1", 10, 1, 2,
                             (const int64_t[]){i}, (const float[]){1, 1}));
    CHECK_STR(p.why, "");
    CHECK(shop_get(&p, "emb")[0] < -0.6f);
    CHECK(shop_get(&p, "emb")[2] > -0.6f);
    CHECK_NEAR(shop_get(&p, "emb")[4], 0, 0);
    shop_close(&p);
}

const fl_test fl_tests[] = {
    {"the mean of the participants is applied",
     the_mean_of_participants_is_applied},
    {"a gradient's name does not say who sent it", names_do_not_say_who_sent},
    {"gradients are added by rank", gradients_are_added_by_rank},
    {"a gradient that nobody sent moves nothing",
     who_sent_nothing_moves_nothing},
    {"a number may straddle spans", a_number_may_straddle_spans},
    {"slices make a whole", slices_make_a_whole},
    {"pieces meet the rule as a whole would",
     pieces_meet_the_rule_as_a_whole_would},
    {"updates have the bits of a local run", the_bits_are_those_of_a_local_run},
    {"a bad push is refused", a_bad_push_is_refused},
    {"NaN is let through on demand", nan_is_let_through_on_demand},
    {"a server that was not started is refused",
     a_server_that_was_not_started_is_refused},
    {"a pull is not changed by what comes later",
     a_pull_is_not_changed_by_what_comes_later},
    {"rows are pulled", rows_are_pulled},
    {"a bad pull is an error with a sentence", a_bad_pull_is_an_error},
    {"an answer has so many bytes", an_answer_has_so_many_bytes},
    {"several owners answer together", owners_answer_together},
    {"an owner applies a push without allocating",
     an_owner_applies_without_allocating},
    {"an asynchronous push is applied as it comes",
     a_push_is_applied_as_it_comes},
    {"a range of a variable is answered as a slice", a_range_is_a_slice},
    {"slices that overlap are refused", slices_that_overlap_are_refused},
    {"slices of an asynchronous push wait for each other",
     slices_wait_for_each_other},
    {"an asynchronous rate moves once a step", the_rate_moves_once_a_step},
    {"a snapshot has the pushes that were given before it",
     a_cut_has_what_was_given_before_it},
    {"rows are added up", rows_are_added_up},
    {"rows meet a rule that decays", rows_meet_a_rule_that_decays},
    {0},
};
