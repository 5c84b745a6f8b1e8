# SPDX-License-Identifier: Apache-2.0
"""fluid.dygraph: there is none. Scripts that can run with and without it
import its names at the top; those that use one are told why it is absent.

The modules that it had are this one under further names.
"""
import sys

from ... import _absent


def enabled():
    """No: there are only programs."""
    return False


for _name in ("base", "checkpoint", "layers", "learning_rate_scheduler", "nn",
              "parallel", "profiler", "tracer"):
    globals()[_name] = sys.modules[__name__ + "." + _name] = \
        sys.modules[__name__]

__all__ = ["enabled", *_absent.names_of(__name__)]

_absent.answer_for(globals(), stand_ins=True)
