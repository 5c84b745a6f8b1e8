# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.op: arithmetic of layers.

    paddle.op.exp(x), x + y, 2 * x, -x

It is composed of mixed, slope_intercept, scaling and repeat, as the original
does it, but for `layer - number`, whose sign the original loses.
"""
from . import activation, config_base, layer
from .config_base import Layer

__all__ = ["exp", "log", "abs", "sigmoid", "tanh", "square", "relu", "sqrt",
           "reciprocal", "softmax"]


def _function(name, act):
    def function(input, name=None):
        return layer.mixed(
            input=[layer.identity_projection(input=input)],
            name=name or config_base.graph.default_name(function.__name__),
            act=act())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "%s of a layer, element by element." % name
    return function


for _name in __all__:
    _act = getattr(activation, _name.capitalize())
    globals()[_name] = _function(_name, _act)


def _is_number(x):
    return isinstance(x, (int, float))


def _refuse(op, a, b):
    raise TypeError("%r and %r cannot be combined by %s: sizes must agree, or "
                    "one be 1" % (a, b, op))


def _same_size(op, a, b):
    """Both of one size: one of size 1 is repeated."""
    if not isinstance(b, Layer):
        _refuse(op, a, b)
    if a.size == b.size:
        return a, b
    if b.size == 1:
        return a, layer.repeat(input=b, num_repeats=a.size)
    if a.size == 1:
        return layer.repeat(input=a, num_repeats=b.size), b
    _refuse(op, a, b)


def _add(a, b):
    if _is_number(b):
        return layer.slope_intercept(input=a, intercept=float(b))
    return layer.mixed(input=[layer.identity_projection(input=x)
                              for x in _same_size("+", a, b)])


def _negate(a):
    return layer.slope_intercept(input=a, slope=-1.0)


def _subtract(a, b):
    return _add(a, -b) if _is_number(b) or isinstance(b, Layer) \
        else _refuse("-", a, b)


def _multiply(a, b):
    if _is_number(b):
        return layer.slope_intercept(input=a, slope=float(b))
    if not isinstance(b, Layer) or 1 not in (a.size, b.size):
        _refuse("*", a, b)
    if a.size == 1:
        a, b = b, a
    return layer.scaling(input=a, weight=b)


Layer.__add__ = Layer.__radd__ = _add
Layer.__neg__ = _negate
Layer.__sub__ = _subtract
Layer.__rsub__ = lambda a, b: _add(_negate(a), b)
Layer.__mul__ = Layer.__rmul__ = _multiply
