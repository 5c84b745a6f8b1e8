/* paddle launch - start the servers and trainers of a job on this host. */
#include "cli/cli.h"

#include <string.h>

static fl_launch_opts job = {.servers = 2, .trainers = 2};
static const char *python, *print_config;

static const fl_opt opts[] = {
    {"worker_num", FL_OPT_INT, &job.trainers, "trainers on this host; 2"},
    {"trainer_num", FL_OPT_INT, &job.trainers, "the same"},
    {"server_num", FL_OPT_INT, &job.servers, "servers on this host; 2"},
    {"endpoints", FL_OPT_STR, &job.endpoints,
     "of servers: host:port,host:port"},
    {"servers", FL_OPT_STR, &job.endpoints, "the same"},
    {"start_port", FL_OPT_INT, &job.start_port,
     "first port of servers; 6170 or the next free ones"},
    {"node_ip", FL_OPT_STR, &job.node_ip, "this host; 127.0.0.1"},
    {"cluster_node_ips", FL_OPT_STR, &job.cluster_node_ips, "all hosts"},
    {"log_dir", FL_OPT_STR, &job.log_dir, "of the logs; logs"},
    {"python", FL_OPT_STR, &python, "runs a .py script; python3"},
    {"print_config", FL_OPT_STR, &print_config, "accepted; always printed"},
    {"quiet", FL_OPT_FLAG, &job.quiet, "do not show what trainer 0 says"},
    {0},
};

static bool is_script(const char *word)
{
    const char *dot = strrchr(word, '.');
    return dot && !strcmp(dot, ".py");
}

static int run(int n, char **arg)
{
    int code = FL_EXIT_FAILED, at = 0;
    if (!n)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "launch: what to run is missing; see paddle help "
                           "launch");
    const char *words[n + 3];
    memset(words, 0, sizeof words);
    if (is_script(arg[0])) {
        words[at++] = python ? python : "python3";
        words[at++] = "-u";
    }
    memcpy(words + at, arg, (size_t)n * sizeof *words);
    job.n = at + n;
    job.command = words;
    if (fl_launch_job(&job, &code))
        code = fl_cli_fail(FL_EXIT_FAILED, true, "no job");
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
