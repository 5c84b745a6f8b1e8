/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks are threads of this process, connected over loopback. If a rank must
 * die, ranks are processes. */
#include "net/ring.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/test.h"
#include "net/test_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST = 5,
    TEXT = 1024,
};

typedef struct job job;

/* One rank of a job, and its results. */
typedef struct member {
    job *of;
    fl_mesh_opts opts;
    fl_mesh *mesh;
    fl_err err;
    char sentence[TEXT];
    char late[TEXT];  /* the last message of opts.late */
    unsigned char *x; /* a buffer for results of the body */
    uint64_t grown;   /* allocations after warm-up; other tests: done */
    bool stop;        /* what opts.poll returns */
    fl_err (*run)(struct member *m);
} member;

struct job {
    int world;
    char text[MOST][40];
    const char *endpoints[MOST];
    int listener[MOST];
    member member[MOST];
};

static void note_late(void *user, const char *sentence)
{
    member *m = user;
    snprintf(m->late, TEXT, "%s", sentence);
}

static bool over_tcp; /* do not use shared memory */

static void set_up(job *j, int world, fl_err (*run)(member *m))
{
    memset(j, 0, sizeof *j);
    j->world = world;
    for (int i = 0; i < world; i++) {
        j->listener[i] = test_listen(j->text[i]);
        j->endpoints[i] = j->text[i];
    }
    for (int i = 0; i < world; i++)
        j->member[i] = (member){.of = j,
                                .run = run,
                                .opts = {.endpoints = j->endpoints,
                                         .world = world,
                                         .rank = i,
                                         .listener = j->listener[i],
                                         .no_sharing = over_tcp,
                                         .late = note_late,
                                         .user = &j->member[i]}};
}

static void *run_member(void *arg)
{
    member *m = arg;
    m->err = fl_mesh_join(&m->opts, &m->mesh);
    if (!m->err)
        m->err = m->run(m);
    if (m->err)
        snprintf(m->sentence, TEXT, "%s", fl_errmsg());
    fl_mesh_free(m->mesh);
    return NULL;
}

/* Run all ranks as threads; the last rank starts first. */
static void run_threads(job *j)
{
    pthread_t thread[MOST];
    for (int i = j->world - 1; i >= 0; i--)
        CHECK(!pthread_create(&thread[i], NULL, run_member, &j->member[i]));
    for (int i = 0; i < j->world; i++)
        pthread_join(thread[i], NULL);
}

static void check_all_ok(const job *j)
{
    for (int i = 0; i < j->world; i++) {
        CHECK_STR(j->member[i].sentence, "");
        CHECK_OK(j->member[i].err);
    }
}

static void check_says(const member *m, fl_err code, const char *part)
{
    CHECK_INT(m->err, code);
    if (!strstr(m->sentence, part))
        CHECK_STR(m->sentence, part);
}

/* --- results -------------------------------------------------------------- */

static const int64_t sizes[] = {0, 1, 2, 7, 1000, 8192, 8193, 300007};

#define EACH_SIZE(n)                                                           \
    for (size_t s_ = 0; s_ < sizeof sizes / sizeof *sizes; s_++)               \
        for (int64_t n = sizes[s_], once_ = 1; once_; once_ = 0)

static int failures; /* CHECK works on the main thread only */

static void expect(bool ok)
{
    if (!ok)
        __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

#define CHECK_REDUCE(name, type, dtype)                                        \
    static fl_err name(fl_mesh *m)                                             \
    {                                                                          \
        const int world = fl_mesh_world(m), rank = fl_mesh_rank(m);            \
        type *x = fl_mem_alloc(300007 * sizeof *x);                            \
        EACH_SIZE(n) for (int how = 0; how < 4; how++)                         \
        {                                                                      \
            for (int64_t i = 0; i < n; i++)                                    \
                x[i] = (type)(i % 3 + (rank + i) % world);                     \
            FL_TRY(fl_ring_all_reduce(m, (fl_reduce)how, dtype, x, n));        \
            for (int64_t i = 0; i < n; i++) {                                  \
                type want[4] = {0, 0, 1000, 1};                                \
                for (int r = 0; r < world; r++) {                              \
                    const type v = (type)(i % 3 + (r + i) % world);            \
                    want[0] += v;                                              \
                    want[1] = v > want[1] ? v : want[1];                       \
                    want[2] = v < want[2] ? v : want[2];                       \
                    want[3] *= v;                                              \
                }                                                              \
                expect(x[i] == want[how]);                                     \
            }                                                                  \
        }                                                                      \
        fl_mem_free(x);                                                        \
        return FL_OK;                                                          \
    }

CHECK_REDUCE(reduce_f32, float, FL_F32)
CHECK_REDUCE(reduce_f64, double, FL_F64)
CHECK_REDUCE(reduce_i32, int32_t, FL_I32)
CHECK_REDUCE(reduce_i64, int64_t, FL_I64)

static fl_err reduce_all(member *m)
{
    FL_TRY(reduce_f32(m->mesh));
    FL_TRY(reduce_f64(m->mesh));
    FL_TRY(reduce_i32(m->mesh));
    return reduce_i64(m->mesh);
}

static fl_err scatter_and_gather(member *m)
{
    const int world = m->opts.world, rank = m->opts.rank;
    int32_t *x = fl_mem_alloc(MOST * 300007 * sizeof *x);
    size_t at[MOST + 1] = {0};
    EACH_SIZE(n)
    {
        for (int64_t i = 0; i < n * world; i++)
            x[i] = (int32_t)i * (rank + 1);
        FL_TRY(fl_ring_reduce_scatter(m->mesh, FL_REDUCE_SUM, FL_I32, x, n));
        for (int64_t i = rank * n; i < (rank + 1) * n; i++)
            expect(x[i] == (int32_t)i * world * (world + 1) / 2);
        for (int i = 0; i < world; i++) /* the part of rank 0 is empty */
            at[i + 1] = at[i] + (size_t)(n * i / world) * sizeof *x;
        for (size_t i = at[rank] / 4; i < at[rank + 1] / 4; i++)
            x[i] = rank * 1000;
        FL_TRY(fl_ring_all_gather(m->mesh, x, at));
        for (int r = 0; r < world; r++)
            for (size_t i = at[r] / 4; i < at[r + 1] / 4; i++)
                expect(x[i] == r * 1000);
    }
    fl_mem_free(x);
    return FL_OK;
}

static fl_err broadcast_from_each(member *m)
{
    unsigned char *x = fl_mem_alloc(300007);
    for (int root = 0; root < m->opts.world; root++) {
        EACH_SIZE(n)
        {
            memset(x, m->opts.rank + 1, (size_t)n);
            FL_TRY(fl_ring_broadcast(m->mesh, root, x, (size_t)n));
            for (int64_t i = 0; i < n; i++)
                expect(x[i] == root + 1);
        }
        FL_TRY(fl_ring_barrier(m->mesh));
    }
    fl_mem_free(x);
    return FL_OK;
}

static void run_worlds(fl_err (*run)(member *m))
{
    failures = 0;
    for (int world = 1; world <= 2 * MOST; world++) {
        job j;
        over_tcp = world > MOST;
        set_up(&j, over_tcp ? world - MOST : world, run);
        run_threads(&j);
        over_tcp = false;
        check_all_ok(&j);
        CHECK_INT(failures, 0);
    }
}

/* The number of ranks per host decides whether waits spin. */
static fl_err count_ranks_of_host(member *m)
{
    expect(fl_mesh_local(m->mesh) == m->opts.world);
    return fl_ring_barrier(m->mesh);
}

static void counts_the_ranks_of_the_host(void)
{
    run_worlds(count_ranks_of_host);
}

static void reduces_in_every_world(void)
{
    run_worlds(reduce_all);
}

static void scatters_and_gathers_in_every_world(void)
{
    run_worlds(scatter_and_gather);
}

static void broadcasts_from_each_rank(void)
{
    run_worlds(broadcast_from_each);
}

enum {
    LARGE = 30011,
};

static fl_err reduce_rounded(member *m)
{
    float *x = fl_mem_alloc(LARGE * sizeof *x);
    m->x = (unsigned char *)x;
    for (int i = 0; i < LARGE; i++)
        x[i] = 1.0f / (float)(3 + i + 7 * m->opts.rank);
    x[0] = m->opts.rank ? 0.0f : -0.0f;
    x[1] = m->opts.rank == 1 ? NAN : 1.0f;
    FL_TRY(fl_ring_all_reduce(m->mesh, FL_REDUCE_MAX, FL_F32, x, 2));
    expect(isnan(x[1]));
    FL_TRY(fl_ring_all_reduce(m->mesh, FL_REDUCE_SUM, FL_F32, x + 2, 1000));
    return fl_ring_all_reduce(m->mesh, FL_REDUCE_SUM, FL_F32, x + 1002,
                              LARGE - 1002);
}

static void check_bits(int world)
{
    unsigned char *first = NULL;
    failures = 0;
    for (int run = 0; run < 2; run++) {
        job j; /* shared memory and TCP give the same bits */
        over_tcp = run;
        set_up(&j, world, reduce_rounded);
        run_threads(&j);
        over_tcp = false;
        check_all_ok(&j);
        for (int i = 0; i < world; i++) {
            if (first)
                CHECK(!memcmp(j.member[i].x, first, LARGE * sizeof(float)));
            else
                first = j.member[i].x;
            if (first != j.member[i].x)
                fl_mem_free(j.member[i].x);
        }
    }
    CHECK_INT(failures, 0);
    fl_mem_free(first);
}

static void gives_all_ranks_and_runs_the_same_bits(void)
{
    check_bits(4); /* halving */
    check_bits(5); /* a ring */
}

static fl_err count_allocations(member *m)
{
    static char zeros[MOST][400000];
    char *x = zeros[m->opts.rank];
    const size_t at[] = {0, 100, 30000, 100000};
    for (int i = 0; i < 20; i++) {
        const uint64_t before = fl_mem_count();
        FL_TRY(fl_ring_all_reduce(m->mesh, FL_REDUCE_SUM, FL_F32, x, 1000));
        FL_TRY(fl_ring_all_reduce(m->mesh, FL_REDUCE_SUM, FL_F32, x, 100000));
        FL_TRY(fl_ring_broadcast(m->mesh, 1, x, 100000));
        FL_TRY(fl_ring_all_gather(m->mesh, x, at));
        FL_TRY(fl_ring_barrier(m->mesh));
        m->grown += fl_mem_count() - before;
    }
    return FL_OK;
}

static void allocates_nothing_in_calls(void)
{
    job j;
    set_up(&j, 3, count_allocations);
    run_threads(&j);
    check_all_ok(&j);
    for (int i = 0; i < 3; i++)
        CHECK_INT(j.member[i].grown, 0);
}

/* --- wrong jobs ----------------------------------------------------------- */

static fl_err meet(member *m)
{
    return fl_ring_barrier(m->mesh);
}

static void explains_another_world_size(void)
{
    job j;
    set_up(&j, 3, meet);
    j.member[0].opts.world = 2;
    j.world = 2; /* rank 2 is not started */
    run_threads(&j);
    check_says(&j.member[0], FL_EINVAL, "is of a job of 3 ranks, rank 0 (");
    check_says(&j.member[1], FL_EINVAL, "give all ranks the same list");
    check_says(&j.member[1], FL_EINVAL, "told by rank 0");
    close(j.listener[2]);
}

static void explains_a_rank_that_is_there_twice(void)
{
    job j;
    set_up(&j, 3, meet);
    j.member[2].opts.rank = 1;
    run_threads(&j);
    check_says(&j.member[0], FL_EINVAL, "two processes are rank 1: ");
    for (int i = 1; i < 3; i++)
        CHECK(j.member[i].err &&
              strstr(j.member[i].sentence, "two processes are rank 1: "));
}

static void explains_endpoints_in_another_order(void)
{
    job j;
    const char *swapped[2];
    set_up(&j, 3, meet);
    swapped[0] = j.endpoints[1];
    swapped[1] = j.endpoints[0];
    const char *order[] = {swapped[0], swapped[1], j.endpoints[2]};
    j.member[2].opts.endpoints = order;
    run_threads(&j);
    check_says(&j.member[2], FL_EINVAL, "the endpoints in the same order");
    CHECK(j.member[0].err && j.member[1].err);
}

static void refuses_options_that_cannot_be(void)
{
    const char *same[] = {"127.0.0.1:7000", "127.0.0.1:7000"};
    fl_mesh_opts o = {.endpoints = same, .world = 2, .rank = 2};
    fl_mesh *m;
    CHECK_ERR(fl_mesh_join(&o, &m), FL_EINVAL, "rank 2 of 2 ranks");
    o.rank = 1;
    CHECK_ERR(fl_mesh_join(&o, &m), FL_EINVAL,
              "ranks 0 and 1 have the same endpoint 127.0.0.1:7000");
    o.world = 0;
    CHECK_ERR(fl_mesh_join(&o, &m), FL_EINVAL, "0 ranks, expected 1 to 256");
}

static void explains_an_endpoint_in_use(void)
{
    job j;
    fl_mesh *m;
    set_up(&j, 1, meet);
    j.member[0].opts.listener = 0;
    CHECK_ERR(fl_mesh_join(&j.member[0].opts, &m), FL_EIO,
              "is taken by process");
    close(j.listener[0]);
}

static void meets_with_the_same_key_only(void)
{
    job j;
    set_up(&j, 2, meet);
    for (int i = 0; i < 2; i++) {
        j.member[i].opts.key = "secret";
        j.member[i].opts.key_size = 6;
    }
    run_threads(&j);
    check_all_ok(&j);

    set_up(&j, 2, meet);
    j.member[1].opts.key = "secret";
    j.member[1].opts.key_size = 6;
    for (int i = 0; i < 2; i++)
        j.member[i].opts.join_timeout = FL_SEC;
    run_threads(&j);
    check_says(&j.member[0], FL_ETIMEOUT, "says it is rank 1 but has another");
    CHECK(j.member[1].err);
    CHECK(strstr(j.member[1].sentence, "key") ||
          strstr(j.member[1].sentence, "refused"));
}

static fl_err disagree(member *m)
{
    float x[20] = {0};
    return fl_ring_all_reduce(m->mesh, FL_REDUCE_SUM, FL_F32, x,
                              m->opts.rank == 1 ? 20 : 10);
}

static void explains_calls_that_differ(void)
{
    job j;
    set_up(&j, 3, disagree);
    run_threads(&j);
    for (int i = 0; i < 3; i++) {
        const char *s = j.member[i].sentence;
        CHECK(j.member[i].err);
        CHECK(strstr(s, "all-reduce sum of 20 f32") &&
              strstr(s, "all-reduce sum of 10 f32"));
    }
}

static fl_err fail_early(member *m)
{
    fl_mesh_about(m->mesh, &(fl_mesh_subject){"fc.b@GRAD", 2, 7});
    if (m->opts.rank == 1)
        fl_mesh_fail(m->mesh, "ValueError: no more data");
    return fl_ring_barrier(m->mesh);
}

static void tells_all_why_a_rank_failed(void)
{
    job j;
    set_up(&j, 3, fail_early);
    run_threads(&j);
    for (int i = 0; i < 3; i++) {
        const fl_err err = i == 1 ? FL_EIO : FL_EENDED;
        check_says(&j.member[i], err, "rank 1 (127.0.0.1:");
        check_says(&j.member[i], err, "has failed: ValueError: no more data");
    }
}

static fl_err leave_early(member *m)
{
    fl_err err = FL_OK;
    for (int i = 0; i < (m->opts.rank == 1 ? 3 : 4) && !err; i++)
        err = fl_ring_barrier(m->mesh);
    return err;
}

static void explains_a_rank_that_ends_early(void)
{
    job j;
    set_up(&j, 2, leave_early);
    run_threads(&j);
    CHECK_OK(j.member[1].err);
    check_says(&j.member[0], FL_EIO, "has ended its part of the job");
    check_says(&j.member[0], FL_EIO, "in barrier (call 4)");
}

/* Strangers that send rubbish or nothing do not stop ranks from joining. */
static void ignores_strangers(void)
{
    job j;
    struct sockaddr_in a;
    socklen_t size = sizeof a;
    set_up(&j, 2, meet);
    CHECK(!getsockname(j.listener[0], (struct sockaddr *)&a, &size));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(!connect(fd, (struct sockaddr *)&a, size));
    char junk[256];
    memset(junk, 'x', sizeof junk);
    CHECK_INT(send(fd, junk, sizeof junk, MSG_NOSIGNAL), sizeof junk);
    run_threads(&j);
    check_all_ok(&j);
    close(fd);
}

/* --- ranks that are late -------------------------------------------------- */

static void names_the_rank_that_does_not_come(void)
{
    job j;
    set_up(&j, 3, meet);
    for (int i = 0; i < 2; i++) {
        j.member[i].opts.join_timeout = FL_SEC;
        j.member[i].opts.late_after = 100 * FL_MS;
    }
    j.world = 2;
    run_threads(&j);
    close(j.listener[2]);
    for (int i = 0; i < 2; i++) {
        const member *m = &j.member[i];
        CHECK(m->err && strstr(m->sentence, "for rank 2 (127.0.0.1:"));
        CHECK(strstr(m->sentence, "to connect"));
        CHECK(strstr(m->late, "for rank 2 (127.0.0.1:"));
    }
    CHECK(j.member[0].err == FL_ETIMEOUT || j.member[1].err == FL_ETIMEOUT);
}

/* Rank 2 does nothing until the others have failed. */
static fl_err be_silent(member *m)
{
    float x[10] = {0};
    if (m->opts.rank == 2)
        for (int i = 0; i < 2; i++)
            while (!__atomic_load_n(&m->of->member[i].grown, __ATOMIC_ACQUIRE))
                poll(NULL, 0, 5);
    const fl_err err =
        fl_ring_all_reduce(m->mesh, FL_REDUCE_SUM, FL_F32, x, 10);
    __atomic_store_n(&m->grown, 1, __ATOMIC_RELEASE);
    return err;
}

static void names_the_rank_that_is_silent(void)
{
    job j;
    set_up(&j, 3, be_silent);
    for (int i = 0; i < 2; i++) {
        j.member[i].opts.timeout = FL_SEC;
        j.member[i].opts.late_after = 100 * FL_MS;
    }
    run_threads(&j);
    for (int i = 0; i < 3; i++) {
        const member *m = &j.member[i];
        CHECK(m->err);
        CHECK(strstr(m->sentence, "rank 2 (127.0.0.1:"));
        CHECK(strstr(m->sentence, "in all-reduce sum of 10 f32 (call 1)"));
    }
    /* Rank 1 waits for rank 0, and learns that rank 0 waits for another. */
    CHECK(strstr(j.member[1].late, "for rank 0 ("));
    CHECK(strstr(j.member[1].late, "which waits for rank 2 ("));
}

static bool stop_waiting(void *user)
{
    return ((member *)user)->stop;
}

static fl_err wait_interrupted(member *m)
{
    m->stop = m->opts.rank == 0;
    if (m->opts.rank == 1)
        while (!__atomic_load_n(&m->of->member[0].grown, __ATOMIC_ACQUIRE))
            poll(NULL, 0, 5);
    const fl_err err = fl_ring_barrier(m->mesh);
    const fl_err again = fl_ring_barrier(m->mesh);
    __atomic_store_n(&m->grown, 1, __ATOMIC_RELEASE);
    expect(m->opts.rank || err == again); /* an error is final */
    return again;
}

static void ends_a_wait_when_asked_to(void)
{
    job j;
    failures = 0;
    set_up(&j, 2, wait_interrupted);
    j.member[0].opts.poll = stop_waiting;
    run_threads(&j);
    CHECK_INT(failures, 0);
    check_says(&j.member[0], FL_EINTR, "rank 0 was interrupted");
    check_says(&j.member[1], FL_EENDED, "rank 0 was interrupted");
    check_says(&j.member[1], FL_EENDED, "told by rank 0");
}

/* --- ranks that die ------------------------------------------------------- */

enum {
    STEPS = 1000000, /* more than can run */
};

/* Reduce until a rank dies; the parent sees how many calls were made. */
static fl_err reduce_for_ever(member *m)
{
    float *x = fl_mem_alloc((1 << 20) * sizeof *x);
    fl_err err = FL_OK;
    for (int i = 0; i < STEPS && !err; i++) {
        err = fl_ring_all_reduce(m->mesh, FL_REDUCE_SUM, FL_F32, x,
                                 i % 2 ? 1000 : 1 << 20);
        __atomic_fetch_add(&m->grown, 1, __ATOMIC_RELEASE);
    }
    fl_mem_free(x);
    return err;
}

static void names_a_rank_that_dies(void)
{
    for (int run = 0; run < 6; run++) {
        const int victim = run % 3;
        pid_t child[3];
        int status;
        job *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(j != MAP_FAILED);
        over_tcp = run >= 3;
        set_up(j, 3, reduce_for_ever);
        over_tcp = false;
        for (int i = 0; i < 3; i++)
            if (!(child[i] = fork())) {
                for (int k = 0; k < 3; k++) /* close the other ranks' sockets */
                    if (k != i)
                        close(j->listener[k]);
                run_member(&j->member[i]);
                _exit(j->member[i].err != FL_OK);
            }
        for (int i = 0; i < 3; i++)
            close(j->listener[i]);
        while (__atomic_load_n(&j->member[victim].grown, __ATOMIC_ACQUIRE) < 5)
            poll(NULL, 0, 1);
        kill(child[victim], SIGKILL);
        for (int i = 0; i < 3; i++) {
            char want[80];
            CHECK_INT(waitpid(child[i], &status, 0), child[i]);
            if (i == victim)
                continue;
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
            snprintf(want, sizeof want, "rank %d (%s) has died", victim,
                     j->text[victim]);
            check_says(&j->member[i], FL_EENDED, want);
        }
        munmap(j, sizeof *j);
    }
}

const fl_test fl_tests[] = {
    {"all-reduce has the result in worlds of 1 to 5 ranks",
     reduces_in_every_world},
    {"reduce-scatter and all-gather have the result in worlds of 1 to 5",
     scatters_and_gathers_in_every_world},
    {"broadcast works from each rank", broadcasts_from_each_rank},
    {"all ranks and two runs get the same bits",
     gives_all_ranks_and_runs_the_same_bits},
    {"ranks of this host are counted over memory and over TCP",
     counts_the_ranks_of_the_host},
    {"calls allocate nothing", allocates_nothing_in_calls},
    {"another world size is explained to both", explains_another_world_size},
    {"a rank that is there twice is explained to all",
     explains_a_rank_that_is_there_twice},
    {"endpoints in another order are explained",
     explains_endpoints_in_another_order},
    {"options that cannot be are refused", refuses_options_that_cannot_be},
    {"an endpoint in use is explained", explains_an_endpoint_in_use},
    {"ranks meet with the same key only", meets_with_the_same_key_only},
    {"calls that differ are explained to all", explains_calls_that_differ},
    {"a rank that fails tells all others why", tells_all_why_a_rank_failed},
    {"a rank that ends early is named", explains_a_rank_that_ends_early},
    {"strangers do not keep ranks from meeting", ignores_strangers},
    {"a rank that does not come is named", names_the_rank_that_does_not_come},
    {"a rank that is silent is named by all", names_the_rank_that_is_silent},
    {"a wait ends when the poll asks for it", ends_a_wait_when_asked_to},
    {"a rank that dies is named by all others", names_a_rank_that_dies},
    {0},
};
