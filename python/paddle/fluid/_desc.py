# SPDX-License-Identifier: Apache-2.0
"""The `desc` of programs, blocks, operators and variables.

The original keeps two objects for each thing, one in Python and one in C++
behind `.desc`, whose fields are methods. Here both are one live view; these
classes give it the second face, for code that looks at it.
"""
from .core import AttrType, VarType, kGradVarSuffix


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


def _texts(names):
    return [_text(n) for n in ([names] if isinstance(names, (str, bytes))
                               else names)]


class _Desc:
    """The `desc` of a view. Two are equal if they have the same view."""

    def __init__(self, view):
        self._view = view

    def __eq__(self, other):
        return isinstance(other, _Desc) and self._view is other._view

    def __hash__(self):
        return id(self._view)


class VarDesc(_Desc):
    """The desc of a variable."""
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


class _Draft:
    """An operator that is not complete yet: it has the fields of an
    Operator, but nothing is checked, and no block holds it."""

    def __init__(self, type="", inputs=None, outputs=None, attrs=None):
        self.type = type
        self.inputs, self.outputs = dict(inputs or {}), dict(outputs or {})
        self.attrs = dict(attrs or {})

    @classmethod
    def of(cls, view):
        """A copy of an operator."""
        return cls(view.type, {s: view.input(s) for s in view.input_names},
                   {s: view.output(s) for s in view.output_names},
                   {n: view.attr(n) for n in view.attr_names})

    input_names = property(lambda self: list(self.inputs))
    output_names = property(lambda self: list(self.outputs))
    attr_names = property(lambda self: list(self.attrs))
    input_arg_names = property(
        lambda self: [n for names in self.inputs.values() for n in names])
    output_arg_names = property(
        lambda self: [n for names in self.outputs.values() for n in names])

    def input(self, slot):
        return list(self.inputs.get(slot, ()))

    def output(self, slot):
        return list(self.outputs.get(slot, ()))

    def has_attr(self, name):
        return name in self.attrs

    def attr(self, name):
        return self.attrs[name]

    def attr_type(self, name):
        """The type of an attribute, which follows from its value."""
        value = self.attrs[name]
        many = isinstance(value, (list, tuple))
        kind = type(value[0]) if many and value else type(value)
        one = {bool: AttrType.BOOL, int: AttrType.INT, float: AttrType.FLOAT,
               str: AttrType.STRING}.get(kind, AttrType.BLOCK)
        return getattr(AttrType, one.name + "S") if many else one

    def _set_attr(self, name, value):
        self.attrs[name] = value

    def _remove_attr(self, name):
        del self.attrs[name]

    def _rename_input(self, old, new):
        for slot, names in self.inputs.items():
            self.inputs[slot] = [new if n == old else n for n in names]

    def _rename_output(self, old, new):
        for slot, names in self.outputs.items():
            self.outputs[slot] = [new if n == old else n for n in names]

    def _block_attr_id(self, name):
        return self.attrs[name].idx


class OpDesc(_Desc):
    """The desc of an operator. One that append_op made is a draft until
    it is checked or its shapes are asked for; then it enters the block."""

    def __init__(self, view=None, block=None):
        super().__init__(_Draft() if view is None else view)
        self._block = block  # of a draft: where it belongs

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

    def inputs(self):
        return {s: self.input(s) for s in self.input_names()}

    def outputs(self):
        return {s: self.output(s) for s in self.output_names()}

    def set_type(self, type):
        self._change("type", type)

    def set_input(self, slot, names):
        self._change("inputs", {**self.inputs(), slot: _texts(names)})

    def set_output(self, slot, names):
        self._change("outputs", {**self.outputs(), slot: _texts(names)})

    def copy_from(self, other):
        """Copy type, slots and attributes of another operator."""
        draft = _Draft.of(other._view)
        if not self._is_draft():
            self._replace(draft)
        self._view = draft if self._is_draft() else self._view

    def has_attr(self, name):
        return self._view.has_attr(name)

    def attr(self, name):
        value = self._view.attr(name)
        return getattr(value, "desc", value)

    def attr_type(self, name):
        return AttrType(self._view.attr_type(name))

    def _set_attr(self, name, value):
        self._view._set_attr(name, getattr(value, "_view", value))

    set_block_attr = set_blocks_attr = set_serialized_attr = _set_attr

    def remove_attr(self, name):
        self._view._remove_attr(name)

    def _rename_input(self, old, new):
        self._view._rename_input(old, new)

    def _rename_output(self, old, new):
        self._view._rename_output(old, new)

    def _block_attr_id(self, name):
        return self._view._block_attr_id(name)

    def _is_draft(self):
        return isinstance(self._view, _Draft)

    def _change(self, field, value):
        draft = self._view if self._is_draft() else _Draft.of(self._view)
        setattr(draft, field, value)
        if not self._is_draft():
            self._replace(draft)

    def _replace(self, draft):
        """Replace the operator by a draft."""
        block, index = self._view.block, self._view.idx
        block._remove_op(index)
        self._view = block._insert_op(index, draft.type, draft.inputs,
                                      draft.outputs, draft.attrs)

    def _enter(self, block=None):
        """The operator in its block, where it is checked and inferred."""
        if self._is_draft():
            block = self._block or block
            if block is None:
                raise ValueError("the OpDesc of %s belongs to no block"
                                 % self.type())
            block._drafts = [d for d in block._drafts if d is not self]
            draft = self._view
            self._view = block._insert_op(
                block.num_ops, draft.type, draft.inputs, draft.outputs,
                draft.attrs)
        return self._view

    def check_attrs(self):
        """Check the attributes; those that are not set get their defaults."""
        self._enter()

    def infer_var_type(self, block=None):
        """Give its outputs their kinds."""
        self._enter(block and block._view)

    def infer_shape(self, block=None):
        """Give its outputs their shapes."""
        self._enter(block and block._view).infer_shape()


class BlockDesc(_Desc):
    """The desc of a block."""
    id = property(_get("idx"))
    parent = property(_get("parent_idx"))
    get_forward_block_idx = _get("forward_block_idx")
    _set_forward_block_idx = _set("forward_block_idx")

    def _ops(self):
        return [op.desc for op in self._view.ops] + self._view._drafts

    def op_size(self):
        """How many operators there are, drafts among them."""
        return len(self._ops())

    def op(self, index):
        return self._ops()[index]

    def append_op(self):
        """A new operator; set its type, slots and attributes."""
        draft = OpDesc(block=self._view)
        self._view._drafts = self._view._drafts + [draft]
        return draft

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
        """The variable of that name; made if it is new."""
        return self._view.create_var(name=_text(name)).desc

    def _remove_op(self, begin, end):
        for index in reversed(range(begin, end)):
            op = self.op(index)
            if op._is_draft():
                self._view._drafts = [d for d in self._view._drafts
                                      if d is not op]
            else:
                self._view._remove_op(index)

    def _rename_var(self, old, new):
        self._view._rename_var(_text(old), _text(new))

    def _remove_var(self, name):
        self._view._remove_var(_text(name))


class ProgramDesc(_Desc):
    """The desc of a program; ProgramDesc() is new, ProgramDesc(bytes) one
    that was serialized, ProgramDesc(other) a copy."""

    def __init__(self, view=None):
        from .framework import Program
        if view is None:
            view = Program()
        elif isinstance(view, bytes):
            view = Program.parse_from_string(view)
        elif isinstance(view, ProgramDesc):
            view = view._settled().clone()
        super().__init__(view)

    num_blocks = _get("num_blocks")

    def block(self, index):
        return self._view.block(index).desc

    def append_block(self, parent):
        """A new block below another."""
        return self._view.create_block(parent.id).desc

    def flush(self):
        """Does nothing: views always show the current state."""

    def _settled(self):
        """The program; drafts have entered their blocks."""
        for block in self._view.blocks:
            for draft in block._drafts:
                draft._enter()
        return self._view

    def serialize_to_string(self):
        return self._settled().serialize_to_string()


def get_grad_op_desc(op_desc, no_grad_set, grad_sub_block):
    """The gradient of one operator.

    Args:
        op_desc (OpDesc): the operator.
        no_grad_set (set of str): names of gradients that are not wanted.
        grad_sub_block (list of BlockDesc): blocks of a gradient; not used,
            since no operator with a block has one.

    Returns:
        A list of OpDesc that belong to no block, and a dict from the name of
        each gradient to that of its variable.
    """
    suffix = kGradVarSuffix()
    op = op_desc._enter()
    grads = [OpDesc(_Draft(*row)) for row in op.grads(
        [n.removesuffix(suffix) for n in map(_text, no_grad_set)])]
    made = {n for g in grads for n in g.output_arg_names()}
    return grads, {n + suffix: n for n in op.input_arg_names
                   if n + suffix in made}
