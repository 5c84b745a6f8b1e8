/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port.h"

#include "base/test.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_resolved(const char *address, const char *want)
{
    fl_str got = {0};
    CHECK_OK(fl_port_resolve(address, &got));
    CHECK_STR(got.at, want);
    fl_str_fini(&got);
}

static void names_become_one_address(void)
{
    fl_str none = {0};
    check_resolved("127.0.0.1:80", "127.0.0.1:80");
    check_resolved("localhost:0", "127.0.0.1:0");
    check_resolved("[::1]:6174", "[::1]:6174");
    check_resolved("unix:/tmp/x", "unix:/tmp/x");
    CHECK_ERR(fl_port_resolve("nowhere", &none), FL_EINVAL, "host:port");
}

/* A listening socket of this process; *port is its port. */
static int listen_on(int family, int *port)
{
    struct sockaddr_storage at = {.ss_family = (sa_family_t)family};
    socklen_t size = sizeof at;
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0)
        fl_test_skip("there is no such family of addresses here");
    CHECK(!bind(fd, (struct sockaddr *)&at, size) && !listen(fd, 1));
    CHECK(!getsockname(fd, (struct sockaddr *)&at, &size));
    *port = ntohs(((struct sockaddr_in *)&at)->sin_port);
    return fd;
}

/* A socket that listens on all addresses holds the port of each. */
static void check_holder(int family, const char *host)
{
    int port, fd = listen_on(family, &port);
    char exact[64], want[100];
    snprintf(exact, sizeof exact, "%s:%d", host, port);
    snprintf(want, sizeof want, "port %d on %s is taken by process %d (", port,
             host, (int)getpid());
    CHECK_ERR(fl_port_why(exact), FL_EIO, want);
    close(fd);
}

static void holder_of_a_port_is_found(void)
{
    check_holder(AF_INET, "127.0.0.1");
    check_holder(AF_INET, "0.0.0.0");
    check_holder(AF_INET6, "[::1]");
    check_holder(AF_INET6, "127.0.0.1");
}

static void port_that_is_free_was_taken_before(void)
{
    CHECK_ERR(fl_port_why("127.0.0.1:0"), FL_EIO, "it was taken just now");
    CHECK_ERR(fl_port_why("192.0.2.1:0"), FL_EIO,
              "port 0 on 192.0.2.1 cannot be used: this host has no "
              "address 192.0.2.1; correct the address of this process");
    CHECK_ERR(fl_port_why("unix:/x"), FL_EIO, "socket /x cannot be made");
}

/* Other users can guess the name, so an existing file must not stop a server.
 */
static void port_file_takes_the_place_of_a_fifo(void)
{
    char path[64], text[16] = {0};
    struct stat st;
    snprintf(path, sizeof path, "/tmp/paddle.%ld.port", (long)getpid());
    unlink(path);
    CHECK(!mkfifo(path, 0600));
    CHECK_OK(fl_port_file_write(6174));
    CHECK(!lstat(path, &st) && S_ISREG(st.st_mode));
    const int fd = open(path, O_RDONLY | O_NONBLOCK);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) == 4);
    CHECK_STR(text, "6174");
    close(fd);
    CHECK_OK(fl_port_file_write(7)); /* a second server of this process */
    fl_port_file_remove();
    CHECK(access(path, F_OK));
    fl_port_file_remove();
    CHECK(!mkdir(path, 0700)); /* cannot be replaced: an error */
    CHECK_ERR(fl_port_file_write(1), FL_EIO, path);
    CHECK(!rmdir(path));
}

const fl_test fl_tests[] = {
    {"names become one address", names_become_one_address},
    {"the holder of a port is found", holder_of_a_port_is_found},
    {"a port that is free was taken before",
     port_that_is_free_was_taken_before},
    {"the port file takes the place of a FIFO",
     port_file_takes_the_place_of_a_fifo},
    {0},
};
