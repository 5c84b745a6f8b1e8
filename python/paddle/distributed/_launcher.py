# SPDX-License-Identifier: Apache-2.0
"""What both launchers have: most flags, the script, and the run."""
import argparse
import os
import sys

from paddle.fluid import _fluid, core


def parser(name, about, log_names, restarts):
    """A parser with the flags of both; each adds its own."""
    made = argparse.ArgumentParser(
        prog="python -m paddle.distributed." + name, description=about)
    add = made.add_argument
    add("--cluster_node_ips", default="", metavar="HOST,..",
        help="all hosts of the job (default 127.0.0.1)")
    add("--node_ip", default="", metavar="HOST",
        help="this host, as --cluster_node_ips names it")
    add("--print_config", default=True, metavar="BOOL",
        help="accepted for old scripts; the configuration is always printed")
    add("--log_dir", default="logs", metavar="DIR",
        help="folder of the logs, %s (default logs)" % log_names)
    add("--max_restarts", type=int, metavar="N", help="how often " + restarts)
    add("training_script", help="the script that every process runs")
    add("training_script_args", nargs=argparse.REMAINDER)
    return made


def parse(made, argv):
    """The arguments; a script that is not there is an error."""
    args = made.parse_args(argv)
    if not os.path.isfile(args.training_script):
        made.error("there is no script %s" % args.training_script)
    return args


def number(made, name, value, of_list, words):
    """The value of a flag, 2 by default; it may not contradict a list."""
    n = len(words.replace(",", " ").split())
    if n and value not in (None, n):
        made.error("--%s names %d, but --%s is %d; leave out one of the two"
                   % (of_list, n, name, value))
    return 2 if value is None else value


def run(args, servers, trainers, **options):
    """Run the job; the exit code, or a sentence."""
    if args.max_restarts is not None:
        options["max_restarts"] = args.max_restarts
    try:
        return _fluid.launch(
            [sys.executable, "-u", args.training_script]
            + args.training_script_args,
            servers, trainers, node_ip=args.node_ip or None,
            cluster_node_ips=args.cluster_node_ips or None,
            log_dir=args.log_dir, **options)
    except core.EnforceNotMet as error:
        return str(error)
