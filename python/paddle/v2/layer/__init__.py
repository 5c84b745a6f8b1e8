# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.layer: what networks are built of.

Each function composes Fluid's layers and gives back a Layer.
"""
from ... import _absent
from .. import config_base
from ..config_base import Layer
from . import _basic, _cost, _image, _mixed, _sequence

LayerV2 = LayerOutput = Layer

_MODULES = (_basic, _image, _sequence, _mixed, _cost)
for _module in _MODULES:
    globals().update((_name, _value) for _name, _value in vars(_module).items()
                     if not _name.startswith("_") and getattr(
                         _value, "__module__", None) == _module.__name__)
globals()["print"] = globals()["printer"]


def get_layer(name):
    """The layer of this name, or None."""
    return config_base.graph.layers.get(name)


def parse_network(output_layers, extra_layers=None):
    """What a topology of these layers says of itself."""
    from ..topology import Topology
    return Topology(output_layers, extra_layers).proto()


from .. import op as _op  # noqa: E402,F401  (gives layers their arithmetic)

__all__ = sorted(_n for _n in globals() if not _n.startswith("_")
                 and _n != "config_base")

_absent.answer_for(globals())
