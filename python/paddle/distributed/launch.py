# SPDX-License-Identifier: Apache-2.0
"""python -m paddle.distributed.launch [flags] script.py [arguments]

Start the ranks of a collective job on this host; each runs the script.
`paddle launch --mode collective` does the same.
"""
import sys

from paddle.distributed import _launcher


def parse_args(argv=None):
    """The flags of the launcher, and what it runs."""
    parser = _launcher.parser(
        "launch", "Start the ranks of a collective job on this host.",
        "workerlog.N", "all ranks are started again after a failure "
        "(default 0)")
    add = parser.add_argument
    add("--nproc_per_node", type=int, metavar="N",
        help="number of ranks on each host (default 2)")
    add("--selected_gpus", default="", metavar="N,..",
        help="a rank for each of these numbers, in place of --nproc_per_node; "
        "it finds its number in FLAGS_selected_gpus")
    add("--started_port", type=int, default=0, metavar="PORT",
        help="port of the first rank on each host; the next ranks use the "
        "ports after it (default: 6170, or the next free ports)")
    add("--use_paddlecloud", action="store_true",
        help="accepted for old scripts")
    args = _launcher.parse(parser, argv)
    args.nproc_per_node = _launcher.number(
        parser, "nproc_per_node", args.nproc_per_node, "selected_gpus",
        args.selected_gpus)
    return args


def launch():
    """Run the job of the command line; the exit code."""
    args = parse_args()
    return _launcher.run(
        args, 0, args.nproc_per_node, collective=True,
        start_port=args.started_port, gpus=args.selected_gpus or None)


if __name__ == "__main__":
    sys.exit(launch())
