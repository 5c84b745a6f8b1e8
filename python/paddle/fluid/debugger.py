"""fluid.debugger: programs as text that reads like code, and as graphs."""
from .core import OpRole, VarType

__all__ = ["pprint_program_codes", "pprint_block_codes",
           "draw_block_graphviz", "program_to_code", "block_to_code",
           "op_to_code", "variable_to_code"]

_HIDDEN = ("op_role", "op_role_var", "op_namescope", "op_callstack")


def variable_to_code(var):
    """`{name : kind.dtype.shape ...}` of one variable."""
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
    """`{outs} = type(inputs={...}, attr=value)` of one operator."""
    attrs = op.all_attrs()
    shown = ["%s = %s" % (k, getattr(v, "idx", v))
             for k, v in sorted(attrs.items())
             if k not in _HIDDEN or not skip_op_callstack]
    return "{%s} = %s(inputs={%s}%s)" % (
        _slots(op, op.output_names, op.output), op.type,
        _slots(op, op.input_names, op.input),
        "".join(", " + s for s in shown))


def block_to_code(block, skip_op_callstack=True, show_backward=True):
    """A block's variables and operators, a line each."""
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
    """Every block of a program."""
    return "\n".join(block_to_code(b, skip_op_callstack)
                     for b in prog.blocks)


def _view(desc):
    return getattr(desc, "_view", desc)


def pprint_program_codes(program_desc):
    """Every block of a program, as text."""
    return program_to_code(_view(program_desc))


def pprint_block_codes(block_desc, show_backward=False):
    """One block as text; the backward part only if asked for."""
    return block_to_code(_view(block_desc), show_backward=show_backward)


def _quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def draw_block_graphviz(block, highlights=None, path="./temp.dot"):
    """Write a block to `path` as a graph for Graphviz."""
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
