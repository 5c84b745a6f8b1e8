/* address.c - names of hosts are asked for here. */
#include "net/address.h"

#include "base/endpoint.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

fl_err fl_address_find(const char *endpoint, fl_address out[FL_ADDRESSES],
                       int *n)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    char host[NI_MAXHOST], port[8];
    struct addrinfo *all;
    fl_endpoint e;
    FL_TRY(fl_endpoint_read(endpoint, "endpoint ", &e));
    if (e.host_size >= NI_MAXHOST)
        return fl_fail(FL_EINVAL,
                       "endpoint \"%.40s..\" has a host of %d "
                       "characters, %d at most",
                       endpoint, e.host_size, NI_MAXHOST - 1);
    snprintf(host, sizeof host, "%.*s", e.host_size, e.host);
    snprintf(port, sizeof port, "%d", e.port);
    const int failed = getaddrinfo(host, port, &hints, &all);
    if (failed)
        return fl_fail(FL_ENOENT, "%s: the name of the host is not known (%s)",
                       endpoint, gai_strerror(failed));
    *n = 0;
    for (const struct addrinfo *a = all; a && *n < FL_ADDRESSES;
         a = a->ai_next) {
        fl_address *to = &out[(*n)++];
        *to = (fl_address){.size = a->ai_addrlen};
        memcpy(&to->at, a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(all);
    return FL_OK;
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
