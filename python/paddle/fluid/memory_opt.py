"""memory_optimize and release_memory: plans share memory by themselves."""
from .framework import _check_program

__all__ = ["memory_optimize", "release_memory"]


def memory_optimize(input_program, skip_opt_set=None, print_log=False,
                    level=0, skip_grads=False):
    """Nothing is to do: every plan reuses memory."""
    _check_program(input_program, "input_program")._is_mem_optimized = True


def release_memory(input_program, skip_opt_set=None):
    """Nothing is to do: every plan reuses memory."""
    _check_program(input_program, "input_program")
