# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.event: what a trainer tells its event_handler."""

__all__ = ["BeginPass", "EndPass", "BeginIteration", "EndForwardBackward",
           "EndIteration", "TestResult"]


class WithMetric:
    """An event that knows the metrics of its evaluators."""

    def __init__(self, evaluator):
        self.evaluator = evaluator

    @property
    def metrics(self):
        """Values by the names of the evaluators, as a new dict."""
        return dict(self.evaluator.metrics())


class TestResult(WithMetric):
    """What SGD.test found."""

    def __init__(self, evaluator, cost):
        super().__init__(evaluator)
        self.cost = cost


class BeginPass:
    """A pass over the data begins."""

    def __init__(self, pass_id):
        self.pass_id = pass_id


class EndPass(WithMetric):
    """A pass has ended; metrics are those of all its batches."""

    def __init__(self, pass_id, evaluator, gm=None):
        super().__init__(evaluator)
        self.pass_id, self.gm = pass_id, gm


class BeginIteration:
    """A batch begins."""

    def __init__(self, pass_id, batch_id):
        self.pass_id, self.batch_id = pass_id, batch_id


class EndForwardBackward:
    """The gradients of a batch are known. Here the parameters have been
    updated as well by then."""

    def __init__(self, pass_id, batch_id, gm=None):
        self.pass_id, self.batch_id, self.gm = pass_id, batch_id, gm


class EndIteration(WithMetric):
    """A batch has ended. cost: the sum over its rows, before the update, over
    the number of samples; metrics: those of this batch."""

    def __init__(self, pass_id, batch_id, cost, evaluator, gm=None):
        super().__init__(evaluator)
        self.pass_id, self.batch_id = pass_id, batch_id
        self.cost, self.gm = cost, gm
