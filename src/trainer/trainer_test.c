/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/trainer.h"

#include "trainer/test_job.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static fl_trainer *trainer(test_job *j, int id)
{
    fl_placement place = j->place;
    fl_trainer *t;
    place.trainer_id = id;
    CHECK_OK(fl_trainer_new(&place, NULL, &t));
    return t;
}

/* A gradient of n x width floats that are all x. */
static fl_value ones(int64_t n, int64_t width, float x)
{
    fl_value v = {.kind = FL_LOD_TENSOR};
    const fl_shape shape = {2, {n, width}};
    CHECK_OK(fl_tensor_resize(&v.tensor, FL_F32, &shape));
    for (int64_t i = 0; i < n * width; i++)
        ((float *)v.tensor.data)[i] = x;
    return v;
}

static void send(fl_trainer *t, int server, const char *name, int64_t n,
                 int64_t width, float x)
{
    fl_value v = ones(n, width, x);
    CHECK_OK(fl_trainer_send(t, NULL, server, name, &v));
    fl_value_fini(&v); /* its memory is shared */
}

/* Receive a variable, and check that all its elements are x. */
static void receives(fl_trainer *t, int server, const char *name, int64_t n,
                     float x)
{
    fl_tensor got = {0};
    CHECK_OK(fl_trainer_recv(t, NULL, server, name, &got));
    CHECK_INT(fl_tensor_numel(&got), n);
    for (int64_t i = 0; i < n; i++)
        if (((float *)got.data)[i] != x)
            CHECK_NEAR(((float *)got.data)[i], x, 0);
    fl_tensor_fini(&got);
}

static void leaves(fl_trainer *t)
{
    CHECK_OK(fl_trainer_leave(t, NULL, 0, NULL, 0));
    fl_trainer_free(t);
}

static void takes_steps(void)
{
    test_job j;
    test_job_begin(&j, 2, 1, false);
    test_job_var(&j, 0, "w", 2, 3, 1);
    test_job_var(&j, 1, "b", 1, 4, 5);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 6, 1);
    receives(t, 1, "b", 4, 5);
    for (int i = 1; i <= 3; i++) {
        send(t, 0, "w@GRAD", 2, 3, 0.5f);
        send(t, 1, "b@GRAD.trainer_0", 1, 4, 1);
        CHECK_OK(fl_trainer_step(t, NULL));
        receives(t, 0, "w", 6, 1 - 0.5f * (float)i);
        receives(t, 1, "b", 4, 5 - (float)i);
    }
    leaves(t);
    test_job_end(&j);
}

/* A variable that was received after a step is pulled with later steps. */
static void learns_what_to_pull(void)
{
    test_job j;
    test_job_begin(&j, 1, 1, false);
    test_job_var(&j, 0, "w", 2, 3, 1);
    test_job_var(&j, 0, "table", 9, 3, 1);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 6, 1);
    receives(t, 0, "table", 27, 1); /* before the first step: does not count */
    CHECK_INT(j.server[0].pulls, 3);
    for (int i = 0; i < 4; i++) {
        send(t, 0, "w@GRAD", 2, 3, 1);
        CHECK_OK(fl_trainer_step(t, NULL));
        receives(t, 0, "w", 6, (float)-i);
    }
    CHECK_INT(j.server[0].pulls, 3 + 4 + 1);
    receives(t, 0, "w", 6, -3); /* the second recv of a step asks the server */
    CHECK_INT(j.server[0].pulls, 3 + 4 + 2);
    leaves(t);
    test_job_end(&j);
}

static void cuts_large_gradients(void)
{
    enum {
        N = 3 << 20 /* 12 MB */
    };
    test_job j;
    test_job_begin(&j, 1, 1, false);
    test_job_var(&j, 0, "w", N, 1, 3);
    test_job_var(&j, 0, "b", 1, 1, 3);
    fl_trainer *t = trainer(&j, 0);
    for (int i = 1; i < 3; i++) {
        send(t, 0, "w@GRAD", N, 1, 1);
        send(t, 0, "b@GRAD", 1, 1, 1);
        CHECK_OK(fl_trainer_step(t, NULL));
        receives(t, 0, "w", N, 3 - (float)i);
        receives(t, 0, "b", 1, 3 - (float)i);
        CHECK_INT(j.server[0].pushes, i * 4); /* three slices, then b */
    }
    leaves(t);
    test_job_end(&j);
}

static void sends_rows_and_not_nothing(void)
{
    test_job j;
    test_job_begin(&j, 1, 1, false);
    test_job_var(&j, 0, "w", 4, 2, 0);
    fl_trainer *t = trainer(&j, 0);
    fl_value v = {.kind = FL_SELECTED_ROWS}, none = {0};
    const fl_shape shape = {2, {4, 2}};
    CHECK_OK(fl_rows_resize(&v.rows, FL_F32, &shape, 2));
    memcpy(v.rows.index.data, (int64_t[]){3, 3}, 2 * sizeof(int64_t));
    memcpy(v.rows.value.data, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
    CHECK_OK(fl_trainer_send(t, NULL, 0, "w@GRAD", &v));
    v.rows.n = 0;
    CHECK_OK(fl_trainer_send(t, NULL, 0, "no such thing", &v));
    CHECK_OK(fl_trainer_send(t, NULL, 0, "no such thing", &none));
    CHECK_OK(fl_trainer_step(t, NULL));
    fl_tensor got = {0};
    CHECK_OK(fl_trainer_recv(t, NULL, 0, "w", &got));
    const float *w = got.data;
    CHECK(w[5] == 0 && w[6] == -4 && w[7] == -6);
    fl_tensor_fini(&got);
    fl_value_fini(&v);
    leaves(t);
    test_job_end(&j);
}

static void looks_rows_up(void)
{
    test_job j;
    test_job_begin(&j, 2, 1, false);
    test_job_var(&j, 0, "a", 3, 2, 1);
    test_job_var(&j, 0, "c", 3, 2, 2);
    test_job_var(&j, 1, "b", 3, 2, 3);
    fl_trainer *t = trainer(&j, 0);
    fl_tensor out[3] = {{0}};
    const int64_t rows[] = {2, 0};
    CHECK_OK(fl_trainer_lookup(t, NULL, 3,
                               (fl_lookup[]){{0, "a", 1, rows, &out[0]},
                                             {1, "b", 2, rows, &out[1]},
                                             {0, "c", 2, rows, &out[2]}}));
    CHECK_INT(out[0].shape.dim[0], 1);
    CHECK_INT(out[2].shape.dim[0], 2);
    CHECK_NEAR(((float *)out[0].data)[1], 1, 0);
    CHECK_NEAR(((float *)out[1].data)[3], 3, 0);
    CHECK_NEAR(((float *)out[2].data)[3], 2, 0);
    CHECK_ERR(
        fl_trainer_lookup(t, NULL, 1, &(fl_lookup){2, "a", 1, rows, &out[0]}),
        FL_EINVAL, "a: there is no server 2, the job has 2");
    for (int i = 0; i < 3; i++)
        fl_tensor_fini(&out[i]);
    leaves(t);
    test_job_end(&j);
}

static int pulls_of(test_job *j)
{
    pthread_mutex_lock(&j->lock);
    const int n = j->server[0].pulls;
    pthread_mutex_unlock(&j->lock);
    return n;
}

static void asks_ahead_of_the_use(void)
{
    test_job j;
    test_job_begin(&j, 1, 1, true);
    test_job_var(&j, 0, "w", 3, 2, 7);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 6, 7);
    fl_tensor out = {0};
    const int64_t row = 1;
    const fl_lookup one = {0, "w", 1, &row, &out};
    const int before = pulls_of(&j);
    const uint64_t ticket = fl_trainer_ask(t, 1, &one);
    CHECK(ticket != 0);
    while (pulls_of(&j) == before) /* the server is asked meanwhile */
        ;
    CHECK(!out.data);
    CHECK_OK(fl_trainer_answer(t, NULL, ticket, 1, &one));
    CHECK_NEAR(((float *)out.data)[1], 7, 0);
    CHECK_INT(pulls_of(&j), before + 1);
    CHECK_OK(fl_trainer_answer(t, NULL, ticket, 1, &one)); /* asks again */
    CHECK_INT(pulls_of(&j), before + 2);
    const uint64_t lost = fl_trainer_ask(t, 1, &one);
    test_job_lose(&j);
    CHECK_OK(fl_trainer_answer(t, NULL, lost, 1, &one));
    CHECK_NEAR(((float *)out.data)[1], 7, 0);
    receives(t, 0, "w", 6, 7);    /* waits for a new session */
    for (int i = 0; i < 100; i++) /* nobody waits for these */
        CHECK(fl_trainer_ask(t, 1, &one) > lost);
    fl_tensor_fini(&out);
    leaves(t);
    test_job_end(&j);
}

/* A trainer that knows the shape of "w" on server 0. */
static fl_trainer *knowing_trainer(test_job *j, fl_piece *w)
{
    *w = (fl_piece){"w", "w", 0, 0, j->server[0].var[0].value.shape};
    j->place.n_pieces = 1;
    j->place.pieces = w;
    return trainer(j, 0);
}

static void step_on(fl_trainer *t)
{
    send(t, 0, "w@GRAD", 3, 2, 1);
    CHECK_OK(fl_trainer_step(t, NULL));
}

/* Get the row of "w" that was asked for, and check that its elements are x. */
static void looks_up(fl_trainer *t, uint64_t ticket, const fl_lookup *l,
                     float x)
{
    CHECK(ticket != 0);
    fl_tensor_fini(l->out);
    CHECK_OK(fl_trainer_answer(t, NULL, ticket, 1, l));
    CHECK_INT(fl_tensor_numel(l->out), 2);
    CHECK_NEAR(((float *)l->out->data)[1], x, 0);
}

/* In a synchronous job. Only rows of the version that the trainer has count. */
static void rows_come_with_the_step(void)
{
    test_job j;
    fl_piece w;
    test_job_begin(&j, 1, 1, false);
    test_job_var(&j, 0, "w", 3, 2, 7);
    test_job_var(&j, 0, "b", 1, 2, 4);
    fl_trainer *t = knowing_trainer(&j, &w);
    fl_tensor out = {0};
    const int64_t row = 1;
    const fl_lookup one = {0, "w", 1, &row, &out};
    receives(t, 0, "b", 2, 4);
    step_on(t);
    receives(t, 0, "b", 2, 4); /* is pulled with each step from now on */
    const int before = pulls_of(&j);
    uint64_t ticket = fl_trainer_ask(t, 1, &one);
    step_on(t);
    receives(t, 0, "b", 2, 4);
    looks_up(t, ticket, &one, 5);
    CHECK_INT(pulls_of(&j), before + 1); /* that of the step */
    ticket = fl_trainer_ask(t, 1, &one);
    step_on(t);
    step_on(t); /* the rows are old now */
    looks_up(t, ticket, &one, 3);
    CHECK_INT(pulls_of(&j), before + 4);
    looks_up(t, fl_trainer_ask(t, 1, &one), &one, 3); /* without a step */
    ticket = fl_trainer_ask(t, 1, &one);
    test_job_lose(&j);
    step_on(t); /* its gradients are lost with the session */
    looks_up(t, ticket, &one, 3);
    ticket = fl_trainer_ask(t, 1, &one);
    step_on(t);
    looks_up(t, ticket, &one, 2);
    fl_tensor_fini(&out);
    leaves(t);
    test_job_end(&j);
}

static void does_not_ask_ahead(bool async)
{
    test_job j;
    fl_piece w;
    test_job_begin(&j, 1, 1, async);
    test_job_var(&j, 0, "w", 1, 2, 7);
    fl_trainer *t = knowing_trainer(&j, &w);
    receives(t, 0, "w", 2, 7);
    fl_tensor out = {0};
    const int64_t row = 0;
    CHECK(!fl_trainer_ask(t, 1, &(fl_lookup){0, "w", 1, &row, &out}));
    leaves(t);
    test_job_end(&j);
}

static void asks_ahead_only_if_it_may(void)
{
    setenv("FLUID_PREFETCH", "0", 1);
    does_not_ask_ahead(false);
    does_not_ask_ahead(true);
    unsetenv("FLUID_PREFETCH");
}

static void steps_by_itself_in_async_mode(void)
{
    test_job j;
    test_job_begin(&j, 1, 1, true);
    test_job_var(&j, 0, "w", 1, 2, 1);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 2, 1);
    for (int i = 0; i < 3; i++) {
        send(t, 0, "w@GRAD", 1, 2, 1);
        receives(t, 0, "w", 2, (float)-i);
    }
    send(t, 0, "w@GRAD", 1, 2, 1);
    CHECK_OK(fl_trainer_flush(t, NULL));
    CHECK_OK(fl_trainer_flush(t, NULL)); /* does nothing */
    receives(t, 0, "w", 2, -3);
    leaves(t);
    test_job_end(&j);
}

/* A thread that looks rows up while another one pushes. */
static void look_often(void *trainer)
{
    for (int i = 0; i < 50; i++) {
        fl_tensor row = {0};
        const int64_t which = i % 4;
        CHECK_OK(fl_trainer_lookup(trainer, NULL, 1,
                                   &(fl_lookup){1, "rows", 1, &which, &row}));
        CHECK_INT(fl_tensor_numel(&row), 2);
        CHECK_NEAR(((float *)row.data)[1], 5, 0);
        fl_tensor_fini(&row);
    }
}

static void pushes_while_others_look_rows_up(void)
{
    enum {
        N = 1 << 18 /* a MB: as much as one push carries */
    };
    test_job j;
    fl_pool *pool;
    fl_group group = {0};
    bool lost = false;
    test_job_begin(&j, 2, 1, true);
    test_job_var(&j, 0, "w", N, 1, 100);
    test_job_var(&j, 1, "rows", 4, 2, 5);
    fl_trainer *t = trainer(&j, 0);
    CHECK_OK(fl_pool_new("other", 2, &pool));
    for (int i = 0; i < 2; i++)
        fl_pool_submit(pool, &group, look_often, t);
    fl_value g = ones(N, 1, 1), none = {0};
    for (int i = 0; i < 20; i++) {
        CHECK_OK(fl_trainer_push(
            t, NULL, 2,
            (fl_gradient[]){{0, "w@GRAD", &g}, {0, "no such thing", &none}},
            &lost));
        CHECK(!lost);
    }
    CHECK_OK(fl_pool_wait(pool, &group, 300 * FL_SEC));
    CHECK_INT(j.server[0].pushes, 20);
    receives(t, 0, "w", N, 80);
    fl_value_fini(&g);
    leaves(t);
    fl_pool_free(pool);
    test_job_end(&j);
}

/* A thread that asks ahead all the time, until it has asked. */
static void ask_often(void *trainer)
{
    fl_tensor row = {0};
    const int64_t which = 1;
    const fl_lookup l = {0, "rows", 1, &which, &row};
    uint64_t ticket = 0;
    while (!ticket)
        ticket = fl_trainer_ask(trainer, 1, &l);
    CHECK_OK(fl_trainer_answer(trainer, NULL, ticket, 1, &l));
    CHECK_INT(fl_tensor_numel(&row), 2);
    fl_tensor_fini(&row);
}

static void connects_while_others_ask_ahead(void)
{
    for (int i = 0; i < 50; i++) {
        test_job j;
        fl_pool *pool;
        fl_group group = {0};
        test_job_begin(&j, 1, 1, true);
        test_job_var(&j, 0, "rows", 4, 2, 5);
        fl_trainer *t = trainer(&j, 0);
        CHECK_OK(fl_pool_new("other", 1, &pool));
        fl_pool_submit(pool, &group, ask_often, t);
        receives(t, 0, "rows", 8, 5);
        CHECK_OK(fl_pool_wait(pool, &group, 300 * FL_SEC));
        leaves(t);
        fl_pool_free(pool);
        test_job_end(&j);
    }
}

/* A job whose messages carry few bytes. Element i of a variable starts as i. */
static fl_trainer *narrow_trainer(test_job *j, fl_piece *pieces, size_t most)
{
    test_server *s = &j->server[0];
    fl_placement place = j->place;
    fl_trainer *t;
    for (int i = 0; i < s->vars; i++) {
        test_var *v = &s->var[i];
        pieces[i] = (fl_piece){v->name, v->name, 0, 0, v->value.shape};
        for (int64_t k = 0; k < fl_tensor_numel(&v->value); k++)
            ((float *)v->value.data)[k] = (float)k;
    }
    place.n_pieces = s->vars;
    place.pieces = pieces;
    CHECK_OK(fl_trainer_new(&place, &(fl_job){.max_values = most}, &t));
    return t;
}

/* Receive a variable, and check that element i is i - less. */
static void receives_ramp(fl_trainer *t, const char *name, int64_t n,
                          float less)
{
    fl_tensor got = {0};
    CHECK_OK(fl_trainer_recv(t, NULL, 0, name, &got));
    CHECK_INT(got.shape.rank, 2);
    CHECK_INT(fl_tensor_numel(&got), n);
    for (int64_t i = 0; i < n; i++)
        CHECK_NEAR(((float *)got.data)[i], (float)i - less, 0);
    fl_tensor_fini(&got);
}

static void cuts_what_no_message_can_carry(void)
{
    enum {
        MOST = 80
    };
    const char *names[] = {"a", "b", "c"};
    const char *grads[] = {"a@GRAD", "b@GRAD", "c@GRAD"};
    test_job j;
    fl_piece pieces[TEST_VARS];
    test_job_begin(&j, 1, 1, false);
    for (int i = 0; i < 3; i++)
        test_job_var(&j, 0, names[i], 3, 3, 0); /* two fit into a message */
    test_job_var(&j, 0, "big", 41, 3, 0);
    fl_trainer *t = narrow_trainer(&j, pieces, MOST);
    receives_ramp(t, "big", 123, 0);
    for (int step = 1; step < 5; step++) {
        for (int i = 0; i < 3; i++)
            send(t, 0, grads[i], 3, 3, 1);
        CHECK_OK(fl_trainer_step(t, NULL));
        for (int i = 0; i < 3; i++)
            receives_ramp(t, names[i], 9, (float)step);
        receives_ramp(t, "big", 123, 0);
    }
    CHECK(j.server[0].largest <= MOST);
    leaves(t);
    test_job_end(&j);
}

static void asks_again_for_all_pieces_after_a_fence(void)
{
    test_job j;
    fl_piece pieces[TEST_VARS];
    test_job_begin(&j, 1, 1, false);
    test_job_var(&j, 0, "big", 41, 3, 0);
    fl_trainer *t = narrow_trainer(&j, pieces, 80);
    receives_ramp(t, "big", 123, 0);
    j.server[0].lose_at = j.server[0].pulls + 5; /* 13 pulls are needed */
    receives_ramp(t, "big", 123, -1000);
    leaves(t);
    test_job_end(&j);
}

static void cuts_rows_that_no_message_can_carry(void)
{
    enum {
        MOST = 80,
        ROWS = 7
    };
    test_job j;
    fl_piece pieces[TEST_VARS];
    fl_tensor got[2] = {{0}};
    const int64_t rows[ROWS] = {9, 0, 3, 3, 40, 7, 8}, last = 40;
    test_job_begin(&j, 1, 1, true);
    test_job_var(&j, 0, "table", 41, 3, 0);
    fl_trainer *t = narrow_trainer(&j, pieces, MOST);
    CHECK_OK(fl_trainer_lookup(t, NULL, 2,
                               (fl_lookup[]){{0, "table", ROWS, rows, &got[0]},
                                             {0, "table", 1, &last, &got[1]}}));
    CHECK_INT(fl_tensor_numel(&got[0]), ROWS * 3);
    for (int i = 0; i < ROWS * 3; i++)
        CHECK_NEAR(((float *)got[0].data)[i], (float)(rows[i / 3] * 3 + i % 3),
                   0);
    CHECK_NEAR(((float *)got[1].data)[2], 122, 0);
    fl_value g = {.kind = FL_SELECTED_ROWS};
    const fl_shape whole = {2, {41, 3}};
    CHECK_OK(fl_rows_resize(&g.rows, FL_F32, &whole, ROWS));
    memcpy(g.rows.index.data, rows, sizeof rows);
    for (int i = 0; i < ROWS * 3; i++)
        ((float *)g.rows.value.data)[i] = (float)i;
    CHECK_OK(fl_trainer_send(t, NULL, 0, "table@GRAD", &g));
    CHECK_OK(fl_trainer_lookup(t, NULL, 1,
                               &(fl_lookup){0, "table", ROWS, rows, &got[0]}));
    for (int i = 0; i < ROWS * 3; i++) {
        const int twice = i / 3 == 2 ? i + 3 : i / 3 == 3 ? i - 3 : 0;
        CHECK_NEAR(((float *)got[0].data)[i],
                   (float)(rows[i / 3] * 3 + i % 3 - i - twice), 0);
    }
    CHECK(j.server[0].largest <= MOST);
    fl_value_fini(&g);
    fl_tensor_fini(&got[0]);
    fl_tensor_fini(&got[1]);
    leaves(t);
    test_job_end(&j);
}

/* The other trainer of a job of two. */
typedef struct other {
    test_job *job;
    int steps;
} other;

static void run_other(void *self)
{
    other *o = self;
    fl_trainer *t = trainer(o->job, 1);
    for (int i = 0; i < o->steps; i++) {
        send(t, 0, "w@GRAD", 1, 2, 3);
        CHECK_OK(fl_trainer_step(t, NULL));
    }
    leaves(t);
}

static void meets_the_others(void)
{
    test_job j;
    fl_pool *pool;
    fl_group group = {0};
    test_job_begin(&j, 1, 2, false);
    test_job_var(&j, 0, "w", 1, 2, 8);
    CHECK_OK(fl_pool_new("other", 1, &pool));
    other o = {&j, 2};
    fl_pool_submit(pool, &group, run_other, &o);
    fl_trainer *t = trainer(&j, 0);
    for (int i = 1; i <= 2; i++) {
        send(t, 0, "w@GRAD", 1, 2, 1);
        CHECK_OK(fl_trainer_step(t, NULL));
        receives(t, 0, "w", 2, 8 - (float)i * 2);
    }
    CHECK_OK(fl_pool_wait(pool, &group, 300 * FL_SEC));
    send(t, 0, "w@GRAD", 1, 2, 1); /* the only participant: divided by 1 */
    CHECK_OK(fl_trainer_step(t, NULL));
    receives(t, 0, "w", 2, 3);
    leaves(t);
    fl_pool_free(pool);
    test_job_end(&j);
}

static void goes_on_after_a_fence(void)
{
    test_job j;
    test_job_begin(&j, 2, 1, false);
    test_job_var(&j, 0, "w", 1, 2, 9);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 2, 9);
    test_job_lose(&j);
    send(t, 0, "w@GRAD", 1, 2, 1);
    CHECK_OK(fl_trainer_step(t, NULL)); /* its gradient is dropped */
    receives(t, 0, "w", 2, 9);
    send(t, 0, "w@GRAD", 1, 2, 1);
    CHECK_OK(fl_trainer_step(t, NULL));
    receives(t, 0, "w", 2, 8);
    test_job_lose(&j);
    fl_tensor row = {0}; /* the lookup is repeated in the next session */
    CHECK_OK(fl_trainer_lookup(t, NULL, 1,
                               &(fl_lookup){0, "w", 1, (int64_t[]){0}, &row}));
    CHECK_NEAR(*(float *)row.data, 8, 0);
    fl_tensor_fini(&row);
    leaves(t);
    test_job_end(&j);
}

static void check_steps(fl_trainer *t, int64_t counted, int64_t dropped)
{
    int64_t c, d;
    fl_trainer_count_steps(t, &c, &d);
    CHECK_INT(c, counted);
    CHECK_INT(d, dropped);
}

/* The loss is noticed by a lookup between two steps, so that the next step only
 * waits for the new session. Its caller must learn that it was dropped. */
static void counts_a_step_that_lost_its_session_before_it(void)
{
    test_job j;
    fl_tensor row = {0};
    test_job_begin(&j, 1, 1, false);
    test_job_var(&j, 0, "w", 1, 2, 9);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 2, 9);
    CHECK_OK(fl_trainer_position(t, NULL, "first"));
    send(t, 0, "w@GRAD", 1, 2, 1);
    CHECK_OK(fl_trainer_step(t, NULL));
    check_steps(t, 1, 0);
    test_job_lose(&j);
    CHECK_OK(fl_trainer_lookup(t, NULL, 1,
                               &(fl_lookup){0, "w", 1, (int64_t[]){0}, &row}));
    check_steps(t, 1, 0); /* the session is lost, but no step with it yet */
    for (int i = 0; i < 2; i++) {
        CHECK_OK(fl_trainer_position(t, NULL, "second"));
        send(t, 0, "w@GRAD", 1, 2, 1);
        CHECK_OK(fl_trainer_step(t, NULL));
        check_steps(t, 1 + i, 1);
    }
    receives(t, 0, "w", 2, 7);
    fl_tensor_fini(&row);
    leaves(t);
    test_job_end(&j);
}

static void says_that_a_push_was_lost(void)
{
    test_job j;
    bool lost = false;
    test_job_begin(&j, 1, 1, true);
    test_job_var(&j, 0, "w", 1, 2, 9);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 2, 9);
    test_job_lose(&j);
    fl_value g = ones(1, 2, 1);
    const fl_gradient p = {0, "w@GRAD", &g};
    CHECK_OK(fl_trainer_push(t, NULL, 1, &p, &lost));
    CHECK(lost);
    lost = false;
    CHECK_OK(fl_trainer_push(t, NULL, 1, &p, &lost));
    CHECK(!lost);
    receives(t, 0, "w", 2, 8);
    fl_value_fini(&g);
    leaves(t);
    test_job_end(&j);
}

static int stop(void *user)
{
    return ++*(int *)user > 1;
}

static void is_interrupted_while_it_waits(void)
{
    test_job j;
    int asked = 0;
    int64_t waited = 0;
    fl_watch watch = {.clock = fl_clock_real(),
                      .poll = stop,
                      .user = &asked,
                      .waited = &waited};
    test_job_begin(&j, 1, 2, false);
    test_job_var(&j, 0, "w", 1, 2, 8);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 2, 8);
    /* It waits for trainer 1. */
    CHECK_ERR(fl_trainer_step(t, &watch), FL_EINTR, "interrupted");
    CHECK(waited >= 400 * FL_MS); /* two polls, 200 ms apart */
    CHECK_OK(fl_trainer_leave(t, NULL, 1, "interrupted", 300 * FL_SEC));
    fl_trainer_free(t);
    test_job_end(&j);
}

/* A thread that waits for a lookup while another one is interrupted. */
typedef struct waiter {
    fl_trainer *trainer;
    int asked;
} waiter;

static void come_and_give_up(fl_trainer *t)
{
    fl_tensor got = {0};
    int *asked = fl_mem_alloc(sizeof *asked);
    fl_watch *watch = fl_mem_alloc(sizeof *watch);
    *watch = (fl_watch){.clock = fl_clock_real(), .poll = stop, .user = asked};
    CHECK_ERR(fl_trainer_recv(t, watch, 0, "w", &got), FL_EINTR, "");
    CHECK_INT(*asked, 2);
    fl_mem_free(watch);
    fl_mem_free(asked);
}

static int stop_third(void *user)
{
    waiter *w = user;
    if (++w->asked == 1)
        come_and_give_up(w->trainer);
    return w->asked > 2;
}

static void asks_only_the_watch_of_who_waits(void)
{
    test_job j;
    test_job_begin(&j, 1, 2, false);
    test_job_var(&j, 0, "w", 1, 2, 8);
    waiter w = {.trainer = trainer(&j, 0)};
    const fl_watch watch = {
        .clock = fl_clock_real(), .poll = stop_third, .user = &w};
    receives(w.trainer, 0, "w", 2, 8);
    CHECK_ERR(fl_trainer_step(w.trainer, &watch), FL_EINTR, "interrupted");
    CHECK_INT(w.asked, 3);
    CHECK_OK(fl_trainer_leave(w.trainer, NULL, 1, "interrupted", 300 * FL_SEC));
    fl_trainer_free(w.trainer);
    test_job_end(&j);
}

/* Runs in a forked child: 0 if every function fails at once. */
static int try_as_a_child(fl_trainer *t)
{
    fl_value g = ones(1, 2, 1);
    fl_tensor got = {0};
    const int64_t row = 0;
    int64_t count = 1;
    int trainers;
    bool lost = false;
    const fl_gradient parting = {0, "w@GRAD", &g};
    const fl_lookup lookup = {0, "w", 1, &row, &got};
    const fl_err refused[] = {
        fl_trainer_send(t, NULL, 0, "w@GRAD", &g),
        fl_trainer_step(t, NULL),
        fl_trainer_flush(t, NULL),
        fl_trainer_recv(t, NULL, 0, "w", &got),
        fl_trainer_push(t, NULL, 1, &parting, &lost),
        fl_trainer_lookup(t, NULL, 1, &lookup),
        fl_trainer_tally(t, NULL, FL_SEC, "auc", 1, &count, &trainers),
    };
    const int n = (int)(sizeof refused / sizeof *refused);
    for (int i = 0; i < n; i++)
        if (refused[i] != FL_EINVAL)
            return i + 1;
    if (!strstr(fl_errmsg(), "was forked from the trainer"))
        return n + 1;
    return fl_trainer_leave(t, NULL, 0, NULL, 0) ? n + 2 : 0;
}

static void is_of_no_use_to_a_forked_child(void)
{
    test_job j;
    int status = -1;
    test_job_begin(&j, 1, 1, true);
    test_job_var(&j, 0, "w", 1, 2, 8);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 2, 8);
    const pid_t child = fork();
    if (!child) {
        alarm(20);
        const int failed = try_as_a_child(t);
        fl_trainer_free(t);
        _exit(failed);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    send(t, 0, "w@GRAD", 1, 2, 1);
    receives(t, 0, "w", 2, 7);
    leaves(t);
    test_job_end(&j);
}

static void says_when_the_programs_differ(void)
{
    test_job j;
    fl_trainer *t;
    test_job_begin(&j, 1, 1, false);
    fl_placement place = j.place;
    place.digest[0]++;
    CHECK_OK(fl_trainer_new(&place, NULL, &t));
    CHECK_ERR(fl_trainer_step(t, NULL), FL_EIO, "what servers do differs");
    CHECK_ERR(fl_trainer_step(t, NULL), FL_EIO, "what servers do differs");
    fl_trainer_free(t);
    test_job_end(&j);
}

static void says_what_a_server_refuses(void)
{
    test_job j;
    test_job_begin(&j, 1, 1, false);
    fl_trainer *t = trainer(&j, 0);
    send(t, 0, "x@GRAD", 1, 1, 1);
    CHECK_ERR(fl_trainer_step(t, NULL), FL_EIO,
              "no variable has the gradient \"x@GRAD\"");
    fl_trainer_free(t);
    test_job_end(&j);
}

/* Nothing that the trainer asks for needs the coordinator, but its lease does.
 */
static void notices_a_dead_coordinator(void)
{
    test_job j;
    fl_trainer *t;
    fl_tensor row = {0};
    const int64_t which = 0;
    fl_err err = FL_OK;
    test_job_begin(&j, 2, 1, true);
    test_job_var(&j, 1, "b", 1, 2, 3);
    CHECK_OK(fl_trainer_new(&j.place, &(fl_job){.gone = 100 * FL_MS}, &t));
    CHECK_OK(fl_trainer_step(t, NULL));
    fl_rpc_free(j.server[0].rpc);
    j.server[0].rpc = NULL;
    while (!err)
        err = fl_trainer_lookup(t, NULL, 1,
                                &(fl_lookup){1, "b", 1, &which, &row});
    CHECK_ERR(err, FL_EENDED, "has refused connections for");
    fl_tensor_fini(&row);
    fl_trainer_free(t);
    test_job_end(&j);
}

static void sends_no_more_when_it_has_left(void)
{
    test_job j;
    test_job_begin(&j, 1, 1, false);
    fl_trainer *t = trainer(&j, 0);
    CHECK_OK(fl_trainer_step(t, NULL));
    CHECK_OK(fl_trainer_leave(t, NULL, 0, NULL, 0));
    CHECK_OK(fl_trainer_leave(t, NULL, 0, NULL, 0));
    CHECK_ERR(fl_trainer_step(t, NULL), FL_EINVAL, "has left its job");
    CHECK_INT(test_job_done(&j), 1);
    fl_trainer_free(t);
    test_job_end(&j);
}

static void waits_for_servers_and_says_so(void)
{
    int asked = 0;
    fl_watch watch = {.clock = fl_clock_real(), .poll = stop, .user = &asked};
    const char *nobody = "127.0.0.1:1";
    fl_trainer *t;
    const fl_placement place = {
        .n_servers = 1, .servers = &nobody, .server = -1, .trainers = 1};
    CHECK_OK(fl_trainer_new(&place, NULL, &t));
    CHECK_ERR(fl_trainer_step(t, &watch), FL_EINTR, "");
    fl_trainer_free(t);
    CHECK_OK(fl_trainer_new(&place, &(fl_job){.start = 10 * FL_MS}, &t));
    CHECK_ERR(fl_trainer_step(t, NULL), FL_ETIMEOUT, nobody);
    CHECK_OK(fl_trainer_leave(t, NULL, 0, NULL, 0)); /* it has never joined */
    fl_trainer_free(t);
}

/* --- sums of counts --- */

static fl_err tally(fl_trainer *t, int64_t limit, int64_t *x, int *trainers)
{
    return fl_trainer_tally(t, NULL, limit, "auc", 2, x, trainers);
}

static void counts_with_the_others(void)
{
    test_job j;
    int n = 0;
    int64_t mine[] = {1, 2}, theirs[] = {10, 20}, wrong[3] = {0};
    test_job_begin(&j, 2, 2, true);
    test_job_var(&j, 0, "w", 1, 2, 8);
    fl_trainer *t = trainer(&j, 0), *u = trainer(&j, 1);
    CHECK_ERR(tally(t, FL_SEC, mine, &n), FL_EIO, "is not connected");
    receives(t, 0, "w", 2, 8);
    receives(u, 0, "w", 2, 8);
    CHECK_OK(tally(t, 300 * FL_SEC, mine, &n));
    CHECK(n == 1 && mine[0] == 1 && mine[1] == 2);
    CHECK_OK(tally(u, 300 * FL_SEC, theirs, &n));
    CHECK(n == 2 && theirs[0] == 11 && theirs[1] == 22);
    CHECK_ERR(fl_trainer_tally(u, NULL, 300 * FL_SEC, "auc", 3, wrong, &n),
              FL_EPROTO, "answers ERROR: tally: \"auc\" is [3], another");
    CHECK_ERR(fl_trainer_tally(u, NULL, FL_SEC, "auc", 1 << 20, wrong, &n),
              FL_EINVAL, "1048576 counts, expected 1 to 131072");
    receives(u, 0, "w", 2, 8); /* the failed tally had no effect */
    leaves(u);
    mine[0] = 5;
    CHECK_OK(tally(t, 300 * FL_SEC, mine,
                   &n)); /* a trainer that left still counts */
    CHECK(n == 2 && mine[0] == 15);
    leaves(t);
    test_job_end(&j);
}

/* A tally that times out leaves the counts as they are. Training goes on. */
static void counts_alone_where_nobody_answers(void)
{
    test_job j;
    int n = 0;
    int64_t x[] = {1, 2};
    test_job_begin(&j, 1, 1, true);
    test_job_var(&j, 0, "w", 1, 2, 8);
    fl_trainer *t = trainer(&j, 0);
    receives(t, 0, "w", 2, 8);
    pthread_mutex_lock(&j.lock);
    CHECK_ERR(tally(t, 100 * FL_MS, x, &n), FL_ETIMEOUT, "");
    pthread_mutex_unlock(&j.lock);
    receives(t, 0, "w", 2, 8);
    CHECK(x[0] == 1 && !n);
    test_job_lose(&j);
    receives(t, 0, "w", 2, 8);
    fl_err err;
    do /* the earlier call may not have ended */
        err = tally(t, 300 * FL_SEC, x, &n);
    while (err == FL_ETIMEOUT);
    CHECK_OK(err);
    CHECK(x[0] == 1 && n == 1);
    leaves(t);
    test_job_end(&j);
}

const fl_test fl_tests[] = {
    {"a trainer takes steps", takes_steps},
    {"a trainer learns what to pull", learns_what_to_pull},
    {"a trainer cuts large gradients", cuts_large_gradients},
    {"a trainer cuts what no message can carry",
     cuts_what_no_message_can_carry},
    {"a trainer asks again for all pieces after a fence",
     asks_again_for_all_pieces_after_a_fence},
    {"a trainer cuts rows that no message can carry",
     cuts_rows_that_no_message_can_carry},
    {"a trainer sends rows, and not nothing", sends_rows_and_not_nothing},
    {"a trainer looks rows up on all servers", looks_rows_up},
    {"a trainer asks for rows ahead of their use", asks_ahead_of_the_use},
    {"in sync mode, rows come with the values of the step before",
     rows_come_with_the_step},
    {"a trainer does not ask ahead if it is told not to",
     asks_ahead_only_if_it_may},
    {"a trainer steps by itself in async mode", steps_by_itself_in_async_mode},
    {"a trainer pushes while others look rows up",
     pushes_while_others_look_rows_up},
    {"a trainer connects while others ask ahead",
     connects_while_others_ask_ahead},
    {"a trainer meets the others", meets_the_others},
    {"a trainer goes on after a fence", goes_on_after_a_fence},
    {"a trainer counts a step that lost its session before it",
     counts_a_step_that_lost_its_session_before_it},
    {"a trainer says that a push was lost", says_that_a_push_was_lost},
    {"a trainer is interrupted while it waits", is_interrupted_while_it_waits},
    {"a trainer asks only the watch of who waits",
     asks_only_the_watch_of_who_waits},
    {"a trainer is of no use to a forked child",
     is_of_no_use_to_a_forked_child},
    {"a trainer says when the programs differ", says_when_the_programs_differ},
    {"a trainer says what a server refuses", says_what_a_server_refuses},
    {"a trainer notices that the coordinator is dead",
     notices_a_dead_coordinator},
    {"a trainer sends no more when it has left",
     sends_no_more_when_it_has_left},
    {"a trainer waits for servers and says so", waits_for_servers_and_says_so},
    {"a trainer counts with the others", counts_with_the_others},
    {"a trainer counts alone where nobody answers",
     counts_alone_where_nobody_answers},
    {0},
};
