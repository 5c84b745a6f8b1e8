/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - memory from memfd_create, sent with SCM_RIGHTS.
 *
 * The size is sealed. Otherwise a peer that shrinks the memory would kill the
 * process that reads it. */
#include "net/share.h"

#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void fl_share_host(unsigned char out[FL_SHARE_HOST])
{
    char boot[64] = "";
    struct stat net;
    const uid_t user = geteuid();
    const int fd =
        open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, boot, sizeof boot - 1);
    if (fd >= 0)
        close(fd);
    memset(out, 0, FL_SHARE_HOST);
    if (n <= 0 || stat("/proc/self/ns/net", &net))
        return;
    fl_sha256 s;
    fl_sha256_init(&s);
    fl_sha256_add(&s, boot, (size_t)n);
    fl_sha256_add(&s, &net.st_ino, sizeof net.st_ino);
    fl_sha256_add(&s, &user, sizeof user);
    fl_sha256_end(&s, out);
}

/* The name begins with a zero byte: it is abstract, not a file. */
static socklen_t fill_address(const unsigned char name[FL_SHARE_NAME],
                              struct sockaddr_un *a)
{
    char *to = a->sun_path + 1;
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    to += snprintf(to, 8, "fluid-");
    for (int i = 0; i < FL_SHARE_NAME; i++)
        to += snprintf(to, 3, "%02x", name[i]);
    return (socklen_t)(to - (char *)a);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int fl_share_listen(const unsigned char name[FL_SHARE_NAME])
{
    struct sockaddr_un a;
    const socklen_t size = fill_address(name, &a);
    const int fd = new_socket();
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, size) && !listen(fd, 128))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int fl_share_connect(const unsigned char name[FL_SHARE_NAME])
{
    struct sockaddr_un a;
    const socklen_t size = fill_address(name, &a);
    const int fd = new_socket();
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, size))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool fl_share_trusts(int fd)
{
    struct ucred other;
    socklen_t size = sizeof other;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) &&
           other.uid == geteuid();
}

static void *map_memory(int fd, size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* A message of one byte and a descriptor. */
typedef struct parcel {
    char byte;
    struct iovec v;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct msghdr msg;
} parcel;

static void init_parcel(parcel *p)
{
    *p = (parcel){.byte = 'm'};
    p->v = (struct iovec){&p->byte, 1};
    p->msg = (struct msghdr){.msg_iov = &p->v,
                             .msg_iovlen = 1,
                             .msg_control = p->control,
                             .msg_controllen = sizeof p->control};
}

/* Send one byte and a descriptor; fd -1: only the byte. */
static bool send_descriptor(int to, int fd)
{
    parcel p;
    init_parcel(&p);
    struct cmsghdr *c = CMSG_FIRSTHDR(&p.msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (fd < 0)
        p.msg.msg_controllen = 0;
    return sendmsg(to, &p.msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void *fl_share_send(int fd, size_t size)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const int memory =
        memfd_create("fluid-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *at = NULL;
    if (memory >= 0 && !ftruncate(memory, (off_t)size) &&
        !fcntl(memory, F_ADD_SEALS, seals))
        at = map_memory(memory, size);
    if (!send_descriptor(fd, at ? memory : -1) && at) {
        fl_share_end(at, size);
        at = NULL;
    }
    if (memory >= 0)
        close(memory);
    return at;
}

/* Receive a descriptor; -1: errno says why. */
static int receive_descriptor(int from)
{
    parcel p;
    int fd;
    init_parcel(&p);
    const ssize_t n = recvmsg(from, &p.msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -1;
    const struct cmsghdr *c = n ? CMSG_FIRSTHDR(&p.msg) : NULL;
    if (n && !c) {
        errno = ENOENT;
        return -1;
    }
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof fd)) {
        errno = EPROTO;
        return -1;
    }
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

void *fl_share_receive(int fd, size_t size)
{
    struct stat st;
    const int memory = receive_descriptor(fd);
    if (memory < 0)
        return NULL;
    const int seals = fcntl(memory, F_GET_SEALS);
    void *at = NULL;
    if (seals >= 0 && seals & F_SEAL_SHRINK && !fstat(memory, &st) &&
        (size_t)st.st_size >= size)
        at = map_memory(memory, size);
    close(memory);
    errno = EPROTO;
    return at;
}

void fl_share_end(void *memory, size_t size)
{
    if (memory)
        munmap(memory, size);
}
