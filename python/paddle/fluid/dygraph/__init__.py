"""fluid.dygraph: there is none; its names say so when they are used."""
from . import base
from .base import enabled, guard, to_variable

__all__ = ["base", "enabled", "guard", "to_variable"]
