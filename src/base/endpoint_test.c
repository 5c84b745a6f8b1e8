/* SPDX-License-Identifier: Apache-2.0 */
#include "base/endpoint.h"

#include "base/test.h"

#include <string.h>

static void check_parts(const char *text, const char *host, int port)
{
    fl_endpoint e;
    CHECK_OK(fl_endpoint_read(text, "", &e));
    CHECK_INT(e.host_size, (int64_t)strlen(host));
    CHECK(!memcmp(e.host, host, strlen(host)));
    CHECK_INT(e.port, port);
}

static void has_a_host_and_a_port(void)
{
    check_parts("ps0.example.com:6174", "ps0.example.com", 6174);
    check_parts("10.0.0.1:65535", "10.0.0.1", 65535);
    check_parts("[2001:db8::7]:80", "2001:db8::7", 80);
    check_parts("localhost:0", "localhost", 0); /* any free port */
}

static void says_what_is_missing_or_out_of_range(void)
{
    const struct {
        const char *text, *says;
    } rows[] = {
        {"", "server \"\" has no port, expected host:port"},
        {"ps0", "server \"ps0\" has no port, expected host:port"},
        {"ps0:", "server \"ps0:\" has no port, expected host:port"},
        {":6174", "server \":6174\" has no host, expected host:port"},
        {"[]:6174", "server \"[]:6174\" has no host, expected host:port"},
        {"::1:80", "server \"::1:80\" has several colons, expected host:port "
                   "or [IPv6 address]:port"},
        {"ps0:a", "server \"ps0:a\" has the port \"a\", expected a number from "
                  "1 to 65535"},
        {"ps0:7x", "has the port \"7x\""},
        {"ps0:-1", "has the port \"-1\""},
        {"ps0:65536", "has the port \"65536\", expected a number from 1 to "},
        {"ps0:99999999999999999999", "has the port \"99999999999999999999\""},
    };
    fl_endpoint e;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_ERR(fl_endpoint_read(rows[i].text, "server ", &e), FL_EINVAL,
                  rows[i].says);
}

static void of_a_server_has_a_port_that_others_know(void)
{
    CHECK_OK(fl_endpoint_check("ps0:1", "server "));
    CHECK_ERR(fl_endpoint_check("ps0:0", "server "), FL_EINVAL,
              "server \"ps0:0\" has the port \"0\", expected a number from 1 "
              "to 65535");
    CHECK_ERR(fl_endpoint_check("ps0", "server "), FL_EINVAL, "has no port");
}

const fl_test fl_tests[] = {
    {"an endpoint has a host and a port", has_a_host_and_a_port},
    {"an endpoint says what is missing or out of range",
     says_what_is_missing_or_out_of_range},
    {"an endpoint of a server has a port that others know",
     of_a_server_has_a_port_that_others_know},
    {0},
};
