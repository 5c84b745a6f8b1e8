"""python -m paddle.distributed.launch_ps [flags] script.py [arguments]

Servers and trainers of a job on this host, each running the script. The same
as `paddle launch`.
"""
import argparse
import sys

from paddle.fluid import _fluid


def parse_args(argv=None):
    """The flags of the launcher, and what it runs."""
    parser = argparse.ArgumentParser(
        prog="python -m paddle.distributed.launch_ps",
        description="Start servers and trainers of a job on this host.")
    add = parser.add_argument
    add("--worker_num", type=int, default=2, help="trainers on this host")
    add("--server_num", type=int, default=2, help="servers on this host")
    add("--endpoints", default="", help="of servers: host:port,host:port")
    add("--start_port", type=int, default=0,
        help="first port of servers; 6170 or the next free ones")
    add("--node_ip", default="127.0.0.1", help="this host")
    add("--cluster_node_ips", default="127.0.0.1", help="all hosts")
    add("--print_config", default=True, help="accepted; it is printed")
    add("--log_dir", default="logs", help="serverlog.N and workerlog.N")
    add("training_script", help="what every process runs")
    add("training_script_args", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def launch():
    """Run the job of the command line; the exit code."""
    args = parse_args()
    hosts = args.cluster_node_ips
    return _fluid.launch(
        [sys.executable, "-u", args.training_script]
        + args.training_script_args,
        args.server_num, args.worker_num, args.endpoints or None,
        args.start_port, args.node_ip, hosts if "," in hosts else None,
        args.log_dir)


if __name__ == "__main__":
    sys.exit(launch())
