# SPDX-License-Identifier: Apache-2.0
"""The names and lookups of tables that are is_distributed."""

__all__ = ["find_distributed_lookup_table",
           "find_distributed_lookup_table_inputs",
           "find_distributed_lookup_table_outputs"]


def _lookups(program):
    """(table, operator) of each lookup in a distributed table."""
    for op in program.global_block().ops:
        if (op.has_attr("is_distributed") and op.attr("is_distributed")
                and "Out" in op.output_names):  # not a gradient
            (table,) = op.input("W")
            yield table, op


def find_distributed_lookup_table(program):
    """The name of the table that is looked up first, or None. A program may
    have several; Fluid's own scripts ask for one.

    Args:
        program (Program): the program.

    Returns:
        A str, or None.
    """
    return next((table for table, _ in _lookups(program)), None)


def find_distributed_lookup_table_inputs(program, table_name):
    """Variables of the ids that are looked up.

    Args:
        program (Program): the program.
        table_name (str): the table.

    Returns:
        A list of Variables, the ids.
    """
    block = program.global_block()
    return [block.var(name) for table, op in _lookups(program)
            if table == table_name for name in op.input("Ids")]


def find_distributed_lookup_table_outputs(program, table_name):
    """Variables of the rows that are found.

    Args:
        program (Program): the program.
        table_name (str): the table.

    Returns:
        A list of Variables, the rows.
    """
    block = program.global_block()
    return [block.var(name) for table, op in _lookups(program)
            if table == table_name for name in op.output("Out")]
