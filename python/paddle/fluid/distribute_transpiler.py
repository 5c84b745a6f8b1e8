# SPDX-License-Identifier: Apache-2.0
"""Where fluid.DistributeTranspiler was at first."""
from .transpiler.distribute_transpiler import *  # noqa: F401,F403
from .transpiler.distribute_transpiler import __all__  # noqa: F401
