# SPDX-License-Identifier: Apache-2.0
"""Parameters as their mean over the last updates (optimizer.ModelAverage)."""
import contextlib

from .. import fluid

_LONGEST = 10000  # updates of a window unless max_average_window is less


class _None:
    """Nothing is averaged."""

    def reset(self):
        pass

    def count(self, exe, scope, job):
        pass

    def applied(self, exe, scope):
        return contextlib.nullcontext()


class Average:
    """Sums of the parameters in a program's scope. A step adds the
    parameters to `new`; when the window is full, `old` becomes `new`, which
    starts anew. The mean is that of both."""

    def __init__(self, options, main):
        self._window = float(options.average_window)
        self._most = options.max_average_window or (1 << 63) - 1
        self._rows = []  # parameter, sum of now, sum of before, its copy
        for param in main.global_block().all_parameters():
            if param.trainable:
                self._rows.append((param.name, *(self._sum(param, w)
                                                 for w in ("new", "old",
                                                           "copy"))))
        self._programs = {
            "add": self._program(main, self._add),
            "turn": self._program(main, self._turn),
            "apply": self._program(main, self._apply),
            "restore": self._program(main, self._restore)}
        self.reset()

    @staticmethod
    def of(options, main):
        """The average that an optimizer wants, or none. Called while `main`
        is built."""
        return _None() if options is None else Average(options, main)

    @staticmethod
    def _sum(param, what):
        return fluid.layers.create_global_var(
            list(param.shape), 0.0, "float32", persistable=True,
            name=fluid.unique_name.generate("%s.%s_sum" % (param.name, what))
        ).name

    def _program(self, main, build):
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()):
            for names in self._rows:
                build(*(program.global_block().create_var(
                    name=n, shape=main.global_block().var(n).shape,
                    dtype="float32", persistable=True) for n in names))
        return program

    def _add(self, param, new, old, copy):
        fluid.layers.sums([new, param], out=new)

    def _turn(self, param, new, old, copy):
        fluid.layers.assign(new, output=old)
        fluid.layers.assign(fluid.layers.scale(new, scale=0.0), output=new)

    def _apply(self, param, new, old, copy):
        fluid.layers.assign(param, output=copy)
        fluid.layers.sums([old, new], out=param)

    def _restore(self, param, new, old, copy):
        fluid.layers.assign(copy, output=param)

    def reset(self):
        """No update yet; the startup program zeroes the sums."""
        self._new = self._old = self._updates = 0

    def count(self, exe, scope, job):
        """An update is done. The mean needs all rows of all parameters."""
        job.fetch_rows(scope)
        exe.run(self._programs["add"], scope=scope)
        self._updates += 1
        self._new += 1
        if self._new >= min(_LONGEST, self._most) and self._new >= min(
                self._most, self._window * self._updates):
            exe.run(self._programs["turn"], scope=scope)
            self._old, self._new = self._new, 0

    @contextlib.contextmanager
    def applied(self, exe, scope):
        """Within `with`, the parameters are their means."""
        count = self._old + self._new
        if not count:
            yield
            return
        exe.run(self._programs["apply"], scope=scope)
        for param, *_ in self._rows:
            tensor = scope.find_var(param).get_tensor()
            tensor.set(tensor[...] / tensor[...].dtype.type(count))
        try:
            yield
        finally:
            exe.run(self._programs["restore"], scope=scope)
