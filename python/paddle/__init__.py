# SPDX-License-Identifier: Apache-2.0
"""paddle: the package that Fluid scripts import.

The parts load when they are first used, so that `import paddle` is quick and
a reader process never pays for the engine.
"""
from . import _absent, _beside, _interrupt

_interrupt.show_one_line()
_beside.refuse_to_shadow()

from .batch import batch  # noqa: E402  (a function, over the module's name)
from .version import full_version as __version__  # noqa: E402

_PARTS = ("compat", "dataset", "distributed", "fluid", "reader", "v2",
          "version")
__all__ = ["batch", "__version__", *_PARTS]

_absent.answer_for(globals(), load=_PARTS)
