"""paddle.v2: the older front, as far as scripts use it beside Fluid.

Its readers and data sets are those of `paddle` itself under a second name:
the same modules, so that DATA_HOME is one.
"""
import importlib
import sys

from .. import dataset, reader
from ..batch import batch

__all__ = ["batch", "dataset", "minibatch", "reader"]

# `paddle.batch` is the function; the module is what v2 called minibatch.
minibatch = sys.modules["paddle.batch"]

_ALSO = {"minibatch": "paddle.batch", "reader": "paddle.reader",
         "dataset": "paddle.dataset"}
_ALSO.update(("reader." + m, "paddle.reader." + m)
             for m in ("creator", "decorator"))
_ALSO.update(("dataset." + m, "paddle.dataset." + m)
             for m in dataset.__all__)
for _name, _module in _ALSO.items():
    sys.modules[__name__ + "." + _name] = importlib.import_module(_module)
