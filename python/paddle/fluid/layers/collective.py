# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.collective: calls that all ranks of a job make together."""
from . import _table

_table.publish(globals())
