# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C under a launcher, while a script still imports its modules, shows one
line rather than a traceback. fluid/_stop.py has the rest of the life of a
process."""
import os
import sys


def show_one_line():
    """Replace the traceback of a KeyboardInterrupt by one line."""
    show = sys.excepthook

    def hook(kind, error, trace):
        if issubclass(kind, KeyboardInterrupt):
            sys.stderr.write("paddle: ended by Ctrl-C\n")
        else:
            show(kind, error, trace)

    if os.environ.get("FLUID_LAUNCHED") == "1":
        sys.excepthook = hook
