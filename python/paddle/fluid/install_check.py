# SPDX-License-Identifier: Apache-2.0
"""fluid.install_check: checks that this installation can train."""
import sys

import numpy as np

from . import core, unique_name
from .executor import Executor, scope_guard
from .framework import Program, program_guard

__all__ = ["run_check"]


def run_check():
    """Train a small network for one step, and say on stderr that it went
    well; what does not raises."""
    from . import layers, optimizer
    main, startup = Program(), Program()
    with program_guard(main, startup), unique_name.guard():
        x = layers.data(name="x", shape=[2], dtype="float32")
        loss = layers.mean(layers.fc(input=x, size=3))
        optimizer.SGD(learning_rate=0.01).minimize(loss)
    with scope_guard(core.Scope()):
        exe = Executor(core.CPUPlace())
        exe.run(startup)
        value, = exe.run(main, feed={"x": np.ones((3, 2), "float32")},
                         fetch_list=[loss])
    if not np.isfinite(value).all():
        raise RuntimeError("run_check: the loss of one step is %s, expected a "
                           "finite number; this build of Fluid does not work "
                           "here" % value)
    print("Your Paddle Fluid is installed successfully!", file=sys.stderr)
