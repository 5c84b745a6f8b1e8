# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.device: the places that a program may be run on."""
from .. import core
from ..framework import cpu_places
from . import _table

_table.publish(globals(), "get_places")


def get_places(device_count=None, device_type=None):
    """The places of this machine, for scripts that give batches to them.

    Args:
        device_count (int): how many; CPU_NUM of the environment by default.
        device_type (str): "CPU"; "CUDA" is an error, since there are no GPU
            kernels.

    Returns:
        A list of CPUPlace.
    """
    if device_type not in (None, "CPU"):
        raise core.no_gpu("get_places(device_type=%r)" % device_type)
    return cpu_places(device_count)
