# SPDX-License-Identifier: Apache-2.0
"""fluid.compiler: programs prepared for several places, and for ranks of a
job without servers."""
import enum

from .. import _absent
from . import _fluid, core, reader
from .framework import _check_program, cpu_places

__all__ = ["CompiledProgram", "ExecutionStrategy", "BuildStrategy"]


class _Settings:
    """Fields with defaults; a field that is not there is refused."""
    _FIELDS = {}

    def __init__(self):
        self.__dict__.update(self._FIELDS)

    def __setattr__(self, name, value):
        if name not in self._FIELDS:
            raise AttributeError("%s has no field %s%s" % (
                type(self).__name__, name, core.suggest(name, self._FIELDS)))
        self.__dict__[name] = value


class ExecutionStrategy(_Settings):
    """How a compiled program is run. Accepted; the library ignores them."""
    _FIELDS = dict(num_threads=0, allow_op_delay=False,
                   num_iteration_per_drop_scope=1, num_iteration_per_run=1,
                   use_cuda=False, use_thread_barrier=False,
                   use_experimental_executor=False)

    class ExecutorType(enum.IntEnum):
        Default = 0
        Experimental = 1


class _ReduceStrategy(enum.IntEnum):
    AllReduce = 0
    Reduce = 1


class _GradientScaleStrategy(enum.IntEnum):
    CoeffNumDevice = 0
    One = 1
    Customized = 2


class BuildStrategy(_Settings):
    """How a program is compiled. The library fuses and shares memory by
    itself; of these fields only gradient_scale_strategy and num_trainers
    change a result, and what cannot be done is refused. With num_trainers
    above 1 gradients are averaged over the processes that a program of
    DistributeTranspiler in mode "nccl2" has joined."""
    ReduceStrategy = _ReduceStrategy
    GradientScaleStrategy = _GradientScaleStrategy
    _FIELDS = dict(
        reduce_strategy=_ReduceStrategy.AllReduce,
        gradient_scale_strategy=_GradientScaleStrategy.CoeffNumDevice,
        num_trainers=1, trainer_id=0, trainers_endpoints=(),
        memory_optimize=False, enable_inplace=False,
        fuse_elewise_add_act_ops=False, fuse_relu_depthwise_conv=False,
        fuse_broadcast_ops=False, fuse_all_reduce_ops=False,
        fuse_all_optimizer_ops=False, sync_batch_norm=False,
        enable_sequential_execution=False, remove_unnecessary_lock=True,
        enable_backward_optimizer_op_deps=False, cache_runtime_context=False,
        is_distribution=False, async_mode=False, nccl_comm_num=1,
        use_hierarchical_allreduce=False,
        hierarchical_allreduce_inter_nranks=0,
        hierarchical_allreduce_exter_nranks=0, mkldnn_enabled_op_types=(),
        debug_graphviz_path="", _passes=None)

    def _finalize_strategy_and_create_passes(self):
        """The list of passes; more can be added to it."""
        if self._passes is None:
            self._passes = _PassBuilder()
        return self._passes


class _Pass:
    """A pass and what was set on it."""

    def __init__(self, name):
        self.name, self.attrs = name, {}

    def set(self, name, value):
        self.attrs[name] = value

    def type(self):
        return self.name


class _PassBuilder:
    """Passes that a user asked for, in order."""

    def __init__(self):
        self._list = []

    def all_passes(self):
        return list(self._list)

    def append_pass(self, name):
        return self.insert_pass(len(self._list), name)

    def insert_pass(self, index, name):
        self._list.insert(index, _Pass(name))
        return self._list[index]

    def remove_pass(self, index):
        del self._list[index]


class CompiledProgram:
    """A program and how it is to be run, for Executor.run.

    Args:
        program_or_graph (Program): what is run.
    """

    def __init__(self, program_or_graph):
        self._program = _check_program(program_or_graph, "program_or_graph")
        self._places = None
        self._loss_name = None
        self._build_strategy = self._exec_strategy = None
        self._reducing = None  # (version, program that talks to other ranks)
        self._started = []  # scopes with the values of rank 0

    def with_data_parallel(self, loss_name=None, build_strategy=None,
                           exec_strategy=None, share_vars_from=None,
                           places=None):
        """Run with each batch split over `places`, cpu_places() by default:
        a thread for each.

        A feed is cut along its rows (sequences, if it has a LoD) into as many
        parts, of which the last has what is left over; a list of feeds is one
        for each place. A batch of fewer rows than places uses fewer. Forward
        and backward run on every place, gradients become their mean (as
        gradient_scale_strategy says), and the update runs once. What is
        fetched comes from all places along axis 0: a mean loss has one number
        a place, and what is common to all, such as a parameter, comes once
        for each. Of persistable variables that forward ops write, such as
        the running means of batch_norm, those of the first place stay."""
        assert self._places is None, "Already compiled with parallel."
        self._build_strategy = build_strategy or BuildStrategy()
        self._exec_strategy = exec_strategy or ExecutionStrategy()
        if share_vars_from is not None:
            _check_shared(share_vars_from)
        self._places = cpu_places() if places is None else list(places)
        for place in self._places:
            core.check_place(place)
        self._loss_name = loss_name
        self._check_strategy()
        return self

    def with_inference_optimize(self, config=None):
        """Does nothing: the library always optimises plans."""
        return self

    def _check_strategy(self):
        build = self._build_strategy
        if not 0 <= build.trainer_id < max(1, build.num_trainers):
            raise ValueError("BuildStrategy.trainer_id is %d, but num_trainers "
                             "is %d" % (build.trainer_id, build.num_trainers))
        for one in build._passes.all_passes() if build._passes else ():
            if "num_repeats" in one.attrs:
                raise NotImplementedError(
                    "%s: merging several batches into one step %s; see %s"
                    % (one.name, _absent.LATER, _absent.PAGE))

    def _scale(self):
        if self._build_strategy is None:
            return _GradientScaleStrategy.CoeffNumDevice
        return _GradientScaleStrategy(
            self._build_strategy.gradient_scale_strategy)

    def _ranks(self):
        return self._build_strategy.num_trainers if self._build_strategy else 1

    def _program_of_rank(self, executor, scope):
        """The program with gradients averaged over all ranks."""
        program = self._program
        if self._reducing is None or self._reducing[0] != program.version:
            self._reducing = program.version, _fluid.collective_grads(
                program, self._ranks(), int(self._scale()))
        if self._reducing[1] is None:  # no gradients: a rank may run it alone
            return program
        self.start_ranks(executor, scope)
        return self._reducing[1]

    def start_ranks(self, executor, scope):
        """Give all ranks the values of rank 0, once for a scope. The first run
        does it by itself.

        Args:
            executor (Executor): what has run the startup program.
            scope (Scope): where the variables live.
        """
        if not any(scope is one for one in self._started):
            executor.run(_fluid.collective_broadcast(self._program),
                         scope=scope)
            self._started.append(scope)

    def _run(self, executor, feed, fetch_list, scope, return_numpy):
        places, scale = len(self._places or [None]), self._scale()
        program = self._program if self._ranks() == 1 \
            else self._program_of_rank(executor, scope)
        split = places > 1 or scale == _GradientScaleStrategy.Customized
        if self._program._readers and (split or program is not self._program):
            feed = reader.fill(self._program, feed, places)
        if not split:
            return executor.run(program, feed, fetch_list, scope=scope,
                                return_numpy=return_numpy)
        return executor._run_places(
            program, _feeds(feed, places), fetch_list, scope, return_numpy,
            places, scale)


def _feeds(feed, places):
    """A list of one feed, or of one for each place with the same names."""
    if not isinstance(feed, (list, tuple)):
        return [feed]
    if len(feed) not in (1, places):
        raise ValueError("feed is a list of %d, but the program runs on %d "
                         "places; give one feed for each place, or one dict"
                         % (len(feed), places))
    for other in feed[1:]:
        if set(other) != set(feed[0]):
            raise ValueError("every place must be fed the same variables, but "
                             "one is fed %s and another %s"
                             % (sorted(feed[0]), sorted(other)))
    return [{name: one[name] for name in feed[0]} for one in feed]


def _check_shared(other):
    if not isinstance(other, CompiledProgram):
        raise TypeError("share_vars_from must be a CompiledProgram, not %s"
                        % type(other).__name__)
