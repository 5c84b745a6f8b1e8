# SPDX-License-Identifier: Apache-2.0
"""fluid.incubate.fleet.parameter_server: trainers and parameter servers."""
from ..... import _absent

__all__ = ["distribute_transpiler"]

_absent.answer_for(globals(), load=__all__)
