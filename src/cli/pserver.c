/* SPDX-License-Identifier: Apache-2.0 */
/* paddle pserver - hold parameters for trainers that bring their program. */
#include "cli/cli.h"

#include <string.h>

/* File scope is fine here: a process runs one command, once. */
static fl_serve_opts serve = {
    .port = 7164, .ports = 1, .sparse_ports = 1, .trainers = 1};
static const char *comment, *rdma_tcp = "tcp";
static const char *ignored[12]; /* settings of what does not exist here */

static const fl_opt opts[] = {
    {"port", FL_OPT_INT, &serve.port, "first port to listen on"},
    {"ports_num", FL_OPT_INT, &serve.ports,
     "number of ports for parameters with dense gradients"},
    {"ports_num_for_sparse", FL_OPT_INT, &serve.sparse_ports,
     "number of further ports, for parameters with sparse gradients"},
    {"num_gradient_servers", FL_OPT_INT, &serve.trainers,
     "number of trainers of the job"},
    {"nics", FL_OPT_STR, &serve.nics,
     "network devices to listen on: eth0,eth1 (default: the address in "
     "PADDLE_CURRENT_IP or POD_IP, or else all)"},
    {"keep", FL_OPT_FLAG, &serve.keep,
     "wait for another job when one has ended"},
    {"durability", FL_OPT_STR, &serve.durability,
     "what survives the end of this process: memory (nothing), process "
     "(everything: a server that is started again continues), auto (process "
     "if there is room, else memory) or host (everything, also if the host is "
     "lost) (default: FLUID_DURABILITY, or else auto); trainers need the same "
     "FLUID_DURABILITY"},
    {"comment", FL_OPT_STR, &comment,
     "any text; it marks the process in a list of processes"},
    {"rdma_tcp", FL_OPT_STR, &rdma_tcp, "only tcp is supported"},
    {"pserver_num_threads", FL_OPT_STR, &ignored[0], "no effect"},
    {"log_period", FL_OPT_STR, &ignored[1], "no effect"},
    {"log_period_server", FL_OPT_STR, &ignored[2], "no effect"},
    {"parallel_thread_num", FL_OPT_STR, &ignored[3], "no effect"},
    {"async_lagged_ratio_min", FL_OPT_STR, &ignored[4], "no effect"},
    {"async_lagged_ratio_default", FL_OPT_STR, &ignored[5], "no effect"},
    {"loadsave_parameters_in_pserver", FL_OPT_STR, &ignored[6], "no effect"},
    {"sock_send_buf_size", FL_OPT_STR, &ignored[7], "no effect"},
    {"sock_recv_buf_size", FL_OPT_STR, &ignored[8], "no effect"},
    {"sock_listen_queue_size", FL_OPT_STR, &ignored[9], "no effect"},
    {"small_messages", FL_OPT_STR, &ignored[10], "no effect"},
    {"check_sparse_distribution_in_pserver", FL_OPT_STR, &ignored[11],
     "no effect"},
    {0},
};

static int run_pserver(int n, char **arg)
{
    if (strcmp(rdma_tcp, "tcp"))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "pserver: --rdma_tcp is \"%s\", expected tcp",
                           rdma_tcp);
    fl_engine *e = fl_engine_new();
    int number = 0; /* of the signal that ended it */
    serve.signal = &number;
    const fl_err err = fl_serve(e, &serve);
    int code = err == FL_EINVAL            ? FL_EXIT_USAGE
               : err == FL_EINTR && number ? 128 + number
                                           : fl_exit_code(err);
    if (err)
        code = fl_cli_fail(code, true, "pserver");
    fl_engine_free(e);
    return code;
}

const fl_cmd fl_cmd_pserver = {
    .name = "pserver",
    .group = FL_CMD_RUN,
    .help = "serve parameters to trainers of the v2 API",
    .examples =
        "paddle pserver --port=7164 --ports_num=1 --ports_num_for_sparse=1 "
        "--num_gradient_servers=1\n"
        "    a server for one trainer: PADDLE_INIT_PSERVERS=HOST python "
        "train.py\n",
    .opts = opts,
    .run = run_pserver,
};
