"""What scripts take from inside Fluid's transpiler."""
from . import checkport, program_utils
from .checkport import wait_server_ready
from .program_utils import (delete_ops, find_op_by_input_arg,
                            find_op_by_output_arg)

__all__ = ["delete_ops", "find_op_by_input_arg", "find_op_by_output_arg",
           "wait_server_ready"]
