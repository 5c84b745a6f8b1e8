# SPDX-License-Identifier: Apache-2.0
"""fluid.layers: what networks are built of.

Every function appends to the current block of the default main program and
gives back variables; parameters start in the default startup program. The
functions are made from the tables of the C library.
"""
from ... import _absent
from . import (collective, control_flow, device, io, learning_rate_scheduler,
               metric_op, nn, ops, tensor)
from .control_flow import *  # noqa: F401,F403
from .device import *  # noqa: F401,F403
from .io import *  # noqa: F401,F403
from .learning_rate_scheduler import *  # noqa: F401,F403
from .metric_op import *  # noqa: F401,F403
from .nn import *  # noqa: F401,F403
from .ops import *  # noqa: F401,F403
from .tensor import *  # noqa: F401,F403

_MODULES = (nn, tensor, ops, control_flow, device, io,
            learning_rate_scheduler, metric_op)
__all__ = [name for module in _MODULES for name in module.__all__]


_absent.answer_for(globals())
