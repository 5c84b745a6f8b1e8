# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.learning_rate_scheduler: rates that change step by step."""
from . import _table

_table.publish(globals())
