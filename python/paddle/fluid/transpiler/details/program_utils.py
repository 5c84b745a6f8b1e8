# SPDX-License-Identifier: Apache-2.0
"""Operators of a block, found and taken out; programs as text."""
from ...debugger import (block_to_code, op_to_code, program_to_code,
                         variable_to_code)

__all__ = ["block_to_code", "delete_ops", "find_op_by_input_arg",
           "find_op_by_output_arg", "op_to_code", "program_to_code",
           "variable_to_code"]


def delete_ops(block, ops):
    """Remove operators from a block.

    Args:
        block (Block): the block.
        ops (list of Operator): the operators.
    """
    for op in ops:
        if op.idx >= 0:
            block._remove_op(op.idx)


def find_op_by_input_arg(block, arg_name):
    """Find the first operator that reads a variable.

    Args:
        block (Block): the block.
        arg_name (str): the variable.

    Returns:
        Its index, or -1.
    """
    return next((i for i, op in enumerate(block.ops)
                 if arg_name in op.input_arg_names), -1)


def find_op_by_output_arg(block, arg_name, reverse=False):
    """Find an operator that writes a variable.

    Args:
        block (Block): the block.
        arg_name (str): the variable.
        reverse (bool): the last one rather than the first.

    Returns:
        Its index, or -1.
    """
    found = [i for i, op in enumerate(block.ops)
             if arg_name in op.output_arg_names]
    return found[-1 if reverse else 0] if found else -1
