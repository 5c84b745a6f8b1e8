/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/test_placement.h"
#include "trainer/communicator.h"

#include "base/atomic.h"
#include "exec/test_exec.h"
#include "trainer/service.h"
#include "trainer/test_job.h"

#include <stdlib.h>

/* A job of one trainer, whose program sends "w@GRAD" in two pieces and rows of
 * "t@GRAD", and receives w. */
typedef struct scene {
    test_job job;
    fl_program *program;
    fl_trainer *trainer;
    fl_communicator *c;
} scene;

enum {
    ROWS = 6,
    WIDTH = 2
};

static fl_program *read_program(const test_job *j, bool half)
{
    fl_program *p;
    fl_str t = {0};
    fl_str_printf(
        &t,
        "block 0\n"
        "  data w@GRAD: f32[4,2]\n"
        "  data t@GRAD: f32[6,2]\n"
        "  param w: f32[4,2]\n"
        "  var k: f32[1]\n"
        "  send(X=w@GRAD) -> Out=k {epmap=[\"%s\", \"%s\"], sections=[3l, 1l], "
        "send_varnames=[\"w.block0@GRAD\", \"w.block1@GRAD\"]}\n"
        "  send(X=t@GRAD) -> Out=k {epmap=[\"%s\"]}\n"
        "  recv(X=k) -> Out=w {epmap=[\"%s\", \"%s\"], "
        "recv_varnames=[\"w.block0\", \"w.block1\"]}\n",
        j->address[0], j->address[1], j->address[1], j->address[0],
        j->address[1]);
    CHECK_OK(fl_program_parse(fl_check_registry(), t.at, &p));
    fl_placement place = j->place;
    place.half_async = half;
    test_place(p, &place);
    fl_str_fini(&t);
    return p;
}

static void set(const char *flag, const char *value)
{
    char name[64];
    snprintf(name, sizeof name, "FLAGS_communicator_%s", flag);
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void start(scene *s)
{
    CHECK_OK(fl_communicator_new(s->trainer, s->program, &s->c));
}

/* The communicator pushes when a push is full or a flush asks for it, never
 * because time has passed. */
static void open_scene(scene *s, bool half)
{
    set("send_wait_times", "1000000");
    test_job_begin(&s->job, 2, 1, true);
    test_job_var(&s->job, 0, "w.block0", 3, 2, 0);
    test_job_var(&s->job, 1, "w.block1", 1, 2, 0);
    test_job_var(&s->job, 1, "t", ROWS, WIDTH, 0);
    s->program = read_program(&s->job, half);
    CHECK_OK(fl_trainer_new(&s->job.place, NULL, &s->trainer));
    start(s);
}

static void close_scene(scene *s)
{
    fl_communicator_free(s->c);
    CHECK_OK(fl_trainer_leave(s->trainer, NULL, 0, NULL, 0));
    fl_trainer_free(s->trainer);
    fl_program_free(s->program);
    test_job_end(&s->job);
}

/* Element `at` of a variable of a server. */
static float element(scene *s, int server, const char *name, int at)
{
    pthread_mutex_lock(&s->job.lock);
    const test_var *v = test_find(&s->job.server[server], name, strlen(name));
    const float x = ((const float *)v->value.data)[at];
    pthread_mutex_unlock(&s->job.lock);
    return x;
}

static fl_err put_dense(scene *s, float x, const fl_watch *by)
{
    float g[8];
    for (int i = 0; i < 8; i++)
        g[i] = x;
    const fl_shape shape = {2, {4, 2}};
    const fl_value v = {.kind = FL_LOD_TENSOR,
                        .tensor = fl_tensor_view(FL_F32, &shape, g)};
    return fl_communicator_put(s->c, "w@GRAD", &v, by);
}

static fl_err put_rows(scene *s, int64_t row, float x)
{
    int64_t index[] = {row, 2, row};
    float g[] = {x, x, 1, 1, x, x};
    const fl_shape list = {1, {3}}, shape = {2, {3, WIDTH}};
    const fl_value v = {.kind = FL_SELECTED_ROWS,
                        .rows = {.height = ROWS,
                                 .n = 3,
                                 .index = fl_tensor_view(FL_I64, &list, index),
                                 .value = fl_tensor_view(FL_F32, &shape, g)}};
    return fl_communicator_put(s->c, "t@GRAD", &v, NULL);
}

static void everything_arrives_once(void)
{
    scene s;
    open_scene(&s, false);
    for (int i = 0; i < 45; i++) {
        CHECK_OK(put_dense(&s, 1, NULL));
        CHECK_OK(put_rows(&s, i % 2 ? 4 : 5, 0.5f));
    }
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 5), -45, 0);
    CHECK_NEAR(element(&s, 1, "w.block1", 1), -45, 0);
    CHECK_NEAR(element(&s, 1, "t", 2 * WIDTH), -45, 0);
    CHECK_NEAR(element(&s, 1, "t", 4 * WIDTH), -22, 0);
    CHECK_NEAR(element(&s, 1, "t", 5 * WIDTH), -23, 0);
    CHECK_NEAR(element(&s, 1, "t", 0), 0, 0);
    const fl_communicator_stats done = fl_communicator_get_stats(s.c);
    CHECK(done.pushes >= 3 && done.pushes < 45);
    CHECK(done.batches >= 45); /* a batch that two pushes share counts twice */
    CHECK(done.pulls >= 1 && !done.lost);
    close_scene(&s);
}

/* Writes 3 into the first sum and adds 3 to others. */
static void make_threes(const void *self, bool first, void *sum)
{
    float *x = sum;
    for (int i = 0; i < 8; i++)
        x[i] = first ? 3 : x[i] + 3;
    ++*(int *)self;
}

static void gradients_are_made_in_the_sum(void)
{
    scene s;
    int made = 0;
    const fl_shape shape = {2, {4, 2}}, other = {2, {2, 4}};
    fl_addend x = {FL_F32, &shape, make_threes, &made};
    open_scene(&s, false);
    CHECK_OK(fl_communicator_make(s.c, "w@GRAD", &x, NULL));
    CHECK_OK(put_dense(&s, 1, NULL));
    CHECK_OK(fl_communicator_make(s.c, "w@GRAD", &x, NULL));
    x.shape = &other;
    CHECK_ERR(fl_communicator_make(s.c, "w@GRAD", &x, NULL), FL_ESHAPE,
              "communicator: gradient \"w@GRAD\" has another shape than the "
              "one before");
    CHECK_INT(made, 2);
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 5), -7, 0);
    CHECK_NEAR(element(&s, 1, "w.block1", 1), -7, 0);
    close_scene(&s);
}

/* A pulled parameter is copied into the same memory, and only when it is new.
 */
static void parameters_come_back_in_place(void)
{
    scene s;
    fl_scope *scope = fl_scope_new();
    float own[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    const fl_shape shape = {2, {4, 2}}, other = {2, {2, 2}};
    fl_tensor w = fl_tensor_view(FL_F32, &shape, own);
    fl_tensor wrong = fl_tensor_view(FL_F32, &other, own);
    open_scene(&s, false);
    CHECK_OK(fl_communicator_take(s.c, "w", &w));
    CHECK_NEAR(own[0], 9, 0); /* nothing was pulled yet */
    CHECK_OK(put_dense(&s, 2, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_OK(fl_communicator_take(s.c, "w", &w));
    CHECK(own[0] == -2 && own[7] == -2);
    own[0] = 5;
    CHECK_OK(fl_communicator_take(s.c, "w", &w));
    CHECK_NEAR(own[0], 5, 0); /* this pull was copied before */
    CHECK_ERR(fl_communicator_take(s.c, "w.block0", &w), FL_ENOENT,
              "\"w.block0\" is not a parameter of the program that it was");
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_ERR(fl_communicator_take(s.c, "w", &wrong), FL_ESHAPE,
              "\"w\" came with another shape");
    CHECK_OK(fl_scope_set(scope, "w", &w));
    CHECK_OK(fl_communicator_fill(s.c, scope));
    fl_tensor got = {0};
    CHECK_OK(fl_scope_get(scope, "w", &got));
    CHECK_NEAR(((float *)got.data)[0], -2, 0);
    fl_tensor_fini(&got);
    fl_scope_free(scope);
    close_scene(&s);
}

static void it_pulls_by_itself(void)
{
    scene s;
    set("independent_recv_thread", "0");
    set("min_send_grad_num_before_recv", "2");
    open_scene(&s, false);
    set("independent_recv_thread", NULL);
    set("min_send_grad_num_before_recv", NULL);
    fl_communicator_stats done;
    do {
        CHECK_OK(put_dense(&s, 1, NULL));
        done = fl_communicator_get_stats(s.c);
    } while (done.pulls < 2);
    CHECK(done.batches >= 4);
    close_scene(&s);
}

static int stop(void *user)
{
    return ++*(int *)user > 1;
}

/* With slow servers, a worker is never further ahead than the flag allows. */
static void a_worker_waits_for_room(void)
{
    scene s;
    int asked = 0, n = 0;
    int64_t waited = 0;
    fl_watch watch = {.clock = fl_clock_real(),
                      .poll = stop,
                      .user = &asked,
                      .waited = &waited};
    set("send_queue_size", "3");
    open_scene(&s, false);
    set("send_queue_size", NULL);
    CHECK_OK(put_dense(&s, 1, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL)); /* joins the job */
    pthread_mutex_lock(&s.job.lock);
    while (!put_dense(&s, 1, &watch))
        CHECK(++n <= 6);
    pthread_mutex_unlock(&s.job.lock);
    CHECK(strstr(fl_errmsg(), "wait for the communicator was interrupted"));
    CHECK(n >= 3 && asked == 2);
    CHECK(waited >= 300 * FL_MS); /* two polls, 200 ms apart */
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 1, "w.block1", 0), (float)(-1 - n), 0);
    close_scene(&s);
}

static void put_often(void *self)
{
    scene *s = self;
    for (int i = 0; i < 100; i++) {
        CHECK_OK(put_dense(s, 1, NULL));
        CHECK_OK(put_rows(s, 0, 1));
    }
}

static void workers_hand_over_together(void)
{
    scene s;
    fl_pool *pool;
    fl_group group = {0};
    open_scene(&s, false);
    CHECK_OK(fl_pool_new("worker", 2, &pool));
    for (int i = 0; i < 2; i++)
        fl_pool_submit(pool, &group, put_often, &s);
    CHECK_OK(fl_pool_wait(pool, &group, 300 * FL_SEC));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 0), -200, 0);
    CHECK_NEAR(element(&s, 1, "t", 0), -400, 0);
    CHECK_NEAR(element(&s, 1, "t", 2 * WIDTH), -200, 0);
    fl_pool_free(pool);
    close_scene(&s);
}

/* Two workers that hand over a gradient each at the same time, and a thread
 * that makes them wait for the communicator's lock. */
typedef struct rush {
    scene *s;
    fl_count ended;
} rush;

static void keep_asking(void *self)
{
    rush *r = self;
    while (fl_count_get(&r->ended) < 2)
        (void)fl_communicator_get_stats(r->s->c);
}

/* The sender may be slow while the lock is taken all the time: a worker sees
 * only then that nothing will be sent if it has waited for long. */
static void put_in_turns(void *self)
{
    rush *r = self;
    const struct timespec some = {.tv_nsec = 20000};
    for (int64_t i = 1; i <= 300; i++) {
        const int64_t until = fl_clock_now(fl_clock_real()) + 60 * FL_SEC;
        CHECK_OK(put_dense(r->s, 1, NULL));
        while (fl_communicator_get_stats(r->s->c).batches < 2 * i) {
            CHECK(fl_clock_now(fl_clock_real()) < until);
            nanosleep(&some, NULL);
        }
    }
    fl_count_up(&r->ended);
}

static void no_gradient_waits_for_ever(void)
{
    scene s;
    rush r = {.s = &s};
    fl_pool *pool;
    fl_group group = {0};
    fl_count_init(&r.ended, 0);
    open_scene(&s, false);
    fl_communicator_free(s.c);
    set("send_wait_times", "0");
    set("fake_rpc", "1");
    start(&s);
    set("fake_rpc", NULL);
    CHECK_OK(fl_pool_new("worker", 3, &pool));
    fl_pool_submit(pool, &group, keep_asking, &r);
    for (int i = 0; i < 2; i++)
        fl_pool_submit(pool, &group, put_in_turns, &r);
    CHECK_OK(fl_pool_wait(pool, &group, 300 * FL_SEC));
    fl_pool_free(pool);
    close_scene(&s);
}

static void a_lost_session_loses_what_travels(void)
{
    scene s;
    open_scene(&s, false);
    CHECK_OK(put_dense(&s, 1, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    test_job_lose(&s.job);
    CHECK_OK(put_dense(&s, 8, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_OK(put_dense(&s, 1, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_INT(fl_communicator_get_stats(s.c).lost, 1);
    CHECK_INT(fl_communicator_get_stats(s.c).batches, 2);
    CHECK_NEAR(element(&s, 1, "w.block1", 0), -2, 0);
    close_scene(&s);
}

static void its_failure_is_everybodys(void)
{
    scene s;
    open_scene(&s, false);
    s.job.server[1].vars = 0; /* server 1 refuses every gradient */
    CHECK_OK(put_dense(&s, 1, NULL));
    CHECK_ERR(fl_communicator_flush(s.c, NULL), FL_EIO,
              "no variable has the gradient \"w.block1@GRAD\"");
    CHECK_ERR(put_dense(&s, 1, NULL), FL_EIO, "no variable has the gradient");
    CHECK_ERR(fl_communicator_flush(s.c, NULL), FL_EIO, "no variable has");
    s.job.server[1].vars = 2;
    fl_communicator_free(s.c);
    fl_trainer_free(s.trainer);
    fl_program_free(s.program);
    test_job_end(&s.job);
}

static void it_may_end_in_the_middle(void)
{
    scene s;
    open_scene(&s, false);
    CHECK_OK(put_dense(&s, 1, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    pthread_mutex_lock(&s.job.lock); /* servers do not answer */
    CHECK_OK(put_dense(&s, 1, NULL));
    fl_communicator_free(s.c);
    pthread_mutex_unlock(&s.job.lock);
    start(&s);
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    close_scene(&s);
}

/* --- groups --- */

/* Groups are sent at once, and single batches never, whatever time passes. */
static void open_groups(scene *s)
{
    open_scene(s, false);
    fl_communicator_free(s->c);
    set("send_wait_times", "0");
    set("max_merge_var_num", "2");
    start(s);
    set("max_merge_var_num", NULL);
    CHECK_INT(fl_communicator_group(s->c), 2);
    CHECK_OK(put_dense(s, 1, NULL));
    CHECK_OK(fl_communicator_begin_groups(s->c, NULL));
    CHECK_NEAR(element(s, 0, "w.block0", 0), -1, 0); /* of no group */
}

static void check_counted(const scene *s, int64_t steps)
{
    int64_t counted, dropped;
    fl_trainer_count_steps(s->trainer, &counted, &dropped);
    CHECK_INT(counted, steps);
}

/* The position that the coordinator told when the session began. */
static void check_granted(const scene *s, const char *position)
{
    int64_t pass;
    fl_str text = {0};
    CHECK_OK(fl_trainer_begin_pass(s->trainer, NULL, &pass, &text));
    CHECK(!strcmp(text.at ? text.at : "", position));
    fl_str_fini(&text);
}

static void a_group_is_sent_when_it_is_complete(void)
{
    scene s;
    open_groups(&s);
    const int64_t pushes = fl_communicator_get_stats(s.c).pushes;
    for (int i = 0; i < 5; i++) /* more than the flag says */
        CHECK_OK(put_dense(&s, 10, NULL));
    CHECK_OK(put_rows(&s, 4, 1));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 0), -1, 0);
    CHECK_OK(fl_communicator_end_group(s.c, "first", NULL));
    CHECK_OK(put_dense(&s, 100, NULL)); /* of the next group */
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 0), -51, 0);
    CHECK_NEAR(element(&s, 1, "w.block1", 0), -51, 0);
    CHECK_NEAR(element(&s, 1, "t", 4 * WIDTH), -2, 0);
    CHECK_INT(fl_communicator_get_stats(s.c).pushes, pushes + 1);
    check_counted(&s, 1);
    CHECK_OK(fl_communicator_end_group(s.c, "second", NULL));
    CHECK_OK(fl_communicator_end_group(s.c, "empty", NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 0), -151, 0);
    check_counted(&s, 3);
    fl_communicator_end_groups(s.c);
    close_scene(&s);
}

static void a_batch_waits_for_the_group_before_it(void)
{
    scene s;
    int asked = 0;
    fl_watch watch = {.clock = fl_clock_real(), .poll = stop, .user = &asked};
    open_groups(&s);
    pthread_mutex_lock(&s.job.lock); /* servers do not answer */
    for (int i = 0; i < 2; i++) {    /* one is sent, one waits */
        CHECK_OK(put_rows(&s, 4, 1));
        CHECK_OK(fl_communicator_end_group(s.c, "position", NULL));
    }
    CHECK_ERR(put_dense(&s, 10, &watch), FL_EINTR, "interrupted");
    asked = 0;
    CHECK_ERR(fl_communicator_end_group(s.c, "third", &watch), FL_EINTR,
              "interrupted");
    pthread_mutex_unlock(&s.job.lock);
    CHECK_OK(put_dense(&s, 10, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 0), -1, 0);
    CHECK_NEAR(element(&s, 1, "t", 4 * WIDTH), -4, 0);
    check_counted(&s, 2);
    fl_communicator_end_groups(s.c);
    CHECK_OK(put_dense(&s, 100, NULL));
    CHECK_OK(fl_communicator_flush(s.c, NULL));
    CHECK_NEAR(element(&s, 0, "w.block0", 0), -101, 0); /* 10 is dropped */
    close_scene(&s);
}

/* A session is lost before a group is pushed, and after one was applied. */
static void a_group_is_applied_once(void)
{
    for (int server = -1; server < 2; server++) {
        scene s;
        open_groups(&s);
        CHECK_OK(put_dense(&s, 10, NULL));
        CHECK_OK(fl_communicator_end_group(s.c, "first", NULL));
        CHECK_OK(fl_communicator_flush(s.c, NULL));
        if (server < 0)
            test_job_lose(&s.job);
        else
            s.job.server[server].lose_at_push = s.job.server[server].pushes + 1;
        CHECK_OK(put_dense(&s, 100, NULL));
        CHECK_OK(put_rows(&s, 4, 1));
        CHECK_OK(fl_communicator_end_group(s.c, "second", NULL));
        CHECK_OK(fl_communicator_flush(s.c, NULL));
        CHECK_NEAR(element(&s, 0, "w.block0", 0), -111, 0);
        CHECK_NEAR(element(&s, 1, "w.block1", 0), -111, 0);
        CHECK_NEAR(element(&s, 1, "t", 4 * WIDTH), -2, 0);
        CHECK_INT(fl_communicator_get_stats(s.c).lost, 0);
        check_counted(&s, 2);
        check_granted(&s, "first");
        fl_communicator_end_groups(s.c);
        close_scene(&s);
    }
}

/* --- half asynchronous --- */

static void step_half(void *self)
{
    scene *s = self;
    for (int i = 1; i <= 20; i++) {
        float own[8] = {0};
        const fl_shape shape = {2, {4, 2}};
        fl_tensor w = fl_tensor_view(FL_F32, &shape, own);
        CHECK_OK(put_dense(s, 1, NULL));
        CHECK_OK(fl_communicator_barrier(s->c, NULL));
        CHECK_OK(fl_communicator_take(s->c, "w", &w));
        CHECK_NEAR(own[7], (float)(-2 * i), 0); /* gradients of both threads */
    }
    fl_communicator_add_workers(s->c, -1);
}

static void threads_meet_after_every_batch(void)
{
    scene s;
    fl_pool *pool;
    fl_group group = {0};
    open_scene(&s, true);
    fl_communicator_add_workers(s.c, 2);
    CHECK_OK(fl_pool_new("worker", 2, &pool));
    for (int i = 0; i < 2; i++)
        fl_pool_submit(pool, &group, step_half, &s);
    CHECK_OK(fl_pool_wait(pool, &group, 300 * FL_SEC));
    CHECK_OK(
        put_dense(&s, 1, NULL)); /* with no other worker it does not wait */
    CHECK_OK(fl_communicator_barrier(s.c, NULL));
    CHECK_INT(fl_communicator_get_stats(s.c).pushes, 21);
    CHECK_INT(fl_communicator_get_stats(s.c).batches, 41);
    fl_pool_free(pool);
    close_scene(&s);
}

static void who_meets_nobody_is_interrupted(void)
{
    scene s;
    int asked = 0;
    fl_watch watch = {.clock = fl_clock_real(), .poll = stop, .user = &asked};
    open_scene(&s, true);
    fl_communicator_add_workers(s.c, 2);
    CHECK_ERR(fl_communicator_barrier(s.c, &watch), FL_EINTR, "interrupted");
    fl_communicator_add_workers(s.c, -1); /* the other worker has ended */
    CHECK_OK(fl_communicator_barrier(s.c, NULL));
    close_scene(&s);
}

/* --- refusals --- */

static void it_says_what_it_cannot_do(void)
{
    scene s;
    fl_communicator *c;
    fl_value g = {.kind = FL_LOD_TENSOR}, none = {0};
    const fl_shape shape = {2, {4, 1}};
    open_scene(&s, false);
    CHECK_OK(fl_tensor_resize(&g.tensor, FL_F32, &shape));
    CHECK_ERR(fl_communicator_put(s.c, "w@GARD", &g, NULL), FL_ENOENT,
              "\"w@GARD\" is not a gradient of the program that it was started "
              "with; the nearest is \"w@GRAD\"");
    CHECK_OK(fl_communicator_put(s.c, "w@GRAD", &none, NULL));
    pthread_mutex_lock(&s.job.lock);
    CHECK_OK(put_dense(&s, 1, NULL));
    CHECK_ERR(fl_communicator_put(s.c, "w@GRAD", &g, NULL), FL_ESHAPE,
              "\"w@GRAD\" has another shape than the one before");
    pthread_mutex_unlock(&s.job.lock);
    set("send_queue_size", "many");
    CHECK_ERR(fl_communicator_new(s.trainer, s.program, &c), FL_EINVAL,
              "FLAGS_communicator_send_queue_size");
    set("send_queue_size", NULL);
    fl_placement place = s.job.place;
    place.async = false;
    test_place(s.program, &place);
    CHECK_ERR(fl_communicator_new(s.trainer, s.program, &c), FL_EINVAL,
              "meet after every step");
    fl_program_set_job(s.program, NULL);
    CHECK_ERR(fl_communicator_new(s.trainer, s.program, &c), FL_EINVAL,
              "not a trainer's part of a job");
    fl_value_fini(&g);
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"gradients are made in the sum", gradients_are_made_in_the_sum},
    {"everything that is handed over arrives once", everything_arrives_once},
    {"parameters come back in place", parameters_come_back_in_place},
    {"a communicator pulls by itself", it_pulls_by_itself},
    {"a worker waits for room", a_worker_waits_for_room},
    {"workers hand over together", workers_hand_over_together},
    {"no gradient that was handed over waits for ever",
     no_gradient_waits_for_ever},
    {"a lost session loses what travels", a_lost_session_loses_what_travels},
    {"a communicator's failure is everybody's", its_failure_is_everybodys},
    {"a communicator may end in the middle", it_may_end_in_the_middle},
    {"a group is sent when it is complete",
     a_group_is_sent_when_it_is_complete},
    {"a batch waits for the group before it",
     a_batch_waits_for_the_group_before_it},
    {"a group is applied once", a_group_is_applied_once},
    {"threads meet after every batch", threads_meet_after_every_batch},
    {"who meets nobody is interrupted", who_meets_nobody_is_interrupted},
    {"a communicator says what it cannot do", it_says_what_it_cannot_do},
    {0},
};
