# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.ops: functions of one variable, element by element."""
from . import _table

_table.publish(globals())
