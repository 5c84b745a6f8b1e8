# SPDX-License-Identifier: Apache-2.0
"""fleet: one script for the ranks of a job without servers.

    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    fleet.distributed_optimizer(optimizer).minimize(loss)
    exe.run(fleet.startup_program)
    exe.run(fleet.main_program, feed=..., fetch_list=[loss])

`python -m paddle.distributed.launch script.py` starts the ranks.
"""
from ..... import _absent
from .... import compiler, io
from ....framework import default_startup_program
from ....transpiler.distribute_transpiler import (
    DistributeTranspiler, DistributeTranspilerConfig)
from ..base.fleet_base import DistributedOptimizer, Fleet, Mode

__all__ = ["fleet", "Collective", "CollectiveOptimizer",
           "DistributedStrategy"]


class DistributedStrategy(compiler.BuildStrategy):
    """How ranks work together: the fields of BuildStrategy, and these."""
    _FIELDS = dict(
        compiler.BuildStrategy._FIELDS,
        mode="nccl2",  # or "collective": the program itself has the calls
        collective_mode=None,  # "grad_allreduce" or "local_sgd"
        use_local_sgd=False,  # the same as mode "collective", "local_sgd"
        exec_strategy=None, forward_recompute=False,
        recompute_checkpoints=(), use_amp=False, amp_loss_scaling=2 ** 15,
        use_dist_fc=False, dist_fc_config=None, local_sgd_config=None)
    _REFUSED = ("forward_recompute", "use_amp", "use_dist_fc")

    def __setattr__(self, name, value):
        if name in self._REFUSED and value:
            raise NotImplementedError(
                "DistributedStrategy.%s %s; see %s"
                % (name, _absent.LATER, _absent.PAGE))
        super().__setattr__(name, value)


class Collective(Fleet):
    """Fleet of ranks that average their gradients among themselves."""

    def __init__(self):
        super().__init__(Mode.COLLECTIVE)
        self._origin_program = None
        self.startup_program = None
        self.main_program = None

    def init_worker(self):
        """Nothing is to do: the startup program joins the ranks."""
        self._role()

    def run_worker(self, main_programs=None, scopes=None):
        """Nothing is to do: run fleet.main_program."""
        self._role()

    def stop_worker(self):
        """This rank is done. A script that just ends says the same."""
        self._role()
        self._executor.close()

    def init_server(self, model_dir=None):
        """There are no servers."""
        raise RuntimeError("fleet.init_server: a collective job has no servers")

    def run_server(self):
        """There are no servers."""
        raise RuntimeError("fleet.run_server: a collective job has no servers")

    def distributed_optimizer(self, optimizer, strategy=None):
        """The optimizer to call minimize of."""
        self._role()
        if not isinstance(strategy, (DistributedStrategy, type(None))):
            raise TypeError("fleet: strategy is %r, expected a "
                            "DistributedStrategy" % (strategy,))
        self._optimizer = CollectiveOptimizer(optimizer, strategy)
        return self._optimizer

    def save_inference_model(self, executor, dirname, feeded_var_names=None,
                             target_vars=None, main_program=None,
                             export_for_deployment=True):
        """A model for inference; every rank has the same, so one is enough."""
        io.save_inference_model(dirname, feeded_var_names, target_vars,
                                executor, main_program or self._whole(),
                                export_for_deployment=export_for_deployment)

    def save_persistables(self, executor, dirname, main_program=None,
                          filename=None):
        """All that training goes on from; every rank has the same."""
        io.save_persistables(executor, dirname, main_program or self._whole(),
                             filename)

    def _whole(self):
        if self._origin_program is None:
            raise RuntimeError("fleet: call fleet.distributed_optimizer("
                               "optimizer, strategy).minimize(loss) first")
        return self._origin_program


fleet = Collective()


class CollectiveOptimizer(DistributedOptimizer):
    """minimize, then make the program that of a rank.

    Args:
        optimizer (Optimizer): what updates the parameters.
        strategy (DistributedStrategy): how ranks work together.
    """

    def __init__(self, optimizer, strategy=None):
        super().__init__(optimizer, strategy or DistributedStrategy())

    def minimize(self, loss, startup_program=None, parameter_list=None,
                 no_grad_set=None):
        result = self._optimizer.minimize(loss, startup_program,
                                          parameter_list, no_grad_set)
        main = loss.block.program
        fleet.startup_program = startup_program or default_startup_program()
        fleet._origin_program = fleet.main_program = main
        if fleet.worker_num() > 1:
            self._join_ranks(main, loss.name)
        return result

    def _join_ranks(self, main, loss):
        strategy, config = self._strategy, DistributeTranspilerConfig()
        config.mode, config.collective_mode = strategy.mode, \
            strategy.collective_mode
        if strategy.use_local_sgd:
            config.mode, config.collective_mode = "collective", "local_sgd"
        config.nccl_comm_num = strategy.nccl_comm_num
        endpoints, rank = fleet.worker_endpoints(), fleet.worker_index()
        DistributeTranspiler(config).transpile(
            rank, program=main, startup_program=fleet.startup_program,
            trainers=",".join(endpoints), current_endpoint=endpoints[rank])
        if config.mode == "nccl2":
            strategy.num_trainers, strategy.trainer_id = len(endpoints), rank
            fleet.main_program = compiler.CompiledProgram(
                main).with_data_parallel(loss, strategy,
                                         strategy.exec_strategy)


_absent.answer_for(globals())
