/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c - reads "host:port". It is the only place that does, so that a
 * mistake gets the same error message in an argument and in a variable. */
#include "base/endpoint.h"

#include <stdlib.h>
#include <string.h>

enum {
    LAST_PORT = 65535,
};

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

static fl_err wrong_port(const char *text, const char *what, const char *port)
{
    return fl_fail(FL_EINVAL,
                   "%s\"%s\" has the port \"%s\", expected a number from 1 to "
                   "%d",
                   what, text, port, LAST_PORT);
}

fl_err fl_endpoint_read(const char *text, const char *what, fl_endpoint *out)
{
    const char *colon = strrchr(text, ':');
    const bool bracket = *text == '[' && colon && colon[-1] == ']';
    if (!colon || !colon[1])
        return fl_fail(FL_EINVAL, "%s\"%s\" has no port, expected host:port",
                       what, text);
    const char *host = text + bracket;
    const int size = (int)(colon - host) - bracket;
    if (size <= 0)
        return fl_fail(FL_EINVAL, "%s\"%s\" has no host, expected host:port",
                       what, text);
    if (!bracket && memchr(host, ':', (size_t)size))
        return fl_fail(FL_EINVAL,
                       "%s\"%s\" has several colons, expected host:port or "
                       "[IPv6 address]:port",
                       what, text);
    if (!is_number(colon + 1) || strtol(colon + 1, NULL, 10) > LAST_PORT)
        return wrong_port(text, what, colon + 1);
    *out = (fl_endpoint){host, size, (int)strtol(colon + 1, NULL, 10)};
    return FL_OK;
}

fl_err fl_endpoint_check(const char *text, const char *what)
{
    fl_endpoint e;
    FL_TRY(fl_endpoint_read(text, what, &e));
    return e.port ? FL_OK : wrong_port(text, what, "0");
}
