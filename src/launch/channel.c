/* SPDX-License-Identifier: Apache-2.0 */
/* channel.c - encodes and decodes notices. */
#include "launch/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD = 64 /* largest size of a first line in bytes */
};

bool fl_channel_pipes(int ends[2], int errors[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return false;
    if (!pipe2(errors, O_CLOEXEC | O_NONBLOCK))
        return true;
    const int why = errno;
    close(ends[0]);
    close(ends[1]);
    errno = why;
    return false;
}

void fl_channel_init(fl_channel *c, int in, int out)
{
    *c = (fl_channel){.in = in, .out = out};
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void fl_channel_fini(fl_channel *c)
{
    if (c->in == c->out)
        c->in = -1;
    shut(&c->in);
    shut(&c->out);
    fl_str_fini(&c->got);
    fl_str_fini(&c->queued);
    c->taken = c->sent = 0;
}

/* Forget the first `n` bytes. */
static void cut_front(fl_str *s, size_t *n)
{
    if (!*n)
        return;
    memmove(s->at, s->at + *n, s->n - *n);
    s->n -= *n;
    *n = 0;
}

void fl_channel_put(fl_channel *c, const char *kind, int64_t number,
                    const void *body, size_t size)
{
    if (c->out < 0)
        return;
    if (size > FL_NOTICE_BYTES)
        size = FL_NOTICE_BYTES;
    fl_str_printf(&c->queued, "%s %lld %zu\n", kind, (long long)number, size);
    fl_str_bytes(&c->queued, body, size);
    fl_str_bytes(&c->queued, "\n", 1);
}

void fl_channel_text(fl_channel *c, const char *kind, int64_t number,
                     const char *text)
{
    fl_channel_put(c, kind, number, text, strlen(text));
}

size_t fl_channel_left(const fl_channel *c)
{
    return c->queued.n - c->sent;
}

static bool is_later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* Write to a pipe, or send to a socket without SIGPIPE. */
static ssize_t write_some(int fd, const char *bytes, size_t n)
{
    const ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
    return sent < 0 && errno == ENOTSOCK ? write(fd, bytes, n) : sent;
}

static void send_queued(fl_channel *c)
{
    while (c->out >= 0 && fl_channel_left(c)) {
        const ssize_t n =
            write_some(c->out, c->queued.at + c->sent, fl_channel_left(c));
        if (n < 0 && is_later())
            break;
        if (n < 0 && c->in != c->out)
            shut(&c->out);
        if (n < 0)
            c->queued.n = c->sent; /* the other end has closed: nobody will read
                                      the bytes */
        else
            c->sent += (size_t)n;
    }
    if (c->sent == c->queued.n || c->sent > FL_NOTICE_BYTES)
        cut_front(&c->queued, &c->sent);
}

/* Read what is there, up to a limit. Returns false if the other end has closed.
 */
static bool read_some(fl_channel *c)
{
    char buf[FL_CHANNEL_CHUNK];
    for (int turn = 0; turn < 16; turn++) {
        const ssize_t n = read(c->in, buf, sizeof buf);
        if (n > 0)
            fl_str_bytes(&c->got, buf, (size_t)n);
        else
            return n < 0 && is_later();
    }
    return true;
}

fl_err fl_channel_move(fl_channel *c, int ms)
{
    struct pollfd fds[] = {
        {.fd = c->in, .events = POLLIN},
        {.fd = fl_channel_left(c) ? c->out : -1, .events = POLLOUT},
    };
    if (c->in < 0)
        return fl_fail(FL_EIO, "launch: the channel is closed");
    poll(fds, 2, ms);
    send_queued(c);
    if (fds[0].revents && !read_some(c))
        return fl_fail(FL_EIO, "launch: the other end has closed the channel");
    return FL_OK;
}

/* Parse the first line at `at`. Returns its length, 0 if it is incomplete, -1
 * if it is not the first line of a notice. */
static int read_head(const char *at, size_t n, fl_notice *r)
{
    char line[HEAD], kind[FL_NOTICE_KIND], end;
    long long number;
    unsigned long long size;
    const char *stop = memchr(at, '\n', n < HEAD ? n : HEAD - 1);
    if (!stop)
        return n < HEAD - 1 ? 0 : -1;
    snprintf(line, sizeof line, "%.*s", (int)(stop - at), at);
    if (sscanf(line, "%15[a-z] %lld %llu%c", kind, &number, &size, &end) != 3 ||
        size > FL_NOTICE_BYTES)
        return -1;
    snprintf(r->kind, sizeof r->kind, "%s", kind);
    r->number = number;
    r->size = (size_t)size;
    return (int)(stop - at) + 1;
}

fl_err fl_channel_take(fl_channel *c, fl_notice *out, bool *found)
{
    *found = false;
    if (c->taken == c->got.n || c->taken > FL_NOTICE_BYTES)
        cut_front(&c->got, &c->taken);
    if (!c->got.n)
        return FL_OK;
    char *at = c->got.at + c->taken;
    const size_t n = c->got.n - c->taken;
    const int head = read_head(at, n, out);
    if (head < 0)
        return fl_fail(FL_EPROTO,
                       "launch: \"%.40s\" came, expected a notice of a "
                       "launcher or an agent",
                       at);
    if (!head || n < (size_t)head + out->size + 1)
        return FL_OK;
    if (at[(size_t)head + out->size] != '\n')
        return fl_fail(FL_EPROTO, "launch: a notice of kind %s has no end",
                       out->kind);
    out->body = at + head;
    at[(size_t)head + out->size] = 0;
    c->taken += (size_t)head + out->size + 1;
    *found = true;
    return FL_OK;
}

void fl_channel_begin(fl_channel *c)
{
    fl_str_bytes(&c->queued, "\n", 1);
}

bool fl_channel_skip_to(fl_channel *c, const char *kind)
{
    const size_t size = strlen(kind);
    for (size_t i = c->taken; i + size < c->got.n; i++) {
        const char *at = c->got.at + i;
        fl_notice r;
        if ((i > c->taken && at[-1] != '\n') || memcmp(at, kind, size) != 0 ||
            at[size] != ' ')
            continue;
        const int head = read_head(at, c->got.n - i, &r);
        if (!head)
            return false; /* the rest of the line decides */
        if (head < 0)
            continue; /* "hello world" */
        c->taken = i;
        return true;
    }
    return false;
}
