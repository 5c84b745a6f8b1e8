# SPDX-License-Identifier: Apache-2.0
"""fluid.ParallelExecutor: the older way to run on several places."""
from . import core
from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from .executor import Executor, global_scope
from .framework import default_main_program

__all__ = ["ParallelExecutor"]


class ParallelExecutor:
    """Run a program on several places: an Executor and a CompiledProgram in
    one.

    Args:
        use_cuda (bool): must be False, since there are no GPU kernels.
        loss_name (str): the loss.
        main_program (Program): the program; None: the default main program.
        share_vars_from (ParallelExecutor): run on its scope.
        exec_strategy (ExecutionStrategy): accepted.
        build_strategy (BuildStrategy): how gradients of places are combined.
        num_trainers (int): the processes that average their gradients; a
            program of DistributeTranspiler in mode "nccl2" joins them.
        trainer_id (int): the number of this one.
        scope (Scope): where variables live; None: the global scope.
    """

    def __init__(self, use_cuda, loss_name=None, main_program=None,
                 share_vars_from=None, exec_strategy=None,
                 build_strategy=None, num_trainers=1, trainer_id=0,
                 scope=None):
        if use_cuda:
            raise core.no_gpu("ParallelExecutor(use_cuda=True)")
        build_strategy = build_strategy or BuildStrategy()
        if num_trainers > 1:
            build_strategy.num_trainers = num_trainers
            build_strategy.trainer_id = trainer_id
        if scope is None:
            scope = share_vars_from._scope if share_vars_from else \
                global_scope()
        self._scope, self._kept = scope, False
        self._compiled = CompiledProgram(
            main_program or default_main_program())
        self._compiled.with_data_parallel(
            loss_name, build_strategy, exec_strategy or ExecutionStrategy(),
            share_vars_from and share_vars_from._compiled)
        self._exe = Executor(core.CPUPlace())

    def run(self, fetch_list, feed=None, feed_dict=None, return_numpy=True):
        """Run once; feed is a dict, or a list of one for each place."""
        if feed is None:
            feed = feed_dict
        results = self._exe.run(self._compiled, feed, fetch_list,
                                scope=self._scope, return_numpy=return_numpy)
        self._kept = True
        return results

    @property
    def device_count(self):
        return len(self._compiled._places)

    def drop_local_exe_scopes(self):
        """Let go of what runs keep besides persistable variables: nothing is
        kept here, so only _need_create_local_exe_scopes changes."""
        self._kept = False

    def _need_create_local_exe_scopes(self):
        """Whether the next run begins without anything of the last one."""
        return not self._kept
