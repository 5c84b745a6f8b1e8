/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - reads files, gzip files and outputs of commands in the same way.
 */
#include "data/source.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define SEC INT64_C(1000000000)

enum {
    INPUT = 1 << 16,       /* compressed bytes that are read at a time */
    GZIP_WINDOW = 15 + 16, /* the largest window, with the header of gzip */
    LONGEST = 1000000000,  /* seconds; a longer limit means no limit */
};

struct fl_source {
    char *name;
    fl_cancel *cancel;
    int fd;
    bool owns_fd, waits; /* waits: a read may block for a long time */
    double stall, limit; /* seconds without data until a warning, and until an
                            error; 0: never */
    fl_child *child;
    bool looked;             /* whether `gzip` was determined */
    bool gzip, again, ended; /* again: this is not the first gzip member */
    z_stream z;
    size_t from, to; /* the unused part of `in` */
    unsigned char in[INPUT];
};

const char *fl_source_name(const fl_source *s)
{
    return s->name;
}

static fl_err fail_errno(const char *name, const char *what, int error)
{
    char here[PATH_MAX];
    const fl_err err =
        fl_fail(error == ENOENT ? FL_ENOENT : FL_EIO, "%s: cannot %s: %s", name,
                what, strerror(error));
    if (error == ENOENT && name[0] != '/' && getcwd(here, sizeof here))
        return fl_fail_at(err, "looked for in %s", here);
    return err;
}

fl_err fl_source_of(int fd, const char *name, fl_cancel *cancel,
                    fl_source **out)
{
    struct stat st;
    if (fstat(fd, &st))
        return fail_errno(name, "look at it", errno);
    if (S_ISDIR(st.st_mode))
        return fail_errno(name, "read it", EISDIR);
    fl_source *s = fl_mem_alloc(sizeof *s);
    s->name = fl_mem_strdup(name);
    s->cancel = cancel;
    s->fd = fd;
    s->waits = !S_ISREG(st.st_mode);
    *out = s;
    return FL_OK;
}

bool fl_source_is_plain(const char *pipe)
{
    return !pipe || !*pipe || !strcmp(pipe, "cat");
}

static fl_err set_limits(fl_source *s)
{
    s->stall = 5;
    s->limit = 600;
    FL_TRY(fl_flag_number("FLUID_STALL", &s->stall));
    FL_TRY(fl_flag_number("FLUID_SILENCE", &s->limit));
    s->stall = s->stall < LONGEST ? s->stall : 0;
    s->limit = s->limit < LONGEST ? s->limit : 0;
    return FL_OK;
}

/* Start the command. Its stdin is set to blocking mode, as programs expect. */
static fl_err start_pipe(fl_source *s, const char *pipe)
{
    fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) & ~O_NONBLOCK);
    s->looked = true;
    return fl_child_new(pipe, s->fd, &s->child);
}

/* A FIFO without a writer must not block the open: it is opened without
 * blocking, and the wait for data can be cancelled. */
fl_err fl_source_open(const char *path, const char *pipe, fl_cancel *cancel,
                      fl_source **out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_errno(path, "open it", errno);
    fl_source *s = NULL;
    fl_err err = fl_source_of(fd, path, cancel, &s);
    if (err) {
        close(fd);
        return err;
    }
    s->owns_fd = true;
    err = set_limits(s);
    if (!err && !fl_source_is_plain(pipe))
        err = start_pipe(s, pipe);
    if (err)
        fl_source_free(s);
    else
        *out = s;
    return err;
}

void fl_source_free(fl_source *s)
{
    if (!s)
        return;
    fl_child_free(s->child);
    if (s->gzip)
        inflateEnd(&s->z);
    if (s->owns_fd)
        close(s->fd);
    fl_mem_free(s->name);
    fl_mem_free(s);
}

static fl_err fail_cancelled(const fl_source *s)
{
    return fl_fail(FL_EINTR, "%s: reading was cancelled", s->name);
}

/* Wait until there is something to read. */
static fl_err wait_bytes(const fl_source *s, int64_t timeout)
{
    struct pollfd fd[] = {{.fd = s->cancel->fd, .events = POLLIN},
                          {.fd = s->fd, .events = POLLIN}};
    const int64_t ms = timeout / 1000000;
    const int n = poll(fd, 2, timeout < 0 || ms > INT_MAX ? -1 : (int)ms);
    if (n < 0 && errno != EINTR)
        return fail_errno(s->name, "wait for it", errno);
    if (!n)
        return fl_fail(FL_ETIMEOUT, "no process writes to this pipe");
    return n > 0 && fd[0].revents ? fail_cancelled(s) : FL_OK;
}

/* Read what is available. Err: ETIMEOUT (nothing for so many ns). */
static fl_err read_once(fl_source *s, void *buf, size_t n, int64_t timeout,
                        size_t *got)
{
    if (s->child)
        return fl_child_read(s->child, buf, n, s->cancel->fd, timeout, got);
    for (;;) {
        if (s->waits)
            FL_TRY(wait_bytes(s, timeout));
        const ssize_t r = read(s->fd, buf, n);
        if (r >= 0) {
            *got = (size_t)r;
            return FL_OK;
        }
        if (errno != EINTR && errno != EAGAIN)
            return fail_errno(s->name, "read it", errno);
    }
}

/* Read, and warn about long waits at growing intervals. After the limit the
 * read fails. */
static fl_err read_raw(fl_source *s, void *buf, size_t n, size_t *got)
{
    double waited = 0, next = s->stall;
    *got = 0;
    if (fl_cancelled(s->cancel))
        return fail_cancelled(s);
    for (;;) {
        if (s->limit && (!next || next > s->limit))
            next = s->limit;
        const int64_t timeout = next ? (int64_t)((next - waited) * SEC) : -1;
        const fl_err err = read_once(s, buf, n, timeout, got);
        if (err != FL_ETIMEOUT)
            return err && s->child ? fl_fail_at(err, "on %s", s->name) : err;
        waited = next;
        next = 2 * waited;
        if (waited == s->limit)
            return fl_fail_at(FL_EIO,
                              "on %s, for %g s, as long as FLUID_SILENCE "
                              "allows",
                              s->name, waited);
        fl_fail_at(err, "on %s, for %g s so far", s->name, waited);
        FL_WARN("%s", fl_errmsg());
    }
}

/* --- gzip --- */

/* Determine from the first bytes whether it is gzip. A file that is shorter
 * than the magic number is not. */
static fl_err look_at_magic(fl_source *s)
{
    size_t got = 1;
    while (s->to < 2 && got) {
        FL_TRY(read_raw(s, s->in + s->to, INPUT - s->to, &got));
        s->to += got;
    }
    s->looked = true;
    if (s->to < 2 || s->in[0] != 0x1f || s->in[1] != 0x8b)
        return FL_OK;
    if (inflateInit2(&s->z, GZIP_WINDOW) != Z_OK)
        return fl_fail(FL_ENOMEM, "%s: no memory to unpack it", s->name);
    s->gzip = true;
    return FL_OK;
}

static fl_err refill_input(fl_source *s)
{
    if (s->from < s->to)
        return FL_OK;
    s->from = 0;
    return read_raw(s, s->in, INPUT, &s->to);
}

/* After a member of a gzip file: skip zero padding, and find the next member or
 * the end. */
static fl_err next_member(fl_source *s)
{
    do {
        FL_TRY(refill_input(s));
        while (s->from < s->to && !s->in[s->from])
            s->from++;
    } while (s->to && s->from == s->to);
    s->ended = !s->to;
    s->again = true;
    if (!s->ended && inflateReset(&s->z) != Z_OK)
        return fl_fail(FL_EIO,
                       "%s: unpacking failed after a member of the gzip file",
                       s->name);
    return FL_OK;
}

static fl_err fail_damaged(const fl_source *s)
{
    if (s->again && !s->z.total_out)
        return fl_fail(FL_EPROTO,
                       "%s: this gzip file is damaged: other bytes follow its "
                       "compressed data",
                       s->name);
    return fl_fail(FL_EPROTO, "%s: this gzip file is damaged: %s", s->name,
                   s->z.msg ? s->z.msg : "wrong data");
}

static fl_err unpack_bytes(fl_source *s, void *buf, size_t n, size_t *got)
{
    s->z.next_out = buf;
    s->z.avail_out = (uInt)(n < INT32_MAX ? n : INT32_MAX);
    while (!s->ended && (unsigned char *)buf == s->z.next_out) {
        FL_TRY(refill_input(s));
        if (!s->to)
            return fl_fail(FL_EPROTO,
                           "%s: this gzip file is cut off: it ends in the "
                           "middle of its data",
                           s->name);
        s->z.next_in = s->in + s->from;
        s->z.avail_in = (uInt)(s->to - s->from);
        const int r = inflate(&s->z, Z_NO_FLUSH);
        s->from = s->to - s->z.avail_in;
        if (r == Z_STREAM_END)
            FL_TRY(next_member(s));
        else if (r != Z_OK && r != Z_BUF_ERROR)
            return fail_damaged(s);
    }
    *got = (size_t)(s->z.next_out - (unsigned char *)buf);
    return FL_OK;
}

fl_err fl_source_read(fl_source *s, void *buf, size_t n, size_t *got)
{
    *got = 0;
    if (!s->looked)
        FL_TRY(look_at_magic(s));
    if (s->gzip)
        return unpack_bytes(s, buf, n, got);
    if (s->from == s->to)
        return read_raw(s, buf, n, got);
    *got = n < s->to - s->from ? n : s->to - s->from;
    memcpy(buf, s->in + s->from, *got);
    s->from += *got;
    return FL_OK;
}

static fl_err too_short(const fl_source *s, int64_t n)
{
    return fl_fail(FL_EIO,
                   "%s: the data ends before byte %lld, up to which this "
                   "trainer has read it before: the file was changed",
                   s->name, (long long)n);
}

/* Whether a position in the file is a position in the data: the file is neither
 * compressed nor read by a command. */
static bool is_positioned(const fl_source *s)
{
    return !s->gzip && !s->child && !s->waits;
}

fl_err fl_source_skip(fl_source *s, int64_t n)
{
    struct stat st;
    size_t got = 1;
    if (!n)
        return FL_OK;
    if (!s->looked)
        FL_TRY(look_at_magic(s));
    if (is_positioned(s)) {
        if (fstat(s->fd, &st) || lseek(s->fd, n, SEEK_SET) < 0)
            return fail_errno(s->name, "position it", errno);
        s->from = s->to = 0;
        return st.st_size < n ? too_short(s, n) : FL_OK;
    }
    FL_INFO("%s: reading again to byte %lld, where a trainer was", s->name,
            (long long)n);
    char *buf = fl_mem_alloc(INPUT);
    fl_err err = FL_OK;
    for (int64_t left = n; left && got && !err; left -= (int64_t)got)
        err = fl_source_read(s, buf, left < INPUT ? (size_t)left : INPUT, &got);
    fl_mem_free(buf);
    return !err && !got ? too_short(s, n) : err;
}
