# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.control_flow: conditions, counters and branches."""
import contextlib

from .. import _fluid
from . import _table

_table.publish(globals(), "Switch")


class Switch:
    """The first case whose condition holds runs, or else the default:

        with fluid.layers.Switch() as switch:
            with switch.case(step < 100):
                fluid.layers.assign(input=small, output=rate)
            with switch.default():
                fluid.layers.assign(input=large, output=rate)

    Args:
        name (str): accepted and not used.
    """

    def __init__(self, name=None):
        self._switch = _fluid.Switch()
        self.inside_scope = False

    def __enter__(self):
        self.inside_scope = True
        return self

    def __exit__(self, kind, value, trace):
        self.inside_scope = False
        return False

    def case(self, condition):
        """The block of one case, for `with`."""
        return self._block(condition)

    def default(self):
        """The block that runs when no case does, for `with`."""
        return self._block(None)

    @contextlib.contextmanager
    def _block(self, condition):
        if not self.inside_scope:
            raise ValueError("Switch: a case must stand inside `with switch:`")
        self._switch.case(condition)
        try:
            yield
        finally:
            self._switch.end()
