/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - finds which process listens on a port, and writes the port file.
 *
 * /proc/net/tcp has the address and the inode of each listening socket;
 * /proc/PID/fd has the inodes that a process has open, if we may read it. */
#include "net/port.h"

#include "base/utf8.h"
#include "net/address.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COMMAND = 80, /* bytes of a command line that are shown */
};

/* The address to bind: the first IPv4 address, or else the first one. */
static fl_err resolve(const char *address, fl_address *out)
{
    fl_address found[FL_ADDRESSES];
    int n;
    FL_TRY(fl_address_find(address, found, &n));
    *out = found[0];
    for (int i = n - 1; i >= 0; i--)
        if (found[i].at.ss_family == AF_INET)
            *out = found[i];
    return FL_OK;
}

fl_err fl_port_resolve(const char *address, fl_str *out)
{
    fl_address a;
    char text[FL_ADDRESS_TEXT];
    if (fl_starts_with(address, "unix:")) {
        fl_str_add(out, address);
        return FL_OK;
    }
    FL_TRY(resolve(address, &a));
    fl_address_text(&a, text);
    fl_str_add(out, text);
    return FL_OK;
}

/* Convert an address to the form of IPv6, so that addresses can be compared. */
static void widen(const fl_address *a, unsigned char out[16], unsigned *port)
{
    const struct sockaddr_in *four = (const void *)&a->at;
    const struct sockaddr_in6 *six = (const void *)&a->at;
    memset(out, 0, 16);
    *port = ntohs(four->sin_port); /* the same offset for IPv6 */
    if (a->at.ss_family == AF_INET6) {
        memcpy(out, &six->sin6_addr, 16);
        return;
    }
    out[10] = out[11] = 0xff;
    memcpy(out + 12, &four->sin_addr, 4);
}

/* Parse an address as the kernel prints it: 32-bit words in host byte order. */
static bool parse_address(const char *hex, size_t digits, unsigned char out[16])
{
    memset(out, 0, 16);
    out[10] = out[11] = digits == 8 ? 0xff : 0;
    for (size_t i = 0; i < digits / 8; i++) {
        unsigned word;
        if (sscanf(hex + 8 * i, "%8x", &word) != 1)
            return false;
        memcpy(out + (digits == 8 ? 12 : 4 * i), &word, 4);
    }
    return true;
}

/* Whether the address is 0.0.0.0 or ::. */
static bool is_any(const unsigned char a[16])
{
    static const unsigned char zero[16], v4[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(a, zero, 16) ||
           (!memcmp(a, v4, 12) && !memcmp(a + 12, zero, 4));
}

/* The inode of the socket that listens at the address, from one of the kernel's
 * lists; 0: none. */
static unsigned long listener(const char *list, const fl_address *a)
{
    char line[512], hex[40];
    unsigned char want[16], has[16];
    unsigned wanted, port, state;
    unsigned long inode = 0, found = 0;
    FILE *f = fopen(list, "re");
    if (!f)
        return 0;
    widen(a, want, &wanted);
    while (!found && fgets(line, sizeof line, f)) {
        if (sscanf(line,
                   " %*d: %36[0-9A-F]:%4x %*s %2x %*s %*s %*s %*s %*s %lu", hex,
                   &port, &state, &inode) != 4)
            continue;
        if (state != 10 || port != wanted ||
            !parse_address(hex, strlen(hex), has))
            continue;
        if (!memcmp(has, want, 16) || is_any(has) || is_any(want))
            found = inode;
    }
    fclose(f);
    return found;
}

static bool has_open(const char *pid, const char *socket)
{
    char path[300], link[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    if (!d)
        return false;
    for (struct dirent *e; !found && (e = readdir(d));) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
        if (n > 0) {
            link[n] = 0;
            found = !strcmp(link, socket);
        }
    }
    closedir(d);
    return found;
}

/* Append the command line, or if there is none the name of the program. */
static void add_command(const char *pid, fl_str *out)
{
    static const char *const files[] = {"cmdline", "comm"};
    char path[300], text[COMMAND + 1];
    size_t n = 0;
    for (int i = 0; i < 2 && !n; i++) {
        snprintf(path, sizeof path, "/proc/%s/%s", pid, files[i]);
        FILE *f = fopen(path, "re");
        n = f ? fread(text, 1, COMMAND, f) : 0;
        if (f)
            fclose(f);
    }
    while (n && (!text[n - 1] || text[n - 1] == '\n'))
        n--;
    for (size_t i = 0; i < n; i++) /* a zero ends each argument */
        if (!text[i])
            text[i] = ' ';
    text[n] = 0;
    fl_utf8_escape(out, n ? text : "?");
}

/* The inode of the socket that listens there; 0: none does. */
static unsigned long find_listener(const fl_address *a)
{
    const unsigned long inode = listener("/proc/net/tcp", a);
    return inode ? inode : listener("/proc/net/tcp6", a);
}

/* Append "process 4711 (python3 train.py)", or why no process can be named. The
 * search reads the list of open files of every process; on a busy host the
 * holder may have ended before the search reaches it. */
static void add_holder(const fl_address *a, fl_str *out)
{
    char socket[64];
    const unsigned long inode = find_listener(a);
    DIR *d = inode ? opendir("/proc") : NULL;
    snprintf(socket, sizeof socket, "socket:[%lu]", inode);
    for (struct dirent *e; d && !out->n && (e = readdir(d));) {
        if (!strspn(e->d_name, "123456789") || !has_open(e->d_name, socket))
            continue;
        fl_str_printf(out, "process %s (", e->d_name);
        add_command(e->d_name, out);
        fl_str_add(out, ")");
    }
    if (d)
        closedir(d);
    if (!out->n)
        fl_str_add(out, inode && find_listener(a) != inode
                            ? "a process that has just ended; try again"
                            : "a process that cannot be seen here");
}

/* The errno of our own attempt to bind the address. */
static int try_bind(const fl_address *a)
{
    int on = 1, e = 0;
    int fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&a->at, a->size) || listen(fd, 1))
        e = errno;
    close(fd);
    return e;
}

fl_err fl_port_why(const char *exact)
{
    fl_address a;
    fl_str who = {0};
    if (fl_starts_with(exact, "unix:"))
        return fl_fail(FL_EIO, "socket %s cannot be made", exact + 5);
    FL_TRY(resolve(exact, &a));
    const char *port = strrchr(exact, ':');
    int host = (int)(port++ - exact), e = try_bind(&a);
    if (e == EADDRNOTAVAIL)
        return fl_fail(FL_EIO,
                       "port %s on %.*s cannot be used: this host has no "
                       "address %.*s; correct the address of this process",
                       port, host, exact, host, exact);
    if (e != EADDRINUSE)
        return fl_fail(FL_EIO, "port %s on %.*s cannot be used: %s", port, host,
                       exact, e ? strerror(e) : "it was taken just now");
    add_holder(&a, &who);
    const fl_err err = fl_fail(FL_EIO, "port %s on %.*s is taken by %s", port,
                               host, exact, who.at);
    fl_str_fini(&who);
    return err;
}

/* --- the port file --- */

static const char *file_path(char path[64])
{
    snprintf(path, 64, "/tmp/paddle.%ld.port", (long)getpid());
    return path;
}

/* A new file is renamed to the name, so that a FIFO or link of that name is not
 * followed, and readers never see a part of the number. */
fl_err fl_port_file_write(int port)
{
    char path[64], temp[80], text[16];
    const int n = snprintf(text, sizeof text, "%d", port);
    snprintf(temp, sizeof temp, "%s.XXXXXX", file_path(path));
    const int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return fl_fail(FL_EIO, "%s: cannot make it: %s", temp, strerror(errno));
    int why = write(fd, text, (size_t)n) != n || fchmod(fd, 0644) ? errno : 0;
    close(fd);
    if (!why && rename(temp, path))
        why = errno;
    if (!why)
        return FL_OK;
    unlink(temp);
    return fl_fail(FL_EIO, "%s: cannot write it: %s", path, strerror(why));
}

void fl_port_file_remove(void)
{
    char path[64];
    unlink(file_path(path)); /* may be gone: servers of a process share it */
}
