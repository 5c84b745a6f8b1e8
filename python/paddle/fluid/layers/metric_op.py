# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.metric_op: how well a network does."""
from . import _table

_table.publish(globals())
