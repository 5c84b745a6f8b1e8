"""fluid.layers.io: what a program is fed with."""
from . import _table

__all__ = _table.publish(globals())
