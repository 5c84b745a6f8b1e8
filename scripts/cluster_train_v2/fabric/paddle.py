#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""paddle.py [--option=value ...] - start a cluster job on the hosts of conf.py.

    --job_dispatch_package=DIR   send this folder to every host as its workspace
    --job_workspace=DIR          use a workspace that every host has already
    --entry=FILE                 what trainers and servers run (train.py)

Flags of `paddle launch`, such as --server_num, --worker_num, --ssh, --insecure
and --dry_run, go to it. Every other option is given to all processes as a variable,
as paddle.init() reads it: --use_gpu=0 becomes PADDLE_INIT_USE_GPU=0.
"""
import os
import shutil
import sys

import conf

# Flags of `paddle launch`; those of the second list have no value.
LAUNCH = ["job_dispatch_package", "job_workspace", "job_root", "server_num",
          "worker_num", "start_port", "log_dir", "python", "ssh", "export",
          "remote_paddle", "max_restarts", "mode"]
ALONE = ["insecure", "dry_run", "quiet"]


def split(argv):
    """Words for the launcher, variables, and the entry."""
    words, variables, entry = [], {}, "train.py"
    for word in argv:
        name, _, value = word.lstrip("-").partition("=")
        if not word.startswith("--") or not name:
            sys.exit("paddle.py: %r is no option, expected --option=value"
                     % word)
        if name == "entry":
            entry = value
        elif name in LAUNCH:
            words += ["--" + name, value]
        elif name in ALONE:
            words += ["--" + name]
        else:
            variables["PADDLE_INIT_" + name.upper()] = value
    return words, variables, entry


def command(argv):
    """What is run, and with which variables."""
    words, variables, entry = split(argv)
    start = ["paddle", "launch", "--hosts", ",".join(conf.HOSTS),
             "--server_num", "1", "--worker_num", "1"]
    if conf.ROOT_DIR:
        start += ["--job_root", conf.ROOT_DIR]
    if conf.LD_LIBRARY_PATH:
        variables["LD_LIBRARY_PATH"] = conf.LD_LIBRARY_PATH
        start += ["--export", "LD_LIBRARY_PATH"]
    return start + words + [entry], variables


def main():
    if not sys.argv[1:] or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    words, variables = command(sys.argv[1:])
    if not shutil.which("paddle"):
        sys.exit("paddle.py: the paddle command is not in the PATH")
    os.execvpe("paddle", words, {**os.environ, **variables})


if __name__ == "__main__":
    main()
