# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.trainer: passes over the data that change the parameters."""
import os

import numpy as np

from .. import fluid
from ..fluid import _fluid
from . import _flags, config_base, event as events
from ._average import Average
from ._job import Local, Remote
from .data_feeder import DataFeeder
from .evaluator import Metrics, fetches
from .optimizer import Optimizer
from .parameters import Parameters
from .topology import Topology

__all__ = ["SGD"]


def _ignore(event):
    pass


def _batches(reader):
    """The batches of one pass."""
    batches = reader() if callable(reader) else None
    if not hasattr(batches, "__iter__"):
        raise TypeError("train_data_reader should be a function, which can "
                        "return a iterator")
    return iter(batches)


class SGD:
    """Trains parameters to lower a cost, or the sum of several.

    update_equation is an optimizer; extra_layers are kept so that evaluators
    over them count. is_local=False trains with the parameter servers that
    paddle.init names."""

    def __init__(self, cost, parameters, update_equation, extra_layers=None,
                 is_local=True, pserver_spec=None, use_etcd=True):
        if not isinstance(parameters, Parameters):
            raise TypeError("parameters should be parameters")
        if not isinstance(update_equation, Optimizer):
            raise TypeError("update equation parameter must be "
                            "paddle.v2.optimizer.Optimizer")
        if pserver_spec is not None:
            raise NotImplementedError(
                "trainer.SGD(pserver_spec=%r): servers written in Go, and "
                "etcd, are not supported; start `paddle pserver`, and name "
                "the hosts with paddle.init(pservers=...)" % (pserver_spec,))
        self._is_local = bool(is_local)
        self._topology = Topology(cost, extra_layers)
        self._parameters, self._optimizer = parameters, update_equation
        parameters.bind(self._topology)
        self._exe = fluid.Executor(fluid.CPUPlace())
        self._build()
        self._fetches = [self._cost.name] + [
            v.name for v in fetches(self._topology.evaluators)]
        self._test = self._parallel(self._test_program)

    # --- programs ---

    def _build(self):
        """The programs of a step and of a test."""
        main = self._topology.program.clone()
        self._start_program = fluid.Program()
        with config_base.graph.building(main, self._start_program):
            self._cost, loss = self._sum_costs(main)
            self._test_program = main.clone(for_test=True)
            for name in self._topology.configs:
                self._optimizer.configure(self._parameters.get_config(name))
            self._progress = self._optimizer.minimize(loss, {
                n: self._parameters.get_config(n)
                for n in self._topology.configs})
            self._average = Average.of(self._optimizer.model_average, main)
        self._job = self._make_job(main)

    def _make_job(self, main):
        sparse = self._topology.use_sparse_updater()
        if self._is_local:
            return Local(main, self._start_program)
        return Remote(main, self._start_program, sparse,
                      self._optimizer.is_async)

    def _sum_costs(self, main):
        """The cost that is reported, and the one whose gradient is taken:
        sums over the batch."""
        block, layers = main.global_block(), fluid.layers
        sums, losses = [], []
        for layer in self._topology.outputs:
            rows = layers.reduce_sum(block.var(layer.var.name))
            sums.append(rows)
            losses.append(rows if layer.coeff == 1.0
                          else layers.scale(rows, scale=layer.coeff))
        cost = sums[0] if len(sums) == 1 else layers.sums(sums)
        if all(layer.coeff == 1.0 for layer in self._topology.outputs):
            return cost, cost
        return cost, losses[0] if len(losses) == 1 else layers.sums(losses)

    @staticmethod
    def _parallel(program):
        """A program whose batches trainer_count threads share."""
        count = _flags.get("trainer_count")
        if count == 1:
            return program
        build = fluid.BuildStrategy()
        build.gradient_scale_strategy = \
            fluid.BuildStrategy.GradientScaleStrategy.One
        return fluid.CompiledProgram(program).with_data_parallel(
            build_strategy=build, places=fluid.cpu_places(count))

    def get_topology_proto(self):
        """What the network says of itself."""
        return self._topology.proto()

    # --- training ---

    def _feeder(self, feeding):
        return DataFeeder(self._topology.data_type(), feeding,
                          self._topology.program)

    def _run(self, program, feed):
        """The sum of costs, and what evaluators fetch."""
        cost, *values = self._exe.run(
            program, feed=feed, fetch_list=self._fetches,
            scope=self._parameters.scope, return_numpy=False)
        return float(np.sum(np.asarray(cost))), values

    def _count(self, samples, pass_id):
        """Tell the learning rate how large a batch is."""
        if self._progress is not None:
            self._parameters.scope.find_var(self._progress.name).get_tensor(
            ).set(np.array([samples, pass_id, 1], "float64"))

    @staticmethod
    def _log(period, pass_id, batch_id, cost, metrics):
        """A line for paddle_trainer.INFO, every `period` batches."""
        if period and batch_id % period == 0:
            _fluid.log_line("Pass %d, Batch %d, Cost %f, %s" % (
                pass_id, batch_id, cost, metrics))

    def train(self, reader, num_passes=1, event_handler=None, feeding=None):
        """Train on all batches of reader() num_passes times. What the
        optimizer remembers starts anew."""
        handler = _ignore if event_handler is None else event_handler
        if not callable(handler):
            raise TypeError("event handler should be a function")
        feeder = self._feeder(feeding)
        period = _flags.get("log_period") if os.environ.get(
            "PADDLE_LOG_DIR") else 0
        scope = self._parameters.scope
        step = self._parallel(self._job.begin(self._exe, scope))
        self._average.reset()
        for pass_id in range(num_passes):
            batches = _batches(reader)
            handler(events.BeginPass(pass_id))
            whole = Metrics(self._topology.evaluators)
            for batch_id, batch in enumerate(batches):
                handler(events.BeginIteration(pass_id, batch_id))
                self._count(len(batch), pass_id)
                cost, values = self._run(step, feeder(batch))
                self._average.count(self._exe, scope, self._job)
                handler(events.EndForwardBackward(pass_id, batch_id))
                one = Metrics(self._topology.evaluators)
                one.add(values)
                whole.add(values)
                self._log(period, pass_id, batch_id, cost / len(batch), one)
                handler(events.EndIteration(pass_id, batch_id,
                                            cost / len(batch), one))
            handler(events.EndPass(pass_id, whole))
        self._job.end(scope)

    def test(self, reader, feeding=None):
        """Cost and metrics over all batches of reader(), which changes
        nothing."""
        feeder, metrics = self._feeder(feeding), Metrics(
            self._topology.evaluators)
        total, samples = 0.0, 0
        self._job.fetch(self._parameters.scope)
        for batch in _batches(reader):
            cost, values = self._run(self._test, feeder(batch))
            metrics.add(values)
            total, samples = total + cost, samples + len(batch)
        return events.TestResult(metrics, total / samples if samples else 0.0)

    def save_parameter_to_tar(self, f):
        """Parameters.to_tar, with averages where the optimizer keeps any."""
        self._job.fetch(self._parameters.scope)
        with self._average.applied(self._exe, self._parameters.scope):
            self._parameters.to_tar(f)
