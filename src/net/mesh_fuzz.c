/* SPDX-License-Identifier: Apache-2.0 */
/* mesh_fuzz.c - any bytes from a peer of a mesh.
 *
 * A thread plays rank 1 for a real rank 0. Its greeting is right but for bits
 * that the input flips, with a right proof, so that what lies behind the proof
 * is reached. The rest of the input goes to the control and to the data
 * connection. Rank 0 must end with a sentence or a result, in time. */
#include "base/clock.h"
#include "net/mesh.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct input {
    const uint8_t *at;
    size_t size;
    struct sockaddr_in to;
} input;

static bool pass(int fd, void *bytes, size_t n, bool out)
{
    for (char *p = bytes; n;) {
        const ssize_t some =
            out ? send(fd, p, n, MSG_NOSIGNAL) : recv(fd, p, n, 0);
        if (some <= 0)
            return false;
        p += some;
        n -= (size_t)some;
    }
    return true;
}

/* Take the next bytes of the input. */
static void take(input *in, void *out, size_t n)
{
    memset(out, 0, n);
    n = n < in->size ? n : in->size;
    memcpy(out, in->at, n);
    in->at += n;
    in->size -= n;
}

static int greet(input *in, fl_mesh_channel c)
{
    const fl_greeting_key no_key = {"", 0};
    fl_entropy entropy = fl_entropy_fake(1);
    unsigned char flips[sizeof(fl_hello)], proof[FL_SHA256];
    fl_hello h = {.world = 2, .rank = 1, .channel = c};
    fl_hello_reply r;
    fl_hello_verdict v;
    const struct timeval second = {1, 0};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    fl_hello_seal(&h, &entropy);
    take(in, flips, 1);
    if (flips[0] & 1) { /* an input of zeros changes nothing */
        take(in, flips, sizeof flips);
        for (size_t i = 0; i < sizeof h; i++)
            ((unsigned char *)&h)[i] ^= flips[i];
    }
    if (connect(fd, (const struct sockaddr *)&in->to, sizeof in->to) ||
        !pass(fd, &h, sizeof h, true) || !pass(fd, &r, sizeof r, false)) {
        close(fd);
        return -1;
    }
    fl_hello_prove(&h, &r, no_key, proof);
    if (!pass(fd, proof, sizeof proof, true) ||
        !pass(fd, &v, sizeof v, false) || v.refused) {
        close(fd);
        return -1;
    }
    return fd;
}

static void *play_peer(void *arg)
{
    input *in = arg;
    int fd[FL_MESH_CHANNELS] = {-1, -1};
    for (int c = 0; c < FL_MESH_CHANNELS; c++)
        fd[c] = greet(in, (fl_mesh_channel)c);
    while (in->size > 1) {
        uint8_t kind, n;
        char bytes[256];
        take(in, &kind, 1);
        take(in, &n, 1);
        const size_t size = n < in->size ? n : in->size;
        take(in, bytes, size);
        if (fd[kind % FL_MESH_CHANNELS] >= 0)
            pass(fd[kind % FL_MESH_CHANNELS], bytes, size, true);
    }
    for (int c = 0; c < FL_MESH_CHANNELS; c++)
        if (fd[c] >= 0)
            close(fd[c]);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size, {.sin_family = AF_INET}};
    const char *endpoints[] = {"127.0.0.1:1", "127.0.0.1:2"};
    socklen_t length = sizeof in.to;
    fl_mesh *m = NULL;
    pthread_t peer_thread;
    char x[64];
    const size_t at[] = {0, sizeof x};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    in.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&in.to, length) || listen(fd, 8) ||
        getsockname(fd, (struct sockaddr *)&in.to, &length) ||
        pthread_create(&peer_thread, NULL, play_peer, &in))
        abort();
    const fl_mesh_opts o = {.endpoints = endpoints,
                            .world = 2,
                            .listener = fd,
                            .key = "",
                            .no_sharing = true,
                            .join_timeout = 20 * FL_MS,
                            .timeout = 20 * FL_MS};
    fl_move move = {.to = -1,
                    .from = 1,
                    .in = {.base = x, .at = at, .parts = 1, .count = 1}};
    if (!fl_mesh_join(&o, &m) && !fl_mesh_begin(m, "broadcast"))
        (void)!fl_mesh_move(m, &move);
    fl_mesh_free(m);
    pthread_join(peer_thread, NULL);
    return 0;
}
