/* address.c - names of hosts are asked for here. */
#include "net/address.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAST_PORT = 65535,
};

/* "[::1]:6174" is "::1" and "6174". */
static fl_err split(const char *endpoint, char host[NI_MAXHOST],
                    const char **port)
{
    const char *colon = strrchr(endpoint, ':');
    const char *end = colon;
    const bool bare = *endpoint == '[' && colon && colon[-1] == ']';
    const char *start = bare ? endpoint + 1 : endpoint;
    if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")] ||
        strtol(colon + 1, NULL, 10) > LAST_PORT)
        return fl_fail(FL_EINVAL, "\"%s\" is no endpoint, expected host:port",
                       endpoint);
    end -= bare;
    if (end <= start || end - start >= NI_MAXHOST)
        return fl_fail(FL_EINVAL, "endpoint \"%s\" has no host", endpoint);
    snprintf(host, NI_MAXHOST, "%.*s", (int)(end - start), start);
    *port = colon + 1;
    return FL_OK;
}

fl_err fl_address_find(const char *endpoint, fl_address out[FL_ADDRESSES],
                       int *n)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    char host[NI_MAXHOST];
    const char *port = NULL;
    struct addrinfo *all;
    FL_TRY(split(endpoint, host, &port));
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
