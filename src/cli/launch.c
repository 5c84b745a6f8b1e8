/* paddle launch - start the servers and trainers of a job on this host. */
#include "cli/cli.h"

static fl_launch_opts job = {.servers = 2, .trainers = 2, .log_dir = "logs"};
static const char *print_config;

static const fl_opt opts[] = {
    {"worker_num", FL_OPT_INT, &job.trainers, "trainers on each host"},
    {"trainer_num", FL_OPT_INT, &job.trainers, "the same"},
    {"server_num", FL_OPT_INT, &job.servers, "servers on each host"},
    {"endpoints", FL_OPT_STR, &job.endpoints,
     "of all servers, in place of --server_num: host:port,host:port"},
    {"servers", FL_OPT_STR, &job.endpoints, "the same"},
    {"start_port", FL_OPT_INT, &job.start_port,
     "of servers, and on; 6170 or the next free ones"},
    {"cluster_node_ips", FL_OPT_STR, &job.cluster_node_ips,
     "all hosts; 127.0.0.1"},
    {"node_ip", FL_OPT_STR, &job.node_ip, "which of them is this one"},
    {"log_dir", FL_OPT_STR, &job.log_dir,
     "where serverlog.N and workerlog.N are written"},
    {"python", FL_OPT_STR, &job.python,
     "runs a .py script; $PADDLE_PYTHON or python3"},
    {"print_config", FL_OPT_STR, &print_config, "accepted; always printed"},
    {"quiet", FL_OPT_FLAG, &job.quiet, "do not show what trainer 0 says"},
    {0},
};

static int run(int n, char **arg)
{
    int code = FL_EXIT_FAILED;
    if (!n)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "launch: what to run is missing; see paddle help "
                           "launch");
    job.n = n;
    job.command = (const char *const *)arg;
    if (fl_launch_job(&job, &code))
        code = fl_cli_fail(FL_EXIT_FAILED, false, "%s", fl_errmsg());
    return code;
}

const fl_cmd fl_cmd_launch = {
    .name = "launch",
    .args = "SCRIPT.py|PROGRAM [ARGUMENT...]",
    .help = "start servers and trainers of a job on this host",
    .opts = opts,
    .own_flags = true,
    .run = run,
};
