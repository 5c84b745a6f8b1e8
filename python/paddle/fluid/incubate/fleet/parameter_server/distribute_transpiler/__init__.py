# SPDX-License-Identifier: Apache-2.0
"""fleet: one script for the parameter servers and the trainers of a job.

    fleet.init(role_maker.PaddleCloudRoleMaker())
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        fleet.init_worker()
        exe.run(fleet.startup_program)
        ...
        fleet.stop_worker()
"""
import os

from ..... import io
from .....communicator import Communicator
from .....framework import default_main_program, default_startup_program
from .....transpiler.distribute_transpiler import (
    DistributeTranspiler as _Transpiler, DistributeTranspilerConfig)
from ...base.fleet_base import DistributedOptimizer, Fleet, Mode

__all__ = ["fleet", "DistributedTranspiler", "TranspilerOptimizer",
           "DistributeTranspilerConfig"]


def _check_strategy(strategy):
    if not isinstance(strategy, (DistributeTranspilerConfig, type(None))):
        raise TypeError("fleet: strategy is %r, expected a "
                        "DistributeTranspilerConfig" % (strategy,))


class DistributedTranspiler(Fleet):
    """Fleet over DistributeTranspiler."""

    def __init__(self):
        super().__init__(Mode.TRANSPILER)
        self._transpiler = None
        self._communicator = None
        self._origin_program = None
        self.startup_program = None
        self.main_program = None

    def distributed_optimizer(self, optimizer, strategy=None):
        """The optimizer to call minimize of."""
        self._role()
        _check_strategy(strategy)
        if not hasattr(optimizer, "minimize"):
            raise TypeError("fleet.distributed_optimizer: optimizer is %r, "
                            "expected an Optimizer such as fluid.optimizer.SGD"
                            % (optimizer,))
        self._optimizer = TranspilerOptimizer(optimizer, strategy)
        return self._optimizer

    def _transpile(self, config):
        config = config or DistributeTranspilerConfig()
        servers = self.server_endpoints()
        if not servers:
            raise ValueError(
                "fleet: no servers are named; start the script with `paddle "
                "launch`, or set TRAINING_ROLE, PADDLE_TRAINERS_NUM and "
                "PADDLE_PSERVERS_IP_PORT_LIST=host:port,host:port; for "
                "a job without servers, use fleet of incubate.fleet.collective")
        config.runtime_split_send_recv = config.half_async or \
            not config.sync_mode
        main, startup = default_main_program(), default_startup_program()
        self._origin_program = main.clone()
        self._transpiler = _Transpiler(config)
        self._transpiler.transpile(
            trainer_id=self.worker_index() if self.is_worker() else 0,
            pservers=",".join(servers), trainers=self.worker_num(),
            sync_mode=config.sync_mode)
        if self.is_worker():
            self.main_program = self._transpiler.get_trainer_program(
                config.wait_port)
            self.startup_program = startup
        else:
            self.main_program, self.startup_program = \
                self._transpiler.get_pserver_programs(
                    servers[self.server_index()])

    def _cut(self, call, role=None):
        """Is it time for this call, and is this who calls it?"""
        if self._transpiler is None:
            raise RuntimeError("fleet.%s: call fleet.distributed_optimizer("
                               "optimizer, strategy).minimize(loss) first"
                               % call)
        mine = "server" if self.is_server() else "worker"
        if role not in (None, mine):
            raise RuntimeError("fleet.%s is for a %s, this process is a %s"
                               % (call, role, mine))

    def init_server(self, model_dir=None):
        """Start the parameters of this server, or load them."""
        self._cut("init_server", "server")
        self._executor.run(self.startup_program)
        if model_dir is not None:
            if not os.path.isdir(model_dir):
                raise ValueError("fleet.init_server: there is no folder '%s'"
                                 % model_dir)
            io.load_persistables(self._executor, model_dir, self.main_program)

    def run_server(self):
        """Serve until the trainers are done."""
        self._cut("run_server", "server")
        self._executor.run(self.main_program)

    def init_worker(self):
        """Before a worker trains. Without sync_mode its gradients are
        gathered, and travel while it computes."""
        self._cut("init_worker", "worker")
        if not self._transpiler.sync_mode and self._communicator is None:
            self._communicator = Communicator(self.main_program)
            self._communicator.start()

    def stop_worker(self):
        """This worker is done. A script that just ends says the same."""
        self._cut("stop_worker", "worker")
        if self._communicator is not None:
            self._communicator.stop()
            self._communicator = None
        self._executor.close()

    def save_inference_model(self, executor, dirname, feeded_var_names,
                             target_vars, main_program=None,
                             export_for_deployment=True):
        """One whole model for inference, from all servers."""
        self._cut("save_inference_model", "worker")
        io.save_inference_model(dirname, feeded_var_names, target_vars,
                                executor, main_program or self.main_program,
                                export_for_deployment=export_for_deployment)

    def save_persistables(self, executor, dirname, main_program=None):
        """All that training goes on from, from all servers."""
        self._cut("save_persistables", "worker")
        io.save_persistables(executor, dirname,
                             main_program or self.main_program)


fleet = DistributedTranspiler()


class TranspilerOptimizer(DistributedOptimizer):
    """minimize, then cut the program for trainers and servers."""

    def minimize(self, loss, scope=None, startup_program=None,
                 parameter_list=None, no_grad_set=None):
        result = self._optimizer.minimize(loss, startup_program,
                                          parameter_list, no_grad_set)
        fleet._transpile(self._strategy)
        return result
