/* SPDX-License-Identifier: Apache-2.0 */
/* paddle launch - start the processes of a job, here or on many hosts. */
#include "cli/cli.h"

#include <string.h>

static fl_launch_opts job = {.servers = 2,
                             .trainers = 2,
                             .log_dir = "logs",
                             .max_restarts = FL_RESTARTS_DEFAULT};
static const char *print_config, *mode = "pserver", *hostfile;

static const fl_opt opts[] = {
    {"mode", FL_OPT_STR, &mode,
     "pserver: servers and trainers; collective: trainers alone, which "
     "average their gradients"},
    {"worker_num", FL_OPT_INT, &job.trainers,
     "number of trainers on each host"},
    {"trainer_num", FL_OPT_INT, &job.trainers, "same as --worker_num"},
    {"nproc_per_node", FL_OPT_INT, &job.trainers, "same as --worker_num"},
    {"server_num", FL_OPT_INT, &job.servers, "number of servers on each host"},
    {"endpoints", FL_OPT_STR, &job.endpoints,
     "all servers of the job, in place of --server_num: host:port,host:port"},
    {"servers", FL_OPT_STR, &job.endpoints, "same as --endpoints"},
    {"start_port", FL_OPT_INT, &job.start_port,
     "first server port; the next servers use the ports after it (default: "
     "6170, or the next free ports); with --mode collective: first trainer "
     "port; a port that was asked for and is in use is an error"},
    {"started_port", FL_OPT_INT, &job.start_port, "same as --start_port"},
    {"cluster_node_ips", FL_OPT_STR, &job.cluster_node_ips,
     "all hosts of the job: host,host (default: 127.0.0.1)"},
    {"node_ip", FL_OPT_STR, &job.node_ip,
     "this host, as --cluster_node_ips names it"},
    {"hosts", FL_OPT_STR, &job.hosts,
     "start the job on these hosts by ssh: user@host:port,host"},
    {"H", FL_OPT_STR, &job.hosts, "same as --hosts"},
    {"hostfile", FL_OPT_STR, &hostfile,
     "file with a host in each line, or with HOSTS = [...] as in conf.py, in "
     "place of --hosts"},
    {"job_workspace", FL_OPT_STR, &job.workspace,
     "with --hosts: folder on each host in which all processes run (default: "
     "the current folder)"},
    {"job_dispatch_package", FL_OPT_STR, &job.package,
     "with --hosts: folder that is sent to each host as its workspace"},
    {"job_root", FL_OPT_STR, &job.workspace_root,
     "with --job_dispatch_package and no --job_workspace: folder on each host "
     "in which a workspace is made, named JOB, the time and a random number "
     "(default: the home folder)"},
    {"export", FL_OPT_STR, &job.exported,
     "with --hosts: environment variables to pass to all processes: NAME,NAME; "
     "variables that begin with FLUID_, FL_, PADDLE_, FLAGS_, GLOG_, GRPC_, "
     "OMP_ or PYTHON are always passed"},
    {"mpi", FL_OPT_FLAG, &job.mpi,
     "start one job together with the other launchers that mpirun started"},
    {"slurm", FL_OPT_FLAG, &job.slurm,
     "start the job by srun on all hosts of this Slurm job; the flags for "
     "--hosts apply"},
    {"pod", FL_OPT_FLAG, &job.pod,
     "run the one process that the name of this Kubernetes pod stands for; "
     "needs --server_num and --worker_num of the job (paddle k8s writes this "
     "flag)"},
    {"insecure", FL_OPT_FLAG, &job.insecure,
     "with --hosts or --mpi: do not encrypt what hosts send to each other"},
    {"ssh", FL_OPT_STR, &job.ssh,
     "with --hosts: the ssh command and its flags, with quotes as in a shell "
     "(default: ssh); with --slurm: the srun command (default: srun)"},
    {"remote_paddle", FL_OPT_STR, &job.remote_paddle,
     "with --hosts: the paddle command on the hosts (default: the path of this "
     "one, or else the one in their PATH)"},
    {"log_dir", FL_OPT_STR, &job.log_dir,
     "folder of the logs, serverlog.N and workerlog.N"},
    {"max_restarts", FL_OPT_INT, &job.max_restarts,
     "how often a process is started again within a minute, at most: a server "
     "that is killed and keeps its state, or a trainer that fails; 0: never "
     "(default: 3; a trainer that is not killed, but fails, as by an "
     "exception, then only if FLUID_SNAPSHOT_DIR is set); with --mode "
     "collective: how often all trainers are started again (default: 0)"},
    {"durability", FL_OPT_STR, &job.durability,
     "what survives the end of server processes: memory (nothing), process "
     "(everything: servers that are started again continue), auto (process if "
     "there is room, else memory) or host (everything, also if the host is "
     "lost) (default: FLUID_DURABILITY, or else auto; with --max_restarts 0: "
     "memory)"},
    {"selected_gpus", FL_OPT_STR, &job.gpus,
     "with --mode collective, in place of --worker_num: start a trainer for "
     "each of these numbers and set its FLAGS_selected_gpus"},
    {"python", FL_OPT_STR, &job.python,
     "Python that runs a .py script (default: $PADDLE_PYTHON, or python3)"},
    {"print_config", FL_OPT_STR, &print_config,
     "accepted for old scripts; the configuration is always printed"},
    {"dry_run", FL_OPT_FLAG, &job.dry_run,
     "print what would run where, with the variables that the launcher sets, "
     "and start nothing"},
    {"quiet", FL_OPT_FLAG, &job.quiet,
     "do not show the output of trainer 0, or with --hosts of any process"},
    {0},
};

static int count_names(const char *list)
{
    int n = 0;
    for (; list && *list; list += strcspn(list, ", ")) {
        list += strspn(list, ", ");
        n += *list != 0;
    }
    return n;
}

/* Refuse a list and a number that do not agree: one would have no effect. */
static int check_number(const char *flag, const char *list, const char *what,
                        const int *number)
{
    const int n = count_names(list);
    if (!n || n == *number || !fl_cli_is_given(number))
        return FL_EXIT_OK;
    return fl_cli_fail(FL_EXIT_USAGE, false,
                       "launch: --%s names %d %s%s, but --%s_num is %d; leave "
                       "out one of the two",
                       flag, n, what, n == 1 ? "" : "s",
                       number == &job.servers ? "server" : "worker", *number);
}

static int check_flags(void)
{
    int code = FL_EXIT_OK;
    if (strcmp(mode, "collective") && strcmp(mode, "pserver"))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "launch: --mode is \"%s\", expected pserver or "
                           "collective",
                           mode);
    if (job.hosts && hostfile)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "launch: --hosts and --hostfile both name the "
                           "hosts; leave out one of the two");
    if (job.collective && fl_cli_is_given(&job.servers))
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "launch: --mode collective has no servers; leave "
                           "out --server_num");
    if (job.collective)
        code =
            check_number("selected_gpus", job.gpus, "trainer", &job.trainers);
    const int gpus = count_names(job.gpus), ranks = count_names(job.endpoints);
    if (!code && job.collective && !job.cluster_node_ips && gpus && ranks &&
        gpus != ranks)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "launch: --selected_gpus names %d trainer%s, but "
                           "--endpoints names %d; leave out one of the two",
                           gpus, gpus == 1 ? "" : "s", ranks);
    if (!code && !job.cluster_node_ips) /* these numbers are for each host */
        code = check_number("endpoints", job.endpoints,
                            job.collective ? "trainer" : "server",
                            job.collective ? &job.trainers : &job.servers);
    return code;
}

static int run_launch(int n, char **arg)
{
    int code = FL_EXIT_FAILED;
    if (!n)
        return fl_cli_fail(FL_EXIT_USAGE, false,
                           "launch: name the script or program to run; see "
                           "paddle help launch");
    job.collective = !strcmp(mode, "collective");
    code = check_flags();
    if (code)
        return code;
    code = FL_EXIT_FAILED;
    char *named = NULL;
    if (hostfile && fl_launch_hosts_read(hostfile, &named))
        return fl_cli_fail(FL_EXIT_FAILED, true, "launch");
    if (named)
        job.hosts = named;
    job.n = n;
    job.command = (const char *const *)arg;
    if (fl_launch_job(&job, &code))
        code = fl_cli_fail(FL_EXIT_FAILED, false, "%s", fl_errmsg());
    fl_free(named);
    return code;
}

const fl_cmd fl_cmd_launch = {
    .name = "launch",
    .group = FL_CMD_RUN,
    .args = "SCRIPT.py|PROGRAM [ARGUMENT...]",
    .help = "start the processes of a job, on this host or on many",
    .examples =
        "paddle launch train.py\n"
        "    2 servers and 2 trainers on this host\n"
        "paddle launch --mode collective --worker_num 4 train.py\n"
        "    4 trainers without servers\n"
        "paddle launch --hosts node1,node2 --server_num 1 --worker_num 2 "
        "train.py\n"
        "    the same folder on two hosts, reached by ssh\n"
        "paddle launch --hostfile conf.py --job_dispatch_package . train.py\n"
        "    send this folder to each host of a file first\n"
        "mpirun -hostfile machines -n 3 paddle launch --mpi train.py\n"
        "srun --nodes 3 paddle launch --slurm train.py\n"
        "    run on the hosts of mpirun, or of Slurm\n"
        "paddle launch --dry_run --hosts node1,node2 train.py\n"
        "    what would run where, with every variable\n",
    .opts = opts,
    .own_flags = true,
    .run = run_launch,
};
