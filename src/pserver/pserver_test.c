/* SPDX-License-Identifier: Apache-2.0 */
#include "check/check.h"
#include "cluster/test_placement.h"
#include "pserver/test_server.h"
#include "state/test_state.h"

#include <signal.h>
#include <sys/resource.h>

static const float ten[] = {10, 20};

static void one_trainer_lives_and_completes(void)
{
    town t;
    talker k;
    town_cut(&t, 1, 1, false);
    setenv("FLUID_LINGER", "3600",
           1); /* longer than the test: it must end before */
    town_set(&t, 0, "w", 2, ten);
    host_start(&t.host[0]);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    CHECK_INT(talker_pull(&k, 0, 0, "w"), FL_MSG_VALUES);
    CHECK_NEAR(talker_value(&k, 1), 20, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(talker_push(&k, 0, i, "w@GRAD", 2, 1, (const float[]){2, 4}),
                  FL_MSG_ACK);
        CHECK_INT(talker_say(&k, FL_MSG_BARRIER, i), FL_MSG_ACK);
        CHECK_INT(talker_pull(&k, 0, i + 1, "w"), FL_MSG_VALUES);
        CHECK_INT(k.m.round, i + 1);
        CHECK_NEAR(talker_value(&k, 0), 9 - i, 0);
        CHECK_NEAR(talker_value(&k, 1), 18 - 2 * i, 0);
    }
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    fl_rpc_cancel(k.rpc, k.open);
    CHECK_OK(town_wait(&t, 0));
    fl_checked("listen_and_serv", false);
    talker_fini(&k);
    town_close(&t);
}

/* Requests of both trainers to both servers are interleaved. */
static void two_trainers_meet_on_two_servers(void)
{
    town t;
    talker k[2];
    town_cut(&t, 2, 2, false);
    const int w = fl_scope_find(t.host[0].scope, "w") ? 0 : 1;
    const char *names[2] = {w ? "b" : "w", w ? "w" : "b"};
    town_set(&t, w, "w", 2, ten);
    town_set(&t, 1 - w, "b", 1, ten);
    host_start(&t.host[1]); /* server 0, the coordinator, starts last */
    host_start(&t.host[0]);
    for (int i = 0; i < 2; i++) {
        talker_init(&k[i], &t, (uint64_t)i + 1);
        talker_join(&k[i], i);
        for (int j = 0; j < 2; j++)
            CHECK_INT(talker_pull(&k[i], j, 0, names[j]), FL_MSG_VALUES);
    }
    for (int i = 0; i < 2; i++) {
        const float x[] = {(float)(2 + 4 * i), 4};
        CHECK_INT(talker_push(&k[i], w, 0,
                              i ? "w@GRAD.trainer_1" : "w@GRAD.trainer_0", 2, 1,
                              x),
                  FL_MSG_ACK);
        CHECK_INT(talker_push(&k[i], 1 - w, 0,
                              i ? "b@GRAD.trainer_1" : "b@GRAD.trainer_0", 1, 0,
                              x),
                  FL_MSG_ACK);
        CHECK_INT(talker_say(&k[i], FL_MSG_BARRIER, 0), FL_MSG_ACK);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_INT(talker_pull(&k[i], w, 1, "w"), FL_MSG_VALUES);
        CHECK_NEAR(talker_value(&k[i], 0), 8, 0);
        CHECK_NEAR(talker_value(&k[i], 1), 18, 0);
        CHECK_INT(talker_pull(&k[i], 1 - w, 1, "b"), FL_MSG_VALUES);
        CHECK_NEAR(talker_value(&k[i], 0), 8, 0);
        CHECK_INT(talker_say(&k[i], FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    }
    CHECK_OK(town_wait(&t, 0));
    CHECK_OK(town_wait(&t, 1));
    for (int i = 0; i < 2; i++)
        talker_fini(&k[i]);
    town_close(&t);
}

static void an_asynchronous_push_is_acknowledged_when_applied(void)
{
    town t;
    talker k;
    town_cut(&t, 1, 1, true);
    town_set(&t, 0, "w", 2, ten);
    host_start(&t.host[0]);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(talker_push(&k, 0, 0, "w@GRAD", 2, 1, (const float[]){2, 4}),
                  FL_MSG_ACK);
        CHECK_INT(talker_pull(&k, 0, 0, "w"), FL_MSG_VALUES);
        CHECK_NEAR(talker_value(&k, 0), 9 - i, 0);
    }
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    CHECK_OK(town_wait(&t, 0));
    talker_fini(&k);
    town_close(&t);
}

/* --- no room --- */

/* The position of a trainer does not fit into the images, and no file grows. */
static void a_barrier_waits_for_room_in_the_images(void)
{
    static char position[60000];
    fl_msg barrier = {.kind = FL_MSG_BARRIER, .step = 1, .position = position};
    town t;
    talker k;
    char *text;
    memset(position, 'x', sizeof position - 1);
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    setenv("FLUID_DURABILITY", "process", 1);
    town_open(&t, 1, 1, true);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    test_limit_files(0);
    CHECK_INT(talker_ask(&k, 0, barrier), FL_MSG_PARKED);
    CHECK(strstr(k.text, "/control-0: no room for 65536 bytes more; its file "
                         "system has "));
    CHECK_INT(talker_pull(&k, 0, 0, "w"), FL_MSG_VALUES);
    CHECK_INT(talker_push(&k, 0, 0, "w@GRAD", 2, 1, ten), FL_MSG_ACK);
    CHECK_OK(fl_why(t.endpoint[0], &text));
    CHECK(strstr(text, "trainers wait for room: "));
    fl_free(text);
    test_limit_files(-1);
    for (; barrier.step <= 3; barrier.step++) { /* two positions are kept */
        CHECK_INT(talker_ask(&k, 0, barrier), FL_MSG_ACK);
        position[barrier.step] = 'y';
    }
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    CHECK_OK(town_wait(&t, 0));
    talker_fini(&k);
    town_close(&t);
    unsetenv("FLUID_DURABILITY");
    unsetenv("FLUID_STATE_DIR");
}

/* --- bad ends --- */

/* The server lingers after the end of the job. */
static void a_signal_after_the_end_of_the_job_is_no_failure(void)
{
    town t;
    talker k;
    town_cut(&t, 1, 1, false);
    setenv("FLUID_LINGER", "3600", 1);
    host_start(&t.host[0]);
    talker_init(&k, &t, 1);
    talker_join(&k, 0); /* its open call keeps the server */
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    raise(SIGTERM);
    CHECK_OK(town_wait(&t, 0));
    talker_fini(&k);
    town_close(&t);
}

/* Wait until the server handles the signal. Before that it would kill the test.
 */
static void await_handler(int number)
{
    struct sigaction now = {0};
    while (!sigaction(number, NULL, &now) && now.sa_handler == SIG_DFL)
        usleep(1000);
}

static void sigterm_ends_the_wait_for_a_host_name(void)
{
    const char *servers[] = {"nosuchhost.invalid:6174"};
    town t;
    town_cut(&t, 1, 1, false);
    fl_placement place = *fl_placement_of(t.s.cut->server[0]->job);
    place.servers = servers;
    test_place(t.s.cut->server[0], &place);
    host_start(&t.host[0]);
    await_handler(SIGTERM);
    raise(SIGTERM);
    /* the rest of the message depends on when the signal came */
    CHECK_ERR(town_wait(&t, 0), FL_EINTR, "nosuchhost.invalid:6174: ");
    town_close(&t);
}

static void a_trainer_that_hangs_up_is_lost(void)
{
    town t;
    talker k;
    town_open(&t, 1, 1, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    talker_fini(&k); /* the server sees the same as if the trainer had died */
    CHECK_ERR(town_wait(&t, 0), FL_EENDED, "the job has failed: trainer 0: ");
    town_close(&t);
}

static void a_trainer_that_fails_says_why(void)
{
    town t;
    talker k;
    town_open(&t, 2, 1, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    CHECK_INT(
        talker_ask(
            &k, 0,
            (fl_msg){.kind = FL_MSG_FAILED, .code = 3, .text = "out of luck"}),
        FL_MSG_ACK);
    CHECK_ERR(town_wait(&t, 0), FL_EENDED,
              "the job has failed: trainer 0: out of luck");
    CHECK_ERR(town_wait(&t, 1), FL_EENDED,
              "the job has failed: trainer 0: out of luck");
    talker_fini(&k);
    town_close(&t);
}

/* Wait until the server reports this wait. */
static void await_wait(const town *t, const char *row)
{
    for (bool is = false; !is; usleep(1000)) {
        char *text = NULL;
        CHECK_OK(fl_why(t->endpoint[0], &text));
        is = strstr(text, row) != NULL;
        fl_free(text);
    }
}

static void sigterm_ends_a_server_cleanly(void)
{
    town t;
    talker k;
    char path[64];
    snprintf(path, sizeof path, "/tmp/paddle.%ld.port", (long)getpid());
    signal(SIGTERM, SIG_DFL);
    town_open(&t, 1, 2, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    CHECK(!access(path, R_OK));
    const int until = k.answers + 1;
    talker_send(&k, 0, (fl_msg){.kind = FL_MSG_PULL, .round = 1});
    await_wait(&t, "the decision that makes version 1");
    raise(SIGUSR1); /* only logs the table of waits */
    raise(SIGTERM);
    CHECK_ERR(town_wait(&t, 0), FL_EINTR,
              "was ended by SIGTERM; the job was not complete");
    talker_wait(&k, &k.answers, until); /* the parked request is answered */
    CHECK_INT(k.m.kind, FL_MSG_END);
    CHECK(strstr(k.text, "was ended by SIGTERM") != NULL);
    CHECK(access(path, R_OK));
    struct sigaction now;
    sigaction(SIGTERM, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL);
    talker_fini(&k);
    town_close(&t);
}

static int interrupt(void *user)
{
    int *asked = user;
    return ++*asked > 3;
}

static void a_poll_ends_a_server(void)
{
    town t;
    int asked = 0;
    town_cut(&t, 1, 1, false);
    host *h = &t.host[0];
    fl_watch watch = {
        .clock = fl_clock_real(), .poll = interrupt, .user = &asked};
    h->env.watch = &watch;
    fl_exe_free(h->exe);
    h->exe = fl_exe_make(&h->env);
    host_start(h);
    CHECK_ERR(town_wait(&t, 0), FL_EINTR,
              "was ended by SIGINT; the job was not complete");
    CHECK(asked > 3);
    fl_watch_fini(&watch);
    town_close(&t);
}

/* A server raises its limit of open files, since each connection takes one. */
static void a_server_may_open_all_files(void)
{
    town t;
    talker k;
    struct rlimit was, now;
    CHECK(!getrlimit(RLIMIT_NOFILE, &was));
    now = was;
    now.rlim_cur = 64;
    CHECK(!setrlimit(RLIMIT_NOFILE, &now));
    town_open(&t, 1, 1, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    CHECK(!getrlimit(RLIMIT_NOFILE, &now));
    CHECK(now.rlim_cur == was.rlim_max);
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    talker_fini(&k);
    CHECK_OK(town_wait(&t, 0));
    town_close(&t);
    CHECK(!setrlimit(RLIMIT_NOFILE, &was));
}

/* A socket of this process that listens at 127.0.0.1:port. */
static int listen_at(const char *endpoint)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons((uint16_t)atoi(strrchr(endpoint, ':') + 1));
    CHECK(fd >= 0 &&
          !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
          !bind(fd, (struct sockaddr *)&a, sizeof a) && !listen(fd, 1));
    return fd;
}

/* The test itself holds the port. If another server held it, that server could
 * end before the holder is found. */
static void a_taken_port_is_named(void)
{
    town t;
    char want[64];
    town_cut(&t, 1, 1, false);
    host *h = &t.host[0];
    const int fd = listen_at(t.endpoint[0]);
    host_run(h);
    close(fd);
    CHECK_INT(h->err, FL_EIO);
    snprintf(want, sizeof want, "is taken by process %d (", (int)getpid());
    if (!strstr(h->why, want))
        CHECK_STR(h->why, want);
    town_close(&t);
}

/* --- bad requests --- */

static void nonsense_is_answered_with_a_sentence(void)
{
    town t;
    talker k;
    town_open(&t, 2, 1, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    CHECK_INT(talker_ask(&k, 1, (fl_msg){.kind = FL_MSG_JOIN}), FL_MSG_NONE);
    CHECK_INT(k.code, FL_EINVAL);
    CHECK(strstr(k.text, "this is server 1, the coordinator is 127.0.0.1:"));
    CHECK(strstr(k.text, "in the same order everywhere?"));
    CHECK_INT(talker_ask(&k, 1, (fl_msg){.kind = FL_MSG_TALLY}), FL_MSG_NONE);
    CHECK(strstr(k.text, "TALLY: this is server 1, the coordinator is "));
    CHECK_INT(talker_say(&k, FL_MSG_TALLY, 0), FL_MSG_ERROR);
    CHECK(strstr(k.text, "tally: 0 tensors came, expected one"));
    CHECK_INT(talker_pull(&k, 0, 0, "nothing"), FL_MSG_ERROR);
    CHECK(strstr(k.text, "there is no variable \"nothing\" on this server"));
    CHECK_INT(talker_push(&k, 0, 0, "nothing@GRAD", 2, 1, ten), FL_MSG_ERROR);
    CHECK(strstr(k.text, "there is no gradient \"nothing@GRAD\""));
    CHECK(strstr(k.text, "(trainer 0)"));
    k.job.lo++;
    CHECK_INT(talker_pull(&k, 0, 0, NULL), FL_MSG_ERROR);
    CHECK(strstr(k.text, "this is another job: programs"));
    CHECK(strstr(k.text, "number of trainers (1 here)"));
    CHECK_INT(talker_say(&k, FL_MSG_BARRIER, 0), FL_MSG_ERROR);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(talker_ask(&k, i, (fl_msg){.kind = FL_MSG_TALLY}),
                  FL_MSG_ERROR);
        CHECK(strstr(k.text, "this is another job: programs"));
    }
    k.job.lo--;
    k.session.lo++;
    CHECK_INT(talker_say(&k, FL_MSG_TALLY, 0), FL_MSG_FENCED);
    CHECK(strstr(k.text, "this session was never granted a rank"));
    k.session.lo--;
    fl_rpc_say(k.rpc, k.open,
               fl_msg_encode(&(fl_msg){.kind = FL_MSG_PULL, .job = k.job}));
    pthread_mutex_lock(&k.lock);
    while (!k.hung_up)
        pthread_cond_wait(&k.news, &k.lock);
    pthread_mutex_unlock(&k.lock);
    CHECK(strstr(k.farewell, "PULL is not a request of /fluid.Coordinator/"));
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    CHECK_OK(town_wait(&t, 0));
    CHECK_OK(town_wait(&t, 1));
    talker_fini(&k);
    town_close(&t);
}

/* Send a message as a server would, from a process that knows the digest. */
static void forge(talker *k, int server, const char *method, fl_msg m)
{
    const int until = k->answers + 1;
    m.job = k->job;
    fl_rpc_call(k->rpc, fl_rpc_peer_at(k->rpc, k->town->endpoint[server]),
                method, fl_msg_encode(&m), 300 * FL_SEC,
                (fl_rpc_done){talker_done, k, 0});
    talker_wait(k, &k->answers, until);
}

static void nobody_speaks_for_a_server(void)
{
    static const char tell[] = "/fluid.Server/Tell";
    const fl_msg end = {.kind = FL_MSG_END, .code = 7, .text = "forged"};
    town t;
    talker k;
    town_open(&t, 2, 1, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    CHECK_INT(talker_pull(&k, 1, 0, NULL), FL_MSG_VALUES);
    forge(&k, 0, tell, end);
    CHECK_INT(k.code, FL_EINVAL);
    CHECK(strstr(k.text, "END of server 0: this is server 0 of 2"));
    forge(&k, 1, tell, end); /* acknowledged, and has no effect */
    CHECK_INT(k.m.kind, FL_MSG_ACK);
    forge(&k, 1, tell, (fl_msg){.kind = FL_MSG_VIEW, .view = 9});
    forge(&k, 1, tell, (fl_msg){.kind = FL_MSG_CLOSE});
    forge(&k, 0, "/fluid.Coordinator/Report",
          (fl_msg){.kind = FL_MSG_STATE, .server = 1, .over = 1, .code = 7});
    forge(&k, 1, "/fluid.Server/Push", end);
    CHECK_INT(k.code, FL_EPROTO);
    CHECK(strstr(k.text, "END is not a request of /fluid.Server/Push"));
    CHECK(strstr(k.text, "(from 127.0.0.1:"));
    CHECK_INT(talker_pull(&k, 1, 0, NULL), FL_MSG_VALUES);
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    CHECK_OK(town_wait(&t, 0));
    CHECK_OK(town_wait(&t, 1));
    talker_fini(&k);
    town_close(&t);
}

/* Neither the text nor a field of the answer tells anything of the job. */
static void another_job_learns_nothing(void)
{
    town t;
    talker k;
    char digits[2][17];
    town_open(&t, 1, 1, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    const fl_id job = k.job;
    snprintf(digits[0], sizeof digits[0], "%016llx", (long long)job.hi);
    snprintf(digits[1], sizeof digits[1], "%016llx", (long long)job.lo);
    k.job = (fl_id){0};
    for (int i = 0; i < 2; i++) {
        const fl_msg m = {.kind = i ? FL_MSG_PULL : FL_MSG_JOIN};
        CHECK_INT(talker_ask(&k, 0, m), FL_MSG_ERROR);
        CHECK(strstr(k.text, "this is another job: "));
        CHECK(!strstr(k.text, digits[0]) && !strstr(k.text, digits[1]));
        CHECK(!k.m.job.hi && !k.m.job.lo);
    }
    k.job = job;
    CHECK_INT(talker_say(&k, FL_MSG_COMPLETE, 0), FL_MSG_ACK);
    CHECK_OK(town_wait(&t, 0));
    talker_fini(&k);
    town_close(&t);
}

static void a_server_says_who_waits(void)
{
    town t;
    talker k;
    char *text = NULL;
    town_open(&t, 1, 2, false);
    talker_init(&k, &t, 1);
    talker_join(&k, 0);
    CHECK_OK(fl_why(t.endpoint[0], &text));
    CHECK(strstr(text, "server 0 of 1 at 127.0.0.1:") != NULL);
    CHECK(strstr(text, "0 of 2 trainers are complete") != NULL);
    CHECK(strstr(text, "coordinator waits for trainer 1: to come") != NULL);
    fl_free(text);
    talker_fini(&k);
    raise(SIGTERM);
    CHECK_ERR(town_wait(&t, 0), FL_EINTR, "was ended by SIGTERM");
    CHECK_ERR(fl_why(t.endpoint[0], &text), FL_EIO,
              "no server answers at 127.0.0.1:");
    town_close(&t);
}

static void a_program_without_a_place_is_refused(void)
{
    town t;
    town_cut(&t, 1, 1, false);
    fl_program_set_job(t.s.cut->server[0], NULL);
    host_run(&t.host[0]);
    CHECK_INT(t.host[0].err, FL_EINVAL);
    CHECK(strstr(t.host[0].why, "is not a server's part of a job") != NULL);
    town_close(&t);
}

const fl_test fl_tests[] = {
    {"a trainer lives and completes", one_trainer_lives_and_completes},
    {"two trainers meet on two servers", two_trainers_meet_on_two_servers},
    {"an asynchronous push is acknowledged when it is applied",
     an_asynchronous_push_is_acknowledged_when_applied},
    {"a barrier waits for room in the images",
     a_barrier_waits_for_room_in_the_images},
    {"a trainer that hangs up is lost", a_trainer_that_hangs_up_is_lost},
    {"a trainer that fails says why", a_trainer_that_fails_says_why},
    {"SIGTERM ends a server cleanly", sigterm_ends_a_server_cleanly},
    {"a signal after the end of the job is no failure",
     a_signal_after_the_end_of_the_job_is_no_failure},
    {"SIGTERM ends the wait for a host name",
     sigterm_ends_the_wait_for_a_host_name},
    {"a poll ends a server", a_poll_ends_a_server},
    {"a server may open all files", a_server_may_open_all_files},
    {"a server names who has its port", a_taken_port_is_named},
    {"nonsense is answered with a sentence",
     nonsense_is_answered_with_a_sentence},
    {"nobody speaks for a server", nobody_speaks_for_a_server},
    {"another job learns nothing", another_job_learns_nothing},
    {"a server says who waits", a_server_says_who_waits},
    {"a program without a place is refused",
     a_program_without_a_place_is_refused},
    {0},
};
