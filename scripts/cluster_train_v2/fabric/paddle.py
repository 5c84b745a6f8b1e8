#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""paddle.py [--option=value ...] - start a cluster job on the hosts of conf.py.

    --job_dispatch_package=DIR   send this folder to every host as its workspace
    --job_workspace=DIR          use a workspace that every host has already
    --entry=FILE                 what trainers and servers run (train.py)

Flags of `paddle launch` (see paddle help launch), such as --server_num,
--worker_num, --ssh, --insecure and --dry_run, go to it. Every other option is
given to all processes as a variable, as paddle.init() reads it: --use_gpu=0
becomes PADDLE_INIT_USE_GPU=0. All processes run the entry; in servers
paddle.init() does what `paddle pserver` does, until the job has ended. The
launcher chooses ports and numbers of trainers, so --port, --ports_num,
--ports_num_for_sparse, --trainer_id and --num_gradient_servers have no effect.
"""
import os
import re
import subprocess
import sys

import conf


def launch_flags():
    """Names of the flags of `paddle launch`."""
    try:
        text = subprocess.run(["paddle", "help", "launch"], check=True,
                              capture_output=True, text=True).stdout
    except FileNotFoundError:
        sys.exit("paddle.py: the paddle command is not in the PATH")
    return set(re.findall(r"^  --?(\w+)", text, re.M))


def command(argv, flags):
    """What is run, and with which variables."""
    words, variables, entry = [], {}, "train.py"
    for word in argv:
        name, _, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") or not name:
            sys.exit("paddle.py: %r is no option, expected --option=value"
                     % word)
        if name == "entry":
            entry = value
        elif name in flags:
            words.append(word)
        else:
            variables["PADDLE_INIT_" + name.upper()] = value
    start = ["paddle", "launch", "--hosts", ",".join(conf.HOSTS)]
    if "--mode=collective" not in words: # else there are no servers
        start += ["--server_num", "1"]
    if not any(word.startswith("--selected_gpus=") for word in words):
        start += ["--worker_num", "1"]
    if getattr(conf, "ROOT_DIR", ""):
        start += ["--job_root", conf.ROOT_DIR]
    if getattr(conf, "LD_LIBRARY_PATH", ""):
        variables["LD_LIBRARY_PATH"] = conf.LD_LIBRARY_PATH
        start += ["--export", "LD_LIBRARY_PATH"]
    return start + words + [entry], variables


def main():
    if not sys.argv[1:] or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    words, variables = command(sys.argv[1:], launch_flags())
    os.execvpe("paddle", words, {**os.environ, **variables})


if __name__ == "__main__":
    main()
