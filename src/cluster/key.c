/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - reads the job key from a descriptor or a file. */
#include "cluster/key.h"

#include "base/flag.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BY_FD   "FLUID_JOB_KEY_FD"
#define BY_FILE "FLUID_JOB_KEY_FILE"

/* Read a key. `source` names it in error messages. */
static fl_err read_key(int fd, const char *source, fl_job_key *out)
{
    char more;
    ssize_t n = 1;
    while (n > 0 && out->size < FL_JOB_KEY) {
        n = read(fd, out->bytes + out->size, FL_JOB_KEY - out->size);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            out->size += (size_t)n;
    }
    if (n < 0)
        return fl_fail(FL_EIO, "%s: %s", source, strerror(errno));
    if (n > 0 && read(fd, &more, 1) > 0)
        return fl_fail(FL_EINVAL,
                       "%s holds more than %d bytes, which is too long for a "
                       "job key; make one with: openssl rand -hex 32",
                       source, FL_JOB_KEY);
    while (out->size && isspace((unsigned char)out->bytes[out->size - 1]))
        out->size--;
    if (out->size < FL_JOB_KEY_LEAST)
        return fl_fail(FL_EINVAL,
                       "%s holds %zu bytes, a job key has at least %d; make "
                       "one with: openssl rand -hex 32",
                       source, out->size, FL_JOB_KEY_LEAST);
    return FL_OK;
}

/* The descriptor stays open: otherwise another file could get its number while
 * the environment variable still names it. */
static fl_err read_inherited(const char *text, fl_job_key *out)
{
    char *end;
    const long fd = strtol(text, &end, 10);
    if (end == text || *end || fd < 0 || fd > 1 << 20)
        return fl_fail(FL_EINVAL,
                       BY_FD " is \"%s\", expected a file descriptor", text);
    if (fcntl((int)fd, F_SETFD, FD_CLOEXEC))
        return fl_fail(FL_EIO, BY_FD " is %ld, which is not open: %s", fd,
                       strerror(errno));
    return read_key((int)fd, "the descriptor of " BY_FD, out);
}

static fl_err check_file(int fd, const char *path)
{
    struct stat st;
    if (fstat(fd, &st))
        return fl_fail(FL_EIO, BY_FILE ": %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fl_fail(FL_EINVAL, BY_FILE ": %s is not a regular file", path);
    if (st.st_uid != geteuid() && st.st_uid)
        return fl_fail(FL_EINVAL,
                       BY_FILE ": %s belongs to user %u, expected %u", path,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & 077)
        return fl_fail(FL_EINVAL,
                       BY_FILE ": %s has mode %04o, so that others can use it; "
                               "say: chmod 600 %s",
                       path, (unsigned)st.st_mode & 07777, path);
    return FL_OK;
}

static fl_err read_file(const char *path, fl_job_key *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fl_fail(FL_EIO, BY_FILE ": %s: %s", path, strerror(errno));
    fl_err err = check_file(fd, path);
    if (!err)
        err = read_key(fd, path, out);
    close(fd);
    return err;
}

fl_err fl_job_key_read(fl_job_key *out)
{
    const char *fd = fl_flag_text(BY_FD), *file = fl_flag_text(BY_FILE);
    out->size = 0;
    const fl_err err = file && *file ? read_file(file, out)
                       : fd && *fd   ? read_inherited(fd, out)
                                     : FL_OK;
    if (err)
        out->size = 0;
    return err;
}
