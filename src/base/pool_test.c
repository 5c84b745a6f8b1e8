/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include "base/atomic.h"
#include "base/mem.h"
#include "base/test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void count_up(void *arg)
{
    fl_count_up(arg);
}

static void every_task_runs_once(void)
{
    fl_pool *p;
    fl_group g = {0};
    fl_count n;
    fl_count_init(&n, 0);
    CHECK_OK(fl_pool_new("test", 3, &p));
    CHECK_INT(fl_pool_size(p), 3);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 50; i++)
            fl_pool_submit(p, &g, count_up, &n);
        CHECK_OK(fl_pool_wait(p, &g, -1));
        CHECK_INT(fl_count_get(&n), 50 * (round + 1));
    }
    fl_pool_free(p);
}

typedef struct order {
    int n, seen[100];
} order;

typedef struct item {
    order *o;
    int i;
} item;

static void note(void *arg)
{
    item *it = arg;
    it->o->seen[it->o->n++] = it->i;
}

static void one_thread_keeps_the_order(void)
{
    fl_pool *p;
    fl_group g = {0};
    order o = {0};
    item it[100];
    CHECK_OK(fl_pool_new("test", 1, &p));
    for (int i = 0; i < 100; i++) {
        it[i] = (item){&o, i};
        fl_pool_submit(p, &g, note, &it[i]);
    }
    CHECK_OK(fl_pool_wait(p, &g, -1));
    for (int i = 0; i < 100; i++)
        CHECK_INT(o.seen[i], i);
    fl_pool_free(p);
}

static void free_does_what_was_submitted(void)
{
    fl_pool *p;
    fl_group g = {0};
    fl_count n;
    fl_count_init(&n, 0);
    CHECK_OK(fl_pool_new("test", 2, &p));
    for (int i = 0; i < 1000; i++)
        fl_pool_submit(p, &g, count_up, &n);
    fl_pool_free(p);
    CHECK_INT(fl_count_get(&n), 1000);
    fl_pool_free(NULL);
}

static void wait_for_byte(void *arg)
{
    char c;
    if (read(*(int *)arg, &c, 1) != 1)
        *(int *)arg = -1;
}

static void groups_are_waited_for_apart(void)
{
    fl_pool *p;
    fl_group slow = {0}, fast = {0};
    fl_count n;
    int pipe_[2];
    fl_count_init(&n, 0);
    CHECK(!pipe(pipe_));
    int from = pipe_[0];
    CHECK_OK(fl_pool_new("test", 2, &p));
    fl_pool_submit(p, &slow, wait_for_byte, &from);
    fl_pool_submit(p, &fast, count_up, &n);
    CHECK_OK(fl_pool_wait(p, &fast, -1));
    CHECK_ERR(fl_pool_wait(p, &slow, 1000000), FL_ETIMEOUT,
              "pool test: 1 tasks are not done in 0.001 s");
    CHECK_INT(write(pipe_[1], "x", 1), 1);
    CHECK_OK(fl_pool_wait(p, &slow, -1));
    CHECK_INT(from, pipe_[0]);
    fl_pool_free(p);
    close(pipe_[0]);
    close(pipe_[1]);
}

typedef struct tree {
    fl_pool *pool;
    fl_group *group;
    fl_count n;
} tree;

static void leaf(void *arg)
{
    fl_count_up(&((tree *)arg)->n);
}

static void branch(void *arg)
{
    tree *t = arg;
    for (int i = 0; i < 10; i++)
        fl_pool_submit(t->pool, t->group, leaf, t);
}

static void tasks_may_submit_tasks(void)
{
    fl_group g = {0};
    tree t = {.group = &g};
    fl_count_init(&t.n, 0);
    CHECK_OK(fl_pool_new("test", 2, &t.pool));
    for (int i = 0; i < 10; i++)
        fl_pool_submit(t.pool, &g, branch, &t);
    CHECK_OK(fl_pool_wait(t.pool, &g, -1));
    CHECK_INT(fl_count_get(&t.n), 100);
    fl_pool_free(t.pool);
}

typedef struct look {
    char name[16];
    bool blocked;
} look;

static void look_around(void *arg)
{
    look *l = arg;
    sigset_t mask;
    pthread_getname_np(pthread_self(), l->name, sizeof l->name);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    l->blocked = sigismember(&mask, SIGINT);
}

static void threads_are_named_and_take_no_signals(void)
{
    fl_pool *p;
    fl_group g = {0};
    look l = {0};
    sigset_t mask;
    CHECK_OK(fl_pool_new("trainer", 1, &p));
    fl_pool_submit(p, &g, look_around, &l);
    CHECK_OK(fl_pool_wait(p, &g, -1));
    fl_pool_free(p);
    CHECK_STR(l.name, "trainer-0");
    CHECK(l.blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CHECK(!sigismember(&mask, SIGINT));
}

static void submitting_stops_allocating(void)
{
    fl_pool *p;
    fl_group g = {0};
    fl_count n;
    fl_count_init(&n, 0);
    CHECK_OK(fl_pool_new("test", 1, &p));
    for (int round = 0; round < 3; round++) {
        uint64_t before = fl_mem_count();
        for (int i = 0; i < 8; i++) /* the smallest vector holds them */
            fl_pool_submit(p, &g, count_up, &n);
        CHECK_OK(fl_pool_wait(p, &g, -1));
        if (round)
            CHECK_INT((int64_t)(fl_mem_count() - before), 0);
    }
    fl_pool_free(p);
}

static void no_threads_is_an_error(void)
{
    fl_pool *p;
    CHECK_ERR(fl_pool_new("x", 0, &p), FL_EINVAL, "pool x: 0 threads");
}

static void a_forked_process_has_no_threads(void)
{
    fl_pool *p;
    int status = -1;
    CHECK_OK(fl_pool_new("test", 2, &p));
    const pid_t child = fork();
    if (!child) {
        alarm(20);
        const int n = fl_pool_size(p);
        fl_pool_free(p); /* there is nobody to wait for */
        _exit(n);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK_INT(fl_pool_size(p), 2);
    fl_pool_free(p);
}

const fl_test fl_tests[] = {
    {"pool runs every task once", every_task_runs_once},
    {"pool of one thread keeps the order", one_thread_keeps_the_order},
    {"pool does what was submitted before it ends",
     free_does_what_was_submitted},
    {"pool groups are waited for apart", groups_are_waited_for_apart},
    {"pool tasks may submit tasks", tasks_may_submit_tasks},
    {"pool threads are named and take no signals",
     threads_are_named_and_take_no_signals},
    {"pool submitting stops allocating", submitting_stops_allocating},
    {"pool has no threads in a forked process",
     a_forked_process_has_no_threads},
    {"pool of no threads is an error", no_threads_is_an_error},
    {0},
};
