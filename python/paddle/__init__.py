"""paddle: the package that Fluid scripts import.

The parts load when they are first used, so that `import paddle` is quick and
a reader process never pays for the engine.
"""
import importlib

from . import _beside

_beside.refuse_to_shadow()

from .batch import batch  # noqa: E402  (a function, over the module's name)
from .version import full_version as __version__  # noqa: E402

_PARTS = ("compat", "dataset", "fluid", "reader", "v2", "version")
__all__ = ["batch", "__version__", *_PARTS]


def __getattr__(name):
    if name in _PARTS:
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module 'paddle' has no attribute %r" % name)


def __dir__():
    return sorted(set(globals()) | set(_PARTS))
