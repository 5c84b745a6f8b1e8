/* SPDX-License-Identifier: Apache-2.0 */
/* Real sockets on ports that the system chooses, and a fake clock. */
#include "cluster/ports.h"

#include "base/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* A bound port that may listen. */
typedef struct port {
    int fd;
    char endpoint[32];
} port;

static port bound(void)
{
    port p = {socket(AF_INET, SOCK_STREAM, 0)};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    CHECK(!bind(p.fd, (struct sockaddr *)&at, size));
    CHECK(!getsockname(p.fd, (struct sockaddr *)&at, &size));
    snprintf(p.endpoint, sizeof p.endpoint, "127.0.0.1:%d", ntohs(at.sin_port));
    return p;
}

static port listening(void)
{
    port p = bound();
    CHECK(!listen(p.fd, 8) && !fcntl(p.fd, F_SETFL, O_NONBLOCK));
    return p;
}

enum {
    PORTS = 4
};
static const char serves[] = "\0\0\0\4\0\0\0\0\0"
                             "\0\0\7\0\0\0\0\0\1\0\0\0\0\2\10\1";

/* A world in which sleeps move the clock and log lines are kept. */
typedef struct scene {
    fl_fake_clock clock;
    fl_ports_world world;
    fl_str lines;
    int server[PORTS]; /* sockets that answer as parameter servers */
    const char *says;
    int client[PORTS * 8], clients;
    int64_t at; /* when to listen on `late`; 0: never */
    int late;
    int polls, stop; /* number of polls; the poll that ends the wait */
} scene;

/* Answer every connection that has arrived. */
static void answer_all(scene *s)
{
    const char *says = s->says ? s->says : serves;
    const size_t n = s->says ? strlen(says) : sizeof serves - 1;
    for (int i = 0; i < PORTS && s->server[i]; i++) {
        const int fd = accept4(s->server[i], NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0)
            continue;
        CHECK(s->clients < PORTS * 8);
        s->client[s->clients++] = fd;
        CHECK_INT(send(fd, says, n, MSG_NOSIGNAL), n);
    }
}

static bool is_under_way(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) &&
           (info.tcpi_state == TCP_SYN_SENT ||
            (info.tcpi_state != TCP_LISTEN && info.tcpi_unacked));
}

/* Wait until all that this process has sent has arrived, so that the fake clock
 * is not ahead of the kernel. */
static void settle(void)
{
    for (int fd = 0; fd < 256; fd++)
        while (is_under_way(fd))
            usleep(100);
}

static void nap(void *user, int64_t ns)
{
    scene *s = user;
    settle();
    answer_all(s);
    settle();
    fl_fake_clock_move(&s->clock, ns);
    if (s->at && s->clock.ns >= s->at) {
        CHECK(!listen(s->late, 8));
        s->at = 0;
    }
}

static void say(void *user, const char *line)
{
    scene *s = user;
    fl_str_printf(&s->lines, "%s\n", line);
}

static int ask(void *user)
{
    scene *s = user;
    return ++s->polls == s->stop;
}

static void end(scene *s)
{
    for (int i = 0; i < s->clients; i++)
        close(s->client[i]);
    fl_str_fini(&s->lines);
}

static void begin(scene *s)
{
    *s = (scene){.lines = {0}};
    fl_fake_clock_init(&s->clock, 0);
    s->world = (fl_ports_world){&s->clock.clock, nap, say, s};
}

static fl_err wait_for(scene *s, int n, const char *const *endpoints,
                       int64_t limit_ms)
{
    const fl_wait_opts opts = {limit_ms, ask, s};
    return fl_ports_wait(n, endpoints, &opts, &s->world);
}

static void returns_when_all_are_up(void)
{
    scene s;
    port a = listening(), b = listening();
    begin(&s);
    s.server[0] = a.fd;
    s.server[1] = b.fd;
    CHECK_OK(wait_for(&s, 2, (const char *[]){a.endpoint, b.endpoint}, 0));
    CHECK(s.clock.ns < SECOND);
    CHECK(!s.lines.at);
    end(&s);
    close(a.fd);
    close(b.fd);
}

static void counts_who_is_there_until_all_are(void)
{
    scene s;
    port a = listening(), b = bound();
    char want[300];
    begin(&s);
    s.server[0] = a.fd;
    s.server[1] = b.fd;
    CHECK(!fcntl(b.fd, F_SETFL, O_NONBLOCK));
    s.late = b.fd;
    s.at = 12 * SECOND;
    CHECK_OK(wait_for(&s, 2, (const char *[]){a.endpoint, b.endpoint}, 0));
    CHECK(s.clock.ns >= 12 * SECOND && s.clock.ns < 13 * SECOND);
    snprintf(want, sizeof want,
             "1 of 2 servers up, waiting for %s (refused), 1 s of 600\n"
             "1 of 2 servers up, waiting for %s (refused), 6 s of 600\n"
             "1 of 2 servers up, waiting for %s (refused), 11 s of 600\n",
             b.endpoint, b.endpoint, b.endpoint);
    CHECK_STR(s.lines.at, want);
    end(&s);
    close(a.fd);
    close(b.fd);
}

/* Check the error of a wait for a listener that answers `says`. */
static void check_foreign(const char *says, const char *want)
{
    scene s;
    port a = listening();
    char line[160];
    begin(&s);
    s.server[0] = a.fd;
    s.says = says;
    snprintf(line, sizeof line, "0 of 1 servers up, waiting for %s (%s)",
             a.endpoint, want);
    CHECK_ERR(wait_for(&s, 1, (const char *[]){a.endpoint}, 2500), FL_ETIMEOUT,
              line);
    end(&s);
    close(a.fd);
}

static void counts_parameter_servers_only(void)
{
    check_foreign("HTTP/1.1 400 Bad Request\r\n\r\n",
                  "something else than a parameter server listens there");
    check_foreign("", "it accepts and says nothing");
}

static void one_question_tells_what_is_there(void)
{
    port b = bound();
    CHECK_ERR(fl_ports_ask(b.endpoint), FL_EIO, "(refused)");
    CHECK_ERR(fl_ports_ask("ps0.invalid:1"), FL_EIO,
              "no server answers at ps0.invalid:1 (name not known)");
    CHECK_ERR(fl_ports_ask("127.0.0.1"), FL_EINVAL, "expected host:port");
    close(b.fd);
}

static void gives_up_at_the_limit(void)
{
    scene s;
    port a = listening(), b = bound();
    char want[128];
    begin(&s);
    s.server[0] = a.fd;
    snprintf(want, sizeof want,
             "1 of 2 servers up, waiting for %s (refused), given up after 3 s",
             b.endpoint);
    CHECK_ERR(wait_for(&s, 2, (const char *[]){a.endpoint, b.endpoint}, 3000),
              FL_ETIMEOUT, want);
    end(&s);
    begin(&s);
    CHECK_ERR(wait_for(&s, 1, (const char *[]){b.endpoint}, 0), FL_ETIMEOUT,
              "given up after 600 s");
    fl_str_fini(&s.lines);
    close(a.fd);
    close(b.fd);
}

static void takes_its_limit_from_the_job(void)
{
    scene s;
    port b = bound();
    begin(&s);
    setenv("FLUID_START", "2.5", 1);
    CHECK_ERR(wait_for(&s, 1, (const char *[]){b.endpoint}, 0), FL_ETIMEOUT,
              "given up after 2 s");
    setenv("FLUID_START", "soon", 1);
    CHECK_ERR(wait_for(&s, 1, (const char *[]){b.endpoint}, 0), FL_EINVAL,
              "FLUID_START");
    unsetenv("FLUID_START");
    fl_str_fini(&s.lines);
    close(b.fd);
}

static void ends_when_asked_to(void)
{
    scene s;
    port b = bound();
    begin(&s);
    s.stop = 3;
    CHECK_ERR(wait_for(&s, 1, (const char *[]){b.endpoint}, 0), FL_EINTR,
              "(refused), interrupted after 0 s");
    CHECK_INT(s.polls, 3);
    close(b.fd);
}

static void names_some_and_counts_the_others(void)
{
    scene s;
    port b = bound();
    const char *all[] = {b.endpoint, b.endpoint, b.endpoint,
                         b.endpoint, b.endpoint, b.endpoint};
    begin(&s);
    CHECK_ERR(wait_for(&s, 6, all, 10), FL_ETIMEOUT, "(refused) and 2 more, ");
    close(b.fd);
}

static void doubts_the_list_after_a_while(void)
{
    scene s;
    port b = bound();
    begin(&s);
    CHECK_ERR(wait_for(&s, 1, (const char *[]){b.endpoint}, 25000), FL_ETIMEOUT,
              "given up after 25 s");
    CHECK(strstr(s.lines.at, "(refused), 16 s of 25\n") != NULL);
    CHECK(strstr(s.lines.at,
                 "(refused), 21 s of 25; is the list of servers "
                 "the same for all processes of the job?\n") != NULL);
    fl_str_fini(&s.lines);
    close(b.fd);
}

static void asks_again_for_a_name(void)
{
    scene s;
    char text[FL_ADDRESS_TEXT];
    begin(&s);
    CHECK_ERR(wait_for(&s, 1, (const char *[]){"ps0.invalid:6174"}, 1500),
              FL_ETIMEOUT, "waiting for ps0.invalid:6174 (name not known)");
    CHECK_STR(s.lines.at, "0 of 1 servers up, waiting for ps0.invalid:6174 "
                          "(name not known), 1 s of 1\n");
    fl_str_fini(&s.lines);
    begin(&s);
    s.stop = 2;
    const fl_wait_opts opts = {0, ask, &s};
    CHECK_ERR(fl_ports_resolve("ps0.invalid:1", &opts, &s.world, text),
              FL_EINTR,
              "ps0.invalid:1: "); /* the rest depends on when the poll came */
    CHECK_OK(fl_ports_resolve("127.0.0.7:1", &opts, &s.world, text));
    CHECK_STR(text, "127.0.0.7:1");
}

static void refuses_what_is_no_endpoint(void)
{
    CHECK_ERR(fl_wait_ports(1, (const char *[]){"ps0"}, NULL), FL_EINVAL,
              "\"ps0\" has no port, expected host:port");
}

/* A connect to a free port may connect to itself. */
static void is_not_fooled_by_itself(void)
{
    scene s;
    port b = bound();
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    getsockname(b.fd, (struct sockaddr *)&at, &size);
    CHECK(
        !connect(b.fd, (struct sockaddr *)&at, size)); /* connects to itself */
    close(b.fd);
    begin(&s);
    CHECK_ERR(wait_for(&s, 1, (const char *[]){b.endpoint}, 60000), FL_ETIMEOUT,
              "(refused)");
    fl_str_fini(&s.lines);
}

const fl_test fl_tests[] = {
    {"a wait returns when all servers are up", returns_when_all_are_up},
    {"a wait counts who is there", counts_who_is_there_until_all_are},
    {"a wait counts parameter servers only", counts_parameter_servers_only},
    {"one question tells what is there", one_question_tells_what_is_there},
    {"a wait gives up at its limit", gives_up_at_the_limit},
    {"a wait takes its limit from the job", takes_its_limit_from_the_job},
    {"a wait ends when it is asked to", ends_when_asked_to},
    {"a wait names some and counts the others",
     names_some_and_counts_the_others},
    {"a wait asks again for a name", asks_again_for_a_name},
    {"a wait refuses what is no endpoint", refuses_what_is_no_endpoint},
    {"a wait is not fooled by a connection to itself", is_not_fooled_by_itself},
    {"a wait doubts the list after a while", doubts_the_list_after_a_while},
    {0},
};
