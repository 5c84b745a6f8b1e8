# SPDX-License-Identifier: Apache-2.0
"""What scripts take from inside Fluid's transpiler."""
from .... import _absent
from . import checkport, program_utils, ufind
from .checkport import wait_server_ready
from .program_utils import (block_to_code, delete_ops, find_op_by_input_arg,
                            find_op_by_output_arg, op_to_code,
                            program_to_code, variable_to_code)
from .ufind import UnionFind

__all__ = ["UnionFind", "block_to_code", "delete_ops", "find_op_by_input_arg",
           "find_op_by_output_arg", "op_to_code", "program_to_code",
           "variable_to_code", "wait_server_ready"]

_absent.answer_for(globals())
