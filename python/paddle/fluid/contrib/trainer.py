# SPDX-License-Identifier: Apache-2.0
"""fluid.contrib.trainer: fluid.trainer under its later name."""
from ..trainer import *  # noqa: F401, F403
from ..trainer import (__all__, build_feed_var_list,  # noqa: F401
                       check_and_get_place)
