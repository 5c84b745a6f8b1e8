"""fluid.layers.io: what a program is fed with."""
from . import _table

_table.publish(globals())
