# SPDX-License-Identifier: Apache-2.0
"""fluid.communicator: sends and receives in the background.

FLAGS_communicator_* in the environment say how much gathers before it travels.
"""
from . import _fluid
from .framework import _check_program

__all__ = ["Communicator"]


class Communicator:
    """Sends and receives for an asynchronous trainer in threads, beside its
    work. Gradients that wait are added up. A script that ends without
    stop() loses nothing.

    Args:
        program (Program): the program of a trainer.
    """

    def __init__(self, program):
        self._program = _check_program(program, "program")

    def start(self):
        """Start the threads: send and recv of the program no longer wait."""
        _fluid.start_communicator(self._program)

    def stop(self):
        """Send what is left, wait until servers have applied it, and end."""
        _fluid.stop_communicator(self._program)

    def is_running(self):
        return _fluid.communicator_runs(self._program)
