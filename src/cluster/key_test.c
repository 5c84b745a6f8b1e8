/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/key.h"

#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[500];

static void write_file(const char *text, mode_t mode)
{
    snprintf(path, sizeof path, "%s/key-XXXXXX", fl_test_dir());
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, text, strlen(text)), strlen(text));
    CHECK(!fchmod(fd, mode));
    close(fd);
    setenv("FLUID_JOB_KEY_FILE", path, 1);
}

static void end_file(void)
{
    unlink(path);
    unsetenv("FLUID_JOB_KEY_FILE");
}

static void reads_a_file_without_its_line_end(void)
{
    fl_job_key k;
    write_file("0123456789abcdef\n", 0600);
    CHECK_OK(fl_job_key_read(&k));
    CHECK_INT(k.size, 16);
    CHECK(!memcmp(k.bytes, "0123456789abcdef", 16));
    end_file();
    CHECK_OK(fl_job_key_read(&k));
    CHECK_INT(k.size, 0);
}

static void refuses_files_that_are_no_secret(void)
{
    fl_job_key k;
    write_file("0123456789abcdef", 0640);
    CHECK_ERR(fl_job_key_read(&k), FL_EINVAL,
              "has mode 0640, so that others can use it; say: chmod 600");
    CHECK_INT(k.size, 0);
    end_file();
    write_file("short\n", 0600);
    CHECK_ERR(fl_job_key_read(&k), FL_EINVAL, "holds 5 bytes, a job key has");
    end_file();
    setenv("FLUID_JOB_KEY_FILE", "/", 1);
    CHECK_ERR(fl_job_key_read(&k), FL_EINVAL, "/ is not a regular file");
    setenv("FLUID_JOB_KEY_FILE", "/nowhere/key", 1);
    CHECK_ERR(fl_job_key_read(&k), FL_EIO, "/nowhere/key: No such file");
    unsetenv("FLUID_JOB_KEY_FILE");
}

static void reads_a_descriptor_once(void)
{
    fl_job_key k;
    int pipe_of[2];
    char text[20];
    CHECK(!pipe(pipe_of));
    CHECK_INT(write(pipe_of[1], "fedcba9876543210", 16), 16);
    close(pipe_of[1]);
    snprintf(text, sizeof text, "%d", pipe_of[0]);
    setenv("FLUID_JOB_KEY_FD", text, 1);
    CHECK_OK(fl_job_key_read(&k));
    CHECK_INT(k.size, 16);
    CHECK(fcntl(pipe_of[0], F_GETFD) & FD_CLOEXEC);
    CHECK_ERR(fl_job_key_read(&k), FL_EINVAL, "holds 0 bytes");
    close(pipe_of[0]);
    CHECK_ERR(fl_job_key_read(&k), FL_EIO, "which is not open");
    setenv("FLUID_JOB_KEY_FD", "x", 1);
    CHECK_ERR(fl_job_key_read(&k), FL_EINVAL, "expected a file descriptor");
    unsetenv("FLUID_JOB_KEY_FD");
}

const fl_test fl_tests[] = {
    {"a file is read without its line end", reads_a_file_without_its_line_end},
    {"files that are no secret are refused", refuses_files_that_are_no_secret},
    {"a descriptor is read once", reads_a_descriptor_once},
    {0},
};
