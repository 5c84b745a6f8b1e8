# SPDX-License-Identifier: Apache-2.0
"""The old module of fluid.DistributeTranspiler."""
from .transpiler.distribute_transpiler import *  # noqa: F401,F403
from .transpiler.distribute_transpiler import __all__  # noqa: F401
