# SPDX-License-Identifier: Apache-2.0
"""fluid.profiler: where the time of runs goes, operator by operator.

The table goes to stderr, since the output of a script is its own; profile_path
gets a trace for chrome://tracing.
"""
import contextlib
import json
import sys

from . import core
from .executor import Executor

__all__ = ["cuda_profiler", "reset_profiler", "profiler", "start_profiler",
           "stop_profiler"]

_STATES = ("CPU", "GPU", "All")
_KEYS = ("calls", "total", "max", "min", "ave")


class _Row:
    """The times of one type of operator, in ms."""

    def __init__(self, type):
        self.type = type
        self.calls, self.total, self.max, self.min = 0, 0.0, 0.0, float("inf")

    def add(self, row):
        self.calls += row.calls
        self.total += row.total_ns / 1e6
        self.max = max(self.max, row.max_ns / 1e6)
        self.min = min(self.min, row.min_ns / 1e6)

    @property
    def ave(self):
        return self.total / max(self.calls, 1)


def _rows(engines):
    """Of all executors together."""
    rows = {}
    for engine in engines:
        for row in engine.profile_rows():
            rows.setdefault(row.type, _Row(row.type)).add(row)
    return list(rows.values())


def _table(rows, sorted_key):
    """The report as text, in the original's shape."""
    if sorted_key:
        rows = sorted(rows, key=lambda r: getattr(r, sorted_key),
                      reverse=sorted_key != "min")
    whole = sum(r.total for r in rows) or 1.0
    width = max([len(r.type) for r in rows] + [5]) + 2
    lines = ["", "-------------------------> Profiling Report "
             "<-------------------------", "", "Place: CPU", "Time unit: ms",
             "Sorted by %s" % (sorted_key or "event first end time"), "",
             "%-*s%-10s%-12s%-12s%-12s%-12s%s" % (
                 width, "Event", "Calls", "Total", "Min.", "Max.", "Ave.",
                 "Ratio.")]
    lines += ["%-*s%-10d%-12.6g%-12.6g%-12.6g%-12.6g%.6f" % (
        width, r.type, r.calls, r.total, r.min, r.max, r.ave,
        r.total / whole) for r in rows]
    return "\n".join(lines) + "\n"


def _trace(engines):
    """The traces of all executors as one."""
    events = []
    for engine in engines:
        trace = json.loads(engine.profile_trace())
        events += trace["traceEvents"] if isinstance(trace, dict) else trace
    return json.dumps({"traceEvents": events})


def _start():
    """Executors that end before the profiler does are counted too."""
    Executor._profiled = [e._engine for e in list(Executor._live)
                          if e._engine]
    for engine in Executor._profiled:
        engine.profile(True)


def reset_profiler():
    """Forget what was measured so far."""
    if Executor._profiled is not None:
        _start()


def start_profiler(state, tracer_option=None):
    """Measure operators from now on.

    Args:
        state (str): 'CPU' or 'All'.
        tracer_option (str): accepted and ignored.
    """
    if state not in _STATES:
        raise ValueError("The state must be 'CPU' or 'GPU' or 'All'.")
    if state == "GPU":
        raise core.no_gpu("start_profiler('GPU')")
    if Executor._profiled is None:
        _start()


def stop_profiler(sorted_key=None, profile_path="/tmp/profile"):
    """Print the table to stderr, and write the trace to a file.

    Args:
        sorted_key (str): 'calls', 'total', 'max', 'min' or 'ave'; None:
            unsorted.
        profile_path (str): the file of the trace.
    """
    if sorted_key == "default":
        sorted_key = None
    if sorted_key is not None and sorted_key not in _KEYS:
        raise ValueError("The sorted_key must be None or in 'calls', 'total',"
                         " 'max', 'min' and 'ave'")
    engines, Executor._profiled = Executor._profiled, None
    if engines is None:
        return
    for engine in engines:
        engine.profile(False)
    sys.stderr.write(_table(_rows(engines), sorted_key))
    if profile_path:
        with open(profile_path, "w") as file:
            file.write(_trace(engines))


@contextlib.contextmanager
def profiler(state, sorted_key=None, profile_path="/tmp/profile"):
    """A `with` block whose operators are measured.

    Args:
        state (str): 'CPU' or 'All'.
        sorted_key (str): 'calls', 'total', 'max', 'min' or 'ave'; None:
            unsorted.
        profile_path (str): the file of the trace.

    Returns:
        A context manager.
    """
    start_profiler(state)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextlib.contextmanager
def cuda_profiler(output_file, output_mode=None, config=None):
    """A `with` block in which nothing is measured: there is no GPU.

    Args:
        output_file (str): accepted and ignored.
        output_mode (str): accepted and ignored.
        config (list of str): accepted and ignored.

    Returns:
        A context manager.
    """
    print("cuda_profiler: this build has no GPU kernels; fluid.profiler."
          "profiler measures the CPU", file=sys.stderr)
    yield
