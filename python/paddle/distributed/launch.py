"""python -m paddle.distributed.launch [flags] script.py [arguments]

Start the ranks of a collective job on this host; each runs the script.
`paddle launch --mode collective` does the same.
"""
import argparse
import os
import sys

from paddle.fluid import _fluid, core


def parse_args(argv=None):
    """The flags of the launcher, and what it runs."""
    parser = argparse.ArgumentParser(
        prog="python -m paddle.distributed.launch",
        description="Start the ranks of a collective job on this host.")
    add = parser.add_argument
    add("--nproc_per_node", type=int, default=2, metavar="N",
        help="number of ranks on each host (default 2)")
    add("--selected_gpus", default="", metavar="N,..",
        help="a rank for each of these numbers, in place of --nproc_per_node; "
        "it finds its number in FLAGS_selected_gpus")
    add("--started_port", type=int, default=0, metavar="PORT",
        help="port of the first rank on each host; the next ranks use the "
        "ports after it (default: 6170, or the next free ports)")
    add("--cluster_node_ips", default="", metavar="HOST,..",
        help="all hosts of the job (default 127.0.0.1)")
    add("--node_ip", default="", metavar="HOST",
        help="this host, as --cluster_node_ips names it")
    add("--max_restarts", type=int, default=0, metavar="N",
        help="how often all ranks are started again after a failure "
        "(default 0)")
    add("--print_config", default=True, metavar="BOOL",
        help="accepted for old scripts; the configuration is always printed")
    add("--use_paddlecloud", action="store_true",
        help="accepted for old scripts")
    add("--log_dir", default="logs", metavar="DIR",
        help="folder of the logs, workerlog.N (default logs)")
    add("training_script", help="the script that every rank runs")
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
            0, args.nproc_per_node, start_port=args.started_port,
            node_ip=args.node_ip or None,
            cluster_node_ips=args.cluster_node_ips or None,
            log_dir=args.log_dir, collective=True,
            gpus=args.selected_gpus or None, max_restarts=args.max_restarts)
    except core.EnforceNotMet as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(launch())
