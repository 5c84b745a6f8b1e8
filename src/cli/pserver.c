/* SPDX-License-Identifier: Apache-2.0 */
/* paddle pserver - hold parameters for trainers that bring their program. */
#include "cli/cli.h"

#include <string.h>

/* File scope is fine here: a process runs one command, once. */
static fl_serve_opts serve = {
    .port = 7164, .ports = 1, .sparse_ports = 1, .trainers = 1, .nics = ""};
static const char *comment = "", *rdma_tcp = "tcp";
static int ignored[6];

static const fl_opt opts[] = {
    {"port", FL_OPT_INT, &serve.port, "first port to listen on"},
    {"ports_num", FL_OPT_INT, &serve.ports,
     "number of ports for parameters with dense gradients"},
    {"ports_num_for_sparse", FL_OPT_INT, &serve.sparse_ports,
     "number of ports after these, for parameters with sparse gradients"},
    {"num_gradient_servers", FL_OPT_INT, &serve.trainers,
     "number of trainers of the job"},
    {"nics", FL_OPT_STR, &serve.nics,
     "network devices to listen on, with commas (default: the address in "
     "PADDLE_CURRENT_IP or POD_IP, or else all)"},
    {"keep", FL_OPT_FLAG, &serve.keep,
     "wait for another job when one has ended"},
    {"comment", FL_OPT_STR, &comment,
     "any text, by which the process can be found in a list of processes"},
    {"rdma_tcp", FL_OPT_STR, &rdma_tcp, "tcp; there is nothing else"},
    {"pserver_num_threads", FL_OPT_INT, &ignored[0], "no effect"},
    {"log_period", FL_OPT_INT, &ignored[1], "no effect"},
    {"log_period_server", FL_OPT_INT, &ignored[2], "no effect"},
    {"parallel_thread_num", FL_OPT_INT, &ignored[3], "no effect"},
    {"sock_send_buf_size", FL_OPT_INT, &ignored[4], "no effect"},
    {"sock_recv_buf_size", FL_OPT_INT, &ignored[5], "no effect"},
    {0},
};

static int run_pserver(int n, char **arg)
{
    if (strcmp(rdma_tcp, "tcp"))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "pserver: --rdma_tcp is \"%s\", expected tcp",
                           rdma_tcp);
    fl_engine *e = fl_engine_new();
    const fl_err err = fl_serve(e, &serve);
    const int code =
        !err ? FL_EXIT_OK
             : fl_cli_fail(err == FL_EINVAL ? FL_EXIT_USAGE : FL_EXIT_FAILED,
                           true, "pserver");
    fl_engine_free(e);
    return code;
}

const fl_cmd fl_cmd_pserver = {
    .name = "pserver",
    .help = "serve parameters to trainers of the v2 API",
    .opts = opts,
    .run = run_pserver,
};
