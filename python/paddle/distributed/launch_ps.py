# SPDX-License-Identifier: Apache-2.0
"""python -m paddle.distributed.launch_ps [flags] script.py [arguments]

Start the servers and trainers of a job on this host; each runs the script.
`paddle launch` does the same.
"""
import sys

from paddle.distributed import _launcher


def parse_args(argv=None):
    """The flags of the launcher, and what it runs."""
    parser = _launcher.parser(
        "launch_ps", "Start the servers and trainers of a job on this host.",
        "serverlog.N and workerlog.N",
        "a trainer that fails, or a server that is killed and keeps its "
        "state, is started again within a minute (default 3, but a trainer "
        "that ends by itself, as after an exception, is not started again)")
    add = parser.add_argument
    add("--worker_num", type=int, default=2, metavar="N",
        help="number of trainers on each host (default 2)")
    add("--server_num", type=int, metavar="N",
        help="number of servers on each host (default 2)")
    add("--endpoints", default="", metavar="HOST:PORT,..",
        help="all servers of the job, in place of --server_num")
    add("--start_port", type=int, default=0, metavar="PORT",
        help="first server port; the next servers use the ports after it "
        "(default: 6170, or the next free ports)")
    add("--durability", metavar="LEVEL",
        help="what of servers outlives their processes: memory, process or "
        "auto (default: FLUID_DURABILITY, or else auto)")
    args = _launcher.parse(parser, argv)
    args.server_num = _launcher.number(
        parser, "server_num", args.server_num, "endpoints",
        "" if args.cluster_node_ips else args.endpoints)
    return args


def launch():
    """Run the job of the command line; the exit code."""
    args = parse_args()
    return _launcher.run(args, args.server_num, args.worker_num,
                         endpoints=args.endpoints or None,
                         durability=args.durability,
                         start_port=args.start_port)


if __name__ == "__main__":
    sys.exit(launch())
