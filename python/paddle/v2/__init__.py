# SPDX-License-Identifier: Apache-2.0
"""paddle.v2: the API before Fluid, on Fluid's engine.

    import paddle.v2 as paddle
    paddle.init(use_gpu=False, trainer_count=1)

Layers compose `fluid.layers`; a topology is a Fluid program. Readers and data
sets are those of `paddle` itself under a second name: the same modules, so
that DATA_HOME is one. docs/v2.md says what is there and what is different.
"""
import importlib
import sys

from .. import _absent, dataset, reader
from ..batch import batch
from ._flags import init

# Modules that need the engine load when they are named.
_LAZY = ("activation", "attr", "config_base", "data_feeder", "data_type",
         "evaluator", "event", "image", "inference", "layer",
         "networks", "op", "optimizer", "parameters", "plot", "pooling",
         "topology", "trainer")
__all__ = ["batch", "dataset", "infer", "init", "minibatch", "reader", *_LAZY]

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


def infer(output_layer, parameters, input, feeding=None, field="value"):
    """What output_layer is for a list of samples."""
    from . import inference
    return inference.infer(output_layer, parameters, input, feeding, field)


_absent.answer_for(globals(), load=_LAZY)
