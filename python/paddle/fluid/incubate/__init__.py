# SPDX-License-Identifier: Apache-2.0
"""fluid.incubate: fleet and data generators."""
from ... import _absent

__all__ = ["data_generator", "fleet"]

_absent.answer_for(globals(), load=__all__)
