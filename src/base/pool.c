/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - a queue of tasks under one lock, with two condition variables. */
#include "base/pool.h"

#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef struct task {
    void (*run)(void *arg);
    void *arg;
    fl_group *group;
} task;

typedef struct worker {
    fl_pool *pool;
    pthread_t thread;
} worker;

struct fl_pool {
    const char *name;
    pid_t pid; /* the process that has the threads */
    int n;
    worker *workers;

    pthread_mutex_t lock;
    pthread_cond_t work; /* a task was added, or the pool ends */
    pthread_cond_t done; /* a group became empty */
    FL_VEC(task) tasks;  /* the first `taken` were started */
    int64_t taken;
    bool ending;
};

static bool pop_task(fl_pool *p, task *t)
{
    while (p->taken == p->tasks.n && !p->ending)
        pthread_cond_wait(&p->work, &p->lock);
    if (p->taken == p->tasks.n)
        return false;
    *t = p->tasks.at[p->taken++];
    if (p->taken == p->tasks.n)
        p->taken = p->tasks.n = 0;
    return true;
}

static void *run_tasks(void *arg)
{
    fl_pool *p = ((worker *)arg)->pool;
    task t;
    pthread_mutex_lock(&p->lock);
    while (pop_task(p, &t)) {
        pthread_mutex_unlock(&p->lock);
        t.run(t.arg);
        pthread_mutex_lock(&p->lock);
        if (!--t.group->left)
            pthread_cond_broadcast(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int start_thread(fl_pool *p, int i)
{
    char name[16]; /* the kernel keeps 16 bytes */
    worker *w = &p->workers[i];
    w->pool = p;
    int e = pthread_create(&w->thread, NULL, run_tasks, w);
    if (!e) {
        snprintf(name, sizeof name, "%.10s-%d", p->name, i % 1000);
        pthread_setname_np(w->thread, name);
    }
    return e;
}

/* Start the threads with all signals blocked: they inherit the mask, so that no
 * signal is delivered to them. */
static int start_all(fl_pool *p, int n)
{
    sigset_t all, old;
    int e = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (p->n < n && !(e = start_thread(p, p->n)))
        p->n++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e;
}

fl_err fl_pool_new(const char *name, int n, fl_pool **out)
{
    pthread_condattr_t monotonic;
    if (n < 1)
        return fl_fail(FL_EINVAL, "pool %s: %d threads, at least 1 is needed",
                       name, n);
    fl_pool *p = fl_mem_alloc(sizeof *p);
    p->name = name;
    p->pid = getpid();
    p->workers = fl_mem_alloc((size_t)n * sizeof *p->workers);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int e = start_all(p, n);
    if (e) {
        int had = p->n;
        fl_pool_free(p);
        return fl_fail(FL_EIO, "pool %s: thread %d of %d cannot be started: %s",
                       name, had + 1, n, strerror(e));
    }
    *out = p;
    return FL_OK;
}

void fl_pool_free(fl_pool *p)
{
    if (!p || p->pid != getpid())
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    fl_vec_fini(&p->tasks);
    fl_mem_free(p->workers);
    fl_mem_free(p);
}

int fl_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

int fl_pool_size(const fl_pool *p)
{
    return p->pid == getpid() ? p->n : 0;
}

void fl_pool_submit(fl_pool *p, fl_group *g, void (*run)(void *arg), void *arg)
{
    pthread_mutex_lock(&p->lock);
    g->left++;
    if (p->tasks.n == p->tasks.cap && p->taken > p->tasks.n / 2) {
        p->tasks.n -= p->taken;
        memmove(p->tasks.at, p->tasks.at + p->taken,
                (size_t)p->tasks.n * sizeof *p->tasks.at);
        p->taken = 0;
    }
    fl_push(&p->tasks, (task){run, arg, g});
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static struct timespec deadline_after(int64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ns / 1000000000;
    t.tv_nsec += ns % 1000000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

fl_err fl_pool_wait(fl_pool *p, fl_group *g, int64_t timeout)
{
    struct timespec end = deadline_after(timeout < 0 ? 0 : timeout);
    int e = 0;
    pthread_mutex_lock(&p->lock);
    while (g->left && !e)
        e = timeout < 0 ? pthread_cond_wait(&p->done, &p->lock)
                        : pthread_cond_timedwait(&p->done, &p->lock, &end);
    int64_t left = g->left;
    pthread_mutex_unlock(&p->lock);
    if (left)
        return fl_fail(FL_ETIMEOUT,
                       "pool %s: %lld tasks are not done in %.3f s", p->name,
                       (long long)left, (double)timeout / 1e9);
    return FL_OK;
}
