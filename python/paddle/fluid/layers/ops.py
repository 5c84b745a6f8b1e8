"""fluid.layers.ops: functions of one variable, element by element."""
from . import _table

__all__ = _table.publish(globals())
