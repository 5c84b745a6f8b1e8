# SPDX-License-Identifier: Apache-2.0
"""fluid.incubate.fleet: one script for servers, trainers and one machine."""
from .... import _absent

__all__ = ["base", "collective", "parameter_server"]

_absent.answer_for(globals(), load=__all__)
