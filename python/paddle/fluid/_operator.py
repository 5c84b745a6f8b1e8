# SPDX-License-Identifier: Apache-2.0
"""Operator: a view of one operator of a block; and the operator types."""
from . import _fluid, core
from ._desc import OpDesc
from .core import AttrType, suggest


class OpProtoHolder:
    """The proto of every operator, by its type."""
    _instance = None

    @classmethod
    def instance(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def __init__(self):
        self.op_proto_map = {p.type: p for p in core.get_all_op_protos()}

    def get_op_proto(self, type):
        """Its slots and attributes; ValueError if there is none."""
        if type is None:
            raise ValueError("`type` to initialized an Operator can not be "
                             "None.")
        if type not in self.op_proto_map:
            raise ValueError('Operator "%s" has not been registered%s' % (
                type, suggest(type, self.op_proto_map) or "."))
        return self.op_proto_map[type]

    @staticmethod
    def generated_op_attr_names():
        """Attributes that every operator gets by itself."""
        return {"op_role", "op_role_var", "op_namescope", "op_callstack"}


class Operator(_fluid.Operator):
    """An operator of a block; block.append_op makes one."""

    @property
    def desc(self):
        return OpDesc(self)

    def to_string(self, throw_on_error):
        """The OpDesc as text."""
        return super().to_string()

    def __repr__(self):
        return super().to_string()

    __str__ = __repr__

    def attr_type(self, name):
        return AttrType(super().attr_type(name))

    def all_attrs(self):
        """All attributes by name; those that are blocks as Block."""
        attrs = super().all_attrs()
        for name in attrs:
            if self.attr_type(name) in (AttrType.BLOCK, AttrType.BLOCKS):
                attrs[name] = self.attr(name)
        return attrs

    def _set_attr(self, name, val):
        self.set_attr(name, val)

    _update_desc_attr = _set_attr

    def _remove_attr(self, name):
        self.remove_attr(name)

    def _rename_input(self, old_name, new_name):
        self.rename_input(old_name, new_name)

    def _rename_output(self, old_name, new_name):
        self.rename_output(old_name, new_name)

    def _block_attr(self, name):
        return self.attr(name)

    def _block_attr_id(self, name):
        return super().all_attrs()[name]

    def _blocks_attr_ids(self, name):
        return list(super().all_attrs()[name])

    def _blocks_attr(self, name):
        program = self.block.program
        return [program.block(i) for i in self._blocks_attr_ids(name)]
