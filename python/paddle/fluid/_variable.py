# SPDX-License-Identifier: Apache-2.0
"""Variable and Parameter: what operators read and write, as views."""
from . import _fluid
from ._desc import VarDesc
from ._index import get_item
from .core import VarType


def _enum_field(base, field, kind):
    """A field of a view as a member of its enumeration."""
    descriptor = getattr(base, field)
    return property(lambda self: kind(descriptor.__get__(self)),
                    descriptor.__set__, doc=descriptor.__doc__)


class Variable(_fluid.Variable):
    """A variable of a block; block.create_var makes one."""
    _DETAILS = ("error_clip", "stop_gradient")
    dtype = _enum_field(_fluid.Variable, "dtype", VarType)
    type = _enum_field(_fluid.Variable, "type", VarType)

    def __new__(cls, block, **kwargs):
        return block.create_var(**kwargs)

    def __init__(self, *args, **kwargs):
        """Does nothing: __new__ made the variable."""

    @property
    def desc(self):
        return VarDesc(self)

    def to_string(self, throw_on_error, with_details=False):
        """The VarDesc as text; with_details adds what it does not hold."""
        text = super().to_string()
        if with_details:
            text += "".join("%s: %s\n" % (k, getattr(self, k))
                            for k in self._DETAILS)
        return text

    def __repr__(self):
        return super().to_string()

    __str__ = __repr__

    def astype(self, dtype):
        """A new variable with the elements converted."""
        return _fluid.layer("cast", dict(x=self, dtype=dtype))

    def __getitem__(self, key):
        return get_item(self, key)

    __array_ufunc__ = None  # array + var is a TypeError, not an array of vars
    __iter__ = None  # without it `for` would never end

    def _set_error_clip(self, error_clip):
        self.error_clip = error_clip

    def _clone(self, new_name=None):
        return self.block._clone_variable(self, name=new_name)

    __hash__ = object.__hash__


def _overload(op, reverse):
    """The method for x op y, or for y op x."""
    def method(self, other):
        if not isinstance(other, (_fluid.Variable, int, float)) and not (
                hasattr(other, "__float__") and hasattr(other, "dtype")):
            return NotImplemented
        return _fluid.var_math(op, self, other, reverse)
    return method


def _overload_all():
    for name, op in dict(add="+", sub="-", mul="*", truediv="/", pow="**",
                         floordiv="//", mod="%").items():
        setattr(Variable, "__%s__" % name, _overload(op, False))
        setattr(Variable, "__r%s__" % name, _overload(op, True))
    for name, op in dict(eq="==", ne="!=", lt="<", le="<=", gt=">",
                         ge=">=").items():
        setattr(Variable, "__%s__" % name, _overload(op, False))


_overload_all()


class _OptimizeAttr(dict):
    """The optimize_attr of a parameter; a change changes the parameter."""

    def __init__(self, param):
        super().__init__(learning_rate=param.learning_rate)
        self._param = param

    def __setitem__(self, key, value):
        if key == "learning_rate":
            self._param.learning_rate = value
        super().__setitem__(key, value)


class Parameter(Variable):
    """A variable that is trained; block.create_parameter makes one."""
    _DETAILS = Variable._DETAILS + (
        "trainable", "optimize_attr", "regularizer", "gradient_clip_attr",
        "do_model_average")

    def __new__(cls, block, shape, dtype, **kwargs):
        return block.create_parameter(shape=shape, dtype=dtype, **kwargs)

    @property
    def optimize_attr(self):
        return _OptimizeAttr(self)

    @optimize_attr.setter
    def optimize_attr(self, attr):
        self.learning_rate = attr.get("learning_rate", 1.0)

    @property
    def gradient_clip_attr(self):
        return self.gradient_clip

    @gradient_clip_attr.setter
    def gradient_clip_attr(self, clip):
        self.gradient_clip = clip
