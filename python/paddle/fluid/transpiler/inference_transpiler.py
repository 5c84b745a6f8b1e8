# SPDX-License-Identifier: Apache-2.0
"""InferenceTranspiler: nothing is left to do, plans fuse by themselves."""
from .. import core
from ..framework import _check_program

__all__ = ["InferenceTranspiler"]


class InferenceTranspiler:
    """Fluid folds operators of a program into each other here. This library
    does so when it runs the program, which stays as it is."""

    def transpile(self, program, place, scope=None):
        """Check the arguments."""
        _check_program(program, "program")
        core.check_place(place)
        if scope is not None and not isinstance(scope, core.Scope):
            raise TypeError("scope should be as Scope type or None")
