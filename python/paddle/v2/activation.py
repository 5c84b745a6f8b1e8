# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.activation: what a layer does to its sums at the end."""
from ..fluid import layers as _fluid_layers

__all__ = ["Base"]


class Base:
    """What all activations are."""
    name = ""  # as the original's configuration has it
    _layer = None  # of fluid.layers; None changes nothing
    _numbers = {}

    def apply(self, x):
        """The Fluid variable of an activated Fluid variable."""
        if self._layer is None:
            return x
        return getattr(_fluid_layers, self._layer)(x, **self._numbers)

    def __repr__(self):
        return type(self).__name__ + "()"


# class: name in the original's configuration, layer of Fluid, its numbers
_TABLE = {
    "Linear": ("", None, {}),
    "Tanh": ("tanh", "tanh", {}),
    "Sigmoid": ("sigmoid", "sigmoid", {}),
    "Softmax": ("softmax", "softmax", {}),
    "SequenceSoftmax": ("sequence_softmax", "sequence_softmax", {}),
    "Relu": ("relu", "relu", {}),
    "BRelu": ("brelu", "brelu", {"t_min": 0.0, "t_max": 24.0}),
    "SoftRelu": ("softrelu", "soft_relu", {"threshold": 40.0}),
    "STanh": ("stanh", "stanh", {"scale_a": 2 / 3, "scale_b": 1.7159}),
    "Abs": ("abs", "abs", {}),
    "Square": ("square", "square", {}),
    "Exp": ("exponential", "exp", {}),
    "Log": ("log", "log", {}),
    "Sqrt": ("sqrt", "sqrt", {}),
    "Reciprocal": ("reciprocal", "reciprocal", {}),
    "SoftSign": ("softsign", "softsign", {}),
}
for _cls, (_name, _layer, _numbers) in _TABLE.items():
    globals()[_cls] = type(_cls, (Base,), {
        "name": _name, "_layer": _layer, "_numbers": _numbers,
        "__module__": __name__,
        "__doc__": "%s of each %s." % (
            _layer or "The value itself",
            "row" if _cls == "Softmax" else
            "sequence of one column" if _cls == "SequenceSoftmax" else
            "element")})
Identity = globals()["Linear"]
__all__ += [*_TABLE, "Identity"]
