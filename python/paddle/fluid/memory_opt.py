# SPDX-License-Identifier: Apache-2.0
"""memory_optimize and release_memory: plans share memory by themselves."""
from .framework import _check_program

__all__ = ["memory_optimize", "release_memory"]


def memory_optimize(input_program, skip_opt_set=None, print_log=False,
                    level=0, skip_grads=False):
    """Mark a program as optimised; every plan reuses memory by itself.

    Args:
        input_program (Program): the program.
        skip_opt_set (set): accepted and ignored.
        print_log (bool): accepted and ignored.
        level (int): accepted and ignored.
        skip_grads (bool): accepted and ignored.
    """
    _check_program(input_program, "input_program")._is_mem_optimized = True


def release_memory(input_program, skip_opt_set=None):
    """Do nothing: every plan reuses memory by itself.

    Args:
        input_program (Program): the program.
        skip_opt_set (set): accepted and ignored.
    """
    _check_program(input_program, "input_program")
