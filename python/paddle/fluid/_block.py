# SPDX-License-Identifier: Apache-2.0
"""Block: a view of variables, and of operators in order."""
import textwrap

from . import _fluid, unique_name
from ._desc import BlockDesc
from ._operator import OpProtoHolder
from .core import VarType, suggest

# What create_var and create_parameter set on the view after C made it.
_LATE = ("error_clip", "type", "lod_level", "stop_gradient", "trainable",
         "optimize_attr", "regularizer", "gradient_clip_attr",
         "do_model_average", "is_data")


class Block(_fluid.Block):
    """Variables and operators; a program has one or more."""
    _drafts = []  # OpDescs that are not checked yet; replaced, never changed

    @property
    def desc(self):
        return BlockDesc(self)

    def to_string(self, throw_on_error, with_details=False):
        """The BlockDesc as text; with_details adds what it does not hold."""
        if not with_details:
            return super().to_string()
        parts = ["idx: %d\nparent_idx: %d\n" % (self.idx, self.parent_idx)]
        for kind, things in (("vars", self.vars.values()), ("ops", self.ops)):
            for thing in things:
                details = (True,) if kind == "vars" else ()
                text = thing.to_string(throw_on_error, *details)
                parts.append("%s {\n%s}\n" % (kind,
                                              textwrap.indent(text, "  ")))
        return "".join(parts)

    def __repr__(self):
        return super().to_string()

    __str__ = __repr__

    def var(self, name):
        """The variable of this block; ValueError if there is none."""
        if not isinstance(name, str):
            raise TypeError("a variable is found by its name, a str, not %s"
                            % type(name).__name__)
        found = self.find_var(name)
        if found is None:
            raise ValueError("var %s not in this block%s"
                             % (name, suggest(name, self.vars)))
        return found

    def has_var(self, name):
        return self.find_var(name) is not None

    def _find_var_recursive(self, name):
        """The variable of this block or of its parents, or None."""
        return self.find_var_recursive(name)

    def _var_recursive(self, name):
        found = self.find_var_recursive(name)
        if found is None:
            raise ValueError("Var %s is not found recursively" % name)
        return found

    def all_parameters(self):
        return list(self.iter_parameters())

    def iter_parameters(self):
        return (v for v in self.vars.values() if v.is_parameter)

    def create_var(self, name=None, initializer=None, error_clip=None,
                   capacity=None, **kwargs):
        """A new variable, or the one of that name if it agrees."""
        if name is None:
            name = unique_name.generate("_generated_var")
        var = super().create_var(name=name, **kwargs)
        if error_clip is not None:
            var.error_clip = error_clip
        if initializer is not None:
            initializer(var, self)
        return var

    def create_parameter(self, shape, dtype, name=None, initializer=None,
                         **kwargs):
        """A new parameter. Parameters are always in the global block."""
        if name is None:
            name = unique_name.generate("_generated_var")
        if not shape or any(d < 0 for d in shape):
            raise ValueError("parameter %s: its shape is %s, but it needs "
                             "one that is known" % (name, tuple(shape)))
        unknown = set(kwargs) - set(_LATE) - {"persistable", "attr"}
        if unknown:
            raise TypeError("create_parameter has no argument %s%s" % (
                min(unknown), suggest(min(unknown), _LATE)))
        param = _fluid.Block.create_parameter(
            self.program.global_block(), name, shape, dtype,
            kwargs.pop("attr", None))
        for key in _LATE:
            if kwargs.get(key) is not None:
                setattr(param, key, kwargs[key])
        if initializer is not None:
            initializer(param, self)
        return param

    def append_op(self, type=None, inputs=None, outputs=None, attrs=None,
                  stop_gradient=False):
        """A new operator at the end."""
        return self._insert_op(self.num_ops, type, inputs, outputs, attrs)

    def _insert_op(self, index, type=None, inputs=None, outputs=None,
                   attrs=None):
        OpProtoHolder.instance().get_op_proto(type)  # or ValueError
        return self.insert_op(index, type, inputs, outputs, attrs)

    def _prepend_op(self, type=None, inputs=None, outputs=None, attrs=None):
        return self._insert_op(0, type, inputs, outputs, attrs)

    def _remove_op(self, index):
        self.remove_op(index)

    def _slice_ops(self, start, end):
        return self.ops[start:end]

    def _remove_var(self, name):
        self.remove_var(name)

    def _rename_var(self, name, new_name):
        """Rename a variable, also in operators; returns the variable."""
        if not self.has_var(name):
            raise ValueError("var %s is not in current block" % name)
        return self.rename_var(name, new_name)

    def _clone_variable(self, var, force_persistable=True, name=None):
        """A variable like one of another block."""
        tensor = var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS,
                              VarType.LOD_TENSOR_ARRAY)
        known = dict(shape=var.shape, dtype=var.dtype) if tensor else {}
        if var.type == VarType.LOD_TENSOR:
            known.update(lod_level=var.lod_level, is_data=var.is_data)
        return self.create_var(
            name=name or var.name, type=var.type,
            persistable=True if force_persistable else var.persistable,
            **known)

    def _set_forward_block_idx(self, idx):
        self.forward_block_idx = idx

    def _sync_with_cpp(self):
        """Does nothing: views always show the current state."""
