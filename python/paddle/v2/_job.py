# SPDX-License-Identifier: Apache-2.0
"""Where a trainer's parameters are updated: here, or on parameter servers."""
from ..fluid import _fluid
from ..fluid.executor import leave_at_exit
from . import _flags

_jobs = 0  # that this process has begun: each call of train is one


class Local:
    """Updates are part of the program."""

    def __init__(self, main, start):
        self._main, self._start = main, start

    def begin(self, exe, scope):
        """Start what the optimizer remembers; the program of a step."""
        exe.run(self._start, scope=scope)
        return self._main

    def fetch(self, scope):
        """Bring the scope up to date."""

    def fetch_rows(self, scope):
        """The same, after a step: only rows that stay on servers are old."""

    def end(self, scope):
        """Training is over."""


class Remote:
    """Updates happen on servers, which add the gradients of all trainers.
    Each call of train is a job of its own: trainer 0 brings the servers their
    program and its values, and at the end every trainer has all values."""

    def __init__(self, main, start, sparse, is_async):
        self._main, self._async = main, is_async
        self._start, self._sparse = start, sparse
        self._program = None  # of a step, while a job runs
        self._declare_parameters()
        leave_at_exit()

    def _declare_parameters(self):
        """The servers get their values with the program, not from ops."""
        block = self._start.global_block()
        for param in self._main.global_block().all_parameters():
            block.create_var(name=param.name, shape=param.shape,
                             dtype=param.dtype, persistable=True)

    def begin(self, exe, scope):
        global _jobs
        _jobs += 1
        dense, sparse = _flags.endpoints()
        servers = dense + (sparse if self._sparse else [])
        cut = _fluid.transpile(
            self._main, self._start, ",".join(servers),
            trainers=_flags.get("num_gradient_servers"),
            trainer_id=_flags.get("trainer_id"), async_mode=self._async,
            sum_gradients=True, dense_servers=len(dense), serial=_jobs)
        cut.set_up(scope)
        self._program = cut.trainer()
        exe.run(cut.trainer_startup(), scope=scope)
        return self._program

    def fetch(self, scope):
        if self._program is not None:
            _fluid.fetch(self._program, scope)

    def fetch_rows(self, scope):
        if self._sparse:
            self.fetch(scope)

    def end(self, scope):
        self.fetch(scope)
        self._program = None
        _fluid.leave()
