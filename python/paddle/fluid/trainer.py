# SPDX-License-Identifier: Apache-2.0
"""fluid.Trainer: training as events; the environment says alone or in a job.

    trainer = fluid.Trainer(train_func, optimizer_func)
    trainer.train(num_epochs=2, event_handler=print, reader=reader,
                  feed_order=["x", "y"])

One script is a local run, a server, a trainer of servers or a rank of a
collective job, as `paddle env` explains. docs/trainer.md tells more.
"""
import os
import sys
import tempfile
import warnings

import numpy as np

from . import (_fluid, compiler, core, data_feeder, executor, framework, io,
               layers, optimizer as optimizers, unique_name)
from .transpiler import DistributeTranspiler, DistributeTranspilerConfig

__all__ = ["Trainer", "BeginEpochEvent", "EndEpochEvent", "BeginStepEvent",
           "EndStepEvent", "CheckpointConfig"]


class BeginEpochEvent:
    """A pass over the data begins.

    Args:
        epoch_id (int): its number, from 0.
    """

    def __init__(self, epoch_id):
        self.epoch = epoch_id


class EndEpochEvent:
    """A pass over the data has ended.

    Args:
        epoch_id (int): its number, from 0.
    """

    def __init__(self, epoch_id):
        self.epoch = epoch_id


class BeginStepEvent:
    """A batch is about to be trained on. Set fetch_metrics to False and its
    EndStepEvent carries no metrics.

    Args:
        epoch_id (int): the number of the pass.
        step_id (int): the number of the batch in it, from 0.
    """

    def __init__(self, epoch_id, step_id):
        self.epoch, self.step = epoch_id, step_id
        self.fetch_metrics = True


class EndStepEvent:
    """A batch was trained on.

    Args:
        epoch_id (int): the number of the pass.
        step_id (int): the number of the batch in it, from 0.
        metrics (list): the values of what train_func returned, in its order.
    """

    def __init__(self, epoch_id, step_id, metrics):
        self.epoch, self.step, self.metrics = epoch_id, step_id, metrics


class CheckpointConfig:
    """When to save what training can go on from, and where. A checkpoint is
    saved after each step whose number is a multiple of step_interval, in each
    epoch whose number is a multiple of epoch_interval.

    Args:
        checkpoint_dir (str): the folder; None: the current one. All processes
            of a job with servers must share it.
        max_num_checkpoints (int): how many stay; older ones are removed.
        epoch_interval (int): in epochs, 1 or more.
        step_interval (int): in steps, 1 or more.
    """

    def __init__(self, checkpoint_dir=None, max_num_checkpoints=3,
                 epoch_interval=1, step_interval=10):
        for name, value in (("max_num_checkpoints", max_num_checkpoints),
                            ("epoch_interval", epoch_interval),
                            ("step_interval", step_interval)):
            if value < 1:
                raise ValueError("CheckpointConfig: %s is %r, expected 1 or "
                                 "more" % (name, value))
        self.checkpoint_dir = os.getcwd() if checkpoint_dir is None \
            else checkpoint_dir
        self.max_num_checkpoints = max_num_checkpoints
        self.epoch_interval = epoch_interval
        self.step_interval = step_interval
        self.epoch_id = self.step_id = 0  # of the loaded checkpoint
        self.load_serial = None  # its serial number

    def _check_folder(self):
        """A folder that cannot be written is noticed before training."""
        try:
            os.makedirs(self.checkpoint_dir, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.checkpoint_dir):
                pass
        except OSError as e:
            raise OSError("CheckpointConfig: checkpoint_dir '%s' cannot be "
                          "written (%s); choose another folder" % (
                              self.checkpoint_dir, e.strerror)) from None

    def _is_due(self, epoch, step):
        return epoch % self.epoch_interval == 0 and \
            step % self.step_interval == 0

    def _is_done(self, epoch, step):
        """Whether the loaded checkpoint contains this step."""
        return self.load_serial is not None and \
            (epoch, step) <= (self.epoch_id, self.step_id)


def check_and_get_place(place):
    """The place to run on; None: the CPU."""
    return core.CPUPlace() if place is None else core.check_place(place)


def build_feed_var_list(program, feed_order):
    """The variables that a sample's values are for, in their order.

    Args:
        program (Program): what is fed.
        feed_order (list or dict): names in the order of a sample's values, or
            the place of each name; None: data layers in order of creation.

    Returns:
        A list of Variables.
    """
    block = program.global_block()
    if feed_order is None:
        return [v for v in block.vars.values() if v.is_data]
    if isinstance(feed_order, dict):
        places = sorted(feed_order.values())
        if places != list(range(len(places))):
            raise ValueError("feed_order gives the places %s, expected each of "
                             "0 to %d once" % (places, len(places) - 1))
        feed_order = sorted(feed_order, key=feed_order.get)
    if not isinstance(feed_order, (list, tuple)):
        raise TypeError("feed_order is %r, expected a list of names or a dict "
                        "from names to places" % (feed_order,))
    return [block.var(name) for name in feed_order]


class Trainer:
    """Trains what train_func builds, in passes over a reader, and tells an
    event handler of every step.

    Args:
        train_func (callable): builds the network; returns the loss, or a list
            of the loss and metrics.
        optimizer_func (callable): returns the optimizer.
        param_path (str): a folder of save_params to start from.
        place (CPUPlace): where; None: the CPU.
        parallel (bool): split every batch over the CPU_NUM places.
        checkpoint_config (CheckpointConfig): save on the way, and go on from
            the last checkpoint that is there; None: neither.
    """

    def __init__(self, train_func, optimizer_func, param_path=None,
                 place=None, parallel=False, checkpoint_config=None):
        if not isinstance(checkpoint_config, (CheckpointConfig, type(None))):
            raise TypeError("checkpoint_config is %r, expected a "
                            "CheckpointConfig" % (checkpoint_config,))
        self.place, self.parallel = check_and_get_place(place), parallel
        self.checkpoint_cfg = checkpoint_config
        self.scope = core.Scope()
        self.startup_program = framework.Program()
        self.train_program = framework.Program()
        self._stop = False
        self._role = _fluid.role()  # ValueError: it contradicts itself
        core.tell_once(self._role["notes"])
        self.trainer_id = self._role["trainer_id"]
        self.num_trainers = self._role["trainers"]
        self._build(train_func, optimizer_func)
        self._join_job()
        self._exe = executor.Executor(self.place)
        with executor.scope_guard(self.scope):
            self._exe.run(self.startup_program)
            self._start_from(param_path)
            self._resume()
            if self._is_rank():
                self._runs.start_ranks(self._exe, self.scope)

    # --- programs ---

    def _build(self, train_func, optimizer_func):
        with framework.program_guard(self.train_program,
                                     self.startup_program), \
                unique_name.guard():
            outputs = train_func()
            self.train_func_outputs = list(outputs) if isinstance(
                outputs, (list, tuple)) else [outputs]
            self.test_program = self.train_program.clone(for_test=True)
            optimizer = optimizer_func()
            if not isinstance(optimizer, optimizers.Optimizer):
                raise TypeError("The optimizer should be an instance of "
                                "Optimizer, but optimizer_func returned %r"
                                % (optimizer,))
            optimizer.minimize(self.train_func_outputs[0])
        self._fetches = [v.name for v in self.train_func_outputs]
        self._runs = self.train_program

    def _is_server(self):
        return self._role["role"] == "PSERVER"

    def _is_rank(self):
        return self._role["mode"] == "collective"

    def _join_job(self):
        """Programs for what the environment says this process is."""
        role = self._role
        if role["mode"] == "pserver":
            t = DistributeTranspiler()
            t.transpile(self.trainer_id, program=self.train_program,
                        startup_program=self.startup_program,
                        pservers=",".join(role["endpoints"]),
                        trainers=role["trainers"])
            if self._is_server():
                self.train_program, self.startup_program = \
                    t.get_pserver_programs(role["endpoint"])
                self._runs = self.train_program
                return
            t.get_trainer_program()  # waits for the servers
        build = compiler.BuildStrategy()
        if self._is_rank():
            config = DistributeTranspilerConfig()
            config.mode = "nccl2"
            DistributeTranspiler(config).transpile(
                self.trainer_id, program=self.train_program,
                startup_program=self.startup_program,
                trainers=",".join(role["endpoints"]),
                current_endpoint=role["endpoint"])
            build.num_trainers = role["trainers"]
            build.trainer_id = self.trainer_id
        if self.parallel or self._is_rank():
            self._runs = compiler.CompiledProgram(
                self.train_program).with_data_parallel(
                    self._fetches[0], build,
                    places=None if self.parallel else [self.place])

    # --- checkpoints ---

    def _start_from(self, param_path):
        if not param_path:
            return
        if os.path.isdir(param_path):
            io.load_persistables(self._exe, param_path, self.train_program)
        else:
            warnings.warn("Trainer: there is no folder param_path='%s'; the "
                          "parameters start as the startup program says"
                          % param_path, stacklevel=3)

    def _resume(self):
        cfg = self.checkpoint_cfg
        if cfg is None:
            self._tell_of_restart("the Trainer has no CheckpointConfig")
            return
        found = None
        if not self._is_rank() or self.trainer_id == 0:
            cfg._check_folder()
            found = _fluid.load_checkpoint(self.train_program, self.scope,
                                           cfg.checkpoint_dir)
        if self._is_rank():
            found = self._from_rank_0(found)
        if found is None:
            self._tell_of_restart("there is no checkpoint in %s"
                                  % cfg.checkpoint_dir)
            return
        cfg.load_serial, cfg.epoch_id, cfg.step_id = found
        sys.stderr.write(
            "Trainer: goes on from checkpoint %d in %s, after step %d of "
            "epoch %d\n" % (cfg.load_serial, cfg.checkpoint_dir, cfg.step_id,
                            cfg.epoch_id))

    @staticmethod
    def _tell_of_restart(why):
        """A launcher that starts a job again must not do so for nothing."""
        if os.environ.get("FLUID_RESTARTS"):
            sys.stderr.write("Trainer: restart %s begins with epoch 0, because "
                             "%s\n" % (os.environ["FLUID_RESTARTS"], why))

    def _from_rank_0(self, found):
        """What rank 0 has found: only its folder counts."""
        program = framework.Program()
        at = program.global_block().create_var(
            name="@CHECKPOINT@", shape=[3], dtype="int64", persistable=True)
        with framework.program_guard(program, framework.Program()):
            layers.collective._c_broadcast(at)
        tensor = self.scope.var(at.name).get_tensor()
        tensor.set(np.array(found or (-1, -1, -1), "int64"), self.place)
        self._exe.run(program)
        serial, epoch, step = map(int, np.array(tensor))
        self.scope.erase([at.name])
        return None if serial < 0 else (serial, epoch, step)

    # --- training ---

    def stop(self):
        """Let train() return after the current step; for event handlers."""
        self._stop = True

    def train(self, num_epochs, event_handler, reader=None, feed_order=None):
        """Train in passes over the data. A server serves instead until its
        trainers are done, and then exits: on a server this does not return.

        After a checkpoint was loaded, the steps that it contains are read and
        left out without events, so the reader must give the same batches in
        the same order again. The checkpoints are removed when training has
        ended, by stop() too.

        Args:
            num_epochs (int): the number of passes.
            event_handler (callable): is called with each event.
            reader (callable): gives an iterable of batches of samples.
            feed_order (list or dict): the names of a sample's values, in
                order, or the place of each name.
        """
        self._stop = False
        with executor.scope_guard(self.scope):
            if self._is_server():
                self._exe.run(self.train_program)
                sys.exit(0)
            if not callable(reader):
                raise TypeError("Trainer.train: reader is %r, expected a "
                                "function that gives an iterable of batches, "
                                "such as paddle.batch makes" % (reader,))
            feeder = data_feeder.DataFeeder(
                build_feed_var_list(self.train_program, feed_order),
                self.place)
            for epoch in range(num_epochs):
                self._train_epoch(epoch, event_handler, reader, feeder)
                if self._stop:
                    break
        self._clean_checkpoints()

    def _train_epoch(self, epoch, event_handler, reader, feeder):
        cfg = self.checkpoint_cfg
        if cfg and cfg.load_serial is not None and epoch < cfg.epoch_id:
            return
        event_handler(BeginEpochEvent(epoch))
        for step, batch in enumerate(reader()):
            if self._stop:
                return
            if cfg and cfg._is_done(epoch, step):
                continue
            begin = BeginStepEvent(epoch, step)
            event_handler(begin)
            metrics = self._exe.run(
                self._runs, feeder.feed(batch),
                self._fetches if begin.fetch_metrics else [])
            event_handler(EndStepEvent(epoch, step, metrics))
            if cfg and cfg._is_due(epoch, step) and self.trainer_id == 0:
                _fluid.save_checkpoint(
                    self.train_program, self.scope, cfg.checkpoint_dir,
                    cfg.max_num_checkpoints, epoch, step)
        if not self._stop:
            event_handler(EndEpochEvent(epoch))

    def _clean_checkpoints(self):
        if self.checkpoint_cfg and self.trainer_id == 0:
            _fluid.clean_checkpoints(self.checkpoint_cfg.checkpoint_dir)

    # --- results ---

    def test(self, reader, feed_order):
        """Run the network, without updates, on every batch of a reader.

        Args:
            reader (callable): gives an iterable of batches of samples.
            feed_order (list or dict): as in train.

        Returns:
            A list: the mean over the batches of each value of train_func.
        """
        self._check_no_server("test")
        sums, count = [0.0] * len(self._fetches), 0
        feeder = data_feeder.DataFeeder(
            build_feed_var_list(self.test_program, feed_order), self.place)
        with executor.scope_guard(self.scope):
            for batch in reader():
                values = self._exe.run(self.test_program, feeder.feed(batch),
                                       self._fetches)
                sums = [s + v for s, v in zip(sums, values)]
                count += 1
        if not count:
            raise ValueError("Trainer.test: the reader gave no batch")
        return [np.squeeze(s / count)[()] for s in sums]

    def save_params(self, param_path):
        """Save all that training keeps: parameters and the state of the
        optimizer; in a job with servers, from the servers.

        Args:
            param_path (str): the folder.
        """
        self._check_no_server("save_params")
        with executor.scope_guard(self.scope):
            io.save_persistables(self._exe, param_path, self.train_program)

    def save_inference_model(self, param_path, feeded_var_names,
                             target_var_indexes):
        """Save what computes some outputs of train_func, for
        fluid.io.load_inference_model.

        Args:
            param_path (str): the folder.
            feeded_var_names (list of str): what the model is fed.
            target_var_indexes (list of int): which values of train_func it
                computes.
        """
        self._check_no_server("save_inference_model")
        with executor.scope_guard(self.scope):
            io.save_inference_model(
                param_path, feeded_var_names,
                [self.train_func_outputs[i] for i in target_var_indexes],
                self._exe, self.test_program)

    def _check_no_server(self, call):
        if self._is_server():
            raise RuntimeError("Trainer.%s: this process is a parameter "
                               "server; its trainers do that" % call)
