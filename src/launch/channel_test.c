/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/channel.h"

#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two ends. */
static void open_pair(fl_channel *a, fl_channel *b)
{
    int ends[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fl_channel_init(a, ends[0], ends[0]);
    fl_channel_init(b, ends[1], ends[1]);
}

static void take_one(fl_channel *c, fl_notice *r)
{
    bool found = false;
    while (!found) {
        CHECK_OK(fl_channel_take(c, r, &found));
        if (!found)
            CHECK_OK(fl_channel_move(c, 1000));
    }
}

static void gives_what_was_put(void)
{
    fl_channel a, b;
    fl_notice r;
    open_pair(&a, &b);
    fl_channel_text(&a, "start", 3, "server 0");
    fl_channel_put(&a, "log", -1, "a\0\nb", 4);
    fl_channel_text(&a, "alive", 0, "");
    CHECK_OK(fl_channel_move(&a, 0));
    take_one(&b, &r);
    CHECK_STR(r.kind, "start");
    CHECK_INT(r.number, 3);
    CHECK_STR(r.body, "server 0");
    take_one(&b, &r);
    CHECK_INT(r.number, -1);
    CHECK_INT((int)r.size, 4);
    CHECK_INT(memcmp(r.body, "a\0\nb", 4), 0);
    take_one(&b, &r);
    CHECK_STR(r.kind, "alive");
    fl_channel_fini(&a);
    fl_channel_fini(&b);
}

/* More than a socket holds: neither end ever blocks. */
static void carries_more_than_a_socket_holds(void)
{
    static char big[FL_NOTICE_BYTES];
    fl_channel a, b;
    fl_notice r;
    bool found = false;
    open_pair(&a, &b);
    memset(big, 'x', sizeof big);
    for (int i = 0; i < 5; i++)
        fl_channel_put(&a, "tar", i, big, sizeof big);
    for (int i = 0; i < 5; i++) {
        for (found = false; !found;) {
            CHECK_OK(fl_channel_move(&a, 0));
            CHECK_OK(fl_channel_move(&b, 0));
            CHECK_OK(fl_channel_take(&b, &r, &found));
        }
        CHECK_INT(r.number, i);
        CHECK_INT((int)r.size, FL_NOTICE_BYTES);
        CHECK_INT(memcmp(r.body, big, sizeof big), 0);
    }
    fl_channel_fini(&a);
    fl_channel_fini(&b);
}

static void hears_what_was_said_before_the_end(void)
{
    fl_channel a, b;
    fl_notice r;
    open_pair(&a, &b);
    fl_channel_text(&a, "fail", 0, "no luck");
    CHECK_OK(fl_channel_move(&a, 0));
    fl_channel_fini(&a);
    CHECK_ERR(fl_channel_move(&b, 1000), FL_EIO,
              "launch: the other end has closed the channel");
    take_one(&b, &r);
    CHECK_STR(r.body, "no luck");
    fl_channel_fini(&b);
}

static void skips_the_greeting_of_a_login_script(void)
{
    fl_channel a, b;
    fl_notice r;
    open_pair(&a, &b);
    fl_str_add(&a.queued, "Welcome! hello world\nhello");
    CHECK_OK(fl_channel_move(&a, 0));
    CHECK_OK(fl_channel_move(&b, 1000));
    CHECK_INT(fl_channel_skip_to(&b, "hello"), false);
    fl_str_add(&a.queued, " 1 5\n0.1.0\n");
    CHECK_OK(fl_channel_move(&a, 0));
    CHECK_OK(fl_channel_move(&b, 1000));
    CHECK_INT(fl_channel_skip_to(&b, "hello"), true);
    take_one(&b, &r);
    CHECK_STR(r.body, "0.1.0");
    fl_channel_fini(&a);
    fl_channel_fini(&b);
}

static void takes_no_greeting_for_a_notice(void)
{
    fl_channel a, b;
    fl_notice r;
    open_pair(&a, &b);
    fl_str_add(&a.queued, "hello world\nhello 1 x\n\033]0;title\007");
    fl_channel_begin(&a);
    fl_channel_text(&a, "hello", 1, "0.1.0");
    CHECK_OK(fl_channel_move(&a, 0));
    CHECK_OK(fl_channel_move(&b, 1000));
    CHECK_INT(fl_channel_skip_to(&b, "hello"), true);
    take_one(&b, &r);
    CHECK_STR(r.body, "0.1.0");
    fl_channel_fini(&a);
    fl_channel_fini(&b);
}

static void refuses_what_is_no_notice(void)
{
    static const char *const bad[] = {"bash: no job control\n",
                                      "log 1 99999999999\n", "log 1 2\nabc"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fl_channel a, b;
        fl_notice r;
        bool found;
        open_pair(&a, &b);
        fl_str_add(&a.queued, bad[i]);
        CHECK_OK(fl_channel_move(&a, 0));
        CHECK_OK(fl_channel_move(&b, 1000));
        CHECK_INT(fl_channel_take(&b, &r, &found), FL_EPROTO);
        fl_channel_fini(&a);
        fl_channel_fini(&b);
    }
}

static int count_open(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* The limit that lets a process open n more. */
static rlim_t limit_for(int n)
{
    int fd = 0;
    for (; n; fd++)
        n -= fcntl(fd, F_GETFD) < 0;
    return (rlim_t)fd;
}

/* The limit of open files is met by any of the four descriptors. */
static void leaves_no_descriptor_open_that_lacks_others(void)
{
    struct rlimit old, low;
    const int before = count_open();
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (int more = 0; more <= 4; more++) {
        int ends[2], errors[2];
        low = old;
        low.rlim_cur = limit_for(more);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
        const bool made = fl_channel_pipes(ends, errors);
        const int why = errno;
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
        CHECK_INT(made, more == 4);
        CHECK_INT(count_open(), before + (made ? 4 : 0));
        if (!made)
            CHECK_INT(why, EMFILE);
        for (int i = 0; made && i < 2; i++) {
            close(ends[i]);
            close(errors[i]);
        }
    }
}

const fl_test fl_tests[] = {
    {"a channel gives what was put into it", gives_what_was_put},
    {"a channel carries more than a socket holds",
     carries_more_than_a_socket_holds},
    {"a channel hears what was said before its end",
     hears_what_was_said_before_the_end},
    {"a channel skips the greeting of a login script",
     skips_the_greeting_of_a_login_script},
    {"a channel takes no greeting for a notice",
     takes_no_greeting_for_a_notice},
    {"a channel refuses what is no notice", refuses_what_is_no_notice},
    {"a channel leaves no descriptor open that lacks others",
     leaves_no_descriptor_open_that_lacks_others},
    {0},
};
