# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.tensor: variables made, filled, copied, converted."""
from . import _table

_table.publish(globals())
