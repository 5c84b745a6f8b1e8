"""fluid.layers.nn: layers with parameters, losses, and most others."""
from . import _table

__all__ = _table.publish(globals())
