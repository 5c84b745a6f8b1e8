# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.nn: layers with parameters, losses, and most others."""
from . import _table

_table.publish(globals())
