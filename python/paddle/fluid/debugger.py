# SPDX-License-Identifier: Apache-2.0
"""fluid.debugger: programs as text that reads like code, and as graphs."""
from .core import OpRole, VarType

__all__ = ["pprint_program_codes", "pprint_block_codes",
           "draw_block_graphviz", "program_to_code", "block_to_code",
           "op_to_code", "variable_to_code"]

_HIDDEN = ("op_role", "op_role_var", "op_namescope", "op_callstack")


def variable_to_code(var):
    """One variable as a line of text.

    Args:
        var (Variable): the variable.

    Returns:
        A str: its name, kind, shape and element type.
    """
    text = "{%s : fluid.%s" % (var.name, var.type)
    if var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS,
                    VarType.LOD_TENSOR_ARRAY):
        text += ".shape%s.astype(%s)" % (tuple(var.shape), var.dtype)
    text += "}"
    if var.is_parameter:
        text = "%s param : %s" % ("trainable" if var.trainable else "frozen",
                                  text)
    return ("persist " if var.persistable else "") + text


def _slots(op, names, args):
    return ", ".join("%s=%s" % (n, args(n)) for n in names if args(n))


def op_to_code(op, skip_op_callstack=True):
    """One operator as a line of text.

    Args:
        op (Operator): the operator.
        skip_op_callstack (bool): leave out attributes about the origin of
            operators.

    Returns:
        A str: {outputs} = type(inputs={...}, attribute = value).
    """
    attrs = op.all_attrs()
    shown = ["%s = %s" % (k, getattr(v, "idx", v))
             for k, v in sorted(attrs.items())
             if k not in _HIDDEN or not skip_op_callstack]
    return "{%s} = %s(inputs={%s}%s)" % (
        _slots(op, op.output_names, op.output), op.type,
        _slots(op, op.input_names, op.input),
        "".join(", " + s for s in shown))


def block_to_code(block, skip_op_callstack=True, show_backward=True):
    """A block as text: variables first, then operators, a line each.

    Args:
        block (Block): the block.
        skip_op_callstack (bool): leave out attributes about the origin of
            operators.
        show_backward (bool): show operators of backward and update, too.

    Returns:
        A str.
    """
    lines = ["{ // block %d" % block.idx]
    lines += ["    " + variable_to_code(v) for v in block.vars.values()]
    lines.append("")
    lines += ["    " + op_to_code(op, skip_op_callstack) for op in block.ops
              if show_backward or not _is_backward(op)]
    return "\n".join(lines + ["}"])


def _is_backward(op):
    role = op.attr("op_role") if op.has_attr("op_role") else 0
    return bool(role & (OpRole.Backward | OpRole.Optimize))


def program_to_code(prog, skip_op_callstack=True):
    """A program as short text; print(program) is the whole protobuf text.

    Args:
        prog (Program): the program.
        skip_op_callstack (bool): leave out attributes about the origin of
            operators.

    Returns:
        A str.
    """
    return "\n".join(block_to_code(b, skip_op_callstack)
                     for b in prog.blocks)


def _view(desc):
    return getattr(desc, "_view", desc)


def pprint_program_codes(program_desc):
    """A program as short text.

    Args:
        program_desc (Program or ProgramDesc): the program.

    Returns:
        A str.
    """
    return program_to_code(_view(program_desc))


def pprint_block_codes(block_desc, show_backward=False):
    """A block as short text.

    Args:
        block_desc (Block or BlockDesc): the block.
        show_backward (bool): show operators of backward and update, too.

    Returns:
        A str.
    """
    return block_to_code(_view(block_desc), show_backward=show_backward)


def _quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def draw_block_graphviz(block, highlights=None, path="./temp.dot"):
    """Write a block to a file as a graph for Graphviz.

    Args:
        block (Block or BlockDesc): the block.
        highlights (list of str): variables that are coloured.
        path (str): the file.
    """
    block, marked = _view(block), set(highlights or ())
    lines = ["digraph G {"]
    for var in block.vars.values():
        colour = (', style=filled, fillcolor="orange"'
                  if var.name in marked else "")
        shape = "box" if var.is_parameter else "ellipse"
        lines.append("  %s [shape=%s%s];" % (_quoted(var.name), shape,
                                             colour))
    for i, op in enumerate(block.ops):
        lines.append("  op_%d [shape=box, style=rounded, label=%s];"
                     % (i, _quoted(op.type)))
        lines += ["  %s -> op_%d;" % (_quoted(n), i)
                  for n in op.input_arg_names]
        lines += ["  op_%d -> %s;" % (i, _quoted(n))
                  for n in op.output_arg_names]
    with open(path, "w") as file:
        file.write("\n".join(lines + ["}", ""]))
