"""fluid.layers.tensor: variables made, filled, copied, converted."""
from . import _table

__all__ = _table.publish(globals())
