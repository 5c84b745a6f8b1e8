"""The `desc` of programs, blocks, operators and variables.

The original keeps two objects for each thing, one in Python and one in C++
behind `.desc`, whose fields are methods. Here both are one live view; these
classes give it the second face, for code that looks at it.
"""
from .core import AttrType, VarType


def _get(field, convert=None):
    """A method that reads a field of the view."""
    def getter(self):
        value = getattr(self._view, field)
        return convert(value) if convert else value
    getter.__doc__ = "Its %s." % field
    return getter


def _set(field):
    """A method that writes a field of the view."""
    def setter(self, value):
        setattr(self._view, field, value)
    setter.__doc__ = "Give it another %s." % field
    return setter


def _text(name):
    return name.decode() if isinstance(name, bytes) else name


class _Desc:
    """The second face of a view; equal if the view is the same."""

    def __init__(self, view):
        self._view = view

    def __eq__(self, other):
        return isinstance(other, _Desc) and self._view is other._view

    def __hash__(self):
        return id(self._view)


class VarDesc(_Desc):
    """A variable's."""
    VarType = VarType
    name = _get("name")
    shape = _get("shape", list)
    dtype = _get("dtype", VarType)
    type = _get("type", VarType)
    lod_level = _get("lod_level")
    persistable = _get("persistable")
    set_shape = _set("shape")
    set_dtype = _set("dtype")
    set_type = _set("type")
    set_lod_level = _set("lod_level")
    set_persistable = _set("persistable")


class OpDesc(_Desc):
    """An operator's."""
    type = _get("type")
    input_names = _get("input_names")
    output_names = _get("output_names")
    input_arg_names = _get("input_arg_names")
    output_arg_names = _get("output_arg_names")
    attr_names = _get("attr_names")

    def input(self, slot):
        return self._view.input(slot)

    def output(self, slot):
        return self._view.output(slot)

    def has_attr(self, name):
        return self._view.has_attr(name)

    def attr(self, name):
        value = self._view.attr(name)
        return getattr(value, "desc", value)

    def attr_type(self, name):
        return AttrType(self._view.attr_type(name))

    def _set_attr(self, name, value):
        self._view._set_attr(name, value)

    def remove_attr(self, name):
        self._view._remove_attr(name)

    def _rename_input(self, old, new):
        self._view._rename_input(old, new)

    def _rename_output(self, old, new):
        self._view._rename_output(old, new)

    def _block_attr_id(self, name):
        return self._view._block_attr_id(name)

    def infer_shape(self, block=None):
        self._view.infer_shape()


class BlockDesc(_Desc):
    """A block's."""
    id = property(_get("idx"))
    parent = property(_get("parent_idx"))
    get_forward_block_idx = _get("forward_block_idx")
    _set_forward_block_idx = _set("forward_block_idx")
    op_size = _get("num_ops")

    def op(self, index):
        return self._view.ops[index].desc

    def all_vars(self):
        return [v.desc for v in self._view.vars.values()]

    def has_var(self, name):
        return self._view.has_var(_text(name))

    def has_var_recursive(self, name):
        return self._view.find_var_recursive(_text(name)) is not None

    def find_var(self, name):
        var = self._view.find_var(_text(name))
        return var and var.desc

    def find_var_recursive(self, name):
        var = self._view.find_var_recursive(_text(name))
        return var and var.desc

    def var(self, name):
        return self._view.create_var(name=_text(name)).desc

    def _remove_op(self, begin, end):
        for index in reversed(range(begin, end)):
            self._view._remove_op(index)

    def _rename_var(self, old, new):
        self._view._rename_var(_text(old), _text(new))

    def _remove_var(self, name):
        self._view._remove_var(_text(name))


class ProgramDesc(_Desc):
    """A program's."""
    num_blocks = _get("num_blocks")

    def block(self, index):
        return self._view.block(index).desc

    def serialize_to_string(self):
        return self._view.serialize_to_string()
