# SPDX-License-Identifier: Apache-2.0
"""fluid.executor: run programs, and look at what they left in a scope.

A run must cost little beside the work of a small program, so what is usual
(contiguous arrays in, arrays out) goes straight through to C.
"""
import atexit
import contextlib
import functools
import os
import sys
import weakref

import numpy as np

from . import _fluid, _stop, core, reader
from .core import LoDTensor

__all__ = ["Executor", "global_scope", "scope_guard"]

g_scope = _fluid.Scope()


def global_scope():
    """Where programs keep their values unless told otherwise.

    Returns:
        A Scope.
    """
    return g_scope


def _switch_scope(scope):
    global g_scope
    old, g_scope = g_scope, scope
    return old


@contextlib.contextmanager
def scope_guard(scope):
    """A `with` block in which another scope is the global one.

    Args:
        scope (Scope): the scope.

    Returns:
        A context manager.
    """
    if not isinstance(scope, _fluid.Scope):
        raise TypeError("scope_guard takes a Scope, not %s"
                        % type(scope).__name__)
    old = _switch_scope(scope)
    try:
        yield
    finally:
        _switch_scope(old)


def as_numpy(tensor):
    """A tensor, or each of a list, as an array; None if nothing is in it.
    Selected rows become the whole matrix, with zeros in all other rows."""
    if tensor is None or isinstance(tensor, np.ndarray):
        return tensor
    if isinstance(tensor, (list, tuple)):
        return [as_numpy(t) for t in tensor]
    if isinstance(tensor, core.SelectedRows):
        return tensor.numpy()
    if tensor.lod():
        raise RuntimeError(
            "Some of your fetched tensors hold LoD information. They can not "
            "be completely cast to Python ndarray. Please set the parameter "
            "'return_numpy' as 'False' to return LoDTensor itself directly.")
    return np.asarray(tensor) if tensor._is_initialized() else None


def _fetch_var(name, scope=None, return_numpy=True):
    """The value of a variable in a scope."""
    assert isinstance(name, str)
    value = (g_scope if scope is None else scope).find_var(name)
    assert value is not None, (
        "Cannot find %s in scope. Perhaps you need to make the variable "
        "persistable by using var.persistable = True in your program." % name)
    tensor = value.get_tensor()
    return as_numpy(tensor) if return_numpy else tensor


def _feedable(name, value):
    """One fed value in the form that C expects."""
    if isinstance(value, LoDTensor):
        return value
    if isinstance(value, (list, tuple)):
        raise RuntimeError(
            "feed[%r] is a %s: feed a numpy array, or a LoDTensor "
            "(fluid.create_lod_tensor) for sequences of different lengths"
            % (name, type(value).__name__))
    array = np.ascontiguousarray(value)
    if array.dtype.hasobject or array.dtype.kind in "USMm":
        raise TypeError("feed[%r] is %s, whose elements are not numbers"
                        % (name, type(value).__name__))
    return array.reshape(np.shape(value))


def _feeds(feed):
    """A feed in the form that C expects; unchanged if it has that form."""
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)):
        if len(feed) != 1:
            raise ValueError("a program on one place is fed one dict, not a "
                             "list of %d" % len(feed))
        feed = feed[0]
    if not isinstance(feed, dict):
        raise TypeError("feed must be a dict of names and values, not %s"
                        % type(feed).__name__)
    for value in feed.values():
        kind = type(value)
        if kind is not LoDTensor and not (
                kind is np.ndarray and value.flags.c_contiguous):
            return {k: _feedable(k, v) for k, v in feed.items()}
    return feed


def _fetches(fetch_list):
    """The names of fetched variables."""
    if fetch_list is None:
        return []
    if isinstance(fetch_list, (str, _fluid.Variable)):
        fetch_list = [fetch_list]
    try:
        return [f if type(f) is str else f.name for f in fetch_list]
    except AttributeError:
        wrong = [f for f in fetch_list
                 if not isinstance(f, (str, _fluid.Variable))]
        raise TypeError("fetch_list has variables and names, not %s"
                        % type(wrong[0]).__name__) from None


def _explained(error, program, feed):
    """The error of a run, or a clearer one if a feed has a wrong dtype or
    lacks its sequences."""
    for name, value in feed.items():
        _feedable(name, value)  # raises a clearer error if the dtype is wrong
        var = program.global_block().find_var(name)
        got = getattr(value, "dtype", None)
        want = core.NUMPY.get(var.dtype) if var else None
        if got and want and got != want and ('"%s"' % name) in str(error):
            want = np.dtype(want).name
            return type(error)("%s; convert it: %s.astype('%s')"
                               % (error, name, want))
        if (var and var.lod_level and "has no sequences" in str(error)
                and not (isinstance(value, LoDTensor) and value.lod())):
            return type(error)(
                "%s; \"%s\" has lod_level=%d, but is fed without lengths: feed "
                "fluid.create_lod_tensor(data, lengths, place)"
                % (error, name, var.lod_level))
    return error


_FAREWELL = 5  # seconds to tell the servers of a failure


def _complete():
    try:
        _fluid.leave()
    except RuntimeError as error:
        sys.stderr.write("paddle: %s\n" % error)


@functools.cache  # once
def leave_at_exit():
    """Tell the servers how a trainer ends that does not call close(): a normal
    exit has completed, an uncaught exception has failed. If the trainer is
    killed, the servers notice that its lease expires."""
    process = os.getpid()
    failures = []

    def fail(kind, error):
        failures.append(error)
        try:
            why = "%s: %s" % (kind.__name__, error) if str(error) \
                else kind.__name__
            _fluid.leave(1, why, limit=_FAREWELL)
        except (RuntimeError, KeyboardInterrupt):
            pass  # the first failure was reported

    def end():
        if not failures and os.getpid() == process:
            _fluid.exit_begin()  # not in a child that the script has forked
        _complete()

    _stop.at_failure(fail)
    atexit.register(end)


def _print(text):
    sys.stdout.write(text)
    sys.stdout.flush()


_call = _stop.finish if _stop.LAUNCHED else lambda run, *args: run(*args)


class Executor:
    """Run programs.

    Args:
        place (CPUPlace): where; None: on the CPU as well.
    """
    _live = weakref.WeakSet()
    _profiled = None  # engines that fluid.profiler measures; None: it is off

    def __init__(self, place=None):
        self.place = core.check_place(place)
        self._engine = _fluid.Executor()
        self._passes = weakref.WeakKeyDictionary()  # dataset: passes so far
        Executor._live.add(self)
        if Executor._profiled is not None:
            Executor._profiled.append(self._engine)
            self._engine.profile(True)

    def run(self, program=None, feed=None, fetch_list=None,
            feed_var_name="feed", fetch_var_name="fetch", scope=None,
            return_numpy=True, use_program_cache=False):
        """Run a program once.

        Args:
            program (Program or CompiledProgram): what is run; None: the
                default main program.
            feed (dict): an array or LoDTensor for each name that is fed.
            fetch_list (list): variables or names whose values are wanted.
            feed_var_name (str): accepted and not used.
            fetch_var_name (str): accepted and not used.
            scope (Scope): where variables live; None: the global scope.
            return_numpy (bool): return arrays rather than LoDTensors.
            use_program_cache (bool): accepted; plans are always kept.

        Returns:
            A list of the values of fetch_list, in its order.
        """
        if self._engine is None:
            raise RuntimeError("Attempted to use a closed Executor")
        if scope is None:
            scope = g_scope
        if program is None:
            program = _fluid.main_program()
        elif not isinstance(program, _fluid.Program):
            return self._run_compiled(program, feed, fetch_list, scope,
                                      return_numpy)
        if program._readers:
            feed = reader.fill(program, feed)
        feed = _feeds(feed)
        fetch = _fetches(fetch_list)
        try:
            results = _call(self._engine.run, program, scope, feed, fetch)
        except (_fluid.EnforceNotMet, TypeError) as error:
            raise _explained(error, program, feed) from None
        return [as_numpy(r) for r in results] if return_numpy else results

    def _run_places(self, program, feeds, fetch_list, scope, return_numpy,
                    places, scale):
        """One feed, whose rows places share, or one for each."""
        feeds = [_feeds(feed) for feed in feeds]
        try:
            results = _call(self._engine.run_places, program, scope, feeds,
                            _fetches(fetch_list), places, scale)
        except (_fluid.EnforceNotMet, TypeError) as error:
            raise _explained(error, program, feeds[0]) from None
        return [as_numpy(r) for r in results] if return_numpy else results

    def _run_compiled(self, program, feed, fetch_list, scope, return_numpy):
        try:
            run = program._run
        except AttributeError:
            raise TypeError("Executor.run takes a Program or a "
                            "CompiledProgram, not %s"
                            % type(program).__name__) from None
        return run(self, feed, fetch_list, scope, return_numpy)

    def close(self):
        """Tell the servers that this trainer has completed; it runs no more."""
        if self._engine is not None:
            self._engine = None
            _fluid.leave()

    def train_from_dataset(self, program=None, dataset=None, scope=None,
                           thread=0, debug=False, fetch_list=None,
                           fetch_info=None, print_period=100):
        """Train on all samples of a dataset, in several threads that share
        the parameters. Every print_period batches of the first thread what is
        in fetch_list is printed; stderr shows how far it is."""
        self._pass_over(dataset, program, scope, thread, fetch_list,
                        fetch_info, debug=debug, period=print_period)

    def infer_from_dataset(self, program=None, dataset=None, scope=None,
                           thread=0, debug=False, fetch_list=None,
                           fetch_info=None, print_period=100):
        """Run a program on all samples of a dataset, in several threads. It is
        run as it is: give one that updates nothing."""
        self._pass_over(dataset, program, scope, thread, fetch_list,
                        fetch_info, debug=debug, period=print_period,
                        infer=True)

    def _pass_over(self, dataset, program, scope, thread, fetch_list,
                   fetch_info, **options):
        if self._engine is None:
            raise RuntimeError("Attempted to use a closed Executor")
        if dataset is None:
            raise RuntimeError("dataset is needed and should be initialized")
        threads = thread if thread > 0 else dataset.thread_num
        if threads <= 0:
            raise RuntimeError("You should set thread num first, either in "
                               "Dataset or in Executor.train_from_dataset")
        program = getattr(program, "_program", program)
        if program is None:
            program = _fluid.main_program()
        fetch = _fetches(fetch_list)
        labels = fetch if fetch_info is None else fetch_info
        with _stop.asked() as asked:
            if asked():
                return
            if not options.get("infer"):
                options["epoch"] = self._passes.get(dataset, 0) + 1
            _fluid.train(program, g_scope if scope is None else scope,
                         dataset._prepare_to_run(), _print, asked, fetch,
                         labels, threads=threads, **options)
            if not options.get("infer"):  # a pass that failed does not count
                self._passes[dataset] = options["epoch"]
