/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends are in this process, over loopback. Events are recorded, and tests
 * wait for them, so that nothing depends on time. */
#include "net/rpc.h"

#include "base/test.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS = 400,
    PATIENCE = 300, /* seconds until a missing event fails the test */
    SECOND = 1000000000
};

typedef struct event {
    char
        what; /* h: heard, o: opened, w: word, g: hangup, d: done, p: dropped */
    uint64_t call; /* number of the server's call; for done, the tag */
    fl_rpc_end end;
    fl_err code;
    char text[300];
    size_t size;
    uint64_t sum;
} event;

/* Thread: lock. */
typedef struct scene {
    fl_rpc *server, *client;
    fl_rpc_peer *peer;
    int port;
    bool echo;  /* the server answers at once */
    bool moody; /* the size decides: does not answer, answers, refuses */
    fl_packet *kept;

    pthread_mutex_t lock;
    pthread_cond_t more;
    event events[EVENTS]; /* the first events */
    int n, count[128];    /* number of all events; of each kind */
} scene;

static uint64_t checksum(const fl_packet *p)
{
    uint64_t sum = 0;
    fl_span s;
    fl_bytes all = {p, 0, fl_packet_size(p)};
    for (size_t cursor = 0; fl_bytes_next(all, &cursor, &s);)
        for (size_t i = 0; i < s.size; i++)
            sum = sum * 31 + ((const unsigned char *)s.at)[i];
    return sum;
}

static void note(scene *t, event e)
{
    pthread_mutex_lock(&t->lock);
    if (t->n < EVENTS)
        t->events[t->n++] = e;
    t->count[(int)e.what]++;
    pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->lock);
}

/* Wait for the k-th event (from 0) of a kind. */
static event await(scene *t, char what, int k)
{
    event found = {0};
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    pthread_mutex_lock(&t->lock);
    for (int e = 0; !found.what && e != ETIMEDOUT;) {
        int seen = 0;
        for (int i = 0; i < t->n && !found.what; i++)
            if (t->events[i].what == what && seen++ == k)
                found = t->events[i];
        if (!found.what)
            e = pthread_cond_timedwait(&t->more, &t->lock, &end);
    }
    pthread_mutex_unlock(&t->lock);
    if (!found.what)
        fail_msg("no event %c number %d came", what, k);
    return found;
}

static int count(scene *t, char what)
{
    pthread_mutex_lock(&t->lock);
    int n = t->count[(int)what];
    pthread_mutex_unlock(&t->lock);
    return n;
}

static void note_packet(scene *t, char what, uint64_t call, const fl_packet *p)
{
    note(t, (event){.what = what,
                    .call = call,
                    .size = fl_packet_size(p),
                    .sum = checksum(p)});
}

static fl_packet *text(const char *s)
{
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, s, strlen(s));
    return p;
}

static void heard(void *self, const fl_rpc_method *by, uint64_t call,
                  const fl_packet *p)
{
    scene *t = self;
    note_packet(t, 'h', call, p);
    if (t->echo)
        fl_rpc_answer(t->server, call, fl_packet_ref((fl_packet *)p));
    else if (t->moody && fl_packet_size(p) % 3 == 1)
        fl_rpc_answer(t->server, call, text("yes"));
    else if (t->moody && fl_packet_size(p) % 3 == 2)
        fl_rpc_refuse(t->server, call, FL_EIO, "no");
}

static void heard_open(void *self, const fl_rpc_method *by, uint64_t call,
                       const fl_packet *p)
{
    if (p)
        note_packet(self, 'w', call, p);
    else
        note(self, (event){.what = 'o', .call = call});
}

static void hangup(void *self, uint64_t call)
{
    note(self, (event){.what = 'g', .call = call});
}

static void on_done(void *self, uint64_t tag, const fl_rpc_reply *reply)
{
    event e = {
        .what = 'd', .call = tag, .end = reply->end, .code = reply->code};
    snprintf(e.text, sizeof e.text, "%s", reply->text);
    if (reply->packet) {
        e.size = fl_packet_size(reply->packet);
        e.sum = checksum(reply->packet);
    }
    note(self, e);
}

static void on_word(void *self, uint64_t tag, const fl_packet *p)
{
    note_packet(self, 'v', tag, p);
}

static void on_drop(void *self)
{
    note(self, (event){.what = 'p'});
}

static const fl_rpc_method methods[] = {
    {"/test.Server/Ask", false, heard},
    {"/test.Server/Talk", true, heard_open},
    {"/test.Server/Two", true, heard_open, .most = 2},
    {0},
};

/* grpc_tls_test.c has all these tests once more, with certificates. */
#ifdef FL_TEST_TLS
#include "net/test_tls.h"

static fl_tls *new_tls(void)
{
    static fl_ca *ca; /* the same for all tests */
    if (!ca)
        CHECK_OK(fl_ca_new(&ca));
    return make_tls(ca, NULL, 1);
}
#else
static fl_tls *new_tls(void)
{
    return NULL;
}
#endif

static void set_up_at(scene *t, fl_rpc_opts limits, const char *listen)
{
    char address[64];
    memset(t, 0, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->more, NULL);
    limits.methods = methods;
    limits.self = t;
    limits.hangup = hangup;
    limits.tls = new_tls();
    CHECK_OK(fl_rpc_new(&limits, &t->server));
    CHECK_OK(fl_rpc_listen(t->server, listen, &t->port));
    CHECK_OK(fl_rpc_new(&(fl_rpc_opts){.tls = new_tls()}, &t->client));
    snprintf(address, sizeof address, "127.0.0.1:%d", t->port);
    t->peer = fl_rpc_peer_at(t->client, address);
}

static void set_up(scene *t, fl_rpc_opts limits)
{
    set_up_at(t, limits, "127.0.0.1:0");
}

static void tear_down(scene *t)
{
    fl_rpc_free(t->client);
    fl_rpc_free(t->server);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->more);
}

static uint64_t ask(scene *t, uint64_t tag, fl_packet *p, int64_t timeout)
{
    return fl_rpc_call(t->client, t->peer, "/test.Server/Ask", p, timeout,
                       (fl_rpc_done){on_done, t, tag});
}

static uint64_t talk(scene *t, uint64_t tag)
{
    return fl_rpc_open(t->client, t->peer, "/test.Server/Talk", on_word,
                       (fl_rpc_done){on_done, t, tag});
}

static void answers_have_the_bytes_of_requests(void)
{
    static const size_t sizes[] = {0, 1, 100, 70000, 5 << 20};
    scene t;
    char *memory = fl_mem_alloc(5 << 20);
    for (size_t i = 0; i < 5 << 20; i++)
        memory[i] = (char)(i * 2654435761u >> 13);
    set_up(&t, (fl_rpc_opts){0});
    t.echo = true;
    for (int i = 0; i < 5; i++) {
        fl_packet *p = fl_packet_new();
        fl_packet_copy(p, "head", 4);
        fl_packet_lend(p, memory, sizes[i], on_drop, &t);
        uint64_t want = checksum(p);
        ask(&t, (uint64_t)i, p, 0);
        event e = await(&t, 'd', i);
        CHECK_STR(e.text, "");
        CHECK_INT(e.end, FL_RPC_OK);
        CHECK_INT(e.size, sizes[i] + 4);
        CHECK(e.sum == want);
        CHECK_INT(count(&t, 'p'), i + 1); /* memory was dropped before done */
    }
    tear_down(&t);
    fl_mem_free(memory);
}

static void empty_message_is_a_message(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    t.echo = true;
    ask(&t, 7, fl_packet_new(), 0);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_OK);
    CHECK_INT(e.size, 0);
    tear_down(&t);
}

static void requests_are_answered_in_any_order(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){.threads = 2});
    for (uint64_t i = 0; i < 4; i++)
        ask(&t, i, text(&"...."[i]), 0);
    uint64_t call[5] = {0}; /* by size: 4 - tag */
    for (int i = 0; i < 4; i++) {
        event e = await(&t, 'h', i);
        call[e.size] = e.call;
    }
    for (int size = 1; size <= 4; size++) {
        fl_rpc_answer(t.server, call[size], text("ok"));
        CHECK_INT(await(&t, 'd', size - 1).call, 4 - size);
    }
    CHECK_INT(count(&t, 'g'), 0);
    fl_rpc_answer(t.server, call[1], text("again")); /* ignored */
    fl_rpc_refuse(t.server, call[2], FL_EIO, "again");
    fl_rpc_answer(t.server, 12345, text("never there"));
    tear_down(&t);
}

static void refusal_carries_code_and_sentence(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    for (int code = FL_EINVAL; code <= FL_ETYPE; code++) {
        int k = code - FL_EINVAL;
        ask(&t, (uint64_t)code, text("?"), 0);
        fl_rpc_refuse(t.server, await(&t, 'h', k).call, (fl_err)code,
                      "w: 3 rows, 4 wanted \xc3\xbc");
        event e = await(&t, 'd', k);
        CHECK_INT(e.end, FL_RPC_DENIED);
        CHECK_INT(e.code, code);
        CHECK_STR(e.text, "w: 3 rows, 4 wanted \xc3\xbc");
    }
    CHECK_INT(count(&t, 'g'), 0);
    tear_down(&t);
}

static void unknown_method_is_refused_with_those_there_are(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    fl_rpc_call(t.client, t.peer, "/test.Server/Nothing", text("?"), 0,
                (fl_rpc_done){on_done, &t, 0});
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_DENIED);
    CHECK_INT(e.code, FL_ENOENT);
    CHECK_STR(e.text, "no method /test.Server/Nothing here; there are "
                      "/test.Server/Ask, /test.Server/Talk, "
                      "/test.Server/Two, /grpc.health.v1.Health/Check");
    tear_down(&t);
}

static void peer_that_nobody_listens_at_refuses_at_once(void)
{
    scene t;
    char address[64];
    set_up(&t, (fl_rpc_opts){0});
    fl_rpc_free(t.server);
    t.server = NULL;
    snprintf(address, sizeof address, "127.0.0.1:%d", t.port);
    ask(&t, 1, text("?"), 0);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_REFUSED);
    CHECK_INT(e.code, FL_EIO);
    CHECK(e.text[0]);
    talk(&t, 2);
    CHECK_INT(await(&t, 'd', 1).end, FL_RPC_REFUSED);
    CHECK(fl_rpc_peer_at(t.client, address) == t.peer);
    tear_down(&t);
}

static void server_that_ends_breaks_its_calls(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    ask(&t, 1, text("?"), 0);
    talk(&t, 2);
    await(&t, 'h', 0);
    await(&t, 'o', 0);
    fl_rpc_free(t.server);
    t.server = NULL;
    CHECK_INT(count(&t, 'g'), 2);
    CHECK_INT(await(&t, 'd', 0).end, FL_RPC_BROKEN);
    CHECK_INT(await(&t, 'd', 1).end, FL_RPC_BROKEN);
    tear_down(&t);
}

#ifndef FL_TEST_TLS /* this server has no certificate */
/* A server that accepts a call and dies: it sends the least that HTTP/2 needs,
 * reads up to the first HEADERS frame, and resets the connection. */
static void die_in_a_call(int listening)
{
    static const char settings[9] = {0, 0, 0, 4};
    struct linger reset = {1, 0};
    struct timeval patience = {PATIENCE, 0};
    unsigned char head[24] = {0};
    int fd = accept(listening, NULL, NULL);
    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    CHECK_INT(write(fd, settings, 9), 9);
    CHECK_INT(recv(fd, head, 24, MSG_WAITALL), 24);
    while (head[3] != 1) {
        char rest[1 << 16];
        CHECK_INT(recv(fd, head, 9, MSG_WAITALL), 9);
        ssize_t n = head[0] << 16 | head[1] << 8 | head[2];
        CHECK(n <= (ssize_t)sizeof rest);
        CHECK_INT(recv(fd, rest, (size_t)n, MSG_WAITALL), n);
    }
    close(fd);
}

static void peer_that_dies_breaks_its_call(void)
{
    scene t;
    char address[64];
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(!bind(fd, (struct sockaddr *)&at, size) && !listen(fd, 4));
    CHECK(!getsockname(fd, (struct sockaddr *)&at, &size));
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
    set_up(&t, (fl_rpc_opts){0});
    t.peer = fl_rpc_peer_at(t.client, address);
    ask(&t, 1, text("?"), 0);
    die_in_a_call(fd);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_BROKEN);
    CHECK_INT(e.code, FL_EIO);
    tear_down(&t);
    close(fd);
}
#endif

static void call_is_late_when_its_time_is_over(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    ask(&t, 1, text("?"), SECOND / 20);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_LATE);
    CHECK_INT(e.code, FL_ETIMEOUT);
    tear_down(&t);
}

static void cancelled_call_is_heard_of_on_both_sides(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    uint64_t own = ask(&t, 9, text("?"), 0);
    uint64_t served = await(&t, 'h', 0).call;
    fl_rpc_cancel(t.client, own);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_CANCELLED);
    CHECK_INT(e.call, 9);
    CHECK(await(&t, 'g', 0).call == served);
    fl_rpc_answer(t.server, served, text("too late"));
    fl_rpc_cancel(t.client, own);
    tear_down(&t);
    CHECK_INT(count(&t, 'd'), 1);
    CHECK_INT(count(&t, 'g'), 1);
}

static void open_call_speaks_both_ways_in_order(void)
{
    scene t;
    char words[] = "abcdefgh";
    set_up(&t, (fl_rpc_opts){.threads = 2});
    uint64_t own = talk(&t, 3);
    uint64_t served = await(&t, 'o', 0).call;
    for (int i = 0; i < 8; i++) {
        fl_rpc_say(t.client, own, text(words + i));
        fl_rpc_say(t.server, served, text(words + i));
    }
    for (int i = 0; i < 8; i++) {
        CHECK_INT(await(&t, 'w', i).size, 8 - i);
        CHECK_INT(await(&t, 'v', i).size, 8 - i);
    }
    CHECK_INT(count(&t, 'g') + count(&t, 'd'), 0);
    fl_rpc_cancel(t.client, own);
    CHECK_INT(await(&t, 'd', 0).end, FL_RPC_CANCELLED);
    CHECK(await(&t, 'g', 0).call == served);
    fl_rpc_say(t.client, own, text("nobody"));
    fl_rpc_say(t.server, served, text("nobody"));
    tear_down(&t);
    CHECK_INT(count(&t, 'g'), 1);
}

static void open_call_waits_for_answers(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    const uint64_t own = fl_rpc_open(t.client, t.peer, "/test.Server/Two",
                                     on_word, (fl_rpc_done){on_done, &t, 1});
    const uint64_t served = await(&t, 'o', 0).call;
    for (int i = 0; i < 4; i++)
        fl_rpc_say(t.client, own, text(&"abcd"[i]));
    await(&t, 'w', 1);
    ask(&t, 2, text("?"), 0);
    await(&t, 'h', 0);
    CHECK_INT(count(&t, 'w'), 2);
    for (int i = 2; i < 4; i++) { /* the call goes on, a word at a time */
        fl_rpc_answer(t.server, served, text("answer"));
        CHECK_INT(await(&t, 'w', i).size, 4 - i);
        CHECK_INT(await(&t, 'v', i - 2).size, 6);
        CHECK_INT(count(&t, 'w'), i + 1);
    }
    CHECK_INT(count(&t, 'g') + count(&t, 'd'), 0);
    tear_down(&t);
}

static void open_call_ends_with_a_refusal_after_its_words(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    talk(&t, 3);
    uint64_t served = await(&t, 'o', 0).call;
    for (int i = 0; i < 5; i++)
        fl_rpc_say(t.server, served, text("word"));
    fl_rpc_refuse(t.server, served, FL_EINTR, "the session was fenced");
    event e = await(&t, 'd', 0);
    CHECK_INT(count(&t, 'v'), 5);
    CHECK_INT(e.end, FL_RPC_DENIED);
    CHECK_INT(e.code, FL_EINTR);
    CHECK_STR(e.text, "the session was fenced");
    CHECK(await(&t, 'g', 0).call == served);
    tear_down(&t);
}

static void client_that_ends_hangs_up(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    talk(&t, 1);
    ask(&t, 2, text("?"), 0);
    await(&t, 'o', 0);
    await(&t, 'h', 0);
    fl_rpc_free(t.client);
    t.client = NULL;
    CHECK_INT(count(&t, 'd'), 2);
    CHECK_INT(await(&t, 'd', 0).end, FL_RPC_CANCELLED);
    await(&t, 'g', 0);
    await(&t, 'g', 1);
    tear_down(&t);
}

static void message_above_the_limit_is_refused(void)
{
    scene t;
    char big[3000] = {0};
    set_up(&t, (fl_rpc_opts){.max_message = 2000});
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, big, sizeof big);
    ask(&t, 1, fl_packet_ref(p), 0);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_DENIED);
    CHECK_INT(e.code, FL_ENOMEM);
    CHECK(strstr(e.text, "3000") && strstr(e.text, "2000"));
    CHECK_INT(count(&t, 'h'), 0);
    ask(&t, 2, text("small"), 0); /* the connection still works */
    fl_rpc_answer(t.server, await(&t, 'h', 0).call, p);
    CHECK_INT(await(&t, 'd', 1).end, FL_RPC_DENIED); /* a large answer */
    tear_down(&t);
}

static void calls_above_the_limit_are_refused(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){.max_calls = 2});
    ask(&t, 1, text("?"), 0);
    talk(&t, 2);
    uint64_t first = await(&t, 'h', 0).call;
    await(&t, 'o', 0);
    ask(&t, 3, text("?"), 0);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.call, 3);
    CHECK_INT(e.end, FL_RPC_DENIED);
    CHECK_STR(e.text, "2 calls are being served, no more are taken");
    fl_rpc_answer(t.server, first, text("ok"));
    CHECK_INT(await(&t, 'd', 1).call, 1);
    tear_down(&t);
}

static void ask_again_when_cancelled(void *self, uint64_t tag,
                                     const fl_rpc_reply *reply)
{
    scene *t = self;
    on_done(self, tag, reply);
    if (tag)
        fl_rpc_call(t->client, t->peer, "/test.Server/Ask", text("?"), 0,
                    (fl_rpc_done){ask_again_when_cancelled, t, tag - 1});
}

static void freed_client_ends_calls_made_meanwhile(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){0});
    fl_rpc_call(t.client, t.peer, "/test.Server/Ask", text("?"), 0,
                (fl_rpc_done){ask_again_when_cancelled, &t, 3});
    await(&t, 'h', 0);
    fl_rpc_free(t.client);
    t.client = NULL;
    CHECK_INT(count(&t, 'd'), 4);
    for (int i = 0; i < 4; i++)
        CHECK_INT(await(&t, 'd', i).end, FL_RPC_CANCELLED);
    tear_down(&t);
}

static void freed_client_drops_what_it_lent(void)
{
    enum {
        SIZE = 32 << 20 /* more than socket buffers hold */
    };
    scene t;
    char *memory = fl_mem_alloc(SIZE);
    set_up(&t, (fl_rpc_opts){0});
    uint64_t own = talk(&t, 1); /* its second word is not read */
    await(&t, 'o', 0);
    for (int i = 0; i < 4; i++) {
        fl_packet *p = fl_packet_new();
        fl_packet_lend(p, memory, SIZE, on_drop, &t);
        fl_rpc_say(t.client, own, p);
    }
    fl_rpc_free(t.client);
    t.client = NULL;
    CHECK_INT(count(&t, 'p'), 4);
    tear_down(&t);
    fl_mem_free(memory);
}

static void every_call_ends_once_whatever_happens(void)
{
    enum {
        CALLS = 600
    };
    scene t;
    static const char memory[40000];
    set_up(&t, (fl_rpc_opts){.threads = 2, .max_calls = 100});
    t.moody = true;
    for (int i = 0; i < CALLS; i++) {
        fl_packet *p = fl_packet_new();
        fl_packet_lend(p, memory, (size_t)(30000 + i), on_drop, &t);
        uint64_t call = ask(&t, (uint64_t)i, p, i % 7 ? 0 : SECOND / 1000);
        if (i % 4 == 0)
            fl_rpc_cancel(t.client, call);
    }
    fl_rpc_free(t.client);
    t.client = NULL;
    CHECK_INT(count(&t, 'd'), CALLS);
    CHECK_INT(count(&t, 'p'), CALLS);
    tear_down(&t);
}

static void keep_answer(void *self, uint64_t tag, const fl_rpc_reply *reply)
{
    scene *t = self;
    t->kept = fl_packet_ref((fl_packet *)reply->packet);
    on_done(self, tag, reply);
}

static void packet_outlives_the_network(void)
{
    scene t;
    char words[5000];
    memset(words, 'w', sizeof words);
    set_up(&t, (fl_rpc_opts){0});
    t.echo = true;
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, words, sizeof words);
    fl_rpc_call(t.client, t.peer, methods[0].name, fl_packet_ref(p), 0,
                (fl_rpc_done){keep_answer, &t, 0});
    CHECK_INT(await(&t, 'd', 0).end, FL_RPC_OK);
    tear_down(&t);
    CHECK_INT(fl_packet_size(t.kept), sizeof words);
    CHECK(checksum(t.kept) == checksum(p));
    fl_packet_unref(t.kept);
    fl_packet_unref(p);
}

static int threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Wait until gRPC's threads have ended, which happens a moment after shutdown.
 */
static bool alone_soon(void)
{
    for (int i = 0; i < PATIENCE * 100 && threads_now() > 1; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    return threads_now() == 1;
}

static void nothing_is_left_when_freed(void)
{
    scene t;
    CHECK(alone_soon());
    set_up(&t, (fl_rpc_opts){.threads = 3});
    CHECK(threads_now() > 4);
    ask(&t, 1, text("?"), 0);
    await(&t, 'h', 0);
    tear_down(&t);
    fl_rpc_free(NULL);
    CHECK(alone_soon());
}

static void taken_port_names_who_has_it(void)
{
    scene t;
    fl_rpc *other;
    int port;
    char address[64], want[100];
    set_up(&t, (fl_rpc_opts){0});
    snprintf(address, sizeof address, "127.0.0.1:%d", t.port);
    snprintf(want, sizeof want, "port %d on 127.0.0.1 is taken by process %d (",
             t.port, (int)getpid());
    CHECK_OK(fl_rpc_new(&(fl_rpc_opts){.methods = methods}, &other));
    CHECK_ERR(fl_rpc_listen(other, address, &port), FL_EIO, want);
    CHECK_ERR(fl_rpc_listen(other, "127.0.0.1", &port), FL_EINVAL, "host:port");
    CHECK_ERR(fl_rpc_listen(other, "192.0.2.1:0", &port), FL_EIO,
              "port 0 on 192.0.2.1 cannot be used");
    CHECK_ERR(fl_rpc_listen(other, "no.such.host.invalid:0", &port), FL_ENOENT,
              "no.such.host.invalid");
    CHECK_OK(fl_rpc_listen(other, "localhost:0", &port)); /* still works */
    CHECK(port > 0 && port != t.port);
    CHECK_ERR(fl_rpc_listen(other, "localhost:0", &port), FL_EINVAL, "already");
    fl_rpc_free(other);
    tear_down(&t);
}

static void health_is_told_to_anyone(void)
{
    scene t;
    char word[2];
    set_up(&t, (fl_rpc_opts){.max_calls = 1});
    talk(&t, 0); /* the limit is reached; health checks do not count */
    await(&t, 'o', 0);
    for (int i = 0; i < 2; i++) {
        word[0] = 8;
        word[1] = i ? 1 : 2;
        fl_packet *want = fl_packet_new();
        fl_packet_copy(want, word, 2);
        fl_rpc_healthy(t.server, i);
        fl_rpc_call(t.client, t.peer, "/grpc.health.v1.Health/Check",
                    fl_packet_new(), 0, (fl_rpc_done){on_done, &t, 0});
        event e = await(&t, 'd', i);
        CHECK_INT(e.end, FL_RPC_OK);
        CHECK_INT(e.size, 2);
        CHECK(e.sum == checksum(want));
        fl_packet_unref(want);
    }
    tear_down(&t);
}

/* Make a separate client for the server of the scene. */
static void bring_client(scene *t, const char *token)
{
    char address[64];
    fl_rpc_free(t->client);
    CHECK_OK(fl_rpc_new(&(fl_rpc_opts){.token = token, .tls = new_tls()},
                        &t->client));
    snprintf(address, sizeof address, "127.0.0.1:%d", t->port);
    t->peer = fl_rpc_peer_at(t->client, address);
}

enum {
    STRANGERS_CALLS = 4
};

static void caller_with_the_token_is_a_member(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){.token = "sesame"});
    bring_client(&t, "sesame");
    for (uint64_t i = 0; i <= STRANGERS_CALLS; i++)
        ask(&t, i, text("?"), 0);
    const event e = await(&t, 'h', STRANGERS_CALLS);
    CHECK_INT(fl_rpc_standing(t.server, e.call), FL_MEMBER);
    CHECK_INT(count(&t, 'd'), 0);
    CHECK_OK(fl_rpc_check(t.server));
    tear_down(&t);
}

/* A socket of IPv6 has other names for callers of IPv4. */
static void server_knows_its_callers(void)
{
    static const char *const cases[][2] = {{"127.0.0.1:0", "127.0.0.1:"},
                                           {"[::]:0", "[::ffff:127.0.0.1]:"}};
    const int six = socket(AF_INET6, SOCK_STREAM, 0);
    for (int i = 0; i < (six < 0 ? 1 : 2); i++) {
        scene t;
        char caller[80];
        set_up_at(&t, (fl_rpc_opts){.token = "sesame"}, cases[i][0]);
        bring_client(&t, "sesame");
        ask(&t, 0, text("?"), 0);
        const event e = await(&t, 'h', 0);
        fl_rpc_caller(t.server, e.call, caller, sizeof caller);
        CHECK(!strncmp(caller, cases[i][1], strlen(cases[i][1])));
        CHECK_INT(fl_rpc_standing(t.server, e.call), FL_MEMBER);
        tear_down(&t);
    }
    close(six);
}

/* Calls of strangers do not count against the limit of members. */
static void strangers_have_few_calls(void)
{
    scene t;
    set_up(&t, (fl_rpc_opts){.token = "sesame", .max_calls = 1});
    bring_client(&t, "Sesame");
    for (uint64_t i = 0; i <= STRANGERS_CALLS; i++)
        ask(&t, i, text("?"), 0);
    event e = await(&t, 'd', 0);
    CHECK_INT(e.end, FL_RPC_DENIED);
    CHECK_INT(e.code, FL_ENOMEM);
    CHECK_STR(e.text, "as many calls as a stranger may have are being "
                      "served, no more are taken");
    e = await(&t, 'h', STRANGERS_CALLS - 1);
    CHECK_INT(fl_rpc_standing(t.server, e.call), FL_LOCAL);
    fl_rpc_trust(t.server, e.call); /* now it is a member */
    CHECK_INT(fl_rpc_standing(t.server, e.call), FL_MEMBER);
    ask(&t, 100, text("?"), 0);
    await(&t, 'h', STRANGERS_CALLS);
    CHECK_INT(count(&t, 'd'), 1);
    tear_down(&t);
}

/* The peak memory of this process, in bytes. */
static size_t most_memory(void)
{
    struct rusage u;
    CHECK(!getrusage(RUSAGE_SELF, &u));
    return (size_t)u.ru_maxrss << 10;
}

/* A packet with the same memory n times. */
static fl_packet *large(const char *memory, size_t size, int n)
{
    fl_packet *p = fl_packet_new();
    for (int i = 0; i < n; i++)
        fl_packet_lend(p, memory, size, NULL, NULL);
    return p;
}

/* The stranger gets no reason: an incomplete message cannot be answered. */
static void stranger_with_a_large_message_is_hung_up_on(void)
{
    enum {
        MIB = 1 << 20
    };
    scene t;
    char *memory = fl_mem_alloc(16 * MIB);
    set_up(&t, (fl_rpc_opts){.token = "sesame"});
    bring_client(&t, NULL);
    const size_t before = most_memory();
    ask(&t, 0, large(memory, 16 * MIB, 100), 0);
    CHECK_INT(await(&t, 'd', 0).end, FL_RPC_BROKEN);
    CHECK(most_memory() - before < 200 * MIB);
    tear_down(&t);
    fl_mem_free(memory);
}

/* All messages are sent at once on a new connection. */
static void member_may_begin_with_large_messages(void)
{
    enum {
        MIB = 1 << 20,
        CALLS = 64
    };
    scene t;
    char *memory = fl_mem_alloc(4 * MIB);
    set_up(&t, (fl_rpc_opts){.token = "sesame"});
    bring_client(&t, "sesame");
    for (int i = 0; i < CALLS; i++)
        ask(&t, (uint64_t)i, large(memory, 4 * MIB, 1), 0);
    for (int i = 0; i < CALLS; i++)
        fl_rpc_answer(t.server, await(&t, 'h', i).call, text("ok"));
    for (int i = 0; i < CALLS; i++)
        CHECK_INT(await(&t, 'd', i).end, FL_RPC_OK);
    tear_down(&t);
    fl_mem_free(memory);
}

static void unix_socket_serves_and_refuses(void)
{
    scene t;
    fl_rpc *server;
    int port = -1;
    char address[300];
    set_up(&t, (fl_rpc_opts){0});
    snprintf(address, sizeof address, "unix:%s/socket", fl_test_dir());
    t.peer = fl_rpc_peer_at(t.client, address);
    ask(&t, 0, text("?"), 0);
    CHECK_INT(await(&t, 'd', 0).end, FL_RPC_REFUSED);
    fl_rpc_opts opts = {.methods = methods, .self = &t, .hangup = hangup};
    CHECK_OK(fl_rpc_new(&opts, &server));
    CHECK_OK(fl_rpc_listen(server, address, &port));
    CHECK_INT(port, 0);
    t.peer = fl_rpc_peer_at(t.client, address);
    int asked = 0; /* requests; each is received or refused */
    while (!count(&t, 'h')) {
        ask(&t, (uint64_t)++asked, text("?"), 0);
        do
            nanosleep(&(struct timespec){0, 10000000}, NULL);
        while (!count(&t, 'h') && count(&t, 'd') <= asked);
    }
    fl_rpc_free(server);
    CHECK_INT(await(&t, 'd', asked).end, FL_RPC_BROKEN);
    tear_down(&t);
}

#ifdef FL_TEST_TLS
/* One question to a server that may not be there. */
static fl_rpc_end ask_once(scene *t, fl_packet *p)
{
    const int call = count(t, 'd');
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    ask(t, (uint64_t)call, p, 0);
    return await(t, 'd', call).end;
}

/* Ask with a large message until it is answered: four ciphers take each record,
 * those of the client and of the server in both directions. */
static void check_plugin(scene *t)
{
    enum {
        RECORDS = 40
    };
    static char big[RECORDS << 14]; /* a record of TLS has at most 16 KB */
    uint64_t before;
    fl_rpc_end end;
    do {
        fl_packet *p = fl_packet_new();
        fl_packet_copy(p, big, sizeof big);
        before = count_plugin();
        end = ask_once(t, p);
    } while (end == FL_RPC_REFUSED || end == FL_RPC_BROKEN);
    CHECK_INT(end, FL_RPC_OK);
    CHECK(count_plugin() - before >= 4 * RECORDS);
}

/* A client that looks for its server in vain makes other connections, on
 * threads of gRPC. Those have the cipher, too. */
static void plugin_is_used_by_all_connections(void)
{
    scene t;
    char address[64];
    need_plugin();
    set_up(&t, (fl_rpc_opts){0});
    t.echo = true;
    check_plugin(&t);
    fl_rpc_free(t.server);
    for (int i = 0; i < 15; i++)
        CHECK(ask_once(&t, text("?")) != FL_RPC_OK);
    const fl_rpc_opts again = {
        .methods = methods, .self = &t, .hangup = hangup, .tls = new_tls()};
    snprintf(address, sizeof address, "127.0.0.1:%d", t.port);
    CHECK_OK(fl_rpc_new(&again, &t.server));
    CHECK_OK(fl_rpc_listen(t.server, address, &t.port));
    check_plugin(&t);
    tear_down(&t);
}
#endif

const fl_test fl_tests[] = {
    /* First: gRPC keeps threads of its own for a while where a client was
     * freed in the middle of a TLS handshake, as other tests do. */
    {"nothing is left when freed", nothing_is_left_when_freed},
    {"answers have the bytes of requests", answers_have_the_bytes_of_requests},
    {"an empty message is a message", empty_message_is_a_message},
    {"requests are answered in any order", requests_are_answered_in_any_order},
    {"a refusal carries code and sentence", refusal_carries_code_and_sentence},
    {"an unknown method is refused with those there are",
     unknown_method_is_refused_with_those_there_are},
    {"a peer that nobody listens at refuses at once",
     peer_that_nobody_listens_at_refuses_at_once},
    {"a server that ends breaks its calls", server_that_ends_breaks_its_calls},
#ifndef FL_TEST_TLS
    {"a peer that dies breaks its call", peer_that_dies_breaks_its_call},
#endif
    {"a call is late when its time is over",
     call_is_late_when_its_time_is_over},
    {"a cancelled call is heard of on both sides",
     cancelled_call_is_heard_of_on_both_sides},
    {"an open call speaks both ways in order",
     open_call_speaks_both_ways_in_order},
    {"an open call is not read while too many words have no answer",
     open_call_waits_for_answers},
    {"an open call ends with a refusal after its words",
     open_call_ends_with_a_refusal_after_its_words},
    {"a client that ends hangs up", client_that_ends_hangs_up},
    {"a message above the limit is refused",
     message_above_the_limit_is_refused},
    {"calls above the limit are refused", calls_above_the_limit_are_refused},
    {"a freed client ends calls made meanwhile",
     freed_client_ends_calls_made_meanwhile},
    {"a freed client drops what it lent", freed_client_drops_what_it_lent},
    {"every call ends once whatever happens",
     every_call_ends_once_whatever_happens},
    {"a packet outlives the network", packet_outlives_the_network},
    {"a taken port names who has it", taken_port_names_who_has_it},
    {"health is told to anyone", health_is_told_to_anyone},
    {"a caller with the token is a member", caller_with_the_token_is_a_member},
    {"a server knows its callers", server_knows_its_callers},
    {"strangers have few calls", strangers_have_few_calls},
    {"a stranger with a large message is hung up on",
     stranger_with_a_large_message_is_hung_up_on},
    {"a member may begin with large messages",
     member_may_begin_with_large_messages},
    {"a unix socket serves and refuses", unix_socket_serves_and_refuses},
#ifdef FL_TEST_TLS
    {"the plug-in is used by all connections",
     plugin_is_used_by_all_connections},
#endif
    {0},
};
