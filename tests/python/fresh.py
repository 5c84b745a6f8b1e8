# SPDX-License-Identifier: Apache-2.0
"""For tests: programs, names and a scope of their own."""
import contextlib

import paddle.fluid as fluid


class Net:
    """Two programs and a scope; run() starts them when first called."""

    def __init__(self):
        self.main, self.startup = fluid.Program(), fluid.Program()
        self.scope = fluid.Scope()
        self.exe = fluid.Executor(fluid.CPUPlace())
        self._started = False

    def run(self, fetch, feed=None, program=None, **options):
        if not self._started:
            self.exe.run(self.startup, scope=self.scope)
            self._started = True
        return self.exe.run(program or self.main, feed=feed,
                            fetch_list=fetch, scope=self.scope, **options)

    def types(self):
        return [op.type for op in self.main.global_block().ops]


@contextlib.contextmanager
def fresh(seed=1):
    """Within `with` as net, layers go into programs that nobody else has."""
    net = Net()
    net.main.random_seed = net.startup.random_seed = seed
    with fluid.program_guard(net.main, net.startup), \
            fluid.unique_name.guard(), fluid.scope_guard(net.scope):
        yield net
