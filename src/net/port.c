/* port.c - the kernel's lists of sockets, and of who has them open.
 *
 * /proc/net/tcp has the address and the inode of each socket that listens, the
 * folders /proc/PID/fd the inodes that a process has, where we may look. */
#include "net/port.h"

#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct target {
    struct sockaddr_storage address;
    socklen_t size;
    char host[64], port[8];
} target;

/* "host:port", "[host]:port". */
static fl_err cut(const char *address, char host[256], char port[8])
{
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : 0, digits = 0;
    if (n >= 2 && address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
    }
    if (colon)
        digits = strspn(colon + 1, "0123456789");
    if (!n || n > 255 || !digits || digits > 5 || colon[1 + digits] ||
        strtol(colon + 1, NULL, 10) > 65535)
        return fl_fail(FL_EINVAL, "address \"%s\" is not of the form host:port",
                       address);
    snprintf(host, 256, "%.*s", (int)n, address);
    snprintf(port, 8, "%s", colon + 1);
    return FL_OK;
}

static fl_err resolve(const char *address, target *out)
{
    char host[256], port[8];
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    FL_TRY(cut(address, host, port));
    int e = getaddrinfo(host, port, &hints, &found);
    if (e) {
        hints.ai_family = AF_INET6;
        if (!getaddrinfo(host, port, &hints, &found))
            e = 0;
    }
    if (e)
        return fl_fail(FL_EIO, "address %s: %s", address, gai_strerror(e));
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->size = found->ai_addrlen;
    freeaddrinfo(found);
    getnameinfo((struct sockaddr *)&out->address, out->size, out->host,
                sizeof out->host, out->port, sizeof out->port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    return FL_OK;
}

fl_err fl_port_resolve(const char *address, fl_str *out)
{
    target t;
    if (fl_starts_with(address, "unix:")) {
        fl_str_add(out, address);
        return FL_OK;
    }
    FL_TRY(resolve(address, &t));
    bool six = t.address.ss_family == AF_INET6;
    fl_str_printf(out, six ? "[%s]:%s" : "%s:%s", t.host, t.port);
    return FL_OK;
}

/* Every address in the form of IPv6, so that they compare. */
static void widen(const target *t, unsigned char out[16])
{
    memset(out, 0, 16);
    if (t->address.ss_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)&t->address)->sin6_addr, 16);
        return;
    }
    out[10] = out[11] = 0xff;
    memcpy(out + 12, &((const struct sockaddr_in *)&t->address)->sin_addr, 4);
}

/* The address as the kernel prints it: words of 32 bits in our byte order. */
static bool parse(const char *hex, size_t digits, unsigned char out[16])
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

/* Is it everywhere: 0.0.0.0 or ::? */
static bool is_any(const unsigned char a[16])
{
    static const unsigned char zero[16], v4[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(a, zero, 16) ||
           (!memcmp(a, v4, 12) && !memcmp(a + 12, zero, 4));
}

/* The inode of who listens there, in one of the kernel's lists; 0: nobody. */
static unsigned long listener(const char *list, const target *t)
{
    char line[512], hex[40];
    unsigned char want[16], has[16];
    unsigned port, state;
    unsigned long inode = 0, found = 0;
    FILE *f = fopen(list, "re");
    if (!f)
        return 0;
    widen(t, want);
    while (!found && fgets(line, sizeof line, f)) {
        if (sscanf(line,
                   " %*d: %36[0-9A-F]:%4x %*s %2x %*s %*s %*s %*s %*s %lu", hex,
                   &port, &state, &inode) != 4)
            continue;
        if (state != 10 || port != (unsigned)atoi(t->port) ||
            !parse(hex, strlen(hex), has))
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

static void name_of(const char *pid, char out[64])
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *f = fopen(path, "re");
    if (!f || !fgets(out, 64, f))
        snprintf(out, 64, "?");
    out[strcspn(out, "\n")] = 0;
    if (f)
        fclose(f);
}

/* "process 4711 (python3)", or nothing. */
static void holder(const target *t, fl_str *out)
{
    char socket[64], name[64];
    unsigned long inode = listener("/proc/net/tcp", t);
    if (!inode)
        inode = listener("/proc/net/tcp6", t);
    DIR *d = inode ? opendir("/proc") : NULL;
    if (!d)
        return;
    snprintf(socket, sizeof socket, "socket:[%lu]", inode);
    for (struct dirent *e; !out->n && (e = readdir(d));) {
        if (!strspn(e->d_name, "123456789") || !has_open(e->d_name, socket))
            continue;
        name_of(e->d_name, name);
        fl_str_printf(out, "process %s (%s)", e->d_name, name);
    }
    closedir(d);
}

/* What the kernel says to an attempt of our own. */
static int try_bind(const target *t)
{
    int on = 1, e = 0;
    int fd = socket(t->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&t->address, t->size) ||
        listen(fd, 1))
        e = errno;
    close(fd);
    return e;
}

fl_err fl_port_why(const char *exact)
{
    target t;
    fl_str who = {0};
    if (fl_starts_with(exact, "unix:"))
        return fl_fail(FL_EIO, "socket %s cannot be made", exact + 5);
    FL_TRY(resolve(exact, &t));
    int e = try_bind(&t);
    if (e != EADDRINUSE)
        return fl_fail(FL_EIO, "port %s on %s cannot be had: %s", t.port,
                       t.host, e ? strerror(e) : "it was taken just now");
    holder(&t, &who);
    fl_err err = fl_fail(FL_EIO, "port %s on %s is taken by %s", t.port, t.host,
                         who.n ? who.at : "a process that cannot be seen here");
    fl_str_fini(&who);
    return err;
}
