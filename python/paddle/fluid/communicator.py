# SPDX-License-Identifier: Apache-2.0
"""fluid.communicator: the traffic of an asynchronous trainer, beside its work.

FLAGS_communicator_* in the environment say how much gathers before it travels.
"""
from . import _fluid
from .framework import _check_program

__all__ = ["Communicator"]


class Communicator:
    """The traffic of an asynchronous trainer with its servers, beside its
    work. Gradients that wait are added up. A script that ends without
    stop() loses nothing.

    Args:
        program (Program): the program of a trainer.
    """

    def __init__(self, program):
        self._program = _check_program(program, "program")

    def start(self):
        """From now on send and recv of the program do not wait for servers."""
        _fluid.start_communicator(self._program)

    def stop(self):
        """Returns when the servers have applied all that was sent."""
        _fluid.stop_communicator(self._program)

    def is_running(self):
        return _fluid.communicator_runs(self._program)
