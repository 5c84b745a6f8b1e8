# SPDX-License-Identifier: Apache-2.0
"""fluid.transpiler: programs made into other programs."""
from ... import _absent
from ..memory_opt import memory_optimize, release_memory
from . import collective, details, distribute_transpiler
from . import inference_transpiler
from . import ps_dispatcher
from .distribute_transpiler import (DistributeTranspiler,
                                    DistributeTranspilerConfig)
from .inference_transpiler import InferenceTranspiler
from .ps_dispatcher import HashName, RoundRobin

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig", "HashName",
           "InferenceTranspiler", "RoundRobin", "memory_optimize",
           "release_memory"]


_absent.answer_for(globals())
