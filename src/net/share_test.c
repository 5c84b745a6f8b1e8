/* SPDX-License-Identifier: Apache-2.0 */
#include "net/share.h"

#include "base/test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const unsigned char name[FL_SHARE_NAME] = {7, 1, 4, 250};

static void make_pair(int end[2])
{
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end));
}

static void close_pair(const int end[2])
{
    close(end[0]);
    close(end[1]);
}

static void both_ends_see_the_same_memory(void)
{
    int end[2];
    make_pair(end);
    CHECK(!fl_share_receive(end[1], 8192));
    CHECK_INT(errno, EAGAIN);
    char *a = fl_share_send(end[0], 8192);
    char *b = fl_share_receive(end[1], 8192);
    CHECK(a && b && a != b);
    a[8191] = 42;
    CHECK_INT(b[8191], 42);
    fl_share_end(a, 8192);
    fl_share_end(b, 8192);
    close_pair(end);
}

static void refuses_what_is_not_such_memory(void)
{
    int end[2];
    make_pair(end);
    CHECK_INT(send(end[0], "x", 1, 0), 1);
    CHECK(!fl_share_receive(end[1], 8192));
    CHECK_INT(errno, ENOENT);
    void *small = fl_share_send(end[0], 4096);
    CHECK(!fl_share_receive(end[1], 8192));
    CHECK_INT(errno, EPROTO);
    fl_share_end(small, 4096);
    close(end[0]);
    CHECK(!fl_share_receive(end[1], 8192));
    CHECK_INT(errno, EPROTO);
    close(end[1]);
}

static void finds_a_listener_by_its_name(void)
{
    unsigned char other[FL_SHARE_NAME] = {9};
    const int listener = fl_share_listen(name);
    CHECK(listener >= 0);
    CHECK(fl_share_listen(name) < 0);
    CHECK(fl_share_connect(other) < 0);
    const int to = fl_share_connect(name);
    const int from = accept(listener, NULL, NULL);
    CHECK(to >= 0 && from >= 0);
    CHECK(fl_share_trusts(from));
    close(to);
    close(from);
    close(listener);
    CHECK(fl_share_connect(name) < 0); /* the name is gone */
}

static void knows_its_host(void)
{
    unsigned char a[FL_SHARE_HOST], b[FL_SHARE_HOST], zero[FL_SHARE_HOST] = {0};
    fl_share_host(a);
    fl_share_host(b);
    CHECK(!memcmp(a, b, sizeof a));
    CHECK(memcmp(a, zero, sizeof a));
}

const fl_test fl_tests[] = {
    {"both ends see the same memory", both_ends_see_the_same_memory},
    {"what is not such memory is refused", refuses_what_is_not_such_memory},
    {"a listener is found by its name", finds_a_listener_by_its_name},
    {"a process knows its host", knows_its_host},
    {0},
};
