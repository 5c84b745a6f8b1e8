# SPDX-License-Identifier: Apache-2.0
"""fluid.op: single operators, run on a scope, for those who test them."""
from .. import _absent
from . import _fluid, core
from .core import VarType
from .framework import OpProtoHolder, Program

__all__ = ["Operator"]


def get_all_op_protos():
    """The proto of every operator."""
    return core.get_all_op_protos()


def _args(value):
    """The names in a slot."""
    return [value] if isinstance(value, str) else list(value)


class _Operator:
    """One operator that stands in no program yet."""

    def __init__(self, proto, inputs, outputs, attrs):
        self._proto, self._attrs = proto, attrs
        self._inputs, self._outputs = inputs, outputs

    def type(self):
        return self._proto.type

    def inputs(self):
        return self._inputs

    def outputs(self):
        return self._outputs

    def input(self, slot):
        return self._inputs.get(slot, [])

    def output(self, slot):
        return self._outputs.get(slot, [])

    def input_vars(self):
        return [n for names in self._inputs.values() for n in names]

    def output_vars(self):
        return [n for names in self._outputs.values() for n in names]

    def attrs(self):
        return dict(self._attrs)

    def __str__(self):
        ins, outs = ("{%s}" % ", ".join(
            "%s[%s]" % (slot, ", ".join(names))
            for slot, names in slots.items())
            for slots in (self._inputs, self._outputs))
        return "Op(%s), inputs:%s, outputs:%s." % (self.type(), ins, outs)

    def run(self, scope, place):
        """Compute the outputs from what the scope holds."""
        core.check_place(place)
        program = Program()
        block = program.global_block()
        for name in dict.fromkeys(self.input_vars()):
            if name != core.kEmptyVarName():
                _declare(block, scope, name)
        for name in dict.fromkeys(self.output_vars()):
            if name != core.kEmptyVarName() and not block.has_var(name):
                value = scope.var(name)
                block.create_var(name=name, persistable=True,
                                 type=value.type or VarType.LOD_TENSOR)
        block.append_op(self.type(), self._inputs, self._outputs,
                        self._attrs)
        _fluid.Executor(no_fuse=True).run(program, scope, {}, [])


def _declare(block, scope, name):
    """A variable like what the scope holds under this name."""
    value = scope.find_var(name)
    if value is None:
        raise ValueError("the scope has no variable %s" % name)
    kind = value.type or VarType.LOD_TENSOR
    var = block.create_var(name=name, type=kind, persistable=True)
    if kind in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
        rows = (value.get_selected_rows() if kind == VarType.SELECTED_ROWS
                else value)
        tensor = rows.get_tensor()
        if tensor._is_initialized():
            var.shape, var.dtype = tensor.shape(), tensor._dtype()
            if kind == VarType.LOD_TENSOR:
                var.lod_level = len(tensor.lod())


class OperatorFactory:
    """Makes operators: Operator("scale", X="x", Out="y", scale=2.0)."""

    def __call__(self, *args, **kwargs):
        if len(args) != 1 and "type" not in kwargs:
            raise ValueError("Operator takes one positional argument, the "
                             "type; give slots and attributes by name")
        type = args[0] if args else kwargs.pop("type")
        proto = self.get_op_info(type)
        ins = [s.name for s in proto.inputs]
        outs = [s.name for s in proto.outputs]
        attrs = [a.name for a in proto.attrs]
        for name in kwargs:
            if name not in ins + outs + attrs:
                raise ValueError("%s has no input, output or attribute %s%s"
                                 % (type, name, core.suggest(
                                     name, ins + outs + attrs)))
        return _Operator(
            proto, {n: _args(kwargs[n]) for n in ins if n in kwargs},
            {n: _args(kwargs[n]) for n in outs if n in kwargs},
            {n: kwargs[n] for n in attrs if n in kwargs})

    def types(self):
        return list(OpProtoHolder.instance().op_proto_map)

    def get_op_info(self, type):
        return OpProtoHolder.instance().get_op_proto(type)

    def get_op_inputs(self, type):
        """(slot, whether it takes several variables) of each input."""
        return [(s.name, s.duplicable) for s in self.get_op_info(type).inputs]

    def get_op_outputs(self, type):
        """(slot, whether it takes several variables) of each output."""
        return [(s.name, s.duplicable)
                for s in self.get_op_info(type).outputs]

    def get_op_input_names(self, type):
        return [s.name for s in self.get_op_info(type).inputs]

    def get_op_output_names(self, type):
        return [s.name for s in self.get_op_info(type).outputs]

    def get_op_attr_names(self, type):
        return [a.name for a in self.get_op_info(type).attrs]


Operator = OperatorFactory()

_absent.answer_for(globals(), stand_ins=True)
