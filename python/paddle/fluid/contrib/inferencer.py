# SPDX-License-Identifier: Apache-2.0
"""fluid.contrib.inferencer: fluid.inferencer under its later name."""
from ..inferencer import *  # noqa: F401, F403
from ..inferencer import __all__  # noqa: F401
