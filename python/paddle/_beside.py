# SPDX-License-Identifier: Apache-2.0
"""A real PaddlePaddle beside this package is noticed, never shadowed.

Both are called `paddle`. Whichever comes first on the path wins silently, and
a script then meets half of each: so the import is refused instead.
"""
import glob
import os
import sys

# What only the original has: its compiled core, of one epoch or another.
_CORES = ("paddle/fluid/core*.so", "paddle/fluid/libpaddle*.so",
          "paddle/base/libpaddle*.so")
_RECORDS = ("paddlepaddle*.dist-info", "paddlepaddle*.egg-info")


def find_other(path, own):
    """The first PaddlePaddle on `path` that is not the folder `own`."""
    for folder in map(os.path.realpath, path):
        marks = _RECORDS
        if os.path.join(folder, "paddle") != own:
            marks += _CORES
        for mark in marks:
            found = glob.glob(mark, root_dir=folder)
            if found:
                return os.path.join(folder, min(found))
    return None


def refuse_to_shadow():
    """Raise ImportError if a PaddlePaddle could be meant by `paddle`."""
    own = os.path.dirname(os.path.realpath(__file__))
    other = find_other(sys.path, own)
    if other:
        raise ImportError(
            "paddle: %s belongs to a PaddlePaddle installation, which this "
            "package in %s would shadow; remove one of the two, or take one "
            "out of sys.path" % (other, own))
