/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - looks up host names.
 *
 * getaddrinfo may block as long as a name server does not answer, and signals
 * do not end it. So a thread of libc calls it if the caller may interrupt the
 * wait. */
#include "net/address.h"

#include "base/endpoint.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NAP 50000000 /* ns between two calls of `stop` */

/* The thread sanitizer crashes in threads that libc creates itself. */
#ifdef FL_TSAN
#define CAN_STOP false
#else
#define CAN_STOP true
#endif

/* A lookup. */
typedef struct lookup {
    struct gaicb ask;
    struct addrinfo hints;
    char host[NI_MAXHOST], port[8];
} lookup;

/* Start a lookup with all signals blocked, so that libc's thread gets none. */
static int begin_lookup(struct gaicb **list)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

/* Wait. Returns an error of getaddrinfo; EAI_INPROGRESS: `stop` ended the wait.
 */
static int wait_for_lookup(lookup *l, int (*stop)(void *user), void *user)
{
    struct gaicb *list[1] = {&l->ask};
    const struct gaicb *const waited[1] = {&l->ask};
    int error = begin_lookup(list);
    if (error)
        return error;
    while ((error = gai_error(&l->ask)) == EAI_INPROGRESS && !stop(user))
        gai_suspend(waited, 1, &(struct timespec){.tv_nsec = NAP});
    return error;
}

/* Look up a name. Numeric addresses are tried first, without a name server. */
static int look_up(lookup *l, int (*stop)(void *user), void *user)
{
    struct addrinfo numbers = l->hints;
    numbers.ai_flags |= AI_NUMERICHOST;
    int error = getaddrinfo(l->host, l->port, &numbers, &l->ask.ar_result);
    if (error == EAI_NONAME && !(CAN_STOP && stop))
        error = getaddrinfo(l->host, l->port, &l->hints, &l->ask.ar_result);
    else if (error == EAI_NONAME)
        error = wait_for_lookup(l, stop, user);
    return error;
}

static void take_addresses(struct addrinfo *all, fl_address out[FL_ADDRESSES],
                           int *n)
{
    *n = 0;
    for (const struct addrinfo *a = all; a && *n < FL_ADDRESSES;
         a = a->ai_next) {
        fl_address *to = &out[(*n)++];
        *to = (fl_address){.size = a->ai_addrlen};
        memcpy(&to->at, a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(all);
}

static fl_err read_endpoint(const char *endpoint, lookup *l)
{
    fl_endpoint e;
    FL_TRY(fl_endpoint_read(endpoint, "endpoint ", &e));
    if (e.host_size >= NI_MAXHOST)
        return fl_fail(FL_EINVAL,
                       "endpoint \"%.40s..\" has a host of %d "
                       "characters, %d at most",
                       endpoint, e.host_size, NI_MAXHOST - 1);
    l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_NUMERICSERV};
    snprintf(l->host, sizeof l->host, "%.*s", e.host_size, e.host);
    snprintf(l->port, sizeof l->port, "%d", e.port);
    l->ask.ar_name = l->host;
    l->ask.ar_service = l->port;
    l->ask.ar_request = &l->hints;
    return FL_OK;
}

fl_err fl_address_find_unless(const char *endpoint, int (*stop)(void *user),
                              void *user, fl_address out[FL_ADDRESSES], int *n)
{
    lookup *l = fl_mem_alloc(sizeof *l);
    fl_err err = read_endpoint(endpoint, l);
    const int error = err ? 0 : look_up(l, stop, user);
    if (error == EAI_INPROGRESS)
        err = fl_fail(FL_EINTR,
                      "%s: interrupted while the name of the host "
                      "was looked up",
                      endpoint);
    else if (error)
        err = fl_fail(FL_ENOENT, "%s: the name of the host is not known (%s)",
                      endpoint, gai_strerror(error));
    else if (!err)
        take_addresses(l->ask.ar_result, out, n);
    /* A lookup that cannot be cancelled is left to libc: freeing it is not
     * safe. */
    if (error != EAI_INPROGRESS || gai_cancel(&l->ask) == EAI_CANCELED)
        fl_mem_free(l);
    return err;
}

fl_err fl_address_find(const char *endpoint, fl_address out[FL_ADDRESSES],
                       int *n)
{
    return fl_address_find_unless(endpoint, NULL, NULL, out, n);
}

void fl_address_text(const fl_address *a, char out[FL_ADDRESS_TEXT])
{
    char host[FL_ADDRESS_TEXT - 10] = "?", port[8] = "?";
    const bool six = a->at.ss_family == AF_INET6;
    if (getnameinfo((const struct sockaddr *)&a->at, a->size, host, sizeof host,
                    port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(host, sizeof host, "?");
    snprintf(out, FL_ADDRESS_TEXT, six ? "[%s]:%s" : "%s:%s", host, port);
}

bool fl_address_loopback(const char *text)
{
    static const char *const starts[] = {"127.", "[::1]", "[::ffff:127."};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(text, starts[i], strlen(starts[i])))
            return true;
    return false;
}

/* --- devices --- */

static bool has_address(const struct ifaddrs *i, const char *name, int family)
{
    return i->ifa_addr && i->ifa_addr->sa_family == family &&
           !strcmp(i->ifa_name, name);
}

static fl_err no_device(const struct ifaddrs *all, const char *name)
{
    fl_str names = {0};
    bool known = false;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        known |= !strcmp(i->ifa_name, name);
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET)
            fl_str_printf(&names, "%s%s", names.n ? ", " : "", i->ifa_name);
    }
    const fl_err err =
        known ? fl_fail(FL_ENOENT, "the network device %s has no address", name)
              : fl_fail(FL_ENOENT,
                        "there is no network device %s; this host has %s", name,
                        names.n ? names.at : "none");
    fl_str_fini(&names);
    return err;
}

fl_err fl_address_device(const char *name, char out[FL_ADDRESS_TEXT])
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *all = NULL;
    fl_err err = FL_ENOENT;
    if (getifaddrs(&all))
        return fl_fail(FL_EIO, "the network devices cannot be listed: %s",
                       strerror(errno));
    for (int f = 0; f < 2 && err; f++)
        for (const struct ifaddrs *i = all; i && err; i = i->ifa_next) {
            const socklen_t size = families[f] == AF_INET
                                       ? sizeof(struct sockaddr_in)
                                       : sizeof(struct sockaddr_in6);
            if (has_address(i, name, families[f]) &&
                !getnameinfo(i->ifa_addr, size, out, FL_ADDRESS_TEXT, NULL, 0,
                             NI_NUMERICHOST))
                err = FL_OK;
        }
    if (err)
        err = no_device(all, name);
    freeifaddrs(all);
    return err;
}
