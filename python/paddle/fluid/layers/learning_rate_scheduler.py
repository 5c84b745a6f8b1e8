"""fluid.layers.learning_rate_scheduler: learning rates that change from step to step."""
from . import _table

__all__ = _table.publish(globals())
