"""fluid.layers.metric_op: how well a network does."""
from . import _table

__all__ = _table.publish(globals())
