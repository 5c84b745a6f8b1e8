"""python -m paddle.distributed.launch_ps [flags] script.py [arguments]

Start the servers and trainers of a job on this host; each runs the script.
`paddle launch` does the same.
"""
import argparse
import os
import sys

from paddle.fluid import _fluid, core


def parse_args(argv=None):
    """The flags of the launcher, and what it runs."""
    parser = argparse.ArgumentParser(
        prog="python -m paddle.distributed.launch_ps",
        description="Start the servers and trainers of a job on this host.")
    add = parser.add_argument
    add("--worker_num", type=int, default=2, metavar="N",
        help="number of trainers on each host (default 2)")
    add("--server_num", type=int, default=2, metavar="N",
        help="number of servers on each host (default 2)")
    add("--endpoints", default="", metavar="HOST:PORT,..",
        help="all servers of the job, in place of --server_num")
    add("--start_port", type=int, default=0, metavar="PORT",
        help="first server port; the next servers use the ports after it "
        "(default: 6170, or the next free ports)")
    add("--cluster_node_ips", default="", metavar="HOST,..",
        help="all hosts of the job (default 127.0.0.1)")
    add("--node_ip", default="", metavar="HOST",
        help="this host, as --cluster_node_ips names it")
    add("--print_config", default=True, metavar="BOOL",
        help="accepted for old scripts; the configuration is always printed")
    add("--log_dir", default="logs", metavar="DIR",
        help="folder of the logs, serverlog.N and workerlog.N (default logs)")
    add("training_script", help="the script that every process runs")
    add("training_script_args", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    if not os.path.isfile(args.training_script):
        parser.error("there is no script %s" % args.training_script)
    return args


def launch():
    """Run the job of the command line; the exit code."""
    args = parse_args()
    try:
        return _fluid.launch(
            [sys.executable, "-u", args.training_script]
            + args.training_script_args,
            args.server_num, args.worker_num, args.endpoints or None,
            args.start_port, args.node_ip or None,
            args.cluster_node_ips or None, args.log_dir)
    except core.EnforceNotMet as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(launch())
